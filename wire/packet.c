/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 packets to bytes and back.
 *
 * Headers are handled once, in a copy on the stack: parsing takes its values and the masked ICRC
 * input from the same copy, so what was checked is what was used even when the frame lies in
 * memory that its sender can still write to. A payload is read by the CRC only and never copied.
 *
 * ICRC (IBTA 7.8.1, annex A17): CRC-32 of Ethernet over 8 bytes of ff in the place of the LRH, the
 * IP header, UDP header, BTH, extended headers, payload and pad, with ff in the place of what
 * routers may change: IPv4 TOS, TTL and header checksum; IPv6 traffic class, flow label and hop
 * limit; UDP checksum; BTH byte 4 (FECN, BECN, reserved). It is sent low byte first.
 */
#include "wire/packet.h"
#include "wire/bytes.h"

#include <libdeflate.h>
#include <string.h>

/* What an ICRC is computed of. */
struct icrc_input {
    uint8_t h[ROCE_HEADER_MAX]; /* the frame's headers */
    size_t ip_off, hdr_len;     /* where IP begins, and where the extended headers end */
    size_t body_len;            /* of payload and pad, which follow; then the ICRC */
};

/* Not more than the copy holds: an IPv4 header with all its options, and UDP. */
_Static_assert(14 + 4 + 60 + 8 <= ROCE_HEADER_MAX, "ROCE_HEADER_MAX");

enum {
    ETH_BYTES = 14,
    VLAN_BYTES = 4,
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    BTH_BYTES = 12,
    ICRC_BYTES = 4,

    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_VLAN = 0x8100,
    PROTO_UDP = 17,
};

/* CRC-32 of 8 bytes of ff, where every ICRC starts. */
#define ICRC_SEED 0x2144df1cu

/* Ones' complement sum of an IPv4 header without options, not inverted. */
static uint16_t ipv4_sum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (int i = 0; i < IPV4_BYTES; i += 2) {
        sum += get16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}

static inline size_t ip_offset(const struct roce_addr *addr)
{
    return ETH_BYTES + (addr->has_vlan ? VLAN_BYTES : 0);
}

static inline size_t ip_bytes(const struct roce_addr *addr)
{
    return addr->is_ipv4 ? IPV4_BYTES : IPV6_BYTES;
}

static inline size_t pad_of(size_t payload_len)
{
    return -payload_len & 3;
}

/*
 * The ICRC as the four wire bytes read low byte first. ip is a scratch copy of the headers from
 * the IP header to the last extended one, hdr_len bytes, and is masked in place.
 */
static uint32_t icrc(uint8_t *ip, size_t hdr_len, bool is_ipv4, const uint8_t *payload,
                     size_t payload_len)
{
    uint8_t *udp;
    uint32_t crc;

    if (is_ipv4) {
        ip[1] = 0xff;
        ip[8] = 0xff;
        ip[10] = ip[11] = 0xff;
        udp = ip + IPV4_BYTES;
    } else {
        ip[0] |= 0x0f;
        ip[1] = ip[2] = ip[3] = 0xff;
        ip[7] = 0xff;
        udp = ip + IPV6_BYTES;
    }
    udp[6] = udp[7] = 0xff;
    udp[UDP_BYTES + 4] = 0xff;

    crc = libdeflate_crc32(ICRC_SEED, ip, hdr_len);
    return payload_len ? libdeflate_crc32(crc, payload, payload_len) : crc;
}

static void parse_bth(const uint8_t *bth, struct roce_packet *pkt)
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

/* Extended headers follow the BTH in this order (IBTA 9.3, annex A14). */
static void parse_ext(const uint8_t *p, uint32_t flags, struct roce_packet *pkt)
{
    if (flags & HDR_XRC_ETH) {
        pkt->xrc_srqn = get24(p + 1);
        p += 4;
    }
    if (flags & HDR_DETH) {
        pkt->deth.qkey = get32(p);
        pkt->deth.src_qp = get24(p + 5);
        p += 8;
    }
    if (flags & HDR_RETH) {
        pkt->reth.va = get64(p);
        pkt->reth.rkey = get32(p + 8);
        pkt->reth.len = get32(p + 12);
        p += 16;
    }
    if (flags & HDR_ATOMIC_ETH) {
        pkt->atomic.va = get64(p);
        pkt->atomic.rkey = get32(p + 8);
        pkt->atomic.swap_add = get64(p + 12);
        pkt->atomic.compare = get64(p + 20);
        p += 28;
    }
    if (flags & HDR_AETH) {
        pkt->aeth.syndrome = p[0];
        pkt->aeth.msn = get24(p + 1);
        p += 4;
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        pkt->atomic_ack = get64(p);
        p += 8;
    }
    if (flags & (HDR_IMM_DT | HDR_IETH)) {
        pkt->imm = get32(p);
    }
}

