/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of gpu_probes that verbs makes, in memory that the allocators of a parent domain return,
 * as rocSHMEM and rocm-xio make them. mlx5dv_init_obj() tells where they are; then they are driven
 * through memory alone.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/gpu/probes.h"

#define DEPTH  64
#define WRITES 200 /* the rings go round several times */
#define SIZE   256u
#define WAIT_S 20

static struct mlx5dv_qp dv_qp;
static struct mlx5dv_cq dv_cq;
static struct ibv_mr *mr;
static uint8_t *data;
static unsigned allocated, freed;

static void *domain_alloc(struct ibv_pd *of, void *context, size_t size, size_t alignment,
                          uint64_t type)
{
    (void)of;
    (void)context;
    (void)alignment;
    (void)type;
    allocated++;
    return memory_new(size); /* begins at a larger multiple than any that is asked for */
}

static void domain_free(struct ibv_pd *of, void *context, void *ptr, uint64_t type)
{
    (void)of;
    (void)context;
    (void)ptr;
    (void)type;
    freed++;
}

static bool connect_to_itself(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = ACCESS,
        .path_mtu = port_attr.active_mtu,
        .dest_qp_num = qp->qp_num,
        .max_dest_rd_atomic = 1,
        .max_rd_atomic = 1,
        .min_rnr_timer = 12,
        .timeout = 20,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 1}}};

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        return false;
    }
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
        return false;
    }
    attr.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Rings with the first 8 bytes of the WQE, in one half of the BlueFlame register after the other.
 */
static void post(struct ibv_qp *qp, unsigned i)
{
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_raddr_seg raddr;
        struct mlx5_wqe_data_seg data;
        uint8_t rest[16];
    } wqe = {0};
    uint32_t record = htobe32((i + 1) & 0xffff);
    uint8_t *half = (uint8_t *)dv_qp.bf.reg + (i & 1 ? dv_qp.bf.size : 0);
    uint64_t word;

    mlx5dv_set_ctrl_seg(&wqe.ctrl, (uint16_t)i, MLX5_OPCODE_RDMA_WRITE, 0, qp->qp_num,
                        MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
    wqe.raddr.raddr = htobe64((uintptr_t)data + PAGE + i);
    wqe.raddr.rkey = htobe32(mr->rkey);
    mlx5dv_set_data_seg(&wqe.data, SIZE, mr->lkey, (uintptr_t)data + i);
    memory_put((uint8_t *)dv_qp.sq.buf + (size_t)(i % dv_qp.sq.wqe_cnt) * 64, &wqe, sizeof(wqe));
    memory_put(&dv_qp.dbrec[1], &record, sizeof(record));
    memcpy(&word, &wqe, sizeof(word));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((uint64_t *)half, word, __ATOMIC_RELEASE);
}

static bool poll_one(unsigned i)
{
    const uint8_t *at = (const uint8_t *)dv_cq.buf + (size_t)(i % dv_cq.cqe_cnt) * 64;
    uint32_t record = htobe32((i + 1) & 0xffffff);
    time_t end = time(NULL) + WAIT_S;
    uint8_t cqe[64];

    do {
        memory_get(cqe, at, sizeof(cqe));
        if (cqe[63] >> 4 != MLX5_CQE_INVALID && (cqe[63] & 1) == (i / dv_cq.cqe_cnt & 1)) {
            memory_put(&dv_cq.dbrec[0], &record, sizeof(record));
            return cqe[63] >> 4 == MLX5_CQE_REQ ||
                   give_up("WRITE %u fails with syndrome 0x%x", i, cqe[55]);
        }
        usleep(50);
    } while (time(NULL) < end);
    return give_up("no CQE of WRITE %u within %d s", i, WAIT_S);
}

static bool writes_work(struct ibv_qp *qp)
{
    uint8_t sent[PAGE], got[SIZE];

    for (unsigned i = 0; i < PAGE; i++) {
        sent[i] = (uint8_t)(i * 7 + i / 256);
    }
    memory_put(data, sent, sizeof(sent));
    for (unsigned i = 0; i < WRITES; i++) {
        post(qp, i);
        if (!poll_one(i)) {
            return false;
        }
        memory_get(got, data + PAGE + i, sizeof(got));
        if (memcmp(got, sent + i, sizeof(got)) != 0) {
            return give_up("WRITE %u wrote something else", i);
        }
    }
    return true;
}

static bool make_and_drive(struct ibv_pd *domain)
{
    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = DEPTH - 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &cq_attr);
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 0, 1, 0, 0}};
    struct mlx5dv_obj obj = {.cq = {.out = &dv_cq}, .qp = {.out = &dv_qp}};
    struct ibv_qp *qp;
    bool ok;

    attr.send_cq = attr.recv_cq = cq ? ibv_cq_ex_to_cq(cq) : NULL;
    qp = cq ? ibv_create_qp(domain, &attr) : NULL;
    obj.cq.in = attr.send_cq;
    obj.qp.in = qp;
    if (!qp || !connect_to_itself(qp) || mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP)) {
        return give_up("the queues in the domain: %s", strerror(errno));
    }
    ok = allocated == 4 || give_up("alloc() was called %u times", allocated);
    ok = ok && gpu_map_uar(dv_qp.bf.reg, 2 * (size_t)dv_qp.bf.size) && writes_work(qp);
    gpu_unmap_uar(dv_qp.bf.reg);
    return ((!ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq) && freed == allocated) ||
            give_up("the queues cannot be destroyed, or free() was called %u times", freed)) &&
           ok;
}

bool domain_queues_work(void)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
                                               .alloc = domain_alloc,
                                               .free = domain_free};
    struct ibv_pd *domain = ibv_alloc_parent_domain(ctx, &attr);
    bool ok;

    data = memory_new(2 * PAGE);
    mr = ibv_reg_mr(pd, data, 2 * PAGE, ACCESS);
    if (!domain || !mr) {
        return give_up("the domain, or its data: %s", strerror(errno));
    }
    ok = make_and_drive(domain);
    return ((!ibv_dealloc_pd(domain) && !ibv_dereg_mr(mr)) || give_up("ibv_dealloc_pd()")) && ok;
}
