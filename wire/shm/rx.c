/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving from a shared-memory segment: the rings of everybody who sends here.
 */
#include "wire/shm/port.h"

enum {
    FRAMES_PER_TURN = 32, /* from one sender before the next one's turn */
    TAIL_EVERY = 16,      /* frames consumed before a sender is told */
};

/* The sender at id is a new one since the last look. */
static void new_sender(struct shm_port *sp, unsigned id, uint32_t gen)
{
    struct shm_region *own = sp->seg.region[sp->seg.id];
    struct shm_peer *p = &sp->peer[id];

    /* An earlier owner of this region may have consumed some of this generation. */
    p->rx_gen = gen;
    p->rx_pos = shm_tail_pos(atomic_load(&own->ring[id].tail), gen);
    sp->scarce = true; /* what its predecessor had reserved here */
    sp->unsettled[id / 64] |= 1ull << id % 64;
}

/* Whether a frame of this sender waits; stores its slot's number, unchecked. */
static bool peek(struct shm_port *sp, unsigned id, unsigned *slot)
{
    struct shm_peer *p = &sp->peer[id];
    struct shm_ring *ring = &sp->seg.region[sp->seg.id]->ring[id];
    uint64_t entry = atomic_load_explicit(&ring->entry[p->rx_pos % SHM_RING], memory_order_acquire);

    *slot = entry & 0xffff;
    return p->rx_gen && entry >> 16 == shm_stamp(p->rx_gen, p->rx_pos);
}

/* Whether a dead sender of this id has published frames that wait to be taken: gen is that of the
 * one who has the id now, or had it last. The dead publish nothing after this look. */
static bool left_something(struct shm_port *sp, unsigned id, uint32_t gen, bool lives)
{
    uint64_t senders = atomic_load(&sp->self->senders[id / 64]);

    return (senders >> id % 64 & 1) && /* or it died before it had finished the first one */
           (sp->peer[id].rx_gen != gen || (!lives && shm_rx_waits_from(sp, id)));
}

/* What holds a slot is looked at first, then who lives, then what is published: what somebody sends
 * and then dies is thus seen in one of these places, and not taken for a reservation. */
bool shm_rx_reap(struct shm_port *sp)
{
    struct shm_region *own = sp->seg.region[sp->seg.id];
    uint32_t owner[SHM_SLOTS], living[SHM_MEMBERS] = {0}; /* tags */
    bool holds[SHM_MEMBERS] = {0}, left[SHM_MEMBERS] = {0}, freed = false;

    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        unsigned id;

        owner[i] = atomic_load_explicit(&own->slot[i].owner, memory_order_acquire);
        id = (owner[i] & 0xff) - 1u;
        if (id < SHM_MEMBERS) {
            holds[id] = true;
        }
    }
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        if (holds[id] && id != sp->seg.id) { /* it does not send to itself */
            uint32_t gen = atomic_load(&shm_member_at(sp, id)->gen);
            bool lives = shm_segment_alive(&sp->seg, id);

            living[id] = lives ? shm_tag(id, gen) : 0;
            left[id] = left_something(sp, id, gen, lives);
        }
    }
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        uint32_t was = owner[i];
        unsigned id = (was & 0xff) - 1u;

        if (was && (id >= SHM_MEMBERS || (was != living[id] && !left[id])) &&
            atomic_compare_exchange_strong(&own->slot[i].owner, &was, 0)) {
            freed = true;
        } else if (id < SHM_MEMBERS && was != living[id] && left[id]) {
            sp->scarce = true; /* once more when that has been taken */
        }
    }
    return freed;
}

/* The sender's CPU has the frame after this one: its headers may come while this one is taken. */
static void prefetch_next(struct shm_port *sp, unsigned id)
{
    const struct shm_region *own = sp->seg.region[sp->seg.id];
    const struct shm_peer *p = &sp->peer[id];
    uint64_t entry = atomic_load_explicit(&own->ring[id].entry[(p->rx_pos + 1) % SHM_RING],
                                          memory_order_relaxed);
    const uint8_t *slot = (const uint8_t *)&own->slot[(entry & 0xffff) % SHM_SLOTS];

    if (entry >> 16 == shm_stamp(p->rx_gen, p->rx_pos + 1)) {
        for (unsigned i = 0; i < SHM_PREFETCH_LINES; i++) {
            __builtin_prefetch(slot + (size_t)i * SHM_LINE);
        }
    }
}

