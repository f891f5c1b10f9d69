/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the MAC address of an IP address: ARP for IPv4 (RFC 826), neighbour discovery for IPv6 (RFC
 * 4861), as frames without a VLAN tag. IP addresses, IPv4's too, are GIDs here.
 */
#ifndef HCASIM_WIRE_ENCAP_NEIGH_H
#define HCASIM_WIRE_ENCAP_NEIGH_H

#include <stddef.h>
#include "wire/encap/ip.h"

#define MAC_BYTES       6
#define NEIGH_FRAME_MAX 86 /* of the frames that are built here */

struct neigh_msg {
    bool is_question;
    bool has_sender; /* the message says that `sender` is at `mac`, which is unicast */
    uint8_t sender[GID_BYTES], mac[MAC_BYTES];
    uint8_t asked[GID_BYTES]; /* in a question: the address whose MAC address is wanted */
};

/* Whether a frame may be such a message, judged by its type: reads only a few bytes. */
bool neigh_is_one(const uint8_t *frame, size_t len);

/* Parses a frame. False: it is not such a message, or its RFC says that a host drops it silently.
 * Another process may change the frame meanwhile. */
bool neigh_parse(const uint8_t *frame, size_t len, struct neigh_msg *msg);

/* Both functions write at most NEIGH_FRAME_MAX bytes and return how many. */

/* Asks for the MAC address of the GID `asked`. to NULL: all hosts are asked; otherwise only the
 * host at the MAC address `to`, which had the GID before. own: the asker's address, of the same
 * family. ARP about one's own address is an announcement. */
size_t neigh_build_question(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                            const uint8_t own[GID_BYTES], const uint8_t asked[GID_BYTES],
                            const uint8_t *to);

/* Answers a question: the address that it asks for is at mac. */
size_t neigh_build_answer(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                          const struct neigh_msg *question);

#endif
