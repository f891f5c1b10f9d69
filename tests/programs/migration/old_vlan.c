/* SPDX-License-Identifier: BSD-2-Clause */
/* VLAN offload, old: vlan_offloads of ibv_exp_create_wq(). The queue serves one queue pair. */
#include "tests/programs/migration/old.h"

static struct ibv_exp_wq *strip_queue(struct both *b)
{
    struct ibv_exp_wq_init_attr attr = {
        .wq_type = IBV_EXP_WQT_RQ,
        .max_recv_wr = 8,
        .max_recv_sge = 1,
        .pd = b->pd,
        .cq = b->cq,
        .comp_mask = IBV_EXP_CREATE_WQ_VLAN_OFFLOADS,
        .vlan_offloads = IBV_EXP_RECEIVE_WQ_CVLAN_STRIP,
    };
    struct ibv_exp_wq_attr ready = {.attr_mask = IBV_EXP_WQ_ATTR_STATE,
                                    .wq_state = IBV_EXP_WQS_RDY};
    struct ibv_exp_wq *wq = ibv_exp_create_wq(b->ctx, &attr);

    NEED(wq && !ibv_exp_modify_wq(wq, &ready));
    return wq;
}

static struct ibv_qp *spread(struct both *b, struct ibv_exp_rwq_ind_table *table)
{
    uint8_t key[40] = {1};
    struct ibv_exp_rx_hash_conf hash = {.rwq_ind_tbl = table,
                                        .rx_hash_function = IBV_EXP_RX_HASH_FUNC_TOEPLITZ,
                                        .rx_hash_key_len = sizeof(key),
                                        .rx_hash_key = key};
    struct ibv_exp_qp_init_attr attr = {.qp_type = IBV_QPT_RAW_PACKET,
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD |
                                                     IBV_EXP_QP_INIT_ATTR_RX_HASH |
                                                     IBV_EXP_QP_INIT_ATTR_PORT,
                                        .pd = b->pd,
                                        .rx_hash_conf = &hash,
                                        .port_num = 1};
    struct ibv_qp *qp;

    NEED(qp = ibv_exp_create_qp(b->ctx, &attr));
    return qp;
}

int main(void)
{
    struct both from = both_begin(0), to = both_begin(1);
    struct ibv_exp_wq *wq = strip_queue(&to);
    struct ibv_exp_rwq_ind_table_init_attr one = {.pd = to.pd, .ind_tbl = &wq};
    struct ibv_exp_rwq_ind_table *table = ibv_exp_create_rwq_ind_table(to.ctx, &one);
    enum ibv_exp_query_intf_status status;
    struct ibv_exp_release_intf_params none = {0};
    struct ibv_exp_query_intf_params params = {.intf = IBV_EXP_INTF_WQ, .obj = wq};
    struct ibv_exp_wq_family *family = ibv_exp_query_intf(to.ctx, &params, &status);
    struct ibv_sge sge = {(uintptr_t)to.buf, 2000, to.mr->lkey};
    struct ibv_exp_flow *flow;
    struct ibv_qp *qp;

    NEED(table);
    qp = spread(&to, table);
    flow = old_take_all(&to, qp);
    NEED(family && !family->recv_burst(wq, &sge, 1));
    both_send_tagged(&from, &to);
    printf("%u bytes", both_done(to.cq).byte_len);
    printf(", the tag was taken out: %s\n", to.buf[12] == 8 && !to.buf[13] ? "yes" : "no");
    NEED(!ibv_exp_release_intf(to.ctx, family, &none));
    NEED(!ibv_exp_destroy_flow(flow) && !ibv_destroy_qp(qp));
    NEED(!ibv_exp_destroy_rwq_ind_table(table) && !ibv_exp_destroy_wq(wq));
    return 0;
}
