/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements flow.h. The sender has a source, which never changes, and a slot for each operation
 * that may be outstanding, for READs and for the old values of atomics. The other side has the
 * source of READs, a slot for each WRITE, and the word of the atomics. Unused slots are filled with
 * poison.
 */
#include "tests/sim/fabric/flow.h"
#include <inttypes.h>
#include <string.h>

#define BATCH 8u
#define SEGS  3u

static size_t flow_source_bytes(const struct flow *f)
{
    return 2 * (size_t)f->size + 64;
}

static void flow_make_other_keys(struct flow *f)
{
    const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC;

    f->other_pd = ibv_alloc_pd(f->to->ctx);
    sim_check(f->job, f->other_pd, "no PD: errno %d", errno);
    f->locked = ibv_reg_mr(f->to->pd, f->far.at, f->far.len, IBV_ACCESS_LOCAL_WRITE);
    f->foreign = ibv_reg_mr(f->other_pd, f->far.at, f->far.len, (int)all);
    f->fixed = ibv_reg_mr(f->from->pd, f->near.at, f->near.len, 0);
    sim_check(f->job, f->locked && f->foreign && f->fixed, "no region: errno %d", errno);
}

/* Frees the keys of the near end, or of the far end. */
static void flow_free_other_keys(struct flow *f, bool near)
{
    if (near && f->fixed) {
        sim_must(f->job, ibv_dereg_mr(f->fixed));
        f->fixed = NULL;
    }
    if (!near && f->locked) {
        sim_must(f->job, ibv_dereg_mr(f->locked));
        sim_must(f->job, ibv_dereg_mr(f->foreign));
        sim_must(f->job, ibv_dealloc_pd(f->other_pd));
        f->locked = f->foreign = NULL;
    }
}

void flow_init(struct flow *f, struct job *job, struct sim_host *from, struct sim_host *to)
{
    const struct sim_options *o = &job->sim->options;
    size_t source, slots;

    f->job = job;
    f->from = from;
    f->to = to;
    f->size = (uint32_t)o->size;
    f->stride = (f->size + 63u) & ~63u;
    f->window = (unsigned)CLAMP(o->window, 2, FLOW_WINDOW);
    f->limit = o->ops;
    f->num_kinds = FLOW_FORWARD + 1;
    source = (flow_source_bytes(f) + 63) & ~63ul;
    slots = (size_t)FLOW_WINDOW * f->stride;
    f->near = sim_span(job, from, source + slots + FLOW_WINDOW * sizeof(uint64_t));
    f->source = f->near.at;
    f->landing = f->source + source;
    f->olds = (uint64_t *)(void *)(f->landing + slots);
    f->far = sim_span(job, to, source + slots + sizeof(uint64_t));
    f->far_key = f->far.mr->rkey;
    f->far_source = f->far.at;
    f->target = f->far_source + source;
    f->word = (uint64_t *)(void *)(f->target + slots);
    chance_fill(&job->chance, f->source, source);
    chance_fill(&job->chance, f->far_source, source);
    memset(f->landing, poison()[0], slots);
    memset(f->target, poison()[0], slots);
    flow_make_other_keys(f);
}

void flow_free(struct flow *f)
{
    flow_free_other_keys(f, true);
    flow_free_other_keys(f, false);
    sim_span_free(f->job, &f->near);
    sim_span_free(f->job, &f->far);
}

static void flow_move(uint8_t **at, ptrdiff_t by)
{
    *at += by;
}

struct span flow_bury(struct flow *f, bool near)
{
    struct span *span = near ? &f->near : &f->far, grave = *span;
    uint8_t *copy = sim_memory(f->job->sim, span->len);
    ptrdiff_t by = copy - span->at;

    /* until then the device may still write there */
    sim_must(f->job, ibv_dereg_mr(grave.mr));
    flow_free_other_keys(f, near);
    grave.mr = NULL;
    memcpy(copy, span->at, span->len);
    sim_span_free(f->job, &grave);
    for (unsigned i = 0; i < FLOW_OWED; i++) {
        const uint8_t *bytes = f->owes[i].bytes;

        f->owes[i].bytes += bytes >= grave.at && bytes < grave.at + grave.len ? by : 0;
    }
    *span = (struct span){.at = copy, .len = grave.len};
    if (near) {
        flow_move(&f->source, by);
        flow_move(&f->landing, by);
        f->olds = (uint64_t *)(void *)((uint8_t *)f->olds + by);
    } else {
        f->buried = by;
        flow_move(&f->far_source, by);
        flow_move(&f->target, by);
        f->word = (uint64_t *)(void *)((uint8_t *)f->word + by);
    }
    return grave;
}

