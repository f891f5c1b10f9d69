/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending on a shared-memory segment: finds the member that owns an address, and takes a slot in
 * its region.
 */
#include "wire/bytes.h"
#include "wire/shm/fdb.h"
#include "wire/shm/port.h"

#include <string.h>

/* The sender reads the tail only with this many frames on the way. The tail's cache line is the
 * receiver's, and slots that are not needed again yet stay out of this CPU's cache. */
#define REFRESH_INFLIGHT 16

/* How often a sender adds memory for slots before it takes the receiver to have no credit. */
#define ADD_TRIES 8

/* The longest frame whose cache lines are prefetched before it is written. */
#define PREFETCH_FRAME 2048

static uint64_t shm_tx_mac_at(const uint8_t *p)
{
    return (uint64_t)get16(p) << 32 | get32(p + 2);
}

static bool shm_tx_is_group(uint64_t mac)
{
    return mac >> 40 & 1;
}

/* ---- addresses ---- */

/* The member that frames to an address go to. SHM_NOBODY: they go to all. */
static unsigned shm_tx_member_of(struct shm_port *sp, uint64_t mac)
{
    uint64_t fdb_gen = atomic_load_explicit(&sp->seg.header->fdb_gen, memory_order_acquire);
    struct shm_cached_mac *c = &sp->cached[(mac ^ mac >> 6 ^ mac >> 12) % SHM_CACHED_MACS];

    if (shm_tx_is_group(mac)) {
        return SHM_NOBODY;
    }
    if (c->mac != mac || c->fdb_gen != fdb_gen) {
        c->mac = mac;
        c->fdb_gen = fdb_gen;
        c->member = shm_fdb_find(&sp->seg, mac);
    }
    return c->member;
}

unsigned shm_tx_find_member(struct shm_port *sp, const uint8_t mac[6])
{
    return shm_tx_member_of(sp, shm_tx_mac_at(mac));
}

/* Makes this port the owner of the source address of a frame that it sends. */
static void shm_tx_learn(struct shm_port *sp, uint64_t mac)
{
    struct shm_header *h = sp->seg.header;

    if (mac == sp->learned_mac &&
        atomic_load_explicit(&h->fdb_gen, memory_order_acquire) == sp->learned_gen) {
        return;
    }
    if (shm_tx_is_group(mac) || !mac) {
        return;
    }
    if (shm_tx_member_of(sp, mac) != sp->seg.id) {
        shm_fdb_learn(&sp->seg, mac);
    }
    sp->learned_gen = atomic_load(&h->fdb_gen);
    sp->learned_mac = shm_tx_member_of(sp, mac) == sp->seg.id ? mac : 0;
}

/* ---- rings ---- */

/* Makes a ring to this member. False: no memory. */
static bool shm_tx_open_ring(struct shm_port *sp, unsigned id)
{
    struct shm_region *region = shm_segment_region(&sp->seg, id);

    if (!region || !shm_segment_add_ring(&sp->seg, id)) {
        return false;
    }
    sp->peer[id]->region = region;
    /* Done whether or not an earlier member with this id has announced itself. */
    shm_set_add(&shm_member_at(sp, id)->senders, sp->seg.id);
    return true;
}

static struct shm_peer *shm_tx_peer_at(struct shm_port *sp, unsigned id)
{
    if (!sp->peer[id]) {
        sp->peer[id] = g_new0(struct shm_peer, 1);
    }
    return sp->peer[id];
}

/* The bit of the credit class that a receiver belongs to. */
static uint64_t shm_credit_class_bit(unsigned id)
{
    return 1ull << id % WIRE_CREDIT_CLASSES;
}

static void shm_tx_block(struct shm_port *sp, unsigned id)
{
    struct shm_peer *p = sp->peer[id];

    p->blocked = true;
    p->place = sp->num_blocked;
    sp->blocked[sp->num_blocked++] = (uint16_t)id;
}

static void shm_tx_unblock(struct shm_port *sp, unsigned id)
{
    struct shm_peer *p = sp->peer[id];

    if (p && p->blocked) {
        unsigned last = sp->blocked[--sp->num_blocked];

        p->blocked = false;
        sp->classes_back |= shm_credit_class_bit(id);
        sp->blocked[p->place] = (uint16_t)last;
        sp->peer[last]->place = p->place;
    }
}

/* ---- sending ---- */

