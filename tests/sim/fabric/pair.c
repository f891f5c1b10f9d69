/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs, CQs and their states; what is sent over them is for flow.c. */
#include "tests/sim/fabric/pair.h"
#include <errno.h>
#include <fcntl.h>
#include "tests/sim/fabric/connect.h"

#define MAX_INLINE 128
#define SLOTS      32 /* receives of a QP */

/* -- made and connected ------------------------------------------------------------------------ */

static void pair_make_qp(struct pair *pair, unsigned nth)
{
    struct pair_end *end = &pair->end[nth];
    struct ibv_qp_init_attr attr = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .srq = end->intake->srq,
        .cap = {.max_send_wr = FLOW_WINDOW + 2,
                .max_recv_wr = end->intake->srq ? 0 : SLOTS,
                .max_send_sge = 3,
                .max_recv_sge = 1,
                .max_inline_data = chance_one_in(&pair->job->chance, 2) ? MAX_INLINE : 0},
        .qp_type = IBV_QPT_RC,
    };

    end->qp = ibv_create_qp(end->host->pd, &attr);
    sim_check(pair->job, end->qp, "no QP: errno %d", errno);
    if (!end->intake->srq) {
        end->intake->qp = end->qp;
    }
    pair->flow[nth].qp = end->qp;
    pair->flow[nth].max_inline = MIN(attr.cap.max_inline_data, MAX_INLINE);
}

static void pair_connect(struct pair *pair)
{
    struct sim_host *const host[2] = {pair->end[0].host, pair->end[1].host};
    struct ibv_qp *const qp[2] = {pair->end[0].qp, pair->end[1].qp};

    connect_rc(pair->job, host, qp);
    pair->state = PAIR_RUNS;
}

void pair_share_receives(struct pair *pair, unsigned end, struct intake *in)
{
    pair->end[end].intake = in;
}

static void pair_make_cq(struct pair *pair, struct pair_end *end)
{
    if (chance_one_in(&pair->job->chance, 4)) {
        end->channel = ibv_create_comp_channel(end->host->ctx);
        sim_check(pair->job, end->channel, "no channel: errno %d", errno);
        fcntl(end->channel->fd, F_SETFL, O_NONBLOCK);
    }
    pair->cq_depth = 2 * FLOW_WINDOW + INTAKE_SLOTS;
    end->cq = ibv_create_cq(end->host->ctx, (int)pair->cq_depth, NULL, end->channel, 0);
    sim_check(pair->job, end->cq, "no CQ: errno %d", errno);
}

void pair_init(struct pair *pair, struct job *job, struct sim_host *a, struct sim_host *b)
{
    struct sim_host *hosts[2] = {a, b};

    pair->job = job;
    for (unsigned i = 0; i < 2; i++) {
        struct pair_end *end = &pair->end[i];

        end->host = hosts[i];
        flow_init(&pair->flow[i], job, hosts[i], hosts[!i]);
        pair_make_cq(pair, end);
        if (!end->intake) {
            intake_init(&end->own, job, end->host, (unsigned)chance_from(&job->chance, 1, SLOTS),
                        pair->flow[i].size);
            end->intake = &end->own;
            end->flushes = true;
        }
        pair_make_qp(pair, i);
    }
    pair_connect(pair);
}

static void pair_free_end(struct pair *pair, struct pair_end *end)
{
    if (!pair->destroyed) {
        sim_must(pair->job, ibv_destroy_qp(end->qp));
    }
    sim_must(pair->job, ibv_destroy_cq(end->cq));
    if (end->channel) {
        sim_must(pair->job, ibv_destroy_comp_channel(end->channel));
    }
    if (end->flushes) {
        intake_free(&end->own);
    }
}

void pair_free(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        if (!pair->end[i].gone) {
            pair_free_end(pair, &pair->end[i]);
        }
        flow_free(&pair->flow[i]);
    }
}

