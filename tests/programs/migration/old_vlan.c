/* SPDX-License-Identifier: BSD-2-Clause */
/* VLAN offload, old: vlan_offloads of ibv_exp_create_wq(). The queue serves one queue pair. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

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
    struct {
        struct ibv_exp_flow_attr attr;
        struct ibv_exp_flow_spec_eth eth;
    } __attribute__((packed, aligned(8)))
    rule = {.attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
            .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    enum ibv_exp_query_intf_status status;
    struct ibv_exp_release_intf_params none = {0};
    struct ibv_exp_query_intf_params params = {.intf = IBV_EXP_INTF_WQ, .obj = wq};
    struct ibv_exp_wq_family *family = ibv_exp_query_intf(to.ctx, &params, &status);
    struct ibv_sge sge = {(uintptr_t)to.buf, 2000, to.mr->lkey};
    struct ibv_exp_flow *flow;
    struct ibv_qp *qp;

    NEED(table);
    qp = spread(&to, table);
    both_mac(to.ctx, rule.eth.val.dst_mac);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    NEED(flow = ibv_exp_create_flow(qp, (void *)&rule));
    NEED(family && !family->recv_burst(wq, &sge, 1));
    both_send_tagged(&from, &to);
    printf("%u bytes", both_done(to.cq).byte_len);
    printf(", the tag was taken out: %s\n", to.buf[12] == 8 && !to.buf[13] ? "yes" : "no");
    NEED(!ibv_exp_release_intf(to.ctx, family, &none) && !ibv_exp_destroy_flow(flow));
    NEED(!ibv_destroy_qp(qp) && !ibv_exp_destroy_rwq_ind_table(table) && !ibv_exp_destroy_wq(wq));
    return 0;
}