static struct flow_op *flow_op_at(struct flow *f, uint64_t op)
{
    return &f->ops[op % FLOW_WINDOW];
}

static uint8_t *flow_slot(const struct flow *f, uint8_t *slots, uint64_t op)
{
    return slots + op % FLOW_WINDOW * f->stride;
}

static void flow_use_slot(const struct flow *f, uint8_t *slots, uint64_t op)
{
    sim_check(f->job, !memcmp(flow_slot(f, slots, op), poison(), f->size),
              "memory of operation %" PRIu64 " was written to after it was done", op - FLOW_WINDOW);
}

/* -- posting ----------------------------------------------------------------------------------- */

struct flow_wr {
    struct ibv_send_wr wr;
    struct ibv_sge sge[SEGS];
};

static bool flow_is_owed(enum flow_what what)
{
    return what == FLOW_SEND || what == FLOW_SEND_IMM || what == FLOW_WRITE_IMM ||
           what == FLOW_FORWARD;
}

static void flow_owe(struct flow *f, uint64_t op, const struct flow_op *o, const struct flow_wr *w,
                     const uint8_t *bytes)
{
    f->owes[f->owed++ % FLOW_OWED] =
        (struct flow_owed){op, o->what, w->wr.send_flags & IBV_SEND_SOLICITED, o->len, bytes};
}

/* Gathers from one piece of memory, or from several. */
static void flow_gather(struct flow *f, struct flow_wr *w, uint8_t *from, uint32_t len)
{
    uint32_t lkey = f->near.mr->lkey, first;

    w->wr.num_sge = 0;
    while (len && w->wr.num_sge < (int)SEGS - 1 && chance_one_in(&f->job->chance, 4)) {
        first = (uint32_t)chance_from(&f->job->chance, 1, len);
        w->sge[w->wr.num_sge++] = (struct ibv_sge){(uintptr_t)from, first, lkey};
        from += first;
        len -= first;
    }
    if (len) {
        w->sge[w->wr.num_sge++] = (struct ibv_sge){(uintptr_t)from, len, lkey};
    }
}

/* Returns the address by which the other side knows this memory, or knew it. */
static uint64_t flow_far_va(const struct flow *f, const void *at)
{
    return (uintptr_t)at - (uintptr_t)f->buried;
}

/* Sets an operation's address and key at the far side. An operation that must be refused gets an
 * invalid key, an old key or another owner's key, or reaches a byte too far. For no bytes any key
 * is accepted (C9-88). */
static void flow_name_target(struct flow *f, bool bad, uint32_t len, uint64_t *at, uint32_t *key)
{
    uint32_t rkey = f->far_key;

    *key = rkey;
    if (!bad) {
        *key ^= len || chance_below(&f->job->chance, 2) ? 0 : 0x5500;
        return;
    }
    switch (chance_below(&f->job->chance, 5)) {
    case 0:
        *key = rkey ^ 0x5500;
        break;
    case 1:
        *key = rkey ^ 1;
        break;
    case 2:
        *key = f->locked->rkey;
        break;
    case 3:
        *key = f->foreign->rkey;
        break;
    default:
        *at = flow_far_va(f, f->far.at + f->far.len) + 1 - len;
    }
}

