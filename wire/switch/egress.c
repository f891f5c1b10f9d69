/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side of a port that sends: queues, marks, the line.
 *
 * A frame that finds its port idle and in no need of time goes to the wire at once, with one copy.
 * Otherwise it is stored in the pool and waits in the queue of its priority; higher priorities go
 * first. When the line is free the frame takes its length divided by the rate to leave, and then
 * the latency to arrive. Times of the line are in picoseconds, as in the simulation's links
 * (tests/sim/fabric/link.c): an owner that wakes up late sends what should have left meanwhile, so
 * the rate does not depend on its clock.
 *
 * Who ends a wait: the line's time (due_ns), a pause's end (due_ns, or a pause frame of zero
 * length), a credit (tx_ready). A peer that gives no credit for a second loses the frames of
 * senders that would be held up for it (stuck). If several receivers are behind the port (a segment
 * of shared memory), one of them holds up the others for SWITCH_WAIT_NS, and then its own frames
 * are dropped until it gives credit.
 */
#include "wire/encap/ecn.h"
#include "wire/encap/ip.h"
#include "wire/encap/roce.h"
#include "wire/bytes.h"
#include "wire/switch/priv.h"

#include <string.h>

#define PS_PER_NS     1000ull
#define PS_PER_S      1000000000000ull
#define LINE_OVERHEAD 24 /* bytes of a frame on the line: preamble 8, FCS 4, gap 12 */

enum egress_end {
    EGRESS_DONE, /* sent or dropped, and counted */
    EGRESS_NO_CREDIT,
};

bool egress_has_vid(const struct switch_port *p, unsigned vid)
{
    return vid == p->config.vlans.native || switch_vlans_has_tagged(&p->config.vlans, vid);
}

/* -- to the wire ------------------------------------------------------------------------------- */

static void egress_put_tag(uint8_t *at, const struct switch_frame *f)
{
    put16(at, ETH_TYPE_VLAN);
    put16(at + 2, (uint16_t)(f->priority << 13 | f->dei << 12 | f->vid));
}

void egress_block(struct switch_port *p)
{
    p->stats.blocked++;
    p->blocked = true;
    p->blocked_ns = p->sw->now_ns;
    p->blocked_class = wire_tx_credit_class(p->wire);
}

static enum egress_end egress_emit(struct switch_port *p, const struct switch_frame *f, bool marked)
{
    size_t tag = f->vid == p->config.vlans.native ? 0 : VLAN_BYTES, len = f->len + tag;
    size_t head = sizeof(f->head);
    uint8_t *room;

    if (len > WIRE_FRAME_MAX) {
        p->stats.too_long++;
        return EGRESS_DONE;
    }
    room = wire_tx_reserve_to(p->wire, f->head, len);
    if (!room && p->stuck_classes >> wire_tx_credit_class(p->wire) & 1) {
        p->stats.stuck++;
        return EGRESS_DONE;
    }
    if (!room) {
        egress_block(p);
        return EGRESS_NO_CREDIT;
    }
    memcpy(room, f->head, head);
    if (tag) {
        egress_put_tag(room + head, f);
    }
    memcpy(room + head + tag, f->body, f->len - head);
    if (marked && ecn_mark_ce(room, len)) {
        p->stats.marked++;
    }
    if (f->no_icrc && !(p->wire->offers & WIRE_NO_ICRC)) {
        roce_fill_icrc(room, len);
    }
    p->stats.sent++;
    p->stats.tx_bytes += len;
    switch_set_put(&p->sw->dirty, p->number, true);
    wire_tx_commit_as(p->wire, len, WIRE_MORE | (f->no_icrc ? p->wire->offers & WIRE_NO_ICRC : 0u));
    return EGRESS_DONE;
}

static struct switch_frame egress_stored(const struct switch_port *p, uint32_t at)
{
    const struct pool_frame *stored = &p->sw->pool.frames[at];
    const uint8_t *bytes = pool_bytes(&p->sw->pool, at);
    struct switch_frame f = {.body = bytes + sizeof(f.head),
                             .len = stored->len,
                             .vid = stored->vid,
                             .from = stored->from,
                             .priority = stored->priority,
                             .dei = stored->dei,
                             .no_icrc = stored->no_icrc,
                             .stored = at};

