/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers by which the device names objects in its events. */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/watch.h"

static void number_add(struct hv_hca *hca, GHashTable *table, uint32_t num, void *obj)
{
    pthread_mutex_lock(&hca->reg_lock);
    g_hash_table_insert(table, GUINT_TO_POINTER(num), obj);
    pthread_mutex_unlock(&hca->reg_lock);
}

/* The device has given the number back before: another object may have it already. */
static void number_del(struct hv_hca *hca, GHashTable *table, uint32_t num, const void *obj)
{
    pthread_mutex_lock(&hca->reg_lock);
    if (g_hash_table_lookup(table, GUINT_TO_POINTER(num)) == obj) {
        g_hash_table_remove(table, GUINT_TO_POINTER(num));
    }
    pthread_mutex_unlock(&hca->reg_lock);
}

void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq)
{
    number_add(hca, hca->cqs, cq->cqn, cq);
}

void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq)
{
    number_del(hca, hca->cqs, cq->cqn, cq);
    hv_watch_forget(hca, cq);
}

/* A raw packet QP is known by its queues' numbers: events name those. */
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp)
{
    if (qp->sqn) {
        number_add(hca, hca->qps, qp->sqn, qp);
    }
    if (qp->rqn) {
        number_add(hca, hca->qps, qp->rqn, qp);
    }
    if (!qp->sqn && !qp->rqn) {
        number_add(hca, hca->qps, qp->ibv.qp_num, qp);
    }
}

void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp)
{
    if (qp->sqn) {
        number_del(hca, hca->qps, qp->sqn, qp);
    }
    if (qp->rqn) {
        number_del(hca, hca->qps, qp->rqn, qp);
    }
    if (!qp->sqn && !qp->rqn) {
        number_del(hca, hca->qps, qp->ibv.qp_num, qp);
    }
    hv_watch_forget(hca, qp);
}

void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq)
{
    number_add(hca, hca->srqs, srq->srqn, srq);
}

void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq)
{
    number_del(hca, hca->srqs, srq->srqn, srq);
}

void hv_event_add_wq(struct hv_hca *hca, struct hv_rwq *wq)
{
    number_add(hca, hca->wqs, wq->rqn, wq);
}

void hv_event_del_wq(struct hv_hca *hca, struct hv_rwq *wq)
{
    number_del(hca, hca->wqs, wq->rqn, wq);
}

static gboolean number_is_of_cq(gpointer num, gpointer cq, gpointer file)
{
    return hv_context(((struct hv_cq *)cq)->ibv.context)->file == file;
}

static gboolean number_is_of_qp(gpointer num, gpointer qp, gpointer file)
{
    return hv_context(((struct hv_qp *)qp)->ibv.context)->file == file;
}

static gboolean number_is_of_srq(gpointer num, gpointer srq, gpointer file)
{
    return hv_context(((struct hv_srq *)srq)->ibv.context)->file == file;
}

static gboolean number_is_of_wq(gpointer num, gpointer wq, gpointer file)
{
    return hv_context(((struct hv_rwq *)wq)->ibv.context)->file == file;
}

void hv_event_forget_file(struct hv_hca *hca, const struct hv_file *file)
{
    pthread_mutex_lock(&hca->reg_lock);
    g_hash_table_foreach_remove(hca->cqs, number_is_of_cq, (gpointer)file);
    g_hash_table_foreach_remove(hca->qps, number_is_of_qp, (gpointer)file);
    g_hash_table_foreach_remove(hca->srqs, number_is_of_srq, (gpointer)file);
    g_hash_table_foreach_remove(hca->wqs, number_is_of_wq, (gpointer)file);
    pthread_mutex_unlock(&hca->reg_lock);
}
