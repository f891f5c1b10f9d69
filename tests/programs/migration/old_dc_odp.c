/* SPDX-License-Identifier: BSD-2-Clause */
/* DC and on-demand paging, old: the capabilities of ibv_exp_query_device(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_ODP};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    NEED(attr.comp_mask & IBV_EXP_DEVICE_ATTR_ODP);
    printf("DC pages on demand: send %s, write %s, receive from an SRQ %s\n",
           attr.odp_caps.per_transport_caps.dc_odp_caps & IBV_EXP_ODP_SUPPORT_SEND ? "yes" : "no",
           attr.odp_caps.per_transport_caps.dc_odp_caps & IBV_EXP_ODP_SUPPORT_WRITE ? "yes" : "no",
           attr.odp_caps.per_transport_caps.dc_odp_caps & IBV_EXP_ODP_SUPPORT_SRQ_RECV ? "yes"
                                                                                       : "no");
    return 0;
}
