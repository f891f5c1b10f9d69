/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests queues as the libraries of GPUs make and drive them (NVSHMEM's IBGDA, DOCA's gpunetio): a
 * collapsed or ordinary CQ without overrun check, whose record nobody writes; a QP by CREATE_QP
 * with a shared or no receive queue; doorbells in each order that these libraries use. The CPU
 * stores here what a kernel stores there.
 *
 * Rings, CQs and records may lie in memory of a GPU: memory that no CPU may touch at the address
 * that is registered, and that is reached by copies (guest-lib/host/gpu.h, whose functions the
 * linker replaces by those below). The test stores to a second mapping.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/unheard.h"
#include "guest-lib/verbs/kernel/watch.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define LOG_SQ    4 /* in basic blocks */
#define LOG_CQ    2 /* shorter than what is posted: the CQ wraps, or has one CQE alone */
#define RING_SIZE 8192
#define DATA      4096
#define DC_KEY    0x5634

static struct verbs_table *v;

/* -- a GPU's memory ---------------------------------------------------------------------------- */

#define GPU_BYTES (256 * 1024)

/* Two mappings of the same memory: at gpu_lowest no CPU may touch it. */
static struct {
    uint8_t *stores;
    size_t used;
    unsigned reads, misses; /* copies from it; those that failed */
    uint64_t freed;         /* the page at this address does not answer; 0: all do */
} gpu;

static void gpu_setup(void)
{
    int fd = memfd_create("gpu", 0);
    void *addr;

    ck_assert(fd >= 0 && !ftruncate(fd, GPU_BYTES));
    gpu.stores = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    addr = mmap(NULL, GPU_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    ck_assert(gpu.stores != MAP_FAILED && addr != MAP_FAILED);
    close(fd);
    gpu_lowest = (uintptr_t)addr;
    gpu_end = gpu_lowest + GPU_BYTES;
    gpu.used = gpu.reads = gpu.misses = 0;
    gpu.freed = 0;
}

static void gpu_teardown(void)
{
    munmap(gpu.stores, GPU_BYTES);
    munmap((void *)(uintptr_t)gpu_lowest, GPU_BYTES);
    gpu_lowest = gpu_end = 0;
}

static void *gpu_at(uint64_t addr)
{
    return gpu.stores + (addr - gpu_lowest);
}

int __wrap_gpu_claim_range(const void *addr, size_t len, struct gpu_claim **claim);
void __wrap_gpu_release(struct gpu_claim *claim);
bool __wrap_gpu_has_claimed(uint64_t addr);
bool __wrap_gpu_read(uint64_t addr, void *buf, size_t len);
bool __wrap_gpu_write(uint64_t addr, const void *buf, size_t len);
void __wrap_gpu_expect(size_t len);
void __wrap_gpu_end_turn(void);

int __wrap_gpu_claim_range(const void *addr, size_t len, struct gpu_claim **claim)
{
    *claim = gpu_has((uintptr_t)addr) ? (struct gpu_claim *)&gpu : NULL;
    return 0;
}

void __wrap_gpu_release(struct gpu_claim *claim)
{
}

bool __wrap_gpu_has_claimed(uint64_t addr)
{
    return true;
}

bool __wrap_gpu_read(uint64_t addr, void *buf, size_t len)
{
    if (gpu.freed && addr - gpu.freed < PCI_PAGE) {
        gpu.misses++;
        return false;
    }
    gpu.reads++;
    memcpy(buf, gpu_at(addr), len);
    return true;
}

bool __wrap_gpu_write(uint64_t addr, const void *buf, size_t len)
{
    memcpy(gpu_at(addr), buf, len);
    return true;
}

/* Nothing is copied in advance. */
void __wrap_gpu_expect(size_t len)
{
}

void __wrap_gpu_end_turn(void)
{
}

static void setup(void)
{
    gpu_setup();
    v = verbs_table_on(verbs_hosts_new_as(2, NULL, "cx8"));
}

static void teardown(void)
{
    ck_assert(!local_is_watched(v->hca[0]->local) && !local_is_watched(v->hca[1]->local));
    verbs_table_free(v);
    gpu_teardown();
}

/* -- forms of queues --------------------------------------------------------------------------- */

enum order {
    RECORD_DOORBELL,          /* IBGDA */
    DOORBELL_RECORD_DOORBELL, /* gpunetio */
    BLUEFLAME_RECORD_DOORBELL,
    NO_RECORD,
};

static const struct form {
    uint8_t st, rq_type;
    bool cc;
    enum order order;
    bool on_gpu; /* rings, CQ and records */
} forms[] = {
    {PRM_QP_ST_RC, PRM_RQ_TYPE_SRQ, true, RECORD_DOORBELL, false},
    {PRM_QP_ST_DCI, PRM_RQ_TYPE_SRQ, true, RECORD_DOORBELL, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, true, DOORBELL_RECORD_DOORBELL, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, false, DOORBELL_RECORD_DOORBELL, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, false, BLUEFLAME_RECORD_DOORBELL, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, true, NO_RECORD, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, false, NO_RECORD, false},
    {PRM_QP_ST_DCI, PRM_RQ_TYPE_ZERO_SIZE, true, NO_RECORD, false},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_SRQ, true, RECORD_DOORBELL, true},
    {PRM_QP_ST_DCI, PRM_RQ_TYPE_SRQ, true, RECORD_DOORBELL, true},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, true, DOORBELL_RECORD_DOORBELL, true},
    {PRM_QP_ST_RC, PRM_RQ_TYPE_ZERO_SIZE, false, NO_RECORD, true},
};
static const struct form *const on_gpu = &forms[10];

