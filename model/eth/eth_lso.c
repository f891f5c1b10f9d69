/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements large send offload: one WQE with headers and a long payload becomes frames with mss
 * bytes of payload.
 *
 * The headers are inline in the WQE, up to and including the TCP or UDP header. Every segment gets
 * them with its own lengths. In TCP the sequence number is advanced, CWR stays only on the first
 * segment, FIN and PSH only on the last. The IPv4 identification counts up. A UDP message
 * (segmentation of datagrams) becomes datagrams of mss bytes. The SQ keeps the number of sent
 * bytes, because the message may have to wait for credit or for the next turn.
 */
#include <string.h>
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/port/port.h"
#include "wire/port.h"

/* Offsets in IPv4, IPv6, TCP and UDP headers. */
enum {
    IPV4_TOTAL_LEN = 2,
    IPV4_ID = 4,
    IPV6_PAYLOAD_LEN = 4,
    IPV6_HEADER = 40,
    TCP_SEQ = 4,
    TCP_FLAGS = 13,
    UDP_LEN = 4,
};

static void eth_lso_adapt_ip(uint8_t *frame, const struct eth_info *info, size_t frame_len,
                             uint64_t segment)
{
    uint8_t *ip = frame + info->l3_off;
    size_t ip_len = frame_len - info->l3_off;

    if (info->ip_version == 4) {
        prm_store16(ip + IPV4_TOTAL_LEN, ip_len);
        prm_store16(ip + IPV4_ID, (uint16_t)(prm_load16(ip + IPV4_ID) + segment));
    } else {
        prm_store16(ip + IPV6_PAYLOAD_LEN, ip_len - IPV6_HEADER);
    }
}

static void eth_lso_adapt_l4(uint8_t *frame, const struct eth_info *info, size_t frame_len,
                             uint64_t offset, bool last)
{
    uint8_t *l4 = frame + info->l4_off;

    if (info->l4 == ETH_L4_UDP) {
        prm_store16(l4 + UDP_LEN, frame_len - info->l4_off);
        return;
    }
    prm_store32(l4 + TCP_SEQ, (uint32_t)(prm_load32(l4 + TCP_SEQ) + offset));
    if (offset) {
        l4[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
    }
    if (!last) {
        l4[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    }
}

enum eth_sent eth_send_lso(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe)
{
    struct eth_info info;
    size_t headers = wqe->inline_len;

    if (wqe->insert_vlan || wqe->mss == 0 || wqe->data_len > 1u << ETH_LOG_MAX_LSO ||
        headers + wqe->mss > WIRE_FRAME_MAX ||
        !eth_parse_headers(wqe->inline_hdr, headers, &info) || info.malformed ||
        info.l4 == ETH_L4_NONE || info.payload_off != headers) {
        return ETH_BAD_WQE;
    }
    while (sq->done < wqe->data_len) {
        uint64_t offset = sq->done;
        size_t payload = MIN(wqe->mss, wqe->data_len - offset);
        size_t len = headers + payload;
        uint8_t *frame;

        if (!eth_sq_may_send(hca, sq)) {
            return ETH_HELD;
        }
        frame = port_tx_reserve(hca, wqe->inline_hdr, len);
        if (!frame) {
            return ETH_NO_CREDIT;
        }
        memcpy(frame, wqe->inline_hdr, headers);
        if (eth_gather(hca, sq, wqe, headers + offset, frame + headers, payload) != MEM_OK) {
            port_tx_commit(hca, 0, sq->tdn);
            sq->done = 0;
            return ETH_NO_DATA;
        }
        eth_lso_adapt_ip(frame, &info, len, offset / wqe->mss);
        eth_lso_adapt_l4(frame, &info, len, offset, offset + payload == wqe->data_len);
        eth_fill_checksums(frame, len, wqe->cs_flags);
        eth_commit(hca, sq, wqe, frame, len);
        sq->done += payload;
        if (sq->done < wqe->data_len && !hca_may_go_on(hca)) {
            return ETH_MORE;
        }
    }
    sq->done = 0;
    return ETH_SENT;
}
