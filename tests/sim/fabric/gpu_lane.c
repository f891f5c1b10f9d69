/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements gpu_lane.h. */
#include "tests/sim/fabric/gpu_lane.h"
#include <inttypes.h>
#include "tests/sim/fabric/liveness.h"

#define TIMEOUT     15 /* 134 ms: no storm lasts longer than eight of these */
#define BATCH       6u
#define SILENT      3u  /* operations in a row without a CQE, at most */
#define BURST       24u /* stores that take effect at a time, at most */
#define NEAR_PIECE  (GPU_LEN + 64u)
#define BAD_LKEY    0x04
#define BAD_RKEY    0x13
#define NO_ANSWER   0x15
#define MOST_BLOCKS 3u     /* of an operation */
#define ADDS_MOST   60000u /* additions of a lane to its 16 bits of the shared word */

static uint8_t *lane_near(const struct gpu_lane *lane, uint64_t op)
{
    return lane->near.at + op % GPU_WINDOW * NEAR_PIECE;
}

static uint8_t *lane_far(const struct gpu_lane *lane, unsigned slot)
{
    return lane->far.at + (size_t)slot * GPU_LEN;
}

static uint8_t *lane_of_slot(uint8_t *slots, unsigned slot)
{
    return slots + (size_t)slot * GPU_LEN;
}

static struct gpu_lane_op *lane_op(struct gpu_lane *lane, uint64_t op)
{
    return &lane->ops[op % GPU_WINDOW];
}

static uint8_t *lane_want(const struct gpu_lane *lane, uint64_t op)
{
    return lane->want + op % GPU_WINDOW * GPU_LEN;
}

/* Where a word is. The lane's own words are behind its slots. */
static uint8_t *lane_word_at(const struct gpu_lane *lane, enum gpu_word word)
{
    return word == GPU_WORD_SHARED ? (uint8_t *)lane->shared
                                   : lane_far(lane, GPU_SLOTS) + 8 * (size_t)word;
}

static uint64_t lane_load(const uint8_t *at, unsigned len)
{
    uint32_t half;
    uint64_t whole = 0;

    memcpy(len == 4 ? (void *)&half : &whole, at, len);
    return len == 4 ? half : whole;
}

/* The lane's own part of the shared word. */
static uint64_t lane_part(const struct gpu_lane *lane, uint64_t shared)
{
    return shared >> 16 * (lane->number / 2) & 0xffff;
}

static uint64_t lane_load_word(const struct gpu_lane *lane, enum gpu_word word)
{
    uint64_t value = lane_load(lane_word_at(lane, word), word == GPU_WORD_4 ? 4 : 8);

    return word == GPU_WORD_SHARED ? lane_part(lane, value) : value;
}

/* -- stores ------------------------------------------------------------------------------------ */

/* Makes one of the stores before the next fence. */
static void lane_store_one(struct gpu_lane *lane)
{
    struct gpu_store *rest = &g_array_index(lane->stores, struct gpu_store, lane->next), one;
    guint n = 0, left = lane->stores->len - lane->next;

    while (n < left && n < BURST && rest[n].at) {
        n++;
    }
    if (n > 1) {
        guint nth = (guint)chance_below(&lane->job->chance, n);

        one = rest[nth];
        rest[nth] = rest[0];
        rest[0] = one;
    }
    if (rest[0].at) {
        gpu_store_now(NULL, rest[0].at, rest[0].value, rest[0].size);
    }
    lane->next++;
}

static bool lane_is_storing(const struct gpu_lane *lane)
{
    return lane->next < lane->stores->len;
}

/* Returns any lane of the GPU that has stores to make, or NULL. */
static struct gpu_lane *lane_that_stores(struct gpu_warps *warps)
{
    struct gpu_lane *found = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < warps->num; i++) {
        if (lane_is_storing(warps->lane[i]) && chance_one_in(&warps->job->chance, ++n)) {
            found = warps->lane[i];
        }
    }
    return found;
}

/* How many stores take effect before the HCA may look again, and how long the GPU then pauses. */
static uint64_t lane_draw_burst(struct chance *chance)
{
    switch (chance_below(chance, 4)) {
    case 0:
        return chance_from(chance, 1, 2);
    case 1:
        return chance_from(chance, 1, 8 * (uint64_t)BURST);
    default:
        return chance_from(chance, 1, BURST);
    }
}

