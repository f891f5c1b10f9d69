/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives: slots of memory that are posted to a receive queue, a QP's own or a shared one. A slot
 * without a message holds poison, and so do the bytes behind a message. Wrong writes there are
 * found when the slot is used again.
 */
#ifndef HCASIM_TESTS_INTAKE_H
#define HCASIM_TESTS_INTAKE_H

#include "tests/sim/fabric/sim.h"

#define INTAKE_SLOTS 64
#define INTAKE_WR    (1ull << 63) /* flag in wr_id: a receive; the other bits are its slot */

struct intake {
    struct job *job;
    struct ibv_qp *qp; /* one of these three is set */
    struct ibv_srq *srq;
    struct ibv_wq *wq;
    struct span span;
    unsigned slots, posted; /* posted: not completed yet */
    size_t size, stride;
    uint16_t free[INTAKE_SLOTS], num_free;
    /* of a QP's own queue: slots in posting order */
    uint16_t order[INTAKE_SLOTS];
    unsigned first;
    /* The next message may get a slot that an abandoned message has begun to fill. */
    bool has_remains;
};

void intake_init(struct intake *in, struct job *job, struct sim_host *host, unsigned slots,
                 size_t size);
void intake_free(struct intake *in);
/* Posts receives for the free slots, at most so many; returns the number. */
unsigned intake_post(struct intake *in, unsigned most);
/* Returns the slot of a completion, successful or not. It must be the slot whose turn it is. */
uint8_t *intake_take(struct intake *in, const struct ibv_wc *wc);
/* Checks the bytes of a slot that was taken, and frees it. skip: bytes in front that are not
 * checked (a GRH). */
void intake_check(struct intake *in, uint8_t *slot, size_t skip, const uint8_t *expected,
                  size_t len);
/* Frees a slot whose receive failed, whatever it contains. */
void intake_forget(struct intake *in, uint8_t *slot);
/* Handles the end of the queue and of everything posted to it. */
void intake_reset(struct intake *in);

/* Returns poison, as much as a slot may need. */
const uint8_t *poison(void);
#define POISON_BYTES (70u << 10)

#endif
