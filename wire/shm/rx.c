/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving from a shared-memory segment: the rings of the senders, and the logs.
 *
 * If no sender has written to a ring for a while, the receiver stops visiting it (`active`) and
 * takes its sender out of `senders`; the sender then announces itself when it sends again. So the
 * cost of a poll grows with the number of recent senders, not with the number of members.
 */
#include "wire/shm/port.h"

enum {
    FRAMES_PER_TURN = 32, /* from one sender, before the next sender's turn */
    TAIL_EVERY = 16,      /* frames consumed before the tail is stored */
    IDLE_LOOKS = 1024,    /* empty looks, at all active rings together, before a ring is retired */
    IDLE_LOOKS_MIN = 8,   /* the same, at each ring */
    /* after so many frames to a member, its own frames count as answered */
    OWED_MOST = 256 * SHM_RING,
    VAIN_LOGS = 16, /* empty looks at logs in one poll: a member may falsely announce news */
};

static struct shm_region *shm_rx_own_region(struct shm_port *sp)
{
    return sp->seg.region[sp->seg.id];
}

static void shm_rx_unsettle(struct shm_port *sp, unsigned id)
{
    if (!sp->source[id].unsettled) {
        sp->source[id].unsettled = true;
        sp->source[id].owed_from = sp->peer[id] ? sp->peer[id]->tx_head : 0;
        sp->unsettled[sp->num_unsettled++] = (uint16_t)id;
    }
}

/* From now on this sender's ring is visited. */
static void shm_rx_activate(struct shm_port *sp, unsigned id)
{
    if (!sp->source[id].active && id != sp->seg.id) {
        sp->source[id].active = true;
        sp->source[id].idle = 0;
        sp->active[sp->num_active++] = (uint16_t)id;
    }
}

static void shm_rx_activate_word(struct shm_port *sp, unsigned word)
{
    uint64_t bits = atomic_load(&sp->self->senders.word[word]);

    for (; bits; bits &= bits - 1) {
        shm_rx_activate(sp, word * 64 + (unsigned)__builtin_ctzll(bits));
    }
}

static void shm_rx_look_for_new_senders(struct shm_port *sp)
{
    uint64_t some;

    if (shm_set_any(&sp->self->senders)) {
        for (some = shm_set_take_some(&sp->self->senders); some; some &= some - 1) {
            shm_rx_activate_word(sp, (unsigned)__builtin_ctzll(some));
        }
    }
}

void shm_rx_begin(struct shm_port *sp)
{
    for (unsigned w = 0; w < SHM_WORDS; w++) {
        uint64_t present = atomic_load(&sp->seg.header->present.word[w]);

        shm_rx_activate_word(sp, w);
        for (; present; present &= present - 1) {
            unsigned id = w * 64 + (unsigned)__builtin_ctzll(present);

            shm_log_skip(&sp->seg, id, &sp->source[id].log);
        }
    }
}

/* The member at id is a new one since the last look. */
static void shm_rx_new_sender(struct shm_port *sp, unsigned id, uint32_t gen)
{
    struct shm_source *source = &sp->source[id];

    /* An earlier owner of this region may have consumed some frames of this generation. */
    source->gen = gen;
    source->pos = shm_tail_pos(atomic_load(&shm_rx_own_region(sp)->ends[id].tail), gen);
    sp->credit_short = true; /* its predecessor may have reserved slots here */
    shm_rx_unsettle(sp, id);
}

/* Whether a frame of this sender waits; stores its slot's number, unchecked. (A ring whose sender
 * has not announced itself may have no memory, so it is not read.) */
static bool shm_rx_peek(struct shm_port *sp, unsigned id, unsigned *slot)
{
    const struct shm_source *source = &sp->source[id];
    uint64_t entry;

    if (!source->gen) {
        return false;
    }
    entry = atomic_load_explicit(&shm_rx_own_region(sp)->ring[id].entry[source->pos % SHM_RING],
                                 memory_order_acquire);
    *slot = entry & 0xffff;
    return entry >> 16 == shm_stamp(source->gen, source->pos);
}

/* Whether a dead sender with this id has published frames that have not been taken. gen: the
 * generation of the present or last holder of the id. A dead sender publishes nothing after this
 * check. */
