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
#define TM_SLOTS 16u /* messages of a sender that are not at their end */
#define TM_TAGS  16u
#define TM_OPS   64u /* list operations that are outstanding */

enum tm_state {
    TM_RUNS,
    TM_DRAINS,
    TM_IS_QUIET,
};

/* A sender and its connection. */
struct tm_peer {
    struct sim_host *host;
    struct ibv_qp *qp, *at; /* its own; the receiver's */
    struct ibv_cq *cq, *at_cq;
    struct span span; /* of its messages */
    struct intake fins;
    uint8_t *scratch; /* that the receiver writes to */
    struct tm_message messages[TM_SLOTS];
    uint64_t sent, first, arrived; /* numbers; first: that is not at its end */
    uint64_t limit;
    uint64_t written; /* by the receiver, no more than were sent */
    unsigned writes;  /* that are outstanding */
    enum tm_state state;
    bool doomed, broken;
    bool failed;    /* a SEND has: those behind it are flushed */
    unsigned marks; /* that are to come */
    uint64_t quiet_ns;
};

struct tm_receive {
    struct matcher_receive match; /* first */
    uint32_t handle;
    unsigned completions; /* that are to come before it is free */
    bool cancelled, by_software;
    bool awaits;          /* the data of its message */
    struct tm_peer *peer; /* of the message that it got, or NULL */
    struct tm_message *message;
};

struct tm_op {
    enum ibv_ops_wr_opcode opcode;
    bool signaled;
    bool knows_all; /* the program knows of all messages that there were */
    struct tm_receive *receive;
};

struct tagged {
    struct job *job;
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
    struct intake in; /* for what nobody expects */
    struct span here; /* of the receives with tags */
    uint32_t size, stride;
    struct tm_peer peer[TM_PEERS];
    struct tm_receive receives[TM_TAGS];
    struct tm_op ops[TM_OPS];
    uint64_t ops_posted, ops_done;
    struct matcher matcher;
    uint32_t unexpected; /* count */
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

/* Its connection ends, or is about to. */
static inline bool tm_may_fail(const struct tm_peer *peer)
{
    return peer->doomed || peer->broken || peer->state == TM_DRAINS;
}

/* The receiver's queues and memory, before it has any senders. */
void tm_receiver_make(struct tagged *tm);
void tm_receiver_free(struct tagged *tm);
/* Takes what has completed. False: nothing has. */
bool tm_receiver_poll(struct tagged *tm);
/* Posts a receive with a tag or cancels one, if it wants to. */
void tm_receiver_post(struct tagged *tm);
/* Tells the device how many unexpected messages software knows of: when that has asked for it, and
 * now and then. */
void tm_receiver_maybe_sync(struct tagged *tm);
/* All messages have come, and their data: whether the device counts them as the program does, which
 * it says of a receive that is posted. */
void tm_receiver_probe(struct tagged *tm);
void tm_receiver_cancel_all(struct tagged *tm);
/* At the end there are no messages or receives left, and no bytes that do not belong there. */
void tm_receiver_check(struct tagged *tm);

#endif