static uint64_t lane_draw_pause_ns(struct job *job)
{
    struct chance *chance = &job->chance;

    switch (chance_below(chance, 16)) {
    case 0:
        return chance_below(chance, 2 * job->sim->options.latency + 1);
    case 1:
        return chance_below(chance, job->sim->options.whims + 1);
    default:
        return chance_below(chance, 200);
    }
}

static void lane_make_stores(void *opaque, void *what);

static void lane_schedule_stores(struct gpu_warps *warps)
{
    const struct sim *sim = warps->job->sim;

    timeline_at(sim->timeline, sim->world->now_ns + lane_draw_pause_ns(warps->job),
                lane_make_stores, NULL, warps);
    warps->due = true;
}

static void lane_make_stores(void *opaque, void *what)
{
    struct gpu_warps *warps = what;
    struct gpu_lane *lane = NULL;

    warps->due = false;
    for (uint64_t n = lane_draw_burst(&warps->job->chance); n && (lane = lane_that_stores(warps));
         n--) {
        lane_store_one(lane);
        if (!lane_is_storing(lane)) {
            g_array_set_size(lane->stores, lane->next = 0);
        }
    }
    if (lane_that_stores(warps)) {
        lane_schedule_stores(warps);
    }
}

static void lane_store(void *opaque, void *at, uint64_t value, unsigned size)
{
    struct gpu_lane *lane = opaque;
    struct gpu_store store = {at, value, size};

    g_array_append_val(lane->stores, store);
    if (!lane->warps->due) {
        lane_schedule_stores(lane->warps);
    }
}

/* -- posting ----------------------------------------------------------------------------------- */

static bool lane_uses_slot(const struct gpu_lane *lane, unsigned slot, enum gpu_what what)
{
    for (uint64_t op = lane->done; op < lane->posted; op++) {
        const struct gpu_lane_op *o = &lane->ops[op % GPU_WINDOW];

        if (o->what == what && o->slot == slot && !o->dead) {
            return true;
        }
    }
    return false;
}

/* A READ that is executed again may bring what a later WRITE has written. So a slot is not written
 * while it is read. Returns whether there is a slot that is not. */
static bool lane_find_slot(struct gpu_lane *lane, struct gpu_lane_op *o)
{
    for (unsigned i = 0; i < GPU_SLOTS; i++) {
        if (!lane_uses_slot(lane, o->slot, GPU_READ)) {
            return true;
        }
        o->slot = (o->slot + 1) % GPU_SLOTS;
    }
    return false;
}

static void lane_plan_write(struct gpu_lane *lane, struct gpu_lane_op *o, struct gpu_op *op)
{
    struct chance *chance = &lane->job->chance;
    uint8_t *near = lane_near(lane, lane->posted);

    chance_fill(chance, near, o->len);
    if (o->len <= GPU_INLINE && chance_one_in(chance, 2)) {
        op->data = near;
    }
    if (!o->dead) {
        memcpy(lane_of_slot(lane->planned, o->slot) + o->at, near, o->len);
    }
}

static void lane_plan_read(struct gpu_lane *lane, const struct gpu_lane_op *o)
{
    memset(lane_near(lane, lane->posted), 0xa5, o->len);
    memcpy(lane_want(lane, lane->posted), lane_of_slot(lane->planned, o->slot) + o->at, o->len);
}

