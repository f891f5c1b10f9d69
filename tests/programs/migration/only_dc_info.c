/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace of DC's CNAKs names senders by LID. Ports of RoCE have no LIDs, so there is none. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};
    struct ibv_exp_dc_info_ent entries[4];
    int n = ibv_exp_poll_dc_info(b.ctx, entries, 4, 1);

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("a trace of CNAKs: %s, %s\n",
           attr.exp_device_cap_flags & IBV_EXP_DEVICE_DC_INFO ? "yes" : "no",
           n < 0 ? "refused" : "polled");
    return 0;
}
