/* SPDX-License-Identifier: BSD-2-Clause */
/* Out-of-order placement, old: the queue pair asks for it by IBV_EXP_QP_OOO_RW_DATA_PLACEMENT. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static void loop_in_any_order(struct ibv_qp *qp)
{
    struct ibv_exp_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = BOTH_RIGHTS,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = both_towards_itself(qp->context),
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };

    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT |
                                IBV_EXP_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_AV | IBV_EXP_QP_PATH_MTU |
                                IBV_EXP_QP_DEST_QPN | IBV_EXP_QP_RQ_PSN |
                                IBV_EXP_QP_MAX_DEST_RD_ATOMIC | IBV_EXP_QP_MIN_RNR_TIMER |
                                IBV_EXP_QP_OOO_RW_DATA_PLACEMENT));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_TIMEOUT | IBV_EXP_QP_RETRY_CNT |
                                IBV_EXP_QP_RNR_RETRY | IBV_EXP_QP_SQ_PSN |
                                IBV_EXP_QP_MAX_QP_RD_ATOMIC));
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_OOO_CAPS};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    NEED(attr.ooo_caps.rc_caps & IBV_EXP_OOO_SUPPORT_RW_DATA_PLACEMENT);
    loop_in_any_order(qp);
    for (uint32_t i = 0; i < 8; i++) {
        both_write(qp, both_from(&b) + i * 4000, 4000, b.mr->lkey,
                   (uintptr_t)both_to(&b) + i * 4000, b.mr->rkey);
    }
    for (unsigned i = 0; i < 8; i++) {
        both_done(b.cq);
    }
    printf("8 WRITEs, data %s\n", both_same(&b, 32000) ? "right" : "wrong");
    return 0;
}