/* Takes the IP header apart. h is the copy of the frame's first bytes, len the whole frame's
 * length. Stores where UDP begins and how many bytes IP carries. */
static enum roce_verdict parse_ip(const uint8_t *h, size_t len, struct roce_addr *addr,
                                  size_t *udp_off, size_t *ip_payload)
{
    size_t off = ETH_BYTES;
    uint16_t ethertype = get16(h + 12);

    addr->has_vlan = ethertype == ETHERTYPE_VLAN;
    addr->vlan_tci = 0;
    if (addr->has_vlan) {
        if (len < ETH_BYTES + VLAN_BYTES) {
            return ROCE_TRUNCATED;
        }
        addr->vlan_tci = get16(h + 14);
        ethertype = get16(h + 16);
        off += VLAN_BYTES;
    }

    const uint8_t *ip = h + off;

    if (ethertype == ETHERTYPE_IPV4) {
        if (len < off + IPV4_BYTES) {
            return ROCE_TRUNCATED;
        }
        if (ip[9] != PROTO_UDP || (get16(ip + 6) & 0x3fff)) {
            return ROCE_NOT_ROCE;
        }
        if (ip[0] >> 4 != 4) {
            return ROCE_BAD_HEADER;
        }
        addr->is_ipv4 = true;
        *udp_off = off + IPV4_BYTES;
    } else if (ethertype == ETHERTYPE_IPV6) {
        if (len < off + IPV6_BYTES) {
            return ROCE_TRUNCATED;
        }
        if (ip[6] != PROTO_UDP) {
            return ROCE_NOT_ROCE;
        }
        if (ip[0] >> 4 != 6) {
            return ROCE_BAD_HEADER;
        }
        addr->is_ipv4 = false;
        *udp_off = off + IPV6_BYTES;
    } else {
        return ROCE_NOT_ROCE;
    }

    if (addr->is_ipv4 && (ip[0] & 0x0f) != IPV4_BYTES / 4) {
        /* Options move the UDP header. Whether it is RoCE at all is seen behind them. */
        size_t ihl = (ip[0] & 0x0f) * 4u;

        if (ihl < IPV4_BYTES) {
            return ROCE_BAD_HEADER;
        }
        if (len < off + ihl + UDP_BYTES) {
            return ROCE_TRUNCATED;
        }
        return get16(ip + ihl + 2) == ROCE_UDP_DPORT ? ROCE_BAD_HEADER : ROCE_NOT_ROCE;
    }
    if (len < *udp_off + UDP_BYTES) {
        return ROCE_TRUNCATED;
    }
    if (get16(h + *udp_off + 2) != ROCE_UDP_DPORT) {
        return ROCE_NOT_ROCE;
    }

    if (addr->is_ipv4) {
        size_t total = get16(ip + 2);

        if (ipv4_sum(ip) != 0xffff) {
            return ROCE_BAD_HEADER;
        }
        if (total < IPV4_BYTES + UDP_BYTES || total > len - off) {
            return ROCE_TRUNCATED;
        }
        *ip_payload = total - IPV4_BYTES;
        memset(addr->sgid, 0, 10);
        memset(addr->sgid + 10, 0xff, 2);
        memcpy(addr->dgid, addr->sgid, 12);
        memcpy(addr->sgid + 12, ip + 12, 4);
        memcpy(addr->dgid + 12, ip + 16, 4);
        addr->tclass = ip[1];
        addr->hop_limit = ip[8];
        addr->flow_label = 0;
    } else {
        *ip_payload = get16(ip + 4);
        if (*ip_payload > len - *udp_off) {
            return ROCE_TRUNCATED;
        }
        memcpy(addr->sgid, ip + 8, 16);
        memcpy(addr->dgid, ip + 24, 16);
        addr->tclass = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
        addr->hop_limit = ip[7];
        addr->flow_label = get32(ip) & 0xfffff;
    }
    return ROCE_OK;
}

/* All but the ICRC. */
static enum roce_verdict parse(const uint8_t *frame, size_t len, struct roce_packet *pkt,
                               struct icrc_input *in)
{
    const struct bth_opcode_info *info;
    enum roce_verdict verdict;
    size_t udp_off, ip_payload;
    uint8_t *h = in->h;

