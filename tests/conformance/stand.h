/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The player's end of the wire that the device under test is on. The peer is nobody: what arrives
 * at it is kept, what it sends the script says. It is at its address as any host is.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_STAND_H
#define HCASIM_TESTS_CONFORMANCE_STAND_H

#include <glib.h>
#include "tests/conformance/clock.h"
#include "wire/encap/roce.h"
#include "wire/port.h"

/* A packet that the device sent. */
struct stand_packet {
    uint64_t ns; /* when */
    struct roce_packet pkt;
    uint8_t frame[WIRE_FRAME_MAX]; /* pkt.payload points here */
};

struct stand_party {
    uint8_t mac[6];
    uint8_t gid[16]; /* of its IPv4 address */
};

struct stand {
    struct play_clock *clock;
    struct wire_port *end;
    struct stand_party device, peer;
    bool met;            /* the device has said where it is */
    GQueue sent;         /* struct stand_packet that nobody has taken */
    unsigned bad_frames; /* that the device sent, and that are no RoCEv2 packets */
};

/* Takes the port; who polls it is the caller's affair. The parties are set by then. */
void stand_init(struct stand *stand, struct play_clock *clock, struct wire_port *end);
/* Closes it. */
void stand_clear(struct stand *stand);

/* Frames that wait. Returns whether there were any. */
bool stand_poll(struct stand *stand);
/* Asks where the device is: its MAC address is what comes back, with met. */
void stand_ask(struct stand *stand);

/* What a packet has that roce_build() would not write. */
struct stand_spoil {
    bool icrc;             /* a wrong one */
    int opcode, pad_count; /* in the BTH, behind which all else is as pkt says; -1: as it does */
};

/* Puts a packet on the wire. */
void stand_send(struct stand *stand, const struct roce_packet *pkt,
                const struct stand_spoil *spoil);
/* Addresses of a packet from the peer to the device. */
void stand_address(const struct stand *stand, struct roce_addr *addr);
/* The next packet that the device sent, for the caller to free; waits for it until that time. NULL:
 * none came. */
struct stand_packet *stand_take(struct stand *stand, uint64_t limit_ns);

#endif
