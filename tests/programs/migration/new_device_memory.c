/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory, new: ibv_alloc_dm() and its companions. */
#include "tests/programs/migration/both.h"

#define BYTES 1024

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_alloc_dm_attr attr = {.length = BYTES};
    struct ibv_dm *dm = ibv_alloc_dm(b.ctx, &attr);
    struct ibv_mr *mr;

    both_loop(qp);
    NEED(dm);
    NEED(mr = ibv_reg_dm_mr(b.pd, dm, 0, BYTES,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                IBV_ACCESS_ZERO_BASED));
    NEED(!ibv_memcpy_to_dm(dm, 0, both_from(&b), BYTES));
    both_write(qp, NULL, BYTES, mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    both_done(b.cq);
    printf("from the device: %s\n", both_same(&b, BYTES) ? "right" : "wrong");
    memset(both_to(&b), 0, BYTES);
    both_write(qp, both_from(&b) + 1, BYTES - 1, b.mr->lkey, 0, mr->rkey);
    both_done(b.cq);
    NEED(!ibv_memcpy_from_dm(both_to(&b), dm, 0, BYTES));
    printf("to the device: %s\n",
           memcmp(both_from(&b) + 1, both_to(&b), BYTES - 1) ? "wrong" : "right");
    NEED(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
    return 0;
}
