/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 packets: bytes on one side, meaning in host byte order on the other.
 *
 * Layouts: IBTA volume 1 chapter 9 (transport headers), annex A17 (RoCEv2 encapsulation and
 * ICRC), RFC 791/8200/768, IEEE 802.1Q.
 */
#ifndef HCASIM_WIRE_PACKET_H
#define HCASIM_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_UDP_DPORT 4791

/* BTH opcode: transport in bits 7:5, operation in bits 4:0 (IBTA table 38). */
enum bth_transport {
    BTH_RC = 0x00,
    BTH_UC = 0x20,
    BTH_RD = 0x40,
    BTH_UD = 0x60,
    BTH_CNP = 0x80, /* RoCEv2 congestion notification, annex A17.9 */
    BTH_XRC = 0xa0,
};

/* The one opcode of BTH_CNP (A17.9). */
#define BTH_CNP_OPCODE 0x81

enum bth_op {
    BTH_SEND_FIRST = 0x00,
    BTH_SEND_MIDDLE = 0x01,
    BTH_SEND_LAST = 0x02,
    BTH_SEND_LAST_IMM = 0x03,
    BTH_SEND_ONLY = 0x04,
    BTH_SEND_ONLY_IMM = 0x05,
    BTH_WRITE_FIRST = 0x06,
    BTH_WRITE_MIDDLE = 0x07,
    BTH_WRITE_LAST = 0x08,
    BTH_WRITE_LAST_IMM = 0x09,
    BTH_WRITE_ONLY = 0x0a,
    BTH_WRITE_ONLY_IMM = 0x0b,
    BTH_READ_REQUEST = 0x0c,
    BTH_READ_RESP_FIRST = 0x0d,
    BTH_READ_RESP_MIDDLE = 0x0e,
    BTH_READ_RESP_LAST = 0x0f,
    BTH_READ_RESP_ONLY = 0x10,
    BTH_ACK = 0x11,
    BTH_ATOMIC_ACK = 0x12,
    BTH_CMP_SWAP = 0x13,
    BTH_FETCH_ADD = 0x14,
    BTH_SEND_LAST_INV = 0x16,
    BTH_SEND_ONLY_INV = 0x17,
};

/* What follows the BTH, by opcode. */
enum bth_headers {
    HDR_DETH = 1 << 0,
    HDR_RETH = 1 << 1,
    HDR_ATOMIC_ETH = 1 << 2,
    HDR_AETH = 1 << 3,
    HDR_ATOMIC_ACK_ETH = 1 << 4,
    HDR_IMM_DT = 1 << 5,
    HDR_IETH = 1 << 6,
    HDR_XRC_ETH = 1 << 7,
    HDR_PAYLOAD = 1 << 8, /* a payload may follow */
    /* role of the packet in its message */
    PKT_REQUEST = 1 << 9,
    PKT_RESPONSE = 1 << 10,
    PKT_FIRST = 1 << 11, /* FIRST or ONLY */
    PKT_LAST = 1 << 12,  /* LAST or ONLY */
    PKT_SEND = 1 << 13,
    PKT_WRITE = 1 << 14,
    PKT_READ = 1 << 15,
    PKT_ATOMIC = 1 << 16,
    HDR_CNP_RSVD = 1 << 17, /* a CNP's 16 reserved bytes: zero when built, ignored when parsed */
};

struct bth_opcode_info {
    const char *name;   /* NULL: the opcode does not exist */
    uint32_t flags;     /* enum bth_headers */
    uint8_t header_len; /* bytes from BTH to payload, BTH's 12 included */
};

/* Indexed by the whole BTH opcode. */
extern const struct bth_opcode_info bth_opcodes[256];

/* Addresses are GIDs in network order; an IPv4 address is ::ffff:a.b.c.d. */
struct roce_addr {
    uint8_t dmac[6], smac[6];
    bool has_vlan;
    uint16_t vlan_tci; /* PCP, DEI, VID */
    bool is_ipv4;
    uint8_t sgid[16], dgid[16];
    uint8_t tclass; /* TOS or traffic class: DSCP << 2 | ECN */
    uint8_t hop_limit;
    uint32_t flow_label; /* IPv6 only */
    uint16_t udp_sport;
};

