/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: posting, by lists (ibv_post_send(), ibv_post_recv()) and by builders (ibv_wr_*()).
 *
 * A WQE is written into the ring in units of 16 bytes, at whose end it goes on at the beginning.
 * What is posted counts when the doorbell record says so; a list or a series of builders that fails
 * takes back what it wrote.
 */
#include <string.h>
#include "guest-lib/verbs/user/qp.h"

#define WQEBB          64u
#define MIN_TSO_HEADER 14 /* an Ethernet header */

/* -- building ---------------------------------------------------------------------------------- */

static void send_fail(struct user_qp *qp, int err)
{
    if (!qp->wr_err) {
        qp->wr_err = err;
    }
}

/* Copies what does not fit before the end of the ring. */
static G_GNUC_NO_INLINE void send_put_round(struct user_qp *qp, const void *data, size_t len)
{
    uint8_t *end = qp->sq.buf + (size_t)qp->sq.wqe_cnt * WQEBB;
    size_t part = MIN(len, (size_t)(end - qp->cur_data));

    memcpy(qp->cur_data, data, part);
    memcpy(qp->sq.buf, (const uint8_t *)data + part, len - part);
    qp->cur_data = qp->sq.buf + (len - part);
}

/* Copies whole units to where the WQE goes on. */
static inline void send_put(struct user_qp *qp, const void *data, size_t len)
{
    const uint8_t *end = qp->sq.buf + (size_t)qp->sq.wqe_cnt * WQEBB;

    if (G_LIKELY((size_t)(end - qp->cur_data) > len)) {
        memcpy(qp->cur_data, data, len);
        qp->cur_data += len;
    } else {
        send_put_round(qp, data, len);
    }
    qp->cur_size += (uint32_t)len / 16;
}

/* Begins a WQE: false (wr_err) if there is no room. */
static bool send_begin(struct user_qp *qp, uint8_t opcode, unsigned flags, uint64_t wr_id,
                       enum ibv_wc_opcode wc, uint32_t imm)
{
    uint32_t index = qp->sq_post & (qp->sq.wqe_cnt - 1);
    struct prm_wqe_ctrl_seg ctrl[1] = {0};
    unsigned fence;

    if (qp->wr_err) {
        return false;
    }
    if (qp->sq.head - __atomic_load_n(&qp->sq.tail, __ATOMIC_ACQUIRE) >= qp->sq.max_post) {
        send_fail(qp, ENOMEM);
        return false;
    }
    fence = flags & IBV_SEND_FENCE ? PRM_WQE_FM_SMALL_AND_FENCE
            : qp->small_fence      ? PRM_WQE_FM_INITIATOR_SMALL
                                   : PRM_WQE_FM_NONE;
    qp->small_fence = false;
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, qp->sq_post & 0xffff);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, qp->ibv.qp_num);
    PRM_SET(wqe_ctrl_seg, ctrl, fm, fence);
    PRM_SET(wqe_ctrl_seg, ctrl, ce,
            flags & IBV_SEND_SIGNALED || qp->sq_sig_all ? PRM_WQE_CE_ALWAYS : PRM_WQE_CE_ERROR);
    PRM_SET(wqe_ctrl_seg, ctrl, se, !!(flags & IBV_SEND_SOLICITED));
    PRM_SET(wqe_ctrl_seg, ctrl, imm, imm);
    qp->sq.wrid[index] = wr_id;
    qp->sq.wr_data[index] = (uint8_t)wc;
    qp->sq_wqe_head[index] = qp->sq.head;
    qp->cur_data = qp->sq.buf + (size_t)index * WQEBB;
    qp->cur_ctrl = (void *)qp->cur_data;
    qp->cur_size = 0;
    qp->wr_setters_left = 0;
    send_put(qp, ctrl, sizeof(ctrl));
    return true;
}

static void send_commit(struct user_qp *qp)
{
    qp->sq_post += (qp->cur_size + 3) / 4;
    qp->sq.head++;
    qp->nreq++;
}

/* The length goes into a whole byte, as from libmlx5, though ds has six bits of it: a WQE of the
 * largest size has 64 units. Such a one has no length, and the device completes it in error.
 * (mlx5e, whose WQEs may be as large, stays a block below.) */
static void send_end(struct user_qp *qp)
{
    prm_store32(&qp->cur_ctrl->bytes[4], qp->ibv.qp_num << 8 | (qp->cur_size & 0xff));
    send_commit(qp);
}

