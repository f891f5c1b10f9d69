/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: posting by builders (ibv_wr_*()). If a series of builder calls fails, all that it
 * wrote is taken back.
 */
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/user/send_wqe.h"

static void wr_start(struct ibv_qp_ex *ex)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    pthread_spin_lock(&qp->sq.lock);
    qp->wr_err = qp->nreq = 0;
    qp->cur_post_rb = qp->sq_post;
    qp->small_fence_rb = qp->small_fence;
    qp->wr_setters_left = 0;
}

static void wr_roll_back(struct user_qp *qp)
{
    qp->sq.head -= (uint32_t)qp->nreq;
    qp->sq_post = qp->cur_post_rb;
    qp->small_fence = qp->small_fence_rb;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct user_qp *qp = user_qp(&ex->qp_base);
    int err;

    if (!qp->can_send) {
        hv_wqe_fail(qp, EINVAL, "the QP is in %s; it must be in RTS", hv_qp_state_name(qp->state));
    }
    err = qp->wr_err;
    if (!err) {
        return hv_wr_end_list(qp);
    }
    wr_roll_back(qp);
    pthread_spin_unlock(&qp->sq.lock);
    return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    wr_roll_back(qp);
    pthread_spin_unlock(&qp->sq.lock);
}

/* Begins a WQE. UD and DC messages need an address besides their data, an XRC message needs an SRQ;
 * the two setters may be called in either order. */
static bool wr_begin(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t imm)
{
    struct user_qp *qp = user_qp(&ex->qp_base);
    enum ibv_qp_type type = qp->ibv.qp_type;

    if (!hv_wqe_begin(qp, opcode, ex->wr_flags, ex->wr_id, 0, imm)) {
        return false;
    }
    qp->wr_setters_left =
        type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND || type == IBV_QPT_DRIVER ? 2 : 1;
    if (type == IBV_QPT_DRIVER) {
        /* set by hv_wr_set_dc_addr() */
        hv_wqe_put(qp, (struct prm_wqe_av[1]){0}, PRM_SIZE(wqe_av));
    } else if (type == IBV_QPT_XRC_SEND) {
        hv_wqe_put_xrc(qp, 0); /* set by wr_set_xrc_srqn() */
    } else if (type == IBV_QPT_RAW_PACKET && opcode == PRM_WQE_OPCODE_SEND) {
        hv_wqe_put_eth(qp, ex->wr_flags & IBV_SEND_IP_CSUM, 0, NULL, 0);
    }
    return true;
}

/* Whether there is an open WQE that waits for a setter. If there is none, nothing may be
 * written. */
static bool wr_is_open(struct user_qp *qp)
{
    if (!qp->wr_setters_left) {
        hv_wqe_fail(qp, EINVAL,
                    "a setter (ibv_wr_set_...) without a WR before it, or one too many");
    }
    return !qp->wr_err;
}

static void wr_setter_done(struct user_qp *qp)
{
    if (!qp->wr_err && --qp->wr_setters_left == 0) {
        hv_wqe_end(qp);
    }
}

