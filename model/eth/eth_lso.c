/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements large send offload: one WQE with headers and a long payload becomes frames with mss
 * bytes of payload.
 *
 * The headers are inline in the WQE, up to and including the TCP or UDP header. Every segment gets
 * them with its own lengths. In TCP the sequence number is advanced, CWR stays only on the first
 * segment, FIN and PSH only on the last. The IPv4 identification counts up. A UDP message
 * (segmentation of datagrams) becomes datagrams of mss bytes. If the message is in a tunnel, its
 * headers are those of the inner packet; the outer packet gets its own lengths and identification,
 * too, and its UDP checksum is filled in only on request: without one, the driver has computed one
 * that fits every segment of mss bytes (Linux: gso_partial_features). The SQ keeps the number of
 * sent bytes, because the message may have to wait for credit or for the next turn.
 *
 * A message cannot have a VLAN tag inserted: a WQE says in the same field either how long its
 * inline headers are or which tag is inserted. Drivers put the tag into the headers.
 */
#include <string.h>
#include "model/eth/eth_headers.h"
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

/* Finds the headers of a message: those of a tunnel and a packet in it if the packet's headers end
 * where the payload begins, otherwise the outer ones alone. False: neither do. */
static bool eth_lso_headers(struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                            struct eth_headers *h)
{
    if (!eth_headers_find(hca, sq, wqe, wqe->inline_hdr, wqe->inline_len, false, h)) {
        return false;
    }
    if (h->inner.l4 != ETH_L4_NONE && !h->inner.malformed &&
        h->inner.payload_off == wqe->inline_len) {
        if (h->outer.l3_off == h->inner.l3_off) { /* the software parser says it twice */
            h->outer.ip_version = 0;
        }
        return true;
    }
    h->inner = h->outer;
    h->outer.ip_version = 0;
    return h->inner.l4 != ETH_L4_NONE && !h->inner.malformed &&
           h->inner.payload_off == wqe->inline_len;
}

/* Adapts the outer headers of a segment in a tunnel. */
static void eth_lso_adapt_outer(uint8_t *frame, const struct eth_info *outer, size_t len,
                                uint64_t segment)
{
    if (outer->ip_version) {
        eth_lso_adapt_ip(frame, outer, len, segment);
        if (outer->l4 == ETH_L4_UDP) {
            prm_store16(frame + outer->l4_off + UDP_LEN, len - outer->l4_off);
        }
    }
}

enum eth_sent eth_send_lso(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe)
{
    struct eth_headers h;
    size_t headers = wqe->inline_len;

    if (wqe->insert_vlan || wqe->mss == 0 || wqe->data_len > 1u << ETH_LOG_MAX_LSO ||
        headers + wqe->mss > WIRE_FRAME_MAX || !eth_lso_headers(hca, sq, wqe, &h)) {
        return ETH_BAD_WQE;
    }
    while (sq->done < wqe->data_len) {
        uint64_t offset = sq->done;
        size_t payload = MIN(wqe->mss, wqe->data_len - offset);
        size_t len = headers + payload, padded = MAX(len, ETH_MIN_FRAME);
        uint8_t *frame;

        if (!eth_sq_may_send(hca, sq)) {
            return ETH_HELD;
        }
        frame = port_tx_reserve(hca, wqe->inline_hdr, eth_sq_priority(sq), padded);
        if (!frame) {
            return ETH_NO_CREDIT;
        }
        memcpy(frame, wqe->inline_hdr, headers);
        if (eth_gather(hca, sq, wqe, headers + offset, frame + headers, payload) != MEM_OK) {
            port_tx_commit(hca, 0, sq->tdn);
            sq->done = 0;
            return ETH_NO_DATA;
        }
        eth_lso_adapt_outer(frame, &h.outer, len, offset / wqe->mss);
        eth_lso_adapt_ip(frame, &h.inner, len, offset / wqe->mss);
        eth_lso_adapt_l4(frame, &h.inner, len, offset, offset + payload == wqe->data_len);
        if (!eth_fill_checksums(hca, sq, wqe, frame, len)) {
            port_tx_commit(hca, 0, sq->tdn);
            sq->done = 0;
            return ETH_BAD_WQE;
        }
        memset(frame + len, 0, padded - len);
        if (!eth_commit(hca, sq, wqe->metadata, frame, padded)) {
            return ETH_NO_CREDIT;
        }
        sq->done += payload;
        if (sq->done < wqe->data_len && !hca_may_go_on(hca)) {
            return ETH_MORE;
        }
    }
    sq->done = 0;
    return ETH_SENT;
}
