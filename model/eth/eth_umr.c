/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes memory keys by WQEs of an Ethernet SQ (UMR). The driver's internal queues do so (ICOSQ,
 * sqc.reg_umr): a UMR maps pages to the next WQE of a striding receive queue
 * (mlx5e_alloc_rx_mpwqe()).
 *
 * The WQE is that of a QP: control segment, UMR control segment, memory key segment, translation
 * entries. The entries are inline, or in memory behind data segments. Those in memory may be 1 MiB
 * behind a key with many small ranges, so they are read in parts, each a step of its own. The key
 * changes at once, when all parts are read. The SQ waits for that with its later WQEs: the WQEs of
 * an SQ are executed in order, so the CQE of a UMR, and every later WQE, sees the changed key
 * without a fence.
 */
#include <string.h>
#include "model/eth/eth_priv.h"

#define UMR_PART 4096 /* bytes that one step reads */

void eth_umr_forget(struct hca *hca, struct eth_sq *sq)
{
    if (sq->umr) {
        ledger_free(&hca->memory, sq->umr, sq->umr_len);
        sq->umr = NULL;
    }
}

/* The bytes of entries and descriptor that a UMR has. A descriptor has its length in the place of
 * the offset. */
static uint32_t eth_umr_bsf_len(const struct prm_wqe_umr_ctrl_seg *ctrl)
{
    bool has_bsf = PRM_GET(wqe_umr_ctrl_seg, ctrl, mkey_mask) >> PRM_MKEY_MASK_BSF_EN & 1;

    return has_bsf && !PRM_GET(wqe_umr_ctrl_seg, ctrl, translation_offset_en)
               ? PRM_GET(wqe_umr_ctrl_seg, ctrl, bsf_octowords) * 16u
               : 0;
}

/* Reads the next part of len bytes in memory. ETH_SENT: all of them are in sq->umr. */
static enum eth_sent eth_umr_read(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe,
                                  size_t len)
{
    struct sge_cursor cursor = {0};
    size_t part;

    if (wqe->data_len < len) {
        return ETH_BAD_WQE;
    }
    if (sq->umr && sq->umr_len != len) { /* software has changed the WQE */
        eth_umr_forget(hca, sq);
    }
    if (!sq->umr) {
        sq->umr = ledger_alloc(&hca->memory, len);
        sq->umr_len = len;
        sq->umr_have = 0;
    }
    if (!sq->umr) {
        return ETH_BAD_WQE;
    }
    part = MIN(len - sq->umr_have, UMR_PART);
    if (sge_gather(hca, wqe->sge, wqe->num_sge, sq->pdn, &cursor, sq->umr_have,
                   sq->umr + sq->umr_have, part) != MEM_OK) {
        return ETH_NO_DATA;
    }
    hca_spend(hca, 1);
    sq->umr_have += part;
    return sq->umr_have < len ? ETH_MORE : ETH_SENT;
}

enum eth_sent eth_umr(struct hca *hca, struct eth_sq *sq, struct eth_wqe *wqe, const void *raw,
                      size_t len, uint32_t denied)
{
    const struct prm_wqe_ctrl_seg *first = raw;
    const struct prm_wqe_umr_ctrl_seg *ctrl = raw + PRM_SIZE(wqe_ctrl_seg);
    const void *mkc = ctrl + 1, *entries = mkc + PRM_SIZE(mkc), *end = raw + len;
    struct mkey_umr umr = {
        .key = PRM_GET(wqe_ctrl_seg, first, imm),
        .pdn = sq->pdn,
        .qpn = sq->obj.num,
        .fast = sq->obj.uid == 0,
        .ctrl = ctrl,
        .mkey_seg = mkc,
    };
    enum eth_sent read = ETH_SENT;
    enum mem_result result;

    if (!PRM_GET(sqc, sq->sqc, reg_umr) || entries > end) {
        return ETH_BAD_WQE;
    }
    umr.xlt_len = PRM_GET(wqe_umr_ctrl_seg, ctrl, xlt_octowords) * 16u;
    umr.bsf_len = eth_umr_bsf_len(ctrl);
    if (PRM_GET(wqe_umr_ctrl_seg, ctrl, inl)) {
        if (umr.xlt_len + umr.bsf_len > (size_t)(end - entries)) {
            return ETH_BAD_WQE;
        }
        umr.xlt = entries;
    } else if (umr.xlt_len + umr.bsf_len) {
        if (!eth_tx_parse_data(wqe, entries, end, denied) || wqe->inl) {
            return ETH_BAD_WQE; /* entries in the WQE come without data segments */
        }
        read = eth_umr_read(hca, sq, wqe, umr.xlt_len + umr.bsf_len);
        umr.xlt = sq->umr;
    }
    if (read == ETH_SENT) {
        umr.bsf = (const uint8_t *)umr.xlt + umr.xlt_len;
        result = mkey_umr(hca, &umr);
        eth_umr_forget(hca, sq);
        read = result == MEM_OK ? ETH_SENT : ETH_BAD_BIND;
    }
    return read;
}
