/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests of direct verbs: UMRs that configure a key of mlx5dv_create_mkey(); WQEs that the
 * program wrote itself; and cancelling posted work requests.
 *
 * A UMR WQE is built here (control, UMR control, key context, inline translation entries) and is
 * copied into the ring as a whole when its last setter was called. Errors are stored in wr_err, and
 * ibv_wr_complete() returns the first one, as for all builders.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/dv_crypto.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/qp.h"
#include "guest-lib/verbs/user/send_wqe.h"

#define INL_SEG_BYTES 4u /* header of an inline segment; not counted in the limit on payload */

size_t hv_dv_data_room(const struct user_qp *qp)
{
    return qp->max_inline ? qp->max_inline + INL_SEG_BYTES : 0;
}

static void dv_wr_set_err(struct user_qp *qp, int err)
{
    if (!qp->wr_err) {
        qp->wr_err = err;
    }
}

static void dv_wr_mask_bit(struct prm_wqe_umr_ctrl_seg *umr, unsigned bit)
{
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask,
            PRM_GET(wqe_umr_ctrl_seg, umr, mkey_mask) | 1ull << bit);
}

static bool dv_wr_has_mask_bit(const struct prm_wqe_umr_ctrl_seg *umr, unsigned bit)
{
    return PRM_GET(wqe_umr_ctrl_seg, umr, mkey_mask) >> bit & 1;
}

static void dv_wr_setter_done(struct hv_dv_qp *dv)
{
    if (--dv->setters_left) {
        return;
    }
    if (dv->cur_mkey->crypto) {
        hv_dv_crypto_finish(dv);
    } else if (dv->cur_mkey->sig) {
        hv_dv_sig_finish(dv);
    } else {
        hv_wr_post_wqe(dv->qp, dv->wqe, dv->wqe_size / 16, IBV_WC_DRIVER1, false);
    }
    dv->cur_mkey = NULL;
}

static void wr_mkey_configure(struct mlx5dv_qp_ex *ex, struct mlx5dv_mkey *mkey,
                              uint8_t num_setters, struct mlx5dv_mkey_conf_attr *attr)
{
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    struct user_qp *qp = dv->qp;
    struct prm_wqe_umr_ctrl_seg *umr = dv->wqe->umr;
    struct prm_mkc *mkc = dv->wqe->mkc;

    if (!(qp->ex.wr_flags & IBV_SEND_INLINE) || attr->comp_mask ||
        (attr->conf_flags & ~(uint32_t)MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR)) {
        dv_wr_set_err(qp, EOPNOTSUPP);
        return;
    }
    memset(dv->wqe, 0, dv->wqe_room);
    PRM_SET(wqe_ctrl_seg, dv->wqe->ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, dv->wqe->ctrl, umr_mkey, mkey->lkey);
    PRM_SET(wqe_umr_ctrl_seg, umr, inl, 1);
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_FREE);
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_KEY);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, mkey->lkey & 0xff);
    dv->wqe_size = sizeof(struct hv_umr_wqe);
    dv->cur_mkey = DV_CONTAINER(mkey, struct hv_dv_mkey);
    dv->setters_left = num_setters ? num_setters : 1;
    if (dv->cur_mkey->sig) {
        hv_dv_sig_begin(dv->cur_mkey, attr->conf_flags);
    }
    if (dv->cur_mkey->crypto) {
        hv_dv_crypto_begin(dv->cur_mkey);
    }
    if (!num_setters) {
        dv_wr_setter_done(dv);
    }
}

