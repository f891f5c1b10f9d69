/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of type 1 and 2 under traffic: bound, bound again, invalidated by their owner and
 * by the peer, deallocated and made again. A bound window lets in the peers that may use it.
 * From the completion on that ends the binding, it lets in no peer. A window of type 2 lets in
 * only the peer of the QP that has bound it, and only that peer can invalidate it: a SEND that is
 * to invalidate another key is refused, and that key stays valid.
 */
#include "tests/sim/fabric/outsider.h"
#include "tests/sim/fabric/reach.h"
#include <errno.h>

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define NEARS  2u

enum mw_ctrl {
    MW_NONE,
    MW_BINDS,
    MW_UNBINDS,        /* invalidated by its owner */
    MW_IS_INVALIDATED, /* invalidated by the peer */
    MW_BINDS_IN_VAIN,  /* binds a window that is already bound */
    MW_INVALIDATES_IN_VAIN,
};

struct window {
    struct place place;
    unsigned host;
    enum ibv_mw_type type;
    struct ibv_mw *mw;
    struct ibv_mr *mr;
    enum mw_ctrl ctrl; /* operation under way */
    unsigned conn;     /* its connection, or the connection where it was bound */
    bool goes;         /* deallocate when it is not in use */
    bool unsure;       /* the operation was flushed, and may have been executed before */
    uint64_t turn;     /* counts operations on the window */
    uint32_t tried;    /* the last key that it was to have */
    uint64_t va;       /* the address that it is to have, with that key */
    unsigned rights;
};

struct mw {
    struct reach reach; /* first member, so a pointer to it is also one to the struct */
    struct place near[2][NEARS];
    struct span span[2][NEARS];
    struct window window[2][REACH_PLACES];
    struct span behind[2][REACH_PLACES]; /* memory of the windows */
    struct outsider outsider[2];
};

static uint32_t mw_qpn(const struct reach *r, const struct window *w)
{
    return r->conn[w->conn].end[w->host].qp->qp_num;
}

static void mw_alloc(struct window *w)
{
    w->mw = ibv_alloc_mw(w->place.host->pd, w->type);
    sim_check(w->place.job, w->mw, "no window: errno %d", errno);
    w->tried = w->mw->rkey;
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Begins an operation on that connection, at the end of the window's owner or of the peer. Returns
 * false if there is no room. */
static bool mw_begin(struct reach *r, struct window *w, enum mw_ctrl ctrl, uint64_t *id)
{
    struct reach_op *op =
        reach_claim(r, &r->conn[w->conn], ctrl == MW_IS_INVALIDATED ? !w->host : w->host, id);

    if (op) {
        op->ctrl = w->ctrl = ctrl;
        op->about = w;
        op->add = ++w->turn;
    }
    return op;
}

/* Draws where the window is bound, over which memory, and with which rights. */
static struct ibv_mw_bind_info mw_info(struct reach *r, struct window *w)
{
    static const unsigned rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
                                      IBV_ACCESS_REMOTE_ATOMIC};
    unsigned access = rights[chance_below(&r->job->chance, G_N_ELEMENTS(rights))];
    bool zero = w->type == IBV_MW_TYPE_2 && chance_one_in(&r->job->chance, 2);

    access |= (unsigned)chance_next(&r->job->chance) & REMOTE;
    w->rights = access;
    w->va = zero ? 0 : (uintptr_t)w->place.part[0].at;
    return (struct ibv_mw_bind_info){.mr = w->mr,
                                     .addr = (uintptr_t)w->place.part[0].at,
                                     .length = place_bytes(&w->place),
                                     .mw_access_flags =
                                         access | (zero ? IBV_ACCESS_ZERO_BASED : 0)};
}

static void mw_post(struct reach *r, unsigned conn, unsigned end, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags = IBV_SEND_SIGNALED;
    sim_must(r->job, ibv_post_send(r->conn[conn].end[end].qp, wr, &bad));
}

static void mw_bind_type_1(struct reach *r, struct window *w, const struct ibv_mw_bind_info *info,
                           uint64_t id)
{
    struct ibv_mw_bind bind = {.wr_id = id, .send_flags = IBV_SEND_SIGNALED, .bind_info = *info};

    sim_must(r->job, ibv_bind_mw(r->conn[w->conn].end[w->host].qp, w->mw, &bind));
    w->tried = w->mw->rkey;
}

