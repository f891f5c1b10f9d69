/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two sides send each other, and what their memories must hold afterwards.
 *
 * A plan is a sequence of batches that a seed decides: both sides compute the same one, each for
 * itself. The operations of a batch touch disjoint memory and may all be outstanding at a time.
 * Data is a function of seed, batch, side and place, so that each side knows what every byte of its
 * own memory must become: it keeps a shadow of its arena, and after the batch the two must be
 * equal, the bytes between and around the targets included.
 *
 * A side's part in a batch: data_plan_next(), data_fill(), post a receive for each of its slots in
 * order; when the other side has done so, too, post its operations in order and tell the plan of
 * each completion; when the other side has all of its own, data_compare().
 *
 * Knows no verbs: tests/programs/datacheck.c runs it over libibverbs, tests/sim/test_data.c over
 * the in-process driver. Sides are 0 and 1. All offsets are into a side's arena, in bytes.
 */
#ifndef HCASIM_TESTS_DATA_PLAN_H
#define HCASIM_TESTS_DATA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DATA_ARENA   (4u << 20) /* bytes of memory of each side */
#define DATA_COUNTER (DATA_ARENA - 8)
#define DATA_MAX_LEN (1u << 20) /* of a message */
#define DATA_MAX_SGE 30
#define DATA_BATCH   128  /* operations of a batch, at most */
#define DATA_DEPTH   64   /* of them from one side on one lane */
#define DATA_SRQ_LEN 6000 /* of a message into an SRQ */
#define DATA_GRH     40   /* bytes before a datagram's payload */
#define DATA_LANES   32

enum data_transport {
    DATA_RC,
    DATA_RC_SRQ,
    DATA_UC,
    DATA_UD,
    DATA_TRANSPORTS
};

enum data_kind {
    DATA_SEND,
    DATA_SEND_IMM,
    DATA_WRITE,
    DATA_WRITE_IMM,
    DATA_READ,
    DATA_FETCH_ADD,
    DATA_CMP_SWAP,
    DATA_KINDS
};

extern const char *const data_transport_name[DATA_TRANSPORTS];
extern const char *const data_kind_name[DATA_KINDS];

struct data_config {
    uint64_t seed;
    unsigned lanes; /* connected pairs of QPs */
    enum data_transport transport[DATA_LANES];
    unsigned max_sge;     /* of a send queue and of a receive queue, up to DATA_MAX_SGE */
    unsigned max_srq_sge; /* of a shared receive queue */
    unsigned max_inline;  /* bytes */
    unsigned mtu;         /* a datagram's largest payload */
};

struct data_piece {
    uint32_t at, len;
};

struct data_list {
    unsigned n;
    struct data_piece piece[DATA_MAX_SGE];
};

struct data_op {
    enum data_kind kind;
    unsigned lane, side; /* side: the initiator */
    bool signaled, inlined, solicited, fence;
    bool shared; /* a fetch-add on the counter that all share */
    uint32_t len, imm;
    struct data_list local;
    uint32_t remote; /* what WRITE, READ and atomics are about, in the other side's arena */
    uint64_t swap_add, compare;
};

/* A receive. Slots of an SRQ serve all of its lanes. */
struct data_slot {
    unsigned lane;
    bool used;
    struct data_list list;
};

struct data_plan {
    struct data_config config;
    uint64_t random, batch;
    unsigned num_ops, num_slots[2];
    struct data_op op[DATA_BATCH];
    struct data_slot slot[2][DATA_BATCH];
    uint32_t used[2]; /* bytes of each arena that the batch is about */
    uint64_t sum[2];  /* what each side's counter holds at the batch's end */
    /* Progress: */
    unsigned received[2][DATA_LANES]; /* operations looked at for receives so far */
    uint64_t done[DATA_TRANSPORTS][DATA_KINDS], bytes; /* planned so far, both sides' */
};

void data_plan_init(struct data_plan *plan, const struct data_config *config);

/* Makes the next batch, of at most max_ops operations. */
void data_plan_next(struct data_plan *plan, unsigned max_ops);

/* Gives a side's arena what it has before the batch, and shadow what it will have, but for what
 * receives and shared counters bring. */
void data_fill(const struct data_plan *plan, unsigned side, uint8_t *arena, uint8_t *shadow);

/* A receive came to side on lane: the operation that it must be of, its data in the shadow as it
 * lies in that slot. NULL: none is due, or the slot is not one of the lane's, not its next one, or
 * taken already. GRH bytes are taken from the arena as they are. */
const struct data_op *data_received(struct data_plan *plan, unsigned side, unsigned lane,
                                    unsigned slot, const uint8_t *arena, uint8_t *shadow);

/* Inline data was taken when the operation was posted: its source gets other bytes. */
void data_scribble(const struct data_op *op, uint8_t *arena, uint8_t *shadow);

/* Receives that side must see in this batch, and completions of its own operations. */
unsigned data_receives_due(const struct data_plan *plan, unsigned side);
unsigned data_completions_due(const struct data_plan *plan, unsigned side);

/* The number of bytes that are not as they must be. log: where the first ones are described, or
 * NULL. */
uint64_t data_compare(const struct data_plan *plan, unsigned side, const uint8_t *arena,
                      uint8_t *shadow, FILE *log);

/* A table of what was done, to stdout. */
void data_print(const struct data_plan *plan);

#endif