struct memory {
    uint8_t *ptr;  /* where the test stores and loads */
    uint8_t *addr; /* what is registered */
    struct mlx5dv_devx_umem *umem;
};

struct side {
    struct form form;
    int index;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *other_cq; /* of the receive side, which is never used */
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    uint8_t *data;
    struct memory cq_ring, qp_ring, cq_dbr, qp_dbr;
    struct mlx5dv_devx_uar *uar;
    bool has_uar; /* it has its own doorbell page */
    struct mlx5dv_devx_obj *cq, *qp;
    struct ibv_qp *dct;
    uint32_t pi, ci; /* basic blocks posted; CQEs taken */
};

static uint8_t *page_alloc(size_t size, int byte)
{
    size_t whole = hv_whole_pages(size);

    return memset(aligned_alloc(PCI_PAGE, whole), byte, whole);
}

static struct memory memory_new(struct side *s, size_t size, int byte)
{
    struct memory m;

    if (s->form.on_gpu) {
        m.ptr = memset(gpu.stores + gpu.used, byte, hv_whole_pages(size));
        m.addr = (uint8_t *)(uintptr_t)gpu_lowest + gpu.used;
        gpu.used += hv_whole_pages(size);
        ck_assert_uint_le(gpu.used, GPU_BYTES);
    } else {
        m.ptr = m.addr = page_alloc(size, byte);
    }
    m.umem = hv_dv_devx_umem_reg(s->ctx, m.addr, size, IBV_ACCESS_LOCAL_WRITE);
    ck_assert_ptr_nonnull(m.umem);
    return m;
}

static void memory_free(struct memory *m)
{
    ck_assert_int_eq(hv_dv_devx_umem_dereg(m->umem), 0);
    if (m->ptr == m->addr) {
        free(m->ptr);
    }
}

/* ibgda_create_cq(), doca_verbs_cq::create(): oi, 64 bytes, the ring filled with ones. */
static struct mlx5dv_devx_obj *create_cq(struct side *s)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    ck_assert_int_eq(hv_dv_devx_query_eqn(s->ctx, 0, &eqn), 0);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, s->cq_ring.umem->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_valid, 1);
    PRM_SET(cqc, cqc, cc, s->form.cc);
    PRM_SET(cqc, cqc, oi, 1);
    PRM_SET(cqc, cqc, log_cq_size, LOG_CQ);
    PRM_SET(cqc, cqc, log_page_size, 4); /* GPU pages of 64 KiB; a umem knows its own */
    PRM_SET(cqc, cqc, uar_page, s->uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_umem_valid, 1);
    PRM_SET(cqc, cqc, dbr_umem_id, s->cq_dbr.umem->umem_id);
    return hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out));
}

/* ibgda_create_qp(), doca_verbs_qp::create_qp_obj(). */
static struct mlx5dv_devx_obj *create_qp(struct side *s)
{
    struct prm_create_qp_in in[1] = {0};
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, wq_umem_id, s->qp_ring.umem->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_valid, 1);
    PRM_SET(qpc, qpc, st, s->form.st);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, hv_pd(s->pd)->pdn);
    PRM_SET(qpc, qpc, uar_page, s->uar->page_id);
    PRM_SET(qpc, qpc, rq_type, s->form.rq_type);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn,
            s->form.rq_type == PRM_RQ_TYPE_SRQ ? hv_srq(s->srq)->srqn : 0);
    PRM_SET(qpc, qpc, cqn_snd, s->cq->id);
    PRM_SET(qpc, qpc, cqn_rcv, hv_cq(s->other_cq)->cqn);
    PRM_SET(qpc, qpc, log_sq_size, LOG_SQ);
    PRM_SET(qpc, qpc, dbr_umem_valid, 1);
    PRM_SET(qpc, qpc, dbr_umem_id, s->qp_dbr.umem->umem_id);
    PRM_SET(qpc, qpc, user_index, 3);
    PRM_SET(qpc, qpc, send_dbr_mode,
            s->form.order == NO_RECORD ? PRM_SEND_DBR_MODE_NO_DBR_EXT
                                       : PRM_SEND_DBR_MODE_DBR_VALID);
    return hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out));
}

