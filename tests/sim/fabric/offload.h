/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for which a NIC fills something in, and what they must become by the standards alone:
 * checksums inside and outside of tunnels (RFC 1071), segments of large TCP packets and of UDP
 * messages, VLAN tags (IEEE 802.1Q). Shares no code with the device. Values of fields are those of
 * the WQE's Ethernet segment.
 */
#ifndef HCASIM_TESTS_OFFLOAD_H
#define HCASIM_TESTS_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/chance.h"

#define OFFLOAD_HEADERS 176 /* the most bytes of headers */
#define OFFLOAD_LEAST   8u  /* the least payload of a packet: it names its message */
#define OFFLOAD_PACKETS 8u  /* of a message */
#define OFFLOAD_KEY     40

enum offload_tunnel {
    OFFLOAD_PLAIN,
    OFFLOAD_VXLAN,
    OFFLOAD_GENEVE,
    OFFLOAD_GRE,
    OFFLOAD_IPIP,
    OFFLOAD_UNKNOWN, /* VXLAN at a port that the device does not know: software names the headers */
    OFFLOAD_TUNNELS,
};

enum offload_vlan {
    OFFLOAD_NO_VLAN,
    OFFLOAD_VLAN_IN_PACKET,
    OFFLOAD_VLAN_INSERTED, /* by the device; not in a large packet */
};

/* What all packets of a job have in common. */
struct offload_kind {
    uint8_t dmac[6], smac[6];
    enum offload_tunnel tunnel;
    bool outer_v6; /* of the tunnel */
    bool v6, udp;  /* of the packet in it, or the only one */
    enum offload_vlan vlan;
    bool has_swp; /* software may name the headers */
};

/* A packet, or a large packet that becomes several. */
struct offload {
    uint32_t number;
    uint8_t headers[OFFLOAD_HEADERS];
    uint32_t headers_len, len; /* len: bytes of the payload */
    uint32_t mss;              /* 0: it is one packet */
    uint8_t cs_flags;          /* checksums to fill in */
    bool svlan;                /* the inserted tag is an S-VLAN tag */
    uint16_t tci;
    /* Where headers are: of the outer packet [0] and the inner one [1]. A plain packet has only the
     * outer one. l4 0: it has none that the device fills in. */
    uint32_t l3[2], l4[2];
    bool is_v6[2], is_udp[2];
    bool names_headers; /* by swp and swp_flags */
    uint8_t swp[4];     /* outer L3 and L4, inner L3 and L4, in words */
    uint8_t swp_flags;
};

/* Draws message `number`; most: bytes of payload of a packet. large: it may be segmented. Sets all
 * but cs_flags, tci and svlan if these are given by `like`, another packet of the same WQE. */
void offload_draw(struct offload *o, const struct offload_kind *kind, struct chance *chance,
                  uint32_t number, uint32_t most, bool large, const struct offload *like);
/* Writes its payload. */
void offload_fill(const struct offload *o, uint8_t *payload);
uint32_t offload_packets(const struct offload *o);
/* Writes the nth packet as it must be on the wire, and returns its length. */
size_t offload_packet(const struct offload *o, const struct offload_kind *kind, uint32_t nth,
                      const uint8_t *payload, uint8_t *packet);
/* Returns the hash of receive-side scaling over addresses and ports of a packet: outer or inner. */
uint32_t offload_hash(const struct offload *o, unsigned which, const uint8_t key[OFFLOAD_KEY]);
/* Bytes before the payload of each packet of a job, on the wire. */
size_t offload_payload_at(const struct offload_kind *kind);

#endif