static uint64_t lane_add_in_fields(uint64_t a, uint64_t b, uint64_t tops)
{
    /* the top bits are added without a carry, the others cannot pass them */
    return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

static uint64_t lane_computed(const struct gpu_op *op, uint64_t held)
{
    const uint64_t *operand = op->operand;

    switch (op->what) {
    case GPU_FA:
        return held + operand[0];
    case GPU_CS:
        return held == operand[1] ? operand[0] : held;
    case GPU_MASKED_FA:
        return lane_add_in_fields(held, operand[0], operand[1]);
    default:
        return (held ^ operand[1]) & operand[3] ? held
                                                : (held & ~operand[2]) | (operand[0] & operand[2]);
    }
}

/* Adds 1 to the lane's own 16 bits of the shared word. */
static void lane_plan_shared(struct gpu_lane *lane, struct gpu_lane_op *o, struct gpu_op *op)
{
    const unsigned shift = 16 * (lane->number / 2);

    o->word = GPU_WORD_SHARED;
    op->what = o->what = chance_one_in(&lane->job->chance, 2) ? GPU_FA : GPU_MASKED_FA;
    op->operand[0] = 1ull << shift;
    op->operand[1] = op->what == GPU_MASKED_FA ? 0x8000800080008000 : 0;
    op->rkey = lane->shared_key;
    o->found = lane->word[GPU_WORD_SHARED];
    o->after = o->found + 1;
}

static void lane_plan_atomic(struct gpu_lane *lane, struct gpu_lane_op *o, struct gpu_op *op)
{
    struct chance *chance = &lane->job->chance;
    bool masked = op->what == GPU_MASKED_CS || op->what == GPU_MASKED_FA;

    o->word = masked && chance_one_in(chance, 2) ? GPU_WORD_4 : GPU_WORD_8;
    if (chance_one_in(chance, 4) && lane->word[GPU_WORD_SHARED] < ADDS_MOST) {
        lane_plan_shared(lane, o, op);
    } else {
        uint64_t all = o->word == GPU_WORD_4 ? UINT32_MAX : UINT64_MAX;

        for (unsigned i = 0; i < 4; i++) {
            op->operand[i] = chance_next(chance) & all;
        }
        o->found = lane->word[o->word];
        if (chance_one_in(chance, 2)) {
            op->operand[1] = o->found; /* a comparison that holds */
        }
        if (op->what == GPU_MASKED_FA) {
            op->operand[1] &= op->operand[2];
        }
        o->after = lane_computed(op, o->found) & all;
    }
    op->len = o->word == GPU_WORD_4 ? 4 : 8;
    op->laddr = (uintptr_t)lane_near(lane, lane->posted) + GPU_LEN;
    op->raddr = (uintptr_t)lane_word_at(lane, o->word);
    memset(lane_near(lane, lane->posted) + GPU_LEN, 0xa5, 16);
    if (!o->dead) {
        lane->word[o->word] = o->after;
    }
}

/* Makes an operation fail: by a key of the target, or by its own. */
static void lane_doom(struct gpu_lane *lane, struct gpu_op *op)
{
    if (op->what == GPU_DUMP ||
        (op->what == GPU_WRITE && !op->data && chance_one_in(&lane->job->chance, 2))) {
        op->lkey ^= 1;
    } else {
        op->rkey ^= chance_one_in(&lane->job->chance, 2) ? 1 : 0x5500;
    }
    lane->doomed = true;
    sim_note(lane->job, "lane %u: operation %" PRIu64 " must fail", lane->number, lane->posted);
}

static enum gpu_what lane_draw(struct gpu_lane *lane, struct gpu_lane_op *o)
{
    enum gpu_what what = (enum gpu_what)chance_below(&lane->job->chance, GPU_WHATS);

    o->slot = (unsigned)chance_below(&lane->job->chance, GPU_SLOTS);
    return what == GPU_WRITE && !lane_find_slot(lane, o) ? GPU_NOP : what;
}

static void lane_plan(struct gpu_lane *lane, struct gpu_lane_op *o, struct gpu_op *op)
{
    struct chance *chance = &lane->job->chance;
    bool doom = chance_happens(chance, (unsigned)lane->job->sim->options.errors);

    *o = (struct gpu_lane_op){.index = (uint16_t)lane->q.sq.pi};
    o->what = lane_draw(lane, o);
    doom &= !lane->doomed && o->what != GPU_NOP;
    o->dead = lane->doomed || doom;
    o->len =
        (uint32_t)chance_from(chance, 1, chance_one_in(chance, 3) ? lane->len : MIN(lane->len, 64));
    o->at = (uint32_t)chance_below(chance, lane->len - o->len + 1);
    o->unsignaled = lane->silent < MIN(SILENT, lane->window - 1) &&
                    lane->posted + 1 < lane->limit && !o->dead && chance_one_in(chance, 3);
    lane->silent = o->unsignaled ? lane->silent + 1 : 0;
    *op = (struct gpu_op){.what = o->what,
                          .unsignaled = o->unsignaled,
                          .fence = chance_one_in(chance, 8),
                          .av = lane->t.av,
                          .av_len = lane->t.av_len,
                          .raddr = (uintptr_t)lane_far(lane, o->slot) + o->at,
                          .rkey = lane->far.mr->rkey,
                          .laddr = (uintptr_t)lane_near(lane, lane->posted),
                          .lkey = lane->near.mr->lkey,
                          .len = o->len};
    if (o->what == GPU_WRITE) {
        lane_plan_write(lane, o, op);
    } else if (o->what == GPU_READ) {
        lane_plan_read(lane, o);
    } else if (o->what >= GPU_CS) {
        lane_plan_atomic(lane, o, op);
    }
    if (doom) {
        lane_doom(lane, op);
    }
}

static bool lane_has_room(struct gpu_lane *lane)
{
    uint16_t pi = (uint16_t)lane->q.sq.pi;
    uint16_t oldest = lane->posted == lane->done ? pi : lane_op(lane, lane->done)->index;

    return lane->posted - lane->done < lane->window && lane->posted < lane->limit &&
           (uint16_t)(pi - oldest) + MOST_BLOCKS + 1 <= lane->q.sq.blocks;
}

static bool lane_post(struct gpu_lane *lane)
{
    uint64_t n = chance_from(&lane->job->chance, 1, BATCH), before = lane->posted;
    uint32_t earlier = lane->q.sq.pi;

    for (; n && lane_has_room(lane); n--) {
        struct gpu_op op;

        lane_plan(lane, lane_op(lane, lane->posted), &op);
        earlier = chance_one_in(&lane->job->chance, 2) ? lane->q.sq.pi : earlier;
        gpu_post(&lane->q.sq, &op);
        lane->posted++;
    }
    if (lane->posted == before) {
        return false;
    }
    gpu_ring(&lane->q.sq);
    if (lane->attr.order == GPU_NO_RECORD && chance_one_in(&lane->job->chance, 4)) {
        gpu_ring_late(&lane->q.sq, earlier); /* it may hide the other one */
    }
    return true;
}

/* Posts, to a queue in error, the operation whose CQE shows that all others have ended. */
static void lane_mark(struct gpu_lane *lane)
{
    const struct gpu_op nop = {.what = GPU_NOP};

    *lane_op(lane, lane->posted++) =
        (struct gpu_lane_op){.what = GPU_NOP, .index = (uint16_t)lane->q.sq.pi, .dead = true};
    gpu_post_and_ring(&lane->q.sq, &nop);
}

/* -- completions ------------------------------------------------------------------------------- */

static void lane_check_slot(const struct gpu_lane *lane, unsigned slot)
{
    sim_check(lane->job, !memcmp(lane_far(lane, slot), lane_of_slot(lane->sure, slot), GPU_LEN),
              "lane %u: slot %u has other bytes than the WRITEs that completed", lane->number,
              slot);
}

static void lane_check_found(const struct gpu_lane *lane, uint64_t op, const struct gpu_lane_op *o)
{
    uint64_t found = lane_load(lane_near(lane, op) + GPU_LEN, o->word == GPU_WORD_4 ? 4 : 8);

    if (o->word == GPU_WORD_4) {
        found = GUINT32_FROM_BE((uint32_t)found); /* docs/adr/0011 */
    } else if (o->word == GPU_WORD_SHARED) {
        found = lane_part(lane, found);
    }
    sim_check(lane->job, found == o->found,
              "lane %u: atomic %" PRIu64 " finds 0x%" PRIx64 ", not 0x%" PRIx64, lane->number, op,
              found, o->found);
}

/* Handles the success of the oldest operation. */
static void lane_succeed(struct gpu_lane *lane)
{
    uint64_t op = lane->done++;
    const struct gpu_lane_op *o = lane_op(lane, op);

    sim_check(lane->job, !o->dead, "lane %u: operation %" PRIu64 " succeeds, and must not",
              lane->number, op);
    if (o->what == GPU_WRITE) {
        memcpy(lane_of_slot(lane->sure, o->slot) + o->at, lane_near(lane, op), o->len);
        if (!lane_uses_slot(lane, o->slot, GPU_WRITE)) {
            lane_check_slot(lane, o->slot);
        }
    } else if (o->what == GPU_READ) {
        sim_check(lane->job, !memcmp(lane_near(lane, op), lane_want(lane, op), o->len),
                  "lane %u: READ %" PRIu64 " brings other bytes", lane->number, op);
        lane->job->sim->tally.bytes += o->len;
    } else if (o->what >= GPU_CS) {
        lane_check_found(lane, op, o);
        lane->word_sure[o->word] = o->after;
    }
    lane->job->sim->tally.messages++;
    lane->job->sim->tally.checks++;
}

/* The oldest operation has failed, or may have, or was not seen to succeed before one that failed.
 */
static void lane_fail(struct gpu_lane *lane)
{
    struct gpu_lane_op *o = lane_op(lane, lane->done++);

    o->maybe = !o->dead;
    lane->num_failed++;
    lane->job->sim->tally.errors++;
}

/* Returns the number of the outstanding operation with that index. */
static uint64_t lane_find(struct gpu_lane *lane, uint16_t index)
{
    uint64_t op = lane->done;

    while (op < lane->posted && lane_op(lane, op)->index != index) {
        op++;
    }
    sim_check(lane->job, op < lane->posted, "lane %u: a CQE of WQE %u, which is not outstanding",
              lane->number, index);
    return op;
}

/* Whether an operation may fail that need not: if the NAK of the one that must fail is lost, its
 * target does not answer any more, and the retries of those before it run out, too. */
static bool lane_may_lose_answers(const struct gpu_lane *lane)
{
    return lane->doomed && sim_is_lossy(lane->job->sim);
}

/* Handles the oldest operation, of which no CQE was seen. Each operation that fails has a CQE of
 * its own, and each that is signaled, but in a collapsed CQ a later one may have replaced it.
 * failed: the operation of the later CQE has failed. */
static void lane_skip(struct gpu_lane *lane, bool failed)
{
    const struct gpu_lane_op *o = lane_op(lane, lane->done);
    bool unclear =
        lane->broken || o->dead || (failed && (lane->ended || lane_may_lose_answers(lane)));

    sim_check(lane->job, lane->q.cq.collapsed || (o->unsignaled && !lane->broken),
              "lane %u: operation %" PRIu64 " has no CQE", lane->number, lane->done);
    if (lane->q.cq.collapsed && unclear) {
        lane_fail(lane);
    } else {
        lane_succeed(lane);
    }
}

static void lane_check_error(const struct gpu_lane *lane, uint64_t op, const struct gpu_cqe *cqe)
{
    const struct gpu_lane_op *o = &lane->ops[op % GPU_WINDOW];
    uint8_t syndrome = cqe->syndrome;
    bool may = o->dead || lane->ended || lane_may_lose_answers(lane);

    sim_check(lane->job, may, "lane %u: operation %" PRIu64 " fails with syndrome 0x%x",
              lane->number, op, syndrome);
    sim_check(lane->job,
              syndrome == GPU_CQE_FLUSHED ||
                  (!lane->broken && (syndrome == BAD_LKEY || syndrome == BAD_RKEY)) ||
                  (!lane->broken && syndrome == NO_ANSWER && lane_may_lose_answers(lane)),
              "lane %u: operation %" PRIu64 " fails with syndrome 0x%x, behind another: %u",
              lane->number, op, syndrome, lane->broken);
}

static void lane_complete(struct gpu_lane *lane, const struct gpu_cqe *cqe)
{
    uint64_t op = lane_find(lane, cqe->index);
    bool failed = cqe->opcode == GPU_CQE_ERROR;

    sim_check(lane->job, cqe->qpn == lane->q.sq.qpn, "lane %u: a CQE of QP 0x%x", lane->number,
              cqe->qpn);
    while (lane->done < op) {
        lane_skip(lane, failed);
    }
    if (failed) {
        lane_check_error(lane, op, cqe);
        lane_fail(lane);
        lane->broken = true;
        return;
    }
    sim_check(lane->job, cqe->opcode == 0 && !lane_op(lane, op)->unsignaled,
              "lane %u: operation %" PRIu64 " has a CQE with opcode 0x%x", lane->number, op,
              cqe->opcode);
    lane_succeed(lane);
}

static bool lane_poll(struct gpu_lane *lane)
{
    struct gpu_cqe cqe;
    bool did = false;

    while (!lane->destroyed && gpu_poll(&lane->q.cq, &cqe)) {
        lane_complete(lane, &cqe);
        did = true;
    }
    return did;
}

/* -- the end of a queue, and its next life ----------------------------------------------------- */

/* Checks a slot that WRITEs may have written to which have not succeeded: each byte is as before,
 * or of one of them. */
static void lane_check_torn(const struct gpu_lane *lane, unsigned slot)
{
    const uint8_t *far = lane_far(lane, slot), *sure = lane_of_slot(lane->sure, slot);

    for (uint32_t at = 0; at < GPU_LEN; at++) {
        bool ok = far[at] == sure[at];

        for (uint64_t op = lane->done - lane->num_failed; !ok && op < lane->done; op++) {
            const struct gpu_lane_op *o = &lane->ops[op % GPU_WINDOW];

            ok = o->maybe && o->what == GPU_WRITE && o->slot == slot && at >= o->at &&
                 at - o->at < o->len && far[at] == lane_near(lane, op)[at - o->at];
        }
        sim_check(lane->job, ok, "lane %u: byte %u of slot %u is of no WRITE", lane->number, at,
                  slot);
    }
}

static void lane_check_word(const struct gpu_lane *lane, enum gpu_word word)
{
    uint64_t value = lane_load_word(lane, word);
    bool ok = value == lane->word_sure[word];

    for (uint64_t op = lane->done - lane->num_failed; !ok && op < lane->done; op++) {
        const struct gpu_lane_op *o = &lane->ops[op % GPU_WINDOW];

        ok = o->maybe && o->what >= GPU_CS && o->word == word && value == o->after;
    }
    sim_check(lane->job, ok, "lane %u: word %u is 0x%" PRIx64 ", and was 0x%" PRIx64, lane->number,
              word, value, lane->word_sure[word]);
}

/* Checks what the operations that have not succeeded have left, and takes it for the truth. */
static void lane_settle(struct gpu_lane *lane)
{
    for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
        lane_check_torn(lane, slot);
        memcpy(lane_of_slot(lane->sure, slot), lane_far(lane, slot), GPU_LEN);
    }
    memcpy(lane->planned, lane->sure, (size_t)GPU_SLOTS * GPU_LEN);
    for (unsigned word = 0; word < GPU_WORDS; word++) {
        lane_check_word(lane, word);
        lane->word[word] = lane->word_sure[word] = lane_load_word(lane, word);
    }
    lane->num_failed = lane->silent = 0;
    lane->doomed = lane->broken = lane->ended = false;
    lane->limit = MAX(lane->limit, lane->posted);
}

