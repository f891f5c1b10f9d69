/* SPDX-License-Identifier: BSD-2-Clause */
/* Multi-packet RQ, old: mp_rq_caps of ibv_exp_query_device(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_MP_RQ};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("log of bytes of a stride: %u to %u\n",
           attr.mp_rq_caps.min_single_stride_log_num_of_bytes,
           attr.mp_rq_caps.max_single_stride_log_num_of_bytes);
    return 0;
}