static void flow_plan_atomic(struct flow *f, uint64_t op, struct flow_op *o, struct flow_wr *w)
{
    uint64_t operand = chance_next(&f->job->chance);

    o->len = 0;
    o->found = f->counter;
    w->sge[0] = (struct ibv_sge){(uintptr_t)&f->olds[op % FLOW_WINDOW], 8, f->near.mr->lkey};
    w->wr.num_sge = 1;
    w->wr.wr.atomic.remote_addr = flow_far_va(f, f->word) + (o->what == FLOW_ODD_ATOMIC ? 4 : 0);
    w->wr.wr.atomic.rkey = f->far_key;
    if (o->what != FLOW_FETCH_ADD && o->what != FLOW_CMP_SWAP) {
        w->wr.opcode = operand & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
        w->wr.wr.atomic.compare_add = f->counter; /* the swap would succeed */
        w->wr.wr.atomic.swap = operand;
        if (o->what == FLOW_BAD_ATOMIC) {
            flow_name_target(f, true, 8, &w->wr.wr.atomic.remote_addr, &w->wr.wr.atomic.rkey);
            w->wr.wr.atomic.remote_addr = (w->wr.wr.atomic.remote_addr + 7) & ~7ull;
        }
        return;
    }
    if (o->what == FLOW_FETCH_ADD) {
        w->wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        w->wr.wr.atomic.compare_add = operand;
        f->counter += operand;
        return;
    }
    w->wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    w->wr.wr.atomic.compare_add = operand & 1 ? f->counter : operand;
    w->wr.wr.atomic.swap = operand >> 1;
    if (w->wr.wr.atomic.compare_add == f->counter) {
        f->counter = operand >> 1;
    }
}

static void flow_plan_write(struct flow *f, uint64_t op, struct flow_op *o, struct flow_wr *w)
{
    w->wr.opcode = o->what == FLOW_WRITE_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    flow_use_slot(f, f->target, op);
    w->wr.wr.rdma.remote_addr = flow_far_va(f, flow_slot(f, f->target, op));
    flow_name_target(f, o->what == FLOW_BAD_WRITE, o->len, &w->wr.wr.rdma.remote_addr,
                     &w->wr.wr.rdma.rkey);
    flow_gather(f, w, f->source + o->at, o->len);
}

static void flow_plan_read(struct flow *f, uint64_t op, struct flow_op *o, struct flow_wr *w)
{
    w->wr.opcode = IBV_WR_RDMA_READ;
    flow_use_slot(f, f->landing, op);
    w->wr.wr.rdma.remote_addr = flow_far_va(f, f->far_source + o->at);
    flow_name_target(f, o->what == FLOW_BAD_READ, o->len, &w->wr.wr.rdma.remote_addr,
                     &w->wr.wr.rdma.rkey);
    flow_gather(f, w, flow_slot(f, f->landing, op), o->len);
    if (o->what == FLOW_BAD_LANDING) {
        w->sge[w->wr.num_sge - 1].lkey = f->fixed->lkey;
    }
}

/* Plans a request that is correct, except that the connection does not allow it. */
static void flow_plan_forbidden(struct flow *f, uint64_t op, struct flow_op *o, struct flow_wr *w)
{
    if (f->lacks == FLOW_NO_WRITE) {
        flow_plan_write(f, op, o, w);
    } else if (f->lacks == FLOW_NO_READ) {
        flow_plan_read(f, op, o, w);
    } else {
        flow_plan_atomic(f, op, o, w);
    }
}

static void flow_plan_forward(struct flow *f, uint64_t op, struct flow_op *o, struct flow_wr *w)
{
    const struct flow_op *read = flow_op_at(f, op - 1);

    o->len = read->len;
    o->at = read->at;
    w->wr.opcode = IBV_WR_SEND;
    w->wr.send_flags |= IBV_SEND_FENCE;
    flow_gather(f, w, flow_slot(f, f->landing, op - 1), o->len);
    flow_owe(f, op, o, w, f->far_source + o->at);
}

static void flow_plan_send(struct flow *f, struct flow_op *o, struct flow_wr *w)
{
    w->wr.opcode = o->what == FLOW_SEND_IMM ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    if (o->what == FLOW_TOO_LONG) {
        o->len = f->size + 1;
        o->at = 0;
    }
    flow_gather(f, w, f->source + o->at, o->len);
    if (o->what == FLOW_BAD_LKEY) {
        w->sge[w->wr.num_sge - 1].lkey ^= chance_below(&f->job->chance, 2) ? 0x5500 : 1;
    }
}

