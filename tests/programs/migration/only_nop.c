/* SPDX-License-Identifier: BSD-2-Clause */
/* NOP: a work request that completes in its turn and sends nothing. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_send_wr *bad,
        wr = {.wr_id = 9, .exp_opcode = IBV_EXP_WR_NOP, .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    NEED(attr.exp_device_cap_flags & IBV_EXP_DEVICE_NOP);
    both_loop(qp);
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    NEED(!ibv_exp_post_send(qp, &wr, &bad));
    printf("first wr_id %" PRIu64, both_done(b.cq).wr_id);
    printf(", then %" PRIu64 "\n", both_done(b.cq).wr_id);
    return 0;
}
