/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the requester share (model/rdma/requester.h lists them). */
#ifndef HCASIM_MODEL_REQUESTER_INTERNAL_H
#define HCASIM_MODEL_REQUESTER_INTERNAL_H

#include "model/rdma/flight.h"
#include "model/rdma/qp.h"
#include "model/rdma/send_wqe.h"
#include "model/rdma/wqe_lines.h"

/* States in which what was started goes on. */
static inline bool qp_may_send(const struct qp *qp)
{
    return qp->state == PRM_QP_STATE_RTS || qp->state == PRM_QP_STATE_SQ_DRAINING ||
           qp->state == PRM_QP_STATE_SQD;
}

/* -- model/rdma/requester.c ------------------------------------------------------------------- */

/* An event for the queue's or the recovery's machine of a QP with a flight. False: ignored. */
bool requester_queue_step(struct qp *qp, enum requester_queue_event event);
bool requester_recovery_step(struct qp *qp, enum requester_recovery_event event);

/* No line has a WQE of the QP's. */
void requester_forget_lines(struct qp *qp);

/* The WQE of a started descriptor, from the line or its source. NULL: it is not what it was. */
const struct send_wqe *requester_wqe(struct qp *qp, struct send_line *line, uint32_t num);

/* Completes what is done, in order, up to the first that is not; a failed one takes the QP to ERR
 * or SQER. */
void requester_retire(struct qp *qp);

/* Marks a descriptor failed and completes what can be completed. */
void requester_fail(struct qp *qp, struct send_desc *desc, uint8_t syndrome);

/* A page is missing for what the QP sends or receives. repeat: what is not acknowledged is to be
 * asked for again when it is there. False: it never will be. */
bool requester_park(struct qp *qp, bool repeat);

/* -- model/rdma/requester_send.c -------------------------------------------------------------- */

/* Sends the next packet of the flight's descriptor tx, which is SEND_ACTIVE. */
enum send_wait requester_send(struct qp *qp, struct send_desc *desc);

/* -- model/rdma/requester_local.c ------------------------------------------------------------- */

/* Reads the next part of what a UMR about to start has in memory; the line's cursor says how far
 * that is. True: there is no more to read, or *syndrome says why there cannot be. */
bool requester_read_umr(struct qp *qp, struct send_line *line, uint8_t *syndrome);
/* Carries out a WQE of which nothing goes on the wire. Returns 0 or the syndrome. */
uint8_t requester_execute_local(struct qp *qp, const struct send_wqe *wqe);
/* Forgets what was read. */
void requester_forget_umr(struct qp *qp);

/* -- model/rdma/requester_rx.c ---------------------------------------------------------------- */

/* The timer of a flight. */
void requester_timeout(struct hca *hca, struct hca_timer *timer);
/* Makes sure that the ACK timer runs. */
void requester_watch(struct qp *qp);

/* The oldest WQE that is not done, or NULL. */
struct send_desc *requester_oldest(struct flight *flight);
/* Everything from the oldest unacknowledged PSN on is sent again. */
void requester_go_back(struct qp *qp);

#endif
