/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests allocators of a parent domain that return memory of a GPU: what the library writes there,
 * which addresses it tells, that a GPU can drive the queues, and what calls by the CPU get. The GPU
 * is the stand-in (guest-lib/cuda/standin), whose memory no CPU load or store of the program
 * reaches.
 */
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/cuda/standin/standin.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/shadow.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define PAGE      4096u
#define DEPTH     16
#define PIECES    16
#define MSG       128u
#define COPY_MS   20000
#define BIT(type) (1u << ((type)&0xff))
#define EVERY                                                                                      \
    (BIT(MLX5DV_RES_TYPE_QP) | BIT(MLX5DV_RES_TYPE_RWQ) | BIT(MLX5DV_RES_TYPE_DBR) |               \
     BIT(MLX5DV_RES_TYPE_SRQ) | BIT(MLX5DV_RES_TYPE_CQ))

static struct verbs_table *v;
static struct verbs_host *host;
static struct ibv_pd *domain;
static struct ibv_mr *mr, *into;
static size_t memory_before;

/* -- the program's allocators ------------------------------------------------------------------ */

static unsigned on_gpu; /* the types whose memory is the GPU's, as bits */
static size_t missing;  /* bytes that alloc() allocates too few of */
static struct piece {
    void *ptr;
    uint64_t type;
    bool gpu, freed;
} piece[PIECES];
static int pieces;

static void *gpu_alloc(size_t size, size_t alignment)
{
    CUdeviceptr addr;

    ck_assert_uint_le(alignment, PAGE);
    ck_assert_int_eq(cuMemAlloc_v2(&addr, size - missing), CUDA_SUCCESS);
    ck_assert_uint_eq(addr % alignment, 0);
    memset(hcasim_standin_memory(addr, size - missing), 0x5a, size - missing);
    return (void *)(uintptr_t)addr;
}

static void *program_alloc(struct ibv_pd *of, void *context, size_t size, size_t alignment,
                           uint64_t type)
{
    struct piece *p = &piece[pieces++];

    ck_assert_int_le(pieces, PIECES);
    p->type = type;
    p->gpu = on_gpu & BIT(type);
    p->freed = false;
    p->ptr = p->gpu ? gpu_alloc(size, alignment) : aligned_alloc(PAGE, hv_whole_pages(size));
    return p->ptr;
}

static void program_free(struct ibv_pd *of, void *context, void *ptr, uint64_t type)
{
    for (int i = 0; i < pieces; i++) {
        if (piece[i].ptr == ptr && !piece[i].freed) {
            ck_assert_uint_eq(piece[i].type, type);
            piece[i].freed = true;
            if (piece[i].gpu) {
                ck_assert_int_eq(cuMemFree_v2((uintptr_t)ptr), CUDA_SUCCESS);
            } else {
                free(ptr);
            }
            return;
        }
    }
    ck_abort_msg("free() of memory that alloc() did not return, or a second time");
}

static size_t memory_in_use(void)
{
    struct standin_counts counts;

    hcasim_standin_count(&counts);
    return counts.memory;
}

/* Where a thread of the GPU finds the byte of a ring or record. */
static void *by_gpu(const void *ptr)
{
    void *at = hcasim_standin_memory((uintptr_t)ptr, 1);

    ck_assert_ptr_nonnull(at);
    return at;
}

static void setup(void)
{
    struct ibv_parent_domain_init_attr attr = {.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
                                               .alloc = program_alloc,
                                               .free = program_free};
    CUcontext context;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    v = verbs_table_new();
    host = &v->hosts->host[0];
    attr.pd = host->pd;
    domain = ibv_alloc_parent_domain(v->a, &attr);
    ck_assert_ptr_nonnull(domain);
    mr = table_mr_new(v, 0);
    into = table_mr_new(v, 0);
    on_gpu = EVERY;
    pieces = 0;
    missing = 0;
    memory_before = memory_in_use();
}

static void teardown(void)
{
    for (int i = 0; i < pieces; i++) {
        ck_assert(piece[i].freed);
    }
    ck_assert_uint_eq(memory_in_use(), memory_before);
    ck_assert(!shadow_any());
    table_mr_free(mr);
    table_mr_free(into);
    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    verbs_table_free(v);
}

