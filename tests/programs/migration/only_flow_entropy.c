/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow entropy of ibv_exp_modify_qp(), which mlx5 accepts. mlx4 chose the port of a bond by it. On
 * RoCE v2 the path follows the UDP source port (mlx5dv_modify_qp_udp_sport()).
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                                   .port_num = 1,
                                   .qp_access_flags = BOTH_RIGHTS,
                                   .comp_mask = IBV_EXP_QP_ATTR_FLOW_ENTROPY,
                                   .flow_entropy = 3};

    printf("flow entropy: %d\n",
           ibv_exp_modify_qp(qp, &attr,
                             IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT |
                                 IBV_EXP_QP_ACCESS_FLAGS | IBV_EXP_QP_FLOW_ENTROPY));
    return 0;
}
