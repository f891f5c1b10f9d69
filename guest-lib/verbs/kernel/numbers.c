/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers by which the device names objects in its events: one registry, which finds an object
 * by its kind and number. Each object begins with its struct ibv_context *.
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/watch.h"

/* Numbers have 24 bits. */
static gpointer number_key(enum hv_about kind, uint32_t num)
{
    return GUINT_TO_POINTER((uint32_t)kind << 24 | num);
}

void *hv_number_find(struct hv_hca *hca, enum hv_about kind, uint32_t num)
{
    return g_hash_table_lookup(hca->numbers, number_key(kind, num));
}

void hv_number_set(struct hv_hca *hca, enum hv_about kind, uint32_t num, void *obj)
{
    if (obj) {
        g_hash_table_insert(hca->numbers, number_key(kind, num), obj);
    } else {
        g_hash_table_remove(hca->numbers, number_key(kind, num));
    }
}

static void number_add(struct hv_hca *hca, enum hv_about kind, uint32_t num, void *obj)
{
    pthread_mutex_lock(&hca->reg_lock);
    hv_number_set(hca, kind, num, obj);
    pthread_mutex_unlock(&hca->reg_lock);
}

/* The device freed the number before this call, so another object may have it already. */
static void number_del(struct hv_hca *hca, enum hv_about kind, uint32_t num, const void *obj)
{
    pthread_mutex_lock(&hca->reg_lock);
    if (hv_number_find(hca, kind, num) == obj) {
        hv_number_set(hca, kind, num, NULL);
    }
    pthread_mutex_unlock(&hca->reg_lock);
}

void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq)
{
    number_add(hca, HV_ABOUT_CQ, cq->cqn, cq);
}

void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq)
{
    number_del(hca, HV_ABOUT_CQ, cq->cqn, cq);
    hv_watch_forget(hca, cq);
}

/* A raw packet QP is registered under its queues' numbers, because events name those. */
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp)
{
    if (qp->sqn) {
        number_add(hca, HV_ABOUT_QP, qp->sqn, qp);
    }
    if (qp->rqn) {
        number_add(hca, HV_ABOUT_QP, qp->rqn, qp);
    }
    if (!qp->sqn && !qp->rqn) {
        number_add(hca, HV_ABOUT_QP, qp->ibv.qp_num, qp);
    }
}

void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp)
{
    if (qp->sqn) {
        number_del(hca, HV_ABOUT_QP, qp->sqn, qp);
    }
    if (qp->rqn) {
        number_del(hca, HV_ABOUT_QP, qp->rqn, qp);
    }
    if (!qp->sqn && !qp->rqn) {
        number_del(hca, HV_ABOUT_QP, qp->ibv.qp_num, qp);
    }
    hv_watch_forget(hca, qp);
}

void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq)
{
    number_add(hca, HV_ABOUT_SRQ, srq->srqn, srq);
}

void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq)
{
    number_del(hca, HV_ABOUT_SRQ, srq->srqn, srq);
}

void hv_event_add_wq(struct hv_hca *hca, struct hv_rwq *wq)
{
    number_add(hca, HV_ABOUT_WQ, wq->rqn, wq);
}

void hv_event_del_wq(struct hv_hca *hca, struct hv_rwq *wq)
{
    number_del(hca, HV_ABOUT_WQ, wq->rqn, wq);
}

/* The events of a DCT go to the structure of the experimental verbs. */
void hv_event_add_dct(struct hv_hca *hca, struct hv_qp *qp)
{
    number_add(hca, HV_ABOUT_DCT, qp->ibv.qp_num, qp->exp_dct);
}

void hv_event_del_dct(struct hv_hca *hca, struct hv_qp *qp)
{
    number_del(hca, HV_ABOUT_DCT, qp->ibv.qp_num, qp->exp_dct);
}

static gboolean number_is_of(gpointer key, gpointer obj, gpointer file)
{
    return hv_context(*(struct ibv_context **)obj)->file == file;
}

void hv_event_forget_file(struct hv_hca *hca, const struct hv_file *file)
{
    pthread_mutex_lock(&hca->reg_lock);
    g_hash_table_foreach_remove(hca->numbers, number_is_of, (gpointer)file);
    pthread_mutex_unlock(&hca->reg_lock);
}
