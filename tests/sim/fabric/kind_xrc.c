/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: an initiator at one end and a target at the other; each message
 * names the shared receive queue that it goes to. There is one channel in each direction, with the
 * operations and the model of a reliable connection.
 */
#include "tests/sim/fabric/channel.h"
#include <errno.h>
#include "tests/sim/fabric/connect.h"

struct xrc_channel {
    struct channel channel;
    struct ibv_xrcd *xrcd;
    uint32_t srqn;
};

struct xrc {
    struct xrc_channel channel[2];
};

static void kind_xrc_dress(struct flow *flow, struct ibv_send_wr *wr)
{
    const struct xrc_channel *x = (struct xrc_channel *)flow; /* flow is its first member */

    for (; wr; wr = wr->next) {
        wr->qp_type.xrc.remote_srqn = x->srqn;
    }
}

static void kind_xrc_make_srq(struct xrc_channel *x)
{
    struct job *job = x->channel.flow.job;
    struct sim_host *to = x->channel.flow.to;
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = to->pd,
        .cq = x->channel.to_cq,
    };

    x->xrcd = attr.xrcd = ibv_open_xrcd(to->ctx, &domain);
    sim_check(job, x->xrcd, "no XRC domain: errno %d", errno);
    channel_set_srq(&x->channel, ibv_create_srq_ex(to->ctx, &attr));
    sim_must(job, ibv_get_srq_num(x->channel.srq, &x->srqn));
}

static void kind_xrc_make_qps(struct xrc_channel *x)
{
    struct channel *c = &x->channel;
    struct job *job = c->flow.job;
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x->xrcd};
    struct ibv_qp_init_attr_ex initiator = {
        .send_cq = c->cq,
        .cap = {.max_send_wr = FLOW_WINDOW + 2, .max_send_sge = 3},
        .qp_type = IBV_QPT_XRC_SEND,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = c->flow.from->pd};

    c->target = ibv_create_qp_ex(c->flow.to->ctx, &target);
    c->flow.qp = ibv_create_qp_ex(c->flow.from->ctx, &initiator);
    sim_check(job, c->target && c->flow.qp, "no QP: errno %d", errno);
}

static void kind_xrc_connect_both(struct channel *c)
{
    uint32_t psn = (uint32_t)chance_from(&c->flow.job->chance, 0xffff80, 0xffffff);

    connect_xrc(c->flow.job, c->target, true, c->flow.qp, c->flow.from, psn);
    connect_xrc(c->flow.job, c->flow.qp, false, c->target, c->flow.to, psn);
}

static void kind_xrc_make_channel(struct job *job, struct xrc_channel *x, struct sim_host *from,
                                  struct sim_host *to)
{
    struct channel *c = &x->channel;

    channel_init(c, job, from, to);
    c->flow.dress = kind_xrc_dress;
    kind_xrc_make_srq(x);
    kind_xrc_make_qps(x);
    c->target_connects = true;
    c->connect = kind_xrc_connect_both;
    c->connect(c);
}

static void kind_xrc_make(struct job *job)
{
    struct xrc *x = job->state;

    kind_xrc_make_channel(job, &x->channel[0], job->host[0], job->host[1]);
    kind_xrc_make_channel(job, &x->channel[1], job->host[1], job->host[0]);
}

static bool kind_xrc_step(struct job *job)
{
    struct xrc *x = job->state;
    bool did = channel_step(&x->channel[0].channel);

    did |= channel_step(&x->channel[1].channel);
    return did;
}

static bool kind_xrc_is_done(const struct job *job)
{
    const struct xrc *x = job->state;

    return channel_is_done(&x->channel[0].channel) && channel_is_done(&x->channel[1].channel);
}

static void kind_xrc_check(struct job *job)
{
    struct xrc *x = job->state;

    flow_check(&x->channel[0].channel.flow);
    flow_check(&x->channel[1].channel.flow);
}

static void kind_xrc_free(struct job *job)
{
    struct xrc *x = job->state;

    for (unsigned i = 0; i < 2; i++) {
        channel_free(&x->channel[i].channel);
        sim_must(job, ibv_close_xrcd(x->channel[i].xrcd));
    }
}

const struct kind kind_xrc = {
    .name = "xrc",
    .about = "extended reliable connections, to a shared receive queue that a message names",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct xrc),
    .make = kind_xrc_make,
    .step = kind_xrc_step,
    .is_done = kind_xrc_is_done,
    .check = kind_xrc_check,
    .free = kind_xrc_free,
};
