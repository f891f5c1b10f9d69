/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements gpu_queues.h by the library's own functions, which tests of it may call. */
#include "tests/verbs/gpu_queues.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/kernel/kernel.h"

#define LOG_CQES 7
#define DC_KEY   0x5a17ull
#define RECEIVES 4 /* of an SRQ that nobody uses */
#define READS    16
#define RIGHTS   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Offsets in the memory of a queue. */
#define CQ_AT     0u
#define CQ_DBR_AT 8192u
#define QP_DBR_AT 8256u
#define RING_AT   12288u
G_STATIC_ASSERT(RING_AT + (GPU_BLOCK << GPU_LOG_BLOCKS) <= GPU_QUEUE_MEMORY);

#define queues_must(holds)                                                                         \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            g_error("%s:%d: %s: errno %d", __func__, __LINE__, #holds, errno);                     \
        }                                                                                          \
    } while (0)

static struct ibv_srq *queues_srq(struct ibv_pd *pd)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &attr);

    queues_must(srq);
    return srq;
}

/* -- by DevX ----------------------------------------------------------------------------------- */

static void queues_make_devx_cq(struct gpu_queue *q)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    queues_must(!hv_dv_devx_query_eqn(q->attr.ctx, 0, &eqn));
    q->cq.ring = q->memory + CQ_AT;
    q->cq.cqes = 1u << LOG_CQES;
    q->cq.collapsed = q->attr.collapsed;
    q->cq.record = q->attr.collapsed ? NULL : (uint32_t *)(void *)(q->memory + CQ_DBR_AT);
    gpu_cq_clear(&q->cq);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, q->umem->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_offset, CQ_AT);
    PRM_SET(cqc, cqc, log_cq_size, LOG_CQES);
    PRM_SET(cqc, cqc, cc, q->attr.collapsed);
    PRM_SET(cqc, cqc, oi, q->attr.collapsed);
    PRM_SET(cqc, cqc, uar_page, q->attr.uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_umem_id, q->umem->umem_id);
    PRM_SET(cqc, cqc, dbr_addr, CQ_DBR_AT);
    q->cq_obj = hv_dv_devx_obj_create(q->attr.ctx, in, sizeof(in), out, sizeof(out));
    queues_must(q->cq_obj);
}

static void queues_make_devx_qp(struct gpu_queue *q)
{
    struct prm_create_qp_in in[1] = {0};
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, wq_umem_id, q->umem->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_offset, RING_AT);
    PRM_SET(qpc, qpc, st, q->attr.dc ? PRM_QP_ST_DCI : PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, hv_pd(q->attr.pd)->pdn);
    PRM_SET(qpc, qpc, uar_page, q->attr.uar->page_id);
    PRM_SET(qpc, qpc, log_sq_size, GPU_LOG_BLOCKS);
    PRM_SET(qpc, qpc, cd_master, q->attr.master);
    PRM_SET(qpc, qpc, cqn_snd, q->cq_obj->id);
    PRM_SET(qpc, qpc, cqn_rcv, q->cq_obj->id);
    PRM_SET(qpc, qpc, rq_type, q->ibv_srq ? PRM_RQ_TYPE_SRQ : PRM_RQ_TYPE_ZERO_SIZE);
    if (q->ibv_srq) {
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, hv_srq(q->ibv_srq)->srqn);
    }
    PRM_SET(qpc, qpc, send_dbr_mode,
            q->attr.order == GPU_NO_RECORD ? PRM_SEND_DBR_MODE_NO_DBR_EXT
                                           : PRM_SEND_DBR_MODE_DBR_VALID);
    PRM_SET(qpc, qpc, dbr_umem_id, q->umem->umem_id);
    PRM_SET(qpc, qpc, dbr_addr, QP_DBR_AT);
    q->qp_obj = hv_dv_devx_obj_create(q->attr.ctx, in, sizeof(in), out, sizeof(out));
    queues_must(q->qp_obj);
}