static void wr_set_mkey_access_flags(struct mlx5dv_qp_ex *ex, uint32_t access)
{
    const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    struct prm_wqe_umr_ctrl_seg *umr = dv->wqe->umr;
    struct prm_mkc *mkc = dv->wqe->mkc;

    if (dv->qp->wr_err) {
        return;
    }
    if (!dv->cur_mkey || (access & ~known) || dv_wr_has_mask_bit(umr, PRM_MKEY_MASK_LW)) {
        dv_wr_set_err(dv->qp, EINVAL);
        return;
    }
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_LW);
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_RR);
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_RW);
    dv_wr_mask_bit(umr, PRM_MKEY_MASK_A);
    PRM_SET(mkc, mkc, lw, !!(access & IBV_ACCESS_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(access & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    dv_wr_setter_done(dv);
}

/* Whether a layout with this number of entries of 16 bytes can be set now. */
static bool dv_wr_may_set_layout(struct hv_dv_qp *dv, size_t entries, size_t wanted)
{
    struct user_qp *qp = dv->qp;

    if (qp->wr_err) {
        return false;
    }
    if (!dv->cur_mkey) {
        dv_wr_set_err(qp, EINVAL);
    } else if (wanted > dv->cur_mkey->num_desc || entries * 16 > hv_dv_data_room(qp)) {
        dv_wr_set_err(qp, ENOMEM);
    } else if (PRM_GET(wqe_umr_ctrl_seg, dv->wqe->umr, xlt_octowords)) {
        dv_wr_set_err(qp, EINVAL);
    }
    return !qp->wr_err;
}

static void dv_wr_layout_done(struct hv_dv_qp *dv, size_t entries, uint64_t length)
{
    struct prm_wqe_umr_ctrl_seg *umr = dv->wqe->umr;
    size_t padded = (entries * 16 + 63) & ~(size_t)63;

    dv_wr_mask_bit(umr, PRM_MKEY_MASK_LEN);
    PRM_SET(mkc, dv->wqe->mkc, len, length);
    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, padded / 16);
    dv->wqe_size += padded;
    dv->cur_mkey->length = length;
    dv_wr_setter_done(dv);
}

static void wr_set_mkey_layout_list(struct mlx5dv_qp_ex *ex, uint16_t num_sges,
                                    const struct ibv_sge *sge)
{
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    struct prm_wqe_klm_seg *klm = (void *)dv->wqe->entries;
    uint64_t length = 0;

    if (!dv_wr_may_set_layout(dv, num_sges, num_sges)) {
        return;
    }
    for (uint16_t i = 0; i < num_sges; i++, klm++) {
        PRM_SET(wqe_klm_seg, klm, byte_count, sge[i].length);
        PRM_SET(wqe_klm_seg, klm, mkey, sge[i].lkey);
        PRM_SET(wqe_klm_seg, klm, va, sge[i].addr);
        length += sge[i].length;
    }
    dv_wr_layout_done(dv, num_sges, length);
}

#define REPEAT_OP 0x400 /* offset of the first key in a list */

static void wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex *ex, uint32_t repeat_count,
                                           uint16_t num, const struct mlx5dv_mr_interleaved *data)
{
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    struct prm_wqe_repeat_block_seg *block = (void *)dv->wqe->entries;
    struct prm_wqe_repeat_ent_seg *entry = (void *)(block + 1);
    uint64_t length = 0;

    /* the block itself takes one entry */
    if (!dv_wr_may_set_layout(dv, num + 1u, num)) {
        return;
    }
    for (uint16_t i = 0; i < num; i++, entry++) {
        PRM_SET(wqe_repeat_ent_seg, entry, stride,
                (data[i].bytes_count + data[i].bytes_skip) & 0xffff);
        PRM_SET(wqe_repeat_ent_seg, entry, byte_count, data[i].bytes_count & 0xffff);
        PRM_SET(wqe_repeat_ent_seg, entry, memkey, data[i].lkey);
        PRM_SET(wqe_repeat_ent_seg, entry, va, data[i].addr);
        length += data[i].bytes_count;
    }
    PRM_SET(wqe_repeat_block_seg, block, op, REPEAT_OP);
    PRM_SET(wqe_repeat_block_seg, block, num_ent, num);
    PRM_SET(wqe_repeat_block_seg, block, repeat_count, repeat_count);
    PRM_SET(wqe_repeat_block_seg, block, byte_count, (uint32_t)length);
    dv_wr_layout_done(dv, num + 1u, length * repeat_count);
}

static void wr_mr_list(struct mlx5dv_qp_ex *ex, struct mlx5dv_mkey *mkey, uint32_t access,
                       uint16_t num_sges, struct ibv_sge *sge)
{
    struct mlx5dv_mkey_conf_attr attr = {0};

    wr_mkey_configure(ex, mkey, 2, &attr);
    wr_set_mkey_access_flags(ex, access);
    wr_set_mkey_layout_list(ex, num_sges, sge);
}

static void wr_mr_interleaved(struct mlx5dv_qp_ex *ex, struct mlx5dv_mkey *mkey, uint32_t access,
                              uint32_t repeat_count, uint16_t num,
                              struct mlx5dv_mr_interleaved *data)
{
    struct mlx5dv_mkey_conf_attr attr = {0};

    wr_mkey_configure(ex, mkey, 2, &attr);
    wr_set_mkey_access_flags(ex, access);
    wr_set_mkey_layout_interleaved(ex, repeat_count, num, data);
}

