/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a reliable connection: operations that one host asks for, and the model of what
 * must come of them. It knows what IBTA promises of them and nothing of the device: each takes
 * effect once and in order, the bytes are those that were sent, atomics find what those before left
 * behind, completions come in order, and after the first one that fails all others are flushed.
 */
#ifndef HCASIM_TESTS_FLOW_H
#define HCASIM_TESTS_FLOW_H

#include "tests/sim/fabric/intake.h"

#define FLOW_WINDOW 64
#define FLOW_OWED   256

enum flow_what {
    FLOW_SEND,
    FLOW_SEND_IMM,
    FLOW_WRITE,
    FLOW_WRITE_IMM,
    FLOW_READ,
    FLOW_FETCH_ADD,
    FLOW_CMP_SWAP,
    FLOW_FORWARD, /* a SEND, behind a fence, of what the READ before it fetched (IBTA 10.8.3.3) */
    /* those that must fail */
    FLOW_BAD_WRITE, /* by a key that does not allow it, or further than it does */
    FLOW_BAD_READ,
    FLOW_BAD_ATOMIC,
    FLOW_ODD_ATOMIC, /* its address is no multiple of 8 */
    FLOW_BAD_LKEY,
    FLOW_BAD_LANDING, /* a READ to where the reader may not write */
    FLOW_TOO_LONG,    /* a SEND, for its receive */
    FLOW_FORBIDDEN,   /* what the connection does not allow */
    FLOW_MARKER,      /* the last one before a queue is drained */
};

/* A right that a connection may lack. */
enum flow_right {
    FLOW_ALL_RIGHTS,
    FLOW_NO_WRITE,
    FLOW_NO_READ,
    FLOW_NO_ATOMIC,
    FLOW_RIGHTS,
};

struct flow_op {
    enum flow_what what;
    bool signaled;
    uint32_t len, at;
    uint64_t found, counter; /* of an atomic: what it must find; and what is there after this */
};

/* A message that the other side is to receive. */
struct flow_owed {
    uint64_t op;
    enum flow_what what;
    bool solicited;
    uint32_t len;
    const uint8_t *bytes;
};

struct flow {
    struct job *job;
    struct sim_host *from, *to;
    struct ibv_qp *qp;
    /* What a service adds to a request; and how it posts a list of them, unless by ibv_post_send().
     */
    void (*dress)(struct flow *flow, struct ibv_send_wr *wr);
    int (*ring)(struct flow *flow, const struct ibv_send_wr *wr);
    unsigned window;
    uint32_t size, stride, max_inline;
    uint64_t limit;     /* operations in all */
    unsigned num_kinds; /* of enum flow_what that it draws from, from the first on */
    enum flow_right lacks;
    struct span near, far;
    /* The same memory by other keys, at the far side: nothing is allowed to others; of another PD.
     * And here: the owner only reads. */
    struct ibv_mr *locked, *foreign, *fixed;
    struct ibv_pd *other_pd;
    uint8_t *source, *landing, *far_source, *target;
    uint64_t *olds, *word;
    uint32_t far_key;
    ptrdiff_t buried; /* how far from where it was what is far is now */
    uint64_t posted, done, flushed;
    unsigned unsignaled; /* the last ones */
    uint64_t owed, owed_done, received;
    uint64_t counter, counter_done;
    bool broken; /* an operation has failed: what is behind it is flushed */
    bool doomed; /* one that must fail is posted */
    bool silent; /* its peer does not answer any more */
    /* A rogue sends its peer other requests, too, or itself other answers, which it must end by; or
     * success: there is none. */
    enum ibv_wc_status misled;
    bool starved;           /* its peer posts no receives any more */
    enum ibv_wc_status why; /* the first one failed, */
    bool was_too_long;      /* which was such a one; */
    bool was_misled;        /* by a rogue perhaps */
    struct flow_op ops[FLOW_WINDOW];
    struct flow_owed owes[FLOW_OWED];
};

void flow_init(struct flow *flow, struct job *job, struct sim_host *from, struct sim_host *to);
void flow_free(struct flow *flow);
/* Posts some operations, if there is room. True: it did. */
bool flow_post(struct flow *flow);
/* The next operation is one that must fail. */
void flow_doom(struct flow *flow);
/* The queue is in error: an operation whose completion says that it is empty. */
void flow_mark(struct flow *flow);
bool flow_is_drained(const struct flow *flow);
/* Whether all operations are done, and received. */
bool flow_is_done(const struct flow *flow);

/* A completion at the sender. may_flush: its queue may be in error. */
void flow_sent(struct flow *flow, const struct ibv_wc *wc, bool may_flush);
/* Whether the next receive of this flow is one with a solicited event. */
bool flow_is_solicited(const struct flow *flow);
/* A successful receive from this flow, into the slot. */
void flow_received(struct flow *flow, const struct ibv_wc *wc, struct intake *in, uint8_t *slot);
/* The connection is over. What was not completed may have happened, up to some operation. all: each
 * completion that there was has been polled. */
void flow_settle(struct flow *flow, bool all);
void flow_check(struct flow *flow);
/* The host of its near end, or of its far one, is gone, with its memory as it was then: a copy is
 * what is looked at from now on. Where it was must stay zero. */
struct span flow_bury(struct flow *flow, bool near);

#endif