/* -- queues in the domain ---------------------------------------------------------------------- */

static struct ibv_cq *new_cq(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 15, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
    struct ibv_cq_ex *made = ibv_create_cq_ex(v->a, &attr);

    return made ? ibv_cq_ex_to_cq(made) : NULL;
}

static struct ibv_srq *new_srq_of(uint32_t wrs)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = wrs, .max_sge = 1}};

    return ibv_create_srq(domain, &attr);
}

static struct ibv_srq *new_srq(void)
{
    return new_srq_of(7);
}

static struct ibv_qp *new_qp(struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .srq = srq,
                                    .cap = {DEPTH, srq ? 0 : DEPTH, 1, srq ? 0 : 1, 0}};
    struct ibv_qp *made = ibv_create_qp(domain, &attr);

    ck_assert(!made || attr.cap.max_send_wr >= DEPTH);
    return made;
}

static struct ibv_wq *new_wq(struct ibv_cq *cq)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = domain, .cq = cq};

    return ibv_create_wq(v->a, &attr);
}

static struct mlx5dv_cq dv_cq(struct ibv_cq *cq)
{
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {cq, &dv}};

    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
    return dv;
}

static struct mlx5dv_qp dv_qp(struct ibv_qp *qp)
{
    struct mlx5dv_qp dv = {0};
    struct mlx5dv_obj obj = {.qp = {qp, &dv}};

    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
    return dv;
}

static struct mlx5dv_srq dv_srq(struct ibv_srq *srq)
{
    struct mlx5dv_srq dv = {0};
    struct mlx5dv_obj obj = {.srq = {srq, &dv}};

    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
    return dv;
}

/* -- what the library writes ------------------------------------------------------------------- */