/* Delivers one frame and frees its slot. False: the entry was no good. */
static bool deliver(struct shm_port *sp, unsigned id, unsigned index)
{
    struct shm_peer *p = &sp->peer[id];
    struct shm_slot *slot;
    uint32_t tag = shm_tag(id, p->rx_gen);
    uint16_t len;
    bool ok;

    if (index >= SHM_SLOTS) {
        return false;
    }
    slot = &sp->seg.region[sp->seg.id]->slot[index];
    if (atomic_load_explicit(&slot->owner, memory_order_relaxed) != tag ||
        slot->stamp != shm_stamp(p->rx_gen, p->rx_pos)) {
        return false;
    }
    len = *(volatile uint16_t *)&slot->len;
    ok = len >= SHM_ETH_MIN && len <= WIRE_FRAME_MAX;
    if (ok) {
        sp->stats.rx_frames++;
        sp->stats.rx_bytes += len;
        if (sp->port.client && sp->port.client->rx) {
            sp->port.client->rx(sp->port.opaque, slot->frame, len, slot->flags & WIRE_NO_ICRC);
        }
    }
    atomic_store_explicit(&slot->owner, 0, memory_order_release);
    return ok;
}

/* Takes up to max frames of one sender. */
static unsigned drain_sender(struct shm_port *sp, unsigned id, unsigned max)
{
    struct shm_peer *p = &sp->peer[id];
    struct shm_ring *ring = &sp->seg.region[sp->seg.id]->ring[id];
    unsigned n, index;

    for (n = 0; n < max && peek(sp, id, &index); n++) {
        prefetch_next(sp, id);
        if (!deliver(sp, id, index)) {
            sp->stats.rx_malformed++;
        }
        p->rx_pos++;
        if (n % TAIL_EVERY == TAIL_EVERY - 1) {
            atomic_store_explicit(&ring->tail, shm_tail(p->rx_gen, p->rx_pos),
                                  memory_order_release);
        }
    }
    if (n) {
        atomic_store_explicit(&ring->tail, shm_tail(p->rx_gen, p->rx_pos), memory_order_release);
        sp->unsettled[id / 64] |= 1ull << id % 64;
    } else {
        uint32_t gen = atomic_load_explicit(&shm_member_at(sp, id)->gen, memory_order_acquire);

        /* What the one before sent last may have come since: it published no more after this. */
        if (gen != p->rx_gen && id != sp->seg.id && !peek(sp, id, &index)) {
            new_sender(sp, id, gen); /* what it sent is found in the next round */
        }
    }
    return n;
}

void shm_rx_settle(struct shm_port *sp)
{
    for (unsigned w = 0; w < SHM_MEMBERS / 64; w++) {
        for (; sp->unsettled[w]; sp->unsettled[w] &= sp->unsettled[w] - 1) {
            unsigned id = w * 64 + (unsigned)__builtin_ctzll(sp->unsettled[w]);
            const struct shm_peer *p = &sp->peer[id];

            atomic_store_explicit(&sp->seg.region[sp->seg.id]->ring[id].settled,
                                  shm_tail(p->rx_gen, p->rx_pos), memory_order_release);
        }
    }
}

bool shm_rx_waits_from(struct shm_port *sp, unsigned id)
{
    unsigned slot;

    return peek(sp, id, &slot);
}

/* Takes the senders in turn, beginning after the one that was served last. */
unsigned shm_rx_drain(struct shm_port *sp, unsigned max)
{
    unsigned n = 0, round;

    do {
        unsigned first = sp->next_turn;

        round = 0;
        for (unsigned w = 0; w <= SHM_MEMBERS / 64 && n < max; w++) {
            unsigned word = (first / 64 + w) % (SHM_MEMBERS / 64);
            uint64_t bits = atomic_load_explicit(&sp->self->senders[word], memory_order_relaxed);
            uint64_t from_first = ~0ull << first % 64;

            /* The first word is visited twice: its upper part first, its lower part last. */
            bits &= w == 0 ? from_first : w == SHM_MEMBERS / 64 ? ~from_first : ~0ull;
            for (; bits && n < max; bits &= bits - 1) {
                unsigned id = word * 64 + (unsigned)__builtin_ctzll(bits);
                unsigned got = drain_sender(sp, id, MIN(max - n, (unsigned)FRAMES_PER_TURN));

                if (got) {
                    sp->next_turn = (id + 1) % SHM_MEMBERS;
                }
                n += got;
                round += got;
            }
        }
    } while (round && n < max);
    return n;
}

bool shm_rx_waits(struct shm_port *sp)
{
    for (unsigned w = 0; w < SHM_MEMBERS / 64; w++) {
        uint64_t bits = atomic_load_explicit(&sp->self->senders[w], memory_order_relaxed);

        for (; bits; bits &= bits - 1) {
            unsigned id = w * 64 + (unsigned)__builtin_ctzll(bits), index;

            if (peek(sp, id, &index) ||
                (id != sp->seg.id &&
                 atomic_load(&shm_member_at(sp, id)->gen) != sp->peer[id].rx_gen)) {
                return true;
            }
        }
    }
    return false;
}