/* uar: another side's doorbell page; NULL: a page of its own. */
static struct side *side_on(int index, const struct form *form, struct mlx5dv_devx_uar *uar)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct side *s = g_new0(struct side, 1);

    s->form = *form;
    s->index = index;
    s->ctx = index ? v->b : v->a;
    s->pd = v->hosts->host[index].pd;
    s->other_cq = ibv_create_cq(s->ctx, 4, NULL, NULL, 0);
    s->srq = ibv_create_srq(s->pd, &srq_attr);
    s->data = page_alloc(DATA, index ? 0 : 0x77);
    s->mr = ibv_reg_mr(s->pd, s->data, DATA,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    s->has_uar = !uar;
    s->uar = uar ? uar : hv_dv_devx_alloc_uar(s->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    s->cq_ring = memory_new(s, RING_SIZE, 0xff);
    s->qp_ring = memory_new(s, RING_SIZE, 0);
    s->cq_dbr = memory_new(s, 64, 0);
    s->qp_dbr = memory_new(s, 64, 0);
    s->cq = create_cq(s);
    ck_assert_ptr_nonnull(s->cq);
    s->qp = create_qp(s);
    return s;
}

static struct side *side_new(int index, const struct form *form)
{
    struct side *s = side_on(index, form, NULL);

    ck_assert_ptr_nonnull(s->qp);
    return s;
}

static void side_free(struct side *s)
{
    static const uint8_t untouched[64];

    /* nobody wrote the CQ's record */
    ck_assert_mem_eq(s->cq_dbr.ptr, untouched, 64);
    if (s->form.order == NO_RECORD) {
        ck_assert_mem_eq(s->qp_dbr.ptr, untouched, 64);
    }
    if (s->dct) {
        ck_assert_int_eq(ibv_destroy_qp(s->dct), 0);
    }
    if (s->qp) {
        ck_assert_int_eq(hv_dv_devx_obj_destroy(s->qp), 0);
    }
    ck_assert_int_eq(hv_dv_devx_obj_destroy(s->cq), 0);
    memory_free(&s->qp_dbr);
    memory_free(&s->cq_dbr);
    memory_free(&s->qp_ring);
    memory_free(&s->cq_ring);
    if (s->has_uar) {
        hv_dv_devx_free_uar(s->uar);
    }
    ck_assert_int_eq(ibv_dereg_mr(s->mr), 0);
    free(s->data);
    ck_assert_int_eq(ibv_destroy_srq(s->srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(s->other_cq), 0);
    g_free(s);
}

/* -- their states ------------------------------------------------------------------------------ */

static int try_transition(struct side *s, uint16_t opcode, uint32_t opt_mask,
                          const struct prm_qpc *qpc)
{
    struct prm_rts2rts_qp_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};

    PRM_SET(rts2rts_qp_in, in, opcode, opcode);
    PRM_SET(rts2rts_qp_in, in, qpn, s->qp->id);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask, opt_mask);
    memcpy(PRM_PTR(rts2rts_qp_in, in, qpc), qpc, PRM_SIZE(qpc));
    return hv_dv_devx_obj_modify(s->qp, in, sizeof(in), out, sizeof(out));
}

static void transition(struct side *s, uint16_t opcode, const struct prm_qpc *qpc)
{
    ck_assert_int_eq(try_transition(s, opcode, 0, qpc), 0);
}

static void to_rts(struct side *s, const struct side *peer)
{
    const struct hv_port_config *to = &v->hosts->host[peer->index].config;
    bool rc = s->form.st == PRM_QP_ST_RC;
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(qpc, qpc, rwe, rc);
    PRM_SET(qpc, qpc, rre, rc);
    PRM_SET(qpc, qpc, dc_access_key, rc ? 0 : DC_KEY);
    transition(s, PRM_CMD_OP_RST2INIT_QP, qpc);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, mtu, PRM_QP_MTU_1024);
    PRM_SET(qpc, qpc, remote_qpn, rc ? peer->qp->id : 0);
    PRM_SET(qpc, qpc, min_rnr_nak, 1);
    PRM_SET(qpc, qpc, log_rra_max, 4);
    PRM_SET(ads, ads, hop_limit, 64);
    PRM_SET(ads, ads, src_addr_index, 1);
    PRM_SET(ads, ads, udp_sport, 0xdcba);
    memcpy(PRM_PTR(ads, ads, rgid_rip), to->gid[1].raw, 16);
    PRM_SET(ads, ads, rmac_47_32, prm_load16(to->mac));
    PRM_SET(ads, ads, rmac_31_0, prm_load32(to->mac + 2));
    transition(s, PRM_CMD_OP_INIT2RTR_QP, qpc);
    memset(qpc, 0, sizeof(qpc));
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, ack_timeout, 14);
    PRM_SET(qpc, qpc, log_sra_max, 4);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    transition(s, PRM_CMD_OP_RTR2RTS_QP, qpc);
}

