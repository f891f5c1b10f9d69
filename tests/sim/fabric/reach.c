/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements reach.h: connections, operations and their expected results. */
#include "tests/sim/fabric/reach.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "tests/sim/fabric/connect.h"

#define RECEIVE_WR (1ull << 63) /* flag in wr_id */
#define BATCH      4u

static struct reach_op *reach_op_at(struct reach_end *end, uint64_t nth)
{
    return &end->ops[nth % REACH_WINDOW];
}

/* -- made and connected ------------------------------------------------------------------------ */

struct ibv_qp *reach_make_qp(struct reach *r, struct sim_host *host, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = REACH_WINDOW,
                                            .max_recv_wr = REACH_RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};

    return ibv_create_qp(host->pd, &attr);
}

static void reach_connect(struct reach *r, struct reach_conn *c)
{
    struct sim_host *const host[2] = {c->end[0].host, c->end[1].host};
    struct ibv_qp *qp[2];

    for (unsigned i = 0; i < 2; i++) {
        struct reach_end *end = &c->end[i];
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

        if (end->qp && !c->destroyed) {
            sim_must(r->job, ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
        } else {
            end->qp = r->make_qp(r, end->host, end->cq);
            sim_check(r->job, end->qp, "no QP: errno %d", errno);
        }
        qp[i] = end->qp;
        end->broken = end->refuses = end->refused = false;
    }
    connect_rc(r->job, host, qp);
    c->destroyed = c->troubled = false;
    c->state = REACH_RUNS;
}

void reach_init(struct reach *r, struct job *job)
{
    r->job = job;
    r->limit = job->sim->options.ops;
    r->window = (unsigned)CLAMP(job->sim->options.window, 2, REACH_WINDOW);
    for (unsigned i = 0; i < REACH_CONNS; i++) {
        struct reach_conn *c = &r->conn[i];

        for (unsigned e = 0; e < 2; e++) {
            c->end[e].host = job->host[e];
            c->end[e].cq =
                ibv_create_cq(job->host[e]->ctx, REACH_WINDOW + REACH_RECEIVES, NULL, NULL, 0);
            sim_check(job, c->end[e].cq, "no CQ: errno %d", errno);
        }
        reach_connect(r, c);
    }
}

void reach_free(struct reach *r)
{
    for (unsigned i = 0; i < REACH_CONNS; i++) {
        for (unsigned e = 0; e < 2; e++) {
            sim_must(r->job, ibv_destroy_qp(r->conn[i].end[e].qp));
            sim_must(r->job, ibv_destroy_cq(r->conn[i].end[e].cq));
        }
    }
}

bool reach_may_be_rude(struct reach *r)
{
    return r->job->sim->options.errors && chance_one_in(&r->job->chance, 6);
}

/* -- posting ----------------------------------------------------------------------------------- */

struct reach_op *reach_claim(struct reach *r, struct reach_conn *c, unsigned e, uint64_t *id)
{
    struct reach_end *end = &c->end[e];
    struct reach_op *op;

    if (c->state != REACH_RUNS || end->broken || end->posted - end->done >= r->window) {
        return NULL;
    }
    *id = end->posted++;
    op = reach_op_at(end, *id);
    *op = (struct reach_op){.what = REACH_CTRL};
    return op;
}

void reach_is_in_vain(struct reach_conn *c, unsigned e, struct reach_op *op)
{
    op->in_vain = true;
    c->end[!e].refuses = true;
    c->troubled = true;
}

static bool reach_is_good(const struct place *p, unsigned need, uint32_t qpn)
{
    return p->rights & ~p->doubtful & need && (!p->only || p->only == qpn);
}

/* Returns a place whose key allows this operation; or any place, for an operation that must fail.
 * NULL: there is none. */
static struct place *reach_choose(struct reach *r, struct place *const *places, unsigned need,
                                  uint32_t qpn, bool any)
{
    unsigned first = (unsigned)chance_below(&r->job->chance, REACH_PLACES);

    for (unsigned i = 0; i < REACH_PLACES; i++) {
        struct place *p = places[(first + i) % REACH_PLACES];

        if (p && p->key && !p->rests && (any || reach_is_good(p, need, qpn))) {
            return p;
        }
    }
    return NULL;
}

/* Returns whether an operation writes to the near side's memory. */
static bool reach_writes_near(const struct reach_op *op)
{
    return op->what == REACH_READ || op->what == REACH_FETCH_ADD;
}

static bool reach_writes_far(const struct reach_op *op)
{
    return op->what == REACH_WRITE || op->what == REACH_FETCH_ADD;
}

struct reach_wr {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/* Records the state of the keys at this moment. Returns the key to name. */
static uint32_t reach_weigh(struct reach *r, struct reach_conn *c, unsigned e, struct reach_op *op,
                            bool bad)
{
    uint32_t key = op->far->key;

    op->near_bad = !(op->near->rights & op->near_need);
    op->near_lost = op->near->doubtful & op->near_need;
    op->far_bad = !(op->far->rights & op->far_need) ||
                  (op->far->only && op->far->only != c->end[!e].qp->qp_num);
    op->far_lost = op->far->doubtful & op->far_need;
    if (bad && op->far->stale && chance_one_in(&r->job->chance, 2)) {
        key = op->far->stale;
        op->far_bad = true;
    }
    c->troubled |= op->near_bad || op->near_lost || op->far_bad || op->far_lost;
    if (reach_writes_near(op) && !op->near_bad) {
        place_set_loose(op->near, op->near_slot);
    }
    if (reach_writes_far(op) && !op->far_bad) {
        place_set_loose(op->far, op->far_slot);
    }
    return key;
}

static void reach_dress(struct reach_op *op, struct reach_wr *w, uint64_t id, uint32_t key)
{
    uint64_t far = place_slot_va(op->far, op->far_slot);

    w->sge = (struct ibv_sge){place_slot_va(op->near, op->near_slot), op->len, op->near->key};
    w->wr = (struct ibv_send_wr){
        .wr_id = id, .sg_list = &w->sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    if (op->what == REACH_FETCH_ADD) {
        w->wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        w->wr.wr.atomic.remote_addr = far;
        w->wr.wr.atomic.compare_add = op->add;
        w->wr.wr.atomic.rkey = key;
        return;
    }
    w->wr.opcode = op->what == REACH_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    w->wr.wr.rdma.remote_addr = far;
    w->wr.wr.rdma.rkey = key;
}

/* Plans an operation into the ring's next entry. Returns false if no place has room. */
static bool reach_plan(struct reach *r, struct reach_conn *c, unsigned e, struct reach_wr *w)
{
    static const unsigned needs[] = {[REACH_WRITE] = IBV_ACCESS_REMOTE_WRITE,
                                     [REACH_READ] = IBV_ACCESS_REMOTE_READ,
                                     [REACH_FETCH_ADD] = IBV_ACCESS_REMOTE_ATOMIC};
    struct chance *chance = &r->job->chance;
    struct reach_op plan = {.what = (enum reach_what)chance_below(chance, REACH_CTRL),
                            .near_need = PLACE_LOCAL};
    bool bad = chance_happens(chance, (unsigned)r->job->sim->options.errors);
    struct reach_op *op;
    uint64_t id;
    int near, far;

    plan.far_need = needs[plan.what];
    plan.near = reach_choose(r, r->near[e], plan.near_need, 0, bad && chance_one_in(chance, 4));
    plan.far = reach_choose(r, r->far[!e], plan.far_need, c->end[!e].qp->qp_num, bad);
    if (!plan.near || !plan.far) {
        return false;
    }
    near = place_take_slot(plan.near);
    far = place_take_slot(plan.far);
    op = near >= 0 && far >= 0 ? reach_claim(r, c, e, &id) : NULL;
    if (!op) {
        if (near >= 0) {
            place_give_slot(plan.near, (unsigned)near);
        }
        if (far >= 0) {
            place_give_slot(plan.far, (unsigned)far);
        }
        return false;
    }
    plan.near_slot = (unsigned)near;
    plan.far_slot = (unsigned)far;
    plan.len = plan.what == REACH_FETCH_ADD
                   ? 8
                   : (uint32_t)chance_from(chance, 1, MIN(plan.near->slot, plan.far->slot));
    plan.add = chance_next(chance);
    memcpy(&plan.found, place_slot(plan.far, plan.far_slot), sizeof(plan.found));
    *op = plan;
    reach_dress(op, w, id, reach_weigh(r, c, e, op, bad));
    return true;
}

static bool reach_post(struct reach *r, struct reach_conn *c, unsigned e)
{
    struct reach_wr w[BATCH];
    struct ibv_send_wr *bad;
    unsigned n = 0, most = (unsigned)chance_from(&r->job->chance, 1, BATCH);

    while (n < most && c->ops < r->limit && reach_plan(r, c, e, &w[n])) {
        c->ops++;
        n++;
    }
    for (unsigned i = 0; i + 1 < n; i++) {
        w[i].wr.next = &w[i + 1].wr;
    }
    if (n) {
        sim_must(r->job, ibv_post_send(c->end[e].qp, &w[0].wr, &bad));
    }
    return n;
}

static void reach_post_receives(struct reach *r, struct reach_end *end)
{
    struct ibv_recv_wr wr = {.wr_id = RECEIVE_WR}, *bad;

    while (r->received && end->receives < REACH_RECEIVES) {
        sim_must(r->job, ibv_post_recv(end->qp, &wr, &bad));
        end->receives++;
    }
}

/* -- results ----------------------------------------------------------------------------------- */

/* Returns the bytes that an operation brings to the slot that it writes to. */
static const uint8_t *reach_brings(const struct reach_op *op, bool far, uint64_t *word)
{
    if (op->what == REACH_FETCH_ADD) {
        *word += far ? op->add : 0;
        return (const uint8_t *)word;
    }
    return far ? place_slot(op->near, op->near_slot) : place_slot(op->far, op->far_slot);
}

/* Updates both sides' slots with what was written, as far as it may have been written; must: it was
 * written. */
static void reach_settle(struct reach *r, struct reach_op *op, bool must)
{
    uint64_t found = op->found, sum = op->found;
    const uint8_t *near = reach_brings(op, false, &found), *far = reach_brings(op, true, &sum);
    bool atomic = op->what == REACH_FETCH_ADD;

    if (reach_writes_far(op)) {
        if (op->far->loose >> op->far_slot & 1) {
            place_settle(op->far, op->far_slot, far, op->len, atomic);
        }
        sim_check(r->job, !must || !memcmp(place_slot(op->far, op->far_slot), far, op->len),
                  "a WRITE or atomic is complete, and its bytes are not there");
    }
    if (reach_writes_near(op)) {
        if (op->near->loose >> op->near_slot & 1) {
            place_settle(op->near, op->near_slot, near, op->len, false);
        }
        sim_check(r->job, !must || !memcmp(place_slot(op->near, op->near_slot), near, op->len),
                  "a READ or atomic is complete, and its bytes are not there");
    }
}

static void reach_release(struct reach *r, struct reach_op *op, bool must)
{
    if (op->what != REACH_CTRL) {
        reach_settle(r, op, must);
        place_give_slot(op->near, op->near_slot);
        place_give_slot(op->far, op->far_slot);
    }
}

static bool reach_may_end_so(const struct reach *r, const struct reach_conn *c,
                             const struct reach_op *op, enum ibv_wc_status status)
{
    bool over = c->state != REACH_RUNS || c->troubled;

    switch (status) {
    case IBV_WC_SUCCESS:
        return !op->near_bad && !op->far_bad && !op->must_fail && !op->in_vain;
    case IBV_WC_REM_ACCESS_ERR:
        return op->far_bad || op->far_lost;
    case IBV_WC_LOC_PROT_ERR:
        return op->near_bad || op->near_lost;
    case IBV_WC_MW_BIND_ERR:
        return op->must_fail;
    case IBV_WC_WR_FLUSH_ERR:
        return over;
    case IBV_WC_RETRY_EXC_ERR:
        return over || sim_is_lossy(r->job->sim);
    default:
        return false;
    }
}

/* The end that failed must be in the error state, and so must the end that refused. */
static void reach_check_states(struct reach *r, struct reach_conn *c, unsigned e, bool refused)
{
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr attr;

        if (i == e || refused) {
            sim_must(r->job, ibv_query_qp(c->end[i].qp, &attr, IBV_QP_STATE, &init));
            sim_check(r->job, attr.qp_state == IBV_QPS_ERR, "a QP of host %u is in state %u",
                      c->end[i].host->number, attr.qp_state);
        }
    }
}

static void reach_sent(struct reach *r, struct reach_conn *c, unsigned e, const struct ibv_wc *wc)
{
    struct reach_end *end = &c->end[e];
    struct reach_op *op = reach_op_at(end, end->done);

    sim_check(r->job, wc->wr_id == end->done && end->done < end->posted,
              "completion %" PRIu64 ", and %" PRIu64 " of %" PRIu64 " is next", wc->wr_id,
              end->done, end->posted);
    sim_check(r->job,
              end->broken ? wc->status == IBV_WC_WR_FLUSH_ERR
                          : reach_may_end_so(r, c, op, wc->status),
              "operation %" PRIu64 " (%u) ends with %s", wc->wr_id, op->what,
              ibv_wc_status_str(wc->status));
    r->job->sim->tally.checks++;
    end->done++;
    if (wc->status == IBV_WC_SUCCESS) {
        reach_release(r, op, true);
        end->settled = end->done;
        r->job->sim->tally.messages++;
        r->job->sim->tally.bytes += op->len;
    } else if (!end->broken) {
        sim_note(r->job, "operation %" PRIu64 " of host %u ends with %s", wc->wr_id,
                 end->host->number, ibv_wc_status_str(wc->status));
        end->broken = true;
        r->job->sim->tally.errors++;
        reach_check_states(r, c, e, wc->status == IBV_WC_REM_ACCESS_ERR);
        sim_check(r->job,
                  !op->in_vain || wc->status != IBV_WC_RETRY_EXC_ERR || c->state != REACH_RUNS ||
                      sim_is_lossy(r->job->sim) || c->end[!e].broken || c->end[!e].refused,
                  "a SEND that must be refused was heard of nowhere");
    }
    if (op->what == REACH_CTRL) {
        r->ctrl_done(r, c, e, op, wc->status);
    }
}

static bool reach_may_receive_so(const struct reach_conn *c, const struct reach_end *end,
                                 enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return !end->refused;
    case IBV_WC_MW_BIND_ERR:
        return end->refuses && !end->refused;
    case IBV_WC_WR_FLUSH_ERR:
        return c->state != REACH_RUNS || c->troubled;
    default:
        return false;
    }
}

static void reach_took(struct reach *r, struct reach_conn *c, unsigned e, const struct ibv_wc *wc)
{
    struct reach_end *end = &c->end[e];

    sim_check(r->job, end->receives, "a receive completes that is not posted");
    end->receives--;
    sim_check(r->job, reach_may_receive_so(c, end, wc->status), "a receive ends with %s",
              ibv_wc_status_str(wc->status));
    if (wc->status == IBV_WC_SUCCESS) {
        r->received(r, c, e, wc);
    } else if (wc->status == IBV_WC_MW_BIND_ERR) {
        sim_note(r->job, "host %u refuses a SEND", end->host->number);
        end->refused = true;
        reach_check_states(r, c, e, false);
        r->job->sim->tally.errors++;
        r->job->sim->tally.checks++;
    }
}

static bool reach_poll(struct reach *r, struct reach_conn *c, unsigned e)
{
    struct reach_end *end = &c->end[e];
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(end->cq, 1, &wc) > 0) {
        sim_check(r->job, c->state != REACH_IS_QUIET && wc.qp_num == end->qp->qp_num,
                  "a completion of QP 0x%x, which has none outstanding", wc.qp_num);
        if (wc.wr_id & RECEIVE_WR) {
            reach_took(r, c, e, &wc);
        } else {
            reach_sent(r, c, e, &wc);
        }
        did = true;
    }
    return did;
}

