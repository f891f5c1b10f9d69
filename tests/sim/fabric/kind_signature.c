/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with block signatures, on one side or on both sides of WRITEs, READs and SENDs. Some blocks
 * are damaged. dif.h is the reference: it says which bytes arrive, which block is the first damaged
 * one, and which two values of its signature differ.
 *
 * A job has rounds. A round configures its keys, transfers the data of one key, or of plain memory,
 * in one message or several, and then compares the memory of both sides, gaps included, and the
 * error of each key. Some queue pairs drain their send queue when their own key has an error; the
 * program then lets them go on. Keys are also destroyed while they are in use.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/signed.h"

#define CONNS  2u
#define ROUNDS 4u /* of a connection at a time */
#define WINDOW 64u
#define INLINE 512u /* bytes of a WQE for the description of a key */

enum signature_wr {
    SIGNATURE_CONFIGURE,
    SIGNATURE_MESSAGE,
    SIGNATURE_RECEIVE,
};

/* A queue of work requests, in order. */
struct signature_queue {
    struct {
        struct signed_round *round;
        enum signature_wr what;
    } wr[WINDOW];
    uint64_t posted, done;
};

struct signature_end {
    struct sim_host *host;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct signature_queue send, receive;
    struct sim_told told;
    bool drains;      /* an error of its own key drains its send queue */
    unsigned errors;  /* that it has to report by an event */
    uint64_t barrier; /* after an error, requests from there on must not be executed */
    bool is_drained;  /* until on_ns */
    uint64_t on_ns;
    bool broken;
};

struct signature_conn {
    struct signature_end end[2];
    struct signed_round round[ROUNDS];
    uint64_t begun;
    enum {
        SIGNATURE_RUNS,
        SIGNATURE_ENDS,
        SIGNATURE_IS_QUIET, /* until quiet_ns */
    } state;
    bool troubled;  /* a request of it may fail */
    bool destroyed; /* its QPs are */
    uint64_t quiet_ns;
};

struct signature {
    struct job *job;
    struct signature_conn conn[CONNS];
    uint64_t limit; /* rounds of each connection */
};

/* -- made and connected ------------------------------------------------------------------------ */

static void signature_make_qp(struct signature *s, struct signature_end *end)
{
    struct ibv_qp_init_attr_ex attr = {.qp_context = &end->told,
                                       .send_cq = end->cq,
                                       .recv_cq = end->cq,
                                       .cap = {.max_send_wr = WINDOW,
                                               .max_recv_wr = WINDOW,
                                               .max_send_sge = SIGNED_PARTS,
                                               .max_recv_sge = SIGNED_PARTS,
                                               .max_inline_data = INLINE},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = end->host->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    /* Data that comes in a CQE is copied by the library, which knows no signatures. */
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
                                                  MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
                                     .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE};

    end->drains = chance_one_in(&s->job->chance, 2);
    dv.create_flags |= end->drains ? MLX5DV_QP_CREATE_SIG_PIPELINING : 0;
    end->qp = hv_dv_create_qp(end->host->ctx, &attr, &dv);
    sim_check(s->job, end->qp, "no QP: errno %d", errno);
}

static void signature_connect(struct signature *s, struct signature_conn *c)
{
    struct sim_host *const host[2] = {c->end[0].host, c->end[1].host};
    struct ibv_qp *qp[2];

    for (unsigned e = 0; e < 2; e++) {
        struct signature_end *end = &c->end[e];

        if (end->qp && !c->destroyed) {
            connect_move(s->job, end->qp, IBV_QPS_RESET);
        } else {
            signature_make_qp(s, end);
        }
        qp[e] = end->qp;
        end->broken = end->is_drained = false;
        end->errors = 0;
        end->told = (struct sim_told){0};
    }
    connect_rc(s->job, host, qp);
    c->destroyed = c->troubled = false;
    c->state = SIGNATURE_RUNS;
}

/* -- posting ----------------------------------------------------------------------------------- */

static uint64_t signature_claim(struct signature_queue *q, struct signed_round *r,
                                enum signature_wr what)
{
    q->wr[q->posted % WINDOW].round = r;
    q->wr[q->posted % WINDOW].what = what;
    return q->posted++;
}

static void signature_configure(struct signature *s, struct signature_end *end,
                                struct signed_round *r, struct signed_side *side)
{
    signed_configure(s->job, end->qp, signature_claim(&end->send, r, SIGNATURE_CONFIGURE), side);
}

