/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending on a shared-memory segment: which member owns an address, and a slot in its region.
 */
#include "wire/bytes.h"
#include "wire/shm/port.h"

#include <string.h>

/* So many on the way before the sender looks at the tail: the tail's cache line is the
 * receiver's, and slots not needed again yet stay out of this CPU's cache. */
#define REFRESH_INFLIGHT 16

static uint64_t mac_at(const uint8_t *p)
{
    return (uint64_t)get16(p) << 32 | get32(p + 2);
}

static bool is_group(uint64_t mac)
{
    return mac >> 40 & 1;
}

/* ---- addresses ---- */

/* The member that owns an address, by the segment's tables. */
static unsigned find_owner(struct shm_port *sp, uint64_t mac)
{
    unsigned owner = SHM_NOBODY;
    uint64_t newest = 0;

    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        struct shm_member *m = shm_member_at(sp, id);
        uint32_t used;

        if (!atomic_load_explicit(&m->attached, memory_order_acquire)) {
            continue;
        }
        used = MIN(atomic_load(&m->macs_used), (uint32_t)SHM_MACS);
        for (uint32_t i = 0; i < used; i++) {
            if (atomic_load_explicit(&m->mac[i].mac, memory_order_acquire) == mac) {
                uint64_t stamp = atomic_load(&m->mac[i].stamp);

                if (owner == SHM_NOBODY || stamp > newest) {
                    owner = id;
                    newest = stamp;
                }
            }
        }
    }
    return owner;
}

/* The member to which frames to an address go, or SHM_NOBODY: to all. */
static unsigned lookup(struct shm_port *sp, uint64_t mac)
{
    uint64_t fdb_gen = atomic_load_explicit(&sp->seg.header->fdb_gen, memory_order_acquire);
    struct shm_cached_mac *c = &sp->cached[(mac ^ mac >> 6 ^ mac >> 12) % SHM_CACHED_MACS];

    if (is_group(mac)) {
        return SHM_NOBODY;
    }
    if (c->mac != mac || c->fdb_gen != fdb_gen) {
        c->mac = mac;
        c->fdb_gen = fdb_gen;
        c->member = find_owner(sp, mac);
    }
    return c->member;
}

/* Makes this port the owner of the source address of a frame that it sends. */
static void learn(struct shm_port *sp, uint64_t mac)
{
    struct shm_header *h = sp->seg.header;
    struct shm_mac *entry = NULL;
    uint32_t used;

    if (mac == sp->learned_mac &&
        atomic_load_explicit(&h->fdb_gen, memory_order_acquire) == sp->learned_gen) {
        return;
    }
    if (is_group(mac) || !mac) {
        return;
    }
    if (lookup(sp, mac) != sp->seg.id) {
        used = MIN(atomic_load(&sp->self->macs_used), (uint32_t)SHM_MACS);
        for (uint32_t i = 0; i < used; i++) {
            if (atomic_load(&sp->self->mac[i].mac) == mac) {
                entry = &sp->self->mac[i];
            } else if (used == SHM_MACS && !entry) {
                entry = &sp->self->mac[i];
            } else if (used == SHM_MACS && atomic_load(&entry->mac) != mac &&
                       atomic_load(&sp->self->mac[i].stamp) < atomic_load(&entry->stamp)) {
                entry = &sp->self->mac[i]; /* the oldest so far */
            }
        }
        if (!entry) {
            entry = &sp->self->mac[used];
            atomic_store(&sp->self->macs_used, used + 1);
        }
        atomic_store(&entry->mac, 0);
        atomic_store(&entry->stamp, atomic_fetch_add(&h->fdb_stamp, 1) + 1);
        atomic_store(&entry->mac, mac);
        atomic_fetch_add(&h->fdb_gen, 1);
    }
    sp->learned_gen = atomic_load(&h->fdb_gen);
    sp->learned_mac = lookup(sp, mac) == sp->seg.id ? mac : 0;
}

/* ---- sending ---- */

