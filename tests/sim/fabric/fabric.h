/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric on a virtual clock: one switch, and a cable to each host.
 *
 * A host's end of its cable is a wire port (wire/port.h). It sends on an uplink, whose queue is the
 * NIC's: a frame that does not fit is not dropped; the sender waits. The switch learns from source
 * addresses where hosts are. It sends a frame for a known address to that port, and any other frame
 * to each port except the one it came from. Each port's queue is the queue of its downlink: there
 * frames are dropped or marked.
 */
#ifndef HCASIM_TESTS_FABRIC_H
#define HCASIM_TESTS_FABRIC_H

#include "tests/sim/fabric/link.h"
#include "wire/port.h"

#define FABRIC_PORTS 1024

struct fabric;

struct fabric_config {
    uint64_t seed;
    struct link_config uplink, downlink; /* of each port, unless it gets its own */
    bool strangers; /* hosts are not told who is on the wire (wire_knows()), so they have to ask */
};

/* Called for every frame that leaves a downlink, before the host sees it, or that enters an uplink.
 * fate: enum frame_fate. Also called for each frame that is lost (FRAME_GONE): on the uplink of the
 * port, or (arrives) on the way to the port. */
typedef void fabric_trace_fn(void *opaque, unsigned port, bool arrives, const uint8_t *frame,
                             size_t len, unsigned fate);

/* Makes a fabric and joins the world. */
struct fabric *fabric_new(struct inproc_world *world, const struct fabric_config *config);
/* Every port must be closed. */
void fabric_free(struct fabric *fabric);
void fabric_set_trace(struct fabric *fabric, fabric_trace_fn *trace, void *opaque);
/* Returns the configuration, which may be changed while the fabric runs. It applies to all links
 * without their own. */
struct fabric_config *fabric_config(struct fabric *fabric);
struct timeline *fabric_timeline(struct fabric *fabric);

/* Returns the host's end of the cable to the next port, whose number is fabric_num_ports() - 1
 * afterwards. */
struct wire_port *fabric_plug(struct fabric *fabric);
/* Plugs a cable into the port of a host that has closed its end. Frames on the way to the port
 * still arrive. */
struct wire_port *fabric_plug_again(struct fabric *fabric, unsigned port);
unsigned fabric_num_ports(const struct fabric *fabric);
struct link *fabric_uplink(struct fabric *fabric, unsigned port);
struct link *fabric_downlink(struct fabric *fabric, unsigned port);

/* Removes or plugs in a cable: affects both directions, and the host is notified. */
void fabric_set_cable(struct fabric *fabric, unsigned port, bool in);
/* Assigns the port to a partition, 0 at first. Ports of different partitions do not hear each
 * other. */
void fabric_set_island(struct fabric *fabric, unsigned port, unsigned island);

struct fabric_stats {
    uint64_t frames;  /* frames that arrived at hosts */
    uint64_t flooded; /* frames that the switch sent to more than one port */
    uint64_t parted;  /* frames dropped between partitions */
    uint64_t faults;  /* faults of all links */
    uint64_t dropped, marked;
};

struct fabric_stats fabric_stats(const struct fabric *fabric);

#endif