static void lane_make_queue(struct gpu_lane *lane)
{
    gpu_queue_new(&lane->q, &lane->attr, lane_store, lane);
    liveness_gpu_rings(lane->job->sim->liveness, lane->from, lane->q.sq.qpn, true);
}

static void lane_connect(struct gpu_lane *lane)
{
    struct chance *chance = &lane->job->chance;
    const struct gpu_terms terms = {
        .mtu = lane->mtu, .timeout = TIMEOUT, .psn = (uint32_t)chance_below(chance, 1u << 24)};

    lane->t.av_len = !lane->attr.dc ? 0 : lane->attr.devx && chance_one_in(chance, 2) ? 16 : GPU_AV;
    gpu_connect(&lane->q, &lane->t, &terms);
    sim_note(lane->job, "lane %u: QP 0x%x is connected", lane->number, lane->q.sq.qpn);
    lane->state = GPU_RUNS;
    lane->job->sim->tally.connections++;
}

/* The host takes the queue away under the GPU. A queue that was made by verbs takes its memory
 * along, so there the GPU must have nothing to store. */
static void lane_destroy(struct gpu_lane *lane)
{
    sim_note(lane->job, "lane %u: QP 0x%x is destroyed", lane->number, lane->q.sq.qpn);
    liveness_gpu_rings(lane->job->sim->liveness, lane->from, lane->q.sq.qpn, false);
    lane->destroyed = true;
    gpu_queue_destroy(&lane->q);
    while (lane->done < lane->posted) {
        lane_fail(lane);
    }
}