/* Takes over how far the receiver has come; the slots of what it consumed are spare. */
static void refresh_tail(struct shm_port *sp, struct shm_peer *p, struct shm_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t consumed = shm_tail_pos(tail, sp->seg.gen);

    if (tail >> 32 != sp->seg.gen || consumed - p->tx_tail > p->tx_head - p->tx_tail) {
        return; /* of an earlier generation, or made up */
    }
    for (; p->tx_tail != consumed; p->tx_tail++) {
        if (p->spares < SHM_SLOTS) {
            p->spare[p->spares++] = p->slot_of[p->tx_tail % SHM_RING];
        }
    }
}

static bool take(struct shm_port *sp, struct shm_slot *slot)
{
    uint32_t free_tag = 0;

    return atomic_compare_exchange_strong_explicit(&slot->owner, &free_tag, sp->tag,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Asks for a cache line to write to. x86 has an instruction for that, which processors without it
 * pass over; compilers do not use it for __builtin_prefetch() unless told that it is there. */
static void prefetch_to_write(const void *line)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* The receiver's CPU has the slot that is used next: it may come while this frame is built. */
static void prefetch_spare(const struct shm_peer *p, const struct shm_region *region)
{
    const struct shm_slot *slot;

    if (p->spares) {
        slot = &region->slot[p->spare[p->spares - 1]];
        for (unsigned i = 0; i < SHM_PREFETCH_LINES; i++) {
            prefetch_to_write((const uint8_t *)slot + (size_t)i * SHM_LINE);
        }
    }
}

/* Takes a slot in a member's region: its number, or SHM_SLOTS if there is no room. */
static unsigned take_slot(struct shm_port *sp, unsigned id)
{
    struct shm_region *region = shm_segment_region(&sp->seg, id);
    struct shm_peer *p = &sp->peer[id];
    struct shm_ring *ring;

    if (!region) {
        return SHM_SLOTS;
    }
    ring = &region->ring[sp->seg.id];
    if (!p->spares || p->tx_head - p->tx_tail >= REFRESH_INFLIGHT) {
        refresh_tail(sp, p, ring);
    }
    if (p->tx_head - p->tx_tail >= SHM_RING) {
        return SHM_SLOTS;
    }
    /* The slot used last is the one most likely in this CPU's cache. */
    while (p->spares) {
        unsigned i = p->spare[--p->spares];

        if (take(sp, &region->slot[i])) {
            prefetch_to_write((const void *)&ring->entry[p->tx_head % SHM_RING]);
            prefetch_spare(p, region);
            return i;
        }
    }
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        /* Senders begin at different places so as not to meet. */
        unsigned at = (i + sp->seg.id * 37) % SHM_SLOTS;

        if (atomic_load_explicit(&region->slot[at].owner, memory_order_relaxed) == 0 &&
            take(sp, &region->slot[at])) {
            return at;
        }
    }
    return SHM_SLOTS;
}

/* The same for a frame that must not be lost: without room, this port will be told. */
static unsigned take_slot_or_wait(struct shm_port *sp, unsigned id)
{
    struct shm_peer *p = &sp->peer[id];
    _Atomic uint64_t *waiters = &shm_member_at(sp, id)->waiters[sp->seg.id / 64];
    uint64_t bit = 1ull << sp->seg.id % 64;
    unsigned slot;

    if (p->blocked) {
        return SHM_SLOTS;
    }
    slot = take_slot(sp, id);
    if (slot < SHM_SLOTS) {
        return slot;
    }
    atomic_fetch_or(waiters, bit);
    atomic_thread_fence(memory_order_seq_cst);
    slot = take_slot(sp, id);
    if (slot < SHM_SLOTS) {
        atomic_fetch_and(waiters, ~bit);
        return slot;
    }
    p->blocked = true;
    sp->blocked++;
    sp->stats.tx_blocked++;
    shm_arm_timer(sp);
    shm_wake(sp, id); /* to free what dead senders hold */
    return SHM_SLOTS;
}

static void give_back(struct shm_port *sp, unsigned id, unsigned slot)
{
    struct shm_peer *p = &sp->peer[id];

    atomic_store_explicit(&sp->seg.region[id]->slot[slot].owner, 0, memory_order_release);
    if (p->spares < SHM_SLOTS) {
        p->spare[p->spares++] = (uint16_t)slot;
    }
    shm_wake_waiters(sp, id, 1);
}

static void wake_due(struct shm_port *sp)
{
    if (sp->wake_due) {
        sp->wake_due = false;
        shm_wake(sp, sp->wake_id);
    }
}

void shm_tx_flush(struct wire_port *port)
{
    struct shm_port *sp = shm_port_of(port);

    wake_due(sp);
    shm_rx_settle(sp);
}

/* After publishing to id: wakes it now if it is seen to sleep, or if nothing more comes. */
static void wake_soon(struct shm_port *sp, unsigned id, bool more)
{
    if (sp->wake_id != id) {
        wake_due(sp);
    }
    sp->wake_id = id;
    sp->wake_due = true;
    if (!more || atomic_load_explicit(&shm_member_at(sp, id)->sleep, memory_order_relaxed) & 1) {
        wake_due(sp);
    }
}

static void publish(struct shm_port *sp, unsigned id, unsigned slot, size_t len, unsigned flags)
{
    struct shm_region *region = sp->seg.region[id];
    struct shm_peer *p = &sp->peer[id];
    struct shm_member *m = shm_member_at(sp, id);
    uint64_t stamp = shm_stamp(sp->seg.gen, p->tx_head);
    uint64_t bit = 1ull << sp->seg.id % 64;

    region->slot[slot].len = (uint16_t)len;
    region->slot[slot].flags = flags & WIRE_NO_ICRC;
    region->slot[slot].stamp = stamp;
    atomic_store_explicit(&region->ring[sp->seg.id].entry[p->tx_head % SHM_RING],
                          stamp << 16 | slot, memory_order_release);
    p->slot_of[p->tx_head % SHM_RING] = (uint16_t)slot;
    p->tx_head++;
    if (!(atomic_load_explicit(&m->senders[sp->seg.id / 64], memory_order_relaxed) & bit)) {
        atomic_fetch_or(&m->senders[sp->seg.id / 64], bit);
    }
    wake_soon(sp, id, flags & WIRE_MORE);
}

/* Copies the frame in stage. */
static void copy_to(struct shm_port *sp, unsigned id, unsigned slot, size_t len)
{
    memcpy(sp->seg.region[id]->slot[slot].frame, sp->stage, len);
    publish(sp, id, slot, len, sp->stage_flags);
}

static void detach_if_dead(struct shm_port *sp, unsigned id)
{
    if (atomic_load(&shm_member_at(sp, id)->attached) && !shm_segment_alive(&sp->seg, id)) {
        shm_segment_detach_dead(&sp->seg, id);
    }
}

static void flood(struct shm_port *sp, size_t len)
{
    bool anybody = false;

    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        unsigned slot;

        if (id == sp->seg.id ||
            !atomic_load_explicit(&shm_member_at(sp, id)->attached, memory_order_acquire)) {
            continue;
        }
        anybody = true;
        slot = take_slot(sp, id);
        if (slot < SHM_SLOTS) {
            copy_to(sp, id, slot, len);
        } else {
            sp->stats.tx_no_room++;
            if (shm_recheck_due(sp, SHM_RECHECK_FLOOD)) {
                detach_if_dead(sp, id);
            }
        }
    }
    if (!anybody) {
        sp->stats.tx_no_dest++;
    }
}

