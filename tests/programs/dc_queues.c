/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of DC, by mlx5's direct verbs. */
#include "tests/programs/dc_queues.h"
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

static void dc_start_dct(struct ibv_qp *qp, unsigned gid_index, unsigned access)
{
    struct ibv_qp_attr to = {
        .qp_state = IBV_QPS_INIT, .port_num = ENDPOINT_PORT, .qp_access_flags = access};

    need(!ibv_modify_qp(qp, &to,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "a DCT to INIT");
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .min_rnr_timer = 12,
                              .ah_attr = endpoint_towards((union ibv_gid){{0}}, gid_index)};
    need(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV),
         "a DCT to RTR");
}

struct ibv_qp *dc_make_dct(struct ibv_srq *srq, struct ibv_cq *cq, uint64_t key, unsigned gid_index,
                           unsigned access)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .srq = srq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = srq->pd};
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = key}};
    struct ibv_qp *qp = mlx5dv_create_qp(srq->context, &attr, &dv);

    if (qp) {
        dc_start_dct(qp, gid_index, access);
    }
    return qp;
}

void dc_start_dci(struct ibv_qp *qp, uint8_t timeout)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = ENDPOINT_PORT};

    need(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), "a DCI to INIT");
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    need(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PATH_MTU), "a DCI to RTR");
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = timeout,
                              .retry_cnt = 7,
                              .rnr_retry = 7,
                              .max_rd_atomic = 1};
    need(!ibv_modify_qp(qp, &to,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN),
         "a DCI to RTS");
}

struct ibv_qp *dc_make_dci(struct ibv_pd *pd, const struct dci_attr *with)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = with->cq,
                                       .recv_cq = with->cq,
                                       .cap = with->cap,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = with->operations};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
    struct ibv_qp *qp;

    if (with->streams) {
        dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv.dc_init_attr.dci_streams = *with->streams;
    }
    qp = mlx5dv_create_qp(pd->context, &attr, &dv);
    if (qp) {
        dc_start_dci(qp, with->timeout);
    }
    return qp;
}
