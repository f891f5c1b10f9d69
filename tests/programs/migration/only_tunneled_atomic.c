/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunneled atomics: a region in which a WRITE stands for an atomic operation. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC};
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .addr = both_to(&b),
                                   .length = 4096,
                                   .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE |
                                                 IBV_EXP_ACCESS_REMOTE_WRITE |
                                                 IBV_EXP_ACCESS_TUNNELED_ATOMIC};
    struct ibv_mr *mr;

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("tunneled atomics: %s\n",
           attr.tunneled_atomic_caps & IBV_EXP_TUNNELED_ATOMIC_SUPPORTED ? "yes" : "no");
    mr = ibv_exp_reg_mr(&in);
    printf("a region for them: %s\n", mr ? "registered" : "refused");
    in.exp_access |= IBV_EXP_ACCESS_ON_DEMAND;
    printf("with pages on demand: %s\n", ibv_exp_reg_mr(&in) ? "registered" : "refused");
    return 0;
}