/* The target of a DCI, which verbs make. */
static void make_dct(struct side *s)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = s->other_cq,
                                       .recv_cq = s->other_cq,
                                       .srq = s->srq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = s->pd};
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY}};
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
        .path_mtu = IBV_MTU_1024,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}}};

    s->dct = hv_dv_create_qp(s->ctx, &init, &dv);
    ck_assert_ptr_nonnull(s->dct);
    ck_assert_int_eq(
        ibv_modify_qp(s->dct, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(
        ibv_modify_qp(s->dct, &attr,
                      IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV),
        0);
}

/* -- driving them ------------------------------------------------------------------------------ */

static void *slot(const struct side *s, uint32_t index)
{
    return s->qp_ring.ptr + (index & ((1u << LOG_SQ) - 1)) * 64u;
}

/* A WQE of which the segments after the control segment follow. */
struct wqe {
    uint8_t bytes[128];
    size_t len;
};

static void *wqe_add(struct wqe *wqe, size_t bytes)
{
    void *seg = wqe->bytes + wqe->len;

    wqe->len += bytes;
    return seg;
}

static void wqe_begin(struct wqe *wqe, const struct side *s, const struct side *peer, bool remote)
{
    *wqe = (struct wqe){.len = PRM_SIZE(wqe_ctrl_seg)};
    if (remote && s->form.st == PRM_QP_ST_DCI) {
        const struct hv_port_config *to = &v->hosts->host[peer->index].config;
        struct prm_wqe_av *av = wqe_add(wqe, PRM_SIZE(wqe_av));

        PRM_SET(wqe_av, av, dc_key, DC_KEY);
        PRM_SET(wqe_av, av, ext, 1);
        PRM_SET(wqe_av, av, dqp_dct, peer->dct->qp_num);
        PRM_SET(wqe_av, av, udp_sport, 0xdcba);
        memcpy(PRM_PTR(wqe_av, av, rmac), to->mac, 6);
        PRM_SET(wqe_av, av, hop_limit, 64);
        PRM_SET(wqe_av, av, grh, 1);
        PRM_SET(wqe_av, av, src_addr_index, 1);
        memcpy(PRM_PTR(wqe_av, av, rgid), to->gid[1].raw, 16);
    }
}

static void wqe_add_data(struct wqe *wqe, const struct side *s, size_t at, uint32_t len,
                         uint32_t lkey)
{
    struct prm_wqe_data_seg *seg = wqe_add(wqe, PRM_SIZE(wqe_data_seg));

    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, lkey);
    PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)s->data + at);
}

/* Copies it to the ring as WQE pi, signaled. */
static void wqe_put(struct wqe *wqe, struct side *s, uint8_t opcode)
{
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe->bytes;

    PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, s->pi & 0xffff);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, s->qp->id);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, wqe->len / 16);
    PRM_SET(wqe_ctrl_seg, ctrl, ce, PRM_WQE_CE_ALWAYS);
    for (size_t at = 0; at < wqe->len; at += 64) {
        memcpy(slot(s, s->pi++), wqe->bytes + at, 64);
    }
}

static void put_rdma(struct side *s, const struct side *peer, uint8_t opcode, uint32_t at,
                     uint32_t len, uint32_t rkey)
{
    struct prm_wqe_raddr_seg *raddr;
    struct wqe wqe;

    wqe_begin(&wqe, s, peer, true);
    raddr = wqe_add(&wqe, PRM_SIZE(wqe_raddr_seg));
    PRM_SET(wqe_raddr_seg, raddr, raddr, (uintptr_t)peer->data + at);
    PRM_SET(wqe_raddr_seg, raddr, rkey, rkey);
    wqe_add_data(&wqe, s, at, len, s->mr->lkey);
    wqe_put(&wqe, s, opcode);
}

static void put_write(struct side *s, const struct side *peer, uint32_t at, uint32_t len)
{
    put_rdma(s, peer, PRM_WQE_OPCODE_RDMA_WRITE, at, len, peer->mr->rkey);
}

