/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans batches (data_plan.h). A batch places everything that it needs into both arenas, one piece
 * after the other, with gaps of random size. Sources and gaps keep the background pattern. A target
 * gets its source's bytes, which pattern() computes for any place of any side.
 */
#include "tests/programs/data_plan.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAP       64         /* the most bytes between two pieces */
#define BUDGET    (2u << 20) /* a batch is closed after this many bytes of an arena */
#define SRQ_EXTRA 100
#define REPORTS   8

const char *const data_transport_name[DATA_TRANSPORTS] = {"rc", "srq", "uc", "ud"};
const char *const data_kind_name[DATA_KINDS] = {
    "send", "send_imm", "write", "write_imm", "read", "fetch_add", "cmp_swap",
};

/* -- numbers ------------------------------------------------------------------------------------
 */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}

static uint64_t next(struct data_plan *plan)
{
    plan->random += 0x9e3779b97f4a7c15;
    return mix(plan->random);
}

/* Returns 0 to n - 1. */
static uint32_t below(struct data_plan *plan, uint32_t n)
{
    return (uint32_t)((next(plan) >> 32) * n >> 32);
}

static bool one_in(struct data_plan *plan, uint32_t n)
{
    return below(plan, n) == 0;
}

static uint64_t salt(const struct data_plan *plan, unsigned side)
{
    return mix(plan->config.seed * 2 + side) ^ mix(plan->batch + 1);
}

/* Writes the background of an arena, from `at` on. */
static void pattern(uint64_t key, uint32_t at, uint8_t *to, uint32_t len)
{
    while (len) {
        uint32_t skip = at % 8, n = 8 - skip < len ? 8 - skip : len;
        uint64_t word = key + (at / 8) * 0x9e3779b97f4a7c15;

        word = (word ^ word >> 32) * 0xd6e8feb86659fd93;
        word ^= word >> 32;
        memcpy(to, (uint8_t *)&word + skip, n);
        to += n;
        at += n;
        len -= n;
    }
}

/* -- making a batch -----------------------------------------------------------------------------
 */

static const struct {
    unsigned n;
    enum data_kind kind[16]; /* each kind is as likely as often as it stands here */
} mixes[DATA_TRANSPORTS] = {
    [DATA_RC] = {14,
                 {DATA_SEND, DATA_SEND, DATA_SEND, DATA_SEND_IMM, DATA_WRITE, DATA_WRITE,
                  DATA_WRITE, DATA_WRITE_IMM, DATA_READ, DATA_READ, DATA_READ, DATA_FETCH_ADD,
                  DATA_FETCH_ADD, DATA_CMP_SWAP}},
    [DATA_RC_SRQ] = {6,
                     {DATA_SEND, DATA_SEND, DATA_SEND_IMM, DATA_WRITE, DATA_WRITE_IMM, DATA_READ}},
    [DATA_UC] = {4, {DATA_SEND, DATA_SEND_IMM, DATA_WRITE, DATA_WRITE_IMM}},
    [DATA_UD] = {3, {DATA_SEND, DATA_SEND, DATA_SEND_IMM}},
};

static bool takes_a_receive(enum data_kind kind)
{
    return kind == DATA_SEND || kind == DATA_SEND_IMM || kind == DATA_WRITE_IMM;
}

static bool is_send(enum data_kind kind)
{
    return kind == DATA_SEND || kind == DATA_SEND_IMM;
}

static bool is_atomic(enum data_kind kind)
{
    return kind == DATA_FETCH_ADD || kind == DATA_CMP_SWAP;
}

void data_plan_init(struct data_plan *plan, const struct data_config *config)
{
    memset(plan, 0, sizeof(*plan));
    plan->config = *config;
    plan->random = mix(config->seed + 1);
}

