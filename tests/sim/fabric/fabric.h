/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric on a virtual clock: one switch, and a cable to each host.
 *
 * A host's end of its cable is a wire port (wire/port.h). It sends on an uplink, whose queue is the
 * NIC's: a frame that does not fit is not dropped, the sender waits. The switch learns who is where
 * from source addresses, sends a frame for a known address to that port, and all others to each
 * port but where they came from; each port's queue, where frames are dropped or marked, is that of
 * the port's downlink.
 */
#ifndef HCASIM_TESTS_FABRIC_H
#define HCASIM_TESTS_FABRIC_H

#include "tests/sim/fabric/link.h"
#include "wire/port.h"

#define FABRIC_PORTS 1024

struct fabric;

struct fabric_config {
    uint64_t seed;
    struct link_config uplink, downlink; /* of each port, until it gets others */
    bool strangers; /* hosts are not told who is on the wire (wire_knows()), and ask */
};

/* Everything that comes out of a downlink, before the host has seen it, or goes into an uplink. */
typedef void fabric_trace_fn(void *opaque, unsigned port, bool arrives, const uint8_t *frame,
                             size_t len);

/* Joins the world. */
struct fabric *fabric_new(struct inproc_world *world, const struct fabric_config *config);
/* Every port is closed. */
void fabric_free(struct fabric *fabric);
void fabric_set_trace(struct fabric *fabric, fabric_trace_fn *trace, void *opaque);
/* What it was made with, to be changed while it runs: all links that have not got another. */
struct fabric_config *fabric_config(struct fabric *fabric);
struct timeline *fabric_timeline(struct fabric *fabric);

/* The host's end of the cable to the next port, which is number fabric_num_ports() - 1 then. */
struct wire_port *fabric_plug(struct fabric *fabric);
/* The same again to a port whose host has closed its end: what is on its way there arrives. */
struct wire_port *fabric_plug_again(struct fabric *fabric, unsigned port);
unsigned fabric_num_ports(const struct fabric *fabric);
struct link *fabric_uplink(struct fabric *fabric, unsigned port);
struct link *fabric_downlink(struct fabric *fabric, unsigned port);

/* A cable that is out: both directions, and the host is told. */
void fabric_set_cable(struct fabric *fabric, unsigned port, bool in);
/* Ports with different numbers do not hear each other; 0 at first. */
void fabric_set_island(struct fabric *fabric, unsigned port, unsigned island);

struct fabric_stats {
    uint64_t frames;  /* that arrived at hosts */
    uint64_t flooded; /* that the switch sent to more than one port */
    uint64_t parted;  /* between islands */
    uint64_t faults;  /* of all links */
    uint64_t dropped, marked;
};

struct fabric_stats fabric_stats(const struct fabric *fabric);

#endif
