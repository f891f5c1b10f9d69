/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accelerated verbs: families of functions of a QP, CQ or WQ (ibv_exp_query_intf()), over the
 * library's posts and polls. A pending request is posted at once, so a flush has nothing left to
 * do: a program may rely only on that it is posted after the flush.
 */
#include <string.h>
#include "guest-lib/verbs/exp/wq.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/send_wqe.h"

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

#define ETH_ADDRESSES  12 /* destination and source */
#define ETH_HEADER     14
#define ETH_TAG        4
#define ETH_TAG_C_VLAN 0x81000000u
#define ETH_MAX_IN_WQE 1023 /* inline_hdr_sz has 10 bits */

/* Writes a raw packet whose VLAN tag is not in its data. The WQE has its first bytes, in which the
 * tag is: the header, or all of it. The header must be in the first piece, with a byte behind it
 * (libmlx5). */
static void exp_intf_put_tagged(struct user_qp *qp, const struct ibv_sge *list, uint32_t num,
                                uint32_t flags, uint16_t tci, bool all)
{
    const uint8_t *data = (const uint8_t *)(uintptr_t)list[0].addr;
    uint32_t here = all ? list[0].length : ETH_HEADER;
    uint8_t header[ETH_MAX_IN_WQE];

    memcpy(header, data, ETH_ADDRESSES);
    prm_store32(header + ETH_ADDRESSES, ETH_TAG_C_VLAN | tci);
    memcpy(header + ETH_ADDRESSES + ETH_TAG, data + ETH_ADDRESSES, here - ETH_ADDRESSES);
    hv_wqe_put_eth_seg(qp, flags & IBV_EXP_QP_BURST_IP_CSUM, 0, header, here + ETH_TAG);
    hv_wqe_put_sge(qp, list[0].lkey, list[0].addr + here, list[0].length - here);
    for (uint32_t i = 1; i < num; i++) {
        hv_wqe_put_sge(qp, list[i].lkey, list[i].addr, list[i].length);
    }
}

static int exp_intf_send_tagged(struct ibv_qp *ibqp, const struct ibv_sge *list, uint32_t num,
                                uint32_t flags, uint16_t tci, bool all)
{
    unsigned send = (flags & IBV_EXP_QP_BURST_SIGNALED ? IBV_SEND_SIGNALED : 0) |
                    (flags & IBV_EXP_QP_BURST_FENCE ? IBV_SEND_FENCE : 0);
    struct user_qp *qp = user_qp(ibqp);
    int err, lost;

    if (flags & IBV_EXP_QP_BURST_TUNNEL || ibqp->qp_type != IBV_QPT_RAW_PACKET || !num ||
        list[0].length <= ETH_HEADER) {
        return hv_refuse(qp->hca, EINVAL,
                         "send_pending_vlan: only a raw packet has a tag, with more than its "
                         "header in the first piece, and no tunnel");
    }
    if (!qp->can_send) {
        return hv_send_refuse_state(qp, true);
    }
    hv_wr_begin_list(qp);
    if (num > qp->sq.max_gs) {
        hv_wqe_fail(qp, ENOMEM, "num is %u; max_send_sge is %u", num, qp->sq.max_gs);
    } else if (all && list[0].length > MIN(qp->max_inline, ETH_MAX_IN_WQE - ETH_TAG)) {
        hv_wqe_fail(qp, ENOMEM, "more inline data than %u", qp->max_inline);
    } else if (hv_wqe_begin(qp, PRM_WQE_OPCODE_SEND, send, 0, IBV_WC_SEND, 0)) {
        exp_intf_put_tagged(qp, list, num, flags, tci, all);
        hv_wqe_end(qp);
    }
    err = qp->wr_err;
    lost = hv_wr_end_list(qp);
    return lost ? lost : err;
}

static int exp_intf_pending_list_vlan(struct ibv_qp *qp, struct ibv_sge *list, uint32_t num,
                                      uint32_t flags, uint16_t *tci)
{
    return exp_intf_send_tagged(qp, list, num, flags, *tci, false);
}

static int exp_intf_pending_vlan(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey,
                                 uint32_t flags, uint16_t *tci)
{
    struct ibv_sge sge = {addr, length, lkey};

    return exp_intf_send_tagged(qp, &sge, 1, flags, *tci, false);
}

/* The whole packet is the header in the WQE. */
static int exp_intf_pending_inline_vlan(struct ibv_qp *qp, void *addr, uint32_t length,
                                        uint32_t flags, uint16_t *tci)
{
    struct ibv_sge sge = {(uintptr_t)addr, length, 0};

    return exp_intf_send_tagged(qp, &sge, 1, flags, *tci, true);
}

