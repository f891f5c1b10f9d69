/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: some hosts send to one whose shared receive queue matches tags. kind_tm.c has the
 * senders, their connections and the job; tm_receiver.c has the receiver.
 */
#ifndef HCASIM_TESTS_TM_H
#define HCASIM_TESTS_TM_H

#include "tests/sim/fabric/intake.h"
#include "tests/sim/fabric/tm_message.h"

#define TM_PEERS 2u
#define TM_SLOTS 16u /* messages of a sender that have not ended */
#define TM_TAGS  16u
#define TM_OPS   64u /* outstanding list operations */

enum tm_state {
    TM_RUNS,
    TM_DRAINS,
    TM_IS_QUIET,
};

/* A sender and its connection. */
struct tm_peer {
    struct sim_host *host;
    struct ibv_qp *qp, *at; /* its own QP; the receiver's QP */
    struct ibv_cq *cq, *at_cq;
    struct span span; /* memory of its messages */
    struct intake fins;
    uint8_t *scratch; /* memory that the receiver writes to */
    struct tm_message messages[TM_SLOTS];
    uint64_t sent, first, arrived; /* numbers of messages; first: the first that has not ended */
    uint64_t limit;
    uint64_t written; /* WRITEs by the receiver, no more than messages were sent */
    unsigned writes;  /* outstanding WRITEs */
    enum tm_state state;
    bool doomed, broken;
    bool failed;    /* a SEND has failed: the SENDs behind it are flushed */
    unsigned marks; /* outstanding markers of the drain */
    uint64_t quiet_ns;
};

struct tm_receive {
    struct matcher_receive match; /* first member, so a pointer to it is also one to the receive */
    uint32_t handle;
    unsigned completions; /* completions that must come before it is free */
    bool cancelled, by_software;
    bool awaits;          /* the data of its message has not come yet */
    struct tm_peer *peer; /* sender of its message, or NULL */
    struct tm_message *message;
};

struct tm_op {
    enum ibv_ops_wr_opcode opcode;
    bool signaled;
    bool knows_all; /* the program knows of all messages so far */
    struct tm_receive *receive;
};

struct tagged {
    struct job *job;
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
    struct intake in; /* receives for unexpected messages */
    struct span here; /* memory of the receives with tags */
    uint32_t size, stride;
    struct tm_peer peer[TM_PEERS];
    struct tm_receive receives[TM_TAGS];
    struct tm_op ops[TM_OPS];
    uint64_t ops_posted, ops_done;
    struct matcher matcher;
    uint32_t unexpected; /* number of unexpected messages */
    bool wants_sync, ends, has_probed;
};

static inline struct tm_message *tm_message(struct tm_peer *peer, uint64_t n)
{
    return &peer->messages[n % TM_SLOTS];
}

static inline uint8_t *tm_bytes(const struct tagged *tm, const struct tm_peer *peer,
                                const struct tm_message *msg)
{
    return peer->span.at + (size_t)(msg - peer->messages) * tm->stride;
}

static inline uint64_t tm_draw_tag(struct chance *chance)
{
    return chance_below(chance, 4) << 8 | chance_below(chance, 4);
}

/* Returns whether its connection ends, or is about to. */
static inline bool tm_may_fail(const struct tm_peer *peer)
{
    return peer->doomed || peer->broken || peer->state == TM_DRAINS;
}

/* Makes the receiver's queues and memory, before it has any senders. */
void tm_receiver_make(struct tagged *tm);
void tm_receiver_free(struct tagged *tm);
/* Handles completions. Returns false if there were none. */
bool tm_receiver_poll(struct tagged *tm);
/* Posts a receive with a tag or cancels one, if chance says so. */
void tm_receiver_post(struct tagged *tm);
/* Tells the device how many unexpected messages software knows of: when the device has asked for
 * it, and now and then. */
void tm_receiver_maybe_sync(struct tagged *tm);
/* Call after all messages and their data have come. Posts a receive, whose completion shows whether
 * the device counts as many messages as the program. */
void tm_receiver_probe(struct tagged *tm);
void tm_receiver_cancel_all(struct tagged *tm);
/* Checks at the end that there are no messages or receives left, and no wrong bytes. */
void tm_receiver_check(struct tagged *tm);

#endif
