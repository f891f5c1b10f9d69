/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements new.h. */
#include "tests/programs/migration/new.h"
#include <time.h>

void new_done(struct ibv_cq_ex *cq)
{
    time_t end = time(NULL) + BOTH_SECONDS;
    struct ibv_poll_cq_attr attr = {0};
    int err;

    while ((err = ibv_start_poll(cq, &attr)) == ENOENT) {
        NEED(time(NULL) < end);
    }
    NEED(!err && cq->status == IBV_WC_SUCCESS);
}

struct ibv_qp *new_raw(const struct both *b, uint16_t max_tso_header)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (max_tso_header ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0),
        .pd = b->pd,
        .max_tso_header = max_tso_header,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(b->ctx, &attr);

    NEED(qp);
    both_start_raw(qp);
    return qp;
}

struct ibv_flow *new_take_all(const struct both *b, struct ibv_qp *qp)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } __attribute__((packed, aligned(8)))
    rule = {.attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
            .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    struct ibv_flow *flow;

    both_mac(b->ctx, rule.eth.val.dst_mac);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    NEED(flow = ibv_create_flow(qp, (void *)&rule));
    return flow;
}