START_TEST(a_cq_begins_with_entries_that_were_not_written_and_a_record_of_zeroes)
{
    struct ibv_cq *cq = new_cq();
    struct mlx5dv_cq dv = dv_cq(cq);
    const uint8_t *ring = by_gpu(dv.buf);
    const uint32_t *record = by_gpu(dv.dbrec);

    ck_assert_ptr_eq(dv.buf, piece[0].ptr);
    ck_assert_ptr_eq(dv.dbrec, piece[1].ptr);
    ck_assert_uint_eq(dv.cqe_cnt, 16);
    for (unsigned i = 0; i < dv.cqe_cnt; i++) {
        ck_assert_uint_eq(ring[64 * i + 63] >> 4, PRM_CQE_OPCODE_INVALID);
    }
    ck_assert_uint_eq(record[0], 0);
    ck_assert_uint_eq(record[1], 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

START_TEST(the_wqes_of_an_srq_are_a_list)
{
    struct ibv_srq *srq = new_srq();
    struct mlx5dv_srq dv = dv_srq(srq);
    const uint8_t *ring = by_gpu(dv.buf);

    ck_assert_ptr_eq(dv.buf, piece[0].ptr);
    ck_assert_ptr_eq(dv.dbrec, piece[1].ptr);
    ck_assert_uint_eq(*(const uint32_t *)by_gpu(dv.dbrec), 0);
    ck_assert_uint_eq(dv.head, 0);
    ck_assert_uint_eq(dv.tail, 7);
    for (unsigned i = 0; i < dv.tail; i++) {
        const struct prm_wqe_srq_next_seg *next = (const void *)(ring + dv.stride * i);

        ck_assert_uint_eq(PRM_GET(wqe_srq_next_seg, next, next_wqe_index), i + 1);
    }
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

START_TEST(a_qp_that_is_reset_has_a_record_of_zeroes)
{
    struct ibv_cq *cq = new_cq();
    struct ibv_qp *qp = new_qp(cq, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp_init_attr init;
    uint32_t *record = by_gpu(dv_qp(qp).dbrec);

    ck_assert_ptr_eq(dv_qp(qp).rq.buf, piece[2].ptr);
    ck_assert_ptr_eq(dv_qp(qp).dbrec, piece[3].ptr);
    ck_assert_uint_eq(record[0] | record[1], 0);
    verbs_connect(qp, host, qp->qp_num, NULL);
    record[0] = record[1] = GUINT32_TO_BE(77);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    ck_assert_uint_eq(record[0] | record[1], 0);
    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
    ck_assert_uint_ge(init.cap.max_send_wr, DEPTH);
    ck_assert_uint_ge(init.cap.max_recv_wr, DEPTH);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* -- a GPU drives them ------------------------------------------------------------------------- */

/* Posts a WRITE as a kernel does. */
static void post_write(struct ibv_qp *qp, unsigned i)
{
    struct mlx5dv_qp dv = dv_qp(qp);
    uint8_t *wqe = (uint8_t *)by_gpu(dv.sq.buf) + (size_t)(i % dv.sq.wqe_cnt) * 64;
    uint32_t *record = by_gpu(dv.dbrec);
    struct mlx5_wqe_ctrl_seg *ctrl = (void *)wqe;
    struct mlx5_wqe_raddr_seg *raddr = (void *)(wqe + 16);

    memset(wqe, 0, 64);
    mlx5dv_set_ctrl_seg(ctrl, (uint16_t)i, MLX5_OPCODE_RDMA_WRITE, 0, qp->qp_num,
                        MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
    raddr->raddr = GUINT64_TO_BE((uintptr_t)into->addr + i);
    raddr->rkey = GUINT32_TO_BE(into->rkey);
    mlx5dv_set_data_seg((void *)(wqe + 32), MSG, mr->lkey, (uintptr_t)mr->addr + i);
    __atomic_store_n(&record[1], GUINT32_TO_BE((i + 1) & 0xffff), __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)dv.bf.reg, *(const uint64_t *)wqe, __ATOMIC_RELEASE);
}

static bool is_written(const struct prm_cqe64 *cqe, uint32_t owner)
{
    uint8_t op_own = __atomic_load_n(&cqe->bytes[63], __ATOMIC_ACQUIRE);

    return op_own >> 4 != PRM_CQE_OPCODE_INVALID && (op_own & 1) == owner;
}

/* Takes CQE number i, and tells the device. */
static const struct prm_cqe64 *take_cqe(struct ibv_cq *cq, uint32_t i)
{
    struct mlx5dv_cq dv = dv_cq(cq);
    const struct prm_cqe64 *cqe =
        (const void *)((const uint8_t *)by_gpu(dv.buf) + (size_t)(i % dv.cqe_cnt) * 64);
    uint32_t *record = by_gpu(dv.dbrec);

    table_wait(v);
    /* the copy to the GPU may still be on its way, in real time */
    for (int turns = 0; turns < COPY_MS && !is_written(cqe, i / dv.cqe_cnt & 1); turns++) {
        usleep(1000);
    }
    ck_assert(is_written(cqe, i / dv.cqe_cnt & 1));
    __atomic_store_n(record, GUINT32_TO_BE((i + 1) & 0xffffff), __ATOMIC_RELEASE);
    return cqe;
}

/* Both rings go round several times. */
START_TEST(a_gpu_posts_and_polls)
{
    struct ibv_cq *cq = new_cq();
    struct ibv_qp *qp = new_qp(cq, NULL);

    verbs_connect(qp, host, qp->qp_num, NULL);
    for (unsigned i = 0; i < 300; i++) {
        const struct prm_cqe64 *cqe;

        memset(into->addr, 0, PAGE);
        post_write(qp, i);
        cqe = take_cqe(cq, i);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), i);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), qp->qp_num);
        ck_assert_mem_eq((uint8_t *)into->addr + i, (uint8_t *)mr->addr + i, MSG);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* The GPU posts a receive to the SRQ. A QP of the CPU sends, and its CQ is of the host. */
START_TEST(a_gpu_posts_to_an_srq)
{
    struct ibv_cq *cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    struct ibv_srq *srq = new_srq();
    struct mlx5dv_srq dv = dv_srq(srq);
    struct ibv_qp *qp = table_qp_new(v, 0, cq, srq);
    struct prm_wqe_data_seg *seg = (void *)((uint8_t *)by_gpu(dv.buf) + PRM_SIZE(wqe_srq_next_seg));
    struct ibv_sge sge = {(uintptr_t)mr->addr, 24, mr->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    PRM_SET(wqe_data_seg, seg, byte_count, PAGE);
    PRM_SET(wqe_data_seg, seg, lkey, into->lkey);
    PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)into->addr);
    *(uint32_t *)by_gpu(dv.dbrec) = GUINT32_TO_BE(1);
    verbs_connect(qp, host, qp->qp_num, NULL);
    memset(into->addr, 0, PAGE);
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
    }
    ck_assert_mem_eq(into->addr, mr->addr, 24);
    table_qp_free(qp);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* Data of a CQE goes to the buffer of the receive, which may be memory of a GPU. */
START_TEST(small_messages_reach_buffers_of_a_gpu)
{
    struct ibv_cq *cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    struct ibv_qp *qp = table_qp_new(v, 0, cq, NULL);
    void *buffer = gpu_alloc(PAGE, PAGE);
    struct ibv_mr *of_gpu = ibv_reg_mr(host->pd, buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge in = {(uintptr_t)buffer, PAGE, of_gpu->lkey},
                   out = {(uintptr_t)mr->addr, 24, mr->lkey};
    struct ibv_recv_wr *bad_recv, recv = {.sg_list = &in, .num_sge = 1};
    struct ibv_send_wr *bad,
        send = {
            .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    verbs_connect(qp, host, qp->qp_num, NULL);
    for (unsigned len = 8; len <= 64; len += 8) {
        out.length = len;
        memset(by_gpu(buffer), 0, PAGE);
        ck_assert_int_eq(ibv_post_recv(qp, &recv, &bad_recv), 0);
        ck_assert_int_eq(ibv_post_send(qp, &send, &bad), 0);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
        }
        ck_assert_mem_eq(by_gpu(buffer), mr->addr, len);
    }
    table_qp_free(qp);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_dereg_mr(of_gpu), 0);
    ck_assert_int_eq(cuMemFree_v2((uintptr_t)buffer), CUDA_SUCCESS);
}
END_TEST

/* -- calls by the CPU -------------------------------------------------------------------------- */

static void check_posts(struct ibv_qp *qp)
{
    struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_RDMA_WRITE};
    struct ibv_recv_wr *bad_recv, recv = {.num_sge = 0};

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ibv_post_send(qp, &send, &bad_send), EOPNOTSUPP);
        ck_assert_ptr_eq(bad_send, &send);
        ck_assert_int_eq(ibv_post_recv(qp, &recv, &bad_recv), EOPNOTSUPP);
        ck_assert_ptr_eq(bad_recv, &recv);
    }
}

