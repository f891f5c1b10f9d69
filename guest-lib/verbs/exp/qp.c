/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of experimental verbs: ibv_exp_create_qp(), ibv_exp_modify_qp(). Their attributes are
 * those of ibv_create_qp_ex() and mlx5dv_create_qp(), and flags that only experimental verbs have.
 */
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/exp/mem.h"
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/exp/send.h"
#include "guest-lib/verbs/exp/wq.h"
#include "guest-lib/verbs/user/qp.h"

/* Flags of the device: a generation has them or not. */
#define EXP_QP_CROSS                                                                               \
    (IBV_EXP_QP_CREATE_CROSS_CHANNEL | IBV_EXP_QP_CREATE_MANAGED_SEND |                            \
     IBV_EXP_QP_CREATE_MANAGED_RECV)

static bool exp_qp_has(const struct ibv_exp_qp_init_attr *attr, uint32_t bit)
{
    return attr->comp_mask & bit;
}

/* The flags that count: libmlx5 ignores those that it does not know. */
static uint32_t exp_qp_flags(const struct ibv_exp_qp_init_attr *attr)
{
    return exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS)
               ? attr->exp_create_flags & IBV_EXP_QP_CREATE_MASK
               : 0;
}

bool hv_exp_may_post_atomics(const struct user_qp *qp)
{
    return hv_atomics_have_host_order(qp->hca) ||
           (qp->exp_flags & IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY);
}

/* A QP that spreads packets over WQs has no queues of its own: 0 or errno. */
static int exp_qp_check_rss(struct hv_hca *hca, const struct ibv_exp_qp_init_attr *attr)
{
    const struct ibv_qp_cap *cap = &attr->cap;

    if (!attr->rx_hash_conf || !attr->rx_hash_conf->rwq_ind_tbl) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: rx_hash_conf needs rwq_ind_tbl");
    }
    if (attr->send_cq || attr->recv_cq || attr->srq || cap->max_send_wr || cap->max_recv_wr ||
        cap->max_send_sge || cap->max_recv_sge || cap->max_inline_data) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_qp: a QP with rx_hash_conf has the queues of rwq_ind_tbl; "
                         "send_cq, recv_cq and srq must be NULL, and all of cap must be 0");
    }
    return 0;
}

/* The checks of libmlx5 in its order, then of the kernel: 0 or errno. */
static int exp_qp_check(struct hv_hca *hca, const struct ibv_exp_qp_init_attr *attr)
{
    uint32_t flags = exp_qp_flags(attr);
    bool umr = flags & IBV_EXP_QP_CREATE_UMR;
    int err = exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_RX_HASH) ? exp_qp_check_rss(hca, attr) : 0;

    if (err) {
        return err;
    }
    if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_ASSOCIATED_QPN)) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: associated_qpn is for IPoIB alone");
    }
    if (umr != exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS)) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_qp: IBV_EXP_QP_CREATE_UMR and max_inl_send_klms need each "
                         "other");
    }
    if (umr && attr->max_inl_send_klms > HV_EXP_MAX_INLINE_KLMS) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: max_inl_send_klms is %u; it may be up to %u",
                         attr->max_inl_send_klms, HV_EXP_MAX_INLINE_KLMS);
    }
    if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_QPG) && attr->qpg.qpg_type != IBV_EXP_QPG_NONE) {
        return hv_refuse(hca, ENOSYS, "exp_create_qp: the device has no groups of QPs");
    }
    if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_PORT) && attr->port_num > 1) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: port_num is %u; the device has port 1",
                         attr->port_num);
    }
    if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG) && attr->max_atomic_arg > 256) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: max_atomic_arg is %u; it may be 256",
                         attr->max_atomic_arg);
    }
    if (flags & (EXP_QP_CROSS | IBV_EXP_QP_CREATE_EC_PARITY_EN) && !HV_CAP(hca, cd)) {
        return hv_refuse(hca, EINVAL, "exp_create_qp: this generation has no cross-channel queues");
    }
    if (flags & IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY && hv_atomics_have_host_order(hca)) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_qp: the answers of atomics are in the host's order, so there "
                         "is no IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY");
    }
    if (flags & IBV_EXP_QP_CREATE_PACKET_BASED_CREDIT_MODE) {
        return hv_refuse(hca, EOPNOTSUPP, "exp_create_qp: the device has no credits of packets");
    }
    if (flags & IBV_EXP_QP_CREATE_TUNNEL_OFFLOADS &&
        (attr->qp_type != IBV_QPT_RAW_PACKET || !hv_dv_tunnel_offloads(hca))) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "exp_create_qp: only raw packet QPs look into tunnels, of the kinds that "
                         "tunnel_offloads_caps names");
    }
    return exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_PEER_DIRECT)
               ? exp_peer_check_qp(hca, attr->peer_direct_attrs)
               : 0;
}

