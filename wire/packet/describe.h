/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes transport packets in words, for traces: the opcode by name, the destination QP, the
 * PSN, and the extended headers that the opcode has. The result of an AETH is named: an ACK with
 * its credits, an RNR NAK with its time, a NAK with its reason.
 *
 *     RC_WRITE_ONLY qp 0x4b psn 100 va 0x7f3a10 rkey 0x1800 len 64, 64 bytes, ackreq
 *     RC_ACK qp 0x4a psn 100 NAK PSN sequence error msn 3
 */
#ifndef HCASIM_WIRE_PACKET_DESCRIBE_H
#define HCASIM_WIRE_PACKET_DESCRIBE_H

#include <glib.h>

#include "wire/packet/transport.h"

/* The time that an RNR NAK asks for, by its timer code, in units of 10 us (IBTA table 45). */
extern const uint32_t aeth_rnr_delay[32];

/* Appends the name of a syndrome to line: "ACK", "ACK credits 16", "RNR NAK 0.64 ms", "NAK remote
 * access error". All 256 values have a description. */
void aeth_describe(GString *line, uint8_t syndrome);

/* Appends the description of a packet that transport_parse() accepted, or one that is to be built.
 * An opcode that does not exist is described as such, and so are its destination and its PSN. */
void transport_describe(GString *line, const struct transport_packet *pkt);

#endif
