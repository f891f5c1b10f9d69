/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket at which streams connect (stream.h). A child of fork() does not keep it.
 */
#ifndef HCASIM_WIRE_SOCKET_LISTENER_H
#define HCASIM_WIRE_SOCKET_LISTENER_H

#include "wire/own_fd.h"
#include "wire/socket/address.h"

struct listener {
    struct socket_address address;
    struct own_fd own;
};

/* Must be called before all other functions, on memory of any content. */
void listener_init(struct listener *l);

/* rest: /PATH or HOST:PORT. False: *err says why. A file /PATH at which nobody listens any more is
 * replaced. backlog: how many may wait to be accepted. */
bool listener_open(struct listener *l, const char *rest, int backlog, GError **err);

/* Takes the next one that has connected: a descriptor that does not block. -1 with errno; EAGAIN:
 * nobody waits. The caller holds own_fd_lock(). */
int listener_accept(const struct listener *l);

/* Who is at the other end of a connected stream, for people: a process or an address. The caller
 * frees the text. */
char *listener_peer_of(int fd);

/* Accepts the next one and closes the connection. False: nobody waits. */
bool listener_refuse(const struct listener *l);

/* Closes the socket and removes its file. A listener that is not open stays as it is. */
void listener_close(struct listener *l);

#endif