    memcpy(f.head, bytes, sizeof(f.head));
    return f;
}

void egress_put_frame(struct wire_switch *sw, uint32_t at)
{
    struct pool_frame *f = &sw->pool.frames[at];
    struct switch_port *from = &sw->ports[f->from];
    bool is_there = from->wire && from->serial == f->serial;
    unsigned priority = f->priority;
    uint64_t len = f->len;

    if (!--f->users) {
        pool_free_frame(&sw->pool, at);
        if (is_there) {
            flow_release(from, priority, len);
        }
    }
}

/* Frees an entry, and its frame if no other queue has it. */
static void egress_free(struct switch_port *p, uint32_t entry)
{
    uint32_t at = p->sw->pool.entries[entry].frame;

    pool_free_entry(&p->sw->pool, entry);
    p->stats.waiting--;
    egress_put_frame(p->sw, at);
}

/* Sends the first frame of a queue. False: no credit. */
static bool egress_emit_first(struct switch_port *p, struct pool_queue *queue)
{
    const struct pool_entry *entry = &p->sw->pool.entries[queue->head];
    struct switch_frame f = egress_stored(p, entry->frame);

    if (!egress_has_vid(p, f.vid)) {
        p->stats.parted++; /* the setting was changed meanwhile */
    } else if (egress_emit(p, &f, entry->marked) == EGRESS_NO_CREDIT) {
        return false;
    }
    egress_free(p, pool_pop(&p->sw->pool, queue));
    return true;
}

/* -- the line ---------------------------------------------------------------------------------- */

static uint64_t egress_ps_of(const struct switch_port *p, uint64_t bytes)
{
    return p->config.rate ? (uint64_t)((unsigned __int128)bytes * 8 * PS_PER_S / p->config.rate)
                          : 0;
}

/* The queue that sends next; NULL: none may. */
static struct pool_queue *egress_next_queue(struct switch_port *p)
{
    for (unsigned i = SWITCH_PRIORITIES; p->waiting_priorities && i > 0; i--) {
        if (p->waiting_priorities >> (i - 1) & 1 && p->paused_until[i - 1] <= p->sw->now_ns) {
            return &p->queue[i - 1];
        }
    }
    return NULL;
}

static void egress_note_empty(struct switch_port *p, const struct pool_queue *queue)
{
    if (queue->head == POOL_NONE) {
        p->waiting_priorities &= (uint8_t) ~(1u << (queue - p->queue));
    }
}

/* Frames on the line take places of the pool, too, and a long latency may not take all. */
static bool egress_line_has_room(const struct switch_port *p)
{
    return p->line.frames < p->sw->pool.num_frames / 4;
}

/* Moves the first frame of a queue to the line. */
static void egress_depart(struct switch_port *p, struct pool_queue *queue)
{
    struct pool *pool = &p->sw->pool;
    uint32_t entry = pool_pop(pool, queue);
    struct pool_entry *e = &pool->entries[entry];
    uint64_t resumed = p->paused_until[queue - p->queue];
    uint64_t begin = MAX(e->time_ns, resumed) * PS_PER_NS; /* not in the time of a pause */

    egress_note_empty(p, queue);
    p->free_ps =
        MAX(p->free_ps, begin) + egress_ps_of(p, pool->frames[e->frame].len + LINE_OVERHEAD);
    e->time_ns = p->free_ps / PS_PER_NS + p->config.latency_ns;
    pool_push(pool, &p->line, entry);
}

/* Sends the frames of the line that have arrived. False: no credit. */
static bool egress_arrive(struct switch_port *p)
{
    while (p->line.head != POOL_NONE &&
           p->sw->pool.entries[p->line.head].time_ns <= p->sw->now_ns) {
        if (!egress_emit_first(p, &p->line)) {
            return false;
        }
    }
    return true;
}

void egress_hurry(struct switch_port *p)
{
    struct pool *pool = &p->sw->pool;
    uint64_t latest = p->sw->now_ns + p->config.latency_ns;

    for (uint32_t e = p->line.head; e != POOL_NONE; e = pool->entries[e].next) {
        pool->entries[e].time_ns = MIN(pool->entries[e].time_ns, latest);
    }
    p->free_ps = MIN(p->free_ps, p->sw->now_ns * PS_PER_NS);
}

