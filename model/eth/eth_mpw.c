/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements enhanced multi-packet send WQEs: one control segment and one Ethernet segment, and
 * behind them a segment for each packet, which names the packet's memory or contains the packet.
 *
 * The device does for each packet as the Ethernet segment asks. The WQE has one completion. If a
 * packet cannot be sent, the packets before it were sent, and the completion reports the error. The
 * SQ counts the packets that were sent, because the others may have to wait for credit, for their
 * rate or for the next turn.
 *
 * Each SQ takes such WQEs if the device does (enhanced_multi_pkt_send_wqe). mlx5e posts them to SQs
 * without allow_multi_pkt_send_wqe; mlx5_ib sets that field only for the older form of such WQEs
 * (multi_pkt_send_wqe), which the device does not have; DPDK sets it for either form.
 */
#include "model/eth/eth_priv.h"

#define SEG_BYTES    16
#define INLINE_AT    4 /* the data of an inline segment */
#define INLINE_COUNT 0x3ff

/* Takes the packet of the segment at seg. Returns the bytes of the segment; 0: it is invalid. */
static size_t eth_mpw_take(struct eth_wqe *wqe, const uint8_t *seg, size_t room, uint32_t denied)
{
    uint32_t count = (uint32_t)PRM_GET(wqe_data_seg, (const void *)seg, byte_count);
    uint32_t lkey = (uint32_t)PRM_GET(wqe_data_seg, (const void *)seg, lkey);

    wqe->num_sge = 1;
    if (PRM_GET(wqe_data_seg, (const void *)seg, inl)) {
        count &= INLINE_COUNT;
        eth_wqe_set_inline(wqe, 0, seg + INLINE_AT, count);
        wqe->data_len = count;
        return INLINE_AT + count <= room
                   ? (INLINE_AT + count + SEG_BYTES - 1) / SEG_BYTES * SEG_BYTES
                   : 0;
    }
    wqe->inl = 0;
    wqe->sge[0] = (struct sge){
        .va = PRM_GET(wqe_data_seg, (const void *)seg, addr),
        .len = count,
        .lkey = lkey == denied ? MKEY_NONE : lkey,
    };
    wqe->data_len = count;
    return SEG_BYTES;
}

enum eth_sent eth_send_mpw(struct hca *hca, struct eth_sq *sq, struct eth_wqe *wqe,
                           const uint8_t *seg, const uint8_t *end, uint32_t denied)
{
    size_t n = 0, sent_before = sq->done;

    if (!hca->limits.multi_packet || wqe->inline_len || seg >= end) {
        return ETH_BAD_WQE;
    }
    for (size_t bytes; seg < end; seg += bytes, n++) {
        enum eth_sent sent;

        bytes = eth_mpw_take(wqe, seg, (size_t)(end - seg), denied);
        if (!bytes) {
            sq->done = 0;
            return ETH_BAD_WQE;
        }
        if (n < sq->done) {
            continue;
        }
        if (n > sent_before && !hca_may_go_on(hca)) {
            return ETH_MORE;
        }
        if (!eth_sq_may_send(hca, sq)) {
            return ETH_HELD;
        }
        sent = eth_send_packet(hca, sq, wqe);
        if (sent != ETH_SENT) {
            sq->done = sent == ETH_NO_CREDIT ? sq->done : 0;
            return sent;
        }
        sq->done++;
    }
    sq->done = 0;
    return ETH_SENT;
}
