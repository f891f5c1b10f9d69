/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses and builds frames of RoCE versions 1 and 2.
 *
 * Headers are copied to the stack once. Parsing takes both its values and the masked ICRC input
 * from this copy, so what was checked is what is used, even if the frame lies in memory that its
 * sender can still write to.
 *
 * ICRC (annexes A16 and A17): 8 bytes of ff in the place of an LRH, the IP header and the UDP
 * header, or the GRH, then the transport packet. Fields that routers may change count as ff: IPv4's
 * TOS, TTL and header checksum; traffic class, flow label and hop limit of IPv6 and of a GRH; and
 * the UDP checksum.
 */
#include "wire/encap/roce.h"
#include "wire/bytes.h"

#include <string.h>

/* A copy of a frame's headers, and the offsets of their parts. */
struct frame_head {
    uint8_t h[ROCE_HEADER_MAX];
    size_t ip_off, bth_off;
    size_t transport_len; /* bytes from the BTH to the pad */
};

/* The longest prefix that is read before lengths are checked: an IPv4 header with all its options,
 * and UDP. */
_Static_assert(ETH_BYTES + VLAN_BYTES + IPV4_BYTES_MAX + UDP_BYTES <= ROCE_HEADER_MAX,
               "ROCE_HEADER_MAX");

/* CRC-32 of 8 bytes of ff, with which every ICRC starts. */
#define ICRC_SEED 0x2144df1cu

/* Ones' complement sum of an IPv4 header without options, not inverted, as two bytes in memory
 * order. Neither the order in which 16-bit halves are added nor their byte order matters (RFC
 * 1071). */
