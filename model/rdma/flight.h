/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a send queue has in flight: the descriptors of its started WQEs, and where sending stands.
 *
 * An idle queue has none of this: its PSNs say all (struct requester). A function keeps as many
 * flights as its queues needed at a time; a queue takes one with its next WQE and leaves it when
 * nothing is in flight, for whoever needs one next. So it costs nothing while nobody else comes.
 *
 * Descriptors are small: data is gathered from the WQE's list again if a packet has to be sent
 * again, so the WQE is read from its source again too. The guest could have changed it: a WQE that
 * no longer matches its descriptor fails.
 *
 * Positions: descriptors are numbered in order from 0 modulo 2^32; descriptor n is ring[n & mask].
 *
 *   head ........ tx ........ tail     head: oldest not completed; tx: to be sent from next, at
 *   unacked_psn   tx_psn      next_psn tx_psn; tail: next to be started
 *
 * After a loss tx and tx_psn go back to unacked_psn ("go back N"); sent_psn does not go back.
 */
#ifndef HCASIM_MODEL_FLIGHT_H
#define HCASIM_MODEL_FLIGHT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "model/core/fault.h"
#include "model/core/hca.h"
#include "wire/port.h"

struct cqe_data;
struct qp;
struct send_line;

enum send_status {
    SEND_ACTIVE, /* to be sent, or waiting for its acknowledgement */
    SEND_DONE,   /* waiting for those before it to complete */
    SEND_FAILED, /* likewise; then the QP leaves RTS */
};

struct send_desc {
    uint32_t first_psn;
    uint32_t npsn;      /* PSNs it takes: packets, for READ response packets; 0: nothing is sent */
    uint32_t first_req; /* running number of its first request packet */
    uint32_t len;       /* bytes of the message */
    uint16_t index;     /* its number in its source: of the WQE's first basic block */
    uint8_t opcode, num_bb;
    uint8_t ce : 4, source : 3; /* PRM_WQE_CE_, enum wqe_source_id */
    uint8_t answered : 1;       /* SEND_FAILED: with the answer at hand, which it could not take */
    uint8_t flags;              /* enum send_op_flags */
    uint8_t status;             /* enum send_status */
    uint8_t syndrome;           /* SEND_FAILED: PRM_CQE_SYNDROME_ */
};

/* The translation entries of the next WQE, a UMR that has them in memory, as far as they were read
 * (model/rdma/requester_local.c). */
struct umr_entries {
    uint8_t *bytes; /* NULL: none yet */
    size_t len, have;
};

/* WQEs that may be started and not completed, where the send queue has more: so many at most does
 * one answer complete, and are looked through for it. More than packets may be under way
 * (model/rdma/requester_send.c), so this holds back only what is carried out without any. */
#define STARTED_MAX 256

struct flight {
    struct qp *qp;                       /* whose it is; NULL: nobody's */
    struct flight *next;                 /* nobody's: another one */
    struct hca_timer timer;              /* ACK timeout or RNR wait: of what is in flight */
    struct send_line *tx_line, *rx_line; /* where its WQEs are taken apart (wqe_lines.h): the one
                                          * that is sent, the one whose data comes */
    uint32_t mask; /* of descriptor numbers: as many as the queue has basic blocks, or less */
    uint32_t head, tx, tail;
    uint32_t tx_psn;
    uint32_t sent_psn;       /* one past the last PSN that was ever used on the wire */
    uint32_t watched_psn;    /* unacked_psn when the ACK timer was set */
    uint32_t next_req;       /* running number of the next new request packet */
    uint32_t reads;          /* READs and atomics started and not done */
    uint8_t retries;         /* timeouts and NAKs since the last progress */
    uint8_t rnr_retries;     /* RNR NAKs since the last progress */
    uint8_t queue;           /* enum requester_queue */
    uint8_t recovery;        /* enum requester_recovery */
    uint8_t paging;          /* enum paging; parked: nothing is sent */
    struct wire_pause pause; /* the receiver is paused, as the last timeout saw it */
    /* What the next CQE takes (model/queue/cqe.h); NULL: nothing. */
    const struct cqe_data *in_cqe;
    struct umr_entries umr;
    struct send_desc ring[STARTED_MAX];
};

/* All flights of a function. */
struct flight_pool {
    GPtrArray *all;
    struct flight *free; /* a list of those that are nobody's */
    unsigned hand;       /* where the search for an idle one goes on */
};

/* A function that has send queues has so many: with them it goes on when there is no memory. */
#define FLIGHTS_LEAST 8

static inline bool flight_is_parked(const struct flight *flight)
{
    return flight->paging == PAGING_PARKED || flight->paging == PAGING_REPEATS;
}

static inline struct send_desc *flight_desc(struct flight *flight, uint32_t num)
{
    return &flight->ring[num & flight->mask];
}

/* The QP's flight, which it takes if it has none. NULL: all are in use, and there is no memory for
 * another one. */
struct flight *flight_get(struct qp *qp);
/* The QP has no flight any more; its WQEs are forgotten, and its timer is. */
void flight_leave(struct qp *qp);
/* Makes FLIGHTS_LEAST. False: no memory. */
bool flight_reserve(struct hca *hca);
/* Frees all; no QP has one. */
void flight_pool_empty(struct hca *hca);

#endif
