/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has an IP address: ARP for IPv4 (RFC 826), neighbour discovery for IPv6 (RFC 4861), as frames
 * without a VLAN tag. Addresses are GIDs here, IPv4's among them.
 */
#ifndef HCASIM_WIRE_ENCAP_NEIGH_H
#define HCASIM_WIRE_ENCAP_NEIGH_H

#include <stddef.h>
#include "wire/encap/ip.h"

#define MAC_BYTES       6
#define NEIGH_FRAME_MAX 86 /* of those that are built here */

struct neigh_msg {
    bool is_question;
    bool has_sender; /* it says that this address is at this MAC address, which is unicast */
    uint8_t sender[GID_BYTES], mac[MAC_BYTES];
    uint8_t asked[GID_BYTES]; /* of a question: whose MAC address it asks for */
};

/* Whether a frame may be one, by its type: a few bytes are looked at. */
bool neigh_is_one(const uint8_t *frame, size_t len);

/* False: it is none, or one that its RFC has a host drop without a word. The frame may change
 * meanwhile. */
bool neigh_parse(const uint8_t *frame, size_t len, struct neigh_msg *msg);

/* Both write NEIGH_FRAME_MAX bytes at most, and return how many. */

/* Asks for the MAC address of a GID: whoever has it, or (to not NULL) who had that one. own: the
 * asker's address, of the same family. ARP about the own address is an announcement. */
size_t neigh_build_question(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                            const uint8_t own[GID_BYTES], const uint8_t asked[GID_BYTES],
                            const uint8_t *to);

/* Answers a question that asks for an address which is at mac. */
size_t neigh_build_answer(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                          const struct neigh_msg *question);

#endif
