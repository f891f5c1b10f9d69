/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inserts and removes headers of a frame: tunnels and VLAN tags.
 *
 * What a tunnel header says about the frame behind it is not known before a frame is there, so the
 * device fills it in: the lengths of IP and UDP, IPv4's identification and checksum, and a UDP
 * source port that differs between flows (RFC 7348 5). The tunnel's UDP has no checksum.
 */
#ifndef HCASIM_MODEL_STEERING_REFORMAT_H
#define HCASIM_MODEL_STEERING_REFORMAT_H

#include "model/steering/packet.h"

#define REFORMAT_MAX 128 /* bytes of headers that are inserted at a time */

/* Inserts the headers of a tunnel, len bytes of which are an Ethernet header and what follows. The
 * frame's own Ethernet header, with its VLAN tags, stays behind them if keep_l2, and is removed
 * otherwise. ip_id counts the identifications of IPv4. False: the frame would be too long; it has
 * not changed. */
bool reformat_encap(struct steer_packet *packet, const uint8_t *headers, size_t len, bool keep_l2,
                    uint16_t *ip_id);

/* Removes what is before the tunnelled frame, which begins at offset inner. False: there is no
 * Ethernet header at that offset; the frame has not changed. */
bool reformat_decap_l2(struct steer_packet *packet, size_t inner);

/* Replaces what is before the tunnelled IP packet, which begins at offset inner, by an Ethernet
 * header of len bytes. False: the frame ends before inner, or would be too long. */
bool reformat_decap_l3(struct steer_packet *packet, size_t inner, const uint8_t *header,
                       size_t len);

/* Inserts a tag before all others. False: the frame would be too long; it has not changed. */
bool reformat_push_vlan(struct steer_packet *packet, uint16_t tpid, uint16_t tci);
/* Removes the outer tag, if there is one. */
void reformat_pop_vlan(struct steer_packet *packet);

#endif