static void wr_set_mkey_sig_block(struct mlx5dv_qp_ex *ex, const struct mlx5dv_sig_block_attr *attr)
{
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    int err;

    if (dv->qp->wr_err) {
        return;
    }
    err = dv->cur_mkey ? hv_dv_sig_set(dv->cur_mkey, attr) : EINVAL;
    if (err) {
        dv_wr_set_err(dv->qp, err);
    } else {
        dv_wr_setter_done(dv);
    }
}

static void wr_set_mkey_crypto(struct mlx5dv_qp_ex *ex, const struct mlx5dv_crypto_attr *attr)
{
    struct hv_dv_qp *dv = hv_dv_qp(ex);
    int err;

    if (dv->qp->wr_err) {
        return;
    }
    err = dv->cur_mkey ? hv_dv_crypto_set(dv->cur_mkey, attr) : EINVAL;
    if (err) {
        dv_wr_set_err(dv->qp, err);
    } else {
        dv_wr_setter_done(dv);
    }
}

static void dv_wr_data_seg(struct prm_wqe_data_seg *seg, uint32_t byte_count, uint32_t lkey,
                           uint64_t addr)
{
    PRM_SET(wqe_data_seg, seg, byte_count, byte_count);
    PRM_SET(wqe_data_seg, seg, lkey, lkey);
    PRM_SET(wqe_data_seg, seg, addr, addr);
}

/* The metadata segment stays empty: libmlx5 names a buffer of its own there, in which a copy has no
 * results. A length of 2^31 has the value 0 in a data segment. */
static void wr_memcpy(struct mlx5dv_qp_ex *ex, uint32_t dest_lkey, uint64_t dest_addr,
                      uint32_t src_lkey, uint64_t src_addr, size_t length)
{
    struct user_qp *qp = hv_dv_qp(ex)->qp;
    uint32_t byte_count = length & ((1u << 31) - 1);
    struct prm_wqe_mmo_seg mmo[1] = {0};

    if (!length || length > hv_dv_max_memcpy(qp->hca)) {
        dv_wr_set_err(qp, EINVAL);
        return;
    }
    if (!hv_wqe_begin(qp, PRM_WQE_OPCODE_MMO, qp->ex.wr_flags, qp->ex.wr_id, IBV_WC_DRIVER3, 0)) {
        return;
    }
    PRM_SET(wqe_ctrl_seg, qp->cur_ctrl, opmod, PRM_MMO_OPMOD_DMA);
    dv_wr_data_seg(PRM_PTR(wqe_mmo_seg, mmo, source), byte_count, src_lkey, src_addr);
    dv_wr_data_seg(PRM_PTR(wqe_mmo_seg, mmo, destination), byte_count, dest_lkey, dest_addr);
    hv_wqe_put(qp, mmo, sizeof(mmo));
    hv_wqe_end(qp);
}

static void wr_raw_wqe(struct mlx5dv_qp_ex *ex, const void *wqe)
{
    hv_wr_post_wqe(hv_dv_qp(ex)->qp, wqe, PRM_GET(wqe_ctrl_seg, wqe, ds), IBV_WC_DRIVER2, true);
}

/* -- DC -----------------------------------------------------------------------------------------
 */

static void wr_set_dc_addr(struct mlx5dv_qp_ex *ex, struct ibv_ah *ah, uint32_t dctn, uint64_t key)
{
    hv_wr_set_dc_addr(hv_dv_qp(ex)->qp, ah, dctn, key, NULL);
}

static void wr_set_dc_addr_stream(struct mlx5dv_qp_ex *ex, struct ibv_ah *ah, uint32_t dctn,
                                  uint64_t key, uint16_t stream)
{
    hv_wr_set_dc_addr(hv_dv_qp(ex)->qp, ah, dctn, key, &stream);
}