static struct ibv_exp_qp_burst_family_v1 exp_intf_qp = {
    .send_pending = exp_intf_pending,
    .send_pending_inline = exp_intf_pending_inline,
    .send_pending_sg_list = exp_intf_pending_list,
    .send_flush = exp_intf_flush,
    .send_burst = exp_intf_send_burst,
    .recv_burst = exp_intf_recv_burst,
    .send_pending_vlan = exp_intf_pending_vlan,
    .send_pending_inline_vlan = exp_intf_pending_inline_vlan,
    .send_pending_sg_list_vlan = exp_intf_pending_list_vlan,
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

/* The results of a poll besides the length; each may be NULL. */
struct exp_intf_told {
    uint32_t *offset;    /* of a packet in the memory of a multi-packet WQE */
    uint32_t *flags;     /* IBV_EXP_CQ_RX_ */
    uint16_t *tci;       /* the stripped tag, with IBV_EXP_CQ_RX_CVLAN_STRIPPED_V1 */
    uint64_t *timestamp; /* with IBV_EXP_CQ_RX_WITH_TIMESTAMP: device cycles */
};

/* Fields of the next CQE that ibv_exp_poll_cq() does not report. */
struct exp_intf_next {
    bool is_other; /* of a send, or an error */
    bool has_tag;  /* a tag was stripped */
    uint16_t tci;
    uint32_t l4;               /* IBV_EXP_CQ_RX_TCP_PACKET, IBV_EXP_CQ_RX_UDP_PACKET */
    const struct hv_rwq *many; /* its WQ, if that is a multi-packet WQ; else NULL */
};

static uint32_t exp_intf_l4(const struct prm_cqe64 *cqe)
{
    switch (PRM_GET(cqe64, cqe, l4_hdr_type)) {
    case PRM_CQE_L4_HDR_TYPE_TCP_NO_ACK:
    case PRM_CQE_L4_HDR_TYPE_TCP_ACK_NO_DATA:
    case PRM_CQE_L4_HDR_TYPE_TCP_ACK_AND_DATA:
        return IBV_EXP_CQ_RX_TCP_PACKET;
    case PRM_CQE_L4_HDR_TYPE_UDP:
        return IBV_EXP_CQ_RX_UDP_PACKET;
    default:
        return 0;
    }
}

/* One thread polls a CQ of accelerated verbs. */
static struct exp_intf_next exp_intf_peek(struct user_cq *cq)
{
    struct exp_intf_next next = {0};
    const struct prm_cqe64 *cqe;
    const struct hv_rsc *rsc;
    uint8_t opcode;

    cq_lock(cq);
    cqe = cq_sw_cqe64(cq, cq->ci);
    if (cqe) {
        opcode = cqe_op_own(cqe) >> 4;
        rsc = hv_uidx_find(hv_context(cq->ibv.context), PRM_GET(cqe64, cqe, srqn));
        next = (struct exp_intf_next){
            .is_other = opcode == PRM_CQE_OPCODE_REQ || opcode == PRM_CQE_OPCODE_REQ_ERR ||
                        opcode == PRM_CQE_OPCODE_RESP_ERR,
            .has_tag = PRM_GET(cqe64, cqe, cv),
            .tci = (uint16_t)PRM_GET(cqe64, cqe, vlan_info),
            .l4 = exp_intf_l4(cqe),
            .many = rsc && rsc->type == HV_RSC_RWQ && ((struct hv_rwq *)rsc->obj)->log_strides
                        ? rsc->obj
                        : NULL,
        };
    }
    cq_unlock(cq);
    return next;
}

static uint32_t exp_intf_packet_flags(const struct ibv_exp_wc *wc, const struct exp_intf_next *next)
{
    return (wc->exp_wc_flags & IBV_EXP_WC_RX_IP_CSUM_OK ? IBV_EXP_CQ_RX_IP_CSUM_OK : 0) |
           (wc->exp_wc_flags & IBV_EXP_WC_RX_TCP_UDP_CSUM_OK ? IBV_EXP_CQ_RX_TCP_UDP_CSUM_OK : 0) |
           (wc->exp_wc_flags & IBV_EXP_WC_RX_IPV4_PACKET ? IBV_EXP_CQ_RX_IPV4_PACKET : 0) |
           (wc->exp_wc_flags & IBV_EXP_WC_RX_IPV6_PACKET ? IBV_EXP_CQ_RX_IPV6_PACKET : 0) |
           (wc->exp_wc_flags & IBV_EXP_WC_MP_WR_CONSUMED ? IBV_EXP_CQ_RX_MULTI_PACKET_LAST_V1 : 0) |
           next->l4;
}

/* Takes a receive CQE. The data of a message is always in the receive's own memory. The length of a
 * packet of a multi-packet WQ is nothing without its offset. */
static int32_t exp_intf_poll(struct ibv_cq *cq, const struct exp_intf_told *told)
{
    uint32_t flags = 0;
    struct exp_intf_next next;
    struct ibv_exp_wc wc;
    int n;

    hv_progress(user_cq(cq)->hca);
    next = exp_intf_peek(user_cq(cq));
    if (next.is_other || (next.many && !told->offset)) {
        return -1;
    }
    n = ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc));
    if (n > 0) {
        flags = exp_intf_packet_flags(&wc, &next);
        if (next.many) {
            *told->offset = ((uint32_t)wc.mp_wr.strides_offset << next.many->log_stride) +
                            (next.many->stride_shift ? 2 : 0);
        }
        if (told->tci && next.has_tag) {
            *told->tci = next.tci;
            flags |= IBV_EXP_CQ_RX_CVLAN_STRIPPED_V1;
        }
        if (told->timestamp && wc.exp_wc_flags & IBV_EXP_WC_WITH_TIMESTAMP) {
            *told->timestamp = wc.timestamp;
            flags |= IBV_EXP_CQ_RX_WITH_TIMESTAMP;
        }
    }
    if (told->flags) {
        *told->flags = flags;
    }
    return n <= 0                        ? n
           : wc.status != IBV_WC_SUCCESS ? -1
           : next.many                   ? (int32_t)wc.mp_wr.byte_len
                                         : (int32_t)wc.byte_len;
}

