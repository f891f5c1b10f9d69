/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is reached through a key whose rights come and go under traffic. It has slots, each
 * of which one operation uses at a time. A copy, which knows nothing of the key, holds the expected
 * bytes. A slot that an operation may be writing to is loose until the operation has ended or the
 * key's rights are gone. All other slots must equal the copy.
 */
#ifndef HCASIM_TESTS_PLACE_H
#define HCASIM_TESTS_PLACE_H

#include "tests/sim/fabric/sim.h"

#define PLACE_SLOTS 8u
#define PLACE_PARTS 40u
/* A right in addition to those of enum ibv_access_flags: use by the key's own host. */
#define PLACE_LOCAL (1u << 30)
#define PLACE_ALL   0xffffffffu

struct place {
    struct job *job;
    struct sim_host *host;
    /* the ranges that the key covers, in order */
    struct place_part {
        uint8_t *at;
        size_t len;
    } part[PLACE_PARTS];
    unsigned num_parts;
    uint64_t va;
    uint32_t key, stale; /* stale: a previous key, or 0 */
    /* The key's rights; and the rights among them that it may lose at this moment. */
    unsigned rights, doubtful;
    uint32_t only;  /* the only QP of its host that may be used, or 0 */
    bool rests;     /* no new operations start */
    uint32_t slot;  /* bytes of a slot */
    unsigned busy;  /* bits: slots in use */
    unsigned loose; /* bits: slots that an operation may be writing to */
    uint8_t *copy;
};

void place_init(struct place *p, struct job *job, struct sim_host *host);
void place_free(struct place *p);
static inline size_t place_bytes(const struct place *p)
{
    return (size_t)PLACE_SLOTS * p->slot;
}
/* Fills the place. Its parts must be set, place_bytes() in all, and no request may use it. */
void place_fill(struct place *p);
/* The host writes to unused slots. */
void place_scribble(struct place *p);
/* The key is valid from now on. */
void place_open(struct place *p, uint64_t va, uint32_t key, unsigned rights);

/* Returns a free slot, or -1. */
int place_take_slot(struct place *p);
void place_give_slot(struct place *p, unsigned slot);
const uint8_t *place_slot(const struct place *p, unsigned slot); /* of the copy */
uint64_t place_slot_va(const struct place *p, unsigned slot);
/* An operation may have written its data to the slot. */
void place_set_loose(struct place *p, unsigned slot);
/* The operation has written its data, or perhaps a part of it: updates the copy. whole: all or
 * nothing. */
void place_settle(struct place *p, unsigned slot, const uint8_t *brought, uint32_t len, bool whole);
/* Checks every slot that is not loose. */
void place_check(const struct place *p);

#endif