/* Plans a SEND or WRITE from memory that the program may change as soon as it is posted. */
static void flow_make_inline(struct flow *f, const struct flow_op *o, struct flow_wr *w,
                             uint8_t *copy)
{
    if (o->what <= FLOW_WRITE_IMM && o->len && o->len <= f->max_inline &&
        chance_one_in(&f->job->chance, 3)) {
        memcpy(copy, f->source + o->at, o->len);
        w->sge[0] = (struct ibv_sge){(uintptr_t)copy, o->len, 0};
        w->wr.num_sge = 1;
        w->wr.send_flags |= IBV_SEND_INLINE;
    }
}

/* Draws any length, a short one, zero, or one close to full packets. */
static uint32_t flow_draw_len(const struct flow *f, uint64_t draw)
{
    struct chance *chance = &f->job->chance;
    uint64_t len;

    if (f->job->sim->options.exact) {
        return f->size;
    }
    switch (draw & 7) {
    case 0:
        len = 256ull << chance_below(chance, 5);
        len = len * chance_from(chance, 1, f->size / len + 1) + chance_below(chance, 3) - 1;
        return (uint32_t)MIN(len, f->size);
    case 1:
        return 0;
    case 2:
    case 3:
        return (uint32_t)chance_below(chance, f->size + 1);
    default:
        return (uint32_t)chance_below(chance, MIN(f->size, 64) + 1);
    }
}

/* Plans an operation: its result in the model, and its request in w. */
static void flow_plan(struct flow *f, enum flow_what what, struct flow_wr *w, uint8_t *copy)
{
    struct chance *chance = &f->job->chance;
    uint64_t op = f->posted++, draw = chance_next(chance);
    struct flow_op *o = flow_op_at(f, op);

    *o = (struct flow_op){.what = what};
    o->len = flow_draw_len(f, draw >> 8);
    o->len += !o->len && what >= FLOW_BAD_WRITE;
    o->at = (uint32_t)chance_below(chance, f->size + 1);
    o->signaled =
        draw & 2 || op + 1 == f->limit || what >= FLOW_BAD_WRITE || f->unsignaled + 2 >= f->window;
    *w = (struct flow_wr){.wr = {.wr_id = op, .sg_list = w->sge}};
    w->wr.send_flags = (o->signaled ? IBV_SEND_SIGNALED : 0) | (draw & 0x70 ? 0 : IBV_SEND_FENCE) |
                       (draw & 0x80 ? IBV_SEND_SOLICITED : 0);
    w->wr.imm_data = GUINT32_TO_BE((uint32_t)op);
    f->unsignaled = o->signaled ? 0 : f->unsignaled + 1;
    switch (what) {
    case FLOW_FETCH_ADD:
    case FLOW_CMP_SWAP:
    case FLOW_BAD_ATOMIC:
    case FLOW_ODD_ATOMIC:
        flow_plan_atomic(f, op, o, w);
        break;
    case FLOW_READ:
    case FLOW_BAD_READ:
    case FLOW_BAD_LANDING:
        flow_plan_read(f, op, o, w);
        break;
    case FLOW_WRITE:
    case FLOW_WRITE_IMM:
    case FLOW_BAD_WRITE:
        flow_plan_write(f, op, o, w);
        break;
    case FLOW_FORWARD:
        flow_plan_forward(f, op, o, w);
        break;
    case FLOW_FORBIDDEN:
        flow_plan_forbidden(f, op, o, w);
        break;
    default:
        flow_plan_send(f, o, w);
    }
    if (flow_is_owed(what) && what != FLOW_FORWARD) {
        flow_owe(f, op, o, w, f->source + o->at);
    }
    o->counter = f->counter;
    flow_make_inline(f, o, w, copy);
    if (f->dress) {
        f->dress(f, &w->wr);
    }
}

/* A READ keeps its slot until the SEND that forwards it is done, which is one operation later. */
static bool flow_has_room(const struct flow *f)
{
    return !f->broken && !f->doomed && f->posted < f->limit &&
           f->posted - f->done < f->window - 1 && f->owed - f->received < FLOW_OWED;
}

static enum flow_what flow_draw(struct flow *f)
{
    enum flow_what what = (enum flow_what)chance_below(&f->job->chance, f->num_kinds);

