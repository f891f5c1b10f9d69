/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accelerated verbs: families of functions of a QP, CQ or WQ (ibv_exp_query_intf()), over the
 * library's posts and polls. A pending request is posted at once, so a flush has nothing left to
 * do: a program may rely only on that it is posted after the flush.
 */
#include "guest-lib/verbs/exp/wq.h"
#include "guest-lib/verbs/user/cq.h"

/* -- QPs --------------------------------------------------------------------------------------- */

static int exp_intf_send(struct ibv_qp *qp, struct ibv_sge *list, uint32_t num, uint32_t flags,
                         uint64_t more)
{
    struct ibv_exp_send_wr *bad,
        wr = {
            .sg_list = list,
            .num_sge = (int)num,
            .exp_opcode = IBV_EXP_WR_SEND,
            .exp_send_flags = more |
                              (flags & IBV_EXP_QP_BURST_SIGNALED ? IBV_EXP_SEND_SIGNALED : 0) |
                              (flags & IBV_EXP_QP_BURST_SOLICITED ? IBV_EXP_SEND_SOLICITED : 0) |
                              (flags & IBV_EXP_QP_BURST_IP_CSUM ? IBV_EXP_SEND_IP_CSUM : 0) |
                              (flags & IBV_EXP_QP_BURST_FENCE ? IBV_EXP_SEND_FENCE : 0),
        };

    return flags & IBV_EXP_QP_BURST_TUNNEL ? EINVAL : ibv_exp_post_send(qp, &wr, &bad);
}

static int exp_intf_pending(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey,
                            uint32_t flags)
{
    struct ibv_sge sge = {addr, length, lkey};

    return exp_intf_send(qp, &sge, 1, flags, 0);
}

static int exp_intf_pending_inline(struct ibv_qp *qp, void *addr, uint32_t length, uint32_t flags)
{
    struct ibv_sge sge = {(uintptr_t)addr, length, 0};

    return exp_intf_send(qp, &sge, 1, flags, IBV_EXP_SEND_INLINE);
}

static int exp_intf_pending_list(struct ibv_qp *qp, struct ibv_sge *list, uint32_t num,
                                 uint32_t flags)
{
    return exp_intf_send(qp, list, num, flags, 0);
}

static int exp_intf_flush(struct ibv_qp *qp)
{
    (void)qp;
    return 0;
}

/* Each element of the list is a message. */
static int exp_intf_send_burst(struct ibv_qp *qp, struct ibv_sge *list, uint32_t num,
                               uint32_t flags)
{
    int err = 0;

    for (uint32_t i = 0; i < num && !err; i++) {
        err = exp_intf_send(qp, &list[i], 1, flags, 0);
    }
    return err;
}

static int exp_intf_recv_burst(struct ibv_qp *qp, struct ibv_sge *list, uint32_t num)
{
    int err = 0;

    for (uint32_t i = 0; i < num && !err; i++) {
        struct ibv_recv_wr *bad, wr = {.sg_list = &list[i], .num_sge = 1};

        err = ibv_post_recv(qp, &wr, &bad);
    }
    return err;
}

static struct ibv_exp_qp_burst_family exp_intf_qp = {
    .send_pending = exp_intf_pending,
    .send_pending_inline = exp_intf_pending_inline,
    .send_pending_sg_list = exp_intf_pending_list,
    .send_flush = exp_intf_flush,
    .send_burst = exp_intf_send_burst,
    .recv_burst = exp_intf_recv_burst,
};

/* -- WQs --------------------------------------------------------------------------------------- */

static int exp_intf_wq_list(struct ibv_exp_wq *wq, struct ibv_sge *list, uint32_t num)
{
    struct ibv_recv_wr *bad, wr = {.sg_list = list, .num_sge = (int)num};

    return ibv_post_wq_recv(hv_exp_wq(wq)->verbs, &wr, &bad);
}

static int exp_intf_wq_burst(struct ibv_exp_wq *wq, struct ibv_sge *list, uint32_t num)
{
    int err = 0;

    for (uint32_t i = 0; i < num && !err; i++) {
        err = exp_intf_wq_list(wq, &list[i], 1);
    }
    return err;
}

static struct ibv_exp_wq_family exp_intf_wq = {exp_intf_wq_list, exp_intf_wq_burst};

/* -- CQs --------------------------------------------------------------------------------------- */

/* A completion that failed is taken, too, and ends the count with -1. */
static int32_t exp_intf_poll_cnt(struct ibv_cq *cq, uint32_t max)
{
    struct ibv_exp_wc wc;

    for (uint32_t i = 0; i < max; i++) {
        int n = ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc));

        if (n <= 0) {
            return n < 0 ? -1 : (int32_t)i;
        }
        if (wc.status != IBV_WC_SUCCESS) {
            return -1;
        }
    }
    return (int32_t)max;
}

