/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that processes share. MLNX_OFED 4.6 had withdrawn them: registration with such a right
 * and ibv_exp_reg_shared_mr() fail there.
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_reg_mr_in in = {
        .pd = b.pd,
        .length = 8192,
        .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR |
                      IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE};
    struct ibv_exp_reg_shared_mr_in shared = {.pd = b.pd, .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in), *again;

    printf("a region to share: %s\n", mr ? "registered" : "refused");
    shared.mr_handle = mr ? mr->handle : 0;
    again = ibv_exp_reg_shared_mr(&shared);
    printf("the region a second time: %s\n", again ? "registered" : "refused");
    return 0;
}
