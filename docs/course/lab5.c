/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lab 5: shared receive queues, and XRC.
 *
 * First, four queue pairs of bob take their receives from one shared queue. Then alice reaches two
 * shared queues of bob over a single XRC connection.
 */
#include "lab.h"

#define QPS  4
#define SLOT 256

static struct end *alice, *bob;

static void post_to(struct ibv_srq *srq, uint64_t wr_id)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)bob->buf + wr_id * SLOT, .length = SLOT, .lkey = bob->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    lab_check(ibv_post_srq_recv(srq, &wr, &bad), "post to the shared receive queue");
}

static void shared_queue(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(bob->pd, &init);
    struct ibv_qp *from[QPS];

    printf("-- %d connections, one shared receive queue\n", QPS);
    lab_check(srq ? 0 : errno, "create a shared receive queue");
    for (int i = 0; i < QPS; i++) {
        from[i] = lab_make_qp(alice, NULL);
        struct ibv_qp *to = lab_make_qp(bob, srq);
        lab_connect_qp(from[i], to->qp_num, bob, (struct lab_retries)LAB_RETRIES);
        lab_connect_qp(to, from[i]->qp_num, alice, (struct lab_retries)LAB_RETRIES);
    }
    for (int i = 0; i < QPS; i++) {
        post_to(srq, i);
    }
    for (int i = QPS - 1; i >= 0; i--) { /* the last connection sends first */
        alice->qp = from[i];
        sprintf((char *)alice->buf, "from connection %d", i);
        lab_post(alice, IBV_WR_SEND, 100 + i, 0, 32, NULL, 0);
        lab_wait(alice);
        struct ibv_wc wc = lab_wait(bob);
        printf("   receive %d has: %s\n", (int)wc.wr_id, bob->buf + wc.wr_id * SLOT);
    }
}

static struct ibv_srq *make_xrc_srq(struct ibv_xrcd *domain)
{
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 16, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                                                     IBV_SRQ_INIT_ATTR_PD,
                                        .srq_type = IBV_SRQT_XRC,
                                        .xrcd = domain,
                                        .cq = bob->cq,
                                        .pd = bob->pd};
    struct ibv_srq *srq = ibv_create_srq_ex(bob->ctx, &init);

    lab_check(srq ? 0 : errno, "create an XRC shared receive queue");
    return srq;
}

static void extended_connection(void)
{
    struct ibv_xrcd_init_attr own = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100};
    struct ibv_xrcd *domain = ibv_open_xrcd(bob->ctx, &own);

    printf("-- one connection, two shared receive queues\n");
    lab_check(domain ? 0 : errno, "open an XRC domain");
    struct ibv_srq *srq[2] = {make_xrc_srq(domain), make_xrc_srq(domain)};
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct ibv_qp *to = ibv_create_qp_ex(bob->ctx, &target);
    lab_check(to ? 0 : errno, "create the XRC target");
    struct ibv_qp_init_attr_ex initiator = {.qp_type = IBV_QPT_XRC_SEND,
                                            .comp_mask = IBV_QP_INIT_ATTR_PD,
                                            .pd = alice->pd,
                                            .send_cq = alice->cq,
                                            .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    struct ibv_qp *from = ibv_create_qp_ex(alice->ctx, &initiator);
    lab_check(from ? 0 : errno, "create the XRC initiator");
    lab_connect_qp(to, from->qp_num, alice, (struct lab_retries)LAB_RETRIES);
    lab_connect_qp(from, to->qp_num, bob, (struct lab_retries)LAB_RETRIES);

    for (int i = 0; i < 2; i++) {
        post_to(srq[i], 10 + i);
    }
    for (int i = 1; i >= 0; i--) {
        uint32_t number;
        lab_check(ibv_get_srq_num(srq[i], &number), "get the number of the shared receive queue");
        sprintf((char *)alice->buf, "for shared queue %d", i);
        struct ibv_sge sge = {.addr = (uintptr_t)alice->buf, .length = 32, .lkey = alice->mr->lkey};
        struct ibv_send_wr wr = {.wr_id = 200 + i,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .qp_type.xrc.remote_srqn = number},
                           *bad;
        lab_check(ibv_post_send(from, &wr, &bad), "post a send");
        lab_wait(alice);
        struct ibv_wc wc = lab_wait(bob);
        printf("   receive %d has: %s\n", (int)wc.wr_id, bob->buf + wc.wr_id * SLOT);
    }
}

int main(void)
{
    alice = lab_open("alice", 0);
    bob = lab_open("bob", 1);
    shared_queue();
    extended_connection();
    return 0;
}
