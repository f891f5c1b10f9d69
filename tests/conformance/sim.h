/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under test in this process: a verbs context in virtual time, its cable's other end the
 * player's. */
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

/* What a script wants of its device; 0 or NULL: what is usual. */
struct sim_wishes {
    char *profile;
    unsigned responders; /* of its DC targets */
};

/* False: it does not come up; errno says why. */
bool sim_init(struct sim *sim, const struct sim_wishes *wishes);
/* What was made on the context is gone. */
void sim_clear(struct sim *sim);

#endif
