/* SPDX-License-Identifier: BSD-2-Clause */
/* A bench for the receive queues of experimental verbs: exp_wq_bench.h. */
#include <check.h>
#include <endian.h>
#include <string.h>
#include "tests/verbs/exp_wq_bench.h"

struct verbs_table *v;
struct ibv_cq *cq[2];
struct ibv_mr *mr[2];

void setup(void)
{
    v = verbs_table_new();
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(i ? v->b : v->a, 63, NULL, NULL, 0);
        mr[i] = table_mr_new(v, i);
        ck_assert_ptr_nonnull(cq[i]);
    }
}

void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        table_mr_free(mr[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
    }
    verbs_table_free(v);
}

struct ibv_exp_wc wc_of(struct ibv_cq *of)
{
    struct ibv_exp_wc wc = {.wr_id = UINT64_MAX};

    for (int i = 0; i < 100 && !ibv_exp_poll_cq(of, 1, &wc, sizeof(wc)); i++) {
        table_wait(v);
    }
    ck_assert_uint_ne(wc.wr_id, UINT64_MAX);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    return wc;
}

void *family_on(struct ibv_context *context, uint32_t which, uint32_t version, void *obj)
{
    struct ibv_exp_query_intf_params params = {.intf = which, .intf_version = version, .obj = obj};
    enum ibv_exp_query_intf_status status;
    void *found = ibv_exp_query_intf(context, &params, &status);

    ck_assert_int_eq(status, IBV_EXP_INTF_STAT_OK);
    ck_assert_ptr_nonnull(found);
    return found;
}

void *family_of(uint32_t which, uint32_t version, void *obj)
{
    return family_on(v->b, which, version, obj);
}

void *family(uint32_t which, void *obj)
{
    return family_of(which, 0, obj);
}

struct ibv_exp_wq_init_attr wq_attr(void)
{
    return (struct ibv_exp_wq_init_attr){.wq_type = IBV_EXP_WQT_RQ,
                                         .max_recv_wr = 8,
                                         .max_recv_sge = 1,
                                         .pd = v->hosts->host[1].pd,
                                         .cq = cq[1]};
}

struct ibv_exp_wq *wq_with(struct ibv_exp_wq_init_attr attr)
{
    struct ibv_exp_wq_attr ready = {.attr_mask = IBV_EXP_WQ_ATTR_STATE,
                                    .wq_state = IBV_EXP_WQS_RDY};
    struct ibv_exp_wq *wq = ibv_exp_create_wq(v->b, &attr);

    ck_assert_ptr_nonnull(wq);
    ck_assert_int_eq(wq->state, IBV_EXP_WQS_RESET);
    ck_assert_int_eq(ibv_exp_modify_wq(wq, &ready), 0);
    ck_assert_int_eq(wq->state, IBV_EXP_WQS_RDY);
    return wq;
}

struct ibv_exp_wq *wq_new(void)
{
    return wq_with(wq_attr());
}

struct ibv_exp_rwq_ind_table *table_of(struct ibv_exp_wq *wq)
{
    struct ibv_exp_rwq_ind_table_init_attr attr = {.pd = v->hosts->host[1].pd, .ind_tbl = &wq};
    struct ibv_exp_rwq_ind_table *table = ibv_exp_create_rwq_ind_table(v->b, &attr);

    ck_assert_ptr_nonnull(table);
    return table;
}

struct ibv_qp *hashed_with(struct ibv_exp_rwq_ind_table *table, struct ibv_cq *send_cq,
                           struct ibv_cq *recv_cq, struct ibv_srq *srq, struct ibv_qp_cap cap)
{
    uint8_t key[40] = {1};
    struct ibv_exp_rx_hash_conf hash = {.rx_hash_function = IBV_EXP_RX_HASH_FUNC_TOEPLITZ,
                                        .rx_hash_key_len = sizeof(key),
                                        .rx_hash_key = key,
                                        .rwq_ind_tbl = table};
    struct ibv_exp_qp_init_attr attr = {.send_cq = send_cq,
                                        .recv_cq = recv_cq,
                                        .srq = srq,
                                        .cap = cap,
                                        .qp_type = IBV_QPT_RAW_PACKET,
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD |
                                                     IBV_EXP_QP_INIT_ATTR_RX_HASH |
                                                     IBV_EXP_QP_INIT_ATTR_PORT,
                                        .pd = v->hosts->host[1].pd,
                                        .rx_hash_conf = &hash,
                                        .port_num = 1};

    return ibv_exp_create_qp(v->b, &attr);
}

struct ibv_qp *hashed(struct ibv_exp_rwq_ind_table *table)
{
    return hashed_with(table, NULL, NULL, NULL, (struct ibv_qp_cap){0});
}

struct rule rule_for(uint16_t ether_type)
{
    struct rule rule = {
        .attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
        .eth = {.type = IBV_EXP_FLOW_SPEC_ETH,
                .size = sizeof(rule.eth),
                .val.ether_type = htobe16(ether_type),
                .mask.ether_type = 0xffff},
    };

    memcpy(rule.eth.val.dst_mac, v->hosts->host[1].config.mac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    return rule;
}

struct ibv_qp *sender(void)
{
    struct ibv_exp_qp_init_attr attr = {.send_cq = cq[0],
                                        .recv_cq = cq[0],
                                        .cap = {8, 8, 2, 1, FRAME},
                                        .qp_type = IBV_QPT_RAW_PACKET,
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                        .pd = v->hosts->host[0].pd};
    struct ibv_qp *qp = ibv_exp_create_qp(v->a, &attr);

    ck_assert_ptr_nonnull(qp);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
        struct ibv_exp_qp_attr to = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

        ck_assert_int_eq(ibv_exp_modify_qp(
                             qp, &to, IBV_EXP_QP_STATE | (s == IBV_QPS_INIT ? IBV_EXP_QP_PORT : 0)),
                         0);
    }
    return qp;
}

void post_frame(struct ibv_qp *qp, uint16_t ether_type)
{
    uint8_t *frame = mr[0]->addr;
    struct ibv_sge sge = {(uintptr_t)frame, FRAME, mr[0]->lkey};
    struct ibv_exp_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .exp_opcode = IBV_EXP_WR_SEND,
                                       .exp_send_flags = IBV_EXP_SEND_SIGNALED};

    memset(frame, (uint8_t)ether_type, FRAME);
    memcpy(frame, v->hosts->host[1].config.mac, 6);
    memcpy(frame + 6, v->hosts->host[0].config.mac, 6);
    frame[12] = (uint8_t)(ether_type >> 8);
    frame[13] = (uint8_t)ether_type;
    ck_assert_int_eq(ibv_exp_post_send(qp, &wr, &bad), 0);
}

void send_frame(struct ibv_qp *qp, uint16_t ether_type)
{
    post_frame(qp, ether_type);
    wc_of(cq[0]);
}