void pair_bury(struct pair *pair, struct span graves[PAIR_GRAVES], uint64_t alone_ns)
{
    graves[2] = pair->end[0].own.span;
    pair_free_end(pair, &pair->end[0]); /* first, or what comes finds no memory, and says so */
    graves[0] = flow_bury(&pair->flow[0], true);
    graves[1] = flow_bury(&pair->flow[1], false);
    pair->end[0].gone = true;
    if (pair->state == PAIR_RUNS) {
        pair->state = PAIR_IS_HALF;
        pair->quiet_ns = pair->job->sim->world->now_ns + alone_ns;
    }
}

/* -- how it ends ------------------------------------------------------------------------------- */

static void pair_to_err(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        if (!pair->end[i].gone) {
            connect_move(pair->job, pair->end[i].qp, IBV_QPS_ERR);
            flow_mark(&pair->flow[i]);
        }
    }
    pair->state = PAIR_DRAINS;
}

static void pair_be_quiet(struct pair *pair, bool all)
{
    for (unsigned i = 0; i < 2; i++) {
        flow_settle(&pair->flow[i], all && !pair->end[0].gone);
    }
    pair->state = PAIR_IS_QUIET;
    pair->quiet_ns = sim_quiet_ns(pair->job->sim);
}

/* QPs under traffic. No completion of theirs comes any more, not even of what is in the CQ. */
static void pair_destroy(struct pair *pair)
{
    sim_note(pair->job, "destroys its QPs");
    for (unsigned i = 0; i < 2; i++) {
        sim_must(pair->job, ibv_destroy_qp(pair->end[i].qp));
        if (pair->end[i].flushes) {
            intake_reset(pair->end[i].intake);
        }
    }
    pair->destroyed = true;
    pair_be_quiet(pair, false);
}

static void pair_connect_again(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        if (pair->destroyed) {
            pair_make_qp(pair, i);
        } else {
            connect_move(pair->job, pair->end[i].qp, IBV_QPS_RESET);
        }
    }
    pair->destroyed = false;
    pair_connect(pair);
}

/* -- its steps --------------------------------------------------------------------------------- */

static void pair_take(struct pair *pair, unsigned nth, const struct ibv_wc *wc)
{
    struct pair_end *end = &pair->end[nth];
    bool ends = pair->end[0].gone || pair->state == PAIR_DRAINS || pair->flow[0].doomed ||
                pair->flow[1].doomed || pair->flow[nth].broken;
    uint8_t *slot;

    sim_check(pair->job, pair->state != PAIR_IS_QUIET,
              "a completion of a QP that has none outstanding: wr_id 0x%" G_GINT64_MODIFIER "x",
              wc->wr_id);
    sim_check(pair->job, wc->qp_num == end->qp->qp_num, "completion of QP 0x%x, not 0x%x",
              wc->qp_num, end->qp->qp_num);
    if (!(wc->wr_id & INTAKE_WR)) {
        flow_sent(&pair->flow[nth], wc, ends);
        return;
    }
    slot = intake_take(end->intake, wc);
    if (wc->status == IBV_WC_SUCCESS) {
        flow_received(&pair->flow[!nth], wc, end->intake, slot);
        return;
    }
    sim_check(pair->job,
              ends && (wc->status == IBV_WC_WR_FLUSH_ERR || wc->status == IBV_WC_LOC_LEN_ERR),
              "a receive fails: %s", ibv_wc_status_str(wc->status));
    intake_forget(end->intake, slot);
}

/* Whether it looks at its CQ: one with a channel only when that says so. */
static bool pair_looks(struct pair *pair, struct pair_end *end)
{
    struct ibv_cq *of;
    void *context;

    if (!end->channel) {
        return true;
    }
    if (end->armed) {
        if (ibv_get_cq_event(end->channel, &of, &context)) {
            return false;
        }
        sim_check(pair->job, of == end->cq, "an event of another CQ");
        ibv_ack_cq_events(of, 1);
        end->armed = false;
    }
    return true;
}

