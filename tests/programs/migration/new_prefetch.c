/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch of an on-demand region, new: ibv_advise_mr(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_mr *mr =
        ibv_reg_mr(b.pd, both_to(&b), BOTH_HALF,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
    struct ibv_sge range = {(uintptr_t)both_to(&b), 8192, 0};

    both_loop(qp);
    NEED(mr);
    range.lkey = mr->lkey;
    printf("prefetch: %d\n",
           ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &range, 1));
    both_write(qp, both_from(&b), 8192, b.mr->lkey, (uintptr_t)both_to(&b), mr->rkey);
    both_done(b.cq);
    printf("data: %s\n", both_same(&b, 8192) ? "right" : "wrong");
    return 0;
}
