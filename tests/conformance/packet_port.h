/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of the kernel's: a descriptor that takes and gives a frame at a time. */
#ifndef HCASIM_TESTS_CONFORMANCE_PACKET_PORT_H
#define HCASIM_TESTS_CONFORMANCE_PACKET_PORT_H

#include <glib.h>
#include "wire/port.h"

/*
 * Whether a URI is one of these:
 *
 * unix:OURS:THEIRS  datagrams between two Unix sockets, as QEMU's -netdev dgram has them; the file
 *                   OURS is made anew
 * tap:NAME          the end of a tap interface that is no interface (tun(4))
 * if:NAME           a network interface (packet(7))
 */
bool packet_port_is(const char *uri);
/* NULL: *err says why. */
struct wire_port *packet_port_open(const char *uri, GError **err);

#endif
