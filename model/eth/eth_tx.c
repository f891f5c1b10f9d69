/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements Ethernet send queues: makes frames from WQEs.
 *
 * A send WQE is a control segment, an Ethernet segment with the first headers inline, and data
 * segments. The frame is gathered directly into the place that the wire gave; VLAN tag and
 * checksums are inserted there. Large send (LSO) is in model/eth/eth_lso.c, WQEs of several packets
 * in model/eth/eth_mpw.c, checksums in model/eth/eth_headers.c.
 */
#include <string.h>
#include "model/eth/eth_headers.h"
#include "model/eth/eth_trace.h"
#include "model/queue/cqe.h"
#include "model/queue/mmo.h"
#include "model/steering/steering.h"
#include "wire/port.h"

#define WQEBB            64
#define INLINE_AT        14 /* offset of inline_hdr_start in the Ethernet segment */
#define INSERT_VLAN      0x8000
#define ETH_MIN_HEADER   14 /* addresses and type */
#define INLINE_SIZE_MASK 0x3ff

static struct cqe_about eth_sq_about(const struct eth_sq *sq, uint16_t index)
{
    return (struct cqe_about){
        .qpn = sq->obj.num, .srqn = sq->user_index, .index = index, .real_time = sq->real_time};
}

static void eth_sq_complete(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe)
{
    struct prm_cqe64 cqe[1] = {0};

    cqe_sent(cqe, eth_sq_about(sq, wqe->index), wqe->opcode, 0);
    cq_post(hca, sq->cq, cqe, false);
}

static void eth_sq_complete_error(struct hca *hca, struct eth_sq *sq, uint16_t index,
                                  uint8_t opcode, uint8_t syndrome)
{
    struct prm_cqe64 cqe[1] = {0};

    cqe_send_failed(cqe, eth_sq_about(sq, index), opcode, syndrome);
    cq_post(hca, sq->cq, cqe, true);
}

/* Advances past the WQE at ci. If the WQE's length is invalid, the start of the next WQE is
 * unknown, so everything posted is skipped. */
static void eth_tx_skip_wqe(struct eth_sq *sq, unsigned ds)
{
    unsigned blocks = (ds + 3) / 4, posted = wq_posted(&sq->wq);

    sq->wq.ci += blocks == 0 || blocks > posted ? posted : blocks;
    sq->traced = false;
}

void eth_sq_flush(struct hca *hca, struct eth_sq *sq)
{
    eth_sq_stop(hca, sq);
    hca_unschedule(&sq->work); /* it may be waiting for credit */
    hca_schedule(hca, &sq->work);
}

/* The WQE at ci cannot be executed: its completion says why, the SQ goes to ERR, and the WQEs
 * behind it are flushed. ds is that of the WQE, 0 if it could not be read. */
static void eth_tx_fail(struct hca *hca, struct eth_sq *sq, uint8_t opcode, unsigned ds,
                        uint8_t syndrome)
{
    uint16_t index = (uint16_t)sq->wq.ci;
    bool key = syndrome == PRM_CQE_SYNDROME_LOCAL_PROT_ERR && ds;
    struct mkey_words words;

    hca_log(hca, HCA_LOG_GUEST_ERROR, "SQ 0x%x: WQE 0x%x opcode 0x%x fails with syndrome 0x%x: %s",
            sq->obj.num, index, opcode, syndrome,
            key ? mkey_why(hca, &words)
                : "the WQE, its list or the doorbell record cannot be read, or is invalid");
    sq->state = PRM_SQC_STATE_ERR;
    sq->done = 0;
    eth_umr_forget(hca, sq);
    sq->counted = false;
    eth_sq_complete_error(hca, sq, index, opcode, syndrome);
    eth_tx_skip_wqe(sq, ds);
    eth_sq_flush(hca, sq);
}

