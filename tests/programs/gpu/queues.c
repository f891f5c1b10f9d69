/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of gpu_probes, made by DevX commands as the libraries make them, and a WRITE that is
 * posted through memory alone.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "prm/prm.h"
#include "tests/programs/gpu/probes.h"

#define LOG_SQ       6 /* basic blocks of 64 bytes */
#define SQ_BYTES     (64u << LOG_SQ)
#define DATA         4096u
#define SRQ_TYPE     1
#define NO_RQ        3
#define MIGRATED     3
#define ECE_ASKED    0x10000000
#define DC_KEY       0x5ead5eed
#define WAIT_S       20
#define WRITE_SIZE   64u
#define NO_RECORD_AT 0x600 /* the register of gpunetio's queues without a record */

/* A command's input and output. The function that sends it is the last argument's. */
#define COMMAND(type, op)                                                                          \
    struct prm_##type##_in in[1] = {0};                                                            \
    struct prm_##type##_out out[1] = {0};                                                          \
    PRM_SET(type##_in, in, opcode, PRM_CMD_OP_##op)

struct area {
    uint8_t *at;
    struct mlx5dv_devx_umem *umem;
};

static const struct queue_way *way;
static struct area cq_ring, cq_record, sq_ring, qp_record;
static struct mlx5dv_devx_uar *uar, *cq_uar;
static struct mlx5dv_devx_obj *cq, *qp;
static struct ibv_srq *srq;
static struct ibv_cq *recv_cq;
static struct ibv_mr *mr;
static uint8_t *data;
static uint32_t cqn, qpn;

/* -- umems ------------------------------------------------------------------------------------- */

static struct mlx5dv_devx_umem *register_umem(void *at, size_t size, uint64_t page_sizes)
{
    struct mlx5dv_devx_umem_in in = {
        .addr = at, .size = size, .access = IBV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = page_sizes};
    int fd = page_sizes ? gpu_export(at, (size + PAGE - 1) & ~(size_t)(PAGE - 1)) : -1;
    struct mlx5dv_devx_umem *umem = NULL;

    if (!page_sizes) {
        return mlx5dv_devx_umem_reg(ctx, at, size, IBV_ACCESS_LOCAL_WRITE);
    }
    if (fd >= 0) {
        in.addr = NULL;
        in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
        in.dmabuf_fd = fd;
        umem = mlx5dv_devx_umem_reg_ex(ctx, &in);
        close(fd);
        in.addr = at;
        in.comp_mask = 0;
    }
    return umem ? umem : mlx5dv_devx_umem_reg_ex(ctx, &in);
}

bool umem_of_dmabuf_works(size_t size, uint64_t page_sizes)
{
    struct mlx5dv_devx_umem_in in = {.size = size,
                                     .access = IBV_ACCESS_LOCAL_WRITE,
                                     .pgsz_bitmap = page_sizes,
                                     .comp_mask = MLX5DV_UMEM_MASK_DMABUF};
    struct mlx5dv_devx_umem *umem;

    if (!gpu_is_there()) {
        return true;
    }
    in.dmabuf_fd = gpu_export(memory_new(size), GPU_PAGE);
    if (in.dmabuf_fd < 0) {
        return give_up("the GPU exports no dma-buf");
    }
    umem = mlx5dv_devx_umem_reg_ex(ctx, &in);
    close(in.dmabuf_fd);
    if (!umem) {
        return give_up("mlx5dv_devx_umem_reg_ex() of %zu bytes of a dma-buf: %s", size,
                       strerror(errno));
    }
    return !mlx5dv_devx_umem_dereg(umem) || give_up("mlx5dv_devx_umem_dereg()");
}

static bool make_area(struct area *a, size_t size)
{
    size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    a->at = memory_new(size);
    a->umem = register_umem(a->at, size, way->page_sizes);
    return a->umem || give_up("the umem of %zu bytes: %s", size, strerror(errno));
}

/* The queues of UCX: CQ, records and ring behind one another. */
static bool make_one_area(void)
{
    static const size_t header = 128;

    if (!make_area(&cq_ring, header + 64 + 16 + SQ_BYTES)) {
        return false;
    }
    cq_record = qp_record = sq_ring = cq_ring;
    cq_ring.at += header;
    cq_record.at += header + 64;
    qp_record.at += header + 64 + 8;
    sq_ring.at += header + 128;
    return true;
}

static bool make_areas(void)
{
    return way->one_umem ? make_one_area()
                         : make_area(&cq_ring, 64u << way->log_cq) && make_area(&cq_record, 8) &&
                               make_area(&sq_ring, SQ_BYTES) && make_area(&qp_record, 8);
}

/* The offset of an area in its umem. */
static uint64_t offset_of(const struct area *a)
{
    return way->one_umem ? (uint64_t)(a->at - cq_ring.at) + 128 : 0;
}

/* -- creation ---------------------------------------------------------------------------------- */

static struct mlx5dv_devx_uar *make_uar(void)
{
    struct mlx5dv_devx_uar *made = NULL;

    for (unsigned i = 0; i < 2 && !made; i++) {
        made = mlx5dv_devx_alloc_uar(ctx, way->uar_types[i]);
    }
    return made;
}

static bool make_cq(void)
{
    uint8_t none[64];
    COMMAND(create_cq, CREATE_CQ);
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    memset(none, 0xff, sizeof(none));
    for (unsigned i = 0; i < 1u << way->log_cq; i++) {
        memory_put(cq_ring.at + 64 * i, none, sizeof(none));
    }
    if (mlx5dv_devx_query_eqn(ctx, 0, &eqn)) {
        return give_up("mlx5dv_devx_query_eqn(): %s", strerror(errno));
    }
    cq_uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    if (!cq_uar) {
        return give_up("the doorbell page of the CQ: %s", strerror(errno));
    }
    PRM_SET(create_cq_in, in, cq_umem_id, cq_ring.umem->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_offset, offset_of(&cq_ring));
    PRM_SET(create_cq_in, in, cq_umem_valid, way->pi_valid_bits);
    PRM_SET(cqc, cqc, dbr_umem_valid, way->pi_valid_bits);
    PRM_SET(cqc, cqc, dbr_umem_id, cq_record.umem->umem_id);
    PRM_SET(cqc, cqc, dbr_addr, offset_of(&cq_record));
    PRM_SET(cqc, cqc, cc, 1);
    PRM_SET(cqc, cqc, oi, 1);
    PRM_SET(cqc, cqc, log_cq_size, way->log_cq);
    PRM_SET(cqc, cqc, uar_page, cq_uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, log_page_size, way->cq_log_page);
    cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    cqn = PRM_GET(create_cq_out, out, cqn);
    return cq || give_up("CREATE_CQ: %s, syndrome 0x%x", strerror(errno),
                         PRM_GET(create_cq_out, out, syndrome));
}

static bool make_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 128, .max_sge = 1}};

    if (!way->with_srq) {
        return true;
    }
    srq = ibv_create_srq(pd, &attr);
    recv_cq = ibv_create_cq(ctx, 128, NULL, NULL, 0);
    return (srq && recv_cq) || give_up("the SRQ and its CQ: %s", strerror(errno));
}