static void check_polls(struct ibv_cq *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc[20];

    for (int i = 0; i < 40; i++) {
        ck_assert_int_lt(ibv_poll_cq(cq, 20, wc), 0);
    }
    ck_assert_int_ne(ibv_start_poll((struct ibv_cq_ex *)cq, &attr), 0);
    ck_assert_int_ne(ibv_start_poll((struct ibv_cq_ex *)cq, &attr), ENOENT);
    ck_assert_int_eq(ibv_req_notify_cq(cq, 0), EOPNOTSUPP);
    ck_assert_int_eq(ibv_resize_cq(cq, 100), EOPNOTSUPP);
}

static void check_wq(struct ibv_wq *wq)
{
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    struct ibv_recv_wr *bad, recv = {.num_sge = 0};

    ck_assert_int_eq(ibv_modify_wq(wq, &attr), 0);
    ck_assert_int_eq(ibv_post_wq_recv(wq, &recv, &bad), EOPNOTSUPP);
    ck_assert_ptr_eq(bad, &recv);
}

static void check_srq(struct ibv_srq *srq)
{
    struct ibv_recv_wr *bad, recv = {.num_sge = 0};

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ibv_post_srq_recv(srq, &recv, &bad), EOPNOTSUPP);
        ck_assert_ptr_eq(bad, &recv);
    }
}

/* Makes all kinds of queues, whose memory of these types is the GPU's: calls by the CPU fail, and
 * nothing is left. */
