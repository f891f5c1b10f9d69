/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP segmentation offload, new: max_tso_header, IBV_WR_TSO. */
#include "tests/programs/migration/new.h"

#define HEADERS 54 /* Ethernet, IPv4, TCP */
#define PAYLOAD 3000
#define MSS     1000

int main(void)
{
    struct both from = both_begin(0), to = both_begin(1);
    struct ibv_qp *sender = new_raw(&from, HEADERS), *receiver = new_raw(&to, 0);
    struct ibv_device_attr_ex device;
    uint8_t headers[HEADERS];
    struct ibv_sge sge = {(uintptr_t)from.buf, PAYLOAD, from.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_TSO,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM,
                             .tso = {headers, HEADERS, MSS}};
    struct ibv_send_wr *bad;
    struct ibv_flow *flow;

    NEED(!ibv_query_device_ex(from.ctx, NULL, &device) && device.tso_caps.max_tso >= PAYLOAD);
    flow = new_take_all(&to, receiver);
    both_tcp_headers(headers, &from, &to);
    for (unsigned i = 0; i < 3; i++) {
        both_recv(receiver, to.buf + 2000 * i, 2000, to.mr->lkey);
    }
    NEED(!ibv_post_send(sender, &wr, &bad));
    both_done(from.cq);
    for (unsigned i = 0; i < 3; i++) {
        both_print_segment(both_done(to.cq).byte_len, to.buf + 2000 * i, from.buf + MSS * i);
    }
    NEED(!ibv_destroy_flow(flow));
    return 0;
}
