/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ports in one process, joined by a cable: for tests and for a device's own loopback.
 */
#ifndef HCASIM_WIRE_PAIR_H
#define HCASIM_WIRE_PAIR_H

#include "wire/port.h"

/*
 * Makes a cable that holds up to slots frames in each direction (slots is at least 1). Frames
 * arrive in order, and only in the receiver's wire_poll(). The sender's wire_tx_commit() calls
 * rx_ready on the receiver; the receiver's wire_poll() calls tx_ready on a blocked sender. Both
 * ends belong to one thread. The link is up until one end is closed; then link_change is called on
 * the other end. Frames that were sent before that can still be received.
 */
void wire_pair_new(unsigned slots, struct wire_port *ends[2]);

#endif