static void signature_post_receive(struct signature *s, struct signature_end *end,
                                   struct signed_round *r, const struct signed_side *side)
{
    struct ibv_sge list[SIGNED_PARTS];
    struct ibv_recv_wr wr = {.wr_id =
                                 signature_claim(&end->receive, r, SIGNATURE_RECEIVE) | 1ull << 63,
                             .sg_list = list,
                             .num_sge = signed_list(r, side, 0, r->wire, list)},
                       *bad;

    sim_must(s->job, ibv_post_recv(end->qp, &wr, &bad));
}

static void signature_post_messages(struct signature *s, struct signature_conn *c,
                                    struct signed_round *r)
{
    struct signed_side *near = &r->side[r->from], *far = &r->side[!r->from];
    struct signature_end *end = &c->end[r->from];
    uint32_t from = 0;

    if (!near->is_asked) {
        signature_configure(s, end, r, near);
    }
    if (r->opcode == IBV_WR_SEND) {
        signature_post_receive(s, &c->end[!r->from], r, far);
    }
    for (unsigned i = 0; i < r->messages; i++) {
        uint32_t left = r->wire - from, last = r->messages - i - 1;
        uint32_t len = last ? (uint32_t)chance_from(&s->job->chance, 1, left - last) : left;
        struct ibv_sge list[SIGNED_PARTS];
        struct ibv_send_wr wr = {.wr_id = signature_claim(&end->send, r, SIGNATURE_MESSAGE),
                                 .sg_list = list,
                                 .opcode = r->opcode,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;

        wr.num_sge = signed_list(r, near, from, len, list);
        if (r->opcode != IBV_WR_SEND) {
            wr.wr.rdma.rkey = far->has_key ? far->mkey->rkey : far->span.mr->rkey;
            wr.wr.rdma.remote_addr =
                from + (far->has_key ? 0 : (uintptr_t)far->span.at + far->part[0].at);
        }
        sim_must(s->job, ibv_post_send(end->qp, &wr, &bad));
        from += len;
    }
    r->is_posted = true;
}

/* Begins a round, if one is free and the queues have room. */
static bool signature_begin(struct signature *s, struct signature_conn *c)
{
    struct signed_round *r = &c->round[chance_below(&s->job->chance, ROUNDS)];

    if (r->runs || c->begun >= s->limit || s->job->sim->world->now_ns < r->rest_ns) {
        return false;
    }
    c->begun++;
    signed_draw_round(s->job, r);
    signed_note(s->job, r);
    for (unsigned e = 0; e < 2; e++) {
        /* the requester may also configure its key just before it uses it */
        if (r->side[e].has_key && (e != r->from || chance_one_in(&s->job->chance, 2))) {
            signature_configure(s, &c->end[e], r, &r->side[e]);
        }
    }
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

static void signature_free_round(struct signature *s, struct signed_round *r)
{
    r->runs = false;
    r->rest_ns = r->reads && (sim_is_lossy(s->job->sim) || sim_is_disorderly(s->job->sim))
                     ? sim_quiet_ns(s->job->sim)
                     : 0;
}

/* Ends the rounds whose completions had all been polled before the CQs were polled once more: the
 * errors of the keys are there, too. */
static bool signature_end_rounds(struct signature *s, struct signature_conn *c, unsigned complete)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct signed_round *r = &c->round[i];

        if (!(complete & 1u << i)) {
            continue;
        }
        for (unsigned e = 0; e < 2; e++) {
            if (r->side[e].has_key) {
                signed_check_key(s->job, &r->side[e]);
            }
            signed_check_memory(s->job, &r->side[e], true);
        }
        s->job->sim->tally.messages += r->messages;
        s->job->sim->tally.bytes += r->wire;
        signature_free_round(s, r);
    }
    return complete;
}

static unsigned signature_complete(const struct signature_conn *c)
{
    unsigned complete = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct signed_round *r = &c->round[i];
        bool gone = r->side[0].is_gone || r->side[1].is_gone;

        complete |=
            r->runs && r->is_posted && r->done == r->messages && r->received && !gone ? 1u << i : 0;
    }
    return complete;
}

static bool signature_may_end_so(const struct signature *s, const struct signature_conn *c,
                                 const struct signed_round *r, unsigned e, enum signature_wr what,
                                 enum ibv_wc_status status)
{
    bool over = c->state != SIGNATURE_RUNS || c->troubled || c->end[e].broken;