/* -- keys that lose rights --------------------------------------------------------------------- */

typedef void reach_op_fn(struct reach *r, struct reach_conn *c, struct reach_op *op,
                         struct place *p);

/* Calls a function for all operations that may still have effects. */
static void reach_each(struct reach *r, struct place *p, reach_op_fn *fn)
{
    for (unsigned i = 0; i < 2 * REACH_CONNS; i++) {
        struct reach_conn *c = &r->conn[i / 2];
        struct reach_end *end = &c->end[i % 2];

        for (uint64_t nth = end->settled; nth < end->posted; nth++) {
            struct reach_op *op = reach_op_at(end, nth);

            if (op->what != REACH_CTRL && (op->near == p || op->far == p)) {
                fn(r, c, op, p);
            }
        }
    }
}

static void reach_op_loses(struct reach *r, struct reach_conn *c, struct reach_op *op,
                           struct place *p)
{
    op->near_lost |= op->near == p && op->near_need & p->doubtful;
    op->far_lost |= op->far == p && op->far_need & p->doubtful;
    c->troubled |= op->near_lost || op->far_lost;
}

void reach_loses(struct reach *r, struct place *p, unsigned rights)
{
    p->doubtful |= rights;
    reach_each(r, p, reach_op_loses);
}

/* From here on the operation changes nothing. */
static void reach_op_has_lost(struct reach *r, struct reach_conn *c, struct reach_op *op,
                              struct place *p)
{
    uint64_t found = op->found, sum = op->found;

