/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that processes share: a registration by the handle of another one maps its memory.
 * MLNX_OFED 4.6 had withdrawn them: registration with such a right and ibv_exp_reg_shared_mr() fail
 * there.
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_reg_mr_in in = {
        .pd = b.pd,
        .length = 8192,
        .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE |
                      IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_SHARED_MR_USER_READ |
                      IBV_EXP_ACCESS_SHARED_MR_USER_WRITE};
    struct ibv_exp_reg_shared_mr_in shared = {.pd = b.pd, .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in), *again;

    NEED(mr);
    shared.mr_handle = mr->handle;
    NEED(again = ibv_exp_reg_shared_mr(&shared));
    printf("%zu bytes at another address: %s\n", again->length,
           again->addr != mr->addr ? "yes" : "no");
    both_loop(qp);
    both_write(qp, both_from(&b), 8192, b.mr->lkey, (uintptr_t)mr->addr, mr->rkey);
    both_done(b.cq);
    printf("written to one, read from the other: %s\n",
           memcmp(again->addr, both_from(&b), 8192) ? "wrong" : "right");
    NEED(!ibv_dereg_mr(again) && !ibv_dereg_mr(mr));
    return 0;
}
