/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages by which hosts tell their multicast groups: IGMP (RFC 1112, 2236, 3376) and MLD (RFC
 * 2710, 3810), read from frames without a VLAN tag, and the queries that the switch sends.
 */
#ifndef HCASIM_WIRE_SWITCH_SNOOP_H
#define HCASIM_WIRE_SWITCH_SNOOP_H

#include "wire/switch/groups.h"

#include <stddef.h>

enum snoop_kind {
    SNOOP_NONE, /* another frame */
    SNOOP_BAD,  /* such a message with a wrong length, checksum, type or address */
    SNOOP_QUERY,
    SNOOP_REPORT, /* reports and leaves */
};

enum {
    SNOOP_GROUPS = 512, /* of a report; the rest of a longer one is ignored. A frame of 1,500 bytes
                         * has at most 184 */
    SNOOP_QUERY_LEN = 90, /* bytes of the longest query */
};

struct snoop_report {
    bool leaves; /* else it joins */
    uint8_t mac[6];
};

struct snoop {
    enum snoop_kind kind;
    enum groups_family family;
    uint8_t source[16]; /* of IPv4: the last four bytes, behind zeros */
    unsigned num;
    struct snoop_report report[SNOOP_GROUPS];
};

/* Whether a frame may be such a message: a cheap look at its first bytes. */
bool snoop_may_be(const uint8_t *frame, size_t len);

/* Reads it. The bytes do not change meanwhile. */
void snoop_read(const uint8_t *frame, size_t len, struct snoop *out);

/* Whether the sender of a query, rather than the switch with this address, shall go on asking: the
 * lower address does (RFC 3376, 6.6.2; RFC 3810, 7.6.2), and before a switch without one any. */
bool snoop_yields(const struct snoop *query, const uint8_t mac[6]);

/* Writes a general query of the newest version (IGMPv3, MLDv2) from a switch with this address.
 * Members answer within `seconds`, up to 12. Returns its length. */
size_t snoop_build_query(uint8_t frame[SNOOP_QUERY_LEN], enum groups_family family,
                         const uint8_t mac[6], unsigned seconds);

#endif