static bool pair_poll(struct pair *pair, unsigned nth)
{
    struct pair_end *end = &pair->end[nth];
    struct ibv_wc wc[16];
    bool did = false;
    int n;

    if (end->gone || !pair_looks(pair, end)) {
        return false;
    }
    if (end->channel) { /* what comes from here on is told */
        sim_must(pair->job, ibv_req_notify_cq(end->cq, 0));
        end->armed = true;
    }
    do {
        n = ibv_poll_cq(end->cq, (int)G_N_ELEMENTS(wc), wc);
        sim_check(pair->job, n >= 0, "ibv_poll_cq: %d", n);
        for (int i = 0; i < n; i++) {
            pair_take(pair, nth, &wc[i]);
        }
        did |= n > 0;
    } while (n == (int)G_N_ELEMENTS(wc) && (end->channel || chance_below(&pair->job->chance, 4)));
    return did;
}

static void pair_resize_cq(struct pair *pair)
{
    struct pair_end *end = &pair->end[chance_below(&pair->job->chance, 2)];

    sim_must(pair->job, ibv_resize_cq(end->cq, (int)chance_from(&pair->job->chance, pair->cq_depth,
                                                                4 * pair->cq_depth)));
}

/* Once in so many steps, which are some operations each. */
static bool pair_is_to_end(struct pair *pair)
{
    return chance_happens(&pair->job->chance, (unsigned)pair->job->sim->options.errors);
}

static void pair_end_somehow(struct pair *pair)
{
    bool shares = !pair->end[0].flushes || !pair->end[1].flushes;

    /* What an SRQ's receives became is lost with the CQEs of a QP that is destroyed. */
    switch (chance_from(&pair->job->chance, shares ? 1 : 0, 3)) {
    case 1:
        sim_note(pair->job, "moves its QPs to the error state");
        pair_to_err(pair);
        break;
    case 0:
        pair_destroy(pair);
        break;
    default:
        flow_doom(&pair->flow[chance_below(&pair->job->chance, 2)]);
    }
}

static bool pair_run(struct pair *pair)
{
    bool did = false;

    for (unsigned i = 0; i < 2; i++) {
        if (chance_below(&pair->job->chance, 4)) {
            did |= intake_post(pair->end[i].intake,
                               (unsigned)chance_from(&pair->job->chance, 1, SLOTS));
        }
        did |= flow_post(&pair->flow[i]);
    }
    if (chance_one_in(&pair->job->chance, 256)) {
        pair_resize_cq(pair);
    }
    if (pair_is_to_end(pair)) {
        pair_end_somehow(pair);
    }
    return did;
}

/* The end that is left goes on, and hears nothing. */
static bool pair_run_alone(struct pair *pair)
{
    bool did = intake_post(pair->end[1].intake, (unsigned)chance_from(&pair->job->chance, 1, 4));

    return flow_post(&pair->flow[1]) || did;
}

static bool pair_is_drained(const struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        if (pair->end[i].gone) {
            continue;
        }
        if (!flow_is_drained(&pair->flow[i]) || (pair->end[i].flushes && pair->end[i].own.posted)) {
            return false;
        }
    }
    return true;
}

bool pair_step(struct pair *pair)
{
    bool did = pair_poll(pair, 0);

    did |= pair_poll(pair, 1);
    switch (pair->state) {
    case PAIR_RUNS:
        if (pair->flow[0].broken || pair->flow[1].broken) {
            pair_to_err(pair);
            return true;
        }
        return pair_run(pair) || did;
    case PAIR_IS_HALF:
        if (pair->flow[1].broken || pair->job->sim->world->now_ns >= pair->quiet_ns) {
            pair_to_err(pair);
            return true;
        }
        return pair_run_alone(pair) || did;
    case PAIR_DRAINS:
        if (pair_is_drained(pair)) {
            pair_be_quiet(pair, true);
        }
        return did;
    case PAIR_IS_OVER:
        return did;
    default:
        if (pair->job->sim->world->now_ns >= pair->quiet_ns && pair->end[0].gone) {
            pair->state = PAIR_IS_OVER;
            return true;
        }
        if (pair->job->sim->world->now_ns >= pair->quiet_ns) {
            pair_connect_again(pair);
            return true;
        }
        return did;
    }
}

bool pair_is_done(const struct pair *pair)
{
    return pair->state == PAIR_RUNS && flow_is_done(&pair->flow[0]) && flow_is_done(&pair->flow[1]);
}

void pair_check(struct pair *pair)
{
    flow_check(&pair->flow[0]);
    flow_check(&pair->flow[1]);
}