static void send_put_raddr(struct user_qp *qp, uint64_t raddr, uint32_t rkey)
{
    struct prm_wqe_raddr_seg seg[1] = {0};

    PRM_SET(wqe_raddr_seg, seg, raddr, raddr);
    PRM_SET(wqe_raddr_seg, seg, rkey, rkey);
    send_put(qp, seg, sizeof(seg));
}

static void send_put_atomic(struct user_qp *qp, bool swap, uint64_t compare_add,
                            uint64_t swap_value)
{
    struct prm_wqe_atomic_seg seg[1] = {0};

    PRM_SET(wqe_atomic_seg, seg, swap_add, swap ? swap_value : compare_add);
    PRM_SET(wqe_atomic_seg, seg, compare, swap ? compare_add : 0);
    send_put(qp, seg, sizeof(seg));
}

static void send_put_av(struct user_qp *qp, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct prm_wqe_av seg[1] = {((const struct hv_ah *)ah)->av[0]};

    PRM_SET(wqe_av, seg, ext, 1);
    PRM_SET(wqe_av, seg, dqp_dct, qpn & 0xffffff);
    PRM_SET(wqe_av, seg, qkey, qkey);
    send_put(qp, seg, sizeof(seg));
}

static void send_put_xrc(struct user_qp *qp, uint32_t srqn)
{
    struct prm_wqe_xrc_seg seg[1] = {0};

    PRM_SET(wqe_xrc_seg, seg, xrc_srqn, srqn & 0xffffff);
    send_put(qp, seg, sizeof(seg));
}

/* With its first bytes (hdr), or none. */
static void send_put_eth_seg(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr,
                             size_t hdr_len)
{
    const size_t in_seg = PRM_SIZE(wqe_eth_seg) - PRM_OFFSET(wqe_eth_seg, inline_hdr_start);
    struct prm_wqe_eth_seg seg[1] = {0};
    uint8_t unit[16];

    PRM_SET(wqe_eth_seg, seg, l3_csum, csum);
    PRM_SET(wqe_eth_seg, seg, l4_csum, csum);
    if (hdr) {
        PRM_SET(wqe_eth_seg, seg, mss, mss);
        PRM_SET(wqe_eth_seg, seg, inline_hdr_sz, hdr_len);
        memcpy(PRM_PTR(wqe_eth_seg, seg, inline_hdr_start), hdr, in_seg);
    }
    send_put(qp, seg, sizeof(seg));
    for (size_t at = in_seg; hdr && at < hdr_len; at += sizeof(unit)) {
        size_t part = MIN(hdr_len - at, sizeof(unit));

        memset(unit, 0, sizeof(unit));
        memcpy(unit, (const uint8_t *)hdr + at, part);
        send_put(qp, unit, sizeof(unit));
    }
}

/* A raw packet's headers need not be in the WQE, unless it is cut into segments (hdr), or the
 * device wants them there: then the segment waits for the data (send_put_l2()). */
static void send_put_eth(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr,
                         size_t hdr_len)
{
    if (hdr && (hdr_len < MIN_TSO_HEADER || hdr_len > qp->max_tso_header)) {
        send_fail(qp, EINVAL);
        return;
    }
    qp->l2_due = !hdr && qp->inline_l2;
    qp->l2_csum = csum;
    if (!qp->l2_due) {
        send_put_eth_seg(qp, csum, mss, hdr, hdr_len);
    }
}

static void send_put_sge(struct user_qp *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct prm_wqe_data_seg seg[1] = {0};

    if (length) { /* 0 would be 2 GiB */
        PRM_SET(wqe_data_seg, seg, byte_count, length & 0x7fffffff);
        PRM_SET(wqe_data_seg, seg, lkey, lkey);
        PRM_SET(wqe_data_seg, seg, addr, addr);
        send_put(qp, seg, sizeof(seg));
    }
}

/* The Ethernet segment with the packet's first bytes, as libmlx5 copies them; how many those are.
 */
static size_t send_put_l2(struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    uint8_t hdr[HV_L2_HEADER];
    size_t len = 0;

    for (size_t i = 0; i < num && len < sizeof(hdr); i++) {
        size_t part = MIN(sizeof(hdr) - len, sge[i].length);

        memcpy(hdr + len, (const void *)(uintptr_t)sge[i].addr, part);
        len += part;
    }
    len = len < MIN_TSO_HEADER ? 0 : len; /* no packet: the device says so */
    send_put_eth_seg(qp, qp->l2_csum, 0, len ? hdr : NULL, len);
    qp->l2_due = false;
    return len;
}

