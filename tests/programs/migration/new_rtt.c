/* SPDX-License-Identifier: BSD-2-Clause */
/* The round trips that the legacy rping measured with -m (old_rtt.c), new. */
#include "tests/programs/migration/new.h"

#define ROUNDS 10

static uint64_t written(struct both *b, struct ibv_qp *qp, struct ibv_cq_ex *cq)
{
    uint64_t stamp;

    both_write(qp, both_from(b), 64, b->mr->lkey, (uintptr_t)both_to(b), b->mr->rkey);
    new_done(cq);
    stamp = ibv_wc_read_completion_ts(cq);
    ibv_end_poll(cq);
    return stamp;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(b.ctx, &attr);
    struct ibv_qp *qp = both_rc(&b, ibv_cq_ex_to_cq(cq));
    uint64_t least = ~0ull, last, stamp;
    struct ibv_device_attr_ex device;

    NEED(!ibv_query_device_ex(b.ctx, NULL, &device));
    both_loop(qp);
    last = written(&b, qp, cq);
    for (unsigned i = 0; i < ROUNDS; i++, last = stamp) {
        stamp = written(&b, qp, cq);
        NEED(stamp > last);
        least = stamp - last < least ? stamp - last : least;
    }
    fprintf(stderr, "shortest round trip: %" PRIu64 " ns\n",
            least * 1000000 / device.hca_core_clock);
    printf("%d round trips, each takes time\n", ROUNDS);
    return 0;
}
