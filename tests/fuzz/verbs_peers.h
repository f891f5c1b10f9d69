/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads bytes as calls about queues of a peer (ibv_exp_peer_*()), and as what the peer does: it
 * executes lists in any order, in part, again, or never; and stores any value to its memory. The
 * first call makes a queue pair that is connected to itself.
 *
 * No call may crash or give an undocumented error. At the end every object can be destroyed, and
 * the peer has all its memory back.
 */
#ifndef HCASIM_TESTS_FUZZ_VERBS_PEERS_H
#define HCASIM_TESTS_FUZZ_VERBS_PEERS_H

#include "tests/fuzz/verbs_ops.h"

/* Makes one call. Takes bytes from *data on. */
void verbs_peers_op(const struct verbs_world *world, const uint8_t **data, size_t *size);
/* Destroys everything. */
void verbs_peers_end(void);

#endif
