/* SPDX-License-Identifier: BSD-2-Clause */
/* Flushes a receive queue in ERR, and looks for WQEs that are posted later. */
#include <stddef.h>
#include "model/rdma/qp.h"

#define FLUSH_DELAY_MIN 1000000ull  /* ns */
#define FLUSH_DELAY_MAX 32000000ull /* up to this delay a QP has looks of its own */

static void rq_flush_work(struct hca *hca, struct work *work)
{
    struct qp *qp = (struct qp *)((char *)work - offsetof(struct qp, rq_flush.work));
    struct rq_flush *flush = &qp->rq_flush;
    unsigned before = qp->rq.ci;

    if (qp_flush_rq(qp)) {
        hca_schedule(hca, work);
        return;
    }
    flush->delay = before == qp->rq.ci ? flush->delay * 2 : FLUSH_DELAY_MIN;
    if (flush->delay <= FLUSH_DELAY_MAX) {
        hca_timer_set(hca, &flush->timer, hca_now(hca) + flush->delay);
    } else {
        flush->delay = FLUSH_DELAY_MAX;
        hca_wait_late(hca, work);
    }
}

static void rq_flush_timeout(struct hca *hca, struct hca_timer *timer)
{
    struct qp *qp = (struct qp *)((char *)timer - offsetof(struct qp, rq_flush.timer));

    hca_schedule(hca, &qp->rq_flush.work);
}

void rq_flush_init(struct qp *qp)
{
    qp->rq_flush.work.run = rq_flush_work;
    qp->rq_flush.timer.fire = rq_flush_timeout;
}

void rq_flush_start(struct qp *qp)
{
    if (qp->has_rq) {
        rq_flush_stop(qp);
        qp->rq_flush.delay = FLUSH_DELAY_MIN;
        hca_schedule(qp->hca, &qp->rq_flush.work);
    }
}

void rq_flush_stop(struct qp *qp)
{
    hca_timer_stop(qp->hca, &qp->rq_flush.timer);
    hca_unschedule_late(qp->hca, &qp->rq_flush.work);
}
