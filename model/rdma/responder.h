/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: what a QP does with requests it receives (IBTA 9.7.4, 9.7.5.2, 9.8.3, 9.9.3).
 */
#ifndef HCASIM_MODEL_RESPONDER_H
#define HCASIM_MODEL_RESPONDER_H

#include "model/core/hca.h"
#include "wire/encap/roce.h"

struct qp;
struct responder_state;

struct responder {
    struct work work;          /* responses to send: ACKs, NAKs, READ data */
    uint32_t epsn;             /* qpc.next_rcv_psn: expected PSN */
    uint32_t msn;              /* qpc.rmsn */
    struct responder_state *s; /* model/rdma/responder_internal.h */
};

/* False: no memory for it; responder_clear() follows. */
bool responder_init(struct qp *qp);
void responder_clear(struct qp *qp);
/* To RST, and at INIT->RTR with the RQ PSN. */
void responder_reset(struct qp *qp, uint32_t next_rcv_psn);
/* ERR: the message in progress and every posted receive of an own RQ complete with WR_FLUSH_ERR. */
void responder_flush(struct qp *qp);

/* A request packet (any transport) that passed the QP's checks (model/rdma/roce_rx.c). */
void responder_rx(struct qp *qp, const struct roce_packet *pkt);

#endif