/* Returns a length: mostly small, but all sizes up to the largest occur. */
static uint32_t some_length(struct data_plan *plan, enum data_transport transport)
{
    static const uint32_t most[16] = {
        8, 64, 64, 64, 64, 256, 1024, 1024, 1024, 2048, 4200, 4200, 8192, 16384, 65536, 65536,
    };
    uint32_t limit = most[below(plan, 16)];

    if (transport == DATA_UD) {
        /* the largest payload is a case of its own */
        return one_in(plan, 16) ? plan->config.mtu : below(plan, plan->config.mtu + 1);
    }
    if (transport == DATA_RC_SRQ && limit > DATA_SRQ_LEN) {
        limit = DATA_SRQ_LEN;
    }
    if (transport != DATA_RC_SRQ && one_in(plan, 128)) {
        limit = one_in(plan, 8) ? 0 : DATA_MAX_LEN;
        return limit ? below(plan, limit + 1) : DATA_MAX_LEN;
    }
    return below(plan, limit + 1);
}

/* Allocates len bytes at a multiple of align. */
static uint32_t place(struct data_plan *plan, unsigned side, uint32_t len, uint32_t align)
{
    uint32_t at = plan->used[side] + 1 + below(plan, GAP);

    at = (at + align - 1) / align * align;
    plan->used[side] = at + len + 1;
    return at;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Places len bytes in up to max pieces at random places. */
static void scatter(struct data_plan *plan, unsigned side, uint32_t len, unsigned max,
                    struct data_list *list)
{
    unsigned wish = below(plan, 8), n;
    uint32_t cut[DATA_MAX_SGE], from = 0;

    n = wish < 4 ? 1 : wish < 6 ? 1 + below(plan, 4) : wish < 7 ? 1 + below(plan, max) : max;
    n = n > max ? max : n;
    list->n = 0;
    if (!len) {
        return;
    }
    for (unsigned i = 0; i + 1 < n; i++) {
        cut[i] = below(plan, len);
    }
    cut[n - 1] = len;
    qsort(cut, n - 1, sizeof(cut[0]), by_value);
    for (unsigned i = 0; i < n; i++) {
        if (cut[i] > from) {
            list->piece[list->n++].len = cut[i] - from;
            from = cut[i];
        }
    }
    /* pieces in the order of the list, or in reverse */
    wish = below(plan, 2);
    for (unsigned i = 0; i < list->n; i++) {
        struct data_piece *piece = &list->piece[wish ? i : list->n - 1 - i];

        piece->at = place(plan, side, piece->len, 1);
    }
}

/* Adds the receive that op consumes. */
static void add_slot(struct data_plan *plan, const struct data_op *op)
{
    unsigned side = !op->side;
    struct data_slot *slot = &plan->slot[side][plan->num_slots[side]++];
    enum data_transport transport = plan->config.transport[op->lane];
    uint32_t room = is_send(op->kind) ? op->len : below(plan, 20);
    unsigned max = plan->config.max_sge;

    if (transport == DATA_RC_SRQ) {
        room = DATA_SRQ_LEN;
        max = plan->config.max_srq_sge;
    } else if (transport == DATA_UD) {
        room += DATA_GRH;
    }
    if (one_in(plan, 2)) {
        room += below(plan, SRQ_EXTRA);
    }
    slot->lane = op->lane;
    slot->used = false;
    scatter(plan, side, room, max, &slot->list);
}

static void make_op(struct data_plan *plan, unsigned lane, unsigned side)
{
    enum data_transport transport = plan->config.transport[lane];
    struct data_op *op = &plan->op[plan->num_ops++];
    bool may_inline;

    memset(op, 0, sizeof(*op));
    op->lane = lane;
    op->side = side;
    op->kind = mixes[transport].kind[below(plan, mixes[transport].n)];
    op->signaled = one_in(plan, 3);
    op->solicited = one_in(plan, 4);
    op->imm = (uint32_t)next(plan);
    if (is_atomic(op->kind)) {
        op->len = 8;
        op->shared = op->kind == DATA_FETCH_ADD && one_in(plan, 2);
        op->remote = op->shared ? DATA_COUNTER : place(plan, !side, 8, 8);
        op->swap_add = op->shared ? below(plan, 1000) : next(plan);
        op->compare = next(plan);
        if (op->kind == DATA_CMP_SWAP && one_in(plan, 2)) {
            pattern(salt(plan, !side), op->remote, (uint8_t *)&op->compare, 8);
        }
        if (op->shared) {
            plan->sum[!side] += op->swap_add;
        }
        scatter(plan, side, op->len, 1, &op->local);
    } else {
        op->len = some_length(plan, transport);
        scatter(plan, side, op->len, plan->config.max_sge, &op->local);
        if (!is_send(op->kind)) {
            op->remote = place(plan, !side, op->len, 1);
        }
    }
    op->fence = transport <= DATA_RC_SRQ && one_in(plan, 8);
    may_inline = op->kind < DATA_READ && op->len && op->len <= plan->config.max_inline;
    op->inlined = may_inline && one_in(plan, 2);
    if (takes_a_receive(op->kind)) {
        add_slot(plan, op);
    }
    plan->bytes += op->len;
}

/* Makes the last operation of each side on each lane signaled. On UC it must be an operation whose
 * completion the other side sees: a WRITE's own completion only says that it was sent. */
static void close_lanes(struct data_plan *plan)
{
    bool seen[DATA_LANES][2] = {{false}};

    for (unsigned i = plan->num_ops; i-- > 0;) {
        struct data_op *op = &plan->op[i];

        if (!seen[op->lane][op->side]) {
            seen[op->lane][op->side] = true;
            op->signaled = true;
            if (plan->config.transport[op->lane] == DATA_UC && op->kind == DATA_WRITE) {
                op->kind = DATA_WRITE_IMM;
                add_slot(plan, op);
            }
        }
        plan->done[plan->config.transport[op->lane]][op->kind]++;
    }
}

void data_plan_next(struct data_plan *plan, unsigned max_ops)
{
    unsigned count[DATA_LANES][2] = {{0}}, want = 1 + below(plan, DATA_BATCH);

    plan->batch++;
    plan->num_ops = plan->num_slots[0] = plan->num_slots[1] = 0;
    memset(plan->received, 0, sizeof(plan->received));
    for (unsigned side = 0; side < 2; side++) {
        plan->used[side] = below(plan, 4096);
    }
    want = want < max_ops ? want : max_ops;
    while (plan->num_ops < want && plan->used[0] < BUDGET && plan->used[1] < BUDGET) {
        unsigned lane = below(plan, plan->config.lanes), side = below(plan, 2);

        if (count[lane][side]++ == DATA_DEPTH) {
            break;
        }
        make_op(plan, lane, side);
    }
    close_lanes(plan);
    for (unsigned side = 0; side < 2; side++) {
        plan->used[side] += GAP;
    }
}

/* -- what memory must hold ----------------------------------------------------------------------
 */

/* Writes the bytes from skip on that the places of `to` hold. */
static void put(uint8_t *arena, const struct data_list *to, uint32_t skip, const uint8_t *bytes,
                uint32_t len)
{
    for (unsigned i = 0; i < to->n && len; i++) {
        uint32_t room = to->piece[i].len, n;

        if (skip >= room) {
            skip -= room;
            continue;
        }
        n = room - skip < len ? room - skip : len;
        memcpy(arena + to->piece[i].at + skip, bytes, n);
        skip = 0;
        bytes += n;
        len -= n;
    }
}

/* Writes op's message to the places of `to`, from skip on. */
static void put_message(const struct data_plan *plan, const struct data_op *op, uint8_t *shadow,
                        const struct data_list *to, uint32_t skip)
{
    uint8_t bytes[4096];

    for (unsigned i = 0; i < op->local.n; i++) {
        struct data_piece from = op->local.piece[i];

        while (from.len) {
            uint32_t n = from.len < sizeof(bytes) ? from.len : (uint32_t)sizeof(bytes);

            pattern(salt(plan, op->side), from.at, bytes, n);
            put(shadow, to, skip, bytes, n);
            skip += n;
            from.at += n;
            from.len -= n;
        }
    }
}

static void put_read(const struct data_plan *plan, const struct data_op *op, uint8_t *shadow)
{
    uint32_t from = op->remote;

    for (unsigned i = 0; i < op->local.n; i++) {
        pattern(salt(plan, !op->side), from, shadow + op->local.piece[i].at,
                op->local.piece[i].len);
        from += op->local.piece[i].len;
    }
}

/* Applies an operation's effect to the target's side. */
static void put_remote(const struct data_plan *plan, const struct data_op *op, uint8_t *shadow)
{
    struct data_list target = {1, {{op->remote, op->len}}};
    uint64_t word;

    if (op->kind == DATA_WRITE || op->kind == DATA_WRITE_IMM) {
        put_message(plan, op, shadow, &target, 0);
    } else if (is_atomic(op->kind) && !op->shared) {
        memcpy(&word, shadow + op->remote, 8);
        if (op->kind == DATA_FETCH_ADD) {
            word += op->swap_add;
        } else if (word == op->compare) {
            word = op->swap_add;
        }
        memcpy(shadow + op->remote, &word, 8);
    }
}

void data_fill(const struct data_plan *plan, unsigned side, uint8_t *arena, uint8_t *shadow)
{
    pattern(salt(plan, side), 0, arena, plan->used[side]);
    memcpy(shadow, arena, plan->used[side]);
    for (unsigned i = 0; i < plan->num_ops; i++) {
        const struct data_op *op = &plan->op[i];

        if (op->side != side) {
            put_remote(plan, op, shadow);
        } else if (op->kind == DATA_READ || (is_atomic(op->kind) && !op->shared)) {
            put_read(plan, op, shadow);
        }
    }
}

/* Returns whether the i-th operation takes this slot, where slots are taken in order. */
static bool is_next_slot(const struct data_plan *plan, unsigned side, unsigned lane, unsigned slot)
{
    for (unsigned i = 0; i < slot; i++) {
        if (plan->slot[side][i].lane == lane && !plan->slot[side][i].used) {
            return false;
        }
    }
    return true;
}

const struct data_op *data_received(struct data_plan *plan, unsigned side, unsigned lane,
                                    unsigned slot, const uint8_t *arena, uint8_t *shadow)
{
    enum data_transport transport = plan->config.transport[lane];
    const struct data_op *op = NULL;
    struct data_slot *s;

    while (!op && plan->received[side][lane] < plan->num_ops) {
        op = &plan->op[plan->received[side][lane]++];
        if (op->lane != lane || op->side == side || !takes_a_receive(op->kind)) {
            op = NULL;
        }
    }
    if (!op || slot >= plan->num_slots[side] || plan->slot[side][slot].used) {
        return NULL;
    }
    s = &plan->slot[side][slot];
    if (transport == DATA_RC_SRQ ? plan->config.transport[s->lane] != DATA_RC_SRQ
                                 : s->lane != lane || !is_next_slot(plan, side, lane, slot)) {
        return NULL;
    }
    s->used = true;
    if (is_send(op->kind)) {
        uint32_t skip = transport == DATA_UD ? DATA_GRH : 0;

        put_message(plan, op, shadow, &s->list, skip);
        for (unsigned i = 0; i < s->list.n && skip; i++) {
            uint32_t n = s->list.piece[i].len < skip ? s->list.piece[i].len : skip;

            memcpy(shadow + s->list.piece[i].at, arena + s->list.piece[i].at, n);
            skip -= n;
        }
    }
    return op;
}

void data_scribble(const struct data_op *op, uint8_t *arena, uint8_t *shadow)
{
    for (unsigned i = 0; i < op->local.n; i++) {
        memset(arena + op->local.piece[i].at, 0xee, op->local.piece[i].len);
        memset(shadow + op->local.piece[i].at, 0xee, op->local.piece[i].len);
    }
}

unsigned data_receives_due(const struct data_plan *plan, unsigned side)
{
    return plan->num_slots[side];
}

unsigned data_completions_due(const struct data_plan *plan, unsigned side)
{
    unsigned n = 0;

    for (unsigned i = 0; i < plan->num_ops; i++) {
        n += plan->op[i].side == side && plan->op[i].signaled;
    }
    return n;
}

/* -- judging ------------------------------------------------------------------------------------
 */

static bool inside(const struct data_list *list, uint32_t at)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (at >= list->piece[i].at && at - list->piece[i].at < list->piece[i].len) {
            return true;
        }
    }
    return false;
}

