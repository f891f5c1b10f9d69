/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ECN in whole Ethernet frames (RFC 3168): what a queue needs to mark a packet.
 */
#ifndef HCASIM_WIRE_ENCAP_ECN_H
#define HCASIM_WIRE_ENCAP_ECN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the IP header begins, behind any VLAN tags, and its version; 0: there is none that is
 * whole. */
size_t ecn_find_ip(const uint8_t *frame, size_t len, unsigned *version);

/* Whether the sender's transport supports ECN. */
bool ecn_is_ect(const uint8_t *frame, size_t len);

/* Marks such a packet CE, and updates the IPv4 header's checksum (RFC 1624). The ICRC does not
 * cover these bits (IBTA A17.3.3). False: the frame has no transport that supports ECN. */
bool ecn_mark_ce(uint8_t *frame, size_t len);

#endif
