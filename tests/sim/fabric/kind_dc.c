/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic connections: an initiator at one end and a target at the other, which connect by
 * themselves. There is one channel in each direction, with the operations and the model of a
 * reliable connection: an initiator's messages to one target are executed in order.
 */
#include "tests/sim/fabric/channel.h"
#include <errno.h>
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/service.h"

struct dc_channel {
    struct channel channel;
    struct ibv_ah *ah;
};

struct dc {
    struct dc_channel channel[2];
};

static int kind_dc_ring(struct flow *flow, const struct ibv_send_wr *wr)
{
    const struct dc_channel *c = (struct dc_channel *)flow; /* flow is its first member */

    return service_dc_post(flow->qp, c->ah, c->channel.target->qp_num, wr);
}

/* A target has no connection of its own. */
static void kind_dc_connect_initiator(struct channel *c)
{
    connect_dc(c->flow.job, c->flow.qp, false);
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
    c->target = service_dc_qp(job, to, c->to_cq, c->srq, FLOW_WINDOW + 2, 3);
    c->flow.qp = service_dc_qp(job, from, c->cq, NULL, FLOW_WINDOW + 2, 3);
    connect_dc(job, c->target, true);
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
