/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE: transport packets in Ethernet. Version 2 has IP and UDP between the two (IBTA volume 1,
 * annex A17), version 1 a GRH (annex A16). A GRH has the layout of an IPv6 header.
 */
#ifndef HCASIM_WIRE_ENCAP_ROCE_H
#define HCASIM_WIRE_ENCAP_ROCE_H

#include "wire/encap/ip.h"
#include "wire/packet/icrc.h"
#include "wire/packet/transport.h"

#define ROCE_UDP_DPORT 4791

/* Addresses are GIDs in network order; an IPv4 address is ::ffff:a.b.c.d. */
struct roce_addr {
    uint8_t dmac[6], smac[6];
    bool has_vlan;
    uint16_t vlan_tci; /* PCP, DEI, VID */
    bool is_ipv4;
    bool is_v1; /* version 1; is_ipv4 is false then, and udp_sport means nothing */
    uint8_t sgid[16], dgid[16];
    uint8_t tclass; /* TOS or traffic class: DSCP << 2 | ECN */
    uint8_t hop_limit;
    uint32_t flow_label; /* IPv6 and GRH only */
    uint16_t udp_sport;
};

struct roce_packet {
    struct roce_addr addr;
    union {
        struct transport_packet; /* its members are members of struct roce_packet */
        struct transport_packet transport;
    };
};

/* The priority (PCP) of IEEE 802.1Q. Without a tag it is 0. */
static inline unsigned roce_priority(const struct roce_addr *addr)
{
    return addr->has_vlan ? addr->vlan_tci >> 13 : 0;
}

enum roce_verdict {
    ROCE_OK = TRANSPORT_OK,
    ROCE_TRUNCATED = TRANSPORT_TRUNCATED,   /* lengths do not agree */
    ROCE_BAD_HEADER = TRANSPORT_BAD_HEADER, /* or IP's version, options or checksum */
    ROCE_NOT_ROCE,                          /* an Ethernet frame that is not RoCE */
    ROCE_BAD_ICRC,
};

/* The longest headers: those of version 2 over IPv6. */
#define ROCE_HEADER_MAX (ETH_BYTES + VLAN_BYTES + IPV6_BYTES + UDP_BYTES + TRANSPORT_HEADER_MAX)

/*
 * Parses a frame, checking every length, the IPv4 header checksum and the ICRC. *pkt points into
 * frame. With ROCE_OK all of *pkt is set. With ROCE_BAD_ICRC its fields are those of the damaged
 * frame (for counters and logs). With other results it is incomplete. Each header byte of frame is
 * read once, so a frame in memory that a hostile peer writes to can yield wrong values but no
 * inconsistent ones.
 *
 * ROCE_NOT_ROCE: neither a GRH nor IP, not UDP to port 4791, an IP fragment, or two VLAN tags.
 *
 * ROCE_TRUNCATED: a length field goes beyond the frame or does not agree with another one, or
 * transport_parse() says so.
 *
 * ROCE_BAD_HEADER: IPv4 options (annex A17: IHL is 5), a bad IPv4 checksum, a GRH that is not
 * followed by a transport packet, or transport_parse() says so.
 *
 * Bytes after the IP packet (Ethernet's own padding) are ignored. The UDP checksum is ignored,
 * because the ICRC covers more.
 */
enum roce_verdict roce_parse(const uint8_t *frame, size_t len, struct roce_packet *pkt);

/* As roce_parse(), without checking the ICRC: for a frame that came with WIRE_NO_ICRC
 * (wire/port.h). */
enum roce_verdict roce_parse_unchecked(const uint8_t *frame, size_t len, struct roce_packet *pkt);

/* The last frame that was parsed, kept for the next one, which most often has the same length and
 * the same addresses. Zero-initialized: no frame yet. */
struct roce_last {
    size_t len; /* of the frame; 0: none */
    size_t bth_off, transport_len;
    uint8_t head[ROCE_HEADER_MAX];
    struct roce_packet pkt;
};

/* As roce_parse_unchecked(), to last->pkt. The bytes before the BTH are compared with the last
 * frame's, and parsed only if they differ. */
enum roce_verdict roce_parse_next(const uint8_t *frame, size_t len, struct roce_last *last);

/*
 * Writes the 40 bytes that a datagram's receiver gets in the place of a GRH (annex A17.7.2): the
 * GRH or IPv6 header as it was on the wire, or the IPv4 header in the last 20 bytes.
 */
#define GRH_BYTES 40
void roce_put_grh(uint8_t grh[GRH_BYTES], const struct roce_packet *pkt);

/* Writes the ICRC of such a frame. A frame that roce_parse_unchecked() refuses stays as it is. */
void roce_fill_icrc(uint8_t *frame, size_t len);

/* Length of pkt's headers in a frame (Ethernet to last extended header). This function and the ones
 * below need a pkt whose opcode exists. */
size_t roce_header_len(const struct roce_packet *pkt);

/* Length of the whole frame with payload_len bytes of payload: headers, payload, pad, ICRC. */
size_t roce_frame_len(const struct roce_packet *pkt, size_t payload_len);

/*
 * Writes the headers for a packet with payload_len bytes of payload to frame and returns where the
 * payload goes. pad_count, all lengths, and all checksums except the ICRC are computed from
 * payload_len; pkt->payload* and pkt->pad_count are ignored. IPv4: DF is set, the identification is
 * 0. The UDP checksum is 0 with both IP versions, as mlx5 sends it.
 */
uint8_t *roce_build(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

/* Writes pad and ICRC after the payload is in place. Returns the frame's length. */
size_t roce_finish(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

/* As roce_finish(), with zeros for the ICRC: for a frame that is sent with WIRE_NO_ICRC. */
size_t roce_finish_no_icrc(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

#endif
