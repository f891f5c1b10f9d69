/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Re-registration, old: ibv_exp_reg_mr(), and ibv_rereg_mr(), which MLNX_OFED 4.6 has in place of
 * ibv_exp_rereg_mr().
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq), *peer = both_rc(&b, b.cq);
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .addr = both_to(&b),
                                   .length = 4096,
                                   .exp_access =
                                       IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in);

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
