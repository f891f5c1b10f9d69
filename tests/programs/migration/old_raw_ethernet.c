/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw Ethernet, flow steering and checksum offload, old: ibv_exp_create_qp() (in old.c),
 * ibv_exp_create_flow(), IBV_EXP_SEND_IP_CSUM. Frames go from the first device to the second.
 */
#include <arpa/inet.h>
#include "tests/programs/migration/old.h"

static struct ibv_exp_flow *steer(struct both *b, struct ibv_qp *qp, uint16_t port)
{
    struct {
        struct ibv_exp_flow_attr attr;
        struct ibv_exp_flow_spec_eth eth;
        struct ibv_exp_flow_spec_ipv4 ip;
        struct ibv_exp_flow_spec_tcp_udp udp;
    } __attribute__((packed, aligned(8))) rule = {
        .attr = {.type = IBV_EXP_FLOW_ATTR_NORMAL,
                 .size = sizeof(rule),
                 .num_of_specs = 3,
                 .port = 1},
        .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
        .ip = {.type = IBV_EXP_FLOW_SPEC_IPV4, .size = sizeof(rule.ip)},
        .udp = {.type = IBV_EXP_FLOW_SPEC_UDP,
                .size = sizeof(rule.udp),
                .val.dst_port = htons(port),
                .mask.dst_port = 0xffff},
    };

    both_mac(b->ctx, rule.eth.val.dst_mac);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    return ibv_exp_create_flow(qp, (void *)&rule);
}

static void send_frame(struct both *from, struct ibv_qp *qp)
{
    struct ibv_sge sge = {(uintptr_t)from->buf, BOTH_FRAME, from->mr->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_SEND,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_IP_CSUM};
    struct ibv_exp_send_wr *bad;

    NEED(!ibv_exp_post_send(qp, &wr, &bad));
    both_done(from->cq);
}

int main(void)
{
    struct both from = both_begin(0), to = both_begin(1);
    struct ibv_qp *sender = old_raw(&from, 0), *receiver = old_raw(&to, 0);
    struct ibv_exp_flow *flow = steer(&to, receiver, 6000);
    struct ibv_exp_wc wc;

    NEED(flow);
    both_recv(receiver, to.buf, BOTH_FRAME, to.mr->lkey);
    both_frame(from.buf, &from, &to, 7000); /* for no rule */
    send_frame(&from, sender);
    both_frame(from.buf, &from, &to, 6000);
    send_frame(&from, sender);
    wc = old_done(to.cq);
    printf("%u bytes for port %u, payload %s\n", wc.byte_len, to.buf[36] << 8 | to.buf[37],
           memcmp(to.buf + 42, from.buf + 42, BOTH_FRAME - 42) ? "wrong" : "right");
    printf("sums: IP %04x, UDP %04x; checked by the device: %s\n", both_ip_sum(to.buf),
           both_udp_sum(to.buf),
           wc.exp_wc_flags & IBV_EXP_WC_RX_IP_CSUM_OK &&
                   wc.exp_wc_flags & IBV_EXP_WC_RX_TCP_UDP_CSUM_OK
               ? "yes"
               : "no");
    NEED(!ibv_exp_destroy_flow(flow));
    return 0;
}