void *hv_dv_qp_new(struct user_qp *qp, uint64_t ops)
{
    size_t room = sizeof(struct hv_umr_wqe) + ((hv_dv_data_room(qp) + 63) & ~(size_t)63);
    struct hv_dv_qp *dv = calloc(1, sizeof(*dv) + room);

    if (!dv) {
        return NULL;
    }
    dv->context = qp->ibv.context;
    dv->qp = qp;
    dv->wqe_room = room;
    dv->wqe = (void *)(dv + 1);
    dv->ex.wr_raw_wqe = ops ? wr_raw_wqe : NULL;
    if (qp->dc == HV_DC_DCI) {
        dv->ex.wr_set_dc_addr = wr_set_dc_addr;
        dv->ex.wr_set_dc_addr_stream = wr_set_dc_addr_stream;
        dv->ex.wr_memcpy = wr_memcpy;
    }
    if (qp->ibv.qp_type == IBV_QPT_RC) {
        dv->ex.wr_mr_interleaved = wr_mr_interleaved;
        dv->ex.wr_mr_list = wr_mr_list;
        dv->ex.wr_mkey_configure = wr_mkey_configure;
        dv->ex.wr_set_mkey_access_flags = wr_set_mkey_access_flags;
        dv->ex.wr_set_mkey_layout_list = wr_set_mkey_layout_list;
        dv->ex.wr_set_mkey_layout_interleaved = wr_set_mkey_layout_interleaved;
        dv->ex.wr_set_mkey_sig_block = wr_set_mkey_sig_block;
        dv->ex.wr_set_mkey_crypto = wr_set_mkey_crypto;
        dv->ex.wr_memcpy = wr_memcpy;
    }
    return dv;
}

/* -- cancelling -------------------------------------------------------------------------------- */

/* The opcode for the completion of a cancelled WQE, whose own opcode is overwritten. -1: it cannot
 * be cancelled. */
static int dv_wr_wc_opcode_of(uint8_t opcode)
{
    switch (opcode) {
    case PRM_WQE_OPCODE_RDMA_WRITE_IMM:
    case PRM_WQE_OPCODE_RDMA_WRITE:
        return IBV_WC_RDMA_WRITE;
    case PRM_WQE_OPCODE_SEND_IMM:
    case PRM_WQE_OPCODE_SEND:
    case PRM_WQE_OPCODE_SEND_INVAL:
        return IBV_WC_SEND;
    case PRM_WQE_OPCODE_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case PRM_WQE_OPCODE_ATOMIC_CS:
        return IBV_WC_COMP_SWAP;
    case PRM_WQE_OPCODE_ATOMIC_FA:
        return IBV_WC_FETCH_ADD;
    case PRM_WQE_OPCODE_TSO:
        return IBV_WC_TSO;
    default:
        return -1;
    }
}

/* Turns a WQE in the ring into a NOP. */
static int dv_wr_cancel(struct user_qp *qp, uint32_t index)
{
    struct prm_wqe_ctrl_seg *ctrl = (void *)(qp->sq.buf + ((size_t)index << qp->sq.wqe_shift));
    uint8_t opcode = (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode);

    if (qp->sq.wr_data[index] != IBV_WC_DRIVER2 && opcode != PRM_WQE_OPCODE_UMR &&
        opcode != PRM_WQE_OPCODE_MMO) {
        int wc = dv_wr_wc_opcode_of(opcode);

        if (wc < 0) {
            return -EINVAL;
        }
        qp->sq.wr_data[index] = (uint8_t)wc;
    }
    PRM_SET(wqe_ctrl_seg, ctrl, opmod, 0);
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, PRM_WQE_OPCODE_NOP);
    return 0;
}

/* Works only while the send queue is drained, because then the device does not read the ring.
 * Returns how many were cancelled. */
int hv_dv_qp_cancel_posted_send_wrs(struct mlx5dv_qp_ex *mqp, uint64_t wr_id)
{
    struct user_qp *qp = hv_dv_qp(mqp)->qp;
    struct prm_query_qp_in in[1] = {0};
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)in; /* all inputs begin with it */
    struct prm_query_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);
    uint32_t mask = qp->sq.wqe_cnt - 1, index, head;
    int err, canceled = 0;

    pthread_spin_lock(&qp->sq.lock);
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, hv_context(qp->ibv.context)->uid);
    PRM_SET(query_qp_in, in, qpn, qp->ibv.qp_num);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    if (err || PRM_GET(qpc, qpc, state) != PRM_QP_STATE_SQD) {
        canceled = err ? -err : -EINVAL;
        goto out;
    }
    index = PRM_GET(qpc, qpc, hw_sq_wqebb_counter);
    if (index == (qp->sq_post & 0xffff)) {
        goto out; /* the HCA has processed all of them */
    }
    index &= mask;
    for (head = qp->sq_wqe_head[index]; head != qp->sq.head; head++) {
        while (qp->sq_wqe_head[index] != head) {
            index = (index + 1) & mask;
        }
        if (qp->sq.wrid[index] == wr_id) {
            err = dv_wr_cancel(qp, index);
            if (err) {
                canceled = err;
                break;
            }
            canceled++;
        }
    }
out:
    pthread_spin_unlock(&qp->sq.lock);
    return canceled;
}