static bool shm_rx_left_something(struct shm_port *sp, unsigned id, uint32_t gen, bool lives)
{
    /* True also if it died before it had finished its first frame. */
    return (sp->source[id].gen != gen && shm_set_has(&sp->self->senders, id)) ||
           (!lives && shm_rx_waits_from(sp, id));
}

/* The order matters: first the owners of slots are read, then which owners live, then what is
 * published. So a frame of a sender that publishes it and then dies is seen in one of these places,
 * and its slot is not taken for a mere reservation. */
bool shm_rx_reap(struct shm_port *sp)
{
    struct shm_region *own = shm_rx_own_region(sp);
    uint64_t owner[SHM_SLOTS] = {0}, living[SHM_MEMBERS] = {0}; /* tags */
    bool asked[SHM_MEMBERS] = {0}, left[SHM_MEMBERS] = {0}, freed = false;

    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        if (shm_segment_has_chunk(&sp->seg, sp->seg.id, i / SHM_CHUNK)) {
            owner[i] = atomic_load_explicit(&own->slot[i].owner, memory_order_acquire);
        }
    }
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        unsigned id = shm_tag_id(owner[i]);

        if (id < SHM_MEMBERS && id != sp->seg.id && !asked[id]) { /* it does not send to itself */
            uint32_t gen = atomic_load(&shm_member_at(sp, id)->gen);
            bool lives = shm_segment_alive(&sp->seg, id);

            asked[id] = true;
            living[id] = lives ? shm_tag(id, gen) : 0;
            left[id] = shm_rx_left_something(sp, id, gen, lives);
            if (left[id]) {
                shm_rx_activate(sp, id); /* it may have died before it announced itself */
            }
        }
    }
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        uint64_t was = owner[i];
        unsigned id = shm_tag_id(was);

        if (was && (id >= SHM_MEMBERS || (was != living[id] && !left[id])) &&
            atomic_compare_exchange_strong(&own->slot[i].owner, &was, 0)) {
            freed = true;
        } else if (id < SHM_MEMBERS && was != living[id] && left[id]) {
            sp->credit_short = true; /* check again when those frames have been taken */
        }
    }
    return freed;
}

/* Prefetches the header lines of a frame together: they are in the cache of the sender's CPU. */
static void shm_rx_prefetch_slot(const struct shm_region *own, unsigned index)
{
    const uint8_t *slot = (const uint8_t *)&own->slot[index % SHM_SLOTS];

    for (unsigned i = 0; i < SHM_PREFETCH_LINES; i++) {
        __builtin_prefetch(slot + (size_t)i * SHM_LINE);
    }
}

/* Prefetches the rest of a frame. Its lines are in memory if its sender wrote them past its caches
 * (far, in wire/port.h). They are fetched into the second-level cache: fetching them into the
 * first-level cache took longer. */
static void shm_rx_prefetch_frame(const struct shm_region *own, unsigned index, size_t len)
{
    const uint8_t *slot = (const uint8_t *)&own->slot[index % SHM_SLOTS];
    size_t end = offsetof(struct shm_slot, frame) + len;

    for (size_t at = (size_t)SHM_PREFETCH_LINES * SHM_LINE; at < end; at += SHM_LINE) {
        __builtin_prefetch(slot + at, 0, 2);
    }
}

/* Prefetches the next frame while this one is delivered. Its length is in a line that has not come
 * yet, so it is guessed from the last frame. */
static void shm_rx_prefetch_next(struct shm_port *sp, unsigned id)
{
    const struct shm_region *own = shm_rx_own_region(sp);
    const struct shm_source *source = &sp->source[id];
    uint64_t entry = atomic_load_explicit(&own->ring[id].entry[(source->pos + 1) % SHM_RING],
                                          memory_order_relaxed);

    if (entry >> 16 == shm_stamp(source->gen, source->pos + 1)) {
        shm_rx_prefetch_slot(own, entry & 0xffff);
        shm_rx_prefetch_frame(own, entry & 0xffff, source->last_len);
    }
}

/* Delivers a frame to the client. False: its length is invalid. */
static bool shm_rx_deliver(struct shm_port *sp, const uint8_t *frame, size_t len, unsigned flags)
{
    if (len < SHM_ETH_MIN || len > WIRE_FRAME_MAX) {
        return false;
    }
    sp->stats.rx_frames++;
    sp->stats.rx_bytes += len;
    if (sp->port.client && sp->port.client->rx) {
        sp->port.client->rx(sp->port.opaque, frame, len, flags & WIRE_NO_ICRC);
    }
    return true;
}