static void *queues_map(void)
{
    void *memory =
        mmap(NULL, GPU_QUEUE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    queues_must(memory != MAP_FAILED);
    return memory;
}

static void queues_make_by_devx(struct gpu_queue *q)
{
    q->memory = q->attr.memory ? q->attr.alias : queues_map();
    memset(q->memory, 0, GPU_QUEUE_MEMORY);
    q->umem = hv_dv_devx_umem_reg(q->attr.ctx, q->attr.memory ? q->attr.memory : q->memory,
                                  GPU_QUEUE_MEMORY, IBV_ACCESS_LOCAL_WRITE);
    queues_must(q->umem);
    q->ibv_srq = q->attr.srq || q->attr.dc ? queues_srq(q->attr.pd) : NULL;
    queues_make_devx_cq(q);
    queues_make_devx_qp(q);
    q->sq.ring = q->memory + RING_AT;
    q->sq.blocks = 1u << GPU_LOG_BLOCKS;
    q->sq.record = (uint32_t *)(void *)(q->memory + QP_DBR_AT) + 1;
    q->sq.page = q->attr.uar->base_addr;
    q->sq.qpn = q->qp_obj->id;
}

void gpu_devx_move(struct mlx5dv_devx_obj *qp, uint16_t opcode, const struct prm_qpc *qpc)
{
    struct prm_rts2rts_qp_in in[1] = {0}; /* the inputs of all transitions begin like this one */
    struct prm_rts2rts_qp_out out[1] = {0};

    PRM_SET(rts2rts_qp_in, in, opcode, opcode);
    PRM_SET(rts2rts_qp_in, in, qpn, qp->id);
    if (qpc) {
        memcpy(PRM_PTR(rts2rts_qp_in, in, qpc), qpc, PRM_SIZE(qpc));
    }
    queues_must(!hv_dv_devx_obj_modify(qp, in, sizeof(in), out, sizeof(out)));
}

/* qpn: of the peer; 0: the QP is a DC initiator. av: the way there. */
static void queues_connect_by_devx(struct mlx5dv_devx_obj *qp, uint32_t qpn,
                                   const struct prm_wqe_av *av, const struct gpu_terms *terms)
{
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(qpc, qpc, dc_access_key, qpn ? 0 : DC_KEY);
    PRM_SET(qpc, qpc, rre, qpn != 0);
    PRM_SET(qpc, qpc, rwe, qpn != 0);
    gpu_devx_move(qp, PRM_CMD_OP_RST2INIT_QP, qpc);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, mtu, terms->mtu);
    PRM_SET(qpc, qpc, remote_qpn, qpn);
    PRM_SET(qpc, qpc, min_rnr_nak, 1);
    PRM_SET(qpc, qpc, log_rra_max, qpn ? 4 : 0);
    PRM_SET(qpc, qpc, next_rcv_psn, terms->psn);
    PRM_SET(ads, ads, hop_limit, 64);
    PRM_SET(ads, ads, src_addr_index, 1);
    PRM_SET(ads, ads, udp_sport, 0xdcba);
    memcpy(PRM_PTR(ads, ads, rgid_rip), PRM_PTR(wqe_av, av, rgid), 16);
    PRM_SET(ads, ads, rmac_47_32, prm_load16(PRM_PTR(wqe_av, av, rmac)));
    PRM_SET(ads, ads, rmac_31_0, prm_load32((const uint8_t *)PRM_PTR(wqe_av, av, rmac) + 2));
    gpu_devx_move(qp, PRM_CMD_OP_INIT2RTR_QP, qpc);
    memset(qpc, 0, sizeof(qpc));
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, ack_timeout, terms->timeout);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    PRM_SET(qpc, qpc, log_sra_max, 4);
    PRM_SET(qpc, qpc, next_send_psn, terms->psn);
    gpu_devx_move(qp, PRM_CMD_OP_RTR2RTS_QP, qpc);
}

/* -- by verbs ---------------------------------------------------------------------------------- */

static struct ibv_qp *queues_make_qp(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq,
                                     struct ibv_srq *srq, enum mlx5dv_dc_type dc)
{
    bool target = dc == MLX5DV_DCTYPE_DCT;
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = target ? 0 : 1u << (GPU_LOG_BLOCKS - 2), .max_send_sge = 1},
        .qp_type = dc ? IBV_QPT_DRIVER : IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = dc}};
    struct ibv_qp *qp;

    dv.dc_init_attr.dct_access_key = target ? DC_KEY : 0;
    qp = dc ? hv_dv_create_qp(ctx, &attr, &dv) : ibv_create_qp_ex(ctx, &attr);
    queues_must(qp);
    return qp;
}

