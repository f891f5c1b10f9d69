/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packets, and what a NIC must make of them by the standards alone: checksums (RFC 1071), the
 * segments of a large TCP packet, the queue that receive-side scaling selects (Microsoft's Toeplitz
 * hash), VLAN tags (IEEE 802.1Q 9.3). Shares no code with the device.
 */
#ifndef HCASIM_TESTS_ETH_MESSAGE_H
#define HCASIM_TESTS_ETH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/chance.h"

#define ETH_MOST_HEADERS 78  /* Ethernet, its VLAN tag, IPv6, TCP */
#define ETH_TAG          4   /* bytes of a VLAN tag */
#define ETH_TAG_AT       12  /* its offset, behind the addresses */
#define ETH_KEY          40  /* bytes of the hash's key */
#define ETH_LEAST        16u /* the least bytes of payload, also in the last packet of a message */

/* What all packets of a job have in common. */
struct eth_kind {
    uint8_t dmac[6], smac[6];
    bool ipv6, tcp;
    uint16_t dport;
    bool tagged;                         /* packets have a VLAN tag */
    uint16_t vid;                        /* the VLAN of most packets */
    bool hash_src, hash_dst, hash_sport; /* the fields that the hash covers */
    uint8_t key[ETH_KEY];
};

struct eth_message {
    uint8_t headers[ETH_MOST_HEADERS];
    uint32_t headers_len, len; /* len: bytes of the payload */
    uint32_t mss;              /* 0: it is one packet */
    bool bad_sum, bad_l3_sum;  /* the sender wrote a wrong checksum, of the transport or of IPv4,
                                  unless the NIC inserts it */
    uint16_t tci;              /* contents of its tag: priority, DEI and VLAN */
    uint32_t number;
};

/* Draws message `number` of a job with that seed; most: bytes of payload of one packet. */
void eth_message_draw(struct eth_message *msg, const struct eth_kind *kind, uint64_t seed,
                      uint32_t number, uint32_t most);
/* Writes its payload. */
void eth_message_fill(const struct eth_message *msg, uint8_t *payload);
/* Return the number of packets that it becomes, and write the nth of them as it must be on the
 * wire; the latter returns its length. */
uint32_t eth_message_packets(const struct eth_message *msg);
size_t eth_message_packet(const struct eth_message *msg, const struct eth_kind *kind, uint32_t nth,
                          bool sums, const uint8_t *payload, uint8_t *packet);
uint32_t eth_message_hash(const struct eth_message *msg, const struct eth_kind *kind);
/* The hash of Microsoft's RSS: bit after bit, with the 32 bits of the key that begin at the bit's
 * position. */
uint32_t eth_toeplitz(const uint8_t key[ETH_KEY], const uint8_t *data, size_t len);
/* Returns whether it belongs to another VLAN than most messages. */
bool eth_message_is_astray(const struct eth_message *msg, const struct eth_kind *kind);
/* Return from a packet's payload the number of its message, and of the packet in it. */
uint32_t eth_payload_number(const uint8_t *payload);
uint32_t eth_payload_nth(const uint8_t *payload);
size_t eth_headers_len(const struct eth_kind *kind);

#endif