static void send_put_sges(struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    size_t inlined;

    if (num > qp->sq.max_gs) {
        send_fail(qp, ENOMEM);
        return;
    }
    inlined = qp->l2_due ? send_put_l2(qp, num, sge) : 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t part = (uint32_t)MIN(inlined, sge[i].length);

        send_put_sge(qp, sge[i].lkey, sge[i].addr + part, sge[i].length - part);
        inlined -= part;
    }
}

/* As mlx5_post_send() counts the data of a large send. */
static bool send_fits_tso(const struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    uint64_t left = qp->max_tso;

    for (size_t i = 0; i < num; i++) {
        if (sge[i].length > left) {
            return false;
        }
        left -= sge[i].length;
    }
    return true;
}

/* Inline data in as many pieces as there are. */
static void send_put_inline(struct user_qp *qp, size_t num, const struct ibv_data_buf *bufs)
{
    uint8_t unit[16] = {0};
    size_t total = 0, fill = 4;

    for (size_t i = 0; i < num; i++) {
        if (bufs[i].length > qp->max_inline - total) {
            send_fail(qp, ENOMEM);
            return;
        }
        total += bufs[i].length;
    }
    if (!total) {
        return;
    }
    prm_store32(unit, 1u << 31 | (uint32_t)total);
    for (size_t i = 0; i < num; i++) {
        const uint8_t *at = bufs[i].addr;
        size_t left = bufs[i].length;

        while (left) {
            size_t part = MIN(left, sizeof(unit) - fill);

            memcpy(unit + fill, at, part);
            fill += part;
            at += part;
            left -= part;
            if (fill == sizeof(unit)) {
                send_put(qp, unit, sizeof(unit));
                fill = 0;
            }
        }
    }
    if (fill) {
        memset(unit + fill, 0, sizeof(unit) - fill);
        send_put(qp, unit, sizeof(unit));
    }
}

#define BIT(name) (1ull << PRM_MKEY_MASK_##name)

/* A UMR that binds a window, or with no length takes a key back. */
static void send_put_bind(struct user_qp *qp, enum ibv_mw_type type, uint32_t new_rkey,
                          const struct ibv_mw_bind_info *info)
{
    struct prm_wqe_umr_ctrl_seg umr[1] = {0};
    struct prm_mkc mkc[1] = {0};
    struct prm_wqe_klm_seg klm[4] = {0}; /* the one, and padding */
    uint64_t mask = BIT(FREE) | BIT(KEY) | (type == IBV_MW_TYPE_2 ? BIT(QPN) : 0);

    if (info->length > 1ull << 31) {
        send_fail(qp, EOPNOTSUPP);
        return;
    }
    PRM_SET(wqe_umr_ctrl_seg, umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr, translation_offset_en, 1);
    PRM_SET(mkc, mkc, mkey_7_0, new_rkey & 0xff);
    PRM_SET(mkc, mkc, qpn, type == IBV_MW_TYPE_1 || !info->length ? 0xffffff : qp->ibv.qp_num);
    if (info->length) {
        unsigned access = info->mw_access_flags;

        mask |= BIT(LEN) | BIT(START_ADDR) | BIT(LW) | BIT(RR) | BIT(RW) | BIT(A);
        PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, 4);
        PRM_SET(wqe_umr_ctrl_seg, umr, check_free,
                type == IBV_MW_TYPE_2 ? PRM_UMR_CHECK_NOT_FREE : PRM_UMR_CHECK_NONE);
        PRM_SET(mkc, mkc, lw, !!(access & IBV_ACCESS_LOCAL_WRITE));
        PRM_SET(mkc, mkc, rw, !!(access & IBV_ACCESS_REMOTE_WRITE));
        PRM_SET(mkc, mkc, rr, !!(access & IBV_ACCESS_REMOTE_READ));
        PRM_SET(mkc, mkc, a, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
        PRM_SET(mkc, mkc, start_addr, access & IBV_ACCESS_ZERO_BASED ? 0 : info->addr);
        PRM_SET(mkc, mkc, len, info->length);
        PRM_SET(wqe_klm_seg, klm, byte_count, info->length);
        PRM_SET(wqe_klm_seg, klm, mkey, info->mr->lkey);
        PRM_SET(wqe_klm_seg, klm, va, info->addr);
    } else {
        PRM_SET(mkc, mkc, free, 1);
        PRM_SET(wqe_umr_ctrl_seg, umr, check_qpn, type == IBV_MW_TYPE_2);
    }
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask, mask);
    send_put(qp, umr, sizeof(umr));
    send_put(qp, mkc, sizeof(mkc));
    if (info->length) {
        send_put(qp, klm, sizeof(klm));
    }
    qp->small_fence = true;
}

