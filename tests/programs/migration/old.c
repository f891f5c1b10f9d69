/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements old.h. */
#include "tests/programs/migration/old.h"
#include <time.h>

struct ibv_exp_wc old_done(struct ibv_cq *cq)
{
    time_t end = time(NULL) + BOTH_SECONDS;
    struct ibv_exp_wc wc;
    int n;

    while (!(n = ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc)))) {
        NEED(time(NULL) < end);
    }
    NEED(n == 1 && wc.status == IBV_WC_SUCCESS);
    return wc;
}

struct ibv_exp_qp_init_attr old_rc(const struct both *b, struct ibv_cq *cq)
{
    return (struct ibv_exp_qp_init_attr){
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
        .pd = b->pd,
    };
}

struct ibv_qp *old_raw(const struct both *b, uint16_t max_tso_header)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask =
            IBV_EXP_QP_INIT_ATTR_PD | (max_tso_header ? IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER : 0),
        .pd = b->pd,
        .max_tso_header = max_tso_header,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &attr);

    NEED(qp);
    both_start_raw(qp);
    return qp;
}

struct ibv_exp_flow *old_take_all(const struct both *b, struct ibv_qp *qp)
{
    struct {
        struct ibv_exp_flow_attr attr;
        struct ibv_exp_flow_spec_eth eth;
    } __attribute__((packed, aligned(8)))
    rule = {.attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
            .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    struct ibv_exp_flow *flow;

    both_mac(b->ctx, rule.eth.val.dst_mac);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    NEED(flow = ibv_exp_create_flow(qp, (void *)&rule));
    return flow;
}

struct ibv_qp *old_initiator(const struct both *b, uint64_t key, uint8_t retries)
{
    struct ibv_exp_qp_init_attr init = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 16, .max_send_sge = 1},
        .qp_type = IBV_EXP_QPT_DC_INI,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
        .pd = b->pd,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &init);
    struct ibv_exp_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .dct_key = key,
        .path_mtu = IBV_MTU_1024,
        .ah_attr = both_towards_itself(b->ctx),
        .timeout = 14,
        .retry_cnt = retries,
        .rnr_retry = retries,
        .max_rd_atomic = 1,
    };

    NEED(qp);
    NEED(!ibv_exp_modify_qp(
        qp, &attr, IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT | IBV_EXP_QP_DC_KEY));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_STATE | IBV_EXP_QP_PATH_MTU | IBV_EXP_QP_AV));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_TIMEOUT | IBV_EXP_QP_RETRY_CNT |
                                IBV_EXP_QP_RNR_RETRY | IBV_EXP_QP_MAX_QP_RD_ATOMIC));
    return qp;
}

struct ibv_exp_dct *old_target(const struct both *b, struct ibv_cq *cq, struct ibv_srq *srq,
                               uint64_t key)
{
    struct ibv_exp_dct_init_attr attr = {
        .pd = b->pd,
        .cq = cq,
        .srq = srq,
        .dc_key = key,
        .port = 1,
        .access_flags = IBV_ACCESS_LOCAL_WRITE,
        .min_rnr_timer = 12,
        .mtu = IBV_MTU_1024,
        .gid_index = 1,
        .hop_limit = 1,
    };
    struct ibv_exp_dct *dct = ibv_exp_create_dct(b->ctx, &attr);

    NEED(dct);
    return dct;
}