static void lane_end(struct gpu_lane *lane)
{
    bool destroys =
        chance_one_in(&lane->job->chance, 2) && (lane->attr.devx || !lane_is_storing(lane));

    lane->state = GPU_DRAINS;
    lane->ended = true;
    if (destroys) {
        lane_destroy(lane);
    } else {
        sim_note(lane->job, "lane %u: QP 0x%x is moved to the error state", lane->number,
                 lane->q.sq.qpn);
        gpu_queue_fail(&lane->q);
        lane_mark(lane);
    }
}

static void lane_begin_again(struct gpu_lane *lane)
{
    lane_settle(lane);
    if (lane->destroyed) {
        gpu_queue_free_memory(&lane->q);
        gpu_target_reset(&lane->t);
        lane->destroyed = false;
        lane_make_queue(lane);
    } else {
        gpu_reset(&lane->q, &lane->t);
    }
    lane_connect(lane);
}

/* -- a lane ------------------------------------------------------------------------------------ */

void gpu_lane_init(struct gpu_lane *lane, struct job *job, unsigned number,
                   const struct gpu_queue_attr *attr, struct gpu_warps *warps,
                   struct sim_host *from, struct sim_host *to, const struct span *shared)
{
    const struct sim_options *o = &job->sim->options;
    size_t slots = (size_t)GPU_SLOTS * GPU_LEN;

