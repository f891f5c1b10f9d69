/* SPDX-License-Identifier: BSD-2-Clause */
/* VLAN offload, new: IBV_WQ_FLAGS_CVLAN_STRIPPING of ibv_create_wq(). */
#include "tests/programs/migration/new.h"

static struct ibv_wq *strip_queue(struct both *b)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ,
        .max_wr = 8,
        .max_sge = 1,
        .pd = b->pd,
        .cq = b->cq,
        .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
        .create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING,
    };
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    struct ibv_wq *wq = ibv_create_wq(b->ctx, &attr);

    NEED(wq && !ibv_modify_wq(wq, &ready));
    return wq;
}

static struct ibv_qp *spread(struct both *b, struct ibv_rwq_ind_table *table)
{
    uint8_t key[40] = {1};
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE,
        .pd = b->pd,
        .rwq_ind_tbl = table,
        .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                         .rx_hash_key_len = sizeof(key),
                         .rx_hash_key = key},
    };
    struct ibv_qp *qp;

    NEED(qp = ibv_create_qp_ex(b->ctx, &attr));
    return qp;
}

int main(void)
{
    struct both from = both_begin(0), to = both_begin(1);
    struct ibv_wq *wq = strip_queue(&to);
    struct ibv_rwq_ind_table_init_attr one = {.ind_tbl = &wq};
    struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(to.ctx, &one);
    struct ibv_sge sge = {(uintptr_t)to.buf, 2000, to.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_flow *flow;
    struct ibv_qp *qp;

    NEED(table);
    qp = spread(&to, table);
    flow = new_take_all(&to, qp);
    NEED(!ibv_post_wq_recv(wq, &recv, &bad));
    both_send_tagged(&from, &to);
    printf("%u bytes", both_done(to.cq).byte_len);
    printf(", the tag was taken out: %s\n", to.buf[12] == 8 && !to.buf[13] ? "yes" : "no");
    NEED(!ibv_destroy_flow(flow) && !ibv_destroy_qp(qp));
    NEED(!ibv_destroy_rwq_ind_table(table) && !ibv_destroy_wq(wq));
    return 0;
}
