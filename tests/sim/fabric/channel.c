/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements channel.h: what the kinds with an initiator and a target share. */
#include "tests/sim/fabric/channel.h"
#include <errno.h>
#include "tests/sim/fabric/connect.h"

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

/* A DC target continues after a fault. If a receive exists that a message of the last session did
 * not fill, the target reports the fault by its completion (docs/adr/0009). */
static bool channel_may_tell(const struct channel *c, enum ibv_wc_status status)
{
    return !c->target_connects && c->flow.doomed &&
           (status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
}

static bool channel_poll(struct channel *c)
{
    struct job *job = c->flow.job;
    bool ends = c->state != CHANNEL_RUNS || c->flow.doomed || c->flow.broken;
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(c->to_cq, 1, &wc) > 0) {
        uint8_t *slot = intake_take(&c->in, &wc);

        did = true;
        if (wc.status == IBV_WC_SUCCESS) {
            flow_received(&c->flow, &wc, &c->in, slot);
            continue;
        }
        sim_check(job,
                  channel_may_tell(c, wc.status) || (ends && (wc.status == IBV_WC_WR_FLUSH_ERR ||
                                                              wc.status == IBV_WC_LOC_LEN_ERR)),
                  "a receive fails: %s", ibv_wc_status_str(wc.status));
        intake_forget(&c->in, slot);
    }
    while (ibv_poll_cq(c->cq, 1, &wc) > 0) {
        sim_check(job, wc.status == IBV_WC_SUCCESS || ends,
                  "operation %" G_GUINT64_FORMAT " fails: %s", wc.wr_id,
                  ibv_wc_status_str(wc.status));
        flow_sent(&c->flow, &wc, ends);
        did = true;
    }
    return did;
}

static void channel_end(struct channel *c)
{
    sim_note(c->flow.job, "moves QP 0x%x to the error state", c->flow.qp->qp_num);
    connect_move(c->flow.job, c->flow.qp, IBV_QPS_ERR);
    if (c->target_connects) {
        connect_move(c->flow.job, c->target, IBV_QPS_ERR);
    }
    flow_mark(&c->flow);
    c->state = CHANNEL_DRAINS;
}

/* A target without a connection has received what was on its way until now. */
static void channel_begin_again(struct channel *c)
{
    flow_settle(&c->flow, true);
    connect_move(c->flow.job, c->flow.qp, IBV_QPS_RESET);
    if (c->target_connects) {
        connect_move(c->flow.job, c->target, IBV_QPS_RESET);
    }
    c->connect(c);
    c->state = CHANNEL_RUNS;
    /* a receive that a message of the last session did not fill is used for the next message */
    c->in.has_remains = !c->target_connects;
    c->flow.job->sim->tally.connections++;
}

static bool channel_run(struct channel *c)
{
    struct chance *chance = &c->flow.job->chance;

    if (c->flow.broken) {
        channel_end(c);
        return true;
    }
    if (chance_happens(chance, (unsigned)c->flow.job->sim->options.errors)) {
        if (chance_one_in(chance, 3)) {
            channel_end(c);
            return true;
        }
        flow_doom(&c->flow);
    }
    return flow_post(&c->flow);
}

bool channel_step(struct channel *c)
{
    struct job *job = c->flow.job;
    bool did = channel_poll(c);

    if (chance_below(&job->chance, 4)) {
        did |= intake_post(&c->in, (unsigned)chance_from(&job->chance, 1, INTAKE_SLOTS));
    }
    switch (c->state) {
    case CHANNEL_RUNS:
        return channel_run(c) || did;
    case CHANNEL_DRAINS:
        if (flow_is_drained(&c->flow)) {
            c->state = CHANNEL_IS_QUIET;
            c->quiet_ns = sim_quiet_ns(job->sim);
        }
        return did;
    default:
        if (job->sim->world->now_ns >= c->quiet_ns) {
            channel_begin_again(c);
            return true;
        }
        return did;
    }
}

bool channel_is_done(const struct channel *c)
{
    return c->state == CHANNEL_RUNS && flow_is_done(&c->flow);
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