/* Flushes the posted WQEs, by walking their control segments. An invalid length ends the walk. */
static void eth_sq_flush_run(struct hca *hca, struct eth_sq *sq)
{
    struct prm_wqe_ctrl_seg ctrl[1];

    if (!PRM_GET(sqc, sq->sqc, flush_in_error_en) || !wq_update_pi(hca, &sq->wq)) {
        return;
    }
    while (wq_posted(&sq->wq)) {
        uint16_t index = (uint16_t)sq->wq.ci;

        if (!wq_read(hca, &sq->wq, index, ctrl, sizeof(ctrl))) {
            return;
        }
        eth_tx_skip_wqe(sq, PRM_GET(wqe_ctrl_seg, ctrl, ds));
        eth_sq_complete_error(hca, sq, index, (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode),
                              PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        hca_spend(hca, 1);
        if (!hca_may_go_on(hca)) {
            hca_schedule(hca, &sq->work);
            return;
        }
    }
}

/* Takes an inline segment. Returns the bytes that it takes up; 0: it is not whole. */
static size_t eth_tx_parse_inline(struct eth_wqe *wqe, const void *seg, const void *end)
{
    uint32_t len = PRM_GET(wqe_inline_seg, seg, byte_count);
    size_t bytes = (PRM_SIZE(wqe_inline_seg) + len + 15) / 16 * 16;

    if ((size_t)(end - seg) < bytes) {
        return 0;
    }
    if (len) {
        eth_wqe_set_inline(wqe, wqe->num_sge++, seg + PRM_SIZE(wqe_inline_seg), len);
        wqe->data_len += len;
    }
    return bytes;
}

/* Parses the segments from seg on: pointers to data, and data. */
bool eth_tx_parse_data(struct eth_wqe *wqe, const struct prm_wqe_data_seg *seg, const void *end,
                       uint32_t denied)
{
    for (size_t bytes; (const void *)(seg + 1) <= end; seg = (const void *)seg + bytes) {
        uint32_t len = PRM_GET(wqe_data_seg, seg, byte_count);
        uint32_t lkey = PRM_GET(wqe_data_seg, seg, lkey);

        if (wqe->num_sge == WQE_MAX_SGE) {
            return false;
        }
        bytes = sizeof(*seg);
        if (G_UNLIKELY(PRM_GET(wqe_data_seg, seg, inl))) {
            bytes = eth_tx_parse_inline(wqe, seg, end);
            if (!bytes) {
                return false;
            }
            continue;
        }
        if (len == 0) {
            continue;
        }
        wqe->sge[wqe->num_sge++] = (struct sge){
            .va = PRM_GET(wqe_data_seg, seg, addr),
            .len = len,
            .lkey = lkey == denied ? MKEY_NONE : lkey,
        };
        wqe->data_len += len;
    }
    return true;
}

/* Parses the software parser's part of the Ethernet segment. */
static void eth_tx_parse_swp(struct eth_wqe *wqe, const struct prm_wqe_eth_seg *eth)
{
    wqe->swp.outer_l4 = (uint8_t)PRM_GET(wqe_eth_seg, eth, swp_outer_l4_offset);
    wqe->swp.outer_l3 = (uint8_t)PRM_GET(wqe_eth_seg, eth, swp_outer_l3_offset);
    wqe->swp.inner_l4 = (uint8_t)PRM_GET(wqe_eth_seg, eth, swp_inner_l4_offset);
    wqe->swp.inner_l3 = (uint8_t)PRM_GET(wqe_eth_seg, eth, swp_inner_l3_offset);
    wqe->swp.flags = (uint8_t)PRM_GET(wqe_eth_seg, eth, swp_flags);
    wqe->swp.named =
        wqe->swp.outer_l4 || wqe->swp.outer_l3 || wqe->swp.inner_l4 || wqe->swp.inner_l3;
}

/* Parses the Ethernet segment with its inline headers. Returns the segments behind them; NULL: the
 * headers are not whole. */
static const void *eth_tx_parse_eth(struct eth_wqe *wqe, const void *raw, size_t len)
{
    const struct prm_wqe_eth_seg *eth = raw + PRM_SIZE(wqe_ctrl_seg);
    const void *data = eth + 1, *end = raw + len;
    uint32_t inline_word;

    if (len < PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_eth_seg)) {
        return NULL;
    }
    eth_tx_parse_swp(wqe, eth);
    wqe->cs_flags = (uint8_t)PRM_GET(wqe_eth_seg, eth, cs_flags);
    wqe->mss = (uint16_t)PRM_GET(wqe_eth_seg, eth, mss);
    wqe->metadata = PRM_GET(wqe_eth_seg, eth, flow_table_metadata);
    inline_word = PRM_GET(wqe_eth_seg, eth, inline_hdr_sz);
    if (inline_word & INSERT_VLAN) {
        wqe->insert_vlan = true;
        wqe->vlan_tpid = PRM_GET(wqe_eth_seg, eth, insert_svlan) ? ETH_TYPE_QINQ : ETH_TYPE_VLAN;
        wqe->vlan_tci = (uint16_t)PRM_GET(wqe_eth_seg, eth, vlan_tci);
    } else {
        wqe->inline_len = inline_word & INLINE_SIZE_MASK;
        wqe->inline_hdr = eth->bytes + INLINE_AT;
        if (wqe->inline_len > 2) {
            data += (wqe->inline_len - 2 + 15) / 16 * 16;
        }
        if (data > end) {
            return NULL;
        }
    }
    return data;
}