/* The functions of the family say which results each has. buf receives nothing, so *inl is 0. */

static int32_t exp_intf_poll_inl(struct ibv_cq *cq, uint32_t *inl, const struct exp_intf_told *told)
{
    if (inl) {
        *inl = 0;
    }
    return exp_intf_poll(cq, told);
}

static int32_t exp_intf_poll_length(struct ibv_cq *cq, void *buf, uint32_t *inl)
{
    (void)buf;
    return exp_intf_poll_inl(cq, inl, &(const struct exp_intf_told){0});
}

static int32_t exp_intf_poll_length_flags(struct ibv_cq *cq, void *buf, uint32_t *inl,
                                          uint32_t *flags)
{
    (void)buf;
    return exp_intf_poll_inl(cq, inl, &(const struct exp_intf_told){.flags = flags});
}

static int32_t exp_intf_poll_length_flags_cvlan(struct ibv_cq *cq, void *buf, uint32_t *inl,
                                                uint32_t *flags, uint16_t *tci)
{
    (void)buf;
    return exp_intf_poll_inl(cq, inl, &(const struct exp_intf_told){.flags = flags, .tci = tci});
}

static int32_t exp_intf_poll_length_flags_ts(struct ibv_cq *cq, void *buf, uint32_t *inl,
                                             uint32_t *flags, uint64_t *timestamp)
{
    (void)buf;
    return exp_intf_poll_inl(cq, inl,
                             &(const struct exp_intf_told){.flags = flags, .timestamp = timestamp});
}

static int32_t exp_intf_poll_length_flags_cvlan_ts(struct ibv_cq *cq, void *buf, uint32_t *inl,
                                                   uint32_t *flags, uint16_t *tci,
                                                   uint64_t *timestamp)
{
    (void)buf;
    return exp_intf_poll_inl(
        cq, inl, &(const struct exp_intf_told){.flags = flags, .tci = tci, .timestamp = timestamp});
}

/* Those for multi-packet receive queues take other queues, too, as libmlx5's do, and then leave
 * *offset alone. A filler has length 0, and says with the flags whether it was the last of its WQE:
 * an empty CQ has length 0 and no flags. */

static int32_t exp_intf_poll_length_flags_mp_rq(struct ibv_cq *cq, uint32_t *offset,
                                                uint32_t *flags)
{
    return exp_intf_poll(cq, &(const struct exp_intf_told){.offset = offset, .flags = flags});
}

static int32_t exp_intf_poll_length_flags_mp_rq_cvlan(struct ibv_cq *cq, uint32_t *offset,
                                                      uint32_t *flags, uint16_t *tci)
{
    return exp_intf_poll(
        cq, &(const struct exp_intf_told){.offset = offset, .flags = flags, .tci = tci});
}

static int32_t exp_intf_poll_length_flags_mp_rq_ts(struct ibv_cq *cq, uint32_t *offset,
                                                   uint32_t *flags, uint64_t *timestamp)
{
    return exp_intf_poll(cq, &(const struct exp_intf_told){
                                 .offset = offset, .flags = flags, .timestamp = timestamp});
}