    if ((f->lacks == FLOW_NO_WRITE && (what == FLOW_WRITE || what == FLOW_WRITE_IMM)) ||
        (f->lacks == FLOW_NO_READ && what == FLOW_READ) ||
        (f->lacks == FLOW_NO_ATOMIC && (what == FLOW_FETCH_ADD || what == FLOW_CMP_SWAP))) {
        what = FLOW_SEND;
    }
    if (what == FLOW_FORWARD &&
        (f->posted == f->done || flow_op_at(f, f->posted - 1)->what != FLOW_READ)) {
        what = FLOW_SEND;
    }
    return what;
}

static void flow_ring(struct flow *f, struct flow_wr *w, unsigned n)
{
    struct ibv_send_wr *bad;

    for (unsigned i = 0; i + 1 < n; i++) {
        w[i].wr.next = &w[i + 1].wr;
    }
    sim_must(f->job, f->ring ? f->ring(f, &w[0].wr) : ibv_post_send(f->qp, &w[0].wr, &bad));
}

bool flow_post(struct flow *f)
{
    unsigned n = 0, most = (unsigned)chance_from(&f->job->chance, 1, BATCH);
    struct flow_wr w[BATCH];
    uint8_t copies[BATCH][256];

    while (n < most && flow_has_room(f)) {
        flow_plan(f, flow_draw(f), &w[n], copies[n]);
        n++;
    }
    if (n) {
        flow_ring(f, w, n);
        memset(copies, 0, sizeof(copies[0]) * n);
    }
    return n;
}

static enum flow_what flow_draw_doom(struct flow *f)
{
    static const enum flow_what needs[FLOW_RIGHTS][2] = {
        [FLOW_NO_WRITE] = {FLOW_BAD_WRITE, FLOW_BAD_WRITE},
        [FLOW_NO_READ] = {FLOW_BAD_READ, FLOW_BAD_LANDING},
        [FLOW_NO_ATOMIC] = {FLOW_BAD_ATOMIC, FLOW_ODD_ATOMIC},
    };
    enum flow_what what =
        (enum flow_what)chance_from(&f->job->chance, FLOW_BAD_WRITE, FLOW_TOO_LONG);

    if (f->lacks && (chance_below(&f->job->chance, 2) || what == needs[f->lacks][0] ||
                     what == needs[f->lacks][1])) {
        return FLOW_FORBIDDEN;
    }
    return what;
}

void flow_doom(struct flow *f)
{
    struct flow_wr w;
    uint8_t copy[256];

    if (flow_has_room(f)) {
        f->doomed = true;
        flow_plan(f, flow_draw_doom(f), &w, copy);
        sim_note(f->job, "operation %" PRIu64 " must fail", f->posted - 1);
        flow_ring(f, &w, 1);
    }
}

void flow_mark(struct flow *f)
{
    struct flow_wr w = {.wr = {.wr_id = f->posted,
                               .sg_list = w.sge,
                               .send_flags = IBV_SEND_SIGNALED,
                               .opcode = IBV_WR_SEND}};

    *flow_op_at(f, f->posted++) = (struct flow_op){.what = FLOW_MARKER, .signaled = true};
    if (f->dress) {
        f->dress(f, &w.wr);
    }
    flow_ring(f, &w, 1);
}

/* -- results ----------------------------------------------------------------------------------- */

/* Applies the effect of an operation that succeeded. */
static void flow_complete(struct flow *f, uint64_t op)
{
    struct flow_op *o = flow_op_at(f, op);
    uint8_t *slot;

    switch (o->what) {
    case FLOW_WRITE:
    case FLOW_WRITE_IMM:
        slot = flow_slot(f, f->target, op);
        sim_check(f->job, !memcmp(slot, f->source + o->at, o->len),
                  "WRITE %" PRIu64 " is complete, and its bytes are not there", op);
        memset(slot, poison()[0], o->len);
        break;
    case FLOW_READ:
        slot = flow_slot(f, f->landing, op);
        sim_check(f->job, !memcmp(slot, f->far_source + o->at, o->len),
                  "READ %" PRIu64 " is complete, and its bytes are not there", op);
        if (op + 1 == f->posted || flow_op_at(f, op + 1)->what != FLOW_FORWARD) {
            memset(slot, poison()[0], o->len);
        }
        break;
    case FLOW_FORWARD:
        memset(flow_slot(f, f->landing, op - 1), poison()[0], o->len);
        break;
    case FLOW_FETCH_ADD:
    case FLOW_CMP_SWAP:
        sim_check(f->job, f->olds[op % FLOW_WINDOW] == o->found,
                  "atomic %" PRIu64 " found 0x%" PRIx64 ", not 0x%" PRIx64, op,
                  f->olds[op % FLOW_WINDOW], o->found);
        break;
    default:
        sim_check(f->job, o->what < FLOW_BAD_WRITE || o->what == FLOW_MARKER,
                  "operation %" PRIu64 " has succeeded, and must fail", op);
    }
    f->owed_done += flow_is_owed(o->what);
    f->counter_done = o->counter;
    f->done = op + 1;
    f->job->sim->tally.messages++;
    f->job->sim->tally.bytes += o->len;
}

