/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The additional fields of packets of dynamic connections: a session, the sender, and a CONNECT's
 * key.
 *
 * A script's initiator (of a DCT under test) says session=N as it is on the wire. A DCI under test
 * numbers its sessions itself, so N counts from its first session. Without the word, the packet
 * belongs to the last session that was begun. A CNAK has session 0.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PLAY_SESSION_H
#define HCASIM_TESTS_CONFORMANCE_PLAY_SESSION_H

#include "tests/conformance/play.h"
#include "wire/encap/roce.h"

/* Takes the words of a packet to the device. bytes: receives a CONNECT's key, which is then the
 * packet's payload. */
void play_session_arrives(struct play *p, struct play_qp *qp, struct roce_packet *pkt,
                          uint8_t bytes[DCC_ETH_BYTES]);
/* Compares a packet that the device has sent with the words. */
void play_session_leaves(struct play *p, struct play_qp *qp, const struct roce_packet *pkt);

#endif
