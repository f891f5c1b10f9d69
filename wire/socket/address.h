/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses in the URIs of sockets. */
#ifndef HCASIM_WIRE_SOCKET_ADDRESS_H
#define HCASIM_WIRE_SOCKET_ADDRESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

struct socket_address {
    struct sockaddr_storage at;
    socklen_t len;
};

/* "/PATH". False with *err: it is too long. */
bool socket_address_of_path(struct socket_address *address, const char *path, GError **err);

/* "HOST:PORT", where HOST may be a name. type: SOCK_STREAM or SOCK_DGRAM. The first address of a
 * name is taken. False with *err. */
bool socket_address_of_host(struct socket_address *address, const char *text, int type,
                            GError **err);

/* "PORT": that port on all of this machine's addresses, in the family of another address. False
 * with *err. */
bool socket_address_of_port(struct socket_address *address, const char *text, int family,
                            GError **err);

#endif
