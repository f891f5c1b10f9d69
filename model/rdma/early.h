/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that come before those that were sent before them (qpc.dp_ordering, docs/adr/0012).
 *
 * A reliable QP whose context allows it takes them: it keeps them, and carries them out in the
 * order of their PSNs when what is missing has come. So a wire that changes the order costs nothing
 * but time: there is no NAK, and nothing is sent again. Others drop them, and say so by a NAK.
 *
 * Each connection keeps EARLY_MOST at most, requests and responses together, in packets of
 * which a function has EARLY_PACKETS, for all its connections. Who finds no room, or waits
 * from one look to the next (hca_wait_late()), takes what is missing for lost.
 */
#ifndef HCASIM_MODEL_EARLY_H
#define HCASIM_MODEL_EARLY_H

#include "model/core/hca.h"
#include "wire/encap/roce.h"

struct peer;

#define EARLY_MOST    64
#define EARLY_PACKETS 128
#define EARLY_PAYLOAD 4096 /* the largest path MTU */

struct early_packet {
    struct early_packet *next;
    struct roce_packet pkt; /* its payload is the next: */
    uint8_t payload[EARLY_PAYLOAD];
};

/* One direction of a connection: the packets by their PSNs. */
struct early_list {
    struct early_packet *first;
    uint32_t missing; /* the PSN that they wait for, at the last look */
};

struct early {
    struct peer *peer;
    struct early_list requests, responses;
    unsigned num;
    bool looked;
    struct work due;  /* requests whose turn it is, for which this turn had no room */
    struct work look; /* whether what is missing has come since */
};

/* What a function's connections have of it. */
struct early_pool {
    struct early_packet *free; /* a list */
    unsigned made;
};

/* The connection takes early packets from now on. False: no memory. */
bool early_init(struct peer *peer);
/* It does so no more. */
void early_clear(struct peer *peer);
/* What was kept is forgotten. */
void early_forget(struct peer *peer);

/* Keeps a packet of one of the peer's lists: true if it has it, be it from before. False: there is
 * no room. */
bool early_keep(struct peer *peer, struct early_list *list, const struct roce_packet *pkt);
/* The first of a list, behind psn or at it; what is before psn goes, for it came again. NULL: none
 * is left. */
const struct roce_packet *early_first(struct peer *peer, struct early_list *list, uint32_t psn);
/* Takes that first one out of its list; early_give() when it was carried out. */
struct early_packet *early_take(struct peer *peer, struct early_list *list);
void early_give(struct peer *peer, struct early_packet *early);

/* No connection takes early packets any more. */
void early_pool_empty(struct hca *hca);

#endif