static void wr_send(struct ibv_qp_ex *ex)
{
    wr_begin(ex, PRM_WQE_OPCODE_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    wr_begin(ex, PRM_WQE_OPCODE_SEND_IMM, GUINT32_FROM_BE(imm));
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    wr_begin(ex, PRM_WQE_OPCODE_SEND_INVAL, rkey);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    if (wr_begin(ex, PRM_WQE_OPCODE_TSO, 0)) {
        hv_wqe_put_eth(user_qp(&ex->qp_base), ex->wr_flags & IBV_SEND_IP_CSUM, mss, hdr, hdr_sz);
    }
}

static void wr_rdma(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t raddr,
                    uint32_t imm)
{
    if (wr_begin(ex, opcode, imm)) {
        hv_wqe_put_raddr(user_qp(&ex->qp_base), raddr, rkey);
    }
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
    wr_rdma(ex, PRM_WQE_OPCODE_RDMA_WRITE, rkey, raddr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, __be32 imm)
{
    wr_rdma(ex, PRM_WQE_OPCODE_RDMA_WRITE_IMM, rkey, raddr, GUINT32_FROM_BE(imm));
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
    wr_rdma(ex, PRM_WQE_OPCODE_RDMA_READ, rkey, raddr, 0);
}

static void wr_atomic(struct ibv_qp_ex *ex, bool swap, uint32_t rkey, uint64_t raddr, uint64_t a,
                      uint64_t b)
{
    if (wr_begin(ex, swap ? PRM_WQE_OPCODE_ATOMIC_CS : PRM_WQE_OPCODE_ATOMIC_FA, 0)) {
        hv_wqe_put_raddr(user_qp(&ex->qp_base), raddr, rkey);
        hv_wqe_put_atomic(user_qp(&ex->qp_base), swap, a, b);
    }
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t compare,
                              uint64_t swap)
{
    wr_atomic(ex, true, rkey, raddr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t add)
{
    wr_atomic(ex, false, rkey, raddr, add, 0);
}

static void wr_bind(struct ibv_qp_ex *ex, enum ibv_wc_opcode wc, uint32_t old_rkey,
                    uint32_t new_rkey, const struct ibv_mw_bind_info *info)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (hv_wqe_begin(qp, PRM_WQE_OPCODE_UMR, ex->wr_flags, ex->wr_id, wc, old_rkey)) {
        hv_wqe_put_bind(qp, IBV_MW_TYPE_2, new_rkey, info);
        if (!qp->wr_err) {
            hv_wqe_end(qp);
        }
    }
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    wr_bind(ex, IBV_WC_BIND_MW, mw->rkey, rkey, info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    const struct ibv_mw_bind_info none = {0};

    wr_bind(ex, IBV_WC_LOCAL_INV, rkey, 0, &none);
}

/* The address comes first in the WQE, so data that was set before it is moved behind it. */
static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct user_qp *qp = user_qp(&ex->qp_base);
    uint8_t data[1024];
    size_t len;

    if (!wr_is_open(qp)) {
        return;
    }
    len = qp->cur_size * 16 - 16;
    if (len > sizeof(data)) {
        hv_wqe_fail(qp, ENOMEM, "more data before ibv_wr_set_ud_addr() than a WQE has room for");
        return;
    }
    for (size_t i = 0; i < len; i += 16) {
        size_t at = (size_t)(qp->cur_ctrl->bytes - qp->sq.buf) + 16 + i;

        memcpy(data + i, qp->sq.buf + at % ((size_t)qp->sq.wqe_cnt * HV_WQEBB), 16);
    }
    qp->cur_data = qp->cur_ctrl->bytes;
    qp->cur_size = 0;
    hv_wqe_put(qp, qp->cur_ctrl, 16);
    hv_wqe_put_av(qp, ah, qpn, qkey);
    hv_wqe_put(qp, data, len);
    wr_setter_done(qp);
}

void hv_wr_set_dc_addr(struct user_qp *qp, const struct ibv_ah *ah, uint32_t dctn, uint64_t key,
                       const uint16_t *stream)
{
    if (wr_is_open(qp)) { /* the address follows the control segment, in the same basic block */
        struct prm_wqe_av *av = (void *)(qp->cur_ctrl + 1);

        *av = ((const struct hv_ah *)ah)->av[0];
        PRM_SET(wqe_av, av, ext, 1);
        PRM_SET(wqe_av, av, dqp_dct, dctn & 0xffffff);
        PRM_SET(wqe_av, av, dc_key, key);
        if (stream) {
            PRM_SET(wqe_ctrl_seg, qp->cur_ctrl, dci_stream_channel_id, *stream);
        }
        wr_setter_done(qp);
    }
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (wr_is_open(qp)) { /* right after the control segment, in the same basic block */
        struct prm_wqe_xrc_seg *xrc = (void *)(qp->cur_ctrl + 1);

        PRM_SET(wqe_xrc_seg, xrc, xrc_srqn, remote_srqn & 0xffffff);
        wr_setter_done(qp);
    }
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (wr_is_open(qp)) {
        hv_wqe_put_sges(qp, num, list);
        wr_setter_done(qp);
    }
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (!wr_is_open(qp)) {
        return;
    }
    if (qp->l2_due) {
        wr_set_sge_list(ex, 1, &(struct ibv_sge){addr, length, lkey});
    } else {
        hv_wqe_put_sge(qp, lkey, addr, length);
        wr_setter_done(qp);
    }
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num,
                                    const struct ibv_data_buf *list)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (wr_is_open(qp)) {
        hv_wqe_put_inline(qp, num, list);
        wr_setter_done(qp);
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &buf);
}

/* The operations that each service type supports. */
static uint64_t wr_possible_ops(enum ibv_qp_type type)
{
    const uint64_t ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    const uint64_t uc = ud | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |
                        IBV_QP_EX_WITH_LOCAL_INV;
    const uint64_t rc = uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_DRIVER: /* a DCI */
        return rc;
    case IBV_QPT_UC:
        return uc;
    case IBV_QPT_UD:
        return ud;
    case IBV_QPT_RAW_PACKET:
        return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
    default:
        return 0;
    }
}

int hv_qp_init_builders(struct user_qp *qp, uint64_t send_ops_flags)
{
    enum ibv_qp_type type = qp->ibv.qp_type;
    struct ibv_qp_ex *ex = &qp->ex;
    uint64_t possible = wr_possible_ops(type);

    if (!possible || (send_ops_flags & ~possible)) {
        return hv_refuse(qp->hca, EOPNOTSUPP,
                         "create_qp: send_ops_flags 0x%" PRIx64 "; a %s QP may have 0x%" PRIx64,
                         send_ops_flags, hv_qp_type_name(type), possible);
    }
#define USE(flag, op) ex->op = possible & IBV_QP_EX_WITH_##flag ? op : NULL
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_ud_addr = type == IBV_QPT_UD ? wr_set_ud_addr : NULL;
    ex->wr_set_xrc_srqn = type == IBV_QPT_XRC_SEND ? wr_set_xrc_srqn : NULL;
    USE(SEND, wr_send);
    USE(SEND_WITH_IMM, wr_send_imm);
    USE(SEND_WITH_INV, wr_send_inv);
    USE(TSO, wr_send_tso);
    USE(RDMA_WRITE, wr_rdma_write);
    USE(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
    USE(RDMA_READ, wr_rdma_read);
    USE(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
    USE(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
    USE(BIND_MW, wr_bind_mw);
    USE(LOCAL_INV, wr_local_inv);
#undef USE
    return 0;
}