static void put_dump(struct side *s, uint32_t lkey)
{
    struct wqe wqe;

    wqe_begin(&wqe, s, NULL, false);
    wqe_add_data(&wqe, s, 0, 1, lkey);
    PRM_SET(wqe_ctrl_seg, (struct prm_wqe_ctrl_seg *)wqe.bytes, fm, PRM_WQE_FM_FENCE);
    wqe_put(&wqe, s, PRM_WQE_OPCODE_DUMP);
}

/* The 8 bytes that a kernel stores to a doorbell register: the counter, the QP, no opcode. */
static void store_doorbell(const struct side *s, uint32_t reg)
{
    uint64_t value = GUINT64_TO_BE((uint64_t)(s->pi & 0xffff) << 40 | (uint64_t)s->qp->id << 8);

    __atomic_store_n((uint64_t *)((uint8_t *)s->uar->base_addr + reg), value, __ATOMIC_RELEASE);
}

static void store_record(const struct side *s)
{
    __atomic_store_n((uint32_t *)(void *)s->qp_dbr.ptr + 1, GUINT32_TO_BE(s->pi & 0xffff),
                     __ATOMIC_RELEASE);
}

static void ring(const struct side *s)
{
    const uint64_t *wqe = slot(s, s->pi - 1);

    switch (s->form.order) {
    case DOORBELL_RECORD_DOORBELL:
        store_doorbell(s, PRM_OFFSET(uar, blue_flame));
        break;
    case BLUEFLAME_RECORD_DOORBELL:
        for (unsigned i = 0; i < 8; i++) {
            __atomic_store_n((uint64_t *)s->uar->reg_addr + i, wqe[i], __ATOMIC_RELEASE);
        }
        break;
    case NO_RECORD:
        store_doorbell(s, PRM_OFFSET(uar, send_db_no_dbr));
        return;
    default:
        break;
    }
    store_record(s);
    store_doorbell(s, PRM_OFFSET(uar, blue_flame));
}

/* Lets both HCAs run, which check the doorbell pages. */
static void settle(void)
{
    table_wait(v);
}

/* ibgda_poll_cq(): CQE 0 tells the last WQE that has completed. gpunetio's ordinary CQ: the owner
 * bit of each CQE. Neither writes the CQ's record. */
static struct prm_cqe64 *next_cqe(struct side *s)
{
    struct prm_cqe64 *cqes = (void *)s->cq_ring.ptr;
    struct prm_cqe64 *cqe = &cqes[s->form.cc ? 0 : s->ci & ((1u << LOG_CQ) - 1)];

    ck_assert_uint_ne(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_INVALID);
    if (!s->form.cc) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, owner), s->ci >> LOG_CQ & 1);
    }
    s->ci++;
    return cqe;
}

/* Everything that was posted has completed; the last WQE has so many basic blocks. */
static void expect_all_done(struct side *s, unsigned cqes, unsigned last_blocks)
{
    struct prm_cqe64 *cqe = NULL;

    for (unsigned i = 0; i < (s->form.cc ? 1 : cqes); i++) {
        cqe = next_cqe(s);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
    }
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), (s->pi - last_blocks) & 0xffff);
}

static struct pair {
    struct side *a, *b;
} pair_new(const struct form *form, struct mlx5dv_devx_uar *uar)
{
    struct form target = *form;
    struct pair p;

    target.st = PRM_QP_ST_RC;
    p.a = side_on(0, form, uar);
    ck_assert_ptr_nonnull(p.a->qp);
    p.b = side_new(1, &target);
    if (form->st == PRM_QP_ST_DCI) {
        make_dct(p.b);
    } else {
        to_rts(p.b, p.a);
    }
    to_rts(p.a, p.b);
    return p;
}

static void pair_free(struct pair *p)
{
    side_free(p->a);
    side_free(p->b);
}

static void pair_reset(struct pair *p)
{
    struct prm_qpc qpc[1] = {0};

    transition(p->a, PRM_CMD_OP_2RST_QP, qpc);
    transition(p->b, PRM_CMD_OP_2RST_QP, qpc);
    to_rts(p->a, p->b);
    to_rts(p->b, p->a);
    p->a->pi = 0;
}

