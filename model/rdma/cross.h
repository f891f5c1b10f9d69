/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cross channel: queues that other queues start (CORE-Direct; docs/adr/0029).
 *
 * A send queue may have the first of these WQEs, and a master (qpc.cd_master) may have all. Each
 * has a wqe_wait_en_seg:
 *
 *   CQE_WAIT      holds the queue until the CQ has the CQE of index pi. Indices count from 0 at the
 *                 CQ's creation, modulo 2^24, whether software has polled the CQEs or not
 *   SEND_ENABLE   the WQEs before index pi of a managed send queue may start
 *   RECV_ENABLE   the WQEs before index pi of a managed receive queue may be taken
 *
 * Indices of the last two count WQEs, of however many basic blocks, from the queue's reset on,
 * modulo 2^16. An index that the queue has passed already changes nothing.
 *
 * A managed queue (qpc.cd_slave_send, cd_slave_receive) has a gate (struct wq): whatever its
 * doorbell and its record say, only enabled WQEs are taken. The record of a managed send queue is
 * read only when the queue is flushed, so enabled WQEs start even if no software has announced
 * them. In ERR and SQER there is no gate: all posted WQEs are flushed.
 *
 * A queue that holds at a CQE_WAIT is on the list of its CQ (struct cq_wait). It leaves the list
 * when the CQ has the CQE, fails or ends, and when the QP is flushed, reset or destroyed.
 *
 * Chains of managed queues can go on for ever without software, since a ring of enabled WQEs can be
 * executed again and again. Each step is an ordinary step of the queue's work, so queues and other
 * work take turns. In addition a managed send queue pauses after CROSS_RUN WQEs (or as many as its
 * ring has basic blocks, if these are fewer) in which no software was seen: a new value of its
 * doorbell record, a doorbell, or a SEND_ENABLE of a queue that is not managed. A pause ends with
 * late work, a quarter of a second later, or with such a doorbell or SEND_ENABLE. It holds back
 * only WQEs that have not started: packets are sent again meanwhile.
 */
#ifndef HCASIM_MODEL_CROSS_H
#define HCASIM_MODEL_CROSS_H

#include "model/queue/cq.h"
#include "model/queue/wq.h"

struct qp;
struct send_wqe;

/* WQEs of a managed send queue from one sign of software to the next pause. */
#define CROSS_RUN 1024

/* The state of a master or a managed QP, and of any QP from its first CQE_WAIT on. */
struct cross {
    bool managed_send, managed_recv;
    bool master;
    struct cq_wait wait; /* for the CQE of the CQE_WAIT that is the queue's next WQE */
    struct work pause;   /* late work while the managed send queue pauses */
    uint16_t run;        /* WQEs taken since software was seen */
    uint32_t seen;       /* the doorbell record when it was looked at last */
};

/* -- for the life of the QP ---------------------------------------------------------------------
 */

/* At creation: makes qp->cross if the qpc asks for it. False: no memory. */
bool cross_init(struct qp *qp, const struct prm_qpc *qpc);
void cross_clear(struct qp *qp); /* at destruction */
/* The QP enters RST: nothing is enabled. */
void cross_reset(struct qp *qp);
/* The QP enters ERR, or its send queue enters SQER: everything that is posted may be flushed. */
void cross_flush_send(struct qp *qp);
void cross_flush_recv(struct qp *qp);
/* The send queue is in RTS, and everything that was to be flushed is flushed: from now on only
 * enabled WQEs are taken. */
void cross_restart(struct qp *qp);

/* -- for the requester --------------------------------------------------------------------------
 */

/* The next WQE is a CQE_WAIT. True: the queue need not wait any more, or *syndrome says that it
 * cannot. False: it waits; the CQ will run its work. */
bool cross_wait(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome);
/* Carries out a SEND_ENABLE or RECV_ENABLE. Returns 0 or the syndrome. */
uint8_t cross_enable(struct qp *qp, const struct send_wqe *wqe);
/* A WQE of a QP with qp->cross was started or flushed. */
void cross_took(struct qp *qp);
/* Software has rung the doorbell of the send queue, or has enabled WQEs of it: a pause ends. */
void cross_saw_software(struct qp *qp);
/* Whether the managed send queue must pause before its next WQE. The end of the pause runs the
 * queue's work. */
bool cross_must_pause(struct qp *qp);

#endif
