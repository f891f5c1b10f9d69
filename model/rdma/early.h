/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps packets that arrive before packets that were sent before them (qpc.dp_ordering,
 * docs/adr/0012).
 *
 * A reliable QP whose context allows it keeps such packets, and carries them out in the order of
 * their PSNs when the missing packets have come. So a wire that reorders packets costs only time:
 * there is no NAK, and nothing is sent again. Other QPs drop such packets and answer with a NAK.
 *
 * Each connection keeps at most EARLY_MOST packets, requests and responses together. All
 * connections of a function share EARLY_PACKETS. If there is no room for a packet, or if packets
 * wait from one look to the next (hca_wait_late()), the connection treats the missing packet as
 * lost. An early packet that stays for too long is forgotten: it may belong to an earlier
 * connection between the same QPs.
 */
#ifndef HCASIM_MODEL_EARLY_H
#define HCASIM_MODEL_EARLY_H

#include "model/core/hca.h"
#include "wire/encap/roce.h"

struct peer;

#define EARLY_MOST    64
#define EARLY_PACKETS 128
#define EARLY_PAYLOAD 4096 /* the largest path MTU */

/* looks, 250 ms apart: a packet that waits longer is forgotten, and the peer sends it again */
#define EARLY_LOOKS 8

struct early_packet {
    struct early_packet *next;
    unsigned looks;         /* looks that it has waited through */
    struct roce_packet pkt; /* its payload points to the next field */
    uint8_t payload[EARLY_PAYLOAD];
};

/* The early packets of one direction of a connection, in the order of their PSNs. */
struct early_list {
    struct early_packet *first;
    uint32_t missing; /* the PSN that they waited for at the last look */
};

struct early {
    struct peer *peer;
    struct early_list requests, responses;
    unsigned num;
    struct work due;  /* carries out requests that are due, if a turn had no room for them */
    struct work look; /* checks whether the missing packets have come */
};

/* The early packets that a function's connections share. It is filled before the first connection
 * may keep a packet. */
struct early_pool {
    struct early_packet *free; /* a list */
    unsigned made;
};

/* False: no memory. */
bool early_pool_fill(struct hca *hca);

/* The connection keeps early packets from now on. False: no memory. */
bool early_init(struct peer *peer);
/* The connection keeps no early packets any more. */
void early_clear(struct peer *peer);
/* Forgets the kept packets of the connection. */
void early_forget(struct peer *peer);

/* Keeps a packet in one of the peer's lists. True: it is in the list, possibly since before. False:
 * there is no room. */
bool early_keep(struct peer *peer, struct early_list *list, const struct roce_packet *pkt);
/* The first packet of a list with PSN psn or a later one. Packets before psn are dropped, because
 * their repetitions have come. NULL: no packet is left. */
const struct roce_packet *early_first(struct peer *peer, struct early_list *list, uint32_t psn);
/* early_take() takes that first packet out of its list. early_give() frees it when it has been
 * carried out. */
struct early_packet *early_take(struct peer *peer, struct early_list *list);
void early_give(struct peer *peer, struct early_packet *early);

/* Empties the pool; no connection keeps early packets any more. */
void early_pool_empty(struct hca *hca);

#endif