START_TEST(data_goes_over_queues_of_each_form)
{
    const struct form *form = &forms[_i];
    unsigned blocks = form->st == PRM_QP_ST_DCI ? 2 : 1;
    struct pair p = pair_new(form, NULL);

    /* several times around each ring */
    for (unsigned i = 0; i < 50; i++) {
        unsigned num = form->cc ? 1 + i % 4 : 1 + i % (1u << LOG_CQ);

        for (unsigned at = 0; at < DATA; at++) {
            p.a->data[at] = (uint8_t)(at * (i + 1) + i);
        }
        for (unsigned n = 0; n < num; n++) {
            put_write(p.a, p.b, n * DATA / num, (n + 1) * DATA / num - n * DATA / num);
        }
        ring(p.a);
        settle();
        expect_all_done(p.a, num, blocks);
        ck_assert_mem_eq(p.a->data, p.b->data, DATA);
    }
    memset(p.a->data, 0, DATA);
    put_rdma(p.a, p.b, PRM_WQE_OPCODE_RDMA_READ, 0, DATA, p.b->mr->rkey);
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, blocks);
    ck_assert_mem_eq(p.a->data, p.b->data, DATA);
    /* then the DUMP by which NVSHMEM and gpunetio know that the data of a READ is in memory */
    put_dump(p.a, p.a->mr->lkey);
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, 1);
    put_dump(p.a, p.a->mr->lkey + 0x100);
    ring(p.a);
    settle();
    ck_assert_uint_eq(PRM_GET(err_cqe, (struct prm_err_cqe *)next_cqe(p.a), syndrome),
                      PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    pair_free(&p);
}
END_TEST

/* A kernel looks for opcode 0xd: ibgda_poll_cq(), doca_gpu_dev_verbs_poll_cq_at(). */
START_TEST(an_error_is_in_the_cqe_that_a_kernel_polls)
{
    struct pair p = pair_new(&forms[_i], NULL);
    struct prm_err_cqe *err;

    put_write(p.a, p.b, 0, 8);
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, p.a->form.st == PRM_QP_ST_DCI ? 2 : 1);
    put_rdma(p.a, p.b, PRM_WQE_OPCODE_RDMA_WRITE, 0, 8, p.b->mr->rkey + 0x100);
    ring(p.a);
    settle();
    err = (void *)next_cqe(p.a);
    ck_assert_uint_eq(PRM_GET(cqe64, (void *)err, opcode), PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, err, syndrome), PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    /* what comes after it is flushed, into the same CQE if the CQ has one */
    put_write(p.a, p.b, 0, 8);
    ring(p.a);
    settle();
    err = (void *)next_cqe(p.a);
    ck_assert_uint_eq(PRM_GET(cqe64, (void *)err, opcode), PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, err, syndrome), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    pair_free(&p);
}
END_TEST