void hv_wr_post_wqe(struct user_qp *qp, const void *wqe, unsigned ds, enum ibv_wc_opcode wc_opcode,
                    bool raw)
{
    const struct prm_wqe_ctrl_seg *ctrl = wqe;

    if (!ds ||
        !send_begin(qp, (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode), qp->ex.wr_flags, qp->ex.wr_id,
                    wc_opcode, (uint32_t)PRM_GET(wqe_ctrl_seg, ctrl, general_id))) {
        return;
    }
    if (raw) {
        prm_store32(qp->cur_ctrl, (prm_load32(ctrl) & 0xff0000ff) | (qp->sq_post & 0xffff) << 8);
        memcpy(&qp->cur_ctrl->bytes[4], &ctrl->bytes[4], 12);
    }
    /* it may be longer than the ring: the last one wins, and nothing else is written */
    for (unsigned at = 1; at < ds; at++) {
        send_put(qp, ctrl + at, 16);
    }
    if (raw) {
        send_commit(qp);
    } else {
        send_end(qp);
        qp->small_fence = true;
    }
}

/* -- lists ------------------------------------------------------------------------------------- */

/* What goes into the control segment beside the opcode. */
static uint32_t send_imm_data(const struct ibv_send_wr *wr)
{
    return GUINT32_FROM_BE(wr->imm_data);
}

static uint32_t send_imm_key(const struct ibv_send_wr *wr)
{
    return wr->invalidate_rkey;
}

static uint32_t send_imm_window(const struct ibv_send_wr *wr)
{
    return wr->bind_mw.mw->rkey;
}

