/* SPDX-License-Identifier: BSD-2-Clause */
/* Time stamps, new: ibv_create_cq_ex(), ibv_query_rt_values_ex(), mlx5dv_ts_to_ns(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/new.h"

static uint64_t clock_of(struct ibv_context *ctx)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    NEED(!ibv_query_rt_values_ex(ctx, &values));
    NEED(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK);
    return (uint64_t)values.raw_clock.tv_nsec; /* cycles, in spite of its name */
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(b.ctx, &attr);
    struct ibv_qp *qp = both_rc(&b, ibv_cq_ex_to_cq(cq));
    struct ibv_device_attr_ex device;
    struct mlx5dv_clock_info info;
    uint64_t before, after, stamp, ns[2];

    NEED(!ibv_query_device_ex(b.ctx, NULL, &device));
    printf("clock: %" PRIu64 " kHz, mask %" PRIx64 "\n", device.hca_core_clock,
           device.completion_timestamp_mask);
    both_loop(qp);
    before = clock_of(b.ctx);
    both_write(qp, both_from(&b), 64, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    new_done(cq);
    stamp = ibv_wc_read_completion_ts(cq);
    ibv_end_poll(cq);
    after = clock_of(b.ctx);
    printf("the stamp lies between two readings: %s\n",
           before <= stamp && stamp <= after ? "yes" : "no");
    NEED(!mlx5dv_get_clock_info(b.ctx, &info));
    ns[0] = mlx5dv_ts_to_ns(&info, before);
    ns[1] = mlx5dv_ts_to_ns(&info, stamp);
    printf("in nanoseconds, too: %s\n",
           ns[0] <= ns[1] && ns[1] - ns[0] < 60000000000 ? "yes" : "no");
    return 0;
}