    lane->job = job;
    lane->number = number;
    lane->attr = *attr;
    lane->from = from;
    lane->to = to;
    lane->limit = o->ops;
    lane->len = (uint32_t)CLAMP(o->size, 1, GPU_LEN);
    lane->mtu = (enum ibv_mtu)chance_from(&job->chance, IBV_MTU_256, IBV_MTU_4096);
    lane->window = (unsigned)CLAMP(o->window, 2, GPU_WINDOW - 1);
    lane->stores = g_array_new(FALSE, FALSE, sizeof(struct gpu_store));
    lane->warps = warps;
    warps->job = job;
    warps->lane[warps->num++] = lane;
    lane->near = sim_span(job, from, (size_t)GPU_WINDOW * NEAR_PIECE);
    lane->far = sim_span(job, to, slots + (size_t)8 * GPU_WORDS);
    lane->shared = (uint64_t *)(void *)shared->at;
    lane->shared_key = shared->mr->rkey;
    chance_fill(&job->chance, lane->far.at, lane->far.len);
    lane->sure = g_memdup2(lane->far.at, slots);
    lane->planned = g_memdup2(lane->far.at, slots);
    lane->want = g_malloc((size_t)GPU_WINDOW * GPU_LEN);
    for (unsigned word = 0; word < GPU_WORDS; word++) {
        lane->word[word] = lane->word_sure[word] = lane_load_word(lane, word);
    }
    gpu_target_new(&lane->t, to->ctx, to->pd, attr->dc);
    lane_make_queue(lane);
    lane_connect(lane);
}