/* Reads how far the receiver has come. The slots of the frames that it consumed become spare. */
static void shm_tx_refresh_tail(struct shm_port *sp, struct shm_peer *p)
{
    uint64_t tail = atomic_load_explicit(&p->region->ends[sp->seg.id].tail, memory_order_acquire);
    uint32_t consumed = shm_tail_pos(tail, sp->seg.gen);

    if (tail >> 32 != sp->seg.gen || consumed - p->tx_tail > p->tx_head - p->tx_tail) {
        return; /* of an earlier generation, or forged */
    }
    for (; p->tx_tail != consumed; p->tx_tail++) {
        if (p->spares < SHM_SLOTS) {
            p->spare[p->spares++] = p->slot_of[p->tx_tail % SHM_RING];
        }
    }
}

static bool shm_tx_take(struct shm_port *sp, struct shm_slot *slot)
{
    uint64_t free_tag = 0;

    return atomic_compare_exchange_strong_explicit(&slot->owner, &free_tag, sp->tag,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Prefetches a cache line for writing. x86 has an instruction for that, which processors without
 * it ignore. Compilers do not use it for __builtin_prefetch() unless told that the processor has
 * it. */
static void shm_tx_prefetch_to_write(const void *line)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Prefetches the slot that is used next while this frame is built: its lines are in the cache of
 * the receiver's CPU. */
static void shm_tx_prefetch_spare(const struct shm_peer *p)
{
    const struct shm_slot *slot;

    if (p->spares) {
        slot = &p->region->slot[p->spare[p->spares - 1]];
        for (unsigned i = 0; i < SHM_PREFETCH_LINES; i++) {
            shm_tx_prefetch_to_write((const uint8_t *)slot + (size_t)i * SHM_LINE);
        }
    }
}

/* Prefetches the rest of the slot that is used now: without that, each line is fetched when it is
 * written, one after another. A longer frame that the client writes past its caches needs none of
 * these lines (far, in wire/port.h). */
static void shm_tx_prefetch_frame(const struct shm_slot *slot, size_t len)
{
    size_t end = offsetof(struct shm_slot, frame) + len;

    if (len > PREFETCH_FRAME) {
        return;
    }
    for (size_t at = (size_t)SHM_PREFETCH_LINES * SHM_LINE; at < end; at += SHM_LINE) {
        shm_tx_prefetch_to_write((const uint8_t *)slot + at);
    }
}

/* Takes a free slot that has memory. SHM_SLOTS: there is none. Senders begin at different places,
 * so that they do not compete for the same slots. */
static unsigned shm_tx_search_slot(struct shm_port *sp, unsigned id)
{
    struct shm_region *region = sp->peer[id]->region;

    for (unsigned i = 0; i < SHM_CHUNKS; i++) {
        unsigned chunk = (i + sp->seg.id * 9) % SHM_CHUNKS;

        for (unsigned k = 0; k < SHM_CHUNK && shm_segment_has_chunk(&sp->seg, id, chunk); k++) {
            unsigned at = chunk * SHM_CHUNK + k;

            if (atomic_load_explicit(&region->slot[at].owner, memory_order_relaxed) == 0 &&
                shm_tx_take(sp, &region->slot[at])) {
                return at;
            }
        }
    }
    return SHM_SLOTS;
}

/* Takes a slot in a member's region and returns its number. SHM_SLOTS: no credit. */
static unsigned shm_tx_take_slot(struct shm_port *sp, unsigned id)
{
    struct shm_peer *p = shm_tx_peer_at(sp, id);
    unsigned slot;

    if (!p->region && !shm_tx_open_ring(sp, id)) {
        return SHM_SLOTS;
    }
    if (!p->spares || p->tx_head - p->tx_tail >= REFRESH_INFLIGHT) {
        shm_tx_refresh_tail(sp, p);
    }
    if (p->tx_head - p->tx_tail >= SHM_RING) {
        return SHM_SLOTS;
    }
    /* The slot that was used last is most likely in this CPU's cache. */
    while (p->spares) {
        unsigned i = p->spare[--p->spares];

        if (shm_tx_take(sp, &p->region->slot[i])) {
            shm_tx_prefetch_to_write(
                (const void *)&p->region->ring[sp->seg.id].entry[p->tx_head % SHM_RING]);
            shm_tx_prefetch_spare(p);
            return i;
        }
    }
    /* Other senders may take the slots that were added, so this is tried a few times. It is bounded
     * because every member can write the bitmap of chunks. */
    slot = shm_tx_search_slot(sp, id);
    for (unsigned i = 0; i < ADD_TRIES && slot == SHM_SLOTS; i++) {
        if (!shm_segment_add_chunk(&sp->seg, id)) {
            break;
        }
        slot = shm_tx_search_slot(sp, id);
    }
    return slot;
}

/* The same for a frame that must not be lost: without credit, this port is told when there is
 * some. */
static unsigned shm_tx_take_slot_or_wait(struct shm_port *sp, unsigned id)
{
    struct shm_set *waiters = &shm_member_at(sp, id)->waiters;
    unsigned slot;

    if (shm_tx_peer_at(sp, id)->blocked) {
        return SHM_SLOTS;
    }
    slot = shm_tx_take_slot(sp, id);
    if (slot < SHM_SLOTS) {
        return slot;
    }
    shm_set_add(waiters, sp->seg.id);
    atomic_thread_fence(memory_order_seq_cst);
    slot = shm_tx_take_slot(sp, id);
    if (slot < SHM_SLOTS) {
        shm_set_remove(waiters, sp->seg.id);
        return slot;
    }
    shm_tx_block(sp, id);
    sp->stats.tx_blocked++;
    shm_arm_timer(sp);
    shm_wake(sp, id); /* so that it frees what dead senders hold */
    return SHM_SLOTS;
}

static void shm_tx_give_back(struct shm_port *sp, unsigned id, unsigned slot)
{
    struct shm_peer *p = sp->peer[id];

    atomic_store_explicit(&p->region->slot[slot].owner, 0, memory_order_release);
    if (p->spares < SHM_SLOTS) {
        p->spare[p->spares++] = (uint16_t)slot;
    }
    shm_wake_waiters(sp, id, 1);
}

/* Wakes wake_id if that is due. True: there has been a fence. */
static bool shm_tx_wake_due(struct shm_port *sp)
{
    struct shm_set *senders;

    if (!sp->wake_due) {
        return false;
    }
    senders = &shm_member_at(sp, sp->wake_id)->senders;
    sp->wake_due = false;
    atomic_thread_fence(memory_order_seq_cst);
    if (!shm_set_has(senders, sp->seg.id)) {
        shm_set_add(senders, sp->seg.id);
    }
    shm_wake_fenced(sp, sp->wake_id);
    return true;
}

void shm_tx_flush(struct wire_port *port)
{
    struct shm_port *sp = shm_port_of(port);

    shm_give_credits(sp, shm_tx_wake_due(sp));
    shm_rx_settle(sp);
}

/* To be called after publishing to id. Wakes id now if it is seen to sleep, or if no more frames
 * follow. */
static void shm_tx_wake_soon(struct shm_port *sp, unsigned id, bool more)
{
    if (sp->wake_id != id) {
        shm_tx_wake_due(sp);
    }
    sp->wake_id = id;
    sp->wake_due = true;
    if (!more || atomic_load_explicit(&shm_member_at(sp, id)->sleep, memory_order_relaxed) & 1) {
        shm_tx_wake_due(sp);
    }
}

static void shm_tx_publish(struct shm_port *sp, unsigned id, unsigned num, size_t len,
                           unsigned flags)
{
    struct shm_peer *p = sp->peer[id];
    struct shm_slot *slot = &p->region->slot[num];
    uint64_t stamp = shm_stamp(sp->seg.gen, p->tx_head);

    slot->len = (uint16_t)len;
    slot->flags = flags & WIRE_NO_ICRC;
    slot->stamp = stamp;
    atomic_store_explicit(&p->region->ring[sp->seg.id].entry[p->tx_head % SHM_RING],
                          stamp << 16 | num, memory_order_release);
    p->slot_of[p->tx_head % SHM_RING] = (uint16_t)num;
    p->tx_head++;
    shm_tx_wake_soon(sp, id, flags & WIRE_MORE);
}

/* Copies the frame in stage to a slot and publishes it. */
static void shm_tx_copy_to(struct shm_port *sp, unsigned id, unsigned slot, size_t len)
{
    memcpy(sp->peer[id]->region->slot[slot].frame, sp->stage, len);
    shm_tx_publish(sp, id, slot, len, sp->stage_flags);
}

static void shm_tx_detach_if_dead(struct shm_port *sp, unsigned id)
{
    if (atomic_load(&shm_member_at(sp, id)->attached) && !shm_segment_alive(&sp->seg, id)) {
        shm_segment_detach_dead(&sp->seg, id);
    }
}

/* The first attached member other than this one, from id on. SHM_MEMBERS: none. */
static unsigned shm_tx_next_other(struct shm_port *sp, unsigned id)
{
    struct shm_set *present = &sp->seg.header->present;

    while (id < SHM_MEMBERS) {
        uint64_t bits =
            atomic_load_explicit(&present->word[id / 64], memory_order_relaxed) & ~0ull << id % 64;

        if (!bits) {
            id = (id / 64 + 1) * 64;
            continue;
        }
        id = id / 64 * 64 + (unsigned)__builtin_ctzll(bits);
        if (id != sp->seg.id &&
            atomic_load_explicit(&shm_member_at(sp, id)->attached, memory_order_acquire)) {
            return id;
        }
        id++;
    }
    return SHM_MEMBERS;
}

/* Writes the frame in stage to this member's log and tells all other members. */
static void shm_tx_flood(struct shm_port *sp, size_t len)
{
    unsigned first = shm_tx_next_other(sp, 0);

    if (first == SHM_MEMBERS) {
        sp->stats.tx_no_dest++;
        return;
    }
    if (!shm_log_write(&sp->seg, &sp->log, sp->stage, len, sp->stage_flags)) {
        sp->stats.tx_no_room++;
        return;
    }
    for (unsigned id = first; id < SHM_MEMBERS; id = shm_tx_next_other(sp, id + 1)) {
        shm_set_add(&shm_member_at(sp, id)->floods, sp->seg.id);
        shm_wake(sp, id);
    }
}

/* Sends the frame in stage. False: it has to wait for credit. */
static bool shm_tx_send_staged(struct shm_port *sp, size_t len)
{
    unsigned id = shm_tx_member_of(sp, shm_tx_mac_at(sp->stage));
    unsigned slot;

    if (id == sp->seg.id) {
        sp->stats.tx_no_dest++; /* a switch does not send a frame back where it came from */
    } else if (id == SHM_NOBODY) {
        shm_tx_flood(sp, len);
    } else {
        slot = shm_tx_take_slot_or_wait(sp, id);
        if (slot == SHM_SLOTS) {
            sp->stash_peer = id;
            return false;
        }
        shm_tx_copy_to(sp, id, slot, len);
    }
    return true;
}

static bool shm_tx_send_stashed(struct shm_port *sp)
{
    if (sp->stashed && shm_tx_send_staged(sp, sp->stashed)) {
        sp->stashed = 0;
    }
    return !sp->stashed;
}

void shm_tx_cancel(struct shm_port *sp)
{
    if (sp->reserved == SHM_RESERVED_SLOT) {
        shm_tx_give_back(sp, sp->to_peer, sp->to_slot);
    }
    sp->reserved = SHM_RESERVED_NONE;
}

/* A reservation has failed, for lack of credit in id's region. */
static uint8_t *shm_tx_no_credit(struct shm_port *sp, unsigned id)
{
    sp->credit_class = id % WIRE_CREDIT_CLASSES;
    sp->classes_awaited |= shm_credit_class_bit(id);
    return NULL;
}

unsigned shm_tx_credit_class(struct wire_port *port)
{
    return shm_port_of(port)->credit_class;
}

uint64_t shm_tx_credits(struct wire_port *port)
{
    return shm_port_of(port)->classes_back;
}

uint8_t *shm_tx_reserve(struct wire_port *port, size_t len)
{
    struct shm_port *sp = shm_port_of(port);

    shm_tx_cancel(sp);
    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (!shm_tx_send_stashed(sp)) {
        return shm_tx_no_credit(sp, sp->stash_peer);
    }
    sp->reserved = SHM_RESERVED_STAGE;
    return sp->stage;
}

uint8_t *shm_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    struct shm_port *sp = shm_port_of(port);
    uint64_t mac = shm_tx_mac_at(dmac);
    unsigned id = shm_tx_member_of(sp, mac), slot;

    if (id == SHM_NOBODY || id == sp->seg.id || sp->stashed || len > WIRE_FRAME_MAX) {
        return shm_tx_reserve(port, len);
    }
    shm_tx_cancel(sp);
    slot = shm_tx_take_slot_or_wait(sp, id);
    if (slot == SHM_SLOTS) {
        return shm_tx_no_credit(sp, id);
    }
    sp->reserved = SHM_RESERVED_SLOT;
    sp->to_peer = id;
    sp->to_slot = slot;
    sp->to_mac = mac;
    shm_tx_prefetch_frame(&sp->peer[id]->region->slot[slot], len);
    return sp->peer[id]->region->slot[slot].frame;
}

void shm_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct shm_port *sp = shm_port_of(port);
    enum shm_reserved reserved = sp->reserved;
    const uint8_t *frame;

    if (len < SHM_ETH_MIN || len > WIRE_FRAME_MAX || reserved == SHM_RESERVED_NONE) {
        shm_tx_cancel(sp);
        return;
    }
    sp->reserved = SHM_RESERVED_NONE;
    sp->stats.tx_frames++;
    sp->stats.tx_bytes += len;
    frame = reserved == SHM_RESERVED_SLOT ? sp->peer[sp->to_peer]->region->slot[sp->to_slot].frame
                                          : sp->stage;
    shm_tx_learn(sp, shm_tx_mac_at(frame + 6));
    if (reserved == SHM_RESERVED_SLOT && shm_tx_mac_at(frame) == sp->to_mac) {
        shm_tx_publish(sp, sp->to_peer, sp->to_slot, len, flags);
        return;
    }
    if (reserved == SHM_RESERVED_SLOT) {
        memcpy(sp->stage, frame, len);
        shm_tx_give_back(sp, sp->to_peer, sp->to_slot);
    }
    sp->stage_flags = flags;
    if (!shm_tx_send_staged(sp, len)) {
        sp->stashed = len;
    }
}

