/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The buffer of a switch: places for frames that wait, and the entries of queues.
 *
 * A frame is stored once, without its VLAN tag, and each queue in which it waits has an entry that
 * names it. Both come from arrays that are made with the switch. Pages of the buffer take memory
 * when a frame first needs them; the place that was freed last is used first.
 */
#ifndef HCASIM_WIRE_SWITCH_POOL_H
#define HCASIM_WIRE_SWITCH_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_NONE UINT32_MAX

/* A stored frame. */
struct pool_frame {
    uint32_t users; /* entries that name it; or the next free one */
    uint16_t len;   /* without its tag */
    uint16_t vid;
    uint16_t from; /* the number of the port where it came in */
    uint8_t priority;
    uint8_t dei : 1;
    uint8_t no_icrc : 1; /* it came with WIRE_NO_ICRC */
    uint32_t serial;     /* of that port: a later port of the same number has another one */
};

/* A frame in a queue. */
struct pool_entry {
    uint32_t next;
    uint32_t frame;
    uint64_t time_ns; /* when it came to the queue; on the line: when it arrives */
    bool marked;
    bool lossless; /* its sender is paused rather than the frame dropped */
};

struct pool {
    uint8_t *bytes;
    struct pool_frame *frames;
    struct pool_entry *entries;
    uint32_t num_frames, free_frames, first_frame;
    uint32_t num_entries, free_entries, first_entry;
};

/* bytes: for frames; rounded up to a few. */
void pool_init(struct pool *pool, size_t bytes, unsigned ports);
void pool_clear(struct pool *pool);

/* POOL_NONE: none is free. A frame begins with no user. */
uint32_t pool_take_frame(struct pool *pool);
void pool_free_frame(struct pool *pool, uint32_t frame);
uint32_t pool_take_entry(struct pool *pool);
void pool_free_entry(struct pool *pool, uint32_t entry);

uint8_t *pool_bytes(const struct pool *pool, uint32_t frame);

/* A list of entries. */
struct pool_queue {
    uint32_t head, tail;
    uint32_t frames;
    uint64_t bytes;
};

void pool_queue_init(struct pool_queue *queue);
/* Adds an entry at the end. */
void pool_push(struct pool *pool, struct pool_queue *queue, uint32_t entry);
/* Removes the first entry. */
uint32_t pool_pop(struct pool *pool, struct pool_queue *queue);

#endif
