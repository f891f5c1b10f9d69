/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The player's end of the wire of the device under test. No real peer is there: what arrives at the
 * peer is kept, and the script decides what the peer sends. Like any host, it answers for its
 * address.
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
    bool is_v1;          /* packets to the device are of RoCE v1, if no field says otherwise */
    bool met;            /* the device has announced its address */
    GQueue sent;         /* struct stand_packet that are not consumed yet */
    unsigned bad_frames; /* number of frames from the device that are no RoCE packets */
};

/* Takes ownership of the port; the caller arranges polling. The parties must be set before. */
void stand_init(struct stand *stand, struct play_clock *clock, struct wire_port *end);
/* Closes it. */
void stand_clear(struct stand *stand);

/* Handles waiting frames. Returns whether there were any. */
bool stand_poll(struct stand *stand);
/* Asks for the device's address: its answer sets its MAC address and met. */
void stand_ask(struct stand *stand);

/* Faults in a packet that roce_build() would not write. */
struct stand_spoil {
    bool icrc; /* a wrong ICRC */
    int opcode,
        pad_count; /* values in the BTH; the headers behind it follow pkt. -1: the values of pkt */
};

/* Puts a packet on the wire. */
void stand_send(struct stand *stand, const struct roce_packet *pkt,
                const struct stand_spoil *spoil);
/* Sets the addresses of a packet from the peer to the device. */
void stand_address(const struct stand *stand, struct roce_addr *addr);
/* Returns the next packet that the device sent, which the caller frees; waits for it until that
 * time. NULL: none came. */
struct stand_packet *stand_take(struct stand *stand, uint64_t limit_ns);

#endif
