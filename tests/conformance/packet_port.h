/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of the kernel: a descriptor that sends and receives one frame at a time. */
#ifndef HCASIM_TESTS_CONFORMANCE_PACKET_PORT_H
#define HCASIM_TESTS_CONFORMANCE_PACKET_PORT_H

#include <glib.h>
#include "wire/port.h"

/*
 * Returns whether a URI is one of these:
 *
 *   unix:OURS:THEIRS  datagrams between two Unix sockets, as in QEMU's -netdev dgram; the file
 *                     OURS is replaced
 *   tap:NAME          the user-space end of a tap interface (tun(4))
 *   if:NAME           a network interface (packet(7))
 */
bool packet_port_is(const char *uri);
/* Returns NULL on failure; *err has the reason, without the URI. An interface must exist and be up.
 */
struct wire_port *packet_port_open(const char *uri, GError **err);

#endif