/* Whether the next CQE is of a send or an error. One thread polls a CQ of accelerated verbs. */
static bool exp_intf_is_other(struct user_cq *cq)
{
    const struct prm_cqe64 *cqe;
    uint8_t opcode = PRM_CQE_OPCODE_RESP_SEND;

    cq_lock(cq);
    cqe = cq_sw_cqe64(cq, cq->ci);
    if (cqe) {
        opcode = cqe_op_own(cqe) >> 4;
    }
    cq_unlock(cq);
    return opcode == PRM_CQE_OPCODE_REQ || opcode == PRM_CQE_OPCODE_REQ_ERR ||
           opcode == PRM_CQE_OPCODE_RESP_ERR;
}

/* The data of a message is always in the receive's own memory, never in *buf. */
static int32_t exp_intf_poll_length_flags(struct ibv_cq *cq, void *buf, uint32_t *inl,
                                          uint32_t *flags)
{
    struct ibv_exp_wc wc;
    int n;

    (void)buf;
    hv_progress(user_cq(cq)->hca);
    if (exp_intf_is_other(user_cq(cq))) {
        return -1;
    }
    n = ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc));
    if (n <= 0) {
        return n;
    }
    if (inl) {
        *inl = 0;
    }
    if (flags) {
        *flags =
            (wc.exp_wc_flags & IBV_EXP_WC_RX_IP_CSUM_OK ? IBV_EXP_CQ_RX_IP_CSUM_OK : 0) |
            (wc.exp_wc_flags & IBV_EXP_WC_RX_TCP_UDP_CSUM_OK ? IBV_EXP_CQ_RX_TCP_UDP_CSUM_OK : 0) |
            (wc.exp_wc_flags & IBV_EXP_WC_RX_IPV4_PACKET ? IBV_EXP_CQ_RX_IPV4_PACKET : 0) |
            (wc.exp_wc_flags & IBV_EXP_WC_RX_IPV6_PACKET ? IBV_EXP_CQ_RX_IPV6_PACKET : 0);
    }
    return wc.status == IBV_WC_SUCCESS ? (int32_t)wc.byte_len : -1;
}

static int32_t exp_intf_poll_length(struct ibv_cq *cq, void *buf, uint32_t *inl)
{
    return exp_intf_poll_length_flags(cq, buf, inl, NULL);
}

static struct ibv_exp_cq_family exp_intf_cq = {
    .poll_cnt = exp_intf_poll_cnt,
    .poll_length = exp_intf_poll_length,
    .poll_length_flags = exp_intf_poll_length_flags,
};

/* -- families ---------------------------------------------------------------------------------- */

/* Version 1 of the families adds VLAN tags and strides, which the library's posts and polls do not
 * have. */
static enum ibv_exp_query_intf_status exp_intf_check(const struct ibv_exp_query_intf_params *params)
{
    if (params->intf_scope != IBV_EXP_INTF_GLOBAL || params->intf >= IBV_EXP_INTF_RESERVED) {
        return IBV_EXP_INTF_STAT_INTF_NOT_SUPPORTED;
    }
    if (params->intf_version) {
        return IBV_EXP_INTF_STAT_VERSION_NOT_SUPPORTED;
    }
    if (!params->obj) {
        return IBV_EXP_INTF_STAT_INVAL_OBJ;
    }
    if (params->flags & ~(uint32_t)IBV_EXP_QUERY_INTF_FLAG_ENABLE_CHECKS) {
        return IBV_EXP_INTF_STAT_FLAGS_NOT_SUPPORTED;
    }
    return params->family_flags ? IBV_EXP_INTF_STAT_FAMILY_FLAGS_NOT_SUPPORTED
                                : IBV_EXP_INTF_STAT_OK;
}

static void *exp_query_intf(struct ibv_context *context, struct ibv_exp_query_intf_params *params,
                            enum ibv_exp_query_intf_status *status)
{
    void *const families[] = {[IBV_EXP_INTF_QP_BURST] = &exp_intf_qp,
                              [IBV_EXP_INTF_CQ] = &exp_intf_cq,
                              [IBV_EXP_INTF_WQ] = &exp_intf_wq};
    enum ibv_exp_query_intf_status found = exp_intf_check(params);

    (void)context;
    if (status) {
        *status = found;
    }
    return found == IBV_EXP_INTF_STAT_OK ? families[params->intf] : NULL;
}

/* The families are tables of the library, so there is nothing to free. */
static int exp_release_intf(struct ibv_context *context, void *intf,
                            struct ibv_exp_release_intf_params *params)
{
    (void)context;
    (void)intf;
    (void)params;
    return 0;
}

void hv_exp_intf_ops(struct verbs_context_exp *ops)
{
    ops->exp_query_intf = exp_query_intf;
    ops->exp_release_intf = exp_release_intf;
}
