/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives: slots of memory that are posted to a receive queue, of a QP's own or shared. A slot
 * that nothing was received into holds poison, and so does what is behind a message: whatever is
 * written there that should not be is seen when the slot is used again.
 */
#ifndef HCASIM_TESTS_INTAKE_H
#define HCASIM_TESTS_INTAKE_H

#include "tests/sim/fabric/sim.h"

#define INTAKE_SLOTS 64
#define INTAKE_WR    (1ull << 63) /* in wr_id: a receive; the rest is its slot */

struct intake {
    struct job *job;
    struct ibv_qp *qp; /* one of these three */
    struct ibv_srq *srq;
    struct ibv_wq *wq;
    struct span span;
    unsigned slots, posted; /* posted: and not completed */
    size_t size, stride;
    uint16_t free[INTAKE_SLOTS], num_free;
    /* of a QP's own queue: slots in the order posted */
    uint16_t order[INTAKE_SLOTS];
    unsigned first;
    /* The next message may get a slot that one which was given up has begun to fill. */
    bool has_remains;
};

void intake_init(struct intake *in, struct job *job, struct sim_host *host, unsigned slots,
                 size_t size);
void intake_free(struct intake *in);
/* Posts as many as there are slots, at most so many; returns how many. */
unsigned intake_post(struct intake *in, unsigned most);
/* The slot of a completion, successful or not, which must be the one whose turn it is. */
uint8_t *intake_take(struct intake *in, const struct ibv_wc *wc);
/* What must be in a slot that was taken; it is free again. skip: bytes in front that are not looked
 * at (a GRH). */
void intake_check(struct intake *in, uint8_t *slot, size_t skip, const uint8_t *expected,
                  size_t len);
/* Free again, whatever is in it: its receive failed. */
void intake_forget(struct intake *in, uint8_t *slot);
/* The queue is gone, and all that was posted to it. */
void intake_reset(struct intake *in);

/* Poison, as much as a slot may need. */
const uint8_t *poison(void);
#define POISON_BYTES (70u << 10)

#endif