static bool egress_needs_no_time(const struct switch_port *p)
{
    return !p->config.rate && !p->config.latency_ns;
}

/* Sends until nothing can be sent now. */
static void egress_send(struct switch_port *p)
{
    struct pool_queue *queue;

    while (egress_arrive(p) && (queue = egress_next_queue(p))) {
        if (egress_needs_no_time(p) && p->line.head == POOL_NONE) {
            if (!egress_emit_first(p, queue)) {
                return;
            }
            egress_note_empty(p, queue);
        } else if (p->free_ps <= p->sw->now_ns * PS_PER_NS && egress_line_has_room(p)) {
            egress_depart(p, queue);
        } else {
            return;
        }
    }
}

/* Whether several receivers are behind the port, with credits of their own. */
static bool egress_has_classes(const struct switch_port *p)
{
    return wire_tells_hosts(p->wire);
}

static uint64_t egress_patience(const struct switch_port *p)
{
    return egress_has_classes(p) ? SWITCH_WAIT_NS : SWITCH_STUCK_NS;
}

static uint64_t egress_due(const struct switch_port *p)
{
    uint64_t due = p->pauses ? p->refresh_ns : SWITCH_NEVER;

    if (p->blocked) {
        return p->stuck ? SWITCH_NEVER : p->blocked_ns + egress_patience(p);
    }
    if (p->pause_pending) {
        return p->sw->now_ns;
    }
    if (p->line.head != POOL_NONE) {
        due = MIN(due, p->sw->pool.entries[p->line.head].time_ns);
    }
    for (unsigned i = 0; p->waiting_priorities >> i; i++) {
        if (p->waiting_priorities >> i & 1 && egress_line_has_room(p)) {
            due = MIN(due, MAX(p->paused_until[i], (p->free_ps + PS_PER_NS - 1) / PS_PER_NS));
        }
    }
    return due;
}

/* -- drops ------------------------------------------------------------------------------------- */

static void egress_drop_queue(struct switch_port *p, struct pool_queue *queue, uint64_t *fate)
{
    while (queue->head != POOL_NONE) {
        ++*fate;
        egress_free(p, pool_pop(&p->sw->pool, queue));
    }
}

void egress_drop_all(struct switch_port *p, uint64_t *fate)
{
    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        egress_drop_queue(p, &p->queue[i], fate);
    }
    egress_drop_queue(p, &p->line, fate);
    p->waiting_priorities = 0;
}

/* Whether a frame waits here whose sender would be held up. */
static bool egress_has_lossless(const struct switch_port *p)
{
    const struct pool *pool = &p->sw->pool;

    for (unsigned i = 0; i <= SWITCH_PRIORITIES; i++) {
        const struct pool_queue *queue = i < SWITCH_PRIORITIES ? &p->queue[i] : &p->line;

        for (uint32_t e = queue->head; e != POOL_NONE; e = pool->entries[e].next) {
            if (pool->entries[e].lossless) {
                return true;
            }
        }
    }
    return false;
}

static void egress_look_stuck(struct switch_port *p)
{
    if (p->stuck || p->sw->now_ns - p->blocked_ns < egress_patience(p)) {
        return;
    }
    if (egress_has_classes(p)) {
        p->stuck_classes |= 1ull << p->blocked_class;
        p->blocked = false;
    } else if (egress_has_lossless(p)) {
        p->stuck = true;
        egress_drop_all(p, &p->stats.stuck);
    } else {
        p->blocked_ns = p->sw->now_ns;
    }
}

void egress_run(struct switch_port *p)
{
    if (p->blocked) {
        egress_look_stuck(p);
    }
    if (!p->blocked && flow_send(p)) {
        egress_send(p);
    }
    p->sw->due_ns[p->number] = egress_due(p);
}

/* -- from the switch --------------------------------------------------------------------------- */

static bool egress_marks(struct switch_port *p, uint64_t queued)
{
    const struct switch_port_config *c = &p->config;

    if (!c->ecn_max || queued < c->ecn_min) {
        return false;
    }
    return queued >= c->ecn_max ||
           chance_happens(&p->chance,
                          (unsigned)((unsigned __int128)c->ecn_most * (queued - c->ecn_min) /
                                     (c->ecn_max - c->ecn_min)));
}

