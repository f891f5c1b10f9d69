/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: a QP's send queue, from doorbell to send completion (IBTA 9.7.3, 9.7.6, 9.8,
 * 9.9.2).
 *
 *   requester.c       life, doorbell, starting WQEs, retiring them
 *   requester_local.c WQEs that stay inside the HCA: UMR, LOCAL_INVAL
 *   requester_send.c  request packets of started WQEs
 *   requester_rx.c    ACKs, NAKs, READ and atomic responses, timeouts
 *   flight.c          what is kept of started WQEs
 *   wqe_source.c      where WQEs come from, and who hears of their end
 *   send_wqe.c        what a WQE says
 *
 * A WQE is posted, started (it has its PSNs and a descriptor), done or failed, and completed. WQEs
 * complete in order. On a reliable QP a WQE is done when the responder has acknowledged it; on
 * others, and for what stays inside the HCA, when it has been carried out.
 *
 * While the QP's state lets it send, two machines say what goes on (requester.c has the tables).
 * The queue's:
 *
 *   open      WQEs are started
 *   failed    a WQE has failed: nothing more is started; those before it complete, then it does,
 *             and the QP leaves RTS
 *   resuming  RTS again, from SQER: what was posted before is still to be flushed
 *
 * And that of the recovery of lost packets, on a reliable QP:
 *
 *   none      packets are sent and acknowledged
 *   went back a NAK made it send again: another NAK means nothing before there is progress
 *   RNR wait  the responder is not ready: nothing is sent until the timer fires
 */
#ifndef HCASIM_MODEL_REQUESTER_H
#define HCASIM_MODEL_REQUESTER_H

#include "model/core/machine.h"
#include "model/core/obj_class.h"
#include "wire/encap/roce.h"

struct flight;
struct qp;
struct wqe_source;

/*
 * Why a send queue sends nothing now: what an attempt to go on came to. Whoever is named here runs
 * the queue's work again; nobody else need. (tests/sim/fabric/liveness.c holds each to it.)
 */
enum send_wait {
    SEND_GOES_ON,      /* something was done; there may be more */
    SEND_WAITS_STATE,  /* the QP's state starts no WQE: MODIFY_QP */
    SEND_WAITS_POST,   /* nothing is posted: the doorbell, or a source of the device's own */
    SEND_WAITS_ANSWER, /* the window is full, a fence holds, a WQE that failed has others before it,
                        * or all is sent that is posted: a response, or the ACK timer */
    SEND_WAITS_RNR,    /* the responder is not ready: the RNR timer */
    SEND_WAITS_CREDIT, /* the wire has none: the port */
    SEND_WAITS_RATE,   /* the limiter holds the packet: its timer, or its end */
    SEND_WAITS_PAGE,   /* a page is missing: the pager, by requester_resume() */
    SEND_WAITS_MEMORY, /* for a flight: the timer of late work */
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
    QUEUE_STREAM_FAILED, /* a WQE of a DCI has failed that ends no more than its stream */
    QUEUE_FLUSHED,       /* nothing is left of what was posted */
};

enum requester_recovery {
    RECOVERY_NONE,
    RECOVERY_WENT_BACK,
    RECOVERY_RNR_WAIT,
};

enum requester_recovery_event {
    RECOVERY_PROGRESS, /* something was acknowledged */
    RECOVERY_NAK,      /* for a missing PSN, told or implied */
    RECOVERY_RNR_NAK,
    RECOVERY_ACK_TIMEOUT,
    RECOVERY_RNR_TIMEOUT,
    RECOVERY_ENDS, /* nothing is in flight any more: flush, reset */
};

extern const struct machine requester_queue_machine, requester_recovery_machine;

struct requester {
    struct work work;          /* WQEs to fetch, packets to send, WQEs to flush */
    uint32_t next_psn;         /* qpc.next_send_psn: of the next new packet */
    uint32_t unacked_psn;      /* qpc.last_acked_psn + 1: oldest not acknowledged */
    uint32_t ssn;              /* messages started, modulo 2^24 */
    struct flight *flight;     /* model/rdma/flight.h; NULL: nothing is in flight */
    struct wqe_source *device; /* WQEs of the device's own making; NULL: none */
    uint8_t waits;             /* enum send_wait: what the work came to when it last ran */
};

/* Called by model/rdma/qp.c as the QP lives. */
/* At creation, once the rings are known. False: no memory for it; requester_clear() follows. */
bool requester_init(struct qp *qp);
void requester_clear(struct qp *qp); /* at destruction */
/* To RST, and at RTR->RTS with the SQ PSN: nothing is in flight, the send queue is at its start. */
void requester_reset(struct qp *qp, uint32_t next_send_psn);
/* RTS (also back from SQD, SQER): look for WQEs. What was posted in SQER is flushed first. */
void requester_start(struct qp *qp);
/* SQ_DRAINING: finish what was started; then, from its own work, state SQD and event SQ_DRAINED. */
void requester_drain(struct qp *qp);
/* ERR and SQER: every posted WQE completes with WR_FLUSH_ERR, one CQE each, from its own work. */
void requester_flush(struct qp *qp);

/* Doorbell on this QP's SQ: first two dwords of the last posted WQE's control segment. What is
 * posted is read from the doorbell record. */
void requester_doorbell(struct qp *qp);
/* Looks for WQEs, of whatever source. */
void requester_kick(struct qp *qp);
extern const struct obj_sender qp_sender;

/* WQEs that are started and not completed. */
unsigned requester_started(const struct qp *qp);

/* See qp_resume(). */
void requester_resume(struct qp *qp, bool error);

/* ACK, NAK, READ response or atomic response that passed the QP's checks. */
void requester_rx(struct qp *qp, const struct roce_packet *pkt);
/* A response is missing that is not on its way. */
void requester_rx_lost(struct qp *qp);

#endif
