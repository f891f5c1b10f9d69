/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet's fields by name: parses what a script says of them, and prints a line for a reader.
 *
 * The names of opcodes are those of wire/packet/opcode.c without the transport.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PACKET_H
#define HCASIM_TESTS_CONFORMANCE_PACKET_H

#include "tests/conformance/words.h"
#include "wire/encap/roce.h"

/* A field that is a number, written NAME=N. */
struct packet_field {
    const char *name;
    uint32_t headers; /* enum bth_headers: the packets that have this field have one of these
                         headers; 0: all packets have it */
    unsigned offset;  /* offset in struct roce_packet */
    unsigned size;    /* size there, bytes */
};

extern const struct packet_field packet_fields[];
extern const unsigned packet_num_fields;

uint64_t packet_get(const struct roce_packet *pkt, const struct packet_field *field);
void packet_set(struct roce_packet *pkt, const struct packet_field *field, uint64_t value);
/* Whether a packet of that opcode has the field. */
bool packet_has(const struct roce_packet *pkt, const struct packet_field *field);

/* DC's CONNECT with the SE bit ends a session. It is also called by this name. */
#define DISCONNECT "DISCONNECT"
bool packet_is_connect(const struct roce_packet *pkt);
bool packet_is_disconnect(const struct roce_packet *pkt);
/* Returns the name with its transport. */
const char *packet_name(const struct roce_packet *pkt);

/* Finds an opcode by name. A name with a transport in front means that transport, whatever the
 * argument is. Returns false if there is no such operation. */
bool packet_opcode(enum bth_transport transport, const char *name, uint8_t *opcode);
/* The names that packet_opcode() finds for a transport, without those that have the transport in
 * front; NULL at the end. The names are static; the caller frees the array with g_free(). */
const char **packet_opcode_names(enum bth_transport transport);

/* Returns the AETH syndrome: nak=seq|invalid|access|op|cnak, rnr=N (timer code), credits=N. usual:
 * the result if none of these words is there. */
uint8_t packet_syndrome(struct words *w, uint8_t usual);

/* Appends the line. */
void packet_describe(GString *text, const struct roce_packet *pkt);

#endif
