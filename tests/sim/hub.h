/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hub on a virtual clock: a frame that arrives at one of its ports leaves at all others, some
 * time later and in the order of arrival. A port without room loses the frame.
 */
#ifndef HCASIM_TESTS_HUB_H
#define HCASIM_TESTS_HUB_H

#include "guest-lib/host/inproc.h"
#include "wire/port.h"

#define HUB_PORTS 8

struct hub;

struct hub *hub_new(struct inproc_world *world, uint64_t latency_ns);
/* Every cable must be unplugged. Leaves the world. */
void hub_free(struct hub *hub);

/* Returns the other end of a cable to the hub's next port. */
struct wire_port *hub_plug(struct hub *hub);

#endif
