/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP in scheduling elements: its requests may be in one group, its answers in another
 * (mlx5dv_modify_qp_sched_elem()). Answers are READ data and results of atomics; ACKs are not held.
 * A QP in no group costs one branch for each packet.
 */
#ifndef HCASIM_MODEL_QP_SCHED_H
#define HCASIM_MODEL_QP_SCHED_H

#include "model/port/ets.h"
#include "model/rdma/qp.h"

enum qp_sched_side {
    QP_SCHED_REQUESTER,
    QP_SCHED_RESPONDER,
    QP_SCHED_SIDES
};

struct qp_sched {
    struct sched_member member[QP_SCHED_SIDES];
};

/* Whether an extended context names a group. */
bool qp_sched_is_named(const struct prm_qp_context_extension *ext);
/* Finds the groups that ext names, and takes what memory the QP needs to join them. */
enum syn qp_sched_find(struct qp *qp, uint16_t uid, const struct prm_qp_context_extension *ext,
                       struct sched_elem *leaves[QP_SCHED_SIDES]);
/* The QP joins groups that qp_sched_find() found. */
void qp_sched_join(struct qp *qp, struct sched_elem *const leaves[QP_SCHED_SIDES]);
/* The QP ends. */
void qp_sched_leave(struct qp *qp);
/* One side of the QP does not send any more, or begins anew. */
void qp_sched_stop(struct qp *qp, enum qp_sched_side side);
/* QUERY_QP: fills in the groups. */
void qp_sched_query(const struct qp *qp, struct prm_qp_context_extension *ext);

/* Whether the traffic class of a packet with these addresses lets it leave (model/port/ets.h). If
 * not, the work of that side runs when it does. */
bool qp_sched_class_may_send(struct qp *qp, enum qp_sched_side side, const struct roce_addr *addr);

/* Called before each packet. False: not yet; the work of that side runs when it may. */
static inline bool qp_sched_may_send(struct qp *qp, enum qp_sched_side side)
{
    return G_LIKELY(!qp->sched) || sched_may_send(qp->hca, &qp->sched->member[side]);
}

#endif