static void mw_bind_type_2(struct reach *r, struct window *w, const struct ibv_mw_bind_info *info,
                           uint64_t id)
{
    struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_BIND_MW};

    w->tried = ibv_inc_rkey(w->tried);
    wr.bind_mw.mw = w->mw;
    wr.bind_mw.rkey = w->tried;
    wr.bind_mw.bind_info = *info;
    mw_post(r, w->conn, w->host, &wr);
}

/* Binds. A window of type 1 may be bound already: its key changes. */
static bool mw_bind(struct reach *r, struct window *w)
{
    struct ibv_mw_bind_info info;
    uint64_t id;

    w->conn = (unsigned)chance_below(&r->job->chance, REACH_CONNS);
    if (!mw_begin(r, w, MW_BINDS, &id)) {
        return false;
    }
    reach_loses(r, &w->place, PLACE_ALL);
    info = mw_info(r, w);
    if (w->type == IBV_MW_TYPE_1) {
        mw_bind_type_1(r, w, &info, id);
    } else {
        mw_bind_type_2(r, w, &info, id);
    }
    return true;
}

static bool mw_unbind(struct reach *r, struct window *w)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = w->place.key};
    struct ibv_mw_bind_info none = {0};
    uint64_t id;

    if (!mw_begin(r, w, MW_UNBINDS, &id)) {
        return false;
    }
    reach_loses(r, &w->place, PLACE_ALL);
    wr.wr_id = id;
    if (w->type == IBV_MW_TYPE_1) {
        mw_bind_type_1(r, w, &none, id);
    } else {
        mw_post(r, w->conn, w->host, &wr);
    }
    return true;
}

static bool mw_invalidate(struct reach *r, struct window *w)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = w->place.key};
    uint64_t id;

    if (!mw_begin(r, w, MW_IS_INVALIDATED, &id)) {
        return false;
    }
    reach_loses(r, &w->place, PLACE_ALL);
    wr.wr_id = id;
    mw_post(r, w->conn, !w->host, &wr);
    return true;
}

/* Binds a window of type 2 that must be invalidated before: this must fail. */
static bool mw_bind_in_vain(struct reach *r, struct window *w)
{
    struct reach_conn *c = &r->conn[w->conn];
    uint32_t tried = w->tried;
    struct ibv_mw_bind_info info;
    struct reach_op *op;
    uint64_t id, va = w->va;
    unsigned rights = w->rights;

    op = reach_claim(r, c, w->host, &id);
    if (!op) {
        return false;
    }
    op->ctrl = w->ctrl = MW_BINDS_IN_VAIN;
    op->about = w;
    op->must_fail = c->troubled = true;
    info = mw_info(r, w);
    mw_bind_type_2(r, w, &info, id);
    w->tried = tried;
    w->va = va;
    w->rights = rights;
    return true;
}

/* Returns the key of an open window of that host and of such a type that was not bound by that
 * QP. */
static uint32_t mw_open_elsewhere(const struct mw *m, unsigned host, enum ibv_mw_type type,
                                  uint32_t qpn)
{
    for (unsigned i = 0; i < REACH_PLACES; i++) {
        const struct window *w = &m->window[host][i];

        if (w->type == type && w->place.rights && w->place.only != qpn) {
            return w->place.key;
        }
    }
    return 0;
}

/* Returns a key that a peer must not invalidate through that QP of the host. */
static uint32_t mw_wrong_key(struct mw *m, unsigned host, uint32_t qpn)
{
    struct chance *chance = &m->reach.job->chance;
    uint32_t key = 0;

    switch (chance_below(chance, 5)) {
    case 0: /* bound by another QP */
        key = mw_open_elsewhere(m, host, IBV_MW_TYPE_2, qpn);
        break;
    case 1: /* of type 1: only its owner may close it */
        key = mw_open_elsewhere(m, host, IBV_MW_TYPE_1, qpn);
        break;
    case 2: /* of another protection domain */
        key = m->outsider[host].laid ? m->outsider[host].key->rkey : 0;
        break;
    case 3: /* a key that the window had long ago, or will have */
        key = m->window[host][1].place.key ^ 0x80;
        break;
    default: /* no window's key */
        return 0xfffffe00 | (uint32_t)chance_below(chance, 256);
    }
    /* key of a registered region */
    return key ? key : m->span[host][chance_below(chance, NEARS)].mr->rkey;
}

