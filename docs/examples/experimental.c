/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with experimental verbs: it asks which features the first device has, and posts a
 * request that sends nothing. docs/howto/experimental-verbs.md says how to compile and run it.
 */
#include <infiniband/verbs_exp.h>
#include <stdio.h>
#include <stdlib.h>

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            perror(#condition);                                                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* From RESET to RTS, connected to itself, by the address with index 1: RoCE v2 over IPv4. */
static void connect_to_itself(struct ibv_qp *qp)
{
    struct ibv_exp_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}},
    };

    NEED(!ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid));
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT |
                                IBV_EXP_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_AV | IBV_EXP_QP_PATH_MTU |
                                IBV_EXP_QP_DEST_QPN | IBV_EXP_QP_RQ_PSN |
                                IBV_EXP_QP_MAX_DEST_RD_ATOMIC | IBV_EXP_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_TIMEOUT | IBV_EXP_QP_RETRY_CNT |
                                IBV_EXP_QP_RNR_RETRY | IBV_EXP_QP_SQ_PSN |
                                IBV_EXP_QP_MAX_QP_RD_ATOMIC));
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};
    struct ibv_exp_qp_init_attr init = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
    };
    struct ibv_exp_send_wr *bad,
        nop = {.wr_id = 5, .exp_opcode = IBV_EXP_WR_NOP, .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    struct ibv_exp_wc wc;
    struct ibv_qp *qp;
    int n;

    NEED(ctx);
    NEED(!ibv_exp_query_device(ctx, &device));
    printf("%s: cross channel: %s, erasure codes: %s\n", ibv_get_device_name(list[0]),
           device.exp_device_cap_flags & IBV_EXP_DEVICE_CROSS_CHANNEL ? "yes" : "no",
           device.exp_device_cap_flags & IBV_EXP_DEVICE_EC_OFFLOAD ? "yes" : "no");
    NEED(init.pd = ibv_alloc_pd(ctx));
    NEED(init.send_cq = init.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
    NEED(qp = ibv_exp_create_qp(ctx, &init));
    connect_to_itself(qp);
    NEED(!ibv_exp_post_send(qp, &nop, &bad));
    while (!(n = ibv_exp_poll_cq(init.send_cq, 1, &wc, sizeof(wc)))) {
    }
    NEED(n == 1);
    printf("NOP: request %d, %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
    NEED(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq) && !ibv_dealloc_pd(init.pd));
    NEED(!ibv_close_device(ctx));
    ibv_free_device_list(list);
    return 0;
}
