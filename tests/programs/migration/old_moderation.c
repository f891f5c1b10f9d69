/* SPDX-License-Identifier: BSD-2-Clause */
/* CQ moderation, old: ibv_exp_modify_cq(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct both_moderated m = both_moderated(&b);
    struct ibv_exp_cq_attr attr = {
        .comp_mask = IBV_EXP_CQ_ATTR_MODERATION,
        .moderation = {.cq_count = BOTH_COUNT, .cq_period = BOTH_PERIOD}};

    NEED(!ibv_exp_modify_cq(m.cq, &attr, IBV_EXP_CQ_MODERATION));
    both_print_events(&b, &m);
    return 0;
}
