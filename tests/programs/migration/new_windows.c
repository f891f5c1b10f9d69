/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, new: ibv_bind_mw(). */
#include "tests/programs/migration/both.h"

static void bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr, void *at, uint64_t len)
{
    struct ibv_mw_bind attr = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = mr,
                                             .addr = (uintptr_t)at,
                                             .length = len,
                                             .mw_access_flags = len ? IBV_ACCESS_REMOTE_WRITE : 0}};

    NEED(!ibv_bind_mw(qp, mw, &attr));
    both_done(qp->send_cq);
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq), *peer = both_rc(&b, b.cq);
    struct ibv_mr *mr =
        ibv_reg_mr(b.pd, both_to(&b), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
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
