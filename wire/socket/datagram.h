/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port whose descriptor takes and gives one frame at a time: a datagram socket, a tap interface,
 * a packet socket.
 *
 * The link is always up, because such a descriptor does not tell whether anybody listens. Frames
 * that nobody takes are counted (tx_no_dest). If the kernel has no room, the sender waits for
 * EPOLLOUT (tx_blocked); where the kernel does not report room, the frame is lost (tx_no_room).
 *
 * Of Unix sockets only a connected one reports the room of the other end's queue, and the end of
 * the other end. But it hears its peer alone, which may have ended and come anew; and what has
 * arrived is lost when it is disconnected. So a second socket is connected, which only waits.
 */
#ifndef HCASIM_WIRE_SOCKET_DATAGRAM_H
#define HCASIM_WIRE_SOCKET_DATAGRAM_H

#include "wire/port.h"

#include <glib.h>

/* rest: the part of a URI behind its scheme (socket.h). NULL: *err says why. */
struct wire_port *wire_unix_open(const char *rest, GError **err);
struct wire_port *wire_udp_open(const char *rest, GError **err);
struct wire_port *wire_vxlan_open(const char *rest, GError **err);
struct wire_port *wire_tap_open(const char *rest, GError **err);
struct wire_port *wire_interface_open(const char *rest, GError **err);

#endif
