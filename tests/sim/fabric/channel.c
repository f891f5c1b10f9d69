/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kinds with an initiator and a target share. */
#include "tests/sim/fabric/channel.h"
#include <errno.h>

void channel_init(struct channel *c, struct job *job, struct sim_host *from, struct sim_host *to)
{
    flow_init(&c->flow, job, from, to);
    c->cq = ibv_create_cq(from->ctx, FLOW_WINDOW + 2, NULL, NULL, 0);
    c->to_cq = ibv_create_cq(to->ctx, INTAKE_SLOTS, NULL, NULL, 0);
    sim_check(job, c->cq && c->to_cq, "no CQ: errno %d", errno);
}

void channel_set_srq(struct channel *c, struct ibv_srq *srq)
{
    sim_check(c->flow.job, srq, "no SRQ: errno %d", errno);
    intake_init(&c->in, c->flow.job, c->flow.to, INTAKE_SLOTS / 2, c->flow.size);
    c->srq = c->in.srq = srq;
}

bool channel_step(struct channel *c)
{
    struct job *job = c->flow.job;
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(c->to_cq, 1, &wc) > 0) {
        uint8_t *slot = intake_take(&c->in, &wc);

        sim_check(job, wc.status == IBV_WC_SUCCESS, "a receive fails: %s",
                  ibv_wc_status_str(wc.status));
        flow_received(&c->flow, &wc, &c->in, slot);
        did = true;
    }
    while (ibv_poll_cq(c->cq, 1, &wc) > 0) {
        sim_check(job, wc.status == IBV_WC_SUCCESS, "operation %" G_GUINT64_FORMAT " fails: %s",
                  wc.wr_id, ibv_wc_status_str(wc.status));
        flow_sent(&c->flow, &wc, false);
        did = true;
    }
    if (chance_below(&job->chance, 4)) {
        did |= intake_post(&c->in, (unsigned)chance_from(&job->chance, 1, INTAKE_SLOTS));
    }
    return flow_post(&c->flow) || did;
}

void channel_free(struct channel *c)
{
    const struct job *job = c->flow.job;

    sim_must(job, ibv_destroy_qp(c->flow.qp));
    sim_must(job, ibv_destroy_qp(c->target));
    sim_must(job, ibv_destroy_srq(c->srq));
    sim_must(job, ibv_destroy_cq(c->cq));
    sim_must(job, ibv_destroy_cq(c->to_cq));
    intake_free(&c->in);
    flow_free(&c->flow);
}