/* Delivers the frame in a slot and frees the slot. False: the entry is invalid. */
static bool shm_rx_take_slot(struct shm_port *sp, unsigned id, unsigned index)
{
    struct shm_source *source = &sp->source[id];
    struct shm_slot *slot;
    uint16_t len;
    bool ok;

    if (index >= SHM_SLOTS) {
        return false;
    }
    slot = &shm_rx_own_region(sp)->slot[index];
    if (atomic_load_explicit(&slot->owner, memory_order_relaxed) != shm_tag(id, source->gen) ||
        slot->stamp != shm_stamp(source->gen, source->pos)) {
        return false;
    }
    len = *(volatile uint16_t *)&slot->len;
    ok = shm_rx_deliver(sp, slot->frame, len, slot->flags);
    source->last_len = ok ? len : 0;
    atomic_store_explicit(&slot->owner, 0, memory_order_release);
    return ok;
}

/* Takes up to max frames of one sender. */
static unsigned shm_rx_drain_sender(struct shm_port *sp, unsigned id, unsigned max)
{
    struct shm_source *source = &sp->source[id];
    struct shm_ends *ends = &shm_rx_own_region(sp)->ends[id];
    unsigned n, index;

    for (n = 0; n < max && shm_rx_peek(sp, id, &index); n++) {
        if (n == 0) {
            shm_rx_prefetch_slot(shm_rx_own_region(sp), index);
        }
        shm_rx_prefetch_next(sp, id);
        if (!shm_rx_take_slot(sp, id, index)) {
            sp->stats.rx_malformed++;
        }
        source->pos++;
        if (n % TAIL_EVERY == TAIL_EVERY - 1) {
            atomic_store_explicit(&ends->tail, shm_tail(source->gen, source->pos),
                                  memory_order_release);
        }
    }
    if (n) {
        atomic_store_explicit(&ends->tail, shm_tail(source->gen, source->pos),
                              memory_order_release);
        shm_rx_unsettle(sp, id);
        source->idle = 0;
    } else {
        uint32_t gen = atomic_load_explicit(&shm_member_at(sp, id)->gen, memory_order_acquire);

        /* The last frame of the previous sender may have come since the first check. It publishes
         * nothing after this one. */
        if (gen != source->gen && !shm_rx_peek(sp, id, &index)) {
            shm_rx_new_sender(sp, id, gen); /* its frames are found in the next round */
        }
        source->idle++;
    }
    return n;
}

/* Stops visiting the ring of the sender at this place of `active`. False: something has just come,
 * so the ring is still visited. */
static bool shm_rx_retire(struct shm_port *sp, unsigned place)
{
    unsigned id = sp->active[place];

    shm_set_remove(&sp->self->senders, id);
    atomic_thread_fence(memory_order_seq_cst);
    if (shm_rx_waits_from(sp, id) ||
        atomic_load(&shm_member_at(sp, id)->gen) != sp->source[id].gen) {
        shm_set_add(&sp->self->senders, id);
        sp->source[id].idle = 0;
        return false;
    }
    sp->source[id].active = false;
    sp->active[place] = sp->active[--sp->num_active];
    return true;
}

static bool shm_rx_is_idle(const struct shm_port *sp, unsigned id)
{
    unsigned looks = sp->source[id].idle;

    return looks >= IDLE_LOOKS_MIN && looks * sp->num_active >= IDLE_LOOKS;
}

/* Takes up to max frames from the rings, a few from each. */
static unsigned shm_rx_drain_rings(struct shm_port *sp, unsigned max)
{
    unsigned n = 0;

    for (unsigned left = sp->num_active; left && n < max; left--) {
        unsigned place = sp->next_turn < sp->num_active ? sp->next_turn : 0;
        unsigned id = sp->active[place];

        n += shm_rx_drain_sender(sp, id, MIN(max - n, (unsigned)FRAMES_PER_TURN));
        if (!shm_rx_is_idle(sp, id) || !shm_rx_retire(sp, place)) {
            sp->next_turn = place + 1;
        }
    }
    return n;
}