struct roce_packet {
    struct roce_addr addr;
    /* BTH */
    uint8_t opcode;
    bool solicited, migreq, ackreq, fecn, becn;
    uint8_t pad_count, tver;
    uint16_t pkey;
    uint32_t dest_qp, psn;
    /* the extended headers that bth_opcodes[opcode].flags names */
    struct {
        uint32_t qkey, src_qp;
    } deth;
    struct {
        uint64_t va;
        uint32_t rkey, len;
    } reth;
    struct {
        uint64_t va, swap_add, compare;
        uint32_t rkey;
    } atomic;
    struct {
        uint8_t syndrome;
        uint32_t msn;
    } aeth;
    uint64_t atomic_ack;
    uint32_t imm; /* ImmDt as the 4 wire bytes read big-endian, or IETH's rkey */
    uint32_t xrc_srqn;
    /* payload without pad, inside the parsed frame */
    const uint8_t *payload;
    size_t payload_len;
};

enum roce_verdict {
    ROCE_OK,
    ROCE_NOT_ROCE,  /* an Ethernet frame for someone else */
    ROCE_TRUNCATED, /* lengths do not agree */
    ROCE_BAD_ICRC,
    ROCE_BAD_HEADER, /* version, transport version, opcode, IP checksum */
};

/* The most that headers take: Ethernet, one tag, IPv6, UDP, BTH, XRCETH and AtomicETH. */
#define ROCE_HEADER_MAX (14 + 4 + 40 + 8 + 12 + 4 + 28)

/*
 * Takes a frame apart, checking every length, the IPv4 header checksum and the ICRC. *pkt points
 * into frame; only with ROCE_OK is all of it set, but with ROCE_BAD_ICRC the fields are those of
 * the damaged frame (for counters and logs). Each header byte of frame is read once, so a frame
 * in memory that a hostile peer writes to can yield wrong values but no inconsistent ones.
 *
 * ROCE_NOT_ROCE: not IP, not UDP to port 4791, an IP fragment, or two VLAN tags.
 * ROCE_TRUNCATED: a length field goes beyond the frame or does not agree with another one; the
 * transport part is no multiple of 4 (the pad makes it one); the pad is longer than the
 * payload; a payload where bth_opcodes allows none.
 * ROCE_BAD_HEADER: IPv4 options (annex A17: IHL is 5), bad IPv4 checksum, TVer not 0, an opcode
 * that does not exist. Bytes after the IP packet (Ethernet's own padding) are ignored.
 * The UDP checksum is not looked at: the ICRC covers more.
 */
enum roce_verdict roce_parse(const uint8_t *frame, size_t len, struct roce_packet *pkt);

/* The same without a look at the ICRC: for a frame that came with WIRE_NO_ICRC (wire/port.h). */
enum roce_verdict roce_parse_unchecked(const uint8_t *frame, size_t len, struct roce_packet *pkt);

/* Writes the ICRC of such a frame; one that roce_parse_unchecked() does not take stays as it is. */
void roce_fill_icrc(uint8_t *frame, size_t len);

/* Bytes that pkt's headers take in a frame (Ethernet to last extended header). The functions
 * from here on need a pkt whose opcode exists. */
size_t roce_header_len(const struct roce_packet *pkt);

/* Bytes of the whole frame with payload_len bytes of payload: headers, payload, pad, ICRC. */
size_t roce_frame_len(const struct roce_packet *pkt, size_t payload_len);

/*
 * Writes the headers for a packet with payload_len bytes of payload to frame and returns where
 * the payload goes. pad_count and all lengths and checksums but the ICRC are filled in from
 * payload_len; pkt->payload* and pkt->pad_count are not looked at. IPv4: DF is set, the
 * identification is 0; the UDP checksum is 0 with both IP versions, as mlx5 sends it.
 */
uint8_t *roce_build(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

/* Writes pad and ICRC once the payload is in place. Returns the frame's length. */
size_t roce_finish(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

/* The same with zeros for the ICRC: for a frame that goes out with WIRE_NO_ICRC. */
size_t roce_finish_no_icrc(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len);

#endif