    if (op->near == p && !(p->rights & op->near_need) && p->loose >> op->near_slot & 1) {
        place_settle(p, op->near_slot, reach_brings(op, false, &found), op->len, false);
    }
    if (op->far == p && !(p->rights & op->far_need) && p->loose >> op->far_slot & 1) {
        place_settle(p, op->far_slot, reach_brings(op, true, &sum), op->len,
                     op->what == REACH_FETCH_ADD);
    }
}

void reach_has_lost(struct reach *r, struct place *p)
{
    p->rights &= ~p->doubtful;
    p->doubtful = 0;
    reach_each(r, p, reach_op_has_lost);
    place_check(p);
}

void reach_keeps(struct place *p)
{
    p->doubtful = 0;
}

/* -- the end of a connection ------------------------------------------------------------------- */

/* None of its operations writes any more. */
static void reach_be_quiet(struct reach *r, struct reach_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        struct reach_end *end = &c->end[e];

        while (end->settled < end->posted) {
            reach_release(r, reach_op_at(end, end->settled++), false);
        }
        end->done = end->posted;
    }
    if (r->ended) {
        r->ended(r, c);
    }
    c->state = REACH_IS_QUIET;
    c->quiet_ns = sim_quiet_ns(r->job->sim);
}

static void reach_destroy_qps(struct reach *r, struct reach_conn *c)
{
    sim_note(r->job, "destroys QP 0x%x and 0x%x", c->end[0].qp->qp_num, c->end[1].qp->qp_num);
    for (unsigned e = 0; e < 2; e++) {
        struct reach_end *end = &c->end[e];

        sim_must(r->job, ibv_destroy_qp(end->qp));
        end->receives = 0;
        end->broken = true;
        while (end->done < end->posted) {
            const struct reach_op *op = reach_op_at(end, end->done++);

            if (op->what == REACH_CTRL) {
                r->ctrl_done(r, c, e, op, IBV_WC_WR_FLUSH_ERR);
            }
        }
    }
    c->destroyed = true;
    reach_be_quiet(r, c);
}