/* Takes up to max frames from one log. */
static unsigned shm_rx_drain_log(struct shm_port *sp, unsigned id, unsigned max)
{
    struct shm_log_reader *reader = &sp->source[id].log;
    unsigned n, flags;
    size_t len;

    for (n = 0; n < max; n++) {
        switch (
            shm_log_read(&sp->seg, id, reader, sp->copied, &len, &flags, &sp->stats.rx_missed)) {
        case SHM_LOG_FRAME:
            if (!shm_rx_deliver(sp, sp->copied, len, flags)) {
                sp->stats.rx_malformed++;
            }
            break;
        case SHM_LOG_LOST:
            break;
        case SHM_LOG_EMPTY:
            return n;
        }
    }
    shm_set_add(&sp->self->floods, id); /* there may be more */
    return n;
}

/* Takes up to max frames from the logs. */
static unsigned shm_rx_drain_logs(struct shm_port *sp, unsigned max)
{
    struct shm_set *floods = &sp->self->floods;
    uint64_t some = shm_set_any(floods) ? shm_set_take_some(floods) : 0;
    unsigned n = 0;

    for (; some; some &= some - 1) {
        unsigned w = (unsigned)__builtin_ctzll(some);
        uint64_t bits = atomic_exchange(&floods->word[w], 0);

        for (; bits; bits &= bits - 1) {
            unsigned id = w * 64 + (unsigned)__builtin_ctzll(bits);

            if (id != sp->seg.id) {
                n += shm_rx_drain_log(sp, id, max - n);
            }
        }
    }
    return n;
}

void shm_rx_meet(struct shm_port *sp, unsigned id)
{
    uint32_t gen = atomic_load(&shm_member_at(sp, id)->gen);

    if (gen != sp->source[id].gen && shm_set_has(&sp->self->senders, id) &&
        !shm_rx_waits_from(sp, id)) {
        shm_rx_activate(sp, id);
        shm_rx_new_sender(sp, id, gen);
    }
}

/* Whether this member still owes id answers. That is so if the owner says it (wire_owe()), or if
 * frames for id wait for credit there, which is id's own doing. But if an answer was lost, id must
 * not wait for ever: after OWED_MOST frames to id its frames count as answered. */
static bool shm_rx_is_owed(const struct shm_port *sp, unsigned id)
{
    const struct shm_peer *p = sp->peer[id];

    return sp->owes || (p && p->blocked && p->tx_head - sp->source[id].owed_from < OWED_MOST);
}

void shm_rx_settle(struct shm_port *sp)
{
    unsigned left = 0;

    for (unsigned i = 0; i < sp->num_unsettled; i++) {
        unsigned id = sp->unsettled[i];
        struct shm_source *source = &sp->source[id];

        if (shm_rx_is_owed(sp, id)) {
            sp->unsettled[left++] = (uint16_t)id;
            continue;
        }
        source->unsettled = false;
        atomic_store_explicit(&shm_rx_own_region(sp)->ends[id].settled,
                              shm_tail(source->gen, source->pos), memory_order_release);
    }
    sp->num_unsettled = left;
}

bool shm_rx_waits_from(struct shm_port *sp, unsigned id)
{
    unsigned slot;

    return shm_rx_peek(sp, id, &slot);
}

/* Takes frames of the senders in turn, beginning after the sender that was served last. Goes on as
 * long as a sender may have been left before its ring was empty. */
unsigned shm_rx_drain(struct shm_port *sp, unsigned max)
{
    unsigned n = 0, vain = 0, round;

    do {
        round = shm_rx_drain_logs(sp, max - n);
        vain += !round;
        shm_rx_look_for_new_senders(sp);
        round += shm_rx_drain_rings(sp, max - n - round);
        n += round;
    } while (n < max &&
             (round >= FRAMES_PER_TURN || (vain < VAIN_LOGS && shm_set_any(&sp->self->floods))));
    return n;
}

bool shm_rx_waits(struct shm_port *sp)
{
    if (shm_set_any(&sp->self->floods) || shm_set_any(&sp->self->senders)) {
        return true;
    }
    for (unsigned i = 0; i < sp->num_active; i++) {
        unsigned id = sp->active[i], slot;

        if (shm_rx_peek(sp, id, &slot) ||
            atomic_load(&shm_member_at(sp, id)->gen) != sp->source[id].gen) {
            return true;
        }
    }
    return false;
}