/* The type in the terms of verbs. */
static enum ibv_qp_type exp_qp_type(enum ibv_qp_type type)
{
    return type == IBV_EXP_QPT_DC_INI ? IBV_QPT_DRIVER
           : type == IBV_QPT_XRC      ? IBV_QPT_XRC_SEND
                                      : type;
}

/* Takes what verbs have, too. */
static struct ibv_qp_init_attr_ex exp_qp_verbs(const struct ibv_exp_qp_init_attr *attr)
{
    uint32_t flags = exp_qp_flags(attr);
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = exp_qp_type(attr->qp_type),
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask =
            (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_PD) ? IBV_QP_INIT_ATTR_PD : 0) |
            (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_XRCD) ? IBV_QP_INIT_ATTR_XRCD : 0) |
            (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER) ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER
                                                                   : 0) |
            IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .pd = attr->pd,
        .xrcd = attr->xrcd,
        .max_tso_header = attr->max_tso_header,
        .create_flags =
            (flags & IBV_EXP_QP_CREATE_RX_END_PADDING ? IBV_QP_CREATE_PCI_WRITE_END_PADDING : 0) |
            (flags & IBV_EXP_QP_CREATE_SCATTER_FCS ? IBV_QP_CREATE_SCATTER_FCS : 0),
    };

    if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_RX_HASH)) {
        const struct ibv_exp_rx_hash_conf *hash = attr->rx_hash_conf;

        ex.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
        ex.rwq_ind_tbl = hv_exp_ind_table(hash->rwq_ind_tbl);
        ex.rx_hash_conf = (struct ibv_rx_hash_conf){hash->rx_hash_function, hash->rx_hash_key_len,
                                                    hash->rx_hash_key, hash->rx_hash_fields_mask};
    }
    return ex;
}

/* How many bytes can be in a CQE, of a message, or of what a DC initiator requested
 * (mlx5_ib_exp_create_qp()). */
static uint32_t exp_qp_inline_recv(struct hv_hca *hca, const struct ibv_exp_qp_init_attr *attr)
{
    struct ibv_cq *cq = attr->recv_cq;

    if (!exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_INL_RECV) || !attr->max_inl_recv) {
        return 0;
    }
    if (attr->qp_type == IBV_EXP_QPT_DC_INI) {
        cq = attr->sq_sig_all ? attr->send_cq : NULL;
    } else if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC) {
        return 0;
    }
    if (!cq) {
        return 0;
    }
    if (hv_cq(cq)->cqe_size == 128) {
        return 64;
    }
    return attr->qp_type != IBV_EXP_QPT_DC_INI || HV_CAP(hca, dc_req_scat_data_cqe) ? 32 : 0;
}

/* Takes what only experimental verbs have. CQEs have data only if the program asked for that
 * (libmlx5 of MLNX_OFED does not ask by itself). */
static struct hv_qp_extra exp_qp_extra(const struct ibv_exp_qp_init_attr *attr, bool inline_recv)
{
    struct hv_qp_extra extra = {
        .dc = attr->qp_type == IBV_EXP_QPT_DC_INI ? HV_DC_DCI : HV_DC_NONE,
        .exp = true,
        .no_scatter_to_cqe = !inline_recv,
        .wants_scatter_to_cqe = inline_recv,
        .exp_flags = exp_qp_flags(attr),
        .tunnels = exp_qp_flags(attr) & IBV_EXP_QP_CREATE_TUNNEL_OFFLOADS,
        .max_atomic_arg =
            exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG) ? attr->max_atomic_arg : 0,
        .uar = exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_RES_DOMAIN)
                   ? hv_exp_domain_uar(attr->res_domain)
                   : NULL,
        .max_inl_klms =
            exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS) ? attr->max_inl_send_klms : 0,
        .peer = exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_PEER_DIRECT) ? attr->peer_direct_attrs : NULL,
    };

    return extra;
}

/* A QP for blocks of code (ibv_exp_ec_encode_send()) waits before each of them, so it is a
 * cross-channel QP with room for the waits (mlx5_exp_create_qp()). */
static void exp_qp_take_parity(struct ibv_exp_qp_init_attr *attr)
{
    if (exp_qp_flags(attr) & IBV_EXP_QP_CREATE_EC_PARITY_EN) {
        attr->exp_create_flags |= IBV_EXP_QP_CREATE_CROSS_CHANNEL;
        attr->cap.max_send_wr *= 2;
    }
}

static struct ibv_qp *exp_create_qp(struct ibv_context *context, struct ibv_exp_qp_init_attr *attr)
{
    int err = exp_qp_check(hv_hca_of(context), attr);
    struct ibv_qp_init_attr_ex ex;
    struct hv_qp_extra extra;
    uint32_t inline_recv;
    struct ibv_qp *qp;

