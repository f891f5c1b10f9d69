/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport packets (IBTA volume 1 chapter 9): parses the BTH, the extended headers and the payload
 * with its pad into struct transport_packet, in host byte order, and builds them from it. This file
 * knows neither the encapsulation that carries a packet (wire/encap/) nor the ICRC behind it
 * (wire/packet/icrc.h).
 *
 * An encapsulation has one function that parses a packet, one that builds its headers and one that
 * completes it.
 */
#ifndef HCASIM_WIRE_PACKET_TRANSPORT_H
#define HCASIM_WIRE_PACKET_TRANSPORT_H

#include "wire/packet/opcode.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* AETH.syndrome (IBTA 9.5.4, tables 43 and 44): a class in bits 7:5, and a value of that class in
 * bits 4:0. */
enum aeth_class {
    AETH_CLASS_ACK = 0,
    AETH_CLASS_RNR_NAK = 1,
    AETH_CLASS_NAK = 3,
};

enum aeth_syndrome {
    AETH_ACK = AETH_CLASS_ACK << 5 | 0x1f, /* credit count 31: no end-to-end credits */
    AETH_RNR = AETH_CLASS_RNR_NAK << 5,    /* or'ed with the RNR timer code */
    AETH_NAK_SEQ = AETH_CLASS_NAK << 5,    /* PSN sequence error */
    AETH_NAK_INVALID,                      /* invalid request */
    AETH_NAK_ACCESS,                       /* remote access error */
    AETH_NAK_OP,                           /* remote operational error */
    AETH_CNAK,                             /* DC: the target has no free responder */
};

static inline enum aeth_class aeth_class(uint8_t syndrome)
{
    return (enum aeth_class)(syndrome >> 5);
}

static inline unsigned aeth_value(uint8_t syndrome)
{
    return syndrome & 0x1f;
}

struct transport_packet {
    /* BTH */
    uint8_t opcode;
    bool solicited, migreq, ackreq, fecn, becn;
    uint8_t pad_count, tver;
    uint16_t pkey;
    uint32_t dest_qp, psn;
    /* The extended headers that bth_opcodes[opcode].flags names. In a CNP, dceth is all zeros
     * unless the CNP goes to a DC target: then it names the session (docs/adr/0009). */
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
    struct {
        uint8_t version;  /* of the transport: v0, v1 */
        uint32_t session; /* a CNAK's is 0 */
        uint32_t number;  /* of the sender: DCI in requests and CNPs, DCT in responses */
    } dceth;
    /* payload without pad, inside the parsed packet */
    const uint8_t *payload;
    size_t payload_len;
};

enum transport_verdict {
    TRANSPORT_OK,
    TRANSPORT_TRUNCATED,  /* lengths do not agree */
    TRANSPORT_BAD_HEADER, /* transport version, opcode */
};

/*
 * Parses a packet of len bytes, from BTH to pad. head is a copy of its first bytes (all of them, up
 * to TRANSPORT_HEADER_MAX); the headers are read only from head. packet is the packet itself;
 * pkt->payload points into it.
 *
 * TRANSPORT_TRUNCATED: the packet is shorter than its opcode's headers; its length is not a
 * multiple of 4 (the pad makes it one); the pad is longer than the payload; or there is a payload
 * where bth_opcodes allows none. TRANSPORT_BAD_HEADER: TVer is not 0, or the opcode does not exist.
 */
enum transport_verdict transport_parse(const uint8_t *head, const uint8_t *packet, size_t len,
                                       struct transport_packet *pkt);

/* Bytes that bring a payload to a multiple of 4. */
static inline size_t transport_pad(size_t payload_len)
{
    return -payload_len & 3;
}

/* The functions from here on need a pkt whose opcode exists. */

/* Bytes from the BTH to the last extended header. */
static inline size_t transport_header_len(const struct transport_packet *pkt)
{
    return bth_opcodes[pkt->opcode].header_len;
}

/* The payload of a CONNECT without the SE bit, behind its DCETH. */
struct dcceth {
    bool reconnect; /* the session was begun before, but the target has not answered yet */
    uint8_t rsl;    /* service level of the responses */
    uint32_t psn;   /* of the next request */
    uint64_t key;   /* the target's access key */
};
#define DCC_ETH_BYTES 16
void dcceth_parse(const uint8_t bytes[DCC_ETH_BYTES], struct dcceth *eth);
void dcceth_build(uint8_t bytes[DCC_ETH_BYTES], const struct dcceth *eth);

/* Writes the headers of a packet with payload_len bytes of payload. Returns where the payload goes.
 * pkt->payload* and pkt->pad_count are ignored. */
uint8_t *transport_build(uint8_t *packet, const struct transport_packet *pkt, size_t payload_len);

/* Writes the pad behind a payload that is in place. Returns the length of both together. */
static inline size_t transport_put_pad(uint8_t *payload, size_t payload_len)
{
    size_t pad = transport_pad(payload_len);

    memset(payload + payload_len, 0, pad);
    return payload_len + pad;
}

#endif