static int32_t exp_intf_poll_length_flags_mp_rq_cvlan_ts(struct ibv_cq *cq, uint32_t *offset,
                                                         uint32_t *flags, uint16_t *tci,
                                                         uint64_t *timestamp)
{
    return exp_intf_poll(cq,
                         &(const struct exp_intf_told){
                             .offset = offset, .flags = flags, .tci = tci, .timestamp = timestamp});
}

static struct ibv_exp_cq_family_v1 exp_intf_cq = {
    .poll_cnt = exp_intf_poll_cnt,
    .poll_length = exp_intf_poll_length,
    .poll_length_flags = exp_intf_poll_length_flags,
    .poll_length_flags_cvlan = exp_intf_poll_length_flags_cvlan,
    .poll_length_flags_ts = exp_intf_poll_length_flags_ts,
    .poll_length_flags_cvlan_ts = exp_intf_poll_length_flags_cvlan_ts,
    .poll_length_flags_mp_rq = exp_intf_poll_length_flags_mp_rq,
    .poll_length_flags_mp_rq_cvlan = exp_intf_poll_length_flags_mp_rq_cvlan,
    .poll_length_flags_mp_rq_ts = exp_intf_poll_length_flags_mp_rq_ts,
    .poll_length_flags_mp_rq_cvlan_ts = exp_intf_poll_length_flags_mp_rq_cvlan_ts,
};

/* -- families ---------------------------------------------------------------------------------- */

/* A family of a QP needs a state, a type and flags that libmlx5 accepts. */
static enum ibv_exp_query_intf_status exp_intf_check_qp(const struct user_qp *qp)
{
    enum ibv_qp_type type = qp->ibv.qp_type;

    if (qp->state < IBV_QPS_INIT || qp->state > IBV_QPS_RTS) {
        return IBV_EXP_INTF_STAT_INVAL_OBJ_STATE;
    }
    return qp->exp_flags & IBV_EXP_QP_CREATE_MANAGED_SEND ||
                   (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_RAW_PACKET)
               ? IBV_EXP_INTF_STAT_INVAL_PARARM
               : IBV_EXP_INTF_STAT_OK;
}

/* The families: the functions, their last version, and the flags that one may be asked with.
 * Several packets in a WQE are the choice of the library, which sends each in one of its own. */
static const struct {
    void *functions;
    uint32_t version, family_flags;
} exp_intf_families[] = {
    [IBV_EXP_INTF_QP_BURST] = {&exp_intf_qp, 1,
                               IBV_EXP_QP_BURST_CREATE_ENABLE_MULTI_PACKET_SEND_WR},
    [IBV_EXP_INTF_CQ] = {&exp_intf_cq, 1, 0},
    [IBV_EXP_INTF_WQ] = {&exp_intf_wq, 0, 0},
};

static enum ibv_exp_query_intf_status exp_intf_check(const struct ibv_exp_query_intf_params *params)
{
    enum ibv_exp_query_intf_status of_qp;

    if (params->intf_scope != IBV_EXP_INTF_GLOBAL || params->intf >= IBV_EXP_INTF_RESERVED) {
        return IBV_EXP_INTF_STAT_INTF_NOT_SUPPORTED;
    }
    if (params->intf_version > exp_intf_families[params->intf].version) {
        return IBV_EXP_INTF_STAT_VERSION_NOT_SUPPORTED;
    }
    if (!params->obj) {
        return IBV_EXP_INTF_STAT_INVAL_OBJ;
    }
    of_qp = params->intf == IBV_EXP_INTF_QP_BURST ? exp_intf_check_qp(user_qp(params->obj))
                                                  : IBV_EXP_INTF_STAT_OK;
    if (of_qp != IBV_EXP_INTF_STAT_OK) {
        return of_qp;
    }
    if (params->flags & ~(uint32_t)IBV_EXP_QUERY_INTF_FLAG_ENABLE_CHECKS) {
        return IBV_EXP_INTF_STAT_FLAGS_NOT_SUPPORTED;
    }
    return params->family_flags & ~exp_intf_families[params->intf].family_flags
               ? IBV_EXP_INTF_STAT_FAMILY_FLAGS_NOT_SUPPORTED
               : IBV_EXP_INTF_STAT_OK;
}

static void *exp_query_intf(struct ibv_context *context, struct ibv_exp_query_intf_params *params,
                            enum ibv_exp_query_intf_status *status)
{
    enum ibv_exp_query_intf_status found = exp_intf_check(params);

    (void)context;
    if (status) {
        *status = found;
    }
    if (found != IBV_EXP_INTF_STAT_OK) {
        errno = EINVAL;
        return NULL;
    }
    return exp_intf_families[params->intf].functions;
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