/* Segments that come before the data, or in its place. */
static void send_put_rdma(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    send_put_raddr(qp, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
}

static void send_put_cmp_swap(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    send_put_raddr(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
    send_put_atomic(qp, true, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static void send_put_fetch_add(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    send_put_raddr(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
    send_put_atomic(qp, false, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static void send_put_window(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    send_put_bind(qp, wr->bind_mw.mw->type, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

static void send_put_local_inv(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    const struct ibv_mw_bind_info none = {0};

    send_put_bind(qp, IBV_MW_TYPE_2, 0, &none);
}

static const struct send_op {
    bool known;
    uint8_t opcode, wc;
    unsigned types;                                /* bit per enum ibv_qp_type: where it is known */
    uint32_t (*imm)(const struct ibv_send_wr *wr); /* or NULL */
    void (*put)(struct user_qp *qp, const struct ibv_send_wr *wr); /* or NULL */
} ops[] = {
#define T(type)   (1u << IBV_QPT_##type)
#define RELIABLE  (T(RC) | T(XRC_SEND))
#define CONNECTED (RELIABLE | T(UC))
    [IBV_WR_RDMA_WRITE] = {.known = true,
                           .opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                           .types = CONNECTED,
                           .put = send_put_rdma},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {.known = true,
                                    .opcode = PRM_WQE_OPCODE_RDMA_WRITE_IMM,
                                    .types = CONNECTED,
                                    .imm = send_imm_data,
                                    .put = send_put_rdma},
    [IBV_WR_SEND] = {.known = true,
                     .opcode = PRM_WQE_OPCODE_SEND,
                     .types = CONNECTED | T(UD) | T(RAW_PACKET)},
    [IBV_WR_SEND_WITH_IMM] = {.known = true,
                              .opcode = PRM_WQE_OPCODE_SEND_IMM,
                              .types = CONNECTED | T(UD),
                              .imm = send_imm_data},
    [IBV_WR_RDMA_READ] = {.known = true,
                          .opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .types = RELIABLE,
                          .put = send_put_rdma},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {.known = true,
                                   .opcode = PRM_WQE_OPCODE_ATOMIC_CS,
                                   .types = RELIABLE,
                                   .put = send_put_cmp_swap},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {.known = true,
                                     .opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                                     .types = RELIABLE,
                                     .put = send_put_fetch_add},
    [IBV_WR_LOCAL_INV] = {.known = true,
                          .opcode = PRM_WQE_OPCODE_UMR,
                          .wc = IBV_WC_LOCAL_INV,
                          .types = CONNECTED,
                          .imm = send_imm_key,
                          .put = send_put_local_inv},
    [IBV_WR_BIND_MW] = {.known = true,
                        .opcode = PRM_WQE_OPCODE_UMR,
                        .wc = IBV_WC_BIND_MW,
                        .types = CONNECTED,
                        .imm = send_imm_window,
                        .put = send_put_window},
    [IBV_WR_SEND_WITH_INV] = {.known = true,
                              .opcode = PRM_WQE_OPCODE_SEND_INVAL,
                              .types = CONNECTED,
                              .imm = send_imm_key},
    [IBV_WR_TSO] = {.known = true, .opcode = PRM_WQE_OPCODE_TSO, .types = T(RAW_PACKET)},
    /* libmlx5's builders use it */
    [IBV_WR_DRIVER1] = {.known = true, .opcode = PRM_WQE_OPCODE_UMR},
#undef CONNECTED
#undef RELIABLE
#undef T
};

static bool send_op_known(enum ibv_wr_opcode op)
{
    return (unsigned)op < G_N_ELEMENTS(ops) && ops[op].known;
}

/* What a QP of such a type has behind the control segment. */
static void send_put_type(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    switch (qp->ibv.qp_type) {
    case IBV_QPT_UD:
        send_put_av(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
        break;
    case IBV_QPT_RAW_PACKET:
        send_put_eth(qp, wr->send_flags & IBV_SEND_IP_CSUM, wr->tso.mss,
                     wr->opcode == IBV_WR_TSO ? wr->tso.hdr : NULL, wr->tso.hdr_sz);
        break;
    case IBV_QPT_XRC_SEND:
        if (ops[wr->opcode].opcode != PRM_WQE_OPCODE_UMR) {
            send_put_xrc(qp, wr->qp_type.xrc.remote_srqn);
        }
        break;
    default:
        break;
    }
}

/* What the list of any request names, whether or not it has a use for data. */
static void send_put_data(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    struct ibv_data_buf bufs[64];

    if (!(wr->send_flags & IBV_SEND_INLINE) || !wr->num_sge) {
        if (wr->opcode == IBV_WR_TSO && !send_fits_tso(qp, (size_t)wr->num_sge, wr->sg_list)) {
            send_fail(qp, EINVAL);
            return;
        }
        send_put_sges(qp, (size_t)wr->num_sge, wr->sg_list);
        return;
    }
    if ((uint32_t)wr->num_sge > MIN(qp->sq.max_gs, G_N_ELEMENTS(bufs))) {
        send_fail(qp, ENOMEM);
        return;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        bufs[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
        bufs[i].length = wr->sg_list[i].length;
    }
    send_put_inline(qp, (size_t)wr->num_sge, bufs);
}

/* A request that this type of QP does not do goes to the device all the same, without the segments
 * that are its own; the device completes it in error. */
static void send_build(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    const struct send_op *op;
    uint32_t imm = 0;
    bool fits;

    if (!send_op_known(wr->opcode)) {
        send_fail(qp, EINVAL);
        return;
    }
    if ((uint32_t)wr->num_sge > qp->sq.max_gs) {
        send_fail(qp, ENOMEM);
        return;
    }
    op = &ops[wr->opcode];
    fits = qp->dc == HV_DC_NONE && (op->types >> qp->ibv.qp_type & 1);
    if (op->imm && (fits || op->imm != send_imm_window)) { /* there may be no window */
        imm = op->imm(wr);
    }
    if (!send_begin(qp, op->opcode, wr->send_flags, wr->wr_id, fits ? op->wc : 0, imm)) {
        return;
    }
    send_put_type(qp, wr);
    if (fits && op->put) {
        op->put(qp, wr);
    }
    send_put_data(qp, wr);
    if (!qp->wr_err) {
        send_end(qp);
    }
}

/* Ends what was begun under the lock: tells the device of what was posted. 0 or EIO. */
static int send_unlock_and_ring(struct user_qp *qp)
{
    bool any = qp->nreq;
    uint64_t ctrl = 0;

    if (any) {
        ctrl = prm_load64(qp->cur_ctrl);
        __atomic_store_n(&qp->dbrec[1], GUINT32_TO_BE(qp->sq_post & 0xffff), __ATOMIC_RELEASE);
    }
    pthread_spin_unlock(&qp->sq.lock);
    return any ? hv_ring_sq(qp->hca, qp->uar, ctrl) : 0;
}

void hv_wr_begin_list(struct user_qp *qp)
{
    pthread_spin_lock(&qp->sq.lock);
    qp->wr_err = qp->nreq = 0;
    qp->ex.wr_flags = 0;
}

int hv_wr_end_list(struct user_qp *qp)
{
    return send_unlock_and_ring(qp);
}

static int qp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct user_qp *qp = user_qp(ibqp);
    struct ibv_send_wr *first = wr;
    int err, lost;

    if (!qp->can_send && wr) { /* libmlx5's answers */
        *bad_wr = wr;
        return send_op_known(wr->opcode) ? ENOMEM : EINVAL;
    }
    pthread_spin_lock(&qp->sq.lock);
    qp->wr_err = qp->nreq = 0;
    for (; wr; wr = wr->next) {
        send_build(qp, wr);
        if (qp->wr_err) {
            *bad_wr = wr;
            break;
        }
    }
    err = qp->wr_err;
    lost = send_unlock_and_ring(qp);
    if (lost) {
        *bad_wr = first;
    }
    return lost ? lost : err;
}

int hv_rq_post(struct hv_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int err = 0;

    for (; wr; wr = wr->next) {
        uint32_t index = rq->head & (rq->wqe_cnt - 1);
        struct prm_wqe_data_seg *seg = (void *)(rq->buf + ((size_t)index << rq->wqe_shift));
        uint32_t n = 0;

        if (rq->head - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) >= rq->max_post) {
            err = ENOMEM;
        } else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_gs) {
            err = EINVAL;
        }
        if (err) {
            *bad_wr = wr;
            break;
        }
        for (int i = 0; i < wr->num_sge; i++) {
            if (wr->sg_list[i].length) {
                PRM_SET(wqe_data_seg, &seg[n], inl, 0);
                PRM_SET(wqe_data_seg, &seg[n], byte_count, wr->sg_list[i].length & 0x7fffffff);
                PRM_SET(wqe_data_seg, &seg[n], lkey, wr->sg_list[i].lkey);
                PRM_SET(wqe_data_seg, &seg[n], addr, wr->sg_list[i].addr);
                n++;
            }
        }
        if (n < rq->max_gs) { /* the list ends before the WQE does */
            memset(&seg[n], 0, sizeof(seg[n]));
            PRM_SET(wqe_data_seg, &seg[n], lkey, 0x100);
        }
        rq->wrid[index] = wr->wr_id;
        rq->head++;
    }
    return err;
}

static int qp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct user_qp *qp = user_qp(ibqp);
    bool early = qp->state == IBV_QPS_RESET && qp->rq.max_post;
    uint32_t head;
    int err;

    if (wr && (early || !hv_is_ours(qp->hca))) {
        *bad_wr = wr;
        return early ? EINVAL : EIO;
    }
    pthread_spin_lock(&qp->rq.lock);
    head = qp->rq.head;
    err = hv_rq_post(&qp->rq, wr, bad_wr); /* where there is no receive queue, it is always full */
    /* the RQ of a raw packet QP is ready before the QP may receive */
    if (qp->rq.head != head && (ibqp->qp_type != IBV_QPT_RAW_PACKET || qp->state >= IBV_QPS_RTR)) {
        __atomic_store_n(&qp->dbrec[0], GUINT32_TO_BE(qp->rq.head & 0xffff), __ATOMIC_RELEASE);
    }
    pthread_spin_unlock(&qp->rq.lock);
    return err;
}

/* -- builders ---------------------------------------------------------------------------------- */

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
    int err = qp->wr_err ? qp->wr_err : qp->can_send ? 0 : EINVAL;

    if (!err) {
        return send_unlock_and_ring(qp);
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

/* A datagram and a message of DC need their address as well as their data, an XRC message its SRQ,
 * in either order. */
static bool wr_begin(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t imm)
{
    struct user_qp *qp = user_qp(&ex->qp_base);
    enum ibv_qp_type type = qp->ibv.qp_type;

    if (!send_begin(qp, opcode, ex->wr_flags, ex->wr_id, 0, imm)) {
        return false;
    }
    qp->wr_setters_left =
        type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND || type == IBV_QPT_DRIVER ? 2 : 1;
    if (type == IBV_QPT_DRIVER) {
        send_put(qp, (struct prm_wqe_av[1]){0}, PRM_SIZE(wqe_av)); /* hv_wr_set_dc_addr() */
    } else if (type == IBV_QPT_XRC_SEND) {
        send_put_xrc(qp, 0); /* wr_set_xrc_srqn() */
    } else if (type == IBV_QPT_RAW_PACKET && opcode == PRM_WQE_OPCODE_SEND) {
        send_put_eth(qp, ex->wr_flags & IBV_SEND_IP_CSUM, 0, NULL, 0);
    }
    return true;
}

/* Whether a WQE is open that waits for what a setter says; if none is, nothing is written. */
static bool wr_is_open(struct user_qp *qp)
{
    if (!qp->wr_setters_left) {
        send_fail(qp, EINVAL);
    }
    return !qp->wr_err;
}

static void wr_setter_done(struct user_qp *qp)
{
    if (!qp->wr_err && --qp->wr_setters_left == 0) {
        send_end(qp);
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
        send_put_eth(user_qp(&ex->qp_base), ex->wr_flags & IBV_SEND_IP_CSUM, mss, hdr, hdr_sz);
    }
}

static void wr_rdma(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t raddr,
                    uint32_t imm)
{
    if (wr_begin(ex, opcode, imm)) {
        send_put_raddr(user_qp(&ex->qp_base), raddr, rkey);
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
        send_put_raddr(user_qp(&ex->qp_base), raddr, rkey);
        send_put_atomic(user_qp(&ex->qp_base), swap, a, b);
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

    if (send_begin(qp, PRM_WQE_OPCODE_UMR, ex->wr_flags, ex->wr_id, wc, old_rkey)) {
        send_put_bind(qp, IBV_MW_TYPE_2, new_rkey, info);
        if (!qp->wr_err) {
            send_end(qp);
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

/* The address comes first in the WQE: data that was set before it moves behind it. */
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
        send_fail(qp, ENOMEM);
        return;
    }
    for (size_t i = 0; i < len; i += 16) {
        size_t at = (size_t)(qp->cur_ctrl->bytes - qp->sq.buf) + 16 + i;

        memcpy(data + i, qp->sq.buf + at % ((size_t)qp->sq.wqe_cnt * WQEBB), 16);
    }
    qp->cur_data = qp->cur_ctrl->bytes;
    qp->cur_size = 0;
    send_put(qp, qp->cur_ctrl, 16);
    send_put_av(qp, ah, qpn, qkey);
    send_put(qp, data, len);
    wr_setter_done(qp);
}

void hv_wr_set_dc_addr(struct user_qp *qp, const struct ibv_ah *ah, uint32_t dctn, uint64_t key,
                       const uint16_t *stream)
{
    if (wr_is_open(qp)) { /* the address follows the control segment: they are one basic block */
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

    if (wr_is_open(qp)) { /* right after the control segment: they share a basic block */
        struct prm_wqe_xrc_seg *xrc = (void *)(qp->cur_ctrl + 1);

        PRM_SET(wqe_xrc_seg, xrc, xrc_srqn, remote_srqn & 0xffffff);
        wr_setter_done(qp);
    }
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (wr_is_open(qp)) {
        send_put_sges(qp, num, list);
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
        send_put_sge(qp, lkey, addr, length);
        wr_setter_done(qp);
    }
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num,
                                    const struct ibv_data_buf *list)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (wr_is_open(qp)) {
        send_put_inline(qp, num, list);
        wr_setter_done(qp);
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &buf);
}

/* What may be asked for, by service type. */
static uint64_t send_possible_ops(enum ibv_qp_type type)
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
    uint64_t possible = send_possible_ops(type);

    if (!possible || (send_ops_flags & ~possible)) {
        return EOPNOTSUPP;
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

void hv_qp_send_ops(struct verbs_context *verbs)
{
    verbs->context.ops.post_send = qp_post_send;
    verbs->context.ops.post_recv = qp_post_recv;
}
