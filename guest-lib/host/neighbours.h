/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of a host on its wire: which MAC address has which IP address (as a GID). It
 * answers questions for the host's own addresses, and asks for other hosts', as a kernel does with
 * ARP and neighbour discovery (wire/encap/neigh.h).
 *
 * It has neither a clock nor a thread. A caller that needs an address calls neighbours_find() again
 * until there is an answer, or gives up; meanwhile a question is sent once a second. An answer is
 * used for NEIGHBOURS_FRESH_S. After that, while the address is still used, it is asked for again,
 * until NEIGHBOURS_ASKS questions had no answer. Only addresses that were asked for, and hosts that
 * ask for this one, are remembered, at most NEIGHBOURS_MAX of them; the least recently used one
 * makes room.
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
    /* Sends a frame. If there is no room for it, it is lost. */
    void (*send)(void *opaque, const uint8_t *frame, size_t len);
    /* An address that was asked for became known. */
    void (*answered)(void *opaque);
};

struct neighbours;

struct neighbours *neighbours_new(const struct neighbours_ops *ops, void *opaque,
                                  const uint8_t mac[MAC_BYTES]);
void neighbours_free(struct neighbours *n);

/* Adds an address of the host. */
void neighbours_add_own(struct neighbours *n, const uint8_t gid[GID_BYTES]);
/* Announces the host's IPv4 addresses to all (RFC 5227 2.3), as hosts do when a link comes up. */
void neighbours_announce(const struct neighbours *n);

/* To be called with each received frame. */
void neighbours_rx(struct neighbours *n, uint64_t now_ns, const uint8_t *frame, size_t len);

/* Whether the MAC address of a GID is known. Sends no question. */
bool neighbours_knows(const struct neighbours *n, const uint8_t gid[GID_BYTES]);
/* True: the address is at *mac. False: it is being asked for. */
bool neighbours_find(struct neighbours *n, uint64_t now_ns, const uint8_t gid[GID_BYTES],
                     uint8_t mac[MAC_BYTES]);

#endif