    switch (status) {
    case IBV_WC_SUCCESS:
        return !c->end[e].broken || what == SIGNATURE_RECEIVE;
    case IBV_WC_WR_FLUSH_ERR:
        return over;
    case IBV_WC_RETRY_EXC_ERR:
        return what == SIGNATURE_MESSAGE && (over || sim_is_lossy(s->job->sim));
    case IBV_WC_LOC_PROT_ERR:
        return what != SIGNATURE_CONFIGURE && r->side[e].is_gone;
    case IBV_WC_REM_ACCESS_ERR: /* the list of a READ whose key is gone may be too long */
        return what == SIGNATURE_MESSAGE && r->opcode != IBV_WR_SEND &&
               (r->side[!e].is_gone || (r->opcode == IBV_WR_RDMA_READ && r->side[e].is_gone));
    /* An element that names a destroyed key may be too short: the key would tell its length. */
    case IBV_WC_LOC_LEN_ERR:
        return what == SIGNATURE_RECEIVE && r->side[e].is_gone;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
        return what == SIGNATURE_MESSAGE && r->opcode == IBV_WR_SEND && r->side[!e].is_gone;
    default:
        return false;
    }
}

/* A request is complete. After an error of its own key, a queue that drains executes no more. */
static void signature_sent(struct signature *s, struct signature_end *end, struct signed_round *r,
                           unsigned e, uint64_t nth, enum signature_wr what)
{
    sim_check(s->job, !end->is_drained && (!end->errors || nth < end->barrier),
              "request %" PRIu64 " of a send queue that has drained is executed", nth);
    if (what == SIGNATURE_CONFIGURE) {
        r->side[e].is_ready = true;
        return;
    }
    r->done++;
    if (end->drains && r->done == r->messages && r->side[e].error.bad) {
        end->barrier = end->errors ? end->barrier : end->send.posted;
        end->errors++;
    }
}

static void signature_take(struct signature *s, struct signature_conn *c, unsigned e,
                           const struct ibv_wc *wc)
{
    struct signature_end *end = &c->end[e];
    bool receives = wc->wr_id >> 63;
    struct signature_queue *q = receives ? &end->receive : &end->send;
    uint64_t nth = wc->wr_id << 1 >> 1;
    struct signed_round *r = q->wr[nth % WINDOW].round;
    enum signature_wr what = q->wr[nth % WINDOW].what;

    /* a configuration has several WQEs, each of which a flush completes */
    if (wc->status == IBV_WC_WR_FLUSH_ERR && what == SIGNATURE_CONFIGURE && nth + 1 == q->done) {
        return;
    }
    sim_check(s->job, nth == q->done && nth < q->posted && c->state != SIGNATURE_IS_QUIET,
              "completion %" PRIu64 ", and %" PRIu64 " of %" PRIu64 " is next", nth, q->done,
              q->posted);
    sim_check(s->job, signature_may_end_so(s, c, r, e, what, wc->status),
              "host %u: a %s ends with %s", end->host->number,
              what == SIGNATURE_CONFIGURE ? "configuration"
              : receives                  ? "receive"
                                          : "message",
              ibv_wc_status_str(wc->status));
    q->done++;
    s->job->sim->tally.checks++;
    if (wc->status != IBV_WC_SUCCESS) {
        s->job->sim->tally.errors += !end->broken;
        end->broken = true;
    } else if (receives) {
        sim_check(s->job, wc->byte_len == r->wire, "a receive has %u bytes, and %u were sent",
                  wc->byte_len, r->wire);
        r->received = true;
    } else {
        signature_sent(s, end, r, e, nth, what);
    }
}

static bool signature_poll(struct signature *s, struct signature_conn *c, unsigned e)
{
    struct ibv_wc wc;
    bool did = false;
    int n;

    while ((n = ibv_poll_cq(c->end[e].cq, 1, &wc)) > 0) {
        signature_take(s, c, e, &wc);
        did = true;
    }
    sim_check(s->job, !n, "ibv_poll_cq: %d", n);
    return did;
}

/* -- drained queues ---------------------------------------------------------------------------- */

/* Returns whether the QP is in SQD. After a fault of its peer's request it may be in error. */
static bool signature_is_in_sqd(struct signature *s, const struct signature_conn *c,
                                struct signature_end *end)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    sim_must(s->job, ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init));
    sim_check(s->job, attr.qp_state == IBV_QPS_SQD || (attr.qp_state == IBV_QPS_ERR && c->troubled),
              "a drained QP is in state %u", attr.qp_state);
    return attr.qp_state == IBV_QPS_SQD;
}

