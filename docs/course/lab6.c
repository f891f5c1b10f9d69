/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lab 6: dynamic connections (DC). alice has one initiator, bob has three targets. Nobody connects
 * them: each work request names its target.
 */
#include "lab.h"
#include <infiniband/mlx5dv.h>

#define TARGETS 3
#define KEY     0x5ec2e7ull /* a target accepts requests with its key alone */
#define SLOT    256

static struct end *alice, *bob;

static struct ibv_srq *make_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(bob->pd, &init);

    lab_check(srq ? 0 : errno, "create a shared receive queue");
    for (int i = 0; i < TARGETS; i++) {
        struct ibv_sge sge = {
            .addr = (uintptr_t)bob->buf + i * SLOT, .length = SLOT, .lkey = bob->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

        lab_check(ibv_post_srq_recv(srq, &wr, &bad), "post to the shared receive queue");
    }
    return srq;
}

static void to_state(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    lab_check(ibv_modify_qp(qp, &attr, mask), "modify a DC queue pair");
}

/* A target: it receives, and is ready in RTR. */
static struct ibv_qp *make_target(struct ibv_srq *srq)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = bob->pd,
                                       .send_cq = bob->cq,
                                       .recv_cq = bob->cq,
                                       .srq = srq};
    struct mlx5dv_qp_init_attr dc = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = KEY}};
    struct ibv_qp *dct = mlx5dv_create_qp(bob->ctx, &init, &dc);

    lab_check(dct ? 0 : errno, "create a DC target");
    to_state(dct, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    to_state(dct,
             (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                  .path_mtu = IBV_MTU_1024,
                                  .min_rnr_timer = 12,
                                  .ah_attr = {.is_global = 1,
                                              .port_num = 1,
                                              .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}}},
             IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
    return dct;
}

/* An initiator: it sends, to any target. */
static struct ibv_qp *make_initiator(void)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_DRIVER,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = alice->pd,
                                       .send_cq = alice->cq,
                                       .recv_cq = alice->cq,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND,
                                       .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    struct mlx5dv_qp_init_attr dc = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI};
    struct ibv_qp *dci = mlx5dv_create_qp(alice->ctx, &init, &dc);

    lab_check(dci ? 0 : errno, "create a DC initiator");
    to_state(dci, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    to_state(dci, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024},
             IBV_QP_STATE | IBV_QP_PATH_MTU);
    to_state(dci,
             (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                  .timeout = 14,
                                  .retry_cnt = 7,
                                  .rnr_retry = 3,
                                  .max_rd_atomic = 1},
             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                 IBV_QP_MAX_QP_RD_ATOMIC);
    return dci;
}

static void send_to(struct ibv_qp *dci, struct ibv_ah *ah, struct ibv_qp *dct, uint64_t key)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(dci);

    ibv_wr_start(qp);
    qp->wr_id = dct->qp_num & 0xf;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qp);
    mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), ah, dct->qp_num, key);
    ibv_wr_set_sge(qp, alice->mr->lkey, (uintptr_t)alice->buf, 32);
    lab_check(ibv_wr_complete(qp), "post a send");
}

int main(void)
{
    alice = lab_open("alice", 0);
    bob = lab_open("bob", 1);
    struct ibv_srq *srq = make_srq();
    struct ibv_qp *dci = make_initiator(), *dct[TARGETS];
    struct ibv_ah_attr at = {.is_global = 1,
                             .port_num = 1,
                             .grh = {.dgid = bob->gid, .sgid_index = GID_INDEX, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(alice->pd, &at);

    lab_check(ah ? 0 : errno, "create an address handle");
    for (int i = 0; i < TARGETS; i++) {
        dct[i] = make_target(srq);
    }
    for (int i = 0; i < TARGETS; i++) {
        printf("-- target %d\n", i);
        sprintf((char *)alice->buf, "for target %d", i);
        send_to(dci, ah, dct[i], KEY);
        lab_wait(alice);
        struct ibv_wc wc = lab_wait(bob);
        printf("   bob has: %s\n", bob->buf + wc.wr_id * SLOT);
    }
    printf("-- a wrong key\n");
    send_to(dci, ah, dct[0], KEY + 1);
    lab_wait(alice);
    return 0;
}
