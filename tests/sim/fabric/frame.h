/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame on its way through the fabric, and what a switch does to its bytes. */
#ifndef HCASIM_TESTS_FRAME_H
#define HCASIM_TESTS_FRAME_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "tests/sim/fabric/chance.h"

/* Shared by those that it goes to; who changes it takes a copy of its own first. */
struct frame {
    unsigned users;
    uint32_t len;
    uint32_t room; /* bytes there are */
    uint32_t from; /* number of the port that it came in by */
    uint8_t bytes[];
};

struct frame *frame_new(size_t room);
void frame_put(struct frame *frame);

static inline struct frame *frame_get(struct frame *frame)
{
    frame->users++;
    return frame;
}

/* The same, to be changed: a copy if there are other users. Takes the caller's use. */
struct frame *frame_own(struct frame *frame);

/* Whether it has an ICRC, by which a receiver sees that a bit of it is wrong. Of others, an ARP
 * request for one, the line's own check (FCS) would, and they would be lost. */
bool frame_is_roce(const struct frame *frame);
/* Flips a bit that the seed chooses. */
void frame_corrupt(struct frame *frame, struct chance *chance);

/* Writes the checksum of an IPv4 header without options. */
void frame_sum_ipv4(uint8_t *ip);

/* RFC 3168: whether the sender's transport knows ECN, and marking such a packet CE. The IPv4
 * header's checksum goes along (RFC 1624); the ICRC leaves these bits out (IBTA A17.3.3). */
bool frame_is_ect(const struct frame *frame);
void frame_mark_ce(struct frame *frame);

#endif