void reach_end_conn(struct reach *r, struct reach_conn *c, bool destroy)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (destroy) {
        reach_destroy_qps(r, c);
        return;
    }
    c->state = REACH_DRAINS;
    for (unsigned e = 0; e < 2; e++) {
        sim_must(r->job, ibv_modify_qp(c->end[e].qp, &attr, IBV_QP_STATE));
    }
}

static bool reach_is_drained(const struct reach_conn *c)
{
    return c->end[0].done == c->end[0].posted && c->end[1].done == c->end[1].posted &&
           !c->end[0].receives && !c->end[1].receives;
}

/* -- steps ------------------------------------------------------------------------------------- */

static bool reach_run_conn(struct reach *r, struct reach_conn *c)
{
    bool did = false;

    for (unsigned e = 0; e < 2; e++) {
        reach_post_receives(r, &c->end[e]);
        if (chance_below(&r->job->chance, 4)) {
            did |= reach_post(r, c, e);
        }
    }
    return did;
}

static bool reach_step_conn(struct reach *r, struct reach_conn *c)
{
    bool did = reach_poll(r, c, 0);

    did |= reach_poll(r, c, 1);
    switch (c->state) {
    case REACH_RUNS:
        if (c->end[0].broken || c->end[1].broken) {
            reach_end_conn(r, c, false);
            return true;
        }
        return reach_run_conn(r, c) || did;
    case REACH_DRAINS:
        if (reach_is_drained(c)) {
            reach_be_quiet(r, c);
            return true;
        }
        return did;
    default:
        if (r->job->sim->world->now_ns >= c->quiet_ns) {
            reach_connect(r, c);
            return true;
        }
        return did;
    }
}

