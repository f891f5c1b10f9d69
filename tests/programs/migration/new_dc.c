/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic connections, new: two queue pairs of mlx5dv_create_qp(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

#define KEY 0x1234

static struct ibv_qp *dc(struct both *b, struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (srq ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
        .pd = b->pd,
        .cap = {.max_send_wr = srq ? 0 : 16, .max_send_sge = srq ? 0 : 1},
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = srq ? MLX5DV_DCTYPE_DCT : MLX5DV_DCTYPE_DCI,
                         .dct_access_key = srq ? KEY : 0}};
    struct ibv_qp *qp = mlx5dv_create_qp(b->ctx, &init, &dv);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .path_mtu = IBV_MTU_1024,
        .min_rnr_timer = 12,
        .ah_attr = both_towards_itself(b->ctx),
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };

    NEED(qp);
    NEED(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (srq ? IBV_QP_ACCESS_FLAGS : 0)));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | (srq ? IBV_QP_MIN_RNR_TIMER : 0)));
    attr.qp_state = IBV_QPS_RTS;
    NEED(srq || !ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN));
    return qp;
}

static void send(struct both *b, struct ibv_qp *dci, struct ibv_ah *ah, uint32_t dct, uint64_t key)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(dci);

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(ex), ah, dct, key);
    ibv_wr_set_sge(ex, b->mr->lkey, (uintptr_t)both_from(b), 2000);
    NEED(!ibv_wr_complete(ex));
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(b.pd, &srq_attr);
    struct ibv_qp *dct = dc(&b, recvs, srq), *dci = dc(&b, b.cq, NULL);
    struct ibv_ah_attr ah_attr = both_towards_itself(b.ctx);
    struct ibv_ah *ah = ibv_create_ah(b.pd, &ah_attr);
    struct ibv_sge to = {(uintptr_t)both_to(&b), 2000, b.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;

    NEED(ah && !ibv_post_srq_recv(srq, &recv, &bad_recv));
    send(&b, dci, ah, dct->qp_num, KEY);
    both_done(b.cq);
    printf("%u bytes at the target", both_done(recvs).byte_len);
    printf(", %s\n", both_same(&b, 2000) ? "right" : "wrong");
    send(&b, dci, ah, dct->qp_num, KEY + 1);
    printf("with a wrong key: %s\n", ibv_wc_status_str(both_wait(b.cq).status));
    NEED(!ibv_destroy_qp(dci) && !ibv_destroy_qp(dct));
    return 0;
}