static uint16_t roce_ipv4_sum(const uint8_t *ip)
{
    uint32_t word[IPV4_BYTES / 4];
    uint64_t sum = 0;

    memcpy(word, ip, sizeof(word));
    for (size_t i = 0; i < IPV4_BYTES / 4; i++) {
        sum += word[i];
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}

static inline size_t roce_ip_offset(const struct roce_addr *addr)
{
    return ETH_BYTES + (addr->has_vlan ? VLAN_BYTES : 0);
}

/* Bytes of the IP header or the GRH. */
static inline size_t roce_ip_bytes(const struct roce_addr *addr)
{
    return addr->is_ipv4 ? IPV4_BYTES : IPV6_BYTES;
}

static inline size_t roce_udp_bytes(const struct roce_addr *addr)
{
    return addr->is_v1 ? 0 : UDP_BYTES;
}

/* The ICRC of a frame. ip: a scratch copy of its headers from IP on, head_len bytes. */
static uint32_t roce_icrc(uint8_t *ip, size_t head_len, const struct roce_addr *addr,
                          const uint8_t *body, size_t body_len)
{
    size_t udp_off = roce_ip_bytes(addr);

    if (addr->is_ipv4) {
        ip[1] = 0xff;
        ip[8] = 0xff;
        ip[10] = ip[11] = 0xff;
    } else {
        ip[0] |= 0x0f;
        ip[1] = ip[2] = ip[3] = 0xff;
        ip[7] = 0xff;
    }
    if (addr->is_v1) {
        return icrc(ICRC_SEED, ip, udp_off, head_len, body, body_len);
    }
    ip[udp_off + 6] = ip[udp_off + 7] = 0xff;
    return icrc(ICRC_SEED, ip, udp_off + UDP_BYTES, head_len, body, body_len);
}

/* Stores the fields that an IPv6 header and a GRH have in the same places, and returns how many
 * bytes follow the header. */
static size_t roce_parse_fields(const uint8_t *ip, struct roce_addr *addr)
{
    memcpy(addr->sgid, ip + 8, 16);
    memcpy(addr->dgid, ip + 24, 16);
    addr->tclass = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
    addr->hop_limit = ip[7];
    addr->flow_label = get32(ip) & 0xfffff;
    return get16(ip + 4);
}

/* Parses the GRH at offset off. */
static enum roce_verdict roce_parse_grh(const uint8_t *h, size_t len, size_t off,
                                        struct roce_addr *addr, size_t *end, size_t *payload)
{
    const uint8_t *grh = h + off;

    if (len < off + IPV6_BYTES) {
        return ROCE_TRUNCATED;
    }
    if (grh[0] >> 4 != 6 || grh[6] != IP_PROTO_IBA) {
        return ROCE_BAD_HEADER;
    }
    addr->is_v1 = true;
    addr->is_ipv4 = false;
    *end = off + IPV6_BYTES;
    *payload = roce_parse_fields(grh, addr);
    return *payload > len - *end ? ROCE_TRUNCATED : ROCE_OK;
}

/* Parses the IP header. h is the copy of the frame's first bytes, len the whole frame's length.
 * Stores the offset of the UDP header and how many bytes IP carries. */
static enum roce_verdict roce_parse_ip(const uint8_t *h, size_t len, struct roce_addr *addr,
                                       size_t *udp_off, size_t *ip_payload)
{
    size_t off = ETH_BYTES;
    uint16_t ethertype = get16(h + 12);

    addr->is_v1 = false;
    addr->has_vlan = ethertype == ETH_TYPE_VLAN;
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

    if (ethertype == ETH_TYPE_IPV4) {
        if (len < off + IPV4_BYTES) {
            return ROCE_TRUNCATED;
        }
        if (ip[9] != IP_PROTO_UDP || (get16(ip + 6) & 0x3fff)) {
            return ROCE_NOT_ROCE;
        }
        if (ip[0] >> 4 != 4) {
            return ROCE_BAD_HEADER;
        }
        addr->is_ipv4 = true;
        *udp_off = off + IPV4_BYTES;
    } else if (ethertype == ETH_TYPE_IPV6) {
        if (len < off + IPV6_BYTES) {
            return ROCE_TRUNCATED;
        }
        if (ip[6] != IP_PROTO_UDP) {
            return ROCE_NOT_ROCE;
        }
        if (ip[0] >> 4 != 6) {
            return ROCE_BAD_HEADER;
        }
        addr->is_ipv4 = false;
        *udp_off = off + IPV6_BYTES;
    } else {
        return ethertype == ETH_TYPE_ROCE ? roce_parse_grh(h, len, off, addr, udp_off, ip_payload)
                                          : ROCE_NOT_ROCE;
    }

    if (addr->is_ipv4 && (ip[0] & 0x0f) != IPV4_BYTES / 4) {
        /* Options move the UDP header. Only its port tells whether this is RoCE. */
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

        if (roce_ipv4_sum(ip) != 0xffff) {
            return ROCE_BAD_HEADER;
        }
        if (total < IPV4_BYTES + UDP_BYTES || total > len - off) {
            return ROCE_TRUNCATED;
        }
        *ip_payload = total - IPV4_BYTES;
        gid_of_ipv4(addr->sgid, ip + 12);
        gid_of_ipv4(addr->dgid, ip + 16);
        addr->tclass = ip[1];
        addr->hop_limit = ip[8];
        addr->flow_label = 0;
    } else {
        *ip_payload = roce_parse_fields(ip, addr);
        if (*ip_payload > len - *udp_off) {
            return ROCE_TRUNCATED;
        }
    }
    return ROCE_OK;
}

static inline void roce_copy_head(uint8_t h[ROCE_HEADER_MAX], const uint8_t *frame, size_t len)
{
    if (len >= ROCE_HEADER_MAX) {
        memcpy(h, frame, ROCE_HEADER_MAX);
    } else {
        memcpy(h, frame, len);
    }
}

/* Parses the headers before the BTH. h is the copy of the frame's first bytes. */
static enum roce_verdict roce_parse_network(const uint8_t *h, size_t len, struct roce_addr *addr,
                                            size_t *bth_off, size_t *transport_len)
{
    enum roce_verdict verdict;
    size_t udp_off, ip_payload;

    if (len < ETH_BYTES) {
        return ROCE_TRUNCATED;
    }
    verdict = roce_parse_ip(h, len, addr, &udp_off, &ip_payload);
    if (verdict != ROCE_OK) {
        return verdict;
    }
    if (ip_payload < roce_udp_bytes(addr) + ICRC_BYTES ||
        (!addr->is_v1 && get16(h + udp_off + 4) != ip_payload)) {
        return ROCE_TRUNCATED;
    }
    memcpy(addr->dmac, h, 6);
    memcpy(addr->smac, h + 6, 6);
    addr->udp_sport = addr->is_v1 ? 0 : get16(h + udp_off);
    *bth_off = udp_off + roce_udp_bytes(addr);
    *transport_len = ip_payload - roce_udp_bytes(addr) - ICRC_BYTES;
    return ROCE_OK;
}

/* Parses a frame without checking the ICRC. */
static enum roce_verdict roce_parse_frame(const uint8_t *frame, size_t len, struct roce_packet *pkt,
                                          struct frame_head *head)
{
    enum roce_verdict verdict;

    roce_copy_head(head->h, frame, len);
    verdict = roce_parse_network(head->h, len, &pkt->addr, &head->bth_off, &head->transport_len);
    if (verdict != ROCE_OK) {
        return verdict;
    }
    head->ip_off = roce_ip_offset(&pkt->addr);
    return (enum roce_verdict)transport_parse(head->h + head->bth_off, frame + head->bth_off,
                                              head->transport_len, &pkt->transport);
}

enum roce_verdict roce_parse_next(const uint8_t *frame, size_t len, struct roce_last *last)
{
    uint8_t h[ROCE_HEADER_MAX];

    roce_copy_head(h, frame, len);
    if (!last->len || len != last->len || memcmp(h, last->head, last->bth_off)) {
        enum roce_verdict verdict =
            roce_parse_network(h, len, &last->pkt.addr, &last->bth_off, &last->transport_len);

        last->len = verdict == ROCE_OK ? len : 0;
        if (verdict != ROCE_OK) {
            return verdict;
        }
        memcpy(last->head, h, sizeof(h));
    }
    return (enum roce_verdict)transport_parse(h + last->bth_off, frame + last->bth_off,
                                              last->transport_len, &last->pkt.transport);
}

/* The ICRC of a frame that roce_parse_frame() accepted. */
static uint32_t roce_icrc_of_parsed(const uint8_t *frame, const struct roce_packet *pkt,
                                    struct frame_head *head)
{
    size_t head_len = (size_t)(pkt->payload - frame);

    return roce_icrc(head->h + head->ip_off, head_len - head->ip_off, &pkt->addr, pkt->payload,
                     pkt->payload_len + pkt->pad_count);
}

/* The offset of the ICRC in such a frame. */
static size_t roce_icrc_offset(const uint8_t *frame, const struct roce_packet *pkt)
{
    return (size_t)(pkt->payload - frame) + pkt->payload_len + pkt->pad_count;
}

enum roce_verdict roce_parse_unchecked(const uint8_t *frame, size_t len, struct roce_packet *pkt)
{
    struct frame_head head;

    return roce_parse_frame(frame, len, pkt, &head);
}

enum roce_verdict roce_parse(const uint8_t *frame, size_t len, struct roce_packet *pkt)
{
    struct frame_head head;
    enum roce_verdict verdict = roce_parse_frame(frame, len, pkt, &head);
    uint32_t sent;

    if (verdict != ROCE_OK) {
        return verdict;
    }
    sent = icrc_get(frame + roce_icrc_offset(frame, pkt));
    return roce_icrc_of_parsed(frame, pkt, &head) == sent ? ROCE_OK : ROCE_BAD_ICRC;
}

void roce_put_grh(uint8_t grh[GRH_BYTES], const struct roce_packet *pkt)
{
    const uint8_t *ip = pkt->payload - roce_header_len(pkt) + roce_ip_offset(&pkt->addr);
    size_t empty = GRH_BYTES - roce_ip_bytes(&pkt->addr);

    memset(grh, 0, empty);
    memcpy(grh + empty, ip, GRH_BYTES - empty);
}

void roce_fill_icrc(uint8_t *frame, size_t len)
{
    struct frame_head head;
    struct roce_packet pkt;

    if (roce_parse_frame(frame, len, &pkt, &head) == ROCE_OK) {
        icrc_put(frame + roce_icrc_offset(frame, &pkt), roce_icrc_of_parsed(frame, &pkt, &head));
    }
}

size_t roce_header_len(const struct roce_packet *pkt)
{
    return roce_ip_offset(&pkt->addr) + roce_ip_bytes(&pkt->addr) + roce_udp_bytes(&pkt->addr) +
           transport_header_len(&pkt->transport);
}

size_t roce_frame_len(const struct roce_packet *pkt, size_t payload_len)
{
    return roce_header_len(pkt) + payload_len + transport_pad(payload_len) + ICRC_BYTES;
}

/* len: the bytes after the header. */
static void roce_build_ip(uint8_t *ip, const struct roce_addr *addr, size_t len)
{
    if (addr->is_ipv4) {
        uint16_t sum;

        ip[0] = 0x40 | IPV4_BYTES / 4;
        ip[1] = addr->tclass;
        put16(ip + 2, (uint16_t)(IPV4_BYTES + len));
        put16(ip + 4, 0);
        put16(ip + 6, 0x4000); /* DF */
        ip[8] = addr->hop_limit;
        ip[9] = IP_PROTO_UDP;
        put16(ip + 10, 0);
        memcpy(ip + 12, addr->sgid + GID_IPV4, 4);
        memcpy(ip + 16, addr->dgid + GID_IPV4, 4);
        sum = (uint16_t)~roce_ipv4_sum(ip);
        memcpy(ip + 10, &sum, sizeof(sum));
    } else {
        put32(ip, 0x60000000u | (uint32_t)addr->tclass << 20 | (addr->flow_label & 0xfffff));
        put16(ip + 4, (uint16_t)len);
        ip[6] = addr->is_v1 ? IP_PROTO_IBA : IP_PROTO_UDP;
        ip[7] = addr->hop_limit;
        memcpy(ip + 8, addr->sgid, 16);
        memcpy(ip + 24, addr->dgid, 16);
    }
}

uint8_t *roce_build(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    const struct roce_addr *addr = &pkt->addr;
    size_t len = roce_udp_bytes(addr) + transport_header_len(&pkt->transport) + payload_len +
                 transport_pad(payload_len) + ICRC_BYTES;
    uint8_t *p = frame;

    memcpy(p, addr->dmac, 6);
    memcpy(p + 6, addr->smac, 6);
    p += 12;
    if (addr->has_vlan) {
        put16(p, ETH_TYPE_VLAN);
        put16(p + 2, addr->vlan_tci);
        p += VLAN_BYTES;
    }
    put16(p, addr->is_ipv4 ? ETH_TYPE_IPV4 : addr->is_v1 ? ETH_TYPE_ROCE : ETH_TYPE_IPV6);
    p += 2;

    roce_build_ip(p, addr, len);
    p += roce_ip_bytes(addr);
    if (!addr->is_v1) {
        put16(p, addr->udp_sport);
        put16(p + 2, ROCE_UDP_DPORT);
        put16(p + 4, (uint16_t)len);
        put16(p + 6, 0);
        p += UDP_BYTES;
    }
    return transport_build(p, &pkt->transport, payload_len);
}

size_t roce_finish_no_icrc(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    uint8_t *payload = frame + roce_header_len(pkt);
    uint8_t *end = payload + transport_put_pad(payload, payload_len);

    icrc_put(end, 0);
    return (size_t)(end - frame) + ICRC_BYTES;
}

size_t roce_finish(uint8_t *frame, const struct roce_packet *pkt, size_t payload_len)
{
    uint8_t h[ROCE_HEADER_MAX];
    size_t ip_off = roce_ip_offset(&pkt->addr);
    size_t head_len = roce_header_len(pkt);
    uint8_t *payload = frame + head_len;
    size_t body_len = transport_put_pad(payload, payload_len);

    memcpy(h, frame + ip_off, head_len - ip_off);
    icrc_put(payload + body_len, roce_icrc(h, head_len - ip_off, &pkt->addr, payload, body_len));
    return head_len + body_len + ICRC_BYTES;
}
