/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What packets of dynamic connections have beside those of others: a session, who sends, and a
 * CONNECT's key.
 *
 * A script's initiator (of a DCT under test) says session=N as it is on the wire. A DCI under test
 * numbers its sessions itself: N counts from its first one. Who says nothing means the last one
 * that was begun, but in a CNAK, whose session is 0.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PLAY_SESSION_H
#define HCASIM_TESTS_CONFORMANCE_PLAY_SESSION_H

#include "tests/conformance/play.h"
#include "wire/encap/roce.h"

/* Of a packet to the device: takes its words. bytes: where a CONNECT's key goes, which is then the
 * packet's payload. */
void play_session_arrives(struct play *p, struct play_qp *qp, struct roce_packet *pkt,
                          uint8_t bytes[DCC_ETH_BYTES]);
/* Of one that the device has sent: is it what the words say? */
void play_session_leaves(struct play *p, struct play_qp *qp, const struct roce_packet *pkt);

#endif