/* The number of frames to id, published before position pos, that id has not settled: id settles
 * them at the end of the turn in which it took them. */
static uint32_t shm_tx_unsettled_before(struct shm_port *sp, unsigned id, uint32_t pos)
{
    const struct shm_peer *p = sp->peer[id];
    uint32_t behind;

    if (!p || !p->region) {
        return 0;
    }
    behind = pos - shm_tail_pos(atomic_load(&p->region->ends[sp->seg.id].settled), sp->seg.gen);
    return behind <= SHM_RING ? behind : 0;
}

bool shm_tx_is_paused(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause)
{
    struct shm_port *sp = shm_port_of(port);
    unsigned id = shm_tx_member_of(sp, shm_tx_mac_at(dmac));
    uint64_t receiver;
    uint32_t rx_pos;

    if (id == SHM_NOBODY || id == sp->seg.id) {
        return false;
    }
    if (!shm_segment_alive(&sp->seg, id)) {
        shm_segment_detach_dead(&sp->seg, id);
        return false;
    }
    receiver = shm_tag(id, atomic_load(&shm_member_at(sp, id)->gen));
    shm_rx_meet(sp, id);
    rx_pos = sp->source[id].pos;
    if (!pause->receiver) {
        /* At most as many frames as a ring holds wait here. */
        *pause = (struct wire_pause){receiver, sp->peer[id] ? sp->peer[id]->tx_head : 0,
                                     rx_pos + SHM_RING};
    }
    if (pause->receiver != receiver) {
        return false; /* the frames went to another member with this id */
    }
    return shm_tx_unsettled_before(sp, id, pause->tx) ||
           ((int32_t)(pause->rx - rx_pos) > 0 && shm_rx_waits_from(sp, id));
}