static uint32_t number_of_srq(void)
{
    struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj obj = {.srq = {srq, &dv}};

    return srq && !mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) ? dv.srqn : 0;
}

static uint32_t number_of_recv_cq(void)
{
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {recv_cq, &dv}};

    return !recv_cq                               ? way->has_recv_cq ? cqn : 0
           : mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) ? 0
                                                  : dv.cqn;
}

static bool make_qp(unsigned service)
{
    COMMAND(create_qp, CREATE_QP);
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, wq_umem_id, sq_ring.umem->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_offset, offset_of(&sq_ring));
    PRM_SET(create_qp_in, in, wq_umem_valid, way->pi_valid_bits);
    PRM_SET(create_qp_in, in, ece, way->ece ? ECE_ASKED : 0);
    PRM_SET(qpc, qpc, st, service);
    PRM_SET(qpc, qpc, pm_state, MIGRATED);
    PRM_SET(qpc, qpc, pd, pdn);
    PRM_SET(qpc, qpc, uar_page, uar->page_id);
    PRM_SET(qpc, qpc, rq_type, way->with_srq ? SRQ_TYPE : NO_RQ);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn, number_of_srq());
    PRM_SET(qpc, qpc, cqn_snd, cqn);
    PRM_SET(qpc, qpc, cqn_rcv, number_of_recv_cq());
    PRM_SET(qpc, qpc, log_sq_size, LOG_SQ);
    PRM_SET(qpc, qpc, dbr_umem_valid, way->pi_valid_bits);
    PRM_SET(qpc, qpc, dbr_umem_id, qp_record.umem->umem_id);
    PRM_SET(qpc, qpc, dbr_addr, offset_of(&qp_record));
    PRM_SET(qpc, qpc, ts_format, way->ece ? PRM_TS_FORMAT_DEFAULT : 0); /* UCX sets both */
    PRM_SET(qpc, qpc, send_dbr_mode,
            way->no_record ? PRM_SEND_DBR_MODE_NO_DBR_EXT : PRM_SEND_DBR_MODE_DBR_VALID);
    PRM_SET(qpc, qpc, user_index, way->with_user_index ? 7 : 0);
    qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    qpn = PRM_GET(create_qp_out, out, qpn);
    return qp || give_up("CREATE_QP: %s, syndrome 0x%x", strerror(errno),
                         PRM_GET(create_qp_out, out, syndrome));
}

