/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP segmentation offload, old: max_tso_header, IBV_EXP_WR_TSO. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define HEADERS 54 /* Ethernet, IPv4, TCP */
#define PAYLOAD 3000
#define MSS     1000

static struct ibv_qp *raw(struct both *b)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER,
        .pd = b->pd,
        .max_tso_header = HEADERS,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &attr);

    NEED(qp);
    both_start_raw(qp);
    return qp;
}

int main(void)
{
    struct both from = both_begin(0), to = both_begin(1);
    struct ibv_qp *sender = raw(&from), *receiver = raw(&to);
    struct {
        struct ibv_exp_flow_attr attr;
        struct ibv_exp_flow_spec_eth eth;
    } __attribute__((packed, aligned(8)))
    rule = {.attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
            .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_TSO_CAPS};
    uint8_t headers[HEADERS];
    struct ibv_sge sge = {(uintptr_t)from.buf, PAYLOAD, from.mr->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_TSO,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_IP_CSUM,
                                 .tso = {headers, HEADERS, MSS}};
    struct ibv_exp_send_wr *bad;
    struct ibv_exp_flow *flow;

    NEED(!ibv_exp_query_device(from.ctx, &device) && device.tso_caps.max_tso >= PAYLOAD);
    both_mac(to.ctx, rule.eth.val.dst_mac);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    NEED(flow = ibv_exp_create_flow(receiver, (void *)&rule));
    both_tcp_headers(headers, &from, &to);
    for (unsigned i = 0; i < 3; i++) {
        both_recv(receiver, to.buf + 2000 * i, 2000, to.mr->lkey);
    }
    NEED(!ibv_exp_post_send(sender, &wr, &bad));
    both_done(from.cq);
    for (unsigned i = 0; i < 3; i++) {
        both_print_segment(both_done(to.cq).byte_len, to.buf + 2000 * i, from.buf + MSS * i);
    }
    NEED(!ibv_exp_destroy_flow(flow));
    return 0;
}
