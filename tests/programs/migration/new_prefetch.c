/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch of an on-demand region, new: ibv_advise_mr(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    uint8_t *fresh = both_fresh_pages();
    struct ibv_mr *mr =
        ibv_reg_mr(b.pd, fresh, BOTH_HALF,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
    struct ibv_sge range = {(uintptr_t)fresh, 8192, 0};

    both_loop(qp);
    NEED(mr);
    range.lkey = mr->lkey;
    printf("before: %u pages\n", both_present(fresh));
    NEED(!ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &range, 1));
    both_wait_for_pages(fresh);
    printf("after: %u pages\n", both_present(fresh));
    both_write(qp, both_from(&b), 8192, b.mr->lkey, (uintptr_t)fresh, mr->rkey);
    both_done(b.cq);
    printf("data: %s\n", memcmp(both_from(&b), fresh, 8192) ? "wrong" : "right");
    return 0;
}
