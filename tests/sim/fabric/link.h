/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a cable, with the queue of the port that sends on it.
 *
 * A frame waits in the queue until the line is free, takes its length divided by the rate to leave,
 * then the latency and some jitter to arrive; jitter alone keeps the order. What the line does to
 * it besides is decided when it leaves the queue's tail: a seed and the same frames at the same
 * times give the same.
 */
#ifndef HCASIM_TESTS_LINK_H
#define HCASIM_TESTS_LINK_H

#include "tests/sim/fabric/frame.h"
#include "tests/sim/fabric/timeline.h"

/* Per million frames. */
struct link_faults {
    unsigned lose;
    unsigned twice;
    unsigned late; /* by up to late_ns behind what follows: reorder */
    unsigned corrupt;
    uint64_t late_ns;
};

struct link_config {
    uint64_t latency_ns;
    uint64_t jitter_ns; /* at most */
    uint64_t rate;      /* bits/s; 0: frames take no time to leave, and the queue is empty */
    uint32_t queue;     /* bytes that may wait; what does not fit is dropped. 0: any number */
    /* Packets that know ECN are marked CE: none while fewer bytes than ecn_min wait, all from
     * ecn_max on, between them as many in a million as is linear up to ecn_most. ecn_max 0: none.
     */
    uint32_t ecn_min, ecn_max;
    unsigned ecn_most;
    struct link_faults faults;
};

struct link_stats {
    uint64_t frames, bytes; /* that went out */
    uint64_t dropped;       /* the queue was full */
    uint64_t marked;        /* CE */
    uint64_t lost, doubled, delayed, corrupted;
    uint64_t down;       /* there was no link */
    uint32_t queue_most; /* bytes that ever waited */
    double queue_sum;    /* of bytes that waited when a frame came, for the mean */
};

/* Who is at the far end. Takes the frame. */
typedef void link_rx_fn(void *opaque, struct frame *frame);

struct link {
    const struct link_config *config; /* may be changed while it runs */
    struct timeline *timeline;
    link_rx_fn *rx;
    void *opaque;
    struct chance chance;
    bool down; /* what is sent vanishes; what is on its way arrives */
    uint64_t free_ps, last_ns;
    struct link_stats stats;
};

void link_init(struct link *link, struct timeline *timeline, const struct link_config *config,
               struct chance chance, link_rx_fn *rx, void *opaque);
/* What all links of a timeline have on its way is lost. */
void link_forget_all(struct timeline *timeline);
/* Takes the frame. */
void link_send(struct link *link, struct frame *frame);
/* Bytes that wait now. */
uint32_t link_queued(const struct link *link);
/* When so many bytes or fewer wait, if nothing more is sent. */
uint64_t link_drains_ns(const struct link *link, uint32_t bytes);
/* Frames that the line did something to, losses by a full queue not counted. */
uint64_t link_num_faults(const struct link *link);

#endif
