/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port that leads out of the simulation: a user-mode network (libslirp), as behind QEMU's
 * -netdev user. A host on it gets an address by DHCP, or takes one; the gateway answers ARP and
 * DNS; TCP, UDP and ping go out as connections and datagrams of this process, and the ports that
 * the URI names come in. It needs no rights. RoCE does not pass: libslirp takes the payload of UDP
 * out of its packet, and with it the ICRC loses the headers that it is about.
 *
 * The port works on its owner's thread alone: in tx_commit and tx_flush, in poll, and in fd_event,
 * for which its descriptor is readable if a socket of libslirp has something to do, if a time of
 * libslirp is over (TCP's timers), or if a frame waits for the client.
 *
 * Bounds: SLIRP_FRAMES frames wait for the client, and further ones are lost (rx_missed), as on a
 * network. SLIRP_SOCKETS sockets may be open: at that number, frames that could open another one
 * are lost (tx_no_room), and forwarded ports accept nobody. What a host sends on an open connection
 * is bounded by TCP's windows; a hostile host can make each as large as libslirp's segments of one
 * byte are.
 *
 * Fragments of IPv4 are lost (tx_no_dest), so a datagram has 1,472 bytes at most: libslirp 4.7.0
 * reads and writes wrong memory after the last fragment of a packet without its first.
 */
#ifndef HCASIM_WIRE_SLIRP_SLIRP_H
#define HCASIM_WIRE_SLIRP_SLIRP_H

#include "wire/port.h"

#include <glib.h>

#define SLIRP_FRAMES  256
#define SLIRP_SOCKETS 256

/* rest: the options (options.h). NULL: *err says why. */
struct wire_port *wire_slirp_open(const char *rest, GError **err);

#endif
