/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic connections: an initiator at one end and a target at the other, which connect by
 * themselves. There is one channel in each direction, with the operations and the model of a
 * reliable connection: an initiator's messages to one target are executed in order.
 */
#include "tests/sim/fabric/channel.h"
#include <errno.h>
#include "guest-lib/verbs/dv.h"

#define DC_KEY 0x1122334455667788ull

struct dc_channel {
    struct channel channel;
    struct ibv_ah *ah;
};

struct dc {
    struct dc_channel channel[2];
};

/* Posts one request by ibv_wr_*(). */
static void kind_dc_write_wr(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
    switch (wr->opcode) {
    case IBV_WR_SEND:
        ibv_wr_send(qp);
        break;
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr->imm_data);
        break;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
        break;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                                wr->wr.atomic.compare_add);
        break;
    default:
        ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                              wr->wr.atomic.compare_add, wr->wr.atomic.swap);
    }
}

static int kind_dc_ring(struct flow *flow, const struct ibv_send_wr *wr)
{
    const struct dc_channel *c = (struct dc_channel *)flow; /* flow is its first member */
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(flow->qp);
    struct mlx5dv_qp_ex *dv = hv_dv_ops.qp_ex_from_ibv_qp_ex(qp);

    ibv_wr_start(qp);
    for (; wr; wr = wr->next) {
        qp->wr_id = wr->wr_id;
        qp->wr_flags = wr->send_flags & ~(unsigned)IBV_SEND_INLINE;
        kind_dc_write_wr(qp, wr);
        mlx5dv_wr_set_dc_addr(dv, c->ah, c->channel.target->qp_num, DC_KEY);
        ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, wr->sg_list);
    }
    return ibv_wr_complete(qp);
}

static struct ibv_qp *kind_dc_make_qp(struct channel *c, bool target)
{
    const struct sim_host *host = target ? c->flow.to : c->flow.from;
    struct ibv_cq *cq = target ? c->to_cq : c->cq;
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = target ? c->srq : NULL,
        .cap = {.max_send_wr = FLOW_WINDOW + 2, .max_send_sge = 3},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (target ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
        .pd = host->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC};
    struct ibv_qp *qp;

    if (target) {
        attr.cap = (struct ibv_qp_cap){0};
    }
    dv.dc_init_attr.dc_type = target ? MLX5DV_DCTYPE_DCT : MLX5DV_DCTYPE_DCI;
    dv.dc_init_attr.dct_access_key = target ? DC_KEY : 0;
    qp = hv_dv_create_qp(host->ctx, &attr, &dv);
    sim_check(c->flow.job, qp, "no DC QP: errno %d", errno);
    return qp;
}

static void kind_dc_connect(struct channel *c, struct ibv_qp *qp, bool target)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = CHANNEL_ACCESS,
        .path_mtu = IBV_MTU_1024,
        .max_rd_atomic = 16,
        .min_rnr_timer = 1,
        .timeout = CHANNEL_TIMEOUT,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}},
    };

    sim_must(c->flow.job, ibv_modify_qp(qp, &attr,
                                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                            (target ? IBV_QP_ACCESS_FLAGS : 0)));
    attr.qp_state = IBV_QPS_RTR;
    sim_must(c->flow.job, ibv_modify_qp(qp, &attr,
                                        IBV_QP_STATE | IBV_QP_PATH_MTU |
                                            (target ? IBV_QP_MIN_RNR_TIMER | IBV_QP_AV : 0)));
    if (!target) {
        attr.qp_state = IBV_QPS_RTS;
        sim_must(c->flow.job,
                 ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
    }
}

/* A target has no connection of its own. */
static void kind_dc_connect_initiator(struct channel *c)
{
    kind_dc_connect(c, c->flow.qp, false);
}

static void kind_dc_make_channel(struct job *job, struct dc_channel *x, struct sim_host *from,
                                 struct sim_host *to)
{
    struct ibv_ah_attr path = {.is_global = 1,
                               .port_num = 1,
                               .grh = {.dgid = to->config.gid[1], .sgid_index = 1, .hop_limit = 1}};
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1}};
    struct channel *c = &x->channel;

    channel_init(c, job, from, to);
    c->flow.ring = kind_dc_ring;
    x->ah = ibv_create_ah(from->pd, &path);
    sim_check(job, x->ah, "no AH: errno %d", errno);
    channel_set_srq(c, ibv_create_srq(to->pd, &srq));
    c->target = kind_dc_make_qp(c, true);
    c->flow.qp = kind_dc_make_qp(c, false);
    kind_dc_connect(c, c->target, true);
    c->connect = kind_dc_connect_initiator;
    c->connect(c);
}

static void kind_dc_make(struct job *job)
{
    struct dc *x = job->state;

    kind_dc_make_channel(job, &x->channel[0], job->host[0], job->host[1]);
    kind_dc_make_channel(job, &x->channel[1], job->host[1], job->host[0]);
}

static bool kind_dc_step(struct job *job)
{
    struct dc *x = job->state;
    bool did = channel_step(&x->channel[0].channel);

    did |= channel_step(&x->channel[1].channel);
    return did;
}

static bool kind_dc_is_done(const struct job *job)
{
    const struct dc *x = job->state;

    return channel_is_done(&x->channel[0].channel) && channel_is_done(&x->channel[1].channel);
}

static void kind_dc_check(struct job *job)
{
    struct dc *x = job->state;

    flow_check(&x->channel[0].channel.flow);
    flow_check(&x->channel[1].channel.flow);
}

static void kind_dc_free(struct job *job)
{
    struct dc *x = job->state;

    for (unsigned i = 0; i < 2; i++) {
        channel_free(&x->channel[i].channel);
        sim_must(job, ibv_destroy_ah(x->channel[i].ah));
    }
}

const struct kind kind_dc = {
    .name = "dc",
    .about = "dynamic connections: all operations both ways",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct dc),
    .make = kind_dc_make,
    .step = kind_dc_step,
    .is_done = kind_dc_is_done,
    .check = kind_dc_check,
    .free = kind_dc_free,
};