/* Stores the frame, if no other port has done so. False: the buffer is full. */
static bool egress_store(struct wire_switch *sw, struct switch_frame *f)
{
    struct switch_port *from = &sw->ports[f->from];
    struct pool_frame *stored;
    uint8_t *bytes;

    if (f->stored != POOL_NONE) {
        return true;
    }
    f->stored = pool_take_frame(&sw->pool);
    if (f->stored == POOL_NONE) {
        return false;
    }
    sw->frames_most = MAX(sw->frames_most, sw->pool.num_frames - sw->pool.free_frames);
    stored = &sw->pool.frames[f->stored];
    *stored = (struct pool_frame){.len = (uint16_t)f->len,
                                  .vid = f->vid,
                                  .from = f->from,
                                  .priority = f->priority,
                                  .dei = f->dei,
                                  .no_icrc = f->no_icrc,
                                  .serial = from->serial,
                                  .users = 1}; /* ingress.c, until it has offered it to all */
    bytes = pool_bytes(&sw->pool, f->stored);
    memcpy(bytes, f->head, sizeof(f->head));
    memcpy(bytes + sizeof(f->head), f->body, f->len - sizeof(f->head));
    f->body = bytes + sizeof(f->head);
    flow_hold(from, f->priority, f->len);
    return true;
}

/* A frame that is not lossless leaves places for those that are, and no port takes more places than
 * it leaves to others. */
static bool egress_may_store(const struct switch_port *p, bool lossless)
{
    const struct pool *pool = &p->sw->pool;

    return lossless || (p->stats.waiting + pool->num_frames / 8 < pool->free_frames &&
                        pool->free_entries > WIRE_SWITCH_PORTS_MAX);
}

/* Puts the frame into its queue. */
static void egress_wait(struct switch_port *p, struct switch_frame *f, bool lossless)
{
    struct pool *pool = &p->sw->pool;
    struct pool_queue *queue = &p->queue[f->priority];
    uint64_t queued = queue->bytes;
    uint32_t entry;

    if (!egress_may_store(p, lossless) || !egress_store(p->sw, f)) {
        p->stats.no_buffer++;
        return;
    }
    entry = pool_take_entry(pool);
    if (entry == POOL_NONE) {
        p->stats.no_buffer++;
        return;
    }
    pool->entries[entry] = (struct pool_entry){.frame = f->stored,
                                               .time_ns = p->sw->now_ns,
                                               .marked = egress_marks(p, queued),
                                               .lossless = lossless};
    pool->frames[f->stored].users++;
    pool_push(pool, queue, entry);
    p->waiting_priorities |= (uint8_t)(1u << f->priority);
    p->stats.waiting++;
    p->stats.queue_most = MAX(p->stats.queue_most, queue->bytes);
}

static bool egress_is_idle(const struct switch_port *p, const struct switch_frame *f)
{
    return !p->waiting_priorities && p->line.head == POOL_NONE && !p->blocked &&
           !p->pause_pending && egress_needs_no_time(p) &&
           p->paused_until[f->priority] <= p->sw->now_ns &&
           !(p->config.ecn_max && !p->config.ecn_min);
}

void egress_offer(struct switch_port *to, struct switch_frame *f)
{
    const struct switch_port *from = &to->sw->ports[f->from];
    bool lossless = flow_is_lossless(from, f->priority);
    uint64_t queued = to->queue[f->priority].bytes;

    to->stats.offered++;
    if (!to->link_up || to->config.down) {
        to->stats.down++;
    } else if (from->config.island != to->config.island && f->from) {
        to->stats.parted++;
    } else if (f->len + (f->vid == to->config.vlans.native ? 0 : VLAN_BYTES) > WIRE_FRAME_MAX) {
        to->stats.too_long++;
    } else if (egress_is_idle(to, f) && egress_emit(to, f, false) == EGRESS_DONE) {
        return;
    } else if (lossless && to->stuck) {
        to->stats.stuck++;
    } else if (!lossless && queued && queued + f->len > to->config.queue) {
        to->stats.full++;
    } else {
        egress_wait(to, f, lossless);
        egress_run(to);
    }
}