/*
 * Moves a drained QP to RTS. The device takes frames before it takes the command: a request of the
 * peer that faults there puts the QP in error after it was in SQD, and the command is refused.
 */
static void signature_leave_sqd(struct signature *s, const struct signature_conn *c,
                                struct signature_end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    if (signature_is_in_sqd(s, c, end)) {
        int refused = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);

        sim_check(s->job, !refused || !signature_is_in_sqd(s, c, end),
                  "a QP in SQD does not move to RTS: %d", refused);
    }
}

static bool signature_step_drain(struct signature *s, struct signature_conn *c,
                                 struct signature_end *end)
{
    unsigned *events = &end->told.n[IBV_EVENT_SQ_DRAINED];

    if (end->is_drained && s->job->sim->world->now_ns >= end->on_ns) {
        signature_leave_sqd(s, c, end);
        end->is_drained = false;
        end->errors = 0;
        return true;
    }
    if (!*events) {
        return false;
    }
    sim_check(s->job, *events == 1 && end->errors && !end->is_drained,
              "%u events tell that the send queue has drained, and it had %u errors", *events,
              end->errors);
    *events = 0;
    sim_note(s->job, "the send queue of QP 0x%x has drained", end->qp->qp_num);
    signature_is_in_sqd(s, c, end);
    end->is_drained = true;
    end->on_ns = s->job->sim->world->now_ns + chance_below(&s->job->chance, SIM_MS);
    return true;
}

/* -- the end of a connection ------------------------------------------------------------------- */

static void signature_drain(struct signature *s, struct signature_conn *c)
{
    c->state = SIGNATURE_ENDS;
    connect_move(s->job, c->end[0].qp, IBV_QPS_ERR);
    connect_move(s->job, c->end[1].qp, IBV_QPS_ERR);
}

static void signature_be_quiet(struct signature *s, struct signature_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        c->end[e].send.done = c->end[e].send.posted;
        c->end[e].receive.done = c->end[e].receive.posted;
    }
    c->state = SIGNATURE_IS_QUIET;
    c->quiet_ns = sim_quiet_ns(s->job->sim);
}

static void signature_destroy_qps(struct signature *s, struct signature_conn *c)
{
    sim_note(s->job, "destroys QP 0x%x and 0x%x", c->end[0].qp->qp_num, c->end[1].qp->qp_num);
    sim_must(s->job, ibv_destroy_qp(c->end[0].qp));
    sim_must(s->job, ibv_destroy_qp(c->end[1].qp));
    c->destroyed = true;
    signature_be_quiet(s, c);
}

/* Destroys a key that is in use. A key with an error stays: nobody could take the CQE that names
 * it. */
static bool signature_destroy_key(struct signature *s, struct signature_conn *c)
{
    struct signed_round *r = &c->round[chance_below(&s->job->chance, ROUNDS)];
    struct signed_side *side = &r->side[chance_below(&s->job->chance, 2)];

    if (!r->runs || !r->is_posted || r->done == r->messages || !side->has_key || !side->is_ready ||
        side->is_gone || side->error.bad) {
        return false;
    }
    sim_note(s->job, "destroys key 0x%x", side->mkey->lkey);
    c->troubled = side->is_gone = true;
    sim_must(s->job, hv_dv_destroy_mkey(side->mkey));
    side->mkey = NULL;
    memcpy(side->old, side->span.at, SIGNED_MEMORY);
    memcpy(side->want, side->span.at, SIGNED_MEMORY);
    return true;
}

/* Nothing of the rounds is under way any more. Their keys may have been configured or not: they are
 * made anew. */
static void signature_abandon(struct signature *s, struct signature_conn *c)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct signed_round *r = &c->round[i];

        for (unsigned e = 0; e < 2 && r->runs; e++) {
            struct signed_side *side = &r->side[e];

            signed_check_memory(s->job, side, false);
            if (side->has_key) {
                sim_must(s->job, side->mkey ? hv_dv_destroy_mkey(side->mkey) : 0);
                signed_make_key(s->job, side);
                side->is_gone = false;
            }
        }
        r->runs = false;
        r->rest_ns = 0;
    }
}

/* -- steps ------------------------------------------------------------------------------------- */

/* A round has ended whose key was destroyed, perhaps too late to make it fail. */
static bool signature_is_over(const struct signature_conn *c)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct signed_round *r = &c->round[i];

        if (r->runs && r->done == r->messages && (r->side[0].is_gone || r->side[1].is_gone)) {
            return true;
        }
    }
    return c->end[0].broken || c->end[1].broken;
}

