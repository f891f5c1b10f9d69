/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lab 7: tag matching. bob's shared receive queue has a list of tags. A message whose tag is in the
 * list goes to the buffer of that entry; any other message goes to a plain receive.
 */
#include "lab.h"
#include <endian.h>
#include <infiniband/tm_types.h>

#define ENTRY_AT   4096  /* where the buffer of the list's entry is in bob's memory */
#define RECEIVE_AT 1024  /* where the plain receives are */
#define LARGE_AT   16384 /* alice's large message */
#define LARGE      20000
#define HEADER     ((uint32_t)sizeof(struct ibv_tmh))

static struct end *alice, *bob;
static struct ibv_cq_ex *bob_cq;
static struct ibv_srq *srq;
static unsigned unexpected; /* messages that came unexpected and that bob has seen */

/* Waits for a completion of bob, and prints what it says about tags. Returns its flags. */
static unsigned bob_waits(void)
{
    double give_up = lab_ms() + LAB_SECONDS * 1e3;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info = {0};

    while (ibv_start_poll(bob_cq, &attr)) {
        lab_check(lab_ms() > give_up ? ETIMEDOUT : 0, "get a completion");
    }
    unsigned flags = ibv_wc_read_wc_flags(bob_cq);
    enum ibv_wc_opcode opcode = ibv_wc_read_opcode(bob_cq);
    const char *what = opcode == IBV_WC_TM_ADD        ? "the entry is in the list"
                       : opcode == IBV_WC_TM_NO_TAG   ? "a message without a tag"
                       : flags & IBV_WC_TM_MATCH      ? "the entry is taken by a message"
                       : flags & IBV_WC_TM_DATA_VALID ? "the data of the message is there"
                                                      : "an unexpected message";
    printf("bob: work request %d: %s: %s", (int)bob_cq->wr_id, ibv_wc_status_str(bob_cq->status),
           what);
    if (flags & IBV_WC_TM_MATCH) {
        ibv_wc_read_tm_info(bob_cq, &info);
        printf(", tag %u", (unsigned)info.tag);
    }
    printf("\n");
    ibv_end_poll(bob_cq);
    return flags;
}

static void make_list(void)
{
    struct ibv_cq_init_attr_ex cq = {.cqe = 64,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};

    bob_cq = ibv_create_cq_ex(bob->ctx, &cq);
    lab_check(bob_cq ? 0 : errno, "create an extended completion queue");
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 16, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ |
                                                     IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .cq = ibv_cq_ex_to_cq(bob_cq),
                                        .pd = bob->pd,
                                        .tm_cap = {.max_num_tags = 16, .max_ops = 16}};

    srq = ibv_create_srq_ex(bob->ctx, &init);
    lab_check(srq ? 0 : errno, "create a shared receive queue with tags");
    for (int i = 0; i < 4; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)bob->buf + RECEIVE_AT + i * 256,
                              .length = 256,
                              .lkey = bob->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        lab_check(ibv_post_srq_recv(srq, &wr, &bad), "post a receive");
    }
}

static void expect_tag(uint64_t tag, uint64_t wr_id)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)bob->buf + ENTRY_AT, .length = LARGE, .lkey = bob->mr->lkey};
    struct ibv_ops_wr wr = {.wr_id = wr_id + 100,
                            .opcode = IBV_WR_TAG_ADD,
                            .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
                            .tm = {.unexpected_cnt = unexpected,
                                   .add = {.recv_wr_id = wr_id,
                                           .sg_list = &sge,
                                           .num_sge = 1,
                                           .tag = tag,
                                           .mask = ~0ull}}},
                      *bad;

    lab_check(ibv_post_srq_ops(srq, &wr, &bad), "post a tag");
    bob_waits();
}

/* A message has a header with its tag in front of its data. */
static struct ibv_tmh *header(uint8_t operation, uint64_t tag)
{
    struct ibv_tmh *tmh = (void *)alice->buf;

    *tmh = (struct ibv_tmh){.opcode = operation, .tag = htobe64(tag)};
    return tmh;
}

static void send_eager(uint64_t tag, const char *text, uint64_t wr_id)
{
    strcpy((char *)(header(IBV_TMH_EAGER, tag) + 1), text);
    lab_post(alice, IBV_WR_SEND, wr_id, 0, HEADER + 32, NULL, 0);
    lab_wait(alice);
}

/* Announces LARGE bytes: the receiver's device fetches them with a READ, and then says so. */
static void send_rendezvous(uint64_t tag, uint64_t wr_id)
{
    struct ibv_rvh *rvh = (void *)(header(IBV_TMH_RNDV, tag) + 1);

    *rvh = (struct ibv_rvh){.va = htobe64((uintptr_t)alice->buf + LARGE_AT),
                            .rkey = htobe32(alice->mr->rkey),
                            .len = htobe32(LARGE)};
    lab_post_recv(alice, wr_id + 1, 512, 256); /* for the notice that the data was fetched */
    lab_post(alice, IBV_WR_SEND, wr_id, 0, HEADER + (uint32_t)sizeof(*rvh), NULL, 0);
    lab_wait(alice);
    lab_wait(alice);
}

int main(void)
{
    alice = lab_open("alice", 0);
    bob = lab_open("bob", 1);
    make_list();
    lab_make_qp(alice, NULL);
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = bob->pd,
                                       .send_cq = ibv_cq_ex_to_cq(bob_cq),
                                       .recv_cq = ibv_cq_ex_to_cq(bob_cq),
                                       .srq = srq,
                                       .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    bob->qp = ibv_create_qp_ex(bob->ctx, &init);
    lab_check(bob->qp ? 0 : errno, "create a queue pair with tags");
    lab_connect_qp(alice->qp, bob->qp->qp_num, bob, (struct lab_retries)LAB_RETRIES);
    lab_connect_qp(bob->qp, alice->qp->qp_num, alice, (struct lab_retries)LAB_RETRIES);

    printf("-- tag 7 is expected\n");
    expect_tag(7, 1007);
    send_eager(7, "seven", 1);
    while (!(bob_waits() & IBV_WC_TM_DATA_VALID)) {
    }
    printf("   the entry's buffer has: %s\n", bob->buf + ENTRY_AT);

    printf("-- tag 8 is not\n");
    send_eager(8, "eight", 2);
    bob_waits();
    unexpected++;
    printf("   the receive has: %s\n", bob->buf + RECEIVE_AT + HEADER);

    printf("-- a large message with tag 9 is announced\n");
    memset(alice->buf + LARGE_AT, 'L', LARGE);
    expect_tag(9, 1009);
    send_rendezvous(9, 3);
    while (!(bob_waits() & IBV_WC_TM_DATA_VALID)) {
    }
    printf("   the last byte is '%c'\n", bob->buf[ENTRY_AT + LARGE - 1]);
    return 0;
}