/* A host writes to its memory, or checks it. */
static void reach_touch(struct reach *r)
{
    unsigned e = (unsigned)chance_below(&r->job->chance, 2);
    unsigned nth = (unsigned)chance_below(&r->job->chance, REACH_PLACES);
    struct place *p = chance_one_in(&r->job->chance, 2) ? r->near[e][nth] : r->far[e][nth];

    if (p && p->key) {
        place_check(p);
        place_scribble(p);
    }
}

bool reach_step(struct reach *r)
{
    bool did = false;

    for (unsigned i = 0; i < REACH_CONNS; i++) {
        did |= reach_step_conn(r, &r->conn[i]);
    }
    if (chance_one_in(&r->job->chance, 8)) {
        reach_touch(r);
    }
    return did;
}

bool reach_is_done(const struct reach *r)
{
    for (unsigned i = 0; i < REACH_CONNS; i++) {
        const struct reach_conn *c = &r->conn[i];

        if (c->state != REACH_RUNS || c->ops < r->limit || c->end[0].done != c->end[0].posted ||
            c->end[1].done != c->end[1].posted || c->end[0].broken || c->end[1].broken) {
            return false;
        }
    }
    return true;
}

void reach_check(struct reach *r)
{
    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        const struct place *near = r->near[i % 2][i / 2], *far = r->far[i % 2][i / 2];

        if (near && near->key) {
            place_check(near);
        }
        if (far && far->key) {
            place_check(far);
        }
    }
}