static void check_with(unsigned types)
{
    bool records = types & BIT(MLX5DV_RES_TYPE_DBR);
    struct ibv_cq *cq, *of_host = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_wq *wq;

    on_gpu = types;
    pieces = 0;
    cq = new_cq();
    srq = new_srq();
    qp = new_qp(of_host, NULL);
    wq = new_wq(of_host);
    ck_assert(cq && srq && qp && wq);
    verbs_connect(qp, host, qp->qp_num, NULL);
    if (records || types & BIT(MLX5DV_RES_TYPE_QP)) {
        check_posts(qp);
    }
    if (records || types & BIT(MLX5DV_RES_TYPE_CQ)) {
        check_polls(cq);
    }
    if (records || types & BIT(MLX5DV_RES_TYPE_SRQ)) {
        check_srq(srq);
    }
    if (records || types & BIT(MLX5DV_RES_TYPE_RWQ)) {
        check_wq(wq);
    }
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(of_host), 0);
}

START_TEST(calls_by_the_cpu_fail)
{
    static const uint64_t types[] = {MLX5DV_RES_TYPE_QP, MLX5DV_RES_TYPE_RWQ, MLX5DV_RES_TYPE_DBR,
                                     MLX5DV_RES_TYPE_SRQ, MLX5DV_RES_TYPE_CQ};

    check_with(EVERY);
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        check_with(BIT(types[i]));
        check_with(EVERY & ~BIT(types[i]));
    }
    check_with(0);
}
END_TEST

static struct ibv_qp *new_qp_of(enum ibv_qp_type type, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = type, .send_cq = cq, .recv_cq = cq, .cap = {DEPTH, DEPTH, 1, 1, 0}};

    return ibv_create_qp(domain, &attr);
}

static bool is_piece(const void *ptr, uint64_t type)
{
    for (int i = 0; i < pieces; i++) {
        if (piece[i].ptr == ptr && piece[i].type == type && piece[i].gpu) {
            return true;
        }
    }
    return false;
}

