/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: a QP's send queue, from doorbell to send completion (IBTA 9.7.3, 9.7.5, 9.8, 9.9).
 */
#ifndef HCASIM_MODEL_REQUESTER_H
#define HCASIM_MODEL_REQUESTER_H

#include "model/hca.h"
#include "wire/packet.h"

struct qp;

struct requester {
    struct work work;       /* WQEs to fetch, packets to send */
    struct hca_timer timer; /* ACK timeout or RNR wait */
    uint32_t next_psn;      /* qpc.next_send_psn: of the next new packet */
    uint32_t unacked_psn;   /* qpc.last_acked_psn + 1: oldest not acknowledged */
    uint32_t ssn;
    /* the rest is the requester's own; see model/requester.c */
    struct requester_state *s;
};

/* Called by model/qp.c as the QP lives. */
void requester_init(struct qp *qp);  /* at creation */
void requester_clear(struct qp *qp); /* at destruction */
void requester_reset(struct qp *qp, uint32_t next_send_psn); /* to RST, and at RTR->RTS with the SQ PSN */
void requester_start(struct qp *qp); /* RTS (also back from SQD, SQER): look for WQEs */
void requester_drain(struct qp *qp); /* SQD asked for: finish what is in flight, then SQ_DRAINED */
void requester_flush(struct qp *qp); /* ERR: every posted WQE completes with WR_FLUSH_ERR */

/* Doorbell on this QP's SQ: first two dwords of the last posted WQE's control segment. */
void requester_doorbell(struct qp *qp, uint64_t ctrl);

/* ACK, NAK, READ response or atomic response that passed the QP's checks. */
void requester_rx(struct qp *qp, const struct roce_packet *pkt);

#endif
