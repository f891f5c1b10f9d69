/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a reliable connection: the operations that one host requests, and the model of
 * their results. The model knows what IBTA promises and nothing of the device: each operation takes
 * effect once and in order, the bytes are those that were sent, an atomic finds what earlier
 * atomics left, completions come in order, and after the first failed operation all others are
 * flushed.
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
    FLOW_FORWARD, /* a SEND, with a fence, of the bytes that the READ before it fetched
                     (IBTA 10.8.3.3) */
    /* operations that must fail */
    FLOW_BAD_WRITE, /* with a key that does not allow it, or beyond the key's end */
    FLOW_BAD_READ,
    FLOW_BAD_ATOMIC,
    FLOW_ODD_ATOMIC, /* its address is not a multiple of 8 */
    FLOW_BAD_LKEY,
    FLOW_BAD_LANDING, /* a READ to memory that the reader may not write */
    FLOW_TOO_LONG,    /* a SEND that is longer than its receive */
    FLOW_FORBIDDEN,   /* the connection does not allow it */
    FLOW_MARKER,      /* the last operation before a queue is drained */
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
    uint64_t found, counter; /* of an atomic: what it must find, and the counter after it */
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
    /* Adds to a request what a service needs; and posts a list of requests, if not by
     * ibv_post_send(). */
    void (*dress)(struct flow *flow, struct ibv_send_wr *wr);
    int (*ring)(struct flow *flow, const struct ibv_send_wr *wr);
    unsigned window;
    uint32_t size, stride, max_inline;
    uint64_t limit;     /* number of all operations */
    unsigned num_kinds; /* draws operations from the first so many of enum flow_what */
    enum flow_right lacks;
    struct span near, far;
    /* Further keys for the same memory at the far side: locked allows other hosts nothing, foreign
     * belongs to another PD. At the near side: fixed only lets its owner read. */
    struct ibv_mr *locked, *foreign, *fixed;
    struct ibv_pd *other_pd;
    uint8_t *source, *landing, *far_source, *target;
    uint64_t *olds, *word;
    uint32_t far_key;
    ptrdiff_t buried; /* the offset of the far memory's copy from its original place */
    uint64_t posted, done, flushed;
    unsigned unsignaled; /* how many of the last operations are unsignaled */
    uint64_t owed, owed_done, received;
    uint64_t counter, counter_done;
    bool broken; /* an operation has failed: the operations behind it are flushed */
    bool doomed; /* an operation that must fail is posted */
    bool silent; /* its peer does not answer any more */
    /* The status by which it must end because a rogue sends wrong requests to its peer, or wrong
     * answers to it. Success: there is no rogue. */
    enum ibv_wc_status misled;
    bool starved;           /* its peer posts no more receives */
    enum ibv_wc_status why; /* why the first failed operation failed */
    bool was_too_long;      /* the failed operation was a SEND longer than its receive */
    bool was_misled;        /* a rogue may have caused the failure */
    struct flow_op ops[FLOW_WINDOW];
    struct flow_owed owes[FLOW_OWED];
};

void flow_init(struct flow *flow, struct job *job, struct sim_host *from, struct sim_host *to);
void flow_free(struct flow *flow);
/* Posts some operations, if the queue has room. Returns whether it did. */
bool flow_post(struct flow *flow);
/* Makes the next operation one that must fail. */
void flow_doom(struct flow *flow);
/* Posts to a queue in error an operation whose completion shows that the queue is empty. */
void flow_mark(struct flow *flow);
bool flow_is_drained(const struct flow *flow);
/* Returns whether all operations are done, and received. */
bool flow_is_done(const struct flow *flow);

/* Handles a completion at the sender. may_flush: its queue may be in error. */
void flow_sent(struct flow *flow, const struct ibv_wc *wc, bool may_flush);
/* Returns whether the next receive of this flow has a solicited event. */
bool flow_is_solicited(const struct flow *flow);
/* Handles a successful receive from this flow, into the slot. */
void flow_received(struct flow *flow, const struct ibv_wc *wc, struct intake *in, uint8_t *slot);
/* Handles the end of the connection. Operations without a completion may have taken effect, up to
 * some operation. all: each existing completion has been polled. */
void flow_settle(struct flow *flow, bool all);
void flow_check(struct flow *flow);
/* Handles the end of the near or the far host. A copy of its memory at that moment is examined from
 * now on. The original memory must stay zero. */
struct span flow_bury(struct flow *flow, bool near);

#endif