static void queues_make_by_verbs(struct gpu_queue *q)
{
    struct mlx5dv_qp qp = {0};
    struct mlx5dv_cq cq = {0};
    struct mlx5dv_obj obj;

    q->ibv_cq = ibv_create_cq(q->attr.ctx, (1 << LOG_CQES) - 1, NULL, NULL, 0);
    queues_must(q->ibv_cq);
    q->ibv_qp = queues_make_qp(q->attr.ctx, q->attr.pd, q->ibv_cq, NULL,
                               q->attr.dc ? MLX5DV_DCTYPE_DCI : 0);
    obj = (struct mlx5dv_obj){.qp = {.in = q->ibv_qp, .out = &qp},
                              .cq = {.in = q->ibv_cq, .out = &cq}};
    queues_must(!hv_dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) && cq.cqe_size == GPU_BLOCK);
    q->cq.ring = cq.buf;
    q->cq.cqes = cq.cqe_cnt;
    q->cq.record = (uint32_t *)cq.dbrec;
    q->sq.ring = qp.sq.buf;
    q->sq.blocks = qp.sq.wqe_cnt;
    q->sq.record = (uint32_t *)qp.dbrec + MLX5_SND_DBR;
    q->sq.page = (uint8_t *)qp.bf.reg - PRM_OFFSET(uar, blue_flame);
    q->sq.qpn = q->ibv_qp->qp_num;
}

static void queues_move(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    queues_must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* gid: of the other side. */
static void queues_connect_by_verbs(struct ibv_qp *qp, bool dc, bool target,
                                    const union ibv_gid *gid, uint32_t qpn,
                                    const struct gpu_terms *terms)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = RIGHTS,
        .path_mtu = terms->mtu,
        .dest_qp_num = qpn,
        .rq_psn = terms->psn,
        .sq_psn = terms->psn,
        .max_dest_rd_atomic = READS,
        .max_rd_atomic = READS,
        .min_rnr_timer = 1,
        .timeout = terms->timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 64}},
    };
    int rtr = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV;

    queues_must(!ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                   (dc && !target ? 0 : IBV_QP_ACCESS_FLAGS)));
    rtr |= dc ? (target ? IBV_QP_MIN_RNR_TIMER : 0)
              : IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    attr.qp_state = IBV_QPS_RTR;
    queues_must(!ibv_modify_qp(qp, &attr, rtr));
    attr.qp_state = IBV_QPS_RTS;
    if (!dc || !target) {
        queues_must(!ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MAX_QP_RD_ATOMIC));
    }
}

/* -- queues and targets ------------------------------------------------------------------------ */

void gpu_queue_new(struct gpu_queue *q, const struct gpu_queue_attr *attr, gpu_store_fn *store,
                   void *opaque)
{
    *q = (struct gpu_queue){.attr = *attr, .sq = {.order = attr->order}};
    if (attr->devx) {
        queues_make_by_devx(q);
    } else {
        queues_make_by_verbs(q);
    }
    q->sq.store = store;
    q->sq.opaque = opaque;
}

void gpu_queue_destroy(struct gpu_queue *q)
{
    if (q->attr.devx) {
        queues_must(!hv_dv_devx_obj_destroy(q->qp_obj));
        queues_must(!hv_dv_devx_obj_destroy(q->cq_obj));
        queues_must(!hv_dv_devx_umem_dereg(q->umem));
    } else {
        queues_must(!ibv_destroy_qp(q->ibv_qp));
        queues_must(!ibv_destroy_cq(q->ibv_cq));
    }
    queues_must(!q->ibv_srq || !ibv_destroy_srq(q->ibv_srq));
}

void gpu_queue_free(struct gpu_queue *q)
{
    gpu_queue_destroy(q);
    gpu_queue_free_memory(q);
}

void gpu_queue_free_memory(struct gpu_queue *q)
{
    if (q->memory && !q->attr.memory) {
        munmap(q->memory, GPU_QUEUE_MEMORY);
    }
}

void gpu_target_new(struct gpu_target *t, struct ibv_context *ctx, struct ibv_pd *pd, bool dc)
{
    *t = (struct gpu_target){.ctx = ctx, .av_len = dc ? GPU_AV : 0};
    t->cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    queues_must(t->cq);
    t->srq = dc ? queues_srq(pd) : NULL;
    t->qp = queues_make_qp(ctx, pd, t->cq, t->srq, dc ? MLX5DV_DCTYPE_DCT : 0);
}

