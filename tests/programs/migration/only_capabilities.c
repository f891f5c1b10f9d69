/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities that a card over RoCE on this machine does not have. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS |
                                                    IBV_EXP_DEVICE_ATTR_MAX_DCT};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("CAPI, which needs a POWER machine: %s\n",
           attr.exp_device_cap_flags & IBV_EXP_DEVICE_CAPI ? "yes" : "no");
    printf("dynamic connections: %s\n",
           attr.exp_device_cap_flags & IBV_EXP_DEVICE_DC_TRANSPORT && attr.max_dct > 0 ? "yes"
                                                                                       : "no");
    return 0;
}