    if (len < ETH_BYTES) {
        return ROCE_TRUNCATED;
    }
    if (len >= ROCE_HEADER_MAX) {
        memcpy(h, frame, ROCE_HEADER_MAX);
    } else {
        memcpy(h, frame, len);
    }

    verdict = parse_ip(h, len, &pkt->addr, &udp_off, &ip_payload);
    if (verdict != ROCE_OK) {
        return verdict;
    }
    if (get16(h + udp_off + 4) != ip_payload || ip_payload % 4 ||
        ip_payload < UDP_BYTES + BTH_BYTES + ICRC_BYTES) {
        return ROCE_TRUNCATED;
    }
    memcpy(pkt->addr.dmac, h, 6);
    memcpy(pkt->addr.smac, h + 6, 6);
    pkt->addr.udp_sport = get16(h + udp_off);
    parse_bth(h + udp_off + UDP_BYTES, pkt);

    info = &bth_opcodes[pkt->opcode];
    if (!info->name || pkt->tver) {
        return ROCE_BAD_HEADER;
    }
    if (ip_payload < UDP_BYTES + (size_t)info->header_len + ICRC_BYTES) {
        return ROCE_TRUNCATED;
    }
    in->ip_off = ip_offset(&pkt->addr);
    in->hdr_len = udp_off + UDP_BYTES + info->header_len;
    in->body_len = ip_payload - UDP_BYTES - info->header_len - ICRC_BYTES;
    if (pkt->pad_count > in->body_len || (in->body_len && !(info->flags & HDR_PAYLOAD))) {
        return ROCE_TRUNCATED;
    }
    parse_ext(h + udp_off + UDP_BYTES + BTH_BYTES, info->flags, pkt);
    pkt->payload = frame + in->hdr_len;
    pkt->payload_len = in->body_len - pkt->pad_count;
    return ROCE_OK;
}

static uint32_t icrc_of(struct icrc_input *in, const struct roce_packet *pkt)
{
    return icrc(in->h + in->ip_off, in->hdr_len - in->ip_off, pkt->addr.is_ipv4, pkt->payload,
                in->body_len);
}

enum roce_verdict roce_parse_unchecked(const uint8_t *frame, size_t len, struct roce_packet *pkt)
{
    struct icrc_input in;

    return parse(frame, len, pkt, &in);
}

enum roce_verdict roce_parse(const uint8_t *frame, size_t len, struct roce_packet *pkt)
{
    struct icrc_input in;
    enum roce_verdict verdict = parse(frame, len, pkt, &in);
    const uint8_t *tail;
    uint32_t sent;

    if (verdict != ROCE_OK) {
        return verdict;
    }
    tail = pkt->payload + in.body_len;
    sent = (uint32_t)tail[3] << 24 | (uint32_t)tail[2] << 16 | (uint32_t)tail[1] << 8 | tail[0];
    return icrc_of(&in, pkt) == sent ? ROCE_OK : ROCE_BAD_ICRC;
}

static void put_icrc(uint8_t *p, uint32_t crc)
{
    p[0] = (uint8_t)crc;
    p[1] = (uint8_t)(crc >> 8);
    p[2] = (uint8_t)(crc >> 16);
    p[3] = (uint8_t)(crc >> 24);
}

void roce_fill_icrc(uint8_t *frame, size_t len)
{
    struct icrc_input in;
    struct roce_packet pkt;

    if (parse(frame, len, &pkt, &in) == ROCE_OK) {
        put_icrc(frame + in.hdr_len + in.body_len, icrc_of(&in, &pkt));
    }
}

size_t roce_header_len(const struct roce_packet *pkt)
{
    return ip_offset(&pkt->addr) + ip_bytes(&pkt->addr) + UDP_BYTES +
           bth_opcodes[pkt->opcode].header_len;
}

size_t roce_frame_len(const struct roce_packet *pkt, size_t payload_len)
{
    return roce_header_len(pkt) + payload_len + pad_of(payload_len) + ICRC_BYTES;
}

