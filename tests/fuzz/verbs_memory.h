/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads bytes as calls about memory of every kind: device memory, on-demand regions and their
 * pages, null keys, keys of direct verbs with signatures and encryption, data encryption keys and
 * sessions, compressed CQs, and the work that uses them. The first call that posts work makes a
 * queue pair that is connected to itself.
 *
 * No call may crash, and at the end every object can be destroyed.
 */
#ifndef HCASIM_TESTS_FUZZ_VERBS_MEMORY_H
#define HCASIM_TESTS_FUZZ_VERBS_MEMORY_H

#include "tests/fuzz/verbs_ops.h"

/* Makes one call. Takes bytes from *data on. */
void verbs_memory_op(const struct verbs_world *world, const uint8_t **data, size_t *size);
/* Destroys everything. */
void verbs_memory_end(const struct verbs_world *world);

#endif
