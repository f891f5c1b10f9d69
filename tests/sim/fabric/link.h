/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a cable, with the queue of the port that sends on it.
 *
 * A frame waits in the queue until the line is free. It takes its length divided by the rate to
 * leave, and then the latency and some jitter to arrive; jitter alone keeps the order. All other
 * faults are decided when the frame leaves the queue's tail. The same seed and the same frames at
 * the same times give the same faults.
 */
#ifndef HCASIM_TESTS_LINK_H
#define HCASIM_TESTS_LINK_H

#include "tests/sim/fabric/frame.h"
#include "tests/sim/fabric/timeline.h"

/* Per million frames. */
struct link_faults {
    unsigned lose;
    unsigned twice;
    unsigned late; /* late by up to late_ns, behind later frames: reordered */
    unsigned corrupt;
    uint64_t late_ns;
};

struct link_config {
    uint64_t latency_ns;
    uint64_t jitter_ns; /* at most */
    uint64_t rate;      /* bits/s; 0: frames leave in no time, and the queue is empty */
    uint32_t queue;     /* bytes that may wait; a frame that does not fit is dropped. 0: no limit */
    /* Packets that support ECN are marked CE: none while fewer bytes than ecn_min wait, all from
     * ecn_max on. Between them the number per million grows linearly up to ecn_most. ecn_max 0:
     * none. */
    uint32_t ecn_min, ecn_max;
    unsigned ecn_most;
    struct link_faults faults;
};

struct link_stats {
    uint64_t frames, bytes; /* frames and bytes that went out */
    uint64_t dropped;       /* frames dropped because the queue was full */
    uint64_t marked;        /* frames marked CE */
    uint64_t lost, doubled, delayed, corrupted;
    uint64_t down;       /* frames lost because there was no link */
    uint32_t queue_most; /* the most bytes that ever waited */
    double queue_sum;    /* sum of the waiting bytes at each frame's arrival, for the mean */
};

/* The receiver at the far end. Consumes the frame. */
typedef void link_rx_fn(void *opaque, struct frame *frame);
/* Called for a frame that never arrives, with its fate. */
typedef void link_gone_fn(void *opaque, const struct frame *frame, unsigned fate);

struct link {
    const struct link_config *config; /* may be changed while it runs */
    struct timeline *timeline;
    link_rx_fn *rx;
    link_gone_fn *gone; /* may be NULL */
    void *opaque;
    struct chance chance;
    bool down; /* sent frames are lost; frames on the way arrive */
    uint64_t free_ps, last_ns;
    struct link_stats stats;
};

void link_init(struct link *link, struct timeline *timeline, const struct link_config *config,
               struct chance chance, link_rx_fn *rx, link_gone_fn *gone, void *opaque);
/* Drops all frames that the links of a timeline have on their way. */
void link_forget_all(struct timeline *timeline);
/* Consumes the frame. */
void link_send(struct link *link, struct frame *frame);
/* Returns the bytes that wait now. */
uint32_t link_queued(const struct link *link);
/* Returns the time when so many bytes or fewer will wait, if nothing more is sent. */
uint64_t link_drains_ns(const struct link *link, uint32_t bytes);
/* Returns the number of frames with a fault; losses by a full queue are not counted. */
uint64_t link_num_faults(const struct link *link);

#endif
