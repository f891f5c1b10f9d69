/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an Ethernet NIC reads in a frame: for checksums, receive-side scaling, steering and
 * segmentation. Values are in host byte order, offsets in bytes from the frame's first one.
 */
#ifndef HCASIM_WIRE_ENCAP_ETH_H
#define HCASIM_WIRE_ENCAP_ETH_H

#include "wire/encap/ip.h"

#include <stddef.h>

/* TCP flags as in eth_info.tcp_flags (RFC 9293 3.1; bit 8 is AE). */
enum {
    TCP_FIN = 0x01,
    TCP_SYN = 0x02,
    TCP_RST = 0x04,
    TCP_PSH = 0x08,
    TCP_ACK = 0x10,
    TCP_URG = 0x20,
    TCP_ECE = 0x40,
    TCP_CWR = 0x80,
};

enum eth_l4 {
    ETH_L4_NONE,
    ETH_L4_TCP,
    ETH_L4_UDP,
};

struct eth_info {
    uint32_t frame_len;
    uint8_t vlan_count;                 /* tags parsed: 0 to 2 */
    uint16_t vlan_tpid[2], vlan_tci[2]; /* outer one first; 0 where there is none */
    uint16_t ethertype;                 /* behind the tags */
    uint8_t ip_version;                 /* 4, 6, or 0: not IP, or its header makes no sense */
    bool malformed;        /* a header or a length that does not fit in the frame, or contradicts */
    bool fragment;         /* one of several; then l4 is ETH_L4_NONE */
    uint8_t proto;         /* of IP's payload; for IPv6 behind the extension headers */
    uint8_t tos;           /* TOS or traffic class: DSCP << 2 | ECN */
    uint8_t ttl;           /* or hop limit */
    uint32_t flow_label;   /* IPv6 */
    enum eth_l4 l4;        /* a whole TCP or UDP header is there */
    uint16_t sport, dport; /* with l4 */
    uint16_t tcp_flags;    /* with ETH_L4_TCP; 9 bits */
    uint32_t l3_off;       /* what follows the Ethernet header and the tags */
    uint32_t l4_off;       /* with ip_version: what follows the IP header (and extensions) */
    uint32_t payload_off;  /* with l4: what follows the TCP or UDP header */
    uint32_t ip_end;       /* with ip_version: where the IP packet, or the frame if that is
                            * shorter (and malformed), ends; padding may follow */
};

/* Takes a frame apart. False (and *info all zero but frame_len): no whole Ethernet header. */
bool eth_parse(const uint8_t *frame, size_t len, struct eth_info *info);

/*
 * The same for headers whose payload is elsewhere (a segmentation request's): IP's and UDP's own
 * length fields are not looked at, and ip_end is len.
 */
bool eth_parse_headers(const uint8_t *headers, size_t len, struct eth_info *info);

/*
 * The ones' complement sum (RFC 1071) of len bytes, folded to 16 bits, not inverted, as the sum
 * of 16-bit words read big-endian; an odd last byte is the high half of a word. This is what
 * CHECKSUM_COMPLETE reports. csum_add() adds two such sums (the second one over data that began
 * at an even distance from the first one's).
 */
uint16_t csum_partial(const void *data, size_t len);
uint16_t csum_add(uint16_t a, uint16_t b);

/* All of these take an info that eth_parse() made of this frame. */

/* Whether the IPv4 header checksum is right. False also without IPv4. */
bool eth_csum_ipv4_ok(const uint8_t *frame, const struct eth_info *info);

/*
 * Whether the TCP or UDP checksum is right. True for UDP over IPv4 with checksum 0 (RFC 768: the
 * sender made none), false for UDP over IPv6 with 0 (RFC 8200 8.1), for a UDP length that does
 * not fit IP's, and without l4.
 */
bool eth_csum_l4_ok(const uint8_t *frame, const struct eth_info *info);

/* Write the checksum, whatever the field held before. Nothing is written without an IPv4 header
 * or without l4; nor for a UDP length that does not fit. */
void eth_csum_fill_ipv4(uint8_t *frame, const struct eth_info *info);
void eth_csum_fill_l4(uint8_t *frame, const struct eth_info *info);

/* Receive-side scaling's hash, defined bit by bit by Microsoft's "RSS hashing functions". */
#define TOEPLITZ_KEY_LEN  40
#define TOEPLITZ_DATA_MAX (TOEPLITZ_KEY_LEN - 4) /* two IPv6 addresses and two ports */

/* len is at most TOEPLITZ_DATA_MAX; more is not looked at. */
uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY_LEN], const uint8_t *data, size_t len);

/* The same with a table made once per key: a lookup per half byte. */
struct toeplitz_table {
    uint32_t of[TOEPLITZ_DATA_MAX * 2][16];
};

void toeplitz_table_init(struct toeplitz_table *table, const uint8_t key[TOEPLITZ_KEY_LEN]);
uint32_t toeplitz_table_hash(const struct toeplitz_table *table, const uint8_t *data, size_t len);

#endif
