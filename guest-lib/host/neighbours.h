/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of a host on its wire: which MAC address has which IP address (as a GID). It
 * answers who asks for the host's own ones, and asks for others', as a kernel does by ARP and
 * neighbour discovery (wire/encap/neigh.h).
 *
 * It has neither clock nor thread. Who wants an address asks neighbours_find() again until there is
 * an answer, or he gives up; in between a question is sent once a second. What is known is used for
 * NEIGHBOURS_FRESH_S, and then asked for again, while it is used, until NEIGHBOURS_ASKS questions
 * had no answer. Only who was asked for, or who asks for this host, is remembered, and no more than
 * NEIGHBOURS_MAX of them: the one that was used longest ago makes room.
 */
#ifndef HCASIM_GUEST_LIB_HOST_NEIGHBOURS_H
#define HCASIM_GUEST_LIB_HOST_NEIGHBOURS_H

#include <glib.h>
#include "wire/encap/neigh.h"

#define NEIGHBOURS_MAX      1024
#define NEIGHBOURS_ASKS     3
#define NEIGHBOURS_FRESH_S  30
#define NEIGHBOURS_OWN_MAX  2 /* addresses of the host */
#define NEIGHBOURS_RETRY_NS 1000000000ull

struct neighbours_ops {
    /* What finds no room is lost. */
    void (*send)(void *opaque, const uint8_t *frame, size_t len);
    /* Somebody's address became known who was asked for. */
    void (*answered)(void *opaque);
};

struct neighbours;

struct neighbours *neighbours_new(const struct neighbours_ops *ops, void *opaque,
                                  const uint8_t mac[MAC_BYTES]);
void neighbours_free(struct neighbours *n);

/* One more address of the host. */
void neighbours_add_own(struct neighbours *n, const uint8_t gid[GID_BYTES]);
/* Tells everybody of its IPv4 addresses (RFC 5227 2.3), as hosts do when a link comes up. */
void neighbours_announce(const struct neighbours *n);

/* A frame came in. */
void neighbours_rx(struct neighbours *n, uint64_t now_ns, const uint8_t *frame, size_t len);

/* Whether it is known where the address is; nobody is asked. */
bool neighbours_knows(const struct neighbours *n, const uint8_t gid[GID_BYTES]);
/* True: *mac is where the address is. False: it is being asked for. */
bool neighbours_find(struct neighbours *n, uint64_t now_ns, const uint8_t gid[GID_BYTES],
                     uint8_t mac[MAC_BYTES]);

#endif
