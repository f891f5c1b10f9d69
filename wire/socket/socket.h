/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports of the kernel: their frames leave and arrive by a descriptor.
 *
 *   connect:/PATH, connect:HOST:PORT   one frame after another on a stream (stream.c), framed as
 *   listen:/PATH, listen:HOST:PORT     QEMU's -netdev stream does: four bytes of length, big-endian
 *   unix:OURS:THEIRS                   one frame in each datagram (datagram.c), between two Unix
 *                                      sockets, as in QEMU's -netdev dgram; OURS is replaced
 *   udp:PORT:HOST:PORT                 the same between two UDP ports; the first PORT is ours
 *   vxlan:VNI:PORT:HOST:PORT           the same, with the header of VXLAN (RFC 7348)
 *   tap:NAME                           the user-space end of a tap interface (tun(4))
 *   if:NAME                            a network interface (packet(7))
 *   slirp:, slirp:KEY=VALUE+...        a user-mode network as a way out (wire/slirp)
 *
 * Behind such a port is one peer, which may lead to many hosts or to none. So these ports know no
 * hosts, report no pauses, and do not tell of hosts that have ended. A stream loses nothing between
 * its two ends; its link is down while there is no other end, and frames vanish meanwhile.
 * Datagrams may be lost, and their link is always up.
 *
 * HOST may be a name, an IPv4 address, or an IPv6 address in brackets.
 */
#ifndef HCASIM_WIRE_SOCKET_SOCKET_H
#define HCASIM_WIRE_SOCKET_SOCKET_H

#include "wire/port.h"

#include <glib.h>

#define SOCKET_HELP                                                                                \
    "connect:/PATH, connect:HOST:PORT  a stream to a program that listens\n"                       \
    "listen:/PATH, listen:HOST:PORT    a stream from a program that connects\n"                    \
    "unix:OURS:THEIRS                  datagrams between two Unix sockets\n"                       \
    "udp:PORT:HOST:PORT                datagrams of UDP from our PORT\n"                           \
    "vxlan:VNI:PORT:HOST:PORT          the same with the header of VXLAN\n"                        \
    "tap:NAME                          a tap interface\n"                                          \
    "if:NAME                           a network interface\n"                                      \
    "slirp:[KEY=VALUE+...]             a user-mode network as the way out"

/* Whether a URI begins like one of these. */
bool wire_socket_is(const char *uri);

/* Opens a port. NULL: *err says why, without the URI. */
struct wire_port *wire_socket_open(const char *uri, GError **err);

#endif