/* Invalidates a wrong key; mw_invalidate() does it with the right key. */
static bool mw_invalidate_in_vain(struct mw *m)
{
    struct reach *r = &m->reach;
    unsigned conn = (unsigned)chance_below(&r->job->chance, REACH_CONNS);
    unsigned end = (unsigned)chance_below(&r->job->chance, 2);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV};
    struct reach_conn *c = &r->conn[conn];
    struct reach_op *op = reach_claim(r, c, end, &wr.wr_id);

    if (!op) {
        return false;
    }
    wr.invalidate_rkey = mw_wrong_key(m, !end, c->end[!end].qp->qp_num);
    op->ctrl = MW_INVALIDATES_IN_VAIN;
    op->add = wr.invalidate_rkey;
    reach_is_in_vain(c, end, op);
    sim_note(r->job, "host %u is to invalidate 0x%x, which it must not", c->end[!end].host->number,
             wr.invalidate_rkey);
    mw_post(r, conn, end, &wr);
    return true;
}

static bool mw_replace(struct reach *r, struct window *w)
{
    reach_loses(r, &w->place, PLACE_ALL);
    sim_must(r->job, ibv_dealloc_mw(w->mw));
    reach_has_lost(r, &w->place);
    w->place.rests = w->unsure = false;
    mw_alloc(w);
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

static void mw_is_over(struct reach *r, struct window *w, bool happened)
{
    if (happened) {
        reach_has_lost(r, &w->place);
        sim_note(r->job, "window 0x%x of host %u is closed", w->place.key, w->place.host->number);
    } else {
        reach_keeps(&w->place);
    }
    w->place.rests = false;
    w->ctrl = MW_NONE;
}

static void mw_ctrl_done(struct reach *r, struct reach_conn *c, unsigned end,
                         const struct reach_op *op, enum ibv_wc_status status)
{
    struct window *w = op->about;
    bool happened = status == IBV_WC_SUCCESS;
    bool binds = op->ctrl == MW_BINDS;
    struct mw *m = (struct mw *)r;

    if (op->ctrl == MW_INVALIDATES_IN_VAIN) {
        if (op->add == m->outsider[!end].key->rkey) {
            outsiders_look(r->job, m->outsider, !end);
        }
        return;
    }
    if (op->ctrl == MW_IS_INVALIDATED) {
        /* An operation that failed here may have been received there, which mw_ended() reports. */
        if (happened && w->ctrl == MW_IS_INVALIDATED && op->add == w->turn) {
            mw_is_over(r, w, true);
        }
        return;
    }
    if (op->ctrl == MW_BINDS_IN_VAIN) {
        w->ctrl = MW_NONE;
        return;
    }
    if (!happened) { /* its completion may have waited for completions of earlier requests */
        w->ctrl = MW_NONE;
        w->unsure = true;
        return;
    }
    mw_is_over(r, w, true);
    if (binds) {
        place_open(&w->place, w->va, w->tried, w->rights);
        w->place.only = w->type == IBV_MW_TYPE_2 ? mw_qpn(r, w) : 0;
        sim_note(r->job, "window 0x%x of host %u is bound", w->tried, w->place.host->number);
    }
}

static void mw_received(struct reach *r, struct reach_conn *c, unsigned end,
                        const struct ibv_wc *wc)
{
    struct mw *m = (struct mw *)r;
    bool known = false;

    sim_check(r->job, wc->wc_flags & IBV_WC_WITH_INV, "a receive does not say that it invalidates");
    for (unsigned i = 0; i < REACH_PLACES; i++) {
        struct window *w = &m->window[end][i];

        /* the sender may have known first, and bound the window again */
        known |= w->place.key == wc->invalidated_rkey || w->place.stale == wc->invalidated_rkey;
        if (w->place.key == wc->invalidated_rkey && w->ctrl == MW_IS_INVALIDATED &&
            &r->conn[w->conn] == c) {
            mw_is_over(r, w, true);
        }
    }
    sim_check(r->job, known, "a receive invalidates 0x%x, which is no window's",
              wc->invalidated_rkey);
}

static void mw_ended(struct reach *r, struct reach_conn *c)
{
    struct mw *m = (struct mw *)r;

    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        struct window *w = &m->window[i % 2][i / 2];

        if (w->ctrl == MW_IS_INVALIDATED && &r->conn[w->conn] == c) {
            mw_is_over(r, w, false);
        }
    }
}

/* -- steps ------------------------------------------------------------------------------------- */