static bool signature_run(struct signature *s, struct signature_conn *c)
{
    struct chance *chance = &s->job->chance;
    bool did = false, rude = s->job->sim->options.errors && chance_one_in(chance, 4);

    if (signature_is_over(c)) {
        signature_drain(s, c);
        return true;
    }
    if (rude && chance_one_in(chance, 128)) {
        (chance_one_in(chance, 2) ? signature_destroy_qps : signature_drain)(s, c);
        return true;
    }
    if (rude && chance_one_in(chance, 16) && signature_destroy_key(s, c)) {
        return true;
    }
    for (unsigned e = 0; e < 2; e++) {
        did |= signature_step_drain(s, c, &c->end[e]);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct signed_round *r = &c->round[i];

        if (r->runs && !r->is_posted && r->side[!r->from].is_ready && chance_below(chance, 4)) {
            signature_post_messages(s, c, r);
            did = true;
        }
    }
    return signature_begin(s, c) || did;
}

static bool signature_queues_are_empty(const struct signature_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        const struct signature_end *end = &c->end[e];

        if (end->send.done < end->send.posted || end->receive.done < end->receive.posted) {
            return false;
        }
    }
    return true;
}

static bool signature_step_conn(struct signature *s, struct signature_conn *c)
{
    unsigned complete = signature_complete(c);
    bool did = signature_poll(s, c, 0);

    did |= signature_poll(s, c, 1);
    did |= signature_end_rounds(s, c, complete);
    switch (c->state) {
    case SIGNATURE_RUNS:
        return signature_run(s, c) || did;
    case SIGNATURE_ENDS:
        if (signature_queues_are_empty(c)) {
            signature_be_quiet(s, c);
            return true;
        }
        return did;
    default:
        if (s->job->sim->world->now_ns < c->quiet_ns) {
            return did;
        }
        signature_abandon(s, c);
        signature_connect(s, c);
        return true;
    }
}

static void kind_signature_make(struct job *job)
{
    struct signature *s = job->state;

    s->job = job;
    s->limit = job->sim->options.ops / 4 + 1;
    for (unsigned i = 0; i < CONNS; i++) {
        struct signature_conn *c = &s->conn[i];

        for (unsigned e = 0; e < 2; e++) {
            struct signature_end *end = &c->end[e];

            end->host = job->host[e];
            end->cq = ibv_create_cq(end->host->ctx, 4 * WINDOW, NULL, NULL, 0);
            sim_check(job, end->cq, "no CQ: errno %d", errno);
            for (unsigned r = 0; r < ROUNDS; r++) {
                signed_init(job, &c->round[r].side[e], end->host);
            }
        }
        signature_connect(s, c);
    }
}

static bool kind_signature_step(struct job *job)
{
    struct signature *s = job->state;
    bool did = signature_step_conn(s, &s->conn[0]);

    return signature_step_conn(s, &s->conn[1]) || did;
}

static bool kind_signature_is_done(const struct job *job)
{
    const struct signature *s = job->state;

    for (unsigned i = 0; i < CONNS; i++) {
        const struct signature_conn *c = &s->conn[i];

        if (c->state != SIGNATURE_RUNS || c->begun < s->limit || c->end[0].errors ||
            c->end[1].errors || c->end[0].broken || c->end[1].broken) {
            return false;
        }
        for (unsigned r = 0; r < ROUNDS; r++) {
            if (c->round[r].runs) {
                return false;
            }
        }
    }
    return true;
}

static void kind_signature_free(struct job *job)
{
    struct signature *s = job->state;

    for (unsigned i = 0; i < CONNS; i++) {
        struct signature_conn *c = &s->conn[i];

        for (unsigned e = 0; e < 2; e++) {
            sim_must(job, ibv_destroy_qp(c->end[e].qp));
            sim_must(job, ibv_destroy_cq(c->end[e].cq));
            for (unsigned r = 0; r < ROUNDS; r++) {
                signed_free(job, &c->round[r].side[e]);
            }
        }
    }
}

const struct kind kind_signature = {
    .name = "signature",
    .about = "keys with block signatures, some blocks damaged, which the device finds and names",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct signature),
    .make = kind_signature_make,
    .step = kind_signature_step,
    .is_done = kind_signature_is_done,
    .free = kind_signature_free,
};
