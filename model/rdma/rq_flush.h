/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flushes a QP's receive queue in ERR: every receive WQE completes with WR_FLUSH_ERR, also WQEs
 * that are posted later.
 *
 * A receive queue has no doorbell register, so the device is not told about WQEs posted in ERR.
 * Nevertheless software waits for their completions: to drain a queue, the kernel posts one more
 * WQE after the transition and waits for its completion. Therefore the device looks at the doorbell
 * record again at once, and then less and less often. If it finds nothing for long, the QP waits
 * with all others in that situation (hca_wait_late()). So QPs left behind in ERR cost next to
 * nothing, however many there are.
 */
#ifndef HCASIM_MODEL_RQ_FLUSH_H
#define HCASIM_MODEL_RQ_FLUSH_H

#include "model/core/hca.h"

struct qp;

struct rq_flush {
    struct work work;
    struct hca_timer timer;
    uint64_t delay; /* time until the next look, in ns */
};

void rq_flush_init(struct qp *qp);
/* Called when the QP goes to ERR. */
void rq_flush_start(struct qp *qp);
/* Called when the QP leaves ERR, or ends. */
void rq_flush_stop(struct qp *qp);

#endif
