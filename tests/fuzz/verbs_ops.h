/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes, read as what a program calls of verbs: it makes, changes, posts to, polls and destroys
 * objects with values that are right, at an edge, or anything.
 *
 * Each answer is held against mlx5_says.h where that knows it. A request that is refused leaves the
 * queue as it was; what was completed comes no second time, and nothing of a queue comes after it
 * was reset. At the end every object can be destroyed. What does not hold stops the program.
 */
#ifndef HCASIM_TESTS_FUZZ_VERBS_OPS_H
#define HCASIM_TESTS_FUZZ_VERBS_OPS_H

#include "guest-lib/verbs/verbs.h"

struct verbs_world {
    struct ibv_context
        *ctx; /* asynchronous events are this one's alone, or nobody's (own_events) */
    struct ibv_pd *pd;
    union ibv_gid gid; /* of index 1 */
    bool own_events;
    void (*settle)(void *opaque); /* lets the device work for a while */
    void *opaque;
    unsigned flush_polls; /* so often it is let work until all that was posted must be done */
};

void verbs_ops_run(const struct verbs_world *world, const uint8_t *data, size_t size);

#endif
