/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under test in this process: a verbs context in virtual time. The player has the other
 * end of its cable. */
#ifndef HCASIM_TESTS_CONFORMANCE_SIM_H
#define HCASIM_TESTS_CONFORMANCE_SIM_H

#include "guest-lib/host/inproc.h"
#include "guest-lib/verbs/kernel/config.h"
#include "tests/conformance/host.h"
#include "tests/conformance/stand.h"

struct sim {
    struct play_clock clock;
    struct inproc_world *world;
    struct inproc_member member; /* the player's end */
    struct hv_port_config device, peer;
    struct ibv_device *ibdev;
    struct host host;
    struct stand stand;
};

/* A script's options for its device. 0 or NULL: the default. */
struct sim_wishes {
    char *profile;
    unsigned responders; /* of its DC targets */
    bool is_v1;          /* its queue pairs use the GID of RoCE v1 */
};

/* Returns false with errno if the device does not start. */
bool sim_init(struct sim *sim, const struct sim_wishes *wishes);
/* Everything that was made on the context must be destroyed. */
void sim_clear(struct sim *sim);

#endif
