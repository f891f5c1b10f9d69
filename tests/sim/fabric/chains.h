/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of cross channel: what the queues of three hosts are to do, and what must come of it.
 *
 * Each host has a queue that is connected to itself, and one end of a connection to each other
 * host. A queue's steps wait for CQEs of any CQ of its host, enable WQEs of managed queues of its
 * host, and send, write and read what they calculate with. A managed queue is enabled by one queue
 * alone, its owner, which may be managed itself. So chains cross queues and hosts in any way, and
 * some never end.
 */
#ifndef HCASIM_TESTS_CHAINS_H
#define HCASIM_TESTS_CHAINS_H

#include "tests/sim/fabric/sim.h"

#define CHAINS_HOSTS   3u
#define CHAINS_QUEUES  9u   /* those of host h are 3 h, which is connected to itself, to 3 h + 2 */
#define CHAINS_STEPS   16u  /* of a queue in a round; and its receives */
#define CHAINS_SLOTS   512u /* of a host's memory; a slot has one element */
#define CHAINS_FIXED   32u  /* slots that are never written to: the first ones */
#define CHAINS_PIECES  6u
#define CHAINS_ELEMENT 16u
#define CHAINS_POISON  0x5a

enum chains_half {
    CHAINS_SENDS,
    CHAINS_RECEIVES, /* of WQEs, and of CQEs */
    CHAINS_HALVES,
};

enum chains_what {
    CHAINS_NOP,
    CHAINS_WAIT,
    CHAINS_ENABLE,
    CHAINS_SEND,
    CHAINS_WRITE,
    CHAINS_WRITE_IMM,
    CHAINS_READ,
};

struct chains_step {
    enum chains_what what;
    bool signaled;
    uint8_t fence; /* 0, 2: after earlier READs, 3: after everything earlier */
    /* WAIT: until the CQ of that half of the queue has count CQEs of the round. ENABLE: count WQEs
     * of that half. */
    unsigned queue, count;
    enum chains_half half;
    uint8_t op; /* of a message: 0, or the calculation */
    struct {
        unsigned slot, n;
    } piece[CHAINS_PIECES]; /* the operands; of a READ: one piece, at the peer's host */
    unsigned pieces;
    unsigned to; /* WRITE: slot at the peer's host; READ: own slot */
    uint8_t result[CHAINS_ELEMENT];
};

struct chains_queue {
    unsigned host, peer; /* peer: a queue */
    bool managed[CHAINS_HALVES];
    unsigned owner[CHAINS_HALVES];
    struct chains_step step[CHAINS_STEPS];
    unsigned receive[CHAINS_STEPS]; /* slots */
    unsigned num[CHAINS_HALVES];    /* steps and receives */
};

/* A post of a host. Their order is such that enabled WQEs have been posted. */
struct chains_post {
    unsigned queue;
    enum chains_half half;
};

struct chains_plan {
    struct job *job;
    struct chains_queue queue[CHAINS_QUEUES];
    uint8_t fixed[CHAINS_HOSTS][CHAINS_FIXED][CHAINS_ELEMENT];
    unsigned slots[CHAINS_HOSTS]; /* that are used */
    struct chains_post post[CHAINS_HOSTS][3 * 2 * CHAINS_STEPS];
    unsigned posts[CHAINS_HOSTS];
};

/* Draws which queues are managed, and by whom. */
void chains_draw_queues(struct chains_plan *plan);
/* Draws a round. */
void chains_draw_round(struct chains_plan *plan);

/* -- the reference (chains_ref.c) -------------------------------------------------------------- */

/* A state of the queues. */
struct chains_state {
    struct {
        unsigned started, delivered, done; /* steps */
        unsigned taken;                    /* receives */
        unsigned enabled[CHAINS_HALVES];
        unsigned cqes[CHAINS_HALVES];
    } queue[CHAINS_QUEUES];
};

/* How far the world has come: WQEs that are posted, and CQEs that were seen. */
struct chains_seen {
    struct {
        unsigned posted[CHAINS_HALVES], cqes[CHAINS_HALVES];
    } queue[CHAINS_QUEUES];
};

/* The state in which nothing goes on any more, with so much posted, and no more CQEs than were
 * seen. */
void chains_run_reference(const struct chains_plan *plan, const struct chains_seen *most,
                          struct chains_state *state);

#endif
