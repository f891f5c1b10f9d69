/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device under test on a stand: a verbs context in virtual time whose cable ends in the test's
 * hand. The peer is nobody: what arrives at it is kept, what it sends the test writes.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_STAND_H
#define HCASIM_TESTS_CONFORMANCE_STAND_H

#include "guest-lib/host/inproc.h"
#include "guest-lib/verbs/kernel/config.h"
#include "wire/encap/roce.h"
#include "wire/port.h"

/* A packet that the device sent. */
struct stand_packet {
    uint64_t ns; /* when */
    struct roce_packet pkt;
    uint8_t frame[WIRE_FRAME_MAX]; /* pkt.payload points here */
};

struct stand {
    struct inproc_world *world;
    struct wire_port *end;
    struct hv_port_config device, peer; /* their addresses */
    struct ibv_device *ibdev;
    struct ibv_context *ctx;
    struct ibv_pd *pd, *other_pd; /* all but a region that says so is in the first */
    GQueue sent;                  /* struct stand_packet that nobody has taken */
    unsigned bad_frames;          /* that the device sent, and that are no RoCEv2 packets */
    struct inproc_member member;
};

/* False: it does not come up; errno says why. */
bool stand_init(struct stand *stand);
/* What was made on the context is gone. */
void stand_clear(struct stand *stand);

/* What a packet has that roce_build() would not write. */
struct stand_spoil {
    bool icrc;             /* a wrong one */
    int opcode, pad_count; /* in the BTH, behind which all else is as pkt says; -1: as it does */
};

/* Puts a packet on the cable; it arrives with the next step of the world. */
void stand_send(struct stand *stand, const struct roce_packet *pkt,
                const struct stand_spoil *spoil);
/* Addresses of a packet from the peer to the device. */
void stand_address(const struct stand *stand, struct roce_addr *addr);
/* The next packet that the device sent, for the caller to free; waits for it until that time. NULL:
 * none came. */
struct stand_packet *stand_take(struct stand *stand, uint64_t limit_ns);

#endif
