/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a requester's WQEs come from. Each send queue is a source: the guest's ring, whose WQEs end
 * in CQEs (model/rdma/wqe_source.c). A QP may have a second one beside it, whose WQEs the device
 * makes itself and hears of itself; those are started first.
 *
 * A source numbers its WQEs modulo 2^16. A number stays good until its WQE has ended: the requester
 * fetches a WQE again for each packet that it may have forgotten it for.
 */
#ifndef HCASIM_MODEL_WQE_SOURCE_H
#define HCASIM_MODEL_WQE_SOURCE_H

#include "model/rdma/send_wqe.h"

struct qp;
struct send_desc;

enum wqe_source_id {
    WQE_SOURCE_RING,
    WQE_SOURCE_DEVICE,
};

/* A source of the device's own. */
struct wqe_source {
    const struct wqe_source_ops *ops;
    uint16_t next; /* the WQE that is started next */
    uint16_t end;  /* one past the last that is posted */
    uint16_t most; /* as many as may be posted and not ended; a power of two */
};

struct wqe_source_ops {
    /* Fills *wqe, and returns 0 or the syndrome that it fails with, as send_wqe_fetch(). */
    uint8_t (*fetch)(struct wqe_source *source, struct qp *qp, uint16_t index,
                     struct send_wqe *wqe);
    /* A WQE has ended; syndrome is 0, or PRM_CQE_SYNDROME_. */
    void (*ended)(struct wqe_source *source, struct qp *qp, uint16_t index, uint8_t syndrome);
};

/* The QP's WQEs come from this source as well, from now on; NULL: no more. Nothing of it may be in
 * flight. */
void wqe_source_attach(struct qp *qp, struct wqe_source *source);
/* Something was posted there. */
void wqe_source_kick(struct qp *qp);
/* What a WQE of this QP is checked against. */
struct send_limits wqe_source_limits(const struct qp *qp);

/* -- for the requester ------------------------------------------------------------------------- */

/* As many WQEs as may be started and not ended, a power of two. */
unsigned wqe_source_max(const struct qp *qp);
/* Which source the next WQE is from, and how much is posted there; 0: there is none now. False: the
 * ring is broken. */
bool wqe_source_look(struct qp *qp, enum wqe_source_id *id, unsigned *posted);
/* Something is posted, as far as is known. */
bool wqe_source_has_posted(const struct qp *qp);
/* The PD of its WQEs' keys; the device's own WQEs bring data for the QP's receives. */
uint32_t wqe_source_pdn(const struct qp *qp, enum wqe_source_id id);
/* The number of the next WQE there. */
uint16_t wqe_source_next(const struct qp *qp, enum wqe_source_id id);
uint8_t wqe_source_fetch(struct qp *qp, enum wqe_source_id id, uint16_t index, unsigned max_bb,
                         struct send_wqe *wqe);
/* The next WQE there, of num_bb basic blocks, is started or flushed. */
void wqe_source_advance(struct qp *qp, enum wqe_source_id id, unsigned num_bb);
/* Whether there will be a CQE of a WQE that does not fail. */
bool wqe_source_tells_end(const struct send_desc *desc);
/* A started WQE was carried out, or has failed. */
void wqe_source_done(struct qp *qp, const struct send_desc *desc);
void wqe_source_failed(struct qp *qp, const struct send_desc *desc, uint8_t syndrome);
/* The next WQE that was not started ends with WR_FLUSH_ERR. False: there is none, as far as is
 * known. */
bool wqe_source_flush_one(struct qp *qp);

#endif
