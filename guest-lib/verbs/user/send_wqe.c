/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds a send WQE; see user/send_wqe.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "guest-lib/verbs/user/send_wqe.h"
#include "guest-lib/verbs/user/trace.h"

#define MIN_TSO_HEADER 14 /* length of an Ethernet header */

void hv_wqe_fail(struct user_qp *qp, int err, const char *fmt, ...)
{
    g_autofree char *why = NULL;
    va_list ap;

    if (qp->wr_err) {
        return;
    }
    qp->wr_err = err;
    if (hv_says(qp->hca)) {
        va_start(ap, fmt);
        why = g_strdup_vprintf(fmt, ap);
        va_end(ap);
        hv_refuse(qp->hca, err, "post_send (QP 0x%x): %s", qp->ibv.qp_num, why);
    }
}

void hv_wqe_put_round(struct user_qp *qp, const void *data, size_t len)
{
    uint8_t *end = qp->sq.buf + (size_t)qp->sq.wqe_cnt * HV_WQEBB;
    size_t part = MIN(len, (size_t)(end - qp->cur_data));

    memcpy(qp->cur_data, data, part);
    memcpy(qp->sq.buf, (const uint8_t *)data + part, len - part);
    qp->cur_data = qp->sq.buf + (len - part);
}

bool hv_wqe_begin(struct user_qp *qp, uint8_t opcode, unsigned flags, uint64_t wr_id,
                  enum ibv_wc_opcode wc, uint32_t imm)
{
    uint32_t index = qp->sq_post & (qp->sq.wqe_cnt - 1);
    struct prm_wqe_ctrl_seg ctrl[1] = {0};
    unsigned fence;

