/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mirrors the memory of a host: a copy holds the bytes that must be there. Each operation claims
 * the bytes that it may read or write. A byte that no operation may write must equal its copy at
 * any time. A byte that an operation may write must equal its copy, or what the operation brings.
 */
#ifndef HCASIM_TESTS_MIRROR_H
#define HCASIM_TESTS_MIRROR_H

#include "tests/sim/fabric/sim.h"

/* Positions count bytes from the start of the memory. These two are no positions: */
#define MIRROR_FAULT   0xffffffffu /* the access must fail */
#define MIRROR_NOWHERE 0xfffffffeu /* writes have no effect, and reads return zeros */

static inline bool mirror_is_byte(uint32_t at)
{
    return at < MIRROR_NOWHERE;
}

#define MIRROR_PAGE 4096u

struct mirror {
    struct job *job;
    struct sim_host *host;
    uint8_t **page; /* the memory: where each page of MIRROR_PAGE bytes is now */
    bool *rests;    /* of each page: the host does not write to it now */
    size_t len;     /* a multiple of MIRROR_PAGE */
    uint8_t *copy;
    uint16_t *readers, *writers; /* claims of each byte */
    uint8_t *marks;              /* for the use of mirror_settle() */
};

/* The memory lies at `at` at first. Fills it. */
void mirror_init(struct mirror *m, struct job *job, struct sim_host *host, uint8_t *at, size_t len);
void mirror_free(struct mirror *m);

/* Returns whether no claim excludes an operation that uses the bytes at n positions. */
bool mirror_is_free(const struct mirror *m, const uint32_t *at, size_t n, bool writes);
/* Claims these bytes. Positions may be listed more than once. */
void mirror_claim(struct mirror *m, const uint32_t *at, size_t n, bool writes);
void mirror_release(struct mirror *m, const uint32_t *at, size_t n, bool writes);

/* A byte of the memory. */
static inline uint8_t *mirror_byte(const struct mirror *m, uint32_t at)
{
    return &m->page[at / MIRROR_PAGE][at % MIRROR_PAGE];
}
/* The value at a position, according to the copy; 0 for MIRROR_NOWHERE. */
uint8_t mirror_value(const struct mirror *m, uint32_t at);

/* What an operation may bring: for each byte a set of values. */
#define BROUGHT_MOST 8
#define BROUGHT_NONE 0x100 /* no value of a byte */
struct brought {
    uint16_t *value[BROUGHT_MOST];
    unsigned n;
};

bool brought_has(const struct brought *b, size_t nth, uint8_t value);
void brought_free(struct brought *b);

/* An operation may have written each of its n bytes where one of its views says. Each position must
 * have its old value, or a value that the operation may have brought there. Updates the copy. */
void mirror_settle(struct mirror *m, uint32_t *const *views, unsigned num, size_t n,
                   const struct brought *b);
/* Each byte has arrived at its position: brought has one value for each. If a position is listed
 * more than once, it has the last value. Updates the copy. */
void mirror_arrived(struct mirror *m, const uint32_t *at, size_t n, const struct brought *b);

/* The host writes to a range, except to bytes that are claimed and to pages that rest. */
void mirror_scribble(struct mirror *m);
/* Checks every byte that no operation may write. */
void mirror_check(const struct mirror *m);

#endif