static void build_ip(uint8_t *ip, const struct roce_addr *addr, size_t udp_len)
{
    if (addr->is_ipv4) {
        ip[0] = 0x40 | IPV4_BYTES / 4;
        ip[1] = addr->tclass;
        put16(ip + 2, (uint16_t)(IPV4_BYTES + udp_len));
        put16(ip + 4, 0);
        put16(ip + 6, 0x4000); /* DF */
        ip[8] = addr->hop_limit;
        ip[9] = PROTO_UDP;
        put16(ip + 10, 0);
        memcpy(ip + 12, addr->sgid + 12, 4);
        memcpy(ip + 16, addr->dgid + 12, 4);
        put16(ip + 10, (uint16_t)~ipv4_sum(ip));
    } else {
        put32(ip, 0x60000000u | (uint32_t)addr->tclass << 20 | (addr->flow_label & 0xfffff));
        put16(ip + 4, (uint16_t)udp_len);
        ip[6] = PROTO_UDP;
        ip[7] = addr->hop_limit;
        memcpy(ip + 8, addr->sgid, 16);
        memcpy(ip + 24, addr->dgid, 16);
    }
}

static void build_bth(uint8_t *bth, const struct roce_packet *pkt, size_t pad)
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

/* Returns where the payload goes. */
static uint8_t *build_ext(uint8_t *p, const struct roce_packet *pkt, uint32_t flags)
{
    if (flags & HDR_XRC_ETH) {
        put32(p, pkt->xrc_srqn & 0xffffff);
        p += 4;
    }
    if (flags & HDR_DETH) {
        put32(p, pkt->deth.qkey);
        put32(p + 4, pkt->deth.src_qp & 0xffffff);
        p += 8;
    }
    if (flags & HDR_RETH) {
        put64(p, pkt->reth.va);
        put32(p + 8, pkt->reth.rkey);
        put32(p + 12, pkt->reth.len);
        p += 16;
    }
    if (flags & HDR_ATOMIC_ETH) {
        put64(p, pkt->atomic.va);
        put32(p + 8, pkt->atomic.rkey);
        put64(p + 12, pkt->atomic.swap_add);
        put64(p + 20, pkt->atomic.compare);
        p += 28;
    }
    if (flags & HDR_AETH) {
        p[0] = pkt->aeth.syndrome;
        put24(p + 1, pkt->aeth.msn);
        p += 4;
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        put64(p, pkt->atomic_ack);
        p += 8;
    }
    if (flags & (HDR_IMM_DT | HDR_IETH)) {
        put32(p, pkt->imm);
        p += 4;
    }
    if (flags & HDR_CNP_RSVD) {
        memset(p, 0, 16);
        p += 16;
    }
    return p;
}

uint8_t *roce_build(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    const struct roce_addr *addr = &pkt->addr;
    const struct bth_opcode_info *info = &bth_opcodes[pkt->opcode];
    size_t pad = pad_of(payload_len);
    size_t udp_len = UDP_BYTES + info->header_len + payload_len + pad + ICRC_BYTES;
    uint8_t *p = frame;

    memcpy(p, addr->dmac, 6);
    memcpy(p + 6, addr->smac, 6);
    p += 12;
    if (addr->has_vlan) {
        put16(p, ETHERTYPE_VLAN);
        put16(p + 2, addr->vlan_tci);
        p += VLAN_BYTES;
    }
    put16(p, addr->is_ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    p += 2;

    build_ip(p, addr, udp_len);
    p += ip_bytes(addr);
    put16(p, addr->udp_sport);
    put16(p + 2, ROCE_UDP_DPORT);
    put16(p + 4, (uint16_t)udp_len);
    put16(p + 6, 0);
    p += UDP_BYTES;
    build_bth(p, pkt, pad);
    return build_ext(p + BTH_BYTES, pkt, info->flags);
}

size_t roce_finish_no_icrc(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    size_t pad = pad_of(payload_len);
    uint8_t *end = frame + roce_header_len(pkt) + payload_len;

    memset(end, 0, pad + ICRC_BYTES);
    return (size_t)(end - frame) + pad + ICRC_BYTES;
}

size_t roce_finish(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    uint8_t h[ROCE_HEADER_MAX];
    size_t ip_off = ip_offset(&pkt->addr);
    size_t hdr_len = roce_header_len(pkt);
    size_t body_len = payload_len + pad_of(payload_len);
    uint8_t *payload = frame + hdr_len;
    uint32_t crc;

    memset(payload + payload_len, 0, body_len - payload_len);
    memcpy(h, frame + ip_off, hdr_len - ip_off);
    crc = icrc(h, hdr_len - ip_off, pkt->addr.is_ipv4, payload, body_len);

    put_icrc(payload + body_len, crc);
    return hdr_len + body_len + ICRC_BYTES;
}
