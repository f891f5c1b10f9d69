/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses: priority-based flow control (IEEE 802.1Q, clause 36; IEEE 802.3, annex 31D) and PAUSE
 * (IEEE 802.3, annex 31B).
 *
 * What a port's peer has sent in and what still waits, in whatever queue, counts at that port.
 * Above XOFF the peer is told to pause, again and again until no more than XON waits. A peer that
 * does not obey is not read any more when SWITCH_HEADROOM more bytes have come: then the wire
 * itself holds it up, all its priorities. So nothing of such a priority is dropped for lack of
 * room.
 */
#include "wire/bytes.h"
#include "wire/encap/ip.h"
#include "wire/switch/priv.h"

#include <string.h>

enum {
    FLOW_TYPE = 0x8808,
    FLOW_OPCODE_PAUSE = 0x0001,
    FLOW_OPCODE_PFC = 0x0101,
    FLOW_FRAME = 60,
    FLOW_QUANTA = 0xffff,
    FLOW_QUANTUM_BITS = 512,
};

/* At a slow port the longest pause would last for hours: no pause lasts longer than a second. */
static uint64_t flow_time_ns(const struct switch_port *p, unsigned quanta)
{
    uint64_t rate = p->config.rate ? p->config.rate : SWITCH_SPEED;
    uint64_t ns = (uint64_t)((unsigned __int128)quanta * FLOW_QUANTUM_BITS * 1000000000u / rate);

    return MIN(ns, SWITCH_STUCK_NS);
}

bool flow_is_lossless(const struct switch_port *p, unsigned priority)
{
    return p->wire && p->config.flow != SWITCH_FLOW_DROPS &&
           p->config.flow_priorities >> priority & 1;
}

/* Bytes that count for a priority: with PAUSE, all of them. */
static uint64_t flow_counts(const struct switch_port *p, unsigned priority)
{
    return p->config.flow == SWITCH_FLOW_PAUSE ? p->held_all : p->held[priority];
}

void flow_check(struct switch_port *p)
{
    uint8_t pauses = p->pauses;

    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        uint8_t bit = (uint8_t)(1u << i);

        if (!flow_is_lossless(p, i)) {
            pauses &= (uint8_t)~bit;
        } else if (flow_counts(p, i) > p->config.xoff) {
            pauses |= bit;
        } else if (flow_counts(p, i) <= p->config.xon) {
            pauses &= (uint8_t)~bit;
        }
    }
    if (pauses != p->pauses) {
        p->pauses = pauses;
        p->pause_pending = true;
        p->sw->due_ns[p->number] = p->sw->now_ns; /* the frame is sent in this turn */
    }
}

void flow_hold(struct switch_port *from, unsigned priority, uint64_t bytes)
{
    if (!from->wire) {
        return; /* a frame of the switch's own */
    }
    from->held[priority] += bytes;
    from->held_all += bytes;
    if (from->config.flow != SWITCH_FLOW_DROPS) {
        flow_check(from);
    }
}

void flow_release(struct switch_port *from, unsigned priority, uint64_t bytes)
{
    from->held[priority] -= bytes;
    from->held_all -= bytes;
    if (from->config.flow != SWITCH_FLOW_DROPS || from->pauses) {
        flow_check(from);
    }
}

bool flow_takes(const struct switch_port *p)
{
    const struct pool *pool = &p->sw->pool;

    if (p->config.flow == SWITCH_FLOW_DROPS) {
        return true;
    }
    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        if (flow_is_lossless(p, i) && flow_counts(p, i) >= p->config.xoff + SWITCH_HEADROOM) {
            return false;
        }
    }
    return pool->free_frames >= SWITCH_BATCH &&
           pool->free_entries >= SWITCH_BATCH * p->sw->num_ports;
}

/* -- frames ------------------------------------------------------------------------------------ */

static const uint8_t flow_address[SWITCH_MAC] = {0x01, 0x80, 0xc2, 0, 0, 1};

static void flow_build(const struct switch_port *p, uint8_t frame[FLOW_FRAME])
{
    memset(frame, 0, FLOW_FRAME);
    memcpy(frame, flow_address, SWITCH_MAC);
    memcpy(frame + SWITCH_MAC, p->sw->mac, SWITCH_MAC);
    put16(frame + 12, FLOW_TYPE);
    if (p->config.flow == SWITCH_FLOW_PAUSE) {
        put16(frame + 14, FLOW_OPCODE_PAUSE);
        put16(frame + 16, p->pauses ? FLOW_QUANTA : 0);
        return;
    }
    put16(frame + 14, FLOW_OPCODE_PFC);
    put16(frame + 16, 0xff); /* the priorities that the frame tells of: all */
    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        put16(frame + 18 + 2 * i, p->pauses >> i & 1 ? FLOW_QUANTA : 0);
    }
}

bool flow_send(struct switch_port *p)
{
    uint8_t *room;

    p->pause_pending |= p->pauses && p->refresh_ns <= p->sw->now_ns;
    if (!p->pause_pending) {
        return true;
    }
    if (p->link_up && !p->config.down) {
        room = wire_tx_reserve_to(p->wire, flow_address, FLOW_FRAME);
        if (!room) {
            egress_block(p);
            return false;
        }
        flow_build(p, room);
        wire_tx_commit_as(p->wire, FLOW_FRAME, WIRE_MORE);
        switch_set_put(&p->sw->dirty, p->number, true);
        p->stats.pauses_sent++;
    }
    p->pause_pending = false;
    p->refresh_ns = p->sw->now_ns + flow_time_ns(p, FLOW_QUANTA) / 2;
    return true;
}

static void flow_pause(struct switch_port *p, unsigned priority, unsigned quanta)
{
    p->paused_until[priority] = p->sw->now_ns + flow_time_ns(p, quanta);
}

void flow_take(struct switch_port *p, const uint8_t *frame, size_t len)
{
    uint8_t control[34] = {0};
    unsigned opcode;

    memcpy(control, frame, MIN(len, sizeof(control)));
    opcode = get16(control + 14);
    if (memcmp(control, flow_address, SWITCH_MAC) != 0) {
        return;
    }
    if (opcode == FLOW_OPCODE_PAUSE && len >= 18) {
        for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
            flow_pause(p, i, get16(control + 16));
        }
    } else if (opcode == FLOW_OPCODE_PFC && len >= sizeof(control)) {
        for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
            if (control[17] >> i & 1) {
                flow_pause(p, i, get16(control + 18 + 2 * i));
            }
        }
    } else {
        return;
    }
    p->stats.pauses_taken++;
    p->sw->due_ns[p->number] = p->sw->now_ns;
}