static enum ibv_wc_status flow_status_of(enum flow_what what)
{
    switch (what) {
    case FLOW_BAD_WRITE:
    case FLOW_BAD_READ:
    case FLOW_BAD_ATOMIC:
        return IBV_WC_REM_ACCESS_ERR;
    case FLOW_BAD_LKEY:
    case FLOW_BAD_LANDING:
        return IBV_WC_LOC_PROT_ERR;
    case FLOW_TOO_LONG:
    case FLOW_ODD_ATOMIC:
    case FLOW_FORBIDDEN:
        return IBV_WC_REM_INV_REQ_ERR;
    default:
        return IBV_WC_SUCCESS;
    }
}

static void flow_fail(struct flow *f, const struct ibv_wc *wc, bool may_flush)
{
    uint64_t op = wc->wr_id;
    const struct flow_op *o = flow_op_at(f, op);

    if (f->broken) {
        sim_check(f->job, wc->status == IBV_WC_WR_FLUSH_ERR,
                  "operation %" PRIu64 " of a queue in error: %s", op,
                  ibv_wc_status_str(wc->status));
        sim_check(f->job, op == f->flushed, "operation %" PRIu64 " is flushed, not %" PRIu64, op,
                  f->flushed);
    } else {
        bool dead = may_flush || f->silent || sim_is_lossy(f->job->sim);

        sim_check(f->job,
                  wc->status == flow_status_of(o->what) ||
                      (wc->status == IBV_WC_WR_FLUSH_ERR && may_flush) ||
                      (wc->status == IBV_WC_RETRY_EXC_ERR && dead) ||
                      (wc->status == IBV_WC_RNR_RETRY_EXC_ERR && f->starved) ||
                      wc->status == f->misled,
                  "operation %" PRIu64 " fails: %s", op, ibv_wc_status_str(wc->status));
        sim_note(f->job, "operation %" PRIu64 " fails: %s", op, ibv_wc_status_str(wc->status));
        f->broken = true;
        f->why = wc->status;
        f->was_too_long = o->what == FLOW_TOO_LONG;
        f->was_misled = f->misled != IBV_WC_SUCCESS;
        f->job->sim->tally.errors++;
    }
    f->flushed = op + 1;
}

void flow_sent(struct flow *f, const struct ibv_wc *wc, bool may_flush)
{
    uint64_t op = wc->wr_id;

    sim_check(f->job,
              op >= f->done && op < f->posted &&
                  (flow_op_at(f, op)->signaled || wc->status != IBV_WC_SUCCESS),
              "completion %" PRIu64 ", and those from %" PRIu64 " to %" PRIu64 " are outstanding",
              op, f->done, f->posted);
    while (!f->broken && f->done < op) {
        sim_check(f->job, !flow_op_at(f, f->done)->signaled,
                  "operation %" PRIu64 " completes before %" PRIu64, op, f->done);
        flow_complete(f, f->done);
    }
    f->job->sim->tally.checks++;
    if (wc->status == IBV_WC_SUCCESS) {
        sim_check(f->job, !f->broken, "operation %" PRIu64 " succeeds in a queue in error", op);
        flow_complete(f, op);
        f->flushed = f->done;
    } else {
        flow_fail(f, wc, may_flush);
    }
}

bool flow_is_solicited(const struct flow *f)
{
    return f->owes[f->received % FLOW_OWED].solicited;
}

