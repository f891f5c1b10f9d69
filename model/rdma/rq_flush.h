/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP's receive queue in ERR: every receive WQE completes with WR_FLUSH_ERR, those that are posted
 * later too.
 *
 * A receive queue has no doorbell register, so nothing tells the device about WQEs posted in ERR,
 * which software waits for all the same: to drain a queue, the kernel posts one more WQE after the
 * transition and waits for its completion. The device looks at the doorbell record again at once,
 * and then more and more seldom; a QP where it found nothing for long waits with all others like it
 * (hca_wait_late()), so that QPs left behind in ERR cost next to nothing however many there are.
 */
#ifndef HCASIM_MODEL_RQ_FLUSH_H
#define HCASIM_MODEL_RQ_FLUSH_H

#include "model/core/hca.h"

struct qp;

struct rq_flush {
    struct work work;
    struct hca_timer timer;
    uint64_t delay; /* ns, to the next look */
};

void rq_flush_init(struct qp *qp);
/* The QP goes to ERR. */
void rq_flush_start(struct qp *qp);
/* It leaves ERR, or ends. */
void rq_flush_stop(struct qp *qp);

#endif