/* Sends the frame in stage. False: it has to wait. */
static bool send_staged(struct shm_port *sp, size_t len)
{
    unsigned id = lookup(sp, mac_at(sp->stage));
    unsigned slot;

    if (id == sp->seg.id) {
        sp->stats.tx_no_dest++; /* a switch does not send a frame back where it came from */
    } else if (id == SHM_NOBODY) {
        flood(sp, len);
    } else {
        slot = take_slot_or_wait(sp, id);
        if (slot == SHM_SLOTS) {
            return false;
        }
        copy_to(sp, id, slot, len);
    }
    return true;
}

static bool send_stashed(struct shm_port *sp)
{
    if (sp->stashed && send_staged(sp, sp->stashed)) {
        sp->stashed = 0;
    }
    return !sp->stashed;
}

void shm_tx_cancel(struct shm_port *sp)
{
    if (sp->reserved == SHM_RESERVED_SLOT) {
        give_back(sp, sp->to_peer, sp->to_slot);
    }
    sp->reserved = SHM_RESERVED_NONE;
}

uint8_t *shm_tx_reserve(struct wire_port *port, size_t len)
{
    struct shm_port *sp = shm_port_of(port);

    shm_tx_cancel(sp);
    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (!send_stashed(sp)) {
        sp->want_tx_ready = true;
        return NULL;
    }
    sp->reserved = SHM_RESERVED_STAGE;
    return sp->stage;
}

