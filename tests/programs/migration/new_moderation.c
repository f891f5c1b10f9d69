/* SPDX-License-Identifier: BSD-2-Clause */
/* CQ moderation, new: ibv_modify_cq(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct both_moderated m = both_moderated(&b);
    struct ibv_modify_cq_attr attr = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = {.cq_count = BOTH_COUNT, .cq_period = BOTH_PERIOD}};

    NEED(!ibv_modify_cq(m.cq, &attr));
    both_print_events(&b, &m);
    return 0;
}
