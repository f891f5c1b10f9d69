/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory, old: ibv_exp_alloc_dm() and its companions. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define BYTES 1024

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_alloc_dm_attr attr = {.length = BYTES};
    struct ibv_exp_dm *dm = ibv_exp_alloc_dm(b.ctx, &attr);
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .length = BYTES,
                                   .exp_access =
                                       IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE,
                                   .comp_mask = IBV_EXP_REG_MR_DM,
                                   .dm = dm};
    struct ibv_exp_memcpy_dm_attr copy = {
        .memcpy_dir = IBV_EXP_DM_CPY_TO_DEVICE, .host_addr = both_from(&b), .length = BYTES};
    struct ibv_mr *mr;

    both_loop(qp);
    NEED(dm);
    NEED(mr = ibv_exp_reg_mr(&in));
    NEED(!ibv_exp_memcpy_dm(dm, &copy));
    both_write(qp, NULL, BYTES, mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    both_done(b.cq);
    printf("from the device: %s\n", both_same(&b, BYTES) ? "right" : "wrong");
    memset(both_to(&b), 0, BYTES);
    both_write(qp, both_from(&b) + 1, BYTES - 1, b.mr->lkey, 0, mr->rkey);
    both_done(b.cq);
    copy.memcpy_dir = IBV_EXP_DM_CPY_TO_HOST;
    copy.host_addr = both_to(&b);
    NEED(!ibv_exp_memcpy_dm(dm, &copy));
    printf("to the device: %s\n",
           memcmp(both_from(&b) + 1, both_to(&b), BYTES - 1) ? "wrong" : "right");
    NEED(!ibv_dereg_mr(mr) && !ibv_exp_free_dm(dm));
    return 0;
}
