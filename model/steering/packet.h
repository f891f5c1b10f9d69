/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines a frame that flow entries change (model/steering/rewrite.h, reformat.h): bytes that can
 * be written, with room before them for headers that are inserted.
 */
#ifndef HCASIM_MODEL_STEERING_PACKET_H
#define HCASIM_MODEL_STEERING_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/port.h"

/* Room for a frame that is changed, and bytes of it before the frame: two tunnels of the longest
 * kind. */
#define STEER_HEADROOM 256
#define STEER_PLACE    (STEER_HEADROOM + WIRE_FRAME_MAX)

struct steer_packet {
    uint8_t *bytes;  /* the first byte of the frame */
    size_t len;      /* at most WIRE_FRAME_MAX */
    size_t headroom; /* bytes before the frame that may be written */
};

/* The metadata registers of a frame. They are 0 when a frame enters a domain, except A, which a
 * send WQE fills in. Entries write them, and match on them. */
struct flow_regs {
    uint32_t a, b, c[8];
};

/* Makes the frame n bytes longer at its beginning. The new bytes are not initialized. False: there
 * is no room, or the frame would be longer than a frame may be; then nothing has changed. */
static inline bool steer_packet_grow(struct steer_packet *packet, size_t n)
{
    if (n > packet->headroom || packet->len + n > WIRE_FRAME_MAX) {
        return false;
    }
    packet->bytes -= n;
    packet->headroom -= n;
    packet->len += n;
    return true;
}

/* Removes the first n bytes, which the frame must have. */
static inline void steer_packet_cut(struct steer_packet *packet, size_t n)
{
    packet->bytes += n;
    packet->headroom += n;
    packet->len -= n;
}

#endif