void gpu_target_free(struct gpu_target *t)
{
    queues_must(!t->ah || !ibv_destroy_ah(t->ah));
    queues_must(!ibv_destroy_qp(t->qp));
    queues_must(!t->srq || !ibv_destroy_srq(t->srq));
    queues_must(!ibv_destroy_cq(t->cq));
}

static struct ibv_ah *queues_make_ah(struct ibv_pd *pd, const union ibv_gid *gid)
{
    struct ibv_ah_attr path = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(pd, &path);

    queues_must(ah);
    return ah;
}

static void queues_read_ah(struct ibv_ah *ibv_ah, uint8_t av[GPU_AV])
{
    struct mlx5dv_ah ah;
    struct mlx5dv_obj obj = {.ah = {.in = ibv_ah, .out = &ah}};

    queues_must(!hv_dv_init_obj(&obj, MLX5DV_OBJ_AH));
    memcpy(av, ah.av, GPU_AV);
}

void gpu_devx_connect(struct mlx5dv_devx_obj *qp, struct ibv_pd *pd, struct ibv_context *to,
                      uint32_t qpn, const struct gpu_terms *terms)
{
    uint8_t av[GPU_AV];
    union ibv_gid gid;
    struct ibv_ah *ah;

    queues_must(!ibv_query_gid(to, 1, 1, &gid));
    ah = queues_make_ah(pd, &gid);
    queues_read_ah(ah, av);
    queues_must(!ibv_destroy_ah(ah));
    queues_connect_by_devx(qp, qpn, (const void *)av, terms);
}

/* Finds the way from the queue to its target, once. */
static void queues_find_way(const struct gpu_queue *q, struct gpu_target *t,
                            const union ibv_gid *gid)
{
    struct prm_wqe_av *av = (void *)t->av;

    t->ah = t->ah ? t->ah : queues_make_ah(q->attr.pd, gid);
    queues_read_ah(t->ah, t->av);
    PRM_SET(wqe_av, av, dc_key, DC_KEY);
    PRM_SET(wqe_av, av, dqp_dct, t->qp->qp_num);
    PRM_SET(wqe_av, av, ext, t->av_len == GPU_AV);
}

void gpu_connect(struct gpu_queue *q, struct gpu_target *t, const struct gpu_terms *terms)
{
    union ibv_gid from, to;

    queues_must(!ibv_query_gid(q->attr.ctx, 1, 1, &from) && !ibv_query_gid(t->ctx, 1, 1, &to));
    if (t->qp->state == IBV_QPS_RESET) {
        queues_connect_by_verbs(t->qp, q->attr.dc, true, &from, q->sq.qpn, terms);
    }
    queues_find_way(q, t, &to);
    if (q->attr.devx) {
        queues_connect_by_devx(q->qp_obj, q->attr.dc ? 0 : t->qp->qp_num, (const void *)t->av,
                               terms);
    } else {
        queues_connect_by_verbs(q->ibv_qp, q->attr.dc, false, &to, t->qp->qp_num, terms);
    }
}

void gpu_queue_fail(struct gpu_queue *q)
{
    if (q->attr.devx) {
        gpu_devx_move(q->qp_obj, PRM_CMD_OP_2ERR_QP, NULL);
    } else {
        queues_move(q->ibv_qp, IBV_QPS_ERR);
    }
}

void gpu_reset(struct gpu_queue *q, struct gpu_target *t)
{
    if (q->attr.order == GPU_NO_RECORD) {
        /* without a VM, a doorbell that another one hides is found by its WQE: no old one may be
         * there (guest-lib/verbs/kernel/unheard.h) */
        memset(q->sq.ring, 0, (size_t)q->sq.blocks * GPU_BLOCK);
    }
    if (q->attr.devx) {
        gpu_devx_move(q->qp_obj, PRM_CMD_OP_2RST_QP, NULL);
        __atomic_store_n(q->sq.record, 0, __ATOMIC_RELEASE);
    } else {
        queues_move(q->ibv_qp, IBV_QPS_RESET);
    }
    q->sq.pi = 0;
    if (q->cq.collapsed) {
        gpu_cq_clear(&q->cq);
    }
    gpu_target_reset(t);
}

void gpu_target_reset(struct gpu_target *t)
{
    if (!t->srq) {
        queues_move(t->qp, IBV_QPS_RESET);
    }
}