static bool mw_close(struct reach *r, struct window *w)
{
    switch (chance_below(&r->job->chance, w->type == IBV_MW_TYPE_1 ? 4 : 5)) {
    case 0:
        return mw_replace(r, w);
    case 1:
    case 2:
        return mw_unbind(r, w);
    default:
        return w->type == IBV_MW_TYPE_1 ? mw_bind(r, w) : mw_invalidate(r, w);
    }
}

static bool mw_step_window(struct reach *r, struct window *w)
{
    struct chance *chance = &r->job->chance;

    if (w->ctrl) {
        return false;
    }
    if (w->unsure) {
        return mw_replace(r, w);
    }
    if (!w->place.rights) {
        return chance_one_in(chance, 2) && mw_bind(r, w);
    }
    if (w->type == IBV_MW_TYPE_2 && chance_happens(chance, (unsigned)r->job->sim->options.errors)) {
        return mw_bind_in_vain(r, w);
    }
    if (!w->goes) {
        w->goes = chance_one_in(chance, 12);
        w->place.rests = w->goes && !reach_may_be_rude(r);
    }
    if (!w->goes || (w->place.rests && w->place.busy)) {
        return false;
    }
    w->goes = !mw_close(r, w);
    return !w->goes;
}

static void mw_make_place(struct job *job, struct place *p, unsigned host, struct span *span)
{
    place_init(p, job, job->host[host]);
    *span = sim_span(job, job->host[host], place_bytes(p));
    p->part[0] = (struct place_part){span->at, span->len};
    p->num_parts = 1;
    place_fill(p);
}

static void kind_mw_make(struct job *job)
{
    struct mw *m = job->state;
    struct reach *r = &m->reach;

    for (unsigned i = 0; i < 2 * NEARS; i++) {
        struct place *p = &m->near[i % 2][i / 2];
        struct span *span = &m->span[i % 2][i / 2];

        mw_make_place(job, p, i % 2, span);
        place_open(p, (uintptr_t)span->at, span->mr->lkey, PLACE_LOCAL);
        r->near[i % 2][i / 2] = p;
    }
    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        struct window *w = &m->window[i % 2][i / 2];
        struct span *span = &m->behind[i % 2][i / 2];

        mw_make_place(job, &w->place, i % 2, span);
        w->host = i % 2;
        w->mr = span->mr;
        w->type = i / 2 % 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
        mw_alloc(w);
        r->far[i % 2][i / 2] = &w->place;
    }
    r->make_qp = reach_make_qp;
    r->ctrl_done = mw_ctrl_done;
    r->received = mw_received;
    r->ended = mw_ended;
    reach_init(r, job);
    outsiders_init(job, m->outsider);
}

static bool kind_mw_step(struct job *job)
{
    struct mw *m = job->state;
    bool did = reach_step(&m->reach);
    struct window *w =
        &m->window[chance_below(&job->chance, 2)][chance_below(&job->chance, REACH_PLACES)];

    did |= outsiders_step(job, m->outsider);
    if (chance_one_in(&job->chance, 8) &&
        chance_happens(&job->chance, (unsigned)job->sim->options.errors)) {
        did |= mw_invalidate_in_vain(m);
    }
    return mw_step_window(&m->reach, w) || did;
}

static bool kind_mw_is_done(const struct job *job)
{
    const struct mw *m = job->state;

    return reach_is_done(&m->reach) && outsiders_are_done(m->outsider);
}

static void kind_mw_check(struct job *job)
{
    reach_check(job->state);
}

static void kind_mw_free(struct job *job)
{
    struct mw *m = job->state;

    outsiders_free(job, m->outsider);
    reach_free(&m->reach);
    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        sim_must(job, ibv_dealloc_mw(m->window[i % 2][i / 2].mw));
        sim_span_free(job, &m->behind[i % 2][i / 2]);
        place_free(&m->window[i % 2][i / 2].place);
    }
    for (unsigned i = 0; i < 2 * NEARS; i++) {
        sim_span_free(job, &m->span[i % 2][i / 2]);
        place_free(&m->near[i % 2][i / 2]);
    }
}

const struct kind kind_mw = {
    .name = "mw",
    .about = "memory windows, bound and invalidated under traffic",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct mw),
    .make = kind_mw_make,
    .step = kind_mw_step,
    .is_done = kind_mw_is_done,
    .check = kind_mw_check,
    .free = kind_mw_free,
};
