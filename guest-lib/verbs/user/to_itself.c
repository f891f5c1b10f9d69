/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects QPs of the library's own to themselves; see to_itself.h. */
#include "guest-lib/verbs/user/to_itself.h"

int hv_connect_to_itself(struct ibv_qp *qp, const struct ibv_qp_attr *chosen)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int err = ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    if (err) {
        return err;
    }
    attr = *chosen;
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = qp->qp_num;
    attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
    if (ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid)) {
        return errno ? errno : EINVAL;
    }
    err = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (err) {
        return err;
    }
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}
