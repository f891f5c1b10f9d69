/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The works that wait until a CQ has a certain CQE (cross channel: CQE_WAIT).
 *
 * A CQ keeps them in the order of their indices, so that a CQE looks only at the works that it
 * wakes. While there are some, the CQ counts as unusual: other CQs do not look at all. A work waits
 * on one CQ at a time, so a list has at most one entry for each send queue of the function.
 */
#include "model/queue/cq_priv.h"

/* The number of CQEs that are to come until the CQ has the CQE of this index; 1: it is the next. */
static uint32_t cq_wait_distance(const struct cq *cq, uint32_t index)
{
    return (index + 1 - cq->pi) & CQ_INDEX_MASK;
}

bool cq_has_had(const struct cq *cq, uint32_t index)
{
    uint32_t distance = cq_wait_distance(cq, index);

    return distance == 0 || distance > (CQ_INDEX_MASK + 1) / 2;
}

bool cq_has_failed(const struct cq *cq)
{
    return cq->status;
}

void cq_wait_begin(struct hca *hca, struct cq *cq, uint32_t index, struct cq_wait *wait)
{
    struct cq_wait *before = cq->last_wait;
    unsigned n = 1;

    for (; before && cq_wait_distance(cq, before->index) > cq_wait_distance(cq, index); n++) {
        before = before->prev;
    }
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
    wait->cq = cq;
    wait->index = index & CQ_INDEX_MASK;
    wait->prev = before;
    wait->next = before ? before->next : cq->first_wait;
    *(wait->prev ? &wait->prev->next : &cq->first_wait) = wait;
    *(wait->next ? &wait->next->prev : &cq->last_wait) = wait;
    cq_note_unusual(cq);
}

void cq_wait_end(struct cq_wait *wait)
{
    struct cq *cq = wait->cq;

    if (!cq) {
        return;
    }
    *(wait->prev ? &wait->prev->next : &cq->first_wait) = wait->next;
    *(wait->next ? &wait->next->prev : &cq->last_wait) = wait->prev;
    wait->cq = NULL;
    cq_note_unusual(cq);
}

static void cq_wake_first(struct hca *hca, struct cq *cq)
{
    struct cq_wait *wait = cq->first_wait;

    cq_wait_end(wait);
    hca_schedule(hca, wait->work);
}

void cq_wake_due(struct hca *hca, struct cq *cq)
{
    unsigned n = 0;

    for (; cq->first_wait && cq_has_had(cq, cq->first_wait->index); n++) {
        cq_wake_first(hca, cq);
    }
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
}

void cq_wake_all(struct hca *hca, struct cq *cq)
{
    unsigned n = 0;

    for (; cq->first_wait; n++) {
        cq_wake_first(hca, cq);
    }
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
}
