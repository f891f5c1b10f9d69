/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what a send queue has in flight: the descriptors of its started WQEs, and where sending
 * stands.
 *
 * An idle queue has no flight: its PSNs are all its state (struct requester). A function keeps as
 * many flights as its queues have needed at one time. A queue takes a flight with its next WQE.
 * When nothing is in flight any more, any other queue may take the flight over. If no other queue
 * needs it, the queue still has it for its next WQE.
 *
 * Descriptors are small. If a packet has to be sent again, its data is gathered from the WQE's list
 * again; for that the WQE is read from its source again. The guest may have changed the WQE: a WQE
 * that no longer matches its descriptor fails.
 *
 * Positions: descriptors are numbered in order from 0 modulo 2^32; descriptor n is ring[n & mask].
 *
 *   head, unacked_psn   the oldest descriptor that has not completed, the oldest PSN without an ACK
 *   tx, tx_psn          the descriptor and the PSN that are sent next
 *   tail, next_psn      the descriptor and the PSN of the WQE that is started next
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
#include "model/memory/calc.h"
#include "wire/port.h"

struct cqe_data;
struct qp;
struct send_line;
struct vec_calc;

enum send_status {
    SEND_ACTIVE, /* being sent, or waiting for its acknowledgement */
    SEND_DONE,   /* waiting until the descriptors before it complete */
    SEND_FAILED, /* likewise; then the QP leaves RTS */
};

struct send_desc {
    uint32_t first_psn;
    /* number of its PSNs: packets, or response packets of a READ; 0: nothing is sent */
    uint32_t npsn;
    uint32_t first_req; /* running number of its first request packet */
    uint32_t len;       /* length of the message in bytes */
    uint16_t index;     /* number in its source: that of the WQE's first basic block */
    uint8_t opcode, num_bb;
    uint8_t ce : 4, source : 3; /* PRM_WQE_CE_, enum wqe_source_id */
    uint8_t answered : 1;       /* SEND_FAILED: the response has come, but could not be taken */
    uint8_t flags;              /* enum send_op_flags */
    uint8_t status;             /* enum send_status */
    uint8_t syndrome;           /* SEND_FAILED: PRM_CQE_SYNDROME_ */
};

/* How much has been read so far for the next WQE, if it is a UMR with its entries in memory, a
 * DUMP, or a copy (model/rdma/requester_local.c). */
struct local_read {
    uint8_t *bytes; /* the entries of a UMR, or NULL */
    size_t len, have;
};

/* The most WQEs that are started and not completed, even if the send queue has more. One answer
 * completes at most this many WQEs, and looks through at most this many. The number is larger than
 * that of the packets that may be under way (model/rdma/requester_send.c). So the limit holds back
 * only WQEs that are carried out without packets. */
#define STARTED_MAX 256

struct flight {
    struct qp *qp;          /* the QP that has it; NULL: it is free */
    struct flight *next;    /* if it is free: the next free one */
    struct hca_timer timer; /* the ACK timeout or the RNR wait of what is in flight */
    /* parsed WQEs (wqe_lines.h): the one that is being sent; the one whose data arrives */
    struct send_line *tx_line, *rx_line;
    uint32_t mask; /* of descriptor numbers; at most as many as the queue has basic blocks */
    uint32_t head, tx, tail;
    uint32_t tx_psn;
    uint32_t sent_psn;       /* one past the last PSN that was used on the wire */
    uint32_t watched_psn;    /* unacked_psn when the ACK timer was set */
    uint32_t next_req;       /* running number of the next new request packet */
    uint32_t reads;          /* READs and atomics started and not done */
    uint8_t retries;         /* timeouts and NAKs since the last progress */
    uint8_t rnr_retries;     /* RNR NAKs since the last progress */
    uint8_t queue;           /* enum requester_queue */
    uint8_t recovery;        /* enum requester_recovery */
    uint8_t paging;          /* enum paging; while parked, nothing is sent */
    uint8_t why_back;        /* enum wire_note_why: why tx_psn last went back */
    uint32_t page;           /* fault_page() of the fault that the pager was told last */
    struct wire_pause pause; /* whether the receiver is paused, as of the last timeout */
    /* The data that the next CQE carries (model/queue/cqe.h); NULL: none. */
    const struct cqe_data *in_cqe;
    struct local_read local;
    struct vec_calc *calc; /* the results of a calculation that is being sent; NULL: none */
    /* The result so far of the calculation with a READ's response data. At most one such READ has
     * a response that has begun: the oldest. */
    uint8_t sum[CALC_ELEMENT];
    struct send_desc ring[STARTED_MAX];
};

/* All flights of a function. */
struct flight_pool {
    GPtrArray *all;
    struct flight *free; /* list of the free ones */
    unsigned hand;       /* where the search for an idle one continues */
};

/* The number of flights that a function with send queues always has. With them it can send even if
 * there is no memory. */
#define FLIGHTS_LEAST 8

static inline bool flight_is_parked(const struct flight *flight)
{
    return flight->paging == PAGING_PARKED || flight->paging == PAGING_REPEATS;
}

static inline struct send_desc *flight_desc(struct flight *flight, uint32_t num)
{
    return &flight->ring[num & flight->mask];
}

/* The QP's flight. If the QP has none, it takes one. NULL: all are in use, and there is no memory
 * for another. */
struct flight *flight_get(struct qp *qp);
/* The QP gives up its flight. Its started WQEs and its timer are forgotten. */
void flight_leave(struct qp *qp);
/* Makes flights until there are FLIGHTS_LEAST. False: no memory. */
bool flight_reserve(struct hca *hca);
/* Frees all flights. No QP may have one. */
void flight_pool_empty(struct hca *hca);

#endif
