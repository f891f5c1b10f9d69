/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sources of a requester's WQEs. Each send queue has one source: the guest's ring, whose WQEs
 * end in CQEs (model/rdma/wqe_source.c). A QP may have a second source, whose WQEs the device makes
 * itself. Their end is reported to the device; they are started first.
 *
 * A source numbers its WQEs modulo 2^16. A number stays valid until its WQE has ended: the
 * requester fetches a WQE again for a packet if the parsed WQE is not in its line any more.
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

/* A source whose WQEs the device makes. */
struct wqe_source {
    const struct wqe_source_ops *ops;
    uint16_t next; /* the next WQE to be started */
    uint16_t end;  /* one past the last posted WQE */
    uint16_t most; /* the most WQEs that may be posted and not ended; a power of two */
};

struct wqe_source_ops {
    /* Fills *wqe, and returns 0 or the syndrome with which it fails, as send_wqe_fetch() does. */
    uint8_t (*fetch)(struct wqe_source *source, struct qp *qp, uint16_t index,
                     struct send_wqe *wqe);
    /* A WQE has ended; syndrome is 0, or a PRM_CQE_SYNDROME_. */
    void (*ended)(struct wqe_source *source, struct qp *qp, uint16_t index, uint8_t syndrome);
};

/* The QP's WQEs come from this source, too, from now on. NULL: no second source any more. No WQE of
 * the source may be in flight. */
void wqe_source_attach(struct qp *qp, struct wqe_source *source);
/* Called when a WQE was posted there. */
void wqe_source_kick(struct qp *qp);
/* Sets qp->req.limits, when the QP is made and after each change of its context. */
void wqe_source_set_limits(struct qp *qp);

/* -- for the requester ------------------------------------------------------------------------- */

/* The most WQEs that may be started and not ended, a power of two. */
unsigned wqe_source_max(const struct qp *qp);
/* The source of the next WQE, and how much is posted there; 0: nothing is posted now. False: the
 * ring is broken. */
bool wqe_source_look(struct qp *qp, enum wqe_source_id *id, unsigned *posted);
/* Whether something is posted, as far as the device knows. */
bool wqe_source_has_posted(const struct qp *qp);
/* The PD that the keys of the source's WQEs are checked against. The device's own WQEs fetch data
 * for the QP's receives. */
uint32_t wqe_source_pdn(const struct qp *qp, enum wqe_source_id id);
/* The number of the next WQE of the source. */
uint16_t wqe_source_next(const struct qp *qp, enum wqe_source_id id);
uint8_t wqe_source_fetch(struct qp *qp, enum wqe_source_id id, uint16_t index, unsigned max_bb,
                         struct send_wqe *wqe);
/* The next WQE of the source, of num_bb basic blocks, was started or flushed. */
void wqe_source_advance(struct qp *qp, enum wqe_source_id id, unsigned num_bb);
/* Whether the WQE gets a CQE if it does not fail. */
bool wqe_source_tells_end(const struct send_desc *desc);
/* A started WQE was carried out, or has failed. */
void wqe_source_done(struct qp *qp, const struct send_desc *desc);
void wqe_source_failed(struct qp *qp, const struct send_desc *desc, uint8_t syndrome);
/* Ends the next WQE that was not started with WR_FLUSH_ERR. False: there is none, as far as the
 * device knows. */
bool wqe_source_flush_one(struct qp *qp);

#endif
