/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports the signature errors of the keys that a QP has just used (model/memory/sig.h), by a
 * SIG_ERR CQE for each.
 *
 * An error that the requester finds goes to the CQ of the send queue, and an error that the
 * responder finds goes to the CQ of its receive WQEs. It comes before the CQE of the work request.
 * If qpc.drain_sigerr is set, an error of the requester also drains the send queue: started WQEs
 * end, no further WQE starts, the QP goes to SQD, and SQ_DRAINED tells the program.
 */
#ifndef HCASIM_MODEL_SIG_REPORT_H
#define HCASIM_MODEL_SIG_REPORT_H

#include "model/rdma/qp.h"

/* False: the CQ had no room for a report, and the QP is in ERR. */
bool sig_report_sent(struct qp *qp, uint32_t pdn) G_GNUC_NO_INLINE __attribute__((cold));
bool sig_report_received(struct peer *peer, uint32_t pdn) G_GNUC_NO_INLINE __attribute__((cold));

/* Called after the requester has used keys of the PD. False: the QP is in ERR now. */
static inline bool sig_check_sent(struct qp *qp, uint32_t pdn)
{
    return G_LIKELY(!qp->hca->sig_pending) || sig_report_sent(qp, pdn);
}

/* Called after the responder has used keys of the PD. False: the QP is in ERR now. */
static inline bool sig_check_received(struct peer *peer, uint32_t pdn)
{
    return G_LIKELY(!peer->qp->hca->sig_pending) || sig_report_received(peer, pdn);
}

#endif