uint8_t *shm_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    struct shm_port *sp = shm_port_of(port);
    uint64_t mac = mac_at(dmac);
    unsigned id = lookup(sp, mac), slot;

    if (id == SHM_NOBODY || id == sp->seg.id || sp->stashed || len > WIRE_FRAME_MAX) {
        return shm_tx_reserve(port, len);
    }
    shm_tx_cancel(sp);
    slot = take_slot_or_wait(sp, id);
    if (slot == SHM_SLOTS) {
        sp->want_tx_ready = true;
        return NULL;
    }
    sp->reserved = SHM_RESERVED_SLOT;
    sp->to_peer = id;
    sp->to_slot = slot;
    sp->to_mac = mac;
    return sp->seg.region[id]->slot[slot].frame;
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
    frame = reserved == SHM_RESERVED_SLOT ? sp->seg.region[sp->to_peer]->slot[sp->to_slot].frame
                                          : sp->stage;
    learn(sp, mac_at(frame + 6));
    if (reserved == SHM_RESERVED_SLOT && mac_at(frame) == sp->to_mac) {
        publish(sp, sp->to_peer, sp->to_slot, len, flags);
        return;
    }
    if (reserved == SHM_RESERVED_SLOT) {
        memcpy(sp->stage, frame, len);
        give_back(sp, sp->to_peer, sp->to_slot);
    }
    sp->stage_flags = flags;
    if (!send_staged(sp, len)) {
        sp->stashed = len;
    }
}

bool shm_tx_is_paused(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause)
{
    struct shm_port *sp = shm_port_of(port);
    unsigned id = lookup(sp, mac_at(dmac));
    struct shm_region *region;
    struct shm_peer *p;
    uint64_t receiver;
    uint32_t behind;

    if (id == SHM_NOBODY || id == sp->seg.id) {
        return false;
    }
    if (!shm_segment_alive(&sp->seg, id)) {
        shm_segment_detach_dead(&sp->seg, id);
        return false;
    }
    p = &sp->peer[id];
    region = shm_segment_region(&sp->seg, id);
    receiver = shm_tag(id, atomic_load(&shm_member_at(sp, id)->gen));
    if (!pause->receiver) {
        /* What waits here are at most as many frames as a ring has. */
        *pause = (struct wire_pause){receiver, p->tx_head, p->rx_pos + SHM_RING};
    }
    if (!region || pause->receiver != receiver) {
        return false; /* what was sent went to another one of this id */
    }
    behind = pause->tx - shm_tail_pos(atomic_load(&region->ring[sp->seg.id].settled), sp->seg.gen);
    return (behind && behind <= SHM_RING) ||
           ((int32_t)(pause->rx - p->rx_pos) > 0 && shm_rx_waits_from(sp, id));
}

/* Lets blocked sending try again, after a receiver said so or after some time. */
static void unblock(struct shm_port *sp)
{
    for (unsigned id = 0; sp->blocked && id < SHM_MEMBERS; id++) {
        if (sp->peer[id].blocked) {
            sp->peer[id].blocked = false;
            sp->blocked--;
        }
    }
    if (send_stashed(sp) && sp->want_tx_ready) {
        sp->want_tx_ready = false;
        if (sp->port.client && sp->port.client->tx_ready) {
            sp->port.client->tx_ready(sp->port.opaque);
        }
    }
}

void shm_tx_check_blocked(struct shm_port *sp)
{
    if (atomic_load_explicit(&sp->self->tx_wake, memory_order_relaxed)) {
        atomic_exchange(&sp->self->tx_wake, 0);
        unblock(sp);
    } else if (sp->blocked && shm_recheck_due(sp, SHM_RECHECK_BLOCKED)) {
        for (unsigned id = 0; id < SHM_MEMBERS; id++) {
            if (sp->peer[id].blocked) {
                detach_if_dead(sp, id);
            }
        }
        unblock(sp);
    }
}
