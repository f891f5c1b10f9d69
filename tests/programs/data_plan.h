/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans what two sides send each other, and what their memories must hold afterwards.
 *
 * A plan is a sequence of batches that a seed decides. Both sides compute the same plan
 * independently. The operations of a batch touch disjoint memory and may all be outstanding at a
 * time. Data is a function of seed, batch, side and place, so each side knows what every byte of
 * its own memory must become. It keeps a shadow of its arena; after the batch the two must be
 * equal, including the bytes between and around the targets.
 *
 * A side does this in a batch: it calls data_plan_next() and data_fill(), and posts a receive for
 * each of its slots in order. When the other side has done so, too, it posts its operations in
 * order and tells the plan of each completion. When the other side has all of its own completions,
 * it calls data_compare().
 *
 * The plan does not use verbs: tests/programs/datacheck.c runs it over libibverbs,
 * tests/sim/test_data.c over the in-process driver. Sides are 0 and 1. All offsets are into a
 * side's arena, in bytes.
 */
#ifndef HCASIM_TESTS_DATA_PLAN_H
#define HCASIM_TESTS_DATA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DATA_ARENA   (4u << 20) /* bytes of memory of each side */
#define DATA_COUNTER (DATA_ARENA - 8)
#define DATA_MAX_LEN (1u << 20) /* largest message */
#define DATA_MAX_SGE 30
#define DATA_BATCH   128  /* operations of a batch, at most */
#define DATA_DEPTH   64   /* of these, at most so many from one side on one lane */
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
    unsigned
        max_sge; /* elements of a send queue's and of a receive queue's WQE, up to DATA_MAX_SGE */
    unsigned max_srq_sge; /* the same of a shared receive queue */
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
    unsigned lane, side; /* side is the initiator */
    bool signaled, inlined, solicited, fence;
    bool shared; /* a fetch-add on the counter that all operations share */
    uint32_t len, imm;
    struct data_list local;
    uint32_t remote; /* the target of WRITE, READ and atomics, in the other side's arena */
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
    uint32_t used[2]; /* bytes of each arena that the batch uses */
    uint64_t sum[2];  /* what each side's counter holds at the batch's end */
    /* Progress: */
    unsigned received[2][DATA_LANES];                  /* operations examined for receives so far */
    uint64_t done[DATA_TRANSPORTS][DATA_KINDS], bytes; /* planned so far, by both sides */
};

void data_plan_init(struct data_plan *plan, const struct data_config *config);

/* Makes the next batch, of at most max_ops operations. */
void data_plan_next(struct data_plan *plan, unsigned max_ops);

/* Fills a side's arena with its content before the batch, and shadow with its content after the
 * batch, except what receives and shared counters bring. */
void data_fill(const struct data_plan *plan, unsigned side, uint8_t *arena, uint8_t *shadow);

/* Handles a receive of side on lane. Returns the operation that it must belong to, and writes its
 * data to the shadow as it lies in that slot. Returns NULL if no receive is due, or the slot is not
 * of this lane, is not the next one, or was taken already. GRH bytes are copied from the arena
 * unchecked. */
const struct data_op *data_received(struct data_plan *plan, unsigned side, unsigned lane,
                                    unsigned slot, const uint8_t *arena, uint8_t *shadow);

/* Changes the source of an inline operation after it was posted: posting has copied the data. */
void data_scribble(const struct data_op *op, uint8_t *arena, uint8_t *shadow);

/* Return the number of receives that side must see in this batch, and of completions of its own
 * operations. */
unsigned data_receives_due(const struct data_plan *plan, unsigned side);
unsigned data_completions_due(const struct data_plan *plan, unsigned side);

/* Returns the number of wrong bytes. log: gets a description of the first ones, or NULL. */
uint64_t data_compare(const struct data_plan *plan, unsigned side, const uint8_t *arena,
                      uint8_t *shadow, FILE *log);

/* Prints a table of what was done to stdout. */
void data_print(const struct data_plan *plan);

#endif
