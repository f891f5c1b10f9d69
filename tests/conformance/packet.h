/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet's fields by name: what a script says of them, and a line for a reader.
 *
 * Names of opcodes are those of wire/packet/opcode.c without the transport.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PACKET_H
#define HCASIM_TESTS_CONFORMANCE_PACKET_H

#include "tests/conformance/words.h"
#include "wire/encap/roce.h"

/* A field that is a number, as words have it: NAME=N. */
struct packet_field {
    const char *name;
    uint32_t headers; /* enum bth_headers: packets that have one of these; 0: all */
    unsigned offset;  /* in struct roce_packet */
    unsigned size;    /* bytes there */
};

extern const struct packet_field packet_fields[];
extern const unsigned packet_num_fields;

uint64_t packet_get(const struct roce_packet *pkt, const struct packet_field *field);
void packet_set(struct roce_packet *pkt, const struct packet_field *field, uint64_t value);
/* Whether a packet of that opcode has the field. */
bool packet_has(const struct roce_packet *pkt, const struct packet_field *field);

/* DC's CONNECT ends a session if it has the SE bit: then it has another name, too. */
#define DISCONNECT "DISCONNECT"
bool packet_is_connect(const struct roce_packet *pkt);
bool packet_is_disconnect(const struct roce_packet *pkt);
/* With its transport. */
const char *packet_name(const struct roce_packet *pkt);

/* A name with its transport in front is that of any. False: there is no such operation. */
bool packet_opcode(enum bth_transport transport, const char *name, uint8_t *opcode);

/* AETH syndrome: nak=seq|invalid|access|op|cnak, rnr=N (timer code), credits=N. usual: without
 * those. */
uint8_t packet_syndrome(struct words *w, uint8_t usual);

/* Appends the line. */
void packet_describe(GString *text, const struct roce_packet *pkt);

#endif
