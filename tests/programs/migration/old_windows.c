/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, old: ibv_exp_bind_mw(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static void bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr, void *at, uint64_t len)
{
    struct ibv_exp_mw_bind attr = {
        .qp = qp,
        .mw = mw,
        .exp_send_flags = IBV_EXP_SEND_SIGNALED,
        .bind_info = {.mr = mr,
                      .addr = (uintptr_t)at,
                      .length = len,
                      .exp_mw_access_flags = len ? IBV_EXP_ACCESS_REMOTE_WRITE : 0}};

    NEED(!ibv_exp_bind_mw(&attr));
    both_done(qp->send_cq);
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq), *peer = both_rc(&b, b.cq);
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .addr = both_to(&b),
                                   .length = 4096,
                                   .exp_access =
                                       IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_MW_BIND};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in);
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    uint32_t rkey;

    both_connect(qp, peer);
    NEED(mr && mw);
    bind(qp, mw, mr, both_to(&b), 1000);
    rkey = mw->rkey;
    both_write(qp, both_from(&b), 1000, b.mr->lkey, (uintptr_t)both_to(&b), rkey);
    printf("bound: %s", ibv_wc_status_str(both_wait(b.cq).status));
    printf(", data %s\n", both_same(&b, 1000) ? "right" : "wrong");
    bind(qp, mw, mr, NULL, 0);
    both_write(qp, both_from(&b), 1000, b.mr->lkey, (uintptr_t)both_to(&b), rkey);
    printf("no longer bound: %s\n", ibv_wc_status_str(both_wait(b.cq).status));
    return 0;
}
