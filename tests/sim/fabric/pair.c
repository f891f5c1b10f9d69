/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements pair.h: QPs, CQs and their states. flow.c has the operations. */
#include "tests/sim/fabric/pair.h"
#include <errno.h>
#include <fcntl.h>

#define MAX_INLINE 128
#define SLOTS      32 /* receives of a QP */

/* -- made and connected ------------------------------------------------------------------------ */

static void pair_make_qp(struct pair *pair, unsigned nth)
{
    struct pair_end *end = &pair->end[nth];
    struct ibv_qp_init_attr attr = {
        .qp_context = &end->told,
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

/* What the witness knows of an end. */
static void pair_be_seen(struct pair *pair, unsigned nth)
{
    const struct connect_terms *terms = &pair->terms;
    struct pair_end *end = &pair->end[nth];

    end->seen = (struct witness_end){.port = end->host->port,
                                     .qpn = end->qp->qp_num,
                                     .psn = terms->psn[nth],
                                     .mtu = 128u << terms->mtu,
                                     .max_reads = terms->max_reads,
                                     .rnr_timer = terms->rnr_timer,
                                     .timeout = terms->timeout};
    memcpy(&end->seen.ip, end->host->config.gid[1].raw + 12, sizeof(end->seen.ip));
    end->seen.ip = GUINT32_FROM_BE(end->seen.ip);
}

#define LATE   (2 * SIM_MS)
#define NOBODY 2

static void pair_draw_terms(struct pair *pair)
{
    static const unsigned without[FLOW_RIGHTS] = {[FLOW_NO_WRITE] = IBV_ACCESS_REMOTE_WRITE,
                                                  [FLOW_NO_READ] = IBV_ACCESS_REMOTE_READ,
                                                  [FLOW_NO_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC};
    struct chance *chance = &pair->job->chance;

    pair->terms = connect_draw(pair->job, CONNECT_ANY);
    for (unsigned i = 0; i < 2; i++) {
        pair->flow[i].lacks =
            chance_one_in(chance, 4) ? (enum flow_right)chance_below(chance, FLOW_RIGHTS) : 0;
        pair->terms.denies[!i] = without[pair->flow[i].lacks];
    }
}

static void pair_to_rts(const struct pair *pair, unsigned nth)
{
    struct ibv_qp *const qp[2] = {pair->end[0].qp, pair->end[1].qp};

    connect_to_rts(pair->job, qp, nth, &pair->terms);
}

static void pair_connect(struct pair *pair)
{
    struct sim_host *const host[2] = {pair->end[0].host, pair->end[1].host};
    struct ibv_qp *const qp[2] = {pair->end[0].qp, pair->end[1].qp};

    pair_draw_terms(pair);
    connect_to_rtr(pair->job, host, qp, &pair->terms);
    pair_to_rts(pair, 0);
    pair->late_ns = 0;
    if (chance_one_in(&pair->job->chance, 4)) {
        pair->late_ns = pair->job->sim->world->now_ns + LATE;
        pair->had_received = pair->flow[0].received;
    } else {
        pair_to_rts(pair, 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        pair_be_seen(pair, i);
        pair->end[i].told = (struct sim_told){0};
        pair->flow[i].why = IBV_WC_SUCCESS;
    }
    pair->silent = pair->starved = NOBODY;
    witness_connected(pair->job, &pair->end[0].seen, &pair->end[1].seen);
    pair->state = PAIR_RUNS;
}

/* Removes it from the witness: an end is in error, or is destroyed. */
static void pair_be_unseen(const struct pair *pair)
{
    if (pair->state == PAIR_RUNS) {
        witness_parted(pair->job, &pair->end[0].seen, &pair->end[1].seen);
    }
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
        sim_check(pair->job, end->host->is_reset || ibv_destroy_cq(end->cq) == EBUSY,
                  "a CQ in use is destroyed");
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
    pair_be_unseen(pair);
    for (unsigned i = 0; i < 2; i++) {
        if (!pair->end[i].gone) {
            pair_free_end(pair, &pair->end[i]);
        }
        flow_free(&pair->flow[i]);
    }
}

void pair_bury(struct pair *pair, struct span graves[PAIR_GRAVES], uint64_t alone_ns)
{
    pair_be_unseen(pair);
    graves[2] = pair->end[0].own.span;
    /* first, or arriving packets find no memory, which the end reports */
    pair_free_end(pair, &pair->end[0]);
    graves[0] = flow_bury(&pair->flow[0], true);
    graves[1] = flow_bury(&pair->flow[1], false);
    pair->end[0].gone = true;
    if (pair->state == PAIR_RUNS) {
        pair->state = PAIR_IS_HALF;
        pair->quiet_ns = pair->job->sim->world->now_ns + alone_ns;
    }
}

/* -- the end of a connection ------------------------------------------------------------------- */

static void pair_to_err(struct pair *pair)
{
    pair_be_unseen(pair);
    for (unsigned i = 0; i < 2; i++) {
        if (!pair->end[i].gone) {
            connect_move(pair->job, pair->end[i].qp, IBV_QPS_ERR);
            /* libmlx5 posts nothing to a QP that was never in RTS */
            if (i == 0 || !pair->late_ns) {
                flow_mark(&pair->flow[i]);
            }
        }
    }
    pair->late_ns = 0;
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

/* Destroys QPs under traffic. No further completion of theirs comes, not even of CQEs that are in
 * the CQ. */
static void pair_destroy(struct pair *pair)
{
    sim_note(pair->job, "destroys its QPs");
    pair_be_unseen(pair);
    for (unsigned i = 0; i < 2; i++) {
        sim_must(pair->job, ibv_destroy_qp(pair->end[i].qp));
        pair->end[i].excused = true;
        if (pair->end[i].flushes) {
            intake_reset(pair->end[i].intake);
        }
    }
    pair->destroyed = true;
    pair_be_quiet(pair, false);
}

/* A responder that refuses for good reports it by one event; if the request consumed a receive,
 * also by that receive's completion. */
static void pair_check_told(const struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct sim_told *told = &pair->end[!i].told;
        enum ibv_wc_status why = pair->flow[i].why;

        bool access = why == IBV_WC_REM_ACCESS_ERR;
        bool request = why == IBV_WC_REM_INV_REQ_ERR && !pair->flow[i].was_too_long &&
                       !pair->flow[i].was_misled;

        /* The sender may have got another error before it heard of this one. */
        sim_check(pair->job,
                  told->n[IBV_EVENT_COMM_EST] <= 1 &&
                      told->n[IBV_EVENT_QP_ACCESS_ERR] + told->n[IBV_EVENT_QP_REQ_ERR] <= 1 &&
                      told->n[IBV_EVENT_QP_ACCESS_ERR] >= access &&
                      told->n[IBV_EVENT_QP_REQ_ERR] >= request && !told->n[IBV_EVENT_QP_FATAL],
                  "an operation ends with \"%s\", and its receiver has told of %u accesses, %u "
                  "requests, %u others",
                  ibv_wc_status_str(why), told->n[IBV_EVENT_QP_ACCESS_ERR],
                  told->n[IBV_EVENT_QP_REQ_ERR], told->n[IBV_EVENT_QP_FATAL]);
    }
}

static void pair_connect_again(struct pair *pair)
{
    if (!pair->destroyed) {
        pair_check_told(pair);
    }
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

/* -- steps ------------------------------------------------------------------------------------- */

static void pair_take(struct pair *pair, unsigned nth, const struct ibv_wc *wc)
{
    struct pair_end *end = &pair->end[nth];
    bool ends = pair->end[0].gone || pair->state == PAIR_DRAINS || pair->flow[0].doomed ||
                pair->flow[1].doomed || pair->flow[nth].broken || nth == pair->silent ||
                pair->flow[0].misled || pair->flow[1].misled;
    uint8_t *slot;

    end->since++;
    end->solicited_since += wc->status != IBV_WC_SUCCESS;
    sim_check(pair->job, pair->state != PAIR_IS_QUIET,
              "a completion of a QP that has none outstanding: wr_id 0x%" G_GINT64_MODIFIER "x",
              wc->wr_id);
    sim_check(pair->job, wc->qp_num == end->qp->qp_num, "completion of QP 0x%x, not 0x%x",
              wc->qp_num, end->qp->qp_num);
    if (!(wc->wr_id & INTAKE_WR)) {
        flow_sent(&pair->flow[nth], wc, ends);
        return;
    }
    end->solicited_since += wc->status == IBV_WC_SUCCESS && flow_is_solicited(&pair->flow[!nth]);
    slot = intake_take(end->intake, wc);
    if (wc->status == IBV_WC_SUCCESS) {
        flow_received(&pair->flow[!nth], wc, end->intake, slot);
        return;
    }
    sim_check(pair->job,
              (ends && (wc->status == IBV_WC_WR_FLUSH_ERR || wc->status == IBV_WC_LOC_LEN_ERR)) ||
                  (pair->flow[!nth].misled == IBV_WC_REM_INV_REQ_ERR &&
                   wc->status == IBV_WC_REM_INV_REQ_ERR),
              "a receive fails: %s", ibv_wc_status_str(wc->status));
    intake_forget(end->intake, slot);
}

/* Checks that a notice comes in time. */
static void pair_check_notice(const struct pair *pair, struct pair_end *end)
{
    uint64_t now = pair->job->sim->world->now_ns;

    if (end->notice_ns) {
        sim_check(pair->job, now < end->notice_ns, "no notice of a solicited completion");
    } else if (end->for_solicited && end->solicited_since && !end->excused) {
        end->notice_ns = now + SIM_MS + 20 * pair->job->sim->options.whims;
    }
}

/* Returns whether the end checks its CQ: an end with a channel only after a notice; or always, to
 * check that the notice comes. */
static bool pair_looks(struct pair *pair, struct pair_end *end)
{
    struct ibv_cq *of;
    void *context;

    if (!end->channel || !end->armed) {
        return true;
    }
    if (!sim_has_notice(end->channel) || ibv_get_cq_event(end->channel, &of, &context)) {
        pair_check_notice(pair, end);
        return end->for_solicited;
    }
    sim_check(pair->job, of == end->cq, "an event of another CQ");
    ibv_ack_cq_events(of, 1);
    end->armed = false;
    end->noticed = true;
    return true;
}

static void pair_arm(struct pair *pair, struct pair_end *end)
{
    end->for_solicited = chance_one_in(&pair->job->chance, 3);
    sim_must(pair->job, ibv_req_notify_cq(end->cq, end->for_solicited));
    end->armed = true;
    end->since = end->solicited_since = 0;
    end->excused = false;
    end->notice_ns = 0;
}

static bool pair_poll_all(struct pair *pair, unsigned nth)
{
    struct pair_end *end = &pair->end[nth];
    struct ibv_wc wc[16];
    bool did = false;
    int n;

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

static bool pair_poll(struct pair *pair, unsigned nth)
{
    struct pair_end *end = &pair->end[nth];
    bool did;

    if (end->gone || !pair_looks(pair, end)) {
        return false;
    }
    did = pair_poll_all(pair, nth);
    if (end->noticed) {
        sim_check(pair->job,
                  end->excused || (end->for_solicited ? end->solicited_since : end->since),
                  "a notice, and nothing has come that it was asked for");
        end->noticed = false;
    }
    if (end->channel && !end->armed) { /* completions from here on cause a notice */
        pair_arm(pair, end);
        did |= pair_poll_all(pair, nth);
    }
    return did;
}

static void pair_resize_cq(struct pair *pair)
{
    struct pair_end *end = &pair->end[chance_below(&pair->job->chance, 2)];

    sim_must(pair->job, ibv_resize_cq(end->cq, (int)chance_from(&pair->job->chance, pair->cq_depth,
                                                                4 * pair->cq_depth)));
}

/* True once in so many steps, which are some operations each. */
static bool pair_is_to_end(struct pair *pair)
{
    return chance_happens(&pair->job->chance, (unsigned)pair->job->sim->options.errors);
}

/* One end goes to error without notice, and the other end has to find out by itself: it retransmits
 * as many times as agreed, and no more. */
static void pair_fall_silent(struct pair *pair)
{
    unsigned nth = (unsigned)chance_below(&pair->job->chance, 2);

    if (flow_is_done(&pair->flow[!nth])) {
        return; /* the other side would not notice */
    }
    sim_note(pair->job, "one of its QPs falls silent");
    pair->silent = nth;
    pair->knocked = false;
    pair->flow[!nth].silent = true;
    witness_falls_silent(pair->job, &pair->end[nth].seen);
    connect_move(pair->job, pair->end[nth].qp, IBV_QPS_ERR);
}

/* Posts something that must be retransmitted. */
static void pair_knock(struct pair *pair)
{
    struct flow *flow = &pair->flow[!pair->silent];

    if (!pair->knocked && flow->posted - flow->done < FLOW_WINDOW - 2) {
        flow_mark(flow);
        pair->knocked = true;
    }
}

/* One end posts no more receives. Messages to it are then refused as many times as agreed, and no
 * more; it may already have enough receives. */
static void pair_starve(struct pair *pair)
{
    unsigned nth = (unsigned)chance_below(&pair->job->chance, 2);

    if (pair->terms.rnr_retries < 7 && pair->end[nth].flushes && pair->starved == NOBODY) {
        sim_note(pair->job, "host %u posts no receives any more", pair->end[nth].host->number);
        pair->starved = nth;
        pair->flow[!nth].starved = true;
    }
}

/* From now on one end gets wrong requests, which it has to refuse, together with its peer's own
 * requests. */
static void pair_mislead(struct pair *pair)
{
    unsigned nth = (unsigned)chance_below(&pair->job->chance, 2);

    if (witness_is_quiet(pair->job)) {
        sim_note(pair->job, "wrong requests come to host %u", pair->end[nth].host->number);
        pair->flow[!nth].misled = IBV_WC_REM_INV_REQ_ERR;
        witness_be_rogue(pair->job, &pair->end[nth].seen, false);
    }
}

/* One end gets wrong answers, which end its operation. */
static void pair_deceive(struct pair *pair)
{
    unsigned nth = (unsigned)chance_below(&pair->job->chance, 2);

    if (witness_is_quiet(pair->job)) {
        sim_note(pair->job, "wrong answers come to host %u", pair->end[nth].host->number);
        pair->flow[nth].misled = IBV_WC_BAD_RESP_ERR;
        witness_be_rogue(pair->job, &pair->end[nth].seen, true);
    }
}

static void pair_check_patience(const struct pair *pair, unsigned nth)
{
    const struct pair_end *end = &pair->end[nth];
    const struct flow *flow = &pair->flow[nth];

    if (!witness_is_quiet(pair->job)) {
        return;
    }
    if (flow->why == IBV_WC_RETRY_EXC_ERR && pair->silent == !nth) {
        sim_check(pair->job, witness_repeats(pair->job, &end->seen) == pair->terms.retries,
                  "it has asked %u times again, and was to %u times",
                  witness_repeats(pair->job, &end->seen), pair->terms.retries);
    }
    if (flow->why == IBV_WC_RNR_RETRY_EXC_ERR) {
        sim_check(pair->job,
                  witness_refusals(pair->job, &end->seen) == pair->terms.rnr_retries + 1u,
                  "it was refused %u times, and was to ask again %u times",
                  witness_refusals(pair->job, &end->seen), pair->terms.rnr_retries);
    }
}

static void pair_end_somehow(struct pair *pair)
{
    bool shares = !pair->end[0].flushes || !pair->end[1].flushes;

    /* The completions of an SRQ's receives are lost with the CQEs of a QP that is destroyed. */
    if (pair->silent != NOBODY || pair->flow[0].misled || pair->flow[1].misled) {
        return; /* it is already ending */
    }
    switch (chance_from(&pair->job->chance, shares ? 1 : 0, 11)) {
    case 7:
        pair_deceive(pair);
        break;
    case 6:
    case 2:
        pair_mislead(pair);
        break;
    case 5:
    case 9:
        pair_starve(pair);
        break;
    case 4:
    case 8:
        if (pair->terms.timeout) {
            pair_fall_silent(pair);
        }
        break;
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

/* The second end may send when it has heard from the first, which it is told once (IBTA 11.6.3.2),
 * or after a while. */
static void pair_look_if_late(struct pair *pair)
{
    struct pair_end *end = &pair->end[1];

    if (end->told.n[IBV_EVENT_COMM_EST] || pair->job->sim->world->now_ns >= pair->late_ns) {
        sim_check(pair->job,
                  end->told.n[IBV_EVENT_COMM_EST] || pair->flow[0].received == pair->had_received,
                  "a message has come in RTR, and no event has told so");
        pair_to_rts(pair, 1);
        pair->late_ns = 0;
    }
}

static bool pair_run(struct pair *pair)
{
    bool did = false;

    if (pair->late_ns) {
        pair_look_if_late(pair);
    }
    if (pair->silent != NOBODY) {
        pair_knock(pair);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (i == pair->silent) {
            continue;
        }
        if (i != pair->starved && chance_below(&pair->job->chance, 4)) {
            did |= intake_post(pair->end[i].intake,
                               (unsigned)chance_from(&pair->job->chance, 1, SLOTS));
        }
        if (i == 0 || !pair->late_ns) {
            did |= flow_post(&pair->flow[i]);
        }
    }
    if (chance_one_in(&pair->job->chance, 256)) {
        pair_resize_cq(pair);
    }
    if (!pair->late_ns && pair_is_to_end(pair)) {
        pair_end_somehow(pair);
    }
    return did;
}

/* The remaining end continues, and gets no answers. */
static bool pair_run_alone(struct pair *pair)
{
    bool did = intake_post(pair->end[1].intake, (unsigned)chance_from(&pair->job->chance, 1, 4));

    if (pair->late_ns) {
        pair_look_if_late(pair);
    }
    return (!pair->late_ns && flow_post(&pair->flow[1])) || did;
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
            for (unsigned i = 0; i < 2; i++) {
                if (pair->flow[i].broken) {
                    pair_check_patience(pair, i);
                }
            }
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
    for (unsigned i = 0; i < 2; i++) {
        flow_check(&pair->flow[i]);
        sim_check(pair->job, !witness_was_rogue(pair->job, &pair->end[i].seen),
                  "a wrong request or answer was not refused");
    }
}