static bool query_qp(void)
{
    COMMAND(query_qp, QUERY_QP);
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);
    uint32_t mtu;

    PRM_SET(query_qp_in, in, qpn, qpn);
    if (mlx5dv_devx_obj_query(qp, in, sizeof(in), out, sizeof(out))) {
        return give_up("QUERY_QP: %s", strerror(errno));
    }
    mtu = PRM_GET(qpc, qpc, mtu);
    return (mtu >= PRM_QP_MTU_256 && mtu <= PRM_QP_MTU_4096 &&
            PRM_GET(qpc, qpc, state) == PRM_QP_STATE_RST) ||
           give_up("QUERY_QP says MTU %u, state %u", mtu, PRM_GET(qpc, qpc, state));
}

/* -- connection -------------------------------------------------------------------------------- */

/* The number of the counters that the kernel gave to a QP of verbs, as UCX finds it. */
static bool find_counters(uint32_t *counters)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *dummy;
    COMMAND(query_qp, QUERY_QP);
    bool found;

    init.send_cq = init.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    dummy = init.send_cq ? ibv_create_qp(pd, &init) : NULL;
    if (!dummy ||
        ibv_modify_qp(dummy, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        return give_up("a QP for its counters: %s", strerror(errno));
    }
    PRM_SET(query_qp_in, in, qpn, dummy->qp_num);
    found = !mlx5dv_devx_qp_query(dummy, in, sizeof(in), out, sizeof(out));
    *counters = PRM_GET(qpc, PRM_PTR(query_qp_out, out, qpc), counter_set_id);
    ibv_destroy_qp(dummy);
    ibv_destroy_cq(init.send_cq);
    return found || give_up("mlx5dv_devx_qp_query(): %s", strerror(errno));
}

static bool to_init(unsigned service)
{
    COMMAND(rst2init_qp, RST2INIT_QP);
    struct prm_qpc *qpc = PRM_PTR(rst2init_qp_in, in, qpc);
    uint32_t counters = 0;

    if (way->with_counter && !find_counters(&counters)) {
        return false;
    }
    PRM_SET(rst2init_qp_in, in, qpn, qpn);
    if (service == PRM_QP_ST_DCI) {
        PRM_SET(qpc, qpc, dc_access_key, DC_KEY);
    } else {
        PRM_SET(qpc, qpc, rwe, 1);
        PRM_SET(qpc, qpc, rre, 1);
        PRM_SET(qpc, qpc, rae, 1);
        PRM_SET(qpc, qpc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_8B);
    }
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), vhca_port_num, 1);
    PRM_SET(qpc, qpc, pm_state, MIGRATED);
    PRM_SET(qpc, qpc, counter_set_id, counters);
    return !mlx5dv_devx_obj_modify(qp, in, sizeof(in), out, sizeof(out)) ||
           give_up("RST2INIT_QP: %s, syndrome 0x%x", strerror(errno),
                   PRM_GET(rst2init_qp_out, out, syndrome));
}

/* Copies the address of the port itself from an address handle. */
static bool set_path(struct prm_ads *path)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 255}};
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    struct mlx5dv_ah dv = {0};
    struct mlx5dv_obj obj = {.ah = {ah, &dv}};

    if (!ah || mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) || !dv.av) {
        return give_up("the address handle: %s", strerror(errno));
    }
    memcpy((uint8_t *)path + PRM_OFFSET(ads, rmac_47_32), dv.av->rmac, sizeof(dv.av->rmac));
    memcpy((uint8_t *)path + PRM_OFFSET(ads, rgid_rip), dv.av->rgid, sizeof(dv.av->rgid));
    PRM_SET(ads, path, hop_limit, 255);
    PRM_SET(ads, path, src_addr_index, gid_index);
    PRM_SET(ads, path, udp_sport, 0xc000);
    return !ibv_destroy_ah(ah);
}