bool shm_tx_knows(struct wire_port *port, const uint8_t mac[6])
{
    struct shm_port *sp = shm_port_of(port);
    unsigned id = shm_tx_member_of(sp, shm_tx_mac_at(mac));

    return id != SHM_NOBODY && id != sp->seg.id && shm_segment_alive(&sp->seg, id);
}

/* Unblocks the receivers that give credit again. */
static void shm_tx_take_credits(struct shm_port *sp)
{
    struct shm_set *credits = &sp->self->credits;
    uint64_t some = shm_set_take_some(credits);

    for (; some; some &= some - 1) {
        unsigned w = (unsigned)__builtin_ctzll(some);
        uint64_t bits = atomic_exchange(&credits->word[w], 0);

        for (; bits; bits &= bits - 1) {
            shm_tx_unblock(sp, w * 64 + (unsigned)__builtin_ctzll(bits));
        }
    }
}

/* Tells the client which of the classes that it waits for have credit again. */
static void shm_tx_try_again(struct shm_port *sp)
{
    if (!shm_tx_send_stashed(sp)) {
        return;
    }
    sp->classes_back &= sp->classes_awaited;
    sp->classes_awaited &= ~sp->classes_back;
    if (sp->classes_back && sp->port.client && sp->port.client->tx_ready) {
        sp->port.client->tx_ready(sp->port.opaque);
    }
    sp->classes_back = 0;
}

void shm_tx_check_blocked(struct shm_port *sp)
{
    if (shm_set_any(&sp->self->credits)) {
        shm_tx_take_credits(sp);
        shm_tx_try_again(sp);
    } else if (sp->num_blocked && shm_recheck_due(sp, SHM_RECHECK_BLOCKED)) {
        while (sp->num_blocked) {
            unsigned id = sp->blocked[sp->num_blocked - 1];

            shm_tx_detach_if_dead(sp, id);
            shm_tx_unblock(sp, id);
        }
        shm_tx_try_again(sp);
    }
}