/* Parses the Ethernet segment and the segments after it. */
static bool parse_eth(struct eth_wqe *wqe, const void *raw, size_t len, uint32_t denied)
{
    const void *data = eth_tx_parse_eth(wqe, raw, len);

    return data && eth_tx_parse_data(wqe, data, raw + len, denied);
}

/* Gathers from a list of which some elements are data in the WQE. */
static enum mem_result eth_gather_mixed(struct hca *hca, const struct eth_sq *sq,
                                        const struct eth_wqe *wqe, uint64_t offset, uint8_t *buf,
                                        size_t len)
{
    enum mem_result result = MEM_OK;

    for (unsigned i = 0; i < wqe->num_sge && len && result == MEM_OK; i++) {
        const struct sge *sge = &wqe->sge[i];
        struct sge_cursor cursor = {0};
        size_t n;

        if (offset >= sge->len) {
            offset -= sge->len;
            continue;
        }
        n = MIN(len, sge->len - offset);
        if (wqe->inl >> i & 1) {
            memcpy(buf, (const uint8_t *)(uintptr_t)sge->va + offset, n);
        } else {
            result = sge_gather(hca, sge, 1, sq->pdn, &cursor, offset, buf, n);
        }
        buf += n;
        len -= n;
        offset = 0;
    }
    return result;
}

/* Gathers bytes of headers and data: first the inline part, then the list. */
enum mem_result eth_gather(struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                           uint64_t offset, uint8_t *buf, size_t len)
{
    struct sge_cursor cursor = {0};

    if (offset < wqe->inline_len) {
        size_t n = MIN(len, wqe->inline_len - offset);

        memcpy(buf, wqe->inline_hdr + offset, n);
        buf += n;
        offset += n;
        len -= n;
    }
    if (G_UNLIKELY(wqe->inl)) {
        return eth_gather_mixed(hca, sq, wqe, offset - wqe->inline_len, buf, len);
    }
    return len == 0 ? MEM_OK
                    : sge_gather(hca, wqe->sge, wqe->num_sge, sq->pdn, &cursor,
                                 offset - wqe->inline_len, buf, len);
}

static void eth_tx_insert_vlan(uint8_t *frame, size_t *len, uint16_t tpid, uint16_t tci)
{
    memmove(frame + 16, frame + 12, *len - 12);
    prm_store16(frame + 12, tpid);
    prm_store16(frame + 14, tci);
    *len += 4;
}

/* Whether the whole layer 2 header, including VLAN tags, of a packet of len bytes is inline in the
 * WQE. */
static bool eth_l2_is_inline(const struct eth_wqe *wqe, uint64_t len)
{
    size_t l2 = ETH_MIN_HEADER;

    while (l2 <= wqe->inline_len) {
        uint64_t type = prm_load16(wqe->inline_hdr + l2 - 2);

        if (type != ETH_TYPE_VLAN && type != ETH_TYPE_QINQ) {
            return true;
        }
        l2 += 4;
    }
    return wqe->inline_len == len;
}

enum eth_sent eth_send_packet(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe)
{
    uint64_t len = wqe->inline_len + wqe->data_len;
    size_t total = len + (wqe->insert_vlan ? 4 : 0);
    uint8_t dmac[6];
    uint8_t *frame;

