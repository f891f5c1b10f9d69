/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ports in one process, joined by a cable: for tests and for a device's own loopback.
 */
#ifndef HCASIM_WIRE_PAIR_H
#define HCASIM_WIRE_PAIR_H

#include "wire/port.h"

/*
 * Makes a cable that holds up to slots frames in each direction (slots is at least 1). Frames
 * arrive in order, and only in the receiver's wire_poll(); rx_ready is called on the receiver
 * from the sender's wire_tx_commit(), tx_ready on a blocked sender from the receiver's
 * wire_poll(). Both ends belong to one thread. The link is up until one end is closed (the other
 * one's link_change is called); what had been sent by then can still be received.
 */
void wire_pair_new(unsigned slots, struct wire_port *ends[2]);

#endif
