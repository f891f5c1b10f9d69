/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port whose frames pass over a stream socket, one after another, each behind its length in four
 * bytes, big-endian (QEMU's -netdev stream).
 *
 * Nothing is lost while both ends live: if the kernel's buffers are full, the sender waits, as with
 * priority flow control. If the other end goes, or sends a length that no frame has, the link goes
 * down and what was on its way is lost. The end that connects tries again every
 * STREAM_RETRY_MS; the end that listens waits for the next one. A second end that connects
 * while there is one is closed at once.
 *
 * Each wait has an end:
 * - for credit (a reservation that found no room): EPOLLOUT of the socket, or the end of the link;
 * - for the other end: the timer of the end that connects, the socket of the end that listens;
 * - for a connection that is being made: the kernel, which reports it or gives it up;
 * - for a callback that was not allowed where the link was lost: the timer, at once.
 */
#ifndef HCASIM_WIRE_SOCKET_STREAM_H
#define HCASIM_WIRE_SOCKET_STREAM_H

#include "wire/port.h"
#include "wire/socket/listener.h"

#include <glib.h>

#define STREAM_RETRY_MS 200

/* rest: /PATH or HOST:PORT. NULL: *err says why. Only the end that listens can fail to find its
 * address; the end that connects waits for the other one. A file /PATH at which nobody listens any
 * more is replaced, and the file is removed when the port is closed. */
struct wire_port *wire_stream_open(const char *rest, bool listens, GError **err);

/* A port for the next one that has connected to a listener, which may serve many. When this link is
 * lost, it stays down, and link_change is the last that the client hears: it closes the port. *peer
 * says who it is (listener_peer_of()); the caller frees it. NULL: *err says why; WIRE_ERROR_NONE:
 * nobody waits. */
struct wire_port *wire_stream_accept(const struct listener *listener, char **peer, GError **err);

#endif