static bool lane_run(struct gpu_lane *lane)
{
    struct chance *chance = &lane->job->chance;

    if (lane->broken) {
        lane->state = GPU_DRAINS;
        return true;
    }
    if (lane->done < lane->limit &&
        chance_happens(chance, (unsigned)lane->job->sim->options.errors / 4)) {
        lane_end(lane);
        return true;
    }
    return !chance_one_in(chance, 4) && lane_post(lane);
}

bool gpu_lane_step(struct gpu_lane *lane)
{
    struct sim *sim = lane->job->sim;
    bool did = lane_poll(lane);

    switch (lane->state) {
    case GPU_RUNS:
        return lane_run(lane) || did;
    case GPU_DRAINS:
        if (lane->done == lane->posted && !lane_is_storing(lane)) {
            lane->state = GPU_IS_QUIET;
            lane->quiet_ns = sim_quiet_ns(sim);
        }
        return did;
    default:
        if (sim->world->now_ns < lane->quiet_ns) {
            return did;
        }
        lane_begin_again(lane);
        return true;
    }
}

bool gpu_lane_is_done(const struct gpu_lane *lane)
{
    return lane->state == GPU_RUNS && !lane->broken && lane->done >= lane->limit &&
           !lane_is_storing(lane);
}

uint64_t gpu_lane_shared(const struct gpu_lane *lane)
{
    return lane->word_sure[GPU_WORD_SHARED] << 16 * (lane->number / 2);
}

void gpu_lane_check(const struct gpu_lane *lane)
{
    for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
        lane_check_slot(lane, slot);
    }
    for (unsigned word = 0; word < GPU_WORDS; word++) {
        lane_check_word(lane, word);
    }
}

void gpu_lane_free(struct gpu_lane *lane)
{
    liveness_gpu_rings(lane->job->sim->liveness, lane->from, lane->q.sq.qpn, false);
    gpu_queue_free(&lane->q);
    gpu_target_free(&lane->t);
    sim_span_free(lane->job, &lane->near);
    sim_span_free(lane->job, &lane->far);
    g_array_free(lane->stores, TRUE);
    g_free(lane->sure);
    g_free(lane->planned);
    g_free(lane->want);
}