    if (qp->wr_err) {
        return false;
    }
    if (qp->sq.head - __atomic_load_n(&qp->sq.tail, __ATOMIC_ACQUIRE) >= qp->sq.max_post &&
        !(qp->sq.unchecked && qp->sq.max_post)) {
        if (qp->sq.gpu_max) {
            hv_wqe_fail(qp, EOPNOTSUPP, HV_GPU_POSTS, "QP");
            return false;
        }
        hv_wqe_fail(qp, ENOMEM,
                    "the send queue is full: %u WRs wait for their completions to be polled, "
                    "max_send_wr is %u; the completion of a signaled WR frees those before it, too",
                    qp->sq.head - qp->sq.tail, qp->sq.max_post);
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
    qp->cur_data = qp->sq.buf + (size_t)index * HV_WQEBB;
    qp->cur_ctrl = (void *)qp->cur_data;
    qp->cur_size = 0;
    qp->wr_setters_left = 0;
    hv_wqe_put(qp, ctrl, sizeof(ctrl));
    return true;
}

static void send_commit(struct user_qp *qp)
{
    if (G_UNLIKELY(hv_traces)) {
        hv_trace_post(qp);
    }
    qp->sq_post += (qp->cur_size + 3) / 4;
    qp->sq.head++;
    qp->nreq++;
}

/* The length is written to a whole byte, as in libmlx5, although ds has only six bits of it. A WQE
 * of the largest size has 64 units; then ds is 0, and the device completes the WQE with an error.
 * (mlx5e's WQEs, which could be as large, are at least one block smaller.) */
void hv_wqe_end(struct user_qp *qp)
{
    prm_store32(&qp->cur_ctrl->bytes[4], qp->ibv.qp_num << 8 | (qp->cur_size & 0xff));
    send_commit(qp);
}

void hv_wqe_put_raddr(struct user_qp *qp, uint64_t raddr, uint32_t rkey)
{
    struct prm_wqe_raddr_seg seg[1] = {0};

    PRM_SET(wqe_raddr_seg, seg, raddr, raddr);
    PRM_SET(wqe_raddr_seg, seg, rkey, rkey);
    hv_wqe_put(qp, seg, sizeof(seg));
}

void hv_wqe_put_atomic(struct user_qp *qp, bool swap, uint64_t compare_add, uint64_t swap_value)
{
    struct prm_wqe_atomic_seg seg[1] = {0};

    PRM_SET(wqe_atomic_seg, seg, swap_add, swap ? swap_value : compare_add);
    PRM_SET(wqe_atomic_seg, seg, compare, swap ? compare_add : 0);
    hv_wqe_put(qp, seg, sizeof(seg));
}

void hv_wqe_put_av(struct user_qp *qp, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct prm_wqe_av seg[1] = {((const struct hv_ah *)ah)->av[0]};

    PRM_SET(wqe_av, seg, ext, 1);
    PRM_SET(wqe_av, seg, dqp_dct, qpn & 0xffffff);
    PRM_SET(wqe_av, seg, qkey, qkey);
    hv_wqe_put(qp, seg, sizeof(seg));
}

void hv_wqe_put_xrc(struct user_qp *qp, uint32_t srqn)
{
    struct prm_wqe_xrc_seg seg[1] = {0};

    PRM_SET(wqe_xrc_seg, seg, xrc_srqn, srqn & 0xffffff);
    hv_wqe_put(qp, seg, sizeof(seg));
}

void hv_wqe_put_eth_seg(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr,
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
    hv_wqe_put(qp, seg, sizeof(seg));
    for (size_t at = in_seg; hdr && at < hdr_len; at += sizeof(unit)) {
        size_t part = MIN(hdr_len - at, sizeof(unit));

        memset(unit, 0, sizeof(unit));
        memcpy(unit, (const uint8_t *)hdr + at, part);
        hv_wqe_put(qp, unit, sizeof(unit));
    }
}

/* A raw packet's headers need to be in the WQE only for segmentation (hdr), or if the device wants
 * them there; in the second case the segment is written together with the data (send_put_l2()). */
void hv_wqe_put_eth(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr, size_t hdr_len)
{
    if (hdr && (hdr_len < MIN_TSO_HEADER || hdr_len > qp->max_tso_header)) {
        hv_wqe_fail(qp, EINVAL, "tso.hdr_sz is %zu; it may be %u to %u (max_tso_header)", hdr_len,
                    MIN_TSO_HEADER, qp->max_tso_header);
        return;
    }
    qp->l2_due = !hdr && qp->inline_l2;
    qp->l2_csum = csum;
    if (!qp->l2_due) {
        hv_wqe_put_eth_seg(qp, csum, mss, hdr, hdr_len);
    }
}

void hv_wqe_put_sge(struct user_qp *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct prm_wqe_data_seg seg[1] = {0};

    if (length) { /* 0 would mean 2 GiB */
        PRM_SET(wqe_data_seg, seg, byte_count, length & 0x7fffffff);
        PRM_SET(wqe_data_seg, seg, lkey, lkey);
        PRM_SET(wqe_data_seg, seg, addr, addr);
        hv_wqe_put(qp, seg, sizeof(seg));
    }
}

/* Writes the Ethernet segment with the packet's first bytes, as libmlx5 copies them. Returns their
 * number. */
static size_t send_put_l2(struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    uint8_t hdr[HV_L2_HEADER];
    size_t len = 0;

    for (size_t i = 0; i < num && len < sizeof(hdr); i++) {
        size_t part = MIN(sizeof(hdr) - len, sge[i].length);

        memcpy(hdr + len, (const void *)(uintptr_t)sge[i].addr, part);
        len += part;
    }
    len = len < MIN_TSO_HEADER ? 0 : len; /* too short for a packet: the device reports the error */
    hv_wqe_put_eth_seg(qp, qp->l2_csum, 0, len ? hdr : NULL, len);
    qp->l2_due = false;
    return len;
}

void hv_wqe_put_sges(struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    size_t inlined;

    if (num > qp->sq.max_gs) {
        hv_wqe_fail(qp, ENOMEM, "num_sge is %zu; max_send_sge is %u", num, qp->sq.max_gs);
        return;
    }
    inlined = qp->l2_due ? send_put_l2(qp, num, sge) : 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t part = (uint32_t)MIN(inlined, sge[i].length);

        hv_wqe_put_sge(qp, sge[i].lkey, sge[i].addr + part, sge[i].length - part);
        inlined -= part;
    }
}