    if (len < ETH_MIN_HEADER || total > WIRE_FRAME_MAX ||
        (hca->limits.inline_l2 && !eth_l2_is_inline(wqe, len))) {
        return ETH_BAD_WQE;
    }
    if (eth_gather(hca, sq, wqe, 0, dmac, sizeof(dmac)) != MEM_OK) {
        return ETH_NO_DATA;
    }
    frame = port_tx_reserve(hca, dmac, eth_sq_priority(sq), MAX(total, ETH_MIN_FRAME));
    if (!frame) {
        return ETH_NO_CREDIT;
    }
    if (eth_gather(hca, sq, wqe, 0, frame, len) != MEM_OK) {
        port_tx_commit(hca, 0, sq->tdn);
        return ETH_NO_DATA;
    }
    /* the address that chose the way, even if memory has changed since */
    memcpy(frame, dmac, sizeof(dmac));
    /* before the tag is inserted, which the software parser's offsets do not count */
    if (!eth_fill_checksums(hca, sq, wqe, frame, len)) {
        port_tx_commit(hca, 0, sq->tdn);
        return ETH_BAD_WQE;
    }
    if (wqe->insert_vlan) {
        total = len;
        eth_tx_insert_vlan(frame, &total, wqe->vlan_tpid, wqe->vlan_tci);
    }
    if (total < ETH_MIN_FRAME) {
        memset(frame + total, 0, ETH_MIN_FRAME - total);
        total = ETH_MIN_FRAME;
    }
    return eth_commit(hca, sq, wqe->metadata, frame, total) ? ETH_SENT : ETH_NO_CREDIT;
}

/* Copies the next part of a copy from memory to memory (model/queue/mmo.h). If the program has
 * changed the WQE so that more is copied than there is, the copy begins again. */
static enum eth_sent eth_tx_copy(struct hca *hca, struct eth_sq *sq, const struct mmo_copy *copy)
{
    if (sq->done >= copy->from.len) {
        sq->done = 0;
    }
    if (mmo_copy_part(hca, sq->pdn, copy, &sq->done) != MEM_OK) {
        return ETH_NO_DATA;
    }
    if (sq->done < copy->from.len) {
        return ETH_MORE;
    }
    sq->done = 0;
    return ETH_SENT;
}

/* Decodes the WQE at ci and executes it. */
static enum eth_sent eth_tx_execute(struct hca *hca, struct eth_sq *sq, struct eth_wqe *wqe)
{
    union {
        struct prm_wqe_ctrl_seg ctrl[1];
        uint8_t bytes[WQE_MAX_BYTES];
    } raw;
    uint32_t denied = mkey_denied(hca, PRM_GET(sqc, sq->sqc, rlky));
    struct mmo_copy copy;
    unsigned blocks;
    bool is_packet;

    if (!wq_read(hca, &sq->wq, wqe->index, raw.bytes, WQEBB)) {
        return ETH_NO_DATA;
    }
    wqe->opcode = (uint8_t)PRM_GET(wqe_ctrl_seg, raw.ctrl, opcode);
    wqe->ds = (uint8_t)PRM_GET(wqe_ctrl_seg, raw.ctrl, ds);
    wqe->signaled = PRM_GET(wqe_ctrl_seg, raw.ctrl, ce) >= PRM_WQE_CE_ALWAYS;
    blocks = (wqe->ds + 3) / 4;
    if (wqe->ds == 0 || blocks > wq_posted(&sq->wq) ||
        !wq_read(hca, &sq->wq, wqe->index, raw.bytes, blocks * WQEBB)) {
        return ETH_BAD_WQE;
    }
    is_packet = wqe->opcode == PRM_WQE_OPCODE_SEND || wqe->opcode == PRM_WQE_OPCODE_TSO;
    if (is_packet && !parse_eth(wqe, raw.bytes, wqe->ds * 16u, denied)) {
        return ETH_BAD_WQE;
    }
    if (G_UNLIKELY(hca->tracing)) {
        eth_trace_send(hca, sq, wqe, raw.bytes);
    }
    if (is_packet) {
        return wqe->opcode == PRM_WQE_OPCODE_SEND ? eth_send_packet(hca, sq, wqe)
                                                  : eth_send_lso(hca, sq, wqe);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_ENHANCED_MPSW) {
        const void *segs = eth_tx_parse_eth(wqe, raw.bytes, wqe->ds * 16u);

        return segs ? eth_send_mpw(hca, sq, wqe, segs, raw.bytes + wqe->ds * 16u, denied)
                    : ETH_BAD_WQE;
    }
    if (wqe->opcode == PRM_WQE_OPCODE_MMO && hca->limits.mmo_sq &&
        mmo_parse(PRM_GET(wqe_ctrl_seg, raw.ctrl, opmod), raw.bytes + PRM_SIZE(wqe_ctrl_seg),
                  wqe->ds * 16u - PRM_SIZE(wqe_ctrl_seg), denied, &copy)) {
        return mmo_length_ok(&copy) ? eth_tx_copy(hca, sq, &copy) : ETH_BAD_LENGTH;
    }
    if (wqe->opcode == PRM_WQE_OPCODE_UMR) {
        return eth_umr(hca, sq, wqe, raw.bytes, wqe->ds * 16u, denied);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_CQE_WAIT && hca->limits.wait_on_time &&
        PRM_GET(wqe_ctrl_seg, raw.ctrl, opmod) == PRM_WAIT_OPMOD_TIME) {
        return eth_wait(hca, sq, raw.bytes + PRM_SIZE(wqe_ctrl_seg),
                        wqe->ds * 16u - PRM_SIZE(wqe_ctrl_seg));
    }
    if (wqe->opcode != PRM_WQE_OPCODE_NOP) {
        return ETH_BAD_WQE;
    }
    return ETH_SENT;
}