/* IBTA 9.7.5.2.8: a responder without a receive WQE is not ready. A queue without room never is. */
START_TEST(a_message_finds_no_receive_queue)
{
    struct pair p = pair_new(&forms[2], NULL);
    struct prm_qpc qpc[1] = {0};
    struct wqe wqe;
    struct prm_err_cqe *err;

    ck_assert_uint_eq(p.b->form.rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    if (_i == PRM_WQE_OPCODE_SEND) {
        wqe_begin(&wqe, p.a, p.b, true);
        wqe_add_data(&wqe, p.a, 0, 8, p.a->mr->lkey);
        wqe_put(&wqe, p.a, PRM_WQE_OPCODE_SEND);
    } else {
        put_rdma(p.a, p.b, PRM_WQE_OPCODE_RDMA_WRITE_IMM, 0, 8, p.b->mr->rkey);
    }
    ring(p.a);
    settle();
    /* the sender retries without end (rnr_retry 7) */
    err = (void *)p.a->cq_ring.ptr;
    ck_assert_uint_eq(PRM_GET(cqe64, (void *)err, opcode), PRM_CQE_OPCODE_INVALID);
    transition(p.a, PRM_CMD_OP_2ERR_QP, qpc);
    settle();
    ck_assert_uint_eq(PRM_GET(err_cqe, err, syndrome), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    pair_free(&p);
}
END_TEST

/* -- doorbell pages of several queues ---------------------------------------------------------- */

/* -- doorbells that nobody has heard ------------------------------------------------------------
 */

/* Lets time pass. In a world an idle HCA looks only when the world is stepped; in real time the
 * helper looks every 4 ms at least. */
static void pass_ms(unsigned ms)
{
    for (unsigned i = 0; i < ms; i += 4) {
        inproc_advance(v->hosts->world, 4000000);
    }
}

/* Within this time, what is in the ring is found. */
static void pass_unheard(void)
{
    pass_ms(2 * UNHEARD_NS / 1000000 + 12);
}

static void store_counter(struct side *s, uint32_t counter)
{
    uint32_t pi = s->pi;

    s->pi = counter;
    store_doorbell(s, PRM_OFFSET(uar, send_db_no_dbr));
    s->pi = pi;
}

/* Two threads ring for WQEs 1 and 2. The thread of WQE 1 is late and stores over the other's
 * counter: a card gets both. */
START_TEST(a_doorbell_that_a_late_one_hides_is_found_in_the_ring)
{
    struct pair p = pair_new(&forms[_i], NULL);

    for (unsigned i = 0; i < 40; i++) {
        p.a->data[0] = (uint8_t)i;
        p.a->data[1] = (uint8_t)~i;
        put_write(p.a, p.b, 0, 1);
        put_write(p.a, p.b, 1, 1);
        store_counter(p.a, p.a->pi);
        store_counter(p.a, p.a->pi - 1);
        pass_unheard();
        expect_all_done(p.a, 2, 1);
        ck_assert_mem_eq(p.a->data, p.b->data, 2);
    }
    pair_free(&p);
}
END_TEST

/* Two queues without records ring at one register, as a queue and its companion do: the doorbell of
 * the second one hides the first. */
START_TEST(a_doorbell_that_another_queue_hides_is_found_in_the_ring)
{
    struct pair p = pair_new(&forms[5], NULL), q = pair_new(&forms[5], p.a->uar);

    for (unsigned i = 0; i < 10; i++) {
        struct pair *first = i % 2 ? &q : &p, *second = i % 2 ? &p : &q;

        first->a->data[0] = (uint8_t)(i + 1);
        second->a->data[0] = (uint8_t)(i + 101);
        put_write(first->a, first->b, 0, 1);
        put_write(second->a, second->b, 0, 1);
        ring(first->a);
        ring(second->a);
        pass_ms(40);
        expect_all_done(second->a, 1, 1);
        ck_assert_uint_eq(second->b->data[0], i + 101);
        ck_assert_uint_ne(first->b->data[0], i + 1);
        pass_unheard();
        expect_all_done(first->a, 1, 1);
        ck_assert_uint_eq(first->b->data[0], i + 1);
    }
    pair_free(&q); /* the other queue is still looked at */
    put_write(p.a, p.b, 0, 1);
    put_write(p.a, p.b, 0, 1);
    store_counter(p.a, p.a->pi);
    store_counter(p.a, p.a->pi - 1);
    pass_unheard();
    expect_all_done(p.a, 2, 1);
    pair_free(&p);
}
END_TEST

/* A WQE that is being written is not rung: its thread stores something to it, or its doorbell,
 * within UNHEARD_NS. */
START_TEST(a_wqe_that_changes_is_not_complete)
{
    struct pair p = pair_new(&forms[5], NULL);
    uint8_t wqe[64];

    put_write(p.a, p.b, 0, 1);
    ring(p.a);
    put_write(p.a, p.b, 1, 1);
    memcpy(wqe, slot(p.a, 1), 64);
    for (unsigned i = 0; i < 10; i++) {
        ((uint8_t *)slot(p.a, 1))[60] = (uint8_t)i; /* behind the last segment, but in the block */
        pass_ms(40);
        ck_assert_uint_eq(PRM_GET(cqe64, (struct prm_cqe64 *)p.a->cq_ring.ptr, wqe_counter), 0);
    }
    memcpy(slot(p.a, 1), wqe, 64);
    ring(p.a);
    pass_ms(40);
    expect_all_done(p.a, 1, 1);
    pair_free(&p);
}
END_TEST

/* WQEs from before a reset, or of an earlier QP with the same number, are no posted WQEs. */
START_TEST(old_wqes_are_not_rung)
{
    struct pair p = pair_new(&forms[5], NULL);

    for (unsigned i = 0; i < 4; i++) {
        put_write(p.a, p.b, 0, 1);
    }
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, 1);
    pair_reset(&p);
    put_write(p.a, p.b, 0, 1);
    ring(p.a);
    pass_unheard();
    expect_all_done(p.a, 1, 1); /* and not the three old ones behind it */
    for (unsigned i = 0; i < 3; i++) {
        put_write(p.a, p.b, 0, 1);
    }
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, 1);
    /* over all of the old ones: from now on the ring can be trusted */
    put_write(p.a, p.b, 0, 1);
    put_write(p.a, p.b, 0, 1);
    store_counter(p.a, p.a->pi - 1);
    pass_unheard();
    expect_all_done(p.a, 1, 1);
    /* the ring is cleared before a reset: then it can be trusted at once */
    memset(p.a->qp_ring.ptr, 0, RING_SIZE);
    pair_reset(&p);
    put_write(p.a, p.b, 0, 1);
    put_write(p.a, p.b, 0, 1);
    store_counter(p.a, 1);
    pass_unheard();
    expect_all_done(p.a, 1, 1);
    pair_free(&p);
}
END_TEST

/* -- records in memory of a GPU ---------------------------------------------------------------- */

