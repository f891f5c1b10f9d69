/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: a QP's send queue, from doorbell to send completion (IBTA 9.7.3, 9.7.6, 9.8,
 * 9.9.2).
 *
 *   requester.c       life, doorbell, starting WQEs, retiring them
 *   requester_local.c WQEs that stay inside the HCA: UMR, LOCAL_INVAL
 *   cross.c           queues that start other queues, and wait for CQs
 *   requester_send.c  request packets of started WQEs
 *   requester_rx.c    ACKs, NAKs, READ and atomic responses, timeouts
 *   flight.c          the descriptors of started WQEs
 *   wqe_source.c      the sources of WQEs, which learn when their WQEs end
 *   send_wqe.c        parsing of WQEs
 *
 * A WQE is posted, started (it has its PSNs and a descriptor), done or failed, and completed. WQEs
 * complete in order. On a reliable QP a WQE is done when the responder has acknowledged it. On
 * other QPs, and if it stays inside the HCA, a WQE is done when it has been carried out.
 *
 * While the QP's state lets it send, two state machines control the requester (requester.c has the
 * tables). The machine of the queue:
 *
 *   open      WQEs are started
 *   failed    a WQE has failed: no more WQEs are started. When the WQEs before it have completed,
 *             it completes, and the QP leaves RTS
 *   resuming  RTS again, from SQER: WQEs that were posted before are still to be flushed
 *
 * The machine of the recovery from lost packets, on a reliable QP:
 *
 *   none      packets are sent and acknowledged
 *   went back a NAK made it send again: another NAK has no effect until there is progress
 *   RNR wait  the responder is not ready: nothing is sent until the timer fires
 */
#ifndef HCASIM_MODEL_REQUESTER_H
#define HCASIM_MODEL_REQUESTER_H

#include "model/core/machine.h"
#include "model/core/obj_class.h"
#include "model/rdma/send_wqe.h"
#include "wire/encap/roce.h"

struct flight;
struct qp;
struct wqe_source;

/*
 * Why a send queue sends nothing now: the result of its last attempt. For each value, the comment
 * names the code that runs the queue's work again; no other code needs to.
 * (tests/sim/fabric/liveness.c checks this.)
 */
enum send_wait {
    SEND_GOES_ON,     /* something was done; there may be more to do */
    SEND_WAITS_STATE, /* the QP's state starts no WQEs: MODIFY_QP */
    SEND_WAITS_POST,  /* nothing is posted: the doorbell, or a source of the device's own */
    /* The window is full, a fence holds, a failed WQE waits for the WQEs before it, or all posted
     * WQEs are sent: a response, or the ACK timer. */
    SEND_WAITS_ANSWER,
    SEND_WAITS_RNR,    /* the responder is not ready: the RNR timer */
    SEND_WAITS_CREDIT, /* the wire has no credit: the port */
    SEND_WAITS_RATE,   /* the limiter holds the packet: its timer, or its end */
    SEND_WAITS_PAGE,   /* a page is missing: the pager, by requester_resume() */
    SEND_WAITS_MEMORY, /* no flight is free: the timer of late work */
    SEND_WAITS_CQE,    /* a CQE_WAIT holds the queue: the CQ, whose list it is on (cross.h) */
    SEND_WAITS_PAUSE,  /* a managed queue pauses (cross.h): the end of its pause */
};

enum requester_queue {
    QUEUE_OPEN,
    QUEUE_FAILED,
    QUEUE_RESUMING,
};

enum requester_queue_event {
    QUEUE_WQE_FAILED,
    QUEUE_RTS,           /* the QP is set to RTS */
    QUEUE_FLUSHES,       /* the QP is in ERR or SQER */
    QUEUE_STREAM_FAILED, /* a WQE of a DCI has failed that ends only its stream */
    QUEUE_FLUSHED,       /* all posted WQEs are flushed */
};

enum requester_recovery {
    RECOVERY_NONE,
    RECOVERY_WENT_BACK,
    RECOVERY_RNR_WAIT,
};

enum requester_recovery_event {
    RECOVERY_PROGRESS, /* something was acknowledged */
    RECOVERY_NAK,      /* of a missing PSN; explicit or implied */
    RECOVERY_RNR_NAK,
    RECOVERY_ACK_TIMEOUT,
    RECOVERY_RNR_TIMEOUT,
    RECOVERY_ENDS, /* nothing is in flight any more, after flush or reset */
};

extern const struct machine requester_queue_machine, requester_recovery_machine;

struct requester {
    struct work work;          /* fetches WQEs, sends packets, flushes WQEs */
    uint32_t next_psn;         /* qpc.next_send_psn: the PSN of the next new packet */
    uint32_t unacked_psn;      /* qpc.last_acked_psn + 1: the oldest unacknowledged PSN */
    uint32_t ssn;              /* messages started, modulo 2^24 */
    uint8_t waits;             /* enum send_wait: result of the last run of the work */
    struct flight *flight;     /* model/rdma/flight.h; NULL: nothing is in flight */
    struct wqe_source *device; /* source of WQEs that the device makes itself; NULL: none */
    struct send_limits limits; /* what its WQEs are checked against (model/rdma/wqe_source.c) */
};

/* model/rdma/qp.c calls these during the life of the QP. */
/* At creation, when the rings are known. False: no memory; the caller then calls
 * requester_clear(). */
bool requester_init(struct qp *qp);
void requester_clear(struct qp *qp); /* at destruction */
/* At the transition to RST, and from RTR to RTS with the SQ PSN: nothing is in flight, and the send
 * queue is at its start. */
void requester_reset(struct qp *qp, uint32_t next_send_psn);
/* At the transition to RTS (also from SQD or SQER): looks for WQEs. WQEs that were posted in SQER
 * are flushed first. */
void requester_start(struct qp *qp);
/* SQ_DRAINING: finishes the started WQEs. Then its work sets the state SQD and raises
 * SQ_DRAINED. */
void requester_drain(struct qp *qp);
/* ERR and SQER: its work completes every posted WQE with WR_FLUSH_ERR, with a CQE for each. */
void requester_flush(struct qp *qp);

/* Handles a doorbell of this QP's SQ. The doorbell's value is the first two dwords of the last
 * posted WQE's control segment; the producer index is read from the doorbell record. */
void requester_doorbell(struct qp *qp);
/* Looks for WQEs of any source. */
void requester_kick(struct qp *qp);
extern const struct obj_sender qp_sender;

/* Number of WQEs that are started and not completed. */
unsigned requester_started(const struct qp *qp);

/* See qp_resume(). */
void requester_resume(struct qp *qp, bool error);

/* Takes an ACK, NAK, READ response or atomic response that passed the QP's checks. */
void requester_rx(struct qp *qp, const struct roce_packet *pkt);
/* A response is missing and is treated as lost. */
void requester_rx_lost(struct qp *qp);

#endif
