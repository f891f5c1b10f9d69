/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads bytes as a program's calls of verbs: it makes, changes, posts to, polls and destroys
 * objects with values that are right, at an edge, or arbitrary.
 *
 * Each answer is compared with mlx5_says.h where that model covers the call. A refused request
 * leaves the queue unchanged. A completion does not come twice, and no completion of a queue comes
 * after the queue was reset. At the end every object can be destroyed. If one of these does not
 * hold, the program stops.
 */
#ifndef HCASIM_TESTS_FUZZ_VERBS_OPS_H
#define HCASIM_TESTS_FUZZ_VERBS_OPS_H

#include "guest-lib/verbs/verbs.h"

struct verbs_world {
    struct ibv_context
        *ctx; /* only this code reads its asynchronous events (own_events), or nobody does */
    struct ibv_pd *pd;
    union ibv_gid gid; /* of index 1 */
    bool own_events;
    void (*settle)(void *opaque); /* lets the device work for a while */
    void *opaque;
    /* NULL, or a call of another kind, which takes bytes from *data on; and its end. */
    void (*more)(const struct verbs_world *world, const uint8_t **data, size_t *size);
    void (*more_end)(const struct verbs_world *world);
    unsigned flush_polls; /* after so many settles everything that was posted must be done */
};

void verbs_ops_run(const struct verbs_world *world, const uint8_t *data, size_t size);

#endif
