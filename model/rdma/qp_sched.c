/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts QPs into groups of scheduling elements, and takes them out. */
#include "model/rdma/qp_sched.h"

static uint32_t qp_sched_id(const struct prm_qp_context_extension *ext, enum qp_sched_side side)
{
    return side == QP_SCHED_REQUESTER
               ? PRM_GET(qp_context_extension, ext, qos_queue_group_id_requester)
               : PRM_GET(qp_context_extension, ext, qos_queue_group_id_responder);
}

bool qp_sched_is_named(const struct prm_qp_context_extension *ext)
{
    return qp_sched_id(ext, QP_SCHED_REQUESTER) || qp_sched_id(ext, QP_SCHED_RESPONDER);
}

enum syn qp_sched_find(struct qp *qp, uint16_t uid, const struct prm_qp_context_extension *ext,
                       struct sched_elem *leaves[QP_SCHED_SIDES])
{
    for (unsigned side = 0; side < QP_SCHED_SIDES; side++) {
        enum syn syn = sched_find_group(qp->hca, uid, qp_sched_id(ext, side), &leaves[side]);

        if (syn != SYN_OK) {
            return syn;
        }
    }
    if (leaves[QP_SCHED_RESPONDER] && !qp->service->reliable) {
        return SYN_QP_FEATURE; /* there are no answers */
    }
    if (!qp->sched && qp_sched_is_named(ext)) {
        qp->sched = qp_alloc(qp, sizeof(*qp->sched));
        return qp->sched ? SYN_OK : SYN_NO_MEMORY;
    }
    return SYN_OK;
}

void qp_sched_join(struct qp *qp, struct sched_elem *const leaves[QP_SCHED_SIDES])
{
    struct work *work[] = {&qp->req.work, &qp->peer.resp.work};

    for (unsigned side = 0; qp->sched && side < QP_SCHED_SIDES; side++) {
        sched_join(qp->hca, &qp->obj, &qp->sched->member[side], leaves[side], work[side]);
    }
}

void qp_sched_leave(struct qp *qp)
{
    static struct sched_elem *const none[QP_SCHED_SIDES];

    for (unsigned side = 0; side < QP_SCHED_SIDES; side++) {
        qp_sched_stop(qp, side); /* so that leaving schedules nothing */
    }
    qp_sched_join(qp, none);
    qp_dealloc(qp, qp->sched, sizeof(*qp->sched));
    qp->sched = NULL;
}

void qp_sched_stop(struct qp *qp, enum qp_sched_side side)
{
    if (qp->sched) {
        sched_stop(&qp->sched->member[side]);
    }
}

/* The memory of a membership is taken at the first packet. If there is none, the packet is in no
 * class. */
bool qp_sched_class_may_send(struct qp *qp, enum qp_sched_side side, const struct roce_addr *addr)
{
    unsigned priority = uplink_roce_priority(qp->hca->vport->uplink, addr);
    struct work *work = side == QP_SCHED_REQUESTER ? &qp->req.work : &qp->peer.resp.work;

    if (!qp->sched) {
        qp->sched = qp_alloc(qp, sizeof(*qp->sched));
    }
    return !qp->sched || ets_may_send(qp->hca, &qp->obj, &qp->sched->member[side], priority, work);
}

void qp_sched_query(const struct qp *qp, struct prm_qp_context_extension *ext)
{
    const struct sched_member *m = qp->sched ? qp->sched->member : NULL;

    if (m && m[QP_SCHED_REQUESTER].leaf) {
        PRM_SET(qp_context_extension, ext, qos_queue_group_id_requester,
                m[QP_SCHED_REQUESTER].leaf->obj.num);
    }
    if (m && m[QP_SCHED_RESPONDER].leaf) {
        PRM_SET(qp_context_extension, ext, qos_queue_group_id_responder,
                m[QP_SCHED_RESPONDER].leaf->obj.num);
    }
}