void eth_sq_run(struct hca *hca, struct work *work)
{
    struct eth_sq *sq = (struct eth_sq *)((char *)work - offsetof(struct eth_sq, work));

    if (sq->state != PRM_SQC_STATE_RDY) {
        eth_sq_flush_run(hca, sq);
        return;
    }
    if (!wq_update_pi(hca, &sq->wq)) {
        if (wq_posted(&sq->wq) == 0) {
            hca_log(hca, HCA_LOG_GUEST_ERROR,
                    "SQ 0x%x: doorbell record is unreadable or impossible", sq->obj.num);
            eth_sq_fatal(hca, sq);
            return;
        }
        eth_tx_fail(hca, sq, 0, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        return;
    }
    for (unsigned n = 0; n < 16 && wq_posted(&sq->wq) && (n == 0 || hca_may_go_on(hca)); n++) {
        struct eth_wqe wqe = {.index = (uint16_t)sq->wq.ci};

        if (!eth_sq_may_send(hca, sq)) {
            return;
        }
        switch (eth_tx_execute(hca, sq, &wqe)) {
        case ETH_NO_CREDIT:
            hca_wait_tx(hca, work);
            return;
        case ETH_HELD:
            return;
        case ETH_NO_DATA:
            eth_tx_fail(hca, sq, wqe.opcode, wqe.ds, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
            return;
        case ETH_BAD_WQE:
            eth_tx_fail(hca, sq, wqe.opcode, wqe.ds, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
            return;
        case ETH_BAD_LENGTH:
            eth_tx_fail(hca, sq, wqe.opcode, wqe.ds, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
            return;
        case ETH_BAD_BIND:
            eth_tx_fail(hca, sq, wqe.opcode, wqe.ds, PRM_CQE_SYNDROME_MW_BIND_ERR);
            return;
        case ETH_MORE:
            break;
        case ETH_SENT:
            if (wqe.signaled) {
                eth_sq_complete(hca, sq, &wqe);
            }
            eth_tx_skip_wqe(sq, wqe.ds);
            break;
        }
    }
    if (wq_posted(&sq->wq)) {
        hca_schedule(hca, work);
    }
}

static uint32_t eth_sq_uar(const struct obj *obj)
{
    const struct eth_sq *sq = (const struct eth_sq *)obj;

    return sq->uar ? sq->uar->num : UINT32_MAX; /* a hairpin SQ has no doorbell */
}

static struct wq *eth_sq_wq(struct obj *obj)
{
    return &((struct eth_sq *)obj)->wq;
}

static void eth_sq_ring(struct hca *hca, struct obj *obj, uint64_t ctrl)
{
    struct eth_sq *sq = (struct eth_sq *)obj;

    if (sq->state != PRM_SQC_STATE_RST) {
        hca_schedule(hca, &sq->work);
    }
}

const struct obj_sender eth_sq_sender = {
    .uar = eth_sq_uar,
    .wq = eth_sq_wq,
    .doorbell = eth_sq_ring,
};