void hv_wqe_put_answer(struct user_qp *qp, size_t num, const struct ibv_sge *sge, uint32_t bytes)
{
    unsigned elements = 0;

    for (size_t i = 0; i < num; i++) {
        elements += sge[i].length != 0;
    }
    for (size_t i = 0; i < num; i++) {
        hv_wqe_put_sge(qp, sge[i].lkey, sge[i].addr,
                       elements == 1 && sge[i].length ? bytes : sge[i].length);
    }
}

/* Copies inline data from num pieces. */
void hv_wqe_put_inline(struct user_qp *qp, size_t num, const struct ibv_data_buf *bufs)
{
    uint8_t unit[16] = {0};
    size_t total = 0, fill = 4;

    for (size_t i = 0; i < num; i++) {
        if (bufs[i].length > qp->max_inline - total) {
            hv_wqe_fail(qp, ENOMEM, "more inline data than max_inline_data, which is %u",
                        qp->max_inline);
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
                hv_wqe_put(qp, unit, sizeof(unit));
                fill = 0;
            }
        }
    }
    if (fill) {
        memset(unit + fill, 0, sizeof(unit) - fill);
        hv_wqe_put(qp, unit, sizeof(unit));
    }
}

#define BIT(name) (1ull << PRM_MKEY_MASK_##name)

/* Writes a UMR that binds a window. If the length is 0, it invalidates the key. */
void hv_wqe_put_bind(struct user_qp *qp, enum ibv_mw_type type, uint32_t new_rkey,
                     const struct ibv_mw_bind_info *info)
{
    struct prm_wqe_umr_ctrl_seg umr[1] = {0};
    struct prm_mkc mkc[1] = {0};
    struct prm_wqe_klm_seg klm[4] = {0}; /* one entry, and padding */
    uint64_t mask = BIT(FREE) | BIT(KEY) | (type == IBV_MW_TYPE_2 ? BIT(QPN) : 0);

    if (info->length > 1ull << 31) {
        hv_wqe_fail(qp, EOPNOTSUPP, "a memory window of 0x%" PRIx64 " bytes; it may have 2 GiB",
                    info->length);
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
    hv_wqe_put(qp, umr, sizeof(umr));
    hv_wqe_put(qp, mkc, sizeof(mkc));
    if (info->length) {
        hv_wqe_put(qp, klm, sizeof(klm));
    }
    qp->small_fence = true;
}

void hv_wr_post_wqe(struct user_qp *qp, const void *wqe, unsigned ds, enum ibv_wc_opcode wc_opcode,
                    bool raw)
{
    const struct prm_wqe_ctrl_seg *ctrl = wqe;

    if (!ds ||
        !hv_wqe_begin(qp, (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode), qp->ex.wr_flags,
                      qp->ex.wr_id, wc_opcode, (uint32_t)PRM_GET(wqe_ctrl_seg, ctrl, general_id))) {
        return;
    }
    if (raw) {
        prm_store32(qp->cur_ctrl, (prm_load32(ctrl) & 0xff0000ff) | (qp->sq_post & 0xffff) << 8);
        memcpy(&qp->cur_ctrl->bytes[4], &ctrl->bytes[4], 12);
    }
    /* if it is longer than the ring, later units overwrite earlier ones, and nothing outside the
     * ring */
    for (unsigned at = 1; at < ds; at++) {
        hv_wqe_put(qp, ctrl + at, 16);
    }
    if (raw) {
        send_commit(qp);
    } else {
        hv_wqe_end(qp);
        qp->small_fence = true;
    }
}
