/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses what an Ethernet NIC reads in a frame: for checksums, receive-side scaling, steering and
 * segmentation. Values are in host byte order; offsets are in bytes from the beginning of the
 * frame.
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
    uint16_t vlan_tpid[2], vlan_tci[2]; /* outer one first; 0 without a tag */
    uint16_t ethertype;                 /* behind the tags */
    uint8_t ip_version;                 /* 4, 6, or 0: not IP, or an invalid header */
    bool malformed;        /* a header or length does not fit in the frame, or lengths disagree */
    bool fragment;         /* a fragment; then l4 is ETH_L4_NONE */
    uint8_t proto;         /* of IP's payload; for IPv6 behind the extension headers */
    uint8_t tos;           /* TOS or traffic class: DSCP << 2 | ECN */
    uint8_t ttl;           /* or hop limit */
    uint32_t flow_label;   /* IPv6 */
    enum eth_l4 l4;        /* a whole TCP or UDP header is there */
    uint16_t sport, dport; /* if l4 is set */
    uint16_t tcp_flags;    /* if l4 is ETH_L4_TCP; 9 bits */
    uint32_t l3_off;       /* behind the Ethernet header and the tags */
    uint32_t l4_off;       /* if ip_version is set: behind the IP header (and extensions) */
    uint32_t payload_off;  /* if l4 is set: behind the TCP or UDP header */
    uint32_t ip_end;       /* if ip_version is set: end of the IP packet, or of the frame if that is
                            * shorter (malformed); padding may follow */
};

/* Parses a frame. False (and *info all zero except frame_len): the Ethernet header is not whole. */
bool eth_parse(const uint8_t *frame, size_t len, struct eth_info *info);

/*
 * As eth_parse(), for headers whose payload is elsewhere (a segmentation request's). The length
 * fields of IP and UDP are ignored, and ip_end is len.
 */
bool eth_parse_headers(const uint8_t *headers, size_t len, struct eth_info *info);

/*
 * Parses what a frame carries from the byte `at` to the byte before `end`: an Ethernet frame or, if
 * ethertype is not 0, what this type says. Offsets in *info are from the beginning of the outer
 * frame, and frame_len is `end`. whole: as eth_parse(), otherwise as eth_parse_headers(). False: an
 * Ethernet header is not whole.
 */
bool eth_parse_inner(const uint8_t *frame, uint32_t at, uint32_t end, uint16_t ethertype,
                     bool whole, struct eth_info *info);

/*
 * The ones' complement sum (RFC 1071) of len bytes, folded to 16 bits, not inverted, as the sum of
 * 16-bit words read big-endian; an odd last byte is the high half of a word. This is the value that
 * CHECKSUM_COMPLETE reports. csum_add() adds two such sums; the data of the second sum must begin
 * at an even distance from the first byte of the first one's.
 */
uint16_t csum_partial(const void *data, size_t len);
uint16_t csum_add(uint16_t a, uint16_t b);

/* Bytes of a frame check sequence. */
#define ETH_FCS_BYTES 4

/* Writes the frame check sequence of a frame as it is on a cable (IEEE 802.3 3.2.9). */
void eth_fcs_put(uint8_t fcs[ETH_FCS_BYTES], const uint8_t *frame, size_t len);

/* The functions from here to eth_csum_fill_l4() take an info that eth_parse() made of this
 * frame. */

/* Whether the IPv4 header checksum is right. False also if the frame is not IPv4. */
bool eth_csum_ipv4_ok(const uint8_t *frame, const struct eth_info *info);

/*
 * Whether the TCP or UDP checksum is right. True for UDP over IPv4 with checksum 0 (RFC 768: the
 * sender made none). False for UDP over IPv6 with checksum 0 (RFC 8200 8.1), for a UDP length that
 * does not fit in IP's, and without l4.
 */
bool eth_csum_l4_ok(const uint8_t *frame, const struct eth_info *info);

/* Write the checksum, whatever the field held before. Without an IPv4 header or without l4, nothing
 * is written; neither is it for a UDP length that does not fit. */
void eth_csum_fill_ipv4(uint8_t *frame, const struct eth_info *info);
void eth_csum_fill_l4(uint8_t *frame, const struct eth_info *info);

/* The hash of receive-side scaling, defined bit by bit by Microsoft's "RSS hashing functions". */
#define TOEPLITZ_KEY_LEN  40
#define TOEPLITZ_DATA_MAX (TOEPLITZ_KEY_LEN - 4) /* two IPv6 addresses and two ports */

/* len is at most TOEPLITZ_DATA_MAX; further bytes are ignored. */
uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY_LEN], const uint8_t *data, size_t len);

/* The same hash with a table that is made once per key: one lookup per half byte. */
struct toeplitz_table {
    uint32_t of[TOEPLITZ_DATA_MAX * 2][16];
};

void toeplitz_table_init(struct toeplitz_table *table, const uint8_t key[TOEPLITZ_KEY_LEN]);
uint32_t toeplitz_table_hash(const struct toeplitz_table *table, const uint8_t *data, size_t len);

#endif
