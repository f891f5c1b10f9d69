/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: a QP's send queue, from doorbell to send completion (IBTA 9.7.3, 9.7.6, 9.8,
 * 9.9.2).
 *
 *   requester.c       life, doorbell, starting WQEs, completing them
 *   requester_local.c WQEs that stay inside the HCA: UMR, LOCAL_INVAL
 *   requester_send.c  request packets of started WQEs
 *   requester_rx.c    ACKs, NAKs, READ and atomic responses, timeouts
 *   send_wqe.c        what a WQE says
 *
 * A WQE is posted, started (it has its PSNs and a descriptor), done or failed, and completed. WQEs
 * complete in order. On a reliable QP a WQE is done when the responder has acknowledged it; on
 * others, and for what stays inside the HCA, when it has been carried out.
 */
#ifndef HCASIM_MODEL_REQUESTER_H
#define HCASIM_MODEL_REQUESTER_H

#include "model/core/obj_class.h"
#include "wire/encap/roce.h"

struct qp;
struct requester_state;

struct requester {
    struct work work;          /* WQEs to fetch, packets to send, WQEs to flush */
    struct hca_timer timer;    /* ACK timeout or RNR wait */
    uint32_t next_psn;         /* qpc.next_send_psn: of the next new packet */
    uint32_t unacked_psn;      /* qpc.last_acked_psn + 1: oldest not acknowledged */
    uint32_t ssn;              /* messages started, modulo 2^24 */
    struct requester_state *s; /* model/rdma/requester_state.h; NULL: the QP has no send queue */
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
extern const struct obj_sender qp_sender;

/* ACK, NAK, READ response or atomic response that passed the QP's checks. */
void requester_rx(struct qp *qp, const struct roce_packet *pkt);

#endif
