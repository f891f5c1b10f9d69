/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under test as its host has it: what the steps of the host are done with. They are
 * ordinary verbs, of hcasim's library or of the host's own. */
#ifndef HCASIM_TESTS_CONFORMANCE_HOST_H
#define HCASIM_TESTS_CONFORMANCE_HOST_H

#include <infiniband/verbs.h>

struct host {
    struct ibv_context *ctx;      /* its events do not block */
    struct ibv_pd *pd, *other_pd; /* all but a region that says so is in the first */
    uint8_t port, gid_index;
    union ibv_gid peer;
    uint8_t timeout; /* of a queue pair for which the script has none */
};

#endif
