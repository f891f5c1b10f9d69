/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch of an on-demand region, old: ibv_exp_prefetch_mr(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    uint8_t *fresh = both_fresh_pages();
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .addr = fresh,
                                   .length = BOTH_HALF,
                                   .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE |
                                                 IBV_EXP_ACCESS_REMOTE_WRITE |
                                                 IBV_EXP_ACCESS_ON_DEMAND};
    struct ibv_exp_prefetch_attr attr = {
        .flags = IBV_EXP_PREFETCH_WRITE_ACCESS, .addr = fresh, .length = 8192};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in);

    both_loop(qp);
    NEED(mr);
    printf("before: %u pages\n", both_present(fresh));
    NEED(!ibv_exp_prefetch_mr(mr, &attr));
    both_wait_for_pages(fresh);
    printf("after: %u pages\n", both_present(fresh));
    both_write(qp, both_from(&b), 8192, b.mr->lkey, (uintptr_t)fresh, mr->rkey);
    both_done(b.cq);
    printf("data: %s\n", memcmp(both_from(&b), fresh, 8192) ? "wrong" : "right");
    return 0;
}