void flow_received(struct flow *f, const struct ibv_wc *wc, struct intake *in, uint8_t *slot)
{
    const struct flow_owed *w = &f->owes[f->received % FLOW_OWED];
    bool imm = w->what == FLOW_SEND_IMM || w->what == FLOW_WRITE_IMM;
    bool write = w->what == FLOW_WRITE_IMM;

    sim_check(f->job, f->received < f->owed, "a message is received that nobody has sent");
    sim_check(f->job, wc->opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
              "receive of operation %" PRIu64 " says that it is a %u", w->op, wc->opcode);
    sim_check(f->job, wc->byte_len == w->len,
              "receive of operation %" PRIu64 " is of %u bytes, not %u", w->op, wc->byte_len,
              w->len);
    sim_check(f->job,
              !(wc->wc_flags & IBV_WC_WITH_IMM) == !imm &&
                  (!imm || GUINT32_FROM_BE(wc->imm_data) == (uint32_t)w->op),
              "receive of operation %" PRIu64 " has another immediate: %u", w->op,
              GUINT32_FROM_BE(wc->imm_data));
    if (write && w->op >= f->done) {
        sim_check(f->job, !memcmp(flow_slot(f, f->target, w->op), w->bytes, w->len),
                  "immediate of WRITE %" PRIu64 " is there, and its bytes are not", w->op);
    }
    intake_check(in, slot, 0, w->bytes, write ? 0 : w->len);
    f->received++;
    f->job->sim->tally.checks++;
}

/* -- the end of a connection ------------------------------------------------------------------- */

bool flow_is_drained(const struct flow *f)
{
    return f->flushed == f->posted;
}

bool flow_is_done(const struct flow *f)
{
    return f->done >= f->limit && f->received == f->owed;
}

/* Checks bytes that an operation may or may not have written. */
static void flow_check_torn(struct flow *f, uint8_t *slots, uint64_t op, const uint8_t *bytes,
                            uint32_t len)
{
    uint8_t *slot = flow_slot(f, slots, op);

    for (uint32_t i = 0; i < len; i++) {
        sim_check(f->job, slot[i] == bytes[i] || slot[i] == poison()[0],
                  "operation %" PRIu64 " did not complete, and has left other bytes", op);
    }
    memset(slot, poison()[0], len);
}

static void flow_settle_op(struct flow *f, uint64_t op)
{
    const struct flow_op *o = flow_op_at(f, op);

    switch (o->what) {
    case FLOW_WRITE:
    case FLOW_WRITE_IMM:
        flow_check_torn(f, f->target, op, f->source + o->at, o->len);
        break;
    case FLOW_READ:
    case FLOW_BAD_LANDING:
        flow_check_torn(f, f->landing, op, f->far_source + o->at, o->len);
        break;
    case FLOW_FORWARD:
        memset(flow_slot(f, f->landing, op - 1), poison()[0], o->len);
        break;
    default:
        break;
    }
}

void flow_settle(struct flow *f, bool all)
{
    bool is_one = *f->word == f->counter_done;

    sim_check(f->job, !all || f->received >= f->owed_done,
              "%" PRIu64 " messages were acknowledged, and %" PRIu64 " received", f->owed_done,
              f->received);
    for (uint64_t op = f->done; op < f->posted; op++) {
        is_one |= *f->word == flow_op_at(f, op)->counter;
        flow_settle_op(f, op);
    }
    sim_check(f->job, is_one, "the word is 0x%" PRIx64 ", which no prefix of the atomics makes it",
              *f->word);
    f->counter = f->counter_done = *f->word;
    f->done = f->flushed = f->posted;
    f->owed_done = f->received = f->owed;
    f->limit = MAX(f->limit, f->posted);
    f->broken = f->doomed = f->silent = f->starved = false;
    f->misled = IBV_WC_SUCCESS;
}

void flow_check(struct flow *f)
{
    sim_check(f->job, *f->word == f->counter, "the word is 0x%" PRIx64 ", not 0x%" PRIx64, *f->word,
              f->counter);
    for (uint64_t op = 0; op < FLOW_WINDOW; op++) {
        flow_use_slot(f, f->target, op);
        flow_use_slot(f, f->landing, op);
    }
}
