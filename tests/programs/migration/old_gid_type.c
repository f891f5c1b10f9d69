/* SPDX-License-Identifier: BSD-2-Clause */
/* The type of a GID, old: ibv_exp_query_gid_attr(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);

    for (unsigned i = 0; i < 4; i++) {
        struct ibv_exp_gid_attr attr = {.comp_mask = IBV_EXP_QUERY_GID_ATTR_TYPE};

        NEED(!ibv_exp_query_gid_attr(b.ctx, 1, i, &attr));
        printf("GID %u: %s\n", i, attr.type == IBV_EXP_ROCE_V2_GID_TYPE ? "RoCE v2" : "RoCE v1");
    }
    return 0;
}