static bool to_rtr(unsigned service)
{
    COMMAND(init2rtr_qp, INIT2RTR_QP);
    struct prm_qpc *qpc = PRM_PTR(init2rtr_qp_in, in, qpc);

    PRM_SET(init2rtr_qp_in, in, qpn, qpn);
    PRM_SET(qpc, qpc, mtu, way->mtu ? way->mtu : port_attr.active_mtu);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    if (service == PRM_QP_ST_RC) {
        PRM_SET(qpc, qpc, remote_qpn, qpn);
        PRM_SET(qpc, qpc, min_rnr_nak, 12);
        PRM_SET(qpc, qpc, log_rra_max, 4);
        if (!set_path(PRM_PTR(qpc, qpc, primary_address_path))) {
            return false;
        }
    }
    return !mlx5dv_devx_obj_modify(qp, in, sizeof(in), out, sizeof(out)) ||
           give_up("INIT2RTR_QP: %s, syndrome 0x%x", strerror(errno),
                   PRM_GET(init2rtr_qp_out, out, syndrome));
}

static bool to_rts(void)
{
    COMMAND(rtr2rts_qp, RTR2RTS_QP);
    struct prm_qpc *qpc = PRM_PTR(rtr2rts_qp_in, in, qpc);

    PRM_SET(rtr2rts_qp_in, in, qpn, qpn);
    PRM_SET(qpc, qpc, log_ack_req_freq, 0);
    PRM_SET(qpc, qpc, log_sra_max, 4);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), ack_timeout, 20);
    return !mlx5dv_devx_obj_modify(qp, in, sizeof(in), out, sizeof(out)) ||
           give_up("RTR2RTS_QP: %s, syndrome 0x%x", strerror(errno),
                   PRM_GET(rtr2rts_qp_out, out, syndrome));
}

static bool connect_qp(unsigned service)
{
    return to_init(service) && to_rtr(service) && to_rts();
}

/* -- a WRITE ----------------------------------------------------------------------------------- */

static bool register_data(void)
{
    int access = ACCESS | IBV_ACCESS_RELAXED_ORDERING, fd;
    uint64_t iova;

    data = memory_new(DATA);
    iova = way->zero_iova ? 0 : (uintptr_t)data;
    fd = gpu_export(data, DATA);
    mr = NULL;
    if (fd >= 0) {
        mr = ibv_reg_dmabuf_mr(pd, 0, DATA, iova, fd, access);
        close(fd);
    }
    if (!mr) {
        mr = way->by_iova ? ibv_reg_mr_iova2(pd, data, DATA, iova, (unsigned)access)
                          : ibv_reg_mr(pd, data, DATA, access);
    }
    return mr || give_up("the memory region: %s", strerror(errno));
}

static uint64_t data_at(size_t offset)
{
    return (way->zero_iova ? 0 : (uintptr_t)data) + offset;
}

static uint64_t *doorbell_register(void)
{
    return way->no_record ? (uint64_t *)((char *)uar->base_addr + NO_RECORD_AT)
                          : (uint64_t *)uar->reg_addr;
}

static void ring(void)
{
    const uint32_t words[2] = {htobe32(1u << 8), htobe32(qpn << 8)};
    uint64_t word;

    memcpy(&word, words, sizeof(word));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(doorbell_register(), word, __ATOMIC_RELEASE);
}

static void post_write(void)
{
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_raddr_seg raddr;
        struct mlx5_wqe_data_seg data;
        uint8_t rest[16];
    } wqe = {0};
    uint32_t record = htobe32(1);

    mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_RDMA_WRITE, 0, qpn, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0,
                        0);
    wqe.raddr.raddr = htobe64(data_at(DATA / 2));
    wqe.raddr.rkey = htobe32(mr->rkey);
    mlx5dv_set_data_seg(&wqe.data, WRITE_SIZE, mr->lkey, data_at(0));
    memory_put(sq_ring.at, &wqe, sizeof(wqe));
    if (way->doorbell_first) {
        ring();
    }
    if (!way->no_record) {
        memory_put(qp_record.at + 4, &record, sizeof(record));
    }
    ring();
}

