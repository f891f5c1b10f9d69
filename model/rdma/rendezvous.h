/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: a message of a matched request, which the device fetches by itself (RDMA READ), and
 * then tells the sender that it has (FIN: what the request began with).
 *
 * The WQEs for that are the device's own, beside those of the QP's send queue if it has one
 * (model/rdma/wqe_source.h). Each rendezvous has one at a time: READ, and once that is done FIN, so
 * that the sender's memory is needed no more when it hears so. They are as many at most as the
 * XRQ's list has entries, for each keeps one.
 *
 * READ has failed, or the QP: software is told that the message will not come. FIN has failed: the
 * message is there all the same.
 */
#ifndef HCASIM_MODEL_RENDEZVOUS_H
#define HCASIM_MODEL_RENDEZVOUS_H

#include "model/rdma/wqe_source.h"

struct qp;

struct rendezvous {
    struct wqe_source source;
    uint16_t oldest;       /* WQE that has not ended */
    uint16_t *ring;        /* of WQEs: the handle of the entry, and which of its WQEs it is */
    struct prm_wqe_av *to; /* DC: of each entry, the target that READ and FIN go to; else NULL */
};

/* For a QP on an XRQ. False: no memory; rendezvous_clear() follows. */
bool rendezvous_init(struct qp *qp, struct rendezvous *r);
void rendezvous_clear(struct qp *qp, struct rendezvous *r);

/* The request in the taken entry is carried out; with DC its target is in r->to. */
void rendezvous_begin(struct qp *qp, struct rendezvous *r, uint16_t handle);
/* Those that have begun and not ended. */
unsigned rendezvous_pending(const struct rendezvous *r);
/* Nothing is to be carried out. */
bool rendezvous_is_idle(const struct rendezvous *r);
/* The send queue has forgotten what was started: so does everything else. */
void rendezvous_reset(struct qp *qp, struct rendezvous *r);

#endif
