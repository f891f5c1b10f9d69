/* SPDX-License-Identifier: BSD-2-Clause */
/* Contiguous pages, old: the library allocates the memory of the region. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define BYTES (4u << 20)

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .length = BYTES,
                                   .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE |
                                                 IBV_EXP_ACCESS_REMOTE_WRITE |
                                                 IBV_EXP_ACCESS_ALLOCATE_MR};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in);
    uint8_t *last;

    both_loop(qp);
    NEED(mr && mr->addr && mr->length == BYTES);
    last = (uint8_t *)mr->addr + BYTES - 4096;
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)last, mr->rkey);
    both_done(b.cq);
    printf("%zu bytes, the last page %s\n", mr->length,
           memcmp(last, both_from(&b), 4096) ? "wrong" : "right");
    NEED(!ibv_dereg_mr(mr));
    return 0;
}