/* A raw packet QP has two rings. An RC QP has one, which begins with the receive queue. */
START_TEST(every_kind_of_qp_is_told_where_it_is)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
                                             IBV_QPT_RAW_PACKET};
    struct ibv_cq *cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        struct ibv_qp *qp = new_qp_of(types[i], cq);
        struct mlx5dv_qp dv;

        ck_assert_ptr_nonnull(qp);
        dv = dv_qp(qp);
        ck_assert(is_piece(dv.rq.buf, MLX5DV_RES_TYPE_QP));
        ck_assert(is_piece(dv.dbrec, MLX5DV_RES_TYPE_DBR));
        ck_assert_int_eq(is_piece(dv.sq.buf, MLX5DV_RES_TYPE_QP), types[i] == IBV_QPT_RAW_PACKET);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    }
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* An XRC SRQ has a command of its own. */
START_TEST(an_xrc_srq_may_lie_there)
{
    struct ibv_xrcd_init_attr xrcd_attr = {.comp_mask =
                                               IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                           .fd = -1,
                                           .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(v->a, &xrcd_attr);
    struct ibv_cq *cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 7, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = domain,
                                        .xrcd = xrcd,
                                        .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(v->a, &attr);

    ck_assert_ptr_nonnull(srq);
    ck_assert(is_piece(dv_srq(srq).buf, MLX5DV_RES_TYPE_SRQ));
    check_srq(srq);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* The library posts to such an SRQ itself. */
START_TEST(an_srq_with_tags_cannot_lie_there)
{
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 15, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq *cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(v->a, &cq_attr));
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 7, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = domain,
                                        .cq = cq,
                                        .tm_cap = {.max_num_tags = 4, .max_ops = 4}};

    ck_assert_ptr_null(ibv_create_srq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    on_gpu = BIT(MLX5DV_RES_TYPE_QP); /* the QP of the list's commands */
    ck_assert_ptr_null(ibv_create_srq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* -- memory that the CPU reaches --------------------------------------------------------------- */

static void *pinned_or_managed(size_t size, bool managed)
{
    CUdeviceptr addr;
    void *ptr;

    if (managed) {
        ck_assert_int_eq(cuMemAllocManaged(&addr, size, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
        return (void *)(uintptr_t)addr;
    }
    ck_assert_int_eq(cuMemAllocHost_v2(&ptr, size), CUDA_SUCCESS);
    return ptr;
}

static void *alloc_reached(struct ibv_pd *of, void *managed, size_t size, size_t alignment,
                           uint64_t type)
{
    return pinned_or_managed(hv_whole_pages(size), managed);
}

static void free_reached(struct ibv_pd *of, void *managed, void *ptr, uint64_t type)
{
    ck_assert_int_eq(managed ? cuMemFree_v2((uintptr_t)ptr) : cuMemFreeHost(ptr), CUDA_SUCCESS);
}

/* Pinned and managed memory is used as any other: the CPU posts and polls. */
START_TEST(the_cpu_drives_queues_in_memory_that_it_reaches)
{
    struct ibv_pd *of_gpu = domain;

    for (uintptr_t managed = 0; managed < 2; managed++) {
        struct ibv_parent_domain_init_attr attr = {.pd = host->pd,
                                                   .comp_mask =
                                                       IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                                   .alloc = alloc_reached,
                                                   .free = free_reached,
                                                   .pd_context = (void *)managed};
        struct ibv_sge sge = {(uintptr_t)mr->addr, MSG, mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_RDMA_WRITE,
                                       .send_flags = IBV_SEND_SIGNALED,
                                       .wr.rdma = {(uintptr_t)into->addr, into->rkey}};
        struct ibv_cq *cq;
        struct ibv_qp *qp;

        domain = ibv_alloc_parent_domain(v->a, &attr);
        cq = new_cq();
        qp = new_qp(cq, NULL);
        verbs_connect(qp, host, qp->qp_num, NULL);
        ck_assert(!shadow_any());
        memset(into->addr, 0, PAGE);
        ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
        ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
        ck_assert_mem_eq(into->addr, mr->addr, MSG);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
        ck_assert_int_eq(ibv_destroy_cq(cq), 0);
        ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    }
    domain = of_gpu;
}
END_TEST

/* -- memory that is not there ------------------------------------------------------------------ */

START_TEST(memory_that_is_not_all_there_is_given_back)
{
    missing = 8 * PAGE;
    on_gpu = EVERY & ~BIT(MLX5DV_RES_TYPE_DBR);
    errno = 0;
    ck_assert_ptr_null(new_srq_of(1023)); /* 16 pages */
    ck_assert_int_ne(errno, 0);
    ck_assert_int_eq(pieces, 1);
    ck_assert(piece[0].freed);
}
END_TEST

/* A ring of a CQ takes the place of the first one, but its entries could not be moved there. */
START_TEST(a_cq_of_the_host_stays_there)
{
    struct ibv_cq *cq;

    on_gpu = 0;
    cq = new_cq();
    on_gpu = EVERY;
    ck_assert_int_eq(ibv_resize_cq(cq, 100), EOPNOTSUPP);
    ck_assert(piece[pieces - 1].gpu && piece[pieces - 1].freed);
    ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("gpu-allocators");
    Suite *suite = suite_create("verbs-gpu-allocators");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_cq_begins_with_entries_that_were_not_written_and_a_record_of_zeroes);
    tcase_add_test(tc, the_wqes_of_an_srq_are_a_list);
    tcase_add_test(tc, a_qp_that_is_reset_has_a_record_of_zeroes);
    tcase_add_test(tc, a_gpu_posts_and_polls);
    tcase_add_test(tc, a_gpu_posts_to_an_srq);
    tcase_add_test(tc, small_messages_reach_buffers_of_a_gpu);
    tcase_add_test(tc, calls_by_the_cpu_fail);
    tcase_add_test(tc, every_kind_of_qp_is_told_where_it_is);
    tcase_add_test(tc, an_xrc_srq_may_lie_there);
    tcase_add_test(tc, an_srq_with_tags_cannot_lie_there);
    tcase_add_test(tc, the_cpu_drives_queues_in_memory_that_it_reaches);
    tcase_add_test(tc, memory_that_is_not_all_there_is_given_back);
    tcase_add_test(tc, a_cq_of_the_host_stays_there);
    suite_add_tcase(suite, tc);
    return suite;
}
