/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is reached through a key, whose rights come and go under traffic. It has slots, each
 * of which one operation uses at a time. What must be in them is told by a copy, which knows
 * nothing of the key: a slot that an operation may be writing to is loose until that has ended, or
 * until the key's rights are gone; all others are as the copy says.
 */
#ifndef HCASIM_TESTS_PLACE_H
#define HCASIM_TESTS_PLACE_H

#include "tests/sim/fabric/sim.h"

#define PLACE_SLOTS 8u
#define PLACE_PARTS 40u
/* A right beside those of enum ibv_access_flags: use by the host that has it. */
#define PLACE_LOCAL (1u << 30)
#define PLACE_ALL   0xffffffffu

struct place {
    struct job *job;
    struct sim_host *host;
    /* what the key's bytes are, in their order */
    struct place_part {
        uint8_t *at;
        size_t len;
    } part[PLACE_PARTS];
    unsigned num_parts;
    uint64_t va;
    uint32_t key, stale; /* stale: a key that it had before, or 0 */
    /* Those that the key has; of these, those that it may lose at this moment. */
    unsigned rights, doubtful;
    uint32_t only;  /* QP of its host that must be used, or 0 */
    bool rests;     /* no new operations */
    uint32_t slot;  /* bytes of a slot */
    unsigned busy;  /* bits: slots in use */
    unsigned loose; /* bits: slots that are perhaps written to */
    uint8_t *copy;
};

void place_init(struct place *p, struct job *job, struct sim_host *host);
void place_free(struct place *p);
static inline size_t place_bytes(const struct place *p)
{
    return (size_t)PLACE_SLOTS * p->slot;
}
/* The parts have been set, to place_bytes() in all, and nobody uses it: fills them. */
void place_fill(struct place *p);
/* The host writes to slots that nobody uses. */
void place_scribble(struct place *p);
/* The key is good from now on. */
void place_open(struct place *p, uint64_t va, uint32_t key, unsigned rights);

/* A slot that was free, or -1. */
int place_take_slot(struct place *p);
void place_give_slot(struct place *p, unsigned slot);
const uint8_t *place_slot(const struct place *p, unsigned slot); /* of the copy */
uint64_t place_slot_va(const struct place *p, unsigned slot);
/* Into the slot may have been written what the operation brings. */
void place_set_loose(struct place *p, unsigned slot);
/* It has been, or perhaps only a part: the copy follows. whole: all or nothing. */
void place_settle(struct place *p, unsigned slot, const uint8_t *brought, uint32_t len, bool whole);
/* All that is not loose is as it must be. */
void place_check(const struct place *p);

#endif
