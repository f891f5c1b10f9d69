/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: the device fetches the data of a matched request by RDMA READ. Then it tells the
 * sender that it is done by a FIN, which carries the beginning of the request.
 *
 * The device makes the WQEs for this itself, beside the WQEs of the QP's send queue, if it has one
 * (model/rdma/wqe_source.h). Each rendezvous has one WQE at a time: first READ, and after that FIN.
 * So the device does not need the sender's memory any more when the sender gets the FIN. There are
 * at most as many rendezvous as the XRQ's list has entries, because each keeps an entry.
 *
 * If the READ or the QP fails, software is told that the message will not come. If the FIN fails,
 * the message is there nevertheless.
 */
#ifndef HCASIM_MODEL_RENDEZVOUS_H
#define HCASIM_MODEL_RENDEZVOUS_H

#include "model/rdma/wqe_source.h"

struct qp;

struct rendezvous {
    struct wqe_source source;
    uint16_t oldest; /* the oldest WQE that has not ended */
    uint16_t *ring;  /* for each WQE: the handle of its entry, and whether it is READ or FIN */
    struct prm_wqe_av *to; /* DC: for each entry, the target of READ and FIN; else NULL */
};

/* For a QP on an XRQ. False: no memory; the caller then calls rendezvous_clear(). */
bool rendezvous_init(struct qp *qp, struct rendezvous *r);
void rendezvous_clear(struct qp *qp, struct rendezvous *r);

/* Begins the rendezvous of the request in the taken entry. With DC, its target is in r->to. */
void rendezvous_begin(struct qp *qp, struct rendezvous *r, uint16_t handle);
/* Number of rendezvous that have begun and not ended. */
unsigned rendezvous_pending(const struct rendezvous *r);
/* Whether no rendezvous is under way. */
bool rendezvous_is_idle(const struct rendezvous *r);
/* Called when the send queue has forgotten its started WQEs: ends all rendezvous. */
void rendezvous_reset(struct qp *qp, struct rendezvous *r);

#endif