/* A copy takes microseconds. So idle pages, and doorbells of the queue itself, cause none. */
START_TEST(a_record_on_a_gpu_is_copied_by_the_device_alone)
{
    struct pair p = pair_new(on_gpu, NULL);
    unsigned reads;

    settle();
    ck_assert_uint_eq(gpu.reads, 0);
    put_write(p.a, p.b, 0, 8);
    store_record(p.a);
    settle();
    ck_assert_uint_eq(gpu.reads, 0); /* no doorbell: a card would notice nothing either */
    store_doorbell(p.a, PRM_OFFSET(uar, blue_flame));
    settle();
    expect_all_done(p.a, 1, 1);
    ck_assert_uint_le(gpu.reads, 4); /* the record, the WQE, the record again */
    reads = gpu.reads;
    settle();
    ck_assert_uint_eq(gpu.reads, reads);
    pair_free(&p);
}
END_TEST

/* The second doorbell hides the first, which the record shows. */
START_TEST(no_doorbell_hides_another_whose_record_is_on_a_gpu)
{
    struct pair p = pair_new(on_gpu, NULL), q = pair_new(on_gpu, p.a->uar);

    for (unsigned i = 0; i < 10; i++) {
        struct side *first = i & 1 ? q.a : p.a, *second = i & 1 ? p.a : q.a;

        put_write(first, i & 1 ? q.b : p.b, 0, 8);
        put_write(second, i & 1 ? p.b : q.b, 0, 8);
        store_record(first);
        store_doorbell(first, PRM_OFFSET(uar, blue_flame));
        store_record(second);
        store_doorbell(second, PRM_OFFSET(uar, blue_flame));
        settle();
        expect_all_done(first, 1, 1);
        expect_all_done(second, 1, 1);
    }
    pair_free(&q);
    pair_free(&p);
}
END_TEST

/* Posts a WRITE whose doorbell the other queue's hides. */
static void write_unheard(struct pair *p, struct pair *other)
{
    put_write(p->a, p->b, 0, 8);
    put_write(other->a, other->b, 0, 8);
    ring(p->a);
    ring(other->a);
    settle();
    expect_all_done(p->a, 1, 1);
    expect_all_done(other->a, 1, 1);
}

/* The counter that the last look saw comes again, and not by accident: the QP was reset. */
START_TEST(a_counter_that_comes_again_is_noticed)
{
    struct pair p = pair_new(on_gpu, NULL), q = pair_new(on_gpu, p.a->uar);

    write_unheard(&p, &q);
    put_write(p.a, p.b, 0, 8);
    ring(p.a);
    settle();
    expect_all_done(p.a, 1, 1);
    pair_reset(&p);
    memset(p.a->cq_ring.ptr, 0xff, 64);
    write_unheard(&p, &q);
    pair_free(&q);
    pair_free(&p);
}
END_TEST

/* The memory was freed. The doorbells of other queues of the page are served, and nobody looks at
 * the record again. */
START_TEST(a_record_on_a_gpu_that_does_not_answer_is_left_alone)
{
    struct pair p = pair_new(on_gpu, NULL), q = pair_new(on_gpu, p.a->uar);

    gpu.freed = (uintptr_t)q.a->qp_dbr.addr;
    for (unsigned i = 0; i < 3; i++) {
        put_write(p.a, p.b, 0, 8);
        ring(p.a);
        settle();
        expect_all_done(p.a, 1, 1);
    }
    ck_assert_uint_eq(gpu.misses, 1);
    pair_free(&q);
    pair_free(&p);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("gpu_queues");
    TCase *tc = tcase_create("gpu_queues");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, data_goes_over_queues_of_each_form, 0, G_N_ELEMENTS(forms));
    tcase_add_loop_test(tc, an_error_is_in_the_cqe_that_a_kernel_polls, 0, G_N_ELEMENTS(forms));
    tcase_add_loop_test(tc, a_message_finds_no_receive_queue, PRM_WQE_OPCODE_RDMA_WRITE_IMM,
                        PRM_WQE_OPCODE_SEND + 1);
    tcase_add_test(tc, a_doorbell_that_another_queue_hides_is_found_in_the_ring);
    tcase_add_loop_test(tc, a_doorbell_that_a_late_one_hides_is_found_in_the_ring, 5, 7);
    tcase_add_loop_test(tc, a_doorbell_that_a_late_one_hides_is_found_in_the_ring, 11, 12);
    tcase_add_test(tc, a_wqe_that_changes_is_not_complete);
    tcase_add_test(tc, old_wqes_are_not_rung);
    tcase_add_test(tc, a_record_on_a_gpu_is_copied_by_the_device_alone);
    tcase_add_test(tc, no_doorbell_hides_another_whose_record_is_on_a_gpu);
    tcase_add_test(tc, a_counter_that_comes_again_is_noticed);
    tcase_add_test(tc, a_record_on_a_gpu_that_does_not_answer_is_left_alone);
    suite_add_tcase(suite, tc);
    return suite;
}
