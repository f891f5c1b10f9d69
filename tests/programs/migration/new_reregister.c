/* SPDX-License-Identifier: BSD-2-Clause */
/* Re-registration, new: ibv_reg_mr(), ibv_rereg_mr(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq), *peer = both_rc(&b, b.cq);
    struct ibv_mr *mr =
        ibv_reg_mr(b.pd, both_to(&b), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

    both_connect(qp, peer);
    NEED(mr);
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)both_to(&b), mr->rkey);
    printf("with the right to write: %s\n", ibv_wc_status_str(both_wait(b.cq).status));
    NEED(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)both_to(&b), mr->rkey);
    printf("without it: %s\n", ibv_wc_status_str(both_wait(b.cq).status));
    return 0;
}
