/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame on its way through the fabric, and the changes that a switch makes to its bytes. */
#ifndef HCASIM_TESTS_FRAME_H
#define HCASIM_TESTS_FRAME_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "wire/chance.h"

/* The faults that cables and the switch caused in a frame; several may be true. */
enum frame_fate {
    FRAME_CORRUPTED = 1 << 0,
    FRAME_DUPLICATE = 1 << 1, /* the second of two */
    FRAME_LATE = 1 << 2,      /* held back, so that later frames pass it */
    /* It never arrives: */
    FRAME_LOST = 1 << 3,
    FRAME_DROPPED = 1 << 4,     /* the queue was full */
    FRAME_NO_LINK = 1 << 5,     /* the cable was out */
    FRAME_PARTITIONED = 1 << 6, /* between two partitions */
    FRAME_NO_HOST = 1 << 7,     /* the host has no open device */
    FRAME_GONE = FRAME_LOST | FRAME_DROPPED | FRAME_NO_LINK | FRAME_PARTITIONED | FRAME_NO_HOST,
};

/* Returns the fate in words, such as "duplicate, late"; NULL: nothing happened. The caller frees
 * it. */
char *frame_describe_fate(unsigned fate);

/* A frame is shared by its receivers. Code that changes it makes a copy first (frame_own()). */
struct frame {
    unsigned users;
    uint32_t len;
    uint32_t room; /* size of the buffer, bytes */
    uint32_t from; /* number of the port where it entered */
    unsigned fate; /* enum frame_fate */
    uint8_t bytes[];
};

struct frame *frame_new(size_t room);
void frame_put(struct frame *frame);

static inline struct frame *frame_get(struct frame *frame)
{
    frame->users++;
    return frame;
}

/* Returns the frame for changes: a copy if it has other users. Consumes the caller's reference. */
struct frame *frame_own(struct frame *frame);
/* The same, and adds to the frame's fate. */
struct frame *frame_mark_fate(struct frame *frame, unsigned fate);

/* Returns whether it has an ICRC, by which a receiver detects a wrong bit. Other frames, such as
 * ARP requests, would be lost, because the line's own check (FCS) detects it. */
bool frame_is_roce(const struct frame *frame);
/* Flips one bit, chosen by the seed. */
void frame_corrupt(struct frame *frame, struct chance *chance);

/* Writes the checksum of an IPv4 header without options. */
void frame_sum_ipv4(uint8_t *ip);

#endif
