/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The round trips that the legacy rping measured with -m, old. A WRITE completes when its
 * acknowledgement is back, so two WRITEs one after the other complete at least one round trip
 * apart. The device's stamps in the completions say when.
 */
#include "tests/programs/migration/old.h"

#define ROUNDS 10

static uint64_t written(struct both *b, struct ibv_qp *qp)
{
    struct ibv_exp_wc wc;

    both_write(qp, both_from(b), 64, b->mr->lkey, (uintptr_t)both_to(b), b->mr->rkey);
    wc = old_done(qp->send_cq);
    NEED(wc.exp_wc_flags & IBV_EXP_WC_WITH_TIMESTAMP);
    return wc.timestamp;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_TIMESTAMP};
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK};
    struct ibv_qp *qp = both_rc(&b, ibv_exp_create_cq(b.ctx, 16, NULL, NULL, 0, &attr));
    uint64_t least = ~0ull, last, stamp;

    NEED(!ibv_exp_query_device(b.ctx, &device));
    both_loop(qp);
    last = written(&b, qp);
    for (unsigned i = 0; i < ROUNDS; i++, last = stamp) {
        stamp = written(&b, qp);
        NEED(stamp > last);
        least = stamp - last < least ? stamp - last : least;
    }
    fprintf(stderr, "shortest round trip: %" PRIu64 " ns\n",
            least * 1000000 / (uint64_t)device.hca_core_clock);
    printf("%d round trips, each takes time\n", ROUNDS);
    return 0;
}