static bool wait_for_cqe(void)
{
    time_t end = time(NULL) + WAIT_S;
    uint8_t cqe[64];

    do {
        memory_get(cqe, cq_ring.at, sizeof(cqe));
        if (cqe[63] >> 4 == MLX5_CQE_REQ && cqe[60] == 0 && cqe[61] == 0) {
            return true;
        }
        if (cqe[63] >> 4 == MLX5_CQE_REQ_ERR) {
            return give_up("the WRITE fails with syndrome 0x%x", cqe[55]);
        }
        usleep(100);
    } while (time(NULL) < end);
    return give_up("no CQE within %d s", WAIT_S);
}

static bool write_works(void)
{
    uint8_t sent[WRITE_SIZE], got[WRITE_SIZE];

    for (unsigned i = 0; i < WRITE_SIZE; i++) {
        sent[i] = (uint8_t)(i * 7 + 1);
    }
    memory_put(data, sent, sizeof(sent));
    post_write();
    if (!wait_for_cqe()) {
        return false;
    }
    memory_get(got, data + DATA / 2, sizeof(got));
    return !memcmp(got, sent, sizeof(got)) || give_up("the WRITE wrote something else");
}

/* -- all of it --------------------------------------------------------------------------------- */

static bool destroy_umem(struct area *a)
{
    struct mlx5dv_devx_umem *umem = a->umem;

    a->umem = NULL;
    return !umem || !mlx5dv_devx_umem_dereg(umem) || give_up("mlx5dv_devx_umem_dereg()");
}

static bool destroy_queues(void)
{
    bool ok = !mlx5dv_devx_obj_destroy(qp) && !mlx5dv_devx_obj_destroy(cq) &&
              (!srq || !ibv_destroy_srq(srq)) && (!recv_cq || !ibv_destroy_cq(recv_cq));

    gpu_unmap_uar(doorbell_register());
    mlx5dv_devx_free_uar(uar);
    mlx5dv_devx_free_uar(cq_uar);
    srq = NULL;
    recv_cq = NULL;
    if (way->one_umem) {
        cq_record.umem = qp_record.umem = sq_ring.umem = NULL;
    }
    return (ok || give_up("the queues cannot be destroyed: %s", strerror(errno))) &&
           destroy_umem(&cq_ring) && destroy_umem(&cq_record) && destroy_umem(&sq_ring) &&
           destroy_umem(&qp_record);
}

static bool make_queues(unsigned service)
{
    uar = make_uar();
    if (!uar) {
        return give_up("mlx5dv_devx_alloc_uar(): %s", strerror(errno));
    }
    return gpu_map_uar(doorbell_register(), way->uar_size) && make_areas() && make_cq() &&
           make_srq() && make_qp(service) && (!way->queries || query_qp()) && connect_qp(service);
}

bool queues_work(const struct queue_way *of)
{
    way = of;
    return make_queues(PRM_QP_ST_RC) && register_data() && write_works() &&
           (!ibv_dereg_mr(mr) || give_up("ibv_dereg_mr()")) && destroy_queues();
}

static bool dct_works(void)
{
    struct ibv_parent_domain_init_attr domain_attr = {.pd = pd};
    struct ibv_pd *domain = ibv_alloc_parent_domain(ctx, &domain_attr);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 128, .max_sge = 1}};
    struct ibv_srq *of = domain ? ibv_create_srq(domain, &srq_attr) : NULL;
    struct ibv_cq *send = ibv_create_cq(ctx, 128, NULL, NULL, 0);
    struct ibv_cq *recv = ibv_create_cq(ctx, 128, NULL, NULL, 0);
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY}};
    struct ibv_qp_init_attr_ex init = {.pd = domain,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .qp_type = IBV_QPT_DRIVER,
                                       .srq = of,
                                       .send_cq = send,
                                       .recv_cq = recv,
                                       .cap = {1024, 1024, 1, 1, 12}};
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = ACCESS,
        .path_mtu = port_attr.active_mtu,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 255}}};
    struct ibv_qp *dct = of && send && recv ? mlx5dv_create_qp(ctx, &init, &dv) : NULL;

    if (!dct ||
        ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        return give_up("the DCT: %s", strerror(errno));
    }
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER)) {
        return give_up("the DCT does not become RTR: %s", strerror(errno));
    }
    return (dct->qp_num && !ibv_destroy_qp(dct) && !ibv_destroy_srq(of) && !ibv_destroy_cq(send) &&
            !ibv_destroy_cq(recv) && !ibv_dealloc_pd(domain)) ||
           give_up("the DCT has no number, or cannot be destroyed");
}

bool dc_queues_work(const struct queue_way *of)
{
    way = of;
    return make_queues(PRM_QP_ST_DCI) && destroy_queues() && dct_works();
}