static void describe(FILE *log, const struct data_plan *plan, unsigned side, uint32_t at,
                     uint8_t is, uint8_t shall)
{
    fprintf(log, "batch %" PRIu64 ", side %u, byte %u is 0x%02x, must be 0x%02x:", plan->batch,
            side, at, is, shall);
    for (unsigned i = 0; i < plan->num_slots[side]; i++) {
        if (inside(&plan->slot[side][i].list, at)) {
            fprintf(log, " in receive %u of lane %u", i, plan->slot[side][i].lane);
        }
    }
    for (unsigned i = 0; i < plan->num_ops; i++) {
        const struct data_op *op = &plan->op[i];
        bool hit = op->side == side
                       ? inside(&op->local, at)
                       : !is_send(op->kind) && at >= op->remote && at - op->remote < op->len;

        if (hit) {
            fprintf(log, " %s operation %u, %s %s, %u bytes, lane %u",
                    op->side == side ? "local of" : "target of", i,
                    data_transport_name[plan->config.transport[op->lane]], data_kind_name[op->kind],
                    op->len, op->lane);
        }
    }
    fprintf(log, "\n");
}

uint64_t data_compare(const struct data_plan *plan, unsigned side, const uint8_t *arena,
                      uint8_t *shadow, FILE *log)
{
    uint64_t bad = 0, counter;
    unsigned said = 0;
    bool before = false;

    /* The result of a shared counter depends on the order of all operations: any value up to its
     * sum. */
    for (unsigned i = 0; i < plan->num_ops; i++) {
        const struct data_op *op = &plan->op[i];
        uint64_t got;

        if (op->side == side && op->shared) {
            memcpy(&got, arena + op->local.piece[0].at, 8);
            if (got <= plan->sum[!side] - op->swap_add) {
                memcpy(shadow + op->local.piece[0].at, &got, 8);
            }
        }
    }
    memcpy(&counter, arena + DATA_COUNTER, 8);
    if (counter != plan->sum[side] && log) {
        fprintf(log, "batch %" PRIu64 ", side %u: the counter is %" PRIu64 ", not %" PRIu64 "\n",
                plan->batch, side, counter, plan->sum[side]);
    }
    bad += counter != plan->sum[side] ? 8 : 0;
    if (memcmp(arena, shadow, plan->used[side]) == 0) {
        return bad;
    }
    for (uint32_t at = 0; at < plan->used[side]; at++) {
        bool differs = arena[at] != shadow[at];

        bad += differs;
        if (log && differs && !before && said++ < REPORTS) {
            describe(log, plan, side, at, arena[at], shadow[at]);
        }
        before = differs;
    }
    return bad;
}

void data_print(const struct data_plan *plan)
{
    printf("%-4s", "");
    for (unsigned k = 0; k < DATA_KINDS; k++) {
        printf(" %10s", data_kind_name[k]);
    }
    printf("\n");
    for (unsigned t = 0; t < DATA_TRANSPORTS; t++) {
        printf("%-4s", data_transport_name[t]);
        for (unsigned k = 0; k < DATA_KINDS; k++) {
            printf(" %10" PRIu64, plan->done[t][k]);
        }
        printf("\n");
    }
    printf("%" PRIu64 " bytes of messages in %" PRIu64
           " batches; lists of up to %u pieces, %u in an "
           "SRQ\n",
           plan->bytes, plan->batch, plan->config.max_sge, plan->config.max_srq_sge);
}
