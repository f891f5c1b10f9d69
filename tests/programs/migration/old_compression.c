/* SPDX-License-Identifier: BSD-2-Clause */
/* CQE compression, old: IBV_EXP_CQ_COMPRESSED_CQE of ibv_exp_create_cq(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_COMPRESSED_CQE};
    struct ibv_cq *cq = ibv_exp_create_cq(b.ctx, 64, NULL, NULL, 0, &attr);

    printf("a CQ with compressed CQEs: %s\n", cq ? "made" : "refused");
    NEED(!cq || !ibv_destroy_cq(cq));
    return 0;
}
