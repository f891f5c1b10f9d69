/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC target QPs: a program that knows the number of an XRC target in a domain that it has open can
 * open the QP. All handles are equal, and the QP is destroyed with the last one (ib_open_qp(),
 * __ib_destroy_shared_qp()).
 *
 * The handles form a circular list; the registry of numbers has one of them.
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/qp.h"

/* Copies what the driver remembers of a QP. */
static void xrc_tgt_copy_state(struct hv_qp *to, const struct hv_qp *from)
{
    to->state = from->state;
    to->access = from->access;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
}

static bool xrc_tgt_enter(struct hv_qp *qp)
{
    struct hv_qp *there;

    pthread_mutex_lock(&qp->hca->reg_lock);
    there = hv_number_find(qp->hca, HV_ABOUT_QP, qp->ibv.qp_num);
    if (there &&
        (there->ibv.qp_type != IBV_QPT_XRC_RECV || there->xrcd->xrcdn != qp->xrcd->xrcdn)) {
        there = NULL;
    }
    if (there) {
        xrc_tgt_copy_state(qp, there);
        qp->next_handle = there->next_handle ? there->next_handle : there;
        there->next_handle = qp;
    }
    pthread_mutex_unlock(&qp->hca->reg_lock);
    return there;
}

/* The device uses the ring and the doorbell record by their addresses, so they stay until the QP is
 * destroyed: another handle takes them over. */
static void xrc_tgt_inherit(struct hv_qp *to, struct hv_qp *from)
{
    to->ring = from->ring;
    to->ring_size = from->ring_size;
    to->ring_from = from->ring_from;
    to->dbrec = from->dbrec;
    to->dbrec_from = from->dbrec_from;
    from->ring = NULL;
    from->dbrec = NULL;
}

bool hv_xrc_tgt_leave(struct hv_qp *qp)
{
    struct hv_qp *next, *before;

    pthread_mutex_lock(&qp->hca->reg_lock);
    next = qp->next_handle;
    if (next) {
        for (before = next; before->next_handle != qp; before = before->next_handle) {
        }
        before->next_handle = before == next ? NULL : next;
        if (qp->dbrec) {
            xrc_tgt_inherit(next, qp);
        }
        hv_number_set(qp->hca, HV_ABOUT_QP, qp->ibv.qp_num, next);
    } else if (qp->ibv.qp_type == IBV_QPT_XRC_RECV) {
        /* from now on it cannot be opened */
        hv_number_set(qp->hca, HV_ABOUT_QP, qp->ibv.qp_num, NULL);
    }
    pthread_mutex_unlock(&qp->hca->reg_lock);
    return next;
}

void uverbs_qp_changed(struct hv_qp *qp)
{
    pthread_mutex_lock(&qp->hca->reg_lock);
    for (struct hv_qp *other = qp->next_handle; other && other != qp; other = other->next_handle) {
        xrc_tgt_copy_state(other, qp);
    }
    pthread_mutex_unlock(&qp->hca->reg_lock);
}

int uverbs_open_qp(struct hv_qp *qp)
{
    int err = hv_check_there(qp->hca);

    err = err ? err : hv_xrcd_check(&qp->xrcd->ibv);
    if (!err && !xrc_tgt_enter(qp)) {
        err = EINVAL;
    }
    if (!err) {
        qp->ibv.handle = hv_handle_add(qp->ibv.context, HV_HANDLE_QP, qp);
        g_atomic_int_inc(&qp->xrcd->refs);
    }
    return err;
}

/* Returns the registered handle of the QP number, or NULL. Under reg_lock. */
static struct hv_qp *xrc_tgt_registered(struct hv_hca *hca, uint32_t qpn)
{
    struct hv_qp *first = hv_number_find(hca, HV_ABOUT_QP, qpn), *qp = first;

    while (qp && qp->ibv.qp_type == IBV_QPT_XRC_RECV && !qp->registered) {
        qp = qp->next_handle == first ? NULL : qp->next_handle;
    }
    return qp && qp->registered ? qp : NULL;
}

struct hv_qp *uverbs_xrc_registered(struct hv_hca *hca, uint32_t qpn)
{
    struct hv_qp *qp;

    pthread_mutex_lock(&hca->reg_lock);
    qp = xrc_tgt_registered(hca, qpn);
    pthread_mutex_unlock(&hca->reg_lock);
    return qp;
}

bool uverbs_xrc_register(struct hv_qp *qp)
{
    pthread_mutex_lock(&qp->hca->reg_lock);
    qp->registered = !xrc_tgt_registered(qp->hca, qp->ibv.qp_num);
    pthread_mutex_unlock(&qp->hca->reg_lock);
    return qp->registered;
}