    if (err) {
        errno = err;
        return NULL;
    }
    exp_qp_take_parity(attr);
    ex = exp_qp_verbs(attr);
    inline_recv = exp_qp_inline_recv(hv_hca_of(context), attr);
    extra = exp_qp_extra(attr, inline_recv != 0);
    qp = hv_qp_create(context, &ex, &extra);
    if (qp) {
        if (attr->qp_type == IBV_EXP_QPT_DC_INI) {
            qp->qp_type = attr->qp_type;
        }
        attr->cap = ex.cap;
        if (exp_qp_has(attr, IBV_EXP_QP_INIT_ATTR_INL_RECV)) {
            attr->max_inl_recv = inline_recv;
        }
    }
    return qp;
}

/* -- states ------------------------------------------------------------------------------------ */

/* The members up to the last of MLNX_OFED 4.6's struct ibv_qp_attr are in the same places. */
G_STATIC_ASSERT(offsetof(struct ibv_exp_qp_attr, alt_timeout) ==
                offsetof(struct ibv_qp_attr, alt_timeout));
G_STATIC_ASSERT(offsetof(struct ibv_exp_qp_attr, ah_attr) == offsetof(struct ibv_qp_attr, ah_attr));

#define VERBS_MASK (((uint64_t)IBV_QP_DEST_QPN << 1) - 1)
#define EXP_MASK                                                                                   \
    (IBV_EXP_QP_DC_KEY | IBV_EXP_QP_FLOW_ENTROPY | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT |              \
     IBV_EXP_QP_RATE_LIMIT)

/* The checks of what only experimental verbs have (ib_modify_qp_is_ok() of MLNX_OFED): 0 or
 * errno. */
static int exp_modify_check(struct user_qp *qp, uint64_t mask)
{
    if (mask & ~(VERBS_MASK | EXP_MASK)) {
        return hv_refuse(qp->hca, EINVAL, "exp_modify_qp: exp_attr_mask has bits 0x%" PRIx64,
                         mask & ~(VERBS_MASK | EXP_MASK));
    }
    if (mask & IBV_EXP_QP_DC_KEY && qp->dc != HV_DC_DCI) {
        return hv_refuse(qp->hca, EINVAL, "exp_modify_qp: only DC initiators have a dct_key");
    }
    return 0;
}

static struct hv_rate exp_rate(const struct ibv_exp_qp_attr *attr)
{
    struct hv_rate rate = {.kbps = attr->rate_limit};

    if (attr->comp_mask & IBV_EXP_QP_ATTR_BURST_INFO) {
        rate.burst = attr->burst_info.max_burst_sz;
        rate.typical = attr->burst_info.typical_pkt_sz;
    }
    return rate;
}

/* The flow entropy has no effect, as in mlx5_ib. A request of a DC initiator has the key of its
 * target, so the dct_key of the QP has none, either. */
static int exp_modify_qp(struct ibv_qp *ibqp, struct ibv_exp_qp_attr *attr, uint64_t mask)
{
    struct user_qp *qp = user_qp(ibqp);
    struct ibv_qp_attr verbs = {0};
    int verbs_mask = (int)(mask & VERBS_MASK);
    struct hv_rate rate = {0};
    int err;

    if (qp->ind) {
        return -ENOSYS; /* libmlx5 returns it negative */
    }
    err = exp_modify_check(qp, mask);
    if (err) {
        return hv_kernel(err);
    }
    memcpy(&verbs, attr, offsetof(struct ibv_qp_attr, alt_timeout) + sizeof(verbs.alt_timeout));
    if (qp->dc == HV_DC_DCI) {
        err = hv_exp_take_dci(&qp->hv, mask & ~(uint64_t)IBV_EXP_QP_FLOW_ENTROPY, &verbs,
                              &verbs_mask);
        verbs_mask &= ~IBV_QP_AV; /* each request has the address of its target */
    }
    if (!err && mask & IBV_EXP_QP_OOO_RW_DATA_PLACEMENT) {
        err = hv_exp_take_ooo(&qp->hv, mask & IBV_QP_STATE ? attr->qp_state : qp->state);
    }
    if (err) {
        return hv_kernel(err);
    }
    if (mask & IBV_EXP_QP_RATE_LIMIT) {
        rate = exp_rate(attr);
        verbs_mask |= IBV_QP_RATE_LIMIT;
    }
    return hv_qp_modify(ibqp, &verbs, verbs_mask, &rate);
}

void hv_exp_qp_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_create_qp = exp_create_qp;
    ops->lib_exp_create_qp = exp_create_qp;
    ops->drv_exp_modify_qp = exp_modify_qp;
    ops->lib_exp_modify_qp = exp_modify_qp;
}
