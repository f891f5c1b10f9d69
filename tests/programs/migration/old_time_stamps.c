/* SPDX-License-Identifier: BSD-2-Clause */
/* Time stamps, old: IBV_EXP_CQ_TIMESTAMP, ibv_exp_query_values(), ibv_exp_cqe_ts_to_ns(). */
#include "tests/programs/migration/old.h"

static uint64_t clock_of(struct ibv_context *ctx)
{
    struct ibv_exp_values values = {.comp_mask = IBV_EXP_VALUES_HW_CLOCK};

    NEED(!ibv_exp_query_values(ctx, IBV_EXP_VALUES_HW_CLOCK, &values));
    NEED(values.comp_mask & IBV_EXP_VALUES_HW_CLOCK);
    return values.hwclock;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_TIMESTAMP};
    struct ibv_cq *cq = ibv_exp_create_cq(b.ctx, 16, NULL, NULL, 0, &attr);
    struct ibv_qp *qp = both_rc(&b, cq);
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK |
                                                      IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK};
    struct ibv_exp_values info = {.comp_mask = IBV_EXP_VALUES_CLOCK_INFO};
    uint64_t before, after, ns[2];
    struct ibv_exp_wc wc;

    NEED(!ibv_exp_query_device(b.ctx, &device));
    printf("clock: %" PRIu64 " kHz, mask %" PRIx64 "\n", (uint64_t)device.hca_core_clock,
           (uint64_t)device.timestamp_mask);
    both_loop(qp);
    before = clock_of(b.ctx);
    both_write(qp, both_from(&b), 64, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    wc = old_done(cq);
    after = clock_of(b.ctx);
    NEED(wc.exp_wc_flags & IBV_EXP_WC_WITH_TIMESTAMP);
    printf("the stamp lies between two readings: %s\n",
           before <= wc.timestamp && wc.timestamp <= after ? "yes" : "no");
    NEED(!ibv_exp_query_values(b.ctx, IBV_EXP_VALUES_CLOCK_INFO, &info));
    ns[0] = ibv_exp_cqe_ts_to_ns(&info.clock_info, before);
    ns[1] = ibv_exp_cqe_ts_to_ns(&info.clock_info, wc.timestamp);
    printf("in nanoseconds, too: %s\n",
           ns[0] <= ns[1] && ns[1] - ns[0] < 60000000000 ? "yes" : "no");
    return 0;
}
