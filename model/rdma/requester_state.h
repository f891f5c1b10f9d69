/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the requester share: the descriptors of started WQEs and where sending stands.
 *
 * Descriptors are small: data is gathered from the WQE's list again if a packet has to be sent
 * again, so the WQE is read from the ring again too. The guest could have changed it: a WQE that
 * no longer matches its descriptor fails.
 *
 * Positions: descriptors are numbered in order from 0 modulo 2^32; descriptor n is ring[n & mask].
 *
 *   head ........ tx ........ tail     head: oldest not completed; tx: to be sent from next, at
 *   unacked_psn   tx_psn      next_psn tx_psn; tail: next to be started
 *
 * After a loss tx and tx_psn go back to unacked_psn ("go back N"); sent_psn does not go back.
 */
#ifndef HCASIM_MODEL_REQUESTER_STATE_H
#define HCASIM_MODEL_REQUESTER_STATE_H

#include "model/rdma/qp.h"
#include "model/rdma/send_wqe.h"
#include "wire/port.h"

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
    uint16_t index;     /* of the WQE's first basic block */
    uint8_t opcode, num_bb, ce;
    uint8_t flags;    /* enum send_op_flags */
    uint8_t status;   /* enum send_status */
    uint8_t syndrome; /* SEND_FAILED: PRM_CQE_SYNDROME_ */
};

/* A WQE that was taken apart, kept for the next packet. */
struct wqe_cache {
    bool valid;
    uint32_t num;             /* of the descriptor that it is for */
    uint8_t syndrome;         /* what send_wqe_fetch() said */
    struct sge_cursor cursor; /* where the last packet's data ended */
    struct send_wqe wqe;
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

struct requester_state {
    struct send_desc *ring; /* STARTED_MAX, or as many as the send queue has basic blocks */
    uint32_t mask;
    uint32_t head, tx, tail;
    uint32_t tx_psn;
    uint32_t sent_psn;       /* one past the last PSN that was ever used on the wire */
    uint32_t next_req;       /* running number of the next new request packet */
    uint32_t reads;          /* READs and atomics started and not done */
    uint8_t retries;         /* timeouts and NAKs since the last progress */
    uint8_t rnr_retries;     /* RNR NAKs since the last progress */
    bool failed;             /* a descriptor is SEND_FAILED: nothing more is started */
    bool resuming;           /* RTS again: what was posted before is still to be flushed */
    bool rnr_wait;           /* the responder is not ready: nothing is sent until the timer fires */
    bool progress;           /* something was acknowledged since the timer was set */
    bool went_back;          /* by a NAK: another one means nothing before there is progress */
    bool tx_blocked;         /* the wire had no room */
    struct wire_pause pause; /* the receiver is paused, as the last timeout saw it */
    struct wqe_cache tx_wqe, rx_wqe;
    struct umr_entries umr;
};

/* What an attempt to go on came to. */
enum send_step {
    STEP_DONE,    /* something was done; there may be more */
    STEP_IDLE,    /* nothing to do before an event: doorbell, response, timer */
    STEP_BLOCKED, /* no room on the wire */
};

static inline struct send_desc *send_desc(struct requester_state *s, uint32_t num)
{
    return &s->ring[num & s->mask];
}

/* States in which what was started goes on. */
static inline bool qp_may_send(const struct qp *qp)
{
    return qp->state == PRM_QP_STATE_RTS || qp->state == PRM_QP_STATE_SQ_DRAINING ||
           qp->state == PRM_QP_STATE_SQD;
}

/* -- model/rdma/requester.c ------------------------------------------------------------------- */

/* The WQE of a started descriptor, from the cache or the ring. NULL: it is not what it was. */
const struct send_wqe *requester_wqe(struct qp *qp, struct wqe_cache *cache, uint32_t num);

/* Completes what is done, in order, up to the first that is not; a failed one takes the QP to ERR
 * or SQER. */
void requester_retire(struct qp *qp);

/* Marks a descriptor failed and completes what can be completed. */
void requester_fail(struct qp *qp, struct send_desc *desc, uint8_t syndrome);

/* -- model/rdma/requester_send.c -------------------------------------------------------------- */

/* Sends the next packet of descriptor s->tx, which is SEND_ACTIVE. */
enum send_step requester_send(struct qp *qp, struct send_desc *desc);

/* -- model/rdma/requester_local.c ------------------------------------------------------------- */

/* Reads the next part of what a UMR about to start has in memory; tx_wqe.cursor says how far that
 * is. True: there is no more to read, or *syndrome says why there cannot be. */
bool requester_read_umr(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome);
/* Carries out a WQE of which nothing goes on the wire. Returns 0 or the syndrome. */
uint8_t requester_execute_local(struct qp *qp, const struct send_wqe *wqe);
/* Forgets what was read. */
void requester_forget_umr(struct qp *qp);

/* -- model/rdma/requester_rx.c ---------------------------------------------------------------- */

/* The timer of an HCA's QP. */
void requester_timeout(struct hca *hca, struct hca_timer *timer);
/* Makes sure that the ACK timer runs. */
void requester_watch(struct qp *qp);

#endif
