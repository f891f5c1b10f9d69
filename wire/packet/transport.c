/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses and builds transport packets; see wire/packet/transport.h.
 *
 * Headers are read only from the caller's copy, so what was checked is what is used, even if the
 * packet lies in memory that its sender can still write to.
 */
#include "wire/packet/transport.h"
#include "wire/bytes.h"

static void transport_bth_parse(const uint8_t *bth, struct transport_packet *pkt)
{
    pkt->opcode = bth[0];
    pkt->solicited = bth[1] & 0x80;
    pkt->migreq = bth[1] & 0x40;
    pkt->pad_count = bth[1] >> 4 & 3;
    pkt->tver = bth[1] & 0x0f;
    pkt->pkey = get16(bth + 2);
    pkt->fecn = bth[4] & 0x80;
    pkt->becn = bth[4] & 0x40;
    pkt->dest_qp = get24(bth + 5);
    pkt->ackreq = bth[8] & 0x80;
    pkt->psn = get24(bth + 9);
}

/* Parses the extended headers, which follow the BTH in this order (IBTA 9.3, annex A14). */
static void transport_ext_parse(const uint8_t *p, uint32_t flags, struct transport_packet *pkt)
{
    if (flags & HDR_XRC_ETH) {
        pkt->xrc_srqn = get24(p + 1);
        p += XRC_ETH_BYTES;
    } else if (flags & (HDR_DC_ETH | HDR_CNP_RSVD)) {
        pkt->dceth.version = p[0];
        pkt->dceth.session = get24(p + 1);
        pkt->dceth.number = get24(p + 5);
        p += DC_ETH_BYTES;
    }
    if (flags & HDR_DETH) {
        pkt->deth.qkey = get32(p);
        pkt->deth.src_qp = get24(p + 5);
        p += DETH_BYTES;
    }
    if (flags & HDR_RETH) {
        pkt->reth.va = get64(p);
        pkt->reth.rkey = get32(p + 8);
        pkt->reth.len = get32(p + 12);
        p += RETH_BYTES;
    }
    if (flags & HDR_ATOMIC_ETH) {
        pkt->atomic.va = get64(p);
        pkt->atomic.rkey = get32(p + 8);
        pkt->atomic.swap_add = get64(p + 12);
        pkt->atomic.compare = get64(p + 20);
        p += ATOMIC_ETH_BYTES;
    }
    if (flags & HDR_AETH) {
        pkt->aeth.syndrome = p[0];
        pkt->aeth.msn = get24(p + 1);
        p += AETH_BYTES;
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        pkt->atomic_ack = get64(p);
        p += ATOMIC_ACK_ETH_BYTES;
    }
    if (flags & (HDR_IMM_DT | HDR_IETH)) {
        pkt->imm = get32(p);
    }
}

enum transport_verdict transport_parse(const uint8_t *head, const uint8_t *packet, size_t len,
                                       struct transport_packet *pkt)
{
    const struct bth_opcode_info *info;
    size_t body_len;

    if (len < BTH_BYTES || len % 4) {
        return TRANSPORT_TRUNCATED;
    }
    transport_bth_parse(head, pkt);
    info = &bth_opcodes[pkt->opcode];
    if (!info->name || pkt->tver) {
        return TRANSPORT_BAD_HEADER;
    }
    if (len < info->header_len) {
        return TRANSPORT_TRUNCATED;
    }
    body_len = len - info->header_len;
    if (pkt->pad_count > body_len || (body_len && !(info->flags & HDR_PAYLOAD))) {
        return TRANSPORT_TRUNCATED;
    }
    transport_ext_parse(head + BTH_BYTES, info->flags, pkt);
    pkt->payload = packet + info->header_len;
    pkt->payload_len = body_len - pkt->pad_count;
    return TRANSPORT_OK;
}

static void transport_bth_build(uint8_t *bth, const struct transport_packet *pkt, size_t pad)
{
    bth[0] = pkt->opcode;
    bth[1] = (uint8_t)((pkt->solicited ? 0x80 : 0) | (pkt->migreq ? 0x40 : 0) | pad << 4 |
                       (pkt->tver & 0x0f));
    put16(bth + 2, pkt->pkey);
    bth[4] = (uint8_t)((pkt->fecn ? 0x80 : 0) | (pkt->becn ? 0x40 : 0));
    put24(bth + 5, pkt->dest_qp);
    bth[8] = pkt->ackreq ? 0x80 : 0;
    put24(bth + 9, pkt->psn);
}

/* Writes the extended headers. Returns where the payload goes. */
static uint8_t *transport_ext_build(uint8_t *p, const struct transport_packet *pkt, uint32_t flags)
{
    if (flags & HDR_XRC_ETH) {
        put32(p, pkt->xrc_srqn & 0xffffff);
        p += XRC_ETH_BYTES;
    } else if (flags & (HDR_DC_ETH | HDR_CNP_RSVD)) {
        put32(p, (uint32_t)pkt->dceth.version << 24 | (pkt->dceth.session & 0xffffff));
        put32(p + 4, pkt->dceth.number & 0xffffff);
        p += DC_ETH_BYTES;
    }
    if (flags & HDR_DETH) {
        put32(p, pkt->deth.qkey);
        put32(p + 4, pkt->deth.src_qp & 0xffffff);
        p += DETH_BYTES;
    }
    if (flags & HDR_RETH) {
        put64(p, pkt->reth.va);
        put32(p + 8, pkt->reth.rkey);
        put32(p + 12, pkt->reth.len);
        p += RETH_BYTES;
    }
    if (flags & HDR_ATOMIC_ETH) {
        put64(p, pkt->atomic.va);
        put32(p + 8, pkt->atomic.rkey);
        put64(p + 12, pkt->atomic.swap_add);
        put64(p + 20, pkt->atomic.compare);
        p += ATOMIC_ETH_BYTES;
    }
    if (flags & HDR_AETH) {
        p[0] = pkt->aeth.syndrome;
        put24(p + 1, pkt->aeth.msn);
        p += AETH_BYTES;
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        put64(p, pkt->atomic_ack);
        p += ATOMIC_ACK_ETH_BYTES;
    }
    if (flags & (HDR_IMM_DT | HDR_IETH)) {
        put32(p, pkt->imm);
        p += IMM_DT_BYTES; /* an IETH has the same length */
    }
    if (flags & HDR_CNP_RSVD) {
        memset(p, 0, CNP_RSVD_BYTES - DC_ETH_BYTES);
        p += CNP_RSVD_BYTES - DC_ETH_BYTES;
    }
    return p;
}

void dcceth_parse(const uint8_t bytes[DCC_ETH_BYTES], struct dcceth *eth)
{
    eth->reconnect = bytes[0] & 0x10;
    eth->rsl = bytes[0] & 0x0f;
    eth->psn = get24(bytes + 1);
    eth->key = get64(bytes + 8);
}

void dcceth_build(uint8_t bytes[DCC_ETH_BYTES], const struct dcceth *eth)
{
    bytes[0] = (uint8_t)((eth->reconnect ? 0x10 : 0) | (eth->rsl & 0x0f));
    put24(bytes + 1, eth->psn);
    put32(bytes + 4, 0);
    put64(bytes + 8, eth->key);
}

uint8_t *transport_build(uint8_t *packet, const struct transport_packet *pkt, size_t payload_len)
{
    transport_bth_build(packet, pkt, transport_pad(payload_len));
    return transport_ext_build(packet + BTH_BYTES, pkt, bth_opcodes[pkt->opcode].flags);
}
