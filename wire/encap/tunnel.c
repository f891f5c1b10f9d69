/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses tunnels, one function for each kind of header.
 *
 * The frame may lie in memory that its sender still writes to. So a header is copied before it is
 * parsed, and every offset is checked against the end of the outer packet.
 */
#include "wire/encap/tunnel.h"
#include "wire/bytes.h"

#include <string.h>

enum {
    VXLAN_BYTES = 8,
    GENEVE_BYTES = 8, /* without options */
    GRE_BYTES = 4,    /* without the optional fields */
    GRE_FIELD = 4,
    GRE_MAX = GRE_BYTES + 3 * GRE_FIELD,
    MPLS_BYTES = 4,
    MPLS_MAX = 8,   /* entries of a label stack that a NIC parses at most */
    NVGRE_FLOW = 8, /* bits of the key behind the virtual subnet */

    /* Cards read version 1, too: rdma-core's test_packet_reformat_root_l2_gre sends it. */
    GRE_VERSION_1 = 0x0001,
    GRE_NEWER = 0x0006,       /* bits of later versions */
    GRE_HAS_ACK = 0x0080,     /* of version 1 (RFC 2637) */
    GRE_HAS_ROUTING = 0x4000, /* RFC 1701; RFC 2784 does not have it */
    MPLS_BOTTOM = 0x100,
    GENEVE_VERSION = 0xc0,
    GENEVE_OPT_LEN = 0x3f, /* words of four bytes */
    GENEVE_OAM = 0x80,
    GENEVE_CRITICAL = 0x40,

    /* next protocol of VXLAN-GPE */
    GPE_IPV4 = 1,
    GPE_IPV6 = 2,
    GPE_ETH = 3,
};

/* A frame from which a tunnel is parsed, up to where the outer packet ends. */
struct tunnel_from {
    const uint8_t *frame;
    uint32_t end;
};

/* Copies a header of len bytes at off. False: it does not fit. */
static bool tunnel_copy(const struct tunnel_from *from, uint32_t off, void *buf, uint32_t len)
{
    if (off > from->end || from->end - off < len) {
        return false;
    }
    memcpy(buf, from->frame + off, len);
    __asm__ volatile("" : : "r"(buf) : "memory"); /* keeps the compiler from rereading */
    return true;
}

/* The stack of labels at off. What it carries is known only by the first four bits, which are an IP
 * version (RFC 4928). */
static bool tunnel_mpls(const struct tunnel_from *from, uint32_t off, enum eth_mpls_over over,
                        struct eth_tunnel *t)
{
    uint8_t entry[MPLS_BYTES], first = 0;

    t->kind = ETH_TUNNEL_MPLS;
    t->over = over;
    t->off = off;
    do {
        if (t->labels == MPLS_MAX || !tunnel_copy(from, off, entry, MPLS_BYTES)) {
            return false;
        }
        if (t->labels++ == 0) {
            t->mpls = get32(entry);
        }
        off += MPLS_BYTES;
    } while (!(get32(entry) & MPLS_BOTTOM));
    t->inner_off = off;
    tunnel_copy(from, off, &first, 1);
    t->protocol = first >> 4 == 4 ? ETH_TYPE_IPV4 : first >> 4 == 6 ? ETH_TYPE_IPV6 : 0;
    return true;
}

static bool tunnel_vxlan(const struct tunnel_from *from, uint32_t off, struct eth_tunnel *t)
{
    uint8_t head[VXLAN_BYTES];

    if (!tunnel_copy(from, off, head, VXLAN_BYTES)) {
        return false;
    }
    t->kind = ETH_TUNNEL_VXLAN;
    t->flags = head[0];
    t->vni = get24(head + 4);
    t->protocol = ETH_TYPE_TEB;
    t->inner_off = off + VXLAN_BYTES;
    return true;
}

static bool tunnel_vxlan_gpe(const struct tunnel_from *from, uint32_t off, struct eth_tunnel *t)
{
    uint8_t head[VXLAN_BYTES];

    if (!tunnel_copy(from, off, head, VXLAN_BYTES)) {
        return false;
    }
    t->kind = ETH_TUNNEL_VXLAN_GPE;
    t->flags = head[0];
    t->next = head[3];
    t->vni = get24(head + 4);
    t->inner_off = off + VXLAN_BYTES;
    if (!(t->flags & VXLAN_GPE_HAS_PROTOCOL) || t->next == GPE_ETH) {
        t->protocol = ETH_TYPE_TEB;
    } else {
        t->protocol = t->next == GPE_IPV4 ? ETH_TYPE_IPV4 : t->next == GPE_IPV6 ? ETH_TYPE_IPV6 : 0;
    }
    return true;
}

static bool tunnel_geneve(const struct tunnel_from *from, uint32_t off, struct eth_tunnel *t)
{
    uint8_t head[GENEVE_BYTES];

    if (!tunnel_copy(from, off, head, GENEVE_BYTES) || head[0] & GENEVE_VERSION) {
        return false;
    }
    t->kind = ETH_TUNNEL_GENEVE;
    t->opt_len = (head[0] & GENEVE_OPT_LEN) * 4u;
    t->oam = head[1] & GENEVE_OAM;
    t->critical = head[1] & GENEVE_CRITICAL;
    t->protocol = get16(head + 2);
    t->vni = get24(head + 4);
    t->inner_off = off + GENEVE_BYTES + t->opt_len;
    return t->inner_off <= from->end;
}

static bool tunnel_gre(const struct tunnel_from *from, uint32_t off, struct eth_tunnel *t)
{
    uint8_t head[GRE_MAX];
    uint32_t at = GRE_BYTES, len = GRE_BYTES;
    uint16_t flags;

    if (!tunnel_copy(from, off, head, GRE_BYTES)) {
        return false;
    }
    flags = get16(head);
    if (flags & (GRE_NEWER | GRE_HAS_ROUTING) || (flags & GRE_VERSION_1 && flags & GRE_HAS_ACK)) {
        return false;
    }
    t->gre_flags = flags & (GRE_HAS_CSUM | GRE_HAS_KEY | GRE_HAS_SEQ);
    len += GRE_FIELD * (uint32_t)__builtin_popcount(t->gre_flags);
    t->protocol = get16(head + 2);
    if (!tunnel_copy(from, off + GRE_BYTES, head + GRE_BYTES, len - GRE_BYTES)) {
        return false;
    }
    at += t->gre_flags & GRE_HAS_CSUM ? GRE_FIELD : 0;
    if (t->gre_flags & GRE_HAS_KEY) {
        t->gre_key = get32(head + at);
        at += GRE_FIELD;
    }
    if (t->gre_flags & GRE_HAS_SEQ) {
        t->gre_seq = get32(head + at);
    }
    if (t->protocol == ETH_TYPE_MPLS || t->protocol == ETH_TYPE_MPLS_MC) {
        return tunnel_mpls(from, off + len, ETH_MPLS_OVER_GRE, t);
    }
    t->kind = ETH_TUNNEL_GRE;
    t->nvgre =
        t->gre_flags == GRE_HAS_KEY && t->protocol == ETH_TYPE_TEB && !(flags & GRE_VERSION_1);
    t->vni = t->nvgre ? t->gre_key >> NVGRE_FLOW : 0;
    t->inner_off = off + len;
    return true;
}

static bool tunnel_is_vxlan(uint16_t dport, const struct eth_vxlan_ports *ports)
{
    if (!ports) {
        return dport == UDP_PORT_VXLAN;
    }
    for (unsigned i = 0; i < ports->count; i++) {
        if (ports->port[i] == dport) {
            return true;
        }
    }
    return false;
}

/* Parses the header between the outer and the inner packet. */
static bool tunnel_parse_header(const struct tunnel_from *from, const struct eth_info *info,
                                const struct eth_vxlan_ports *ports, struct eth_tunnel *t)
{
    if (info->ethertype == ETH_TYPE_MPLS || info->ethertype == ETH_TYPE_MPLS_MC) {
        return tunnel_mpls(from, info->l3_off, ETH_MPLS_OVER_ETH, t);
    }
    if (!info->ip_version || info->fragment) {
        return false;
    }
    t->off = info->l4_off;
    if (info->l4 == ETH_L4_UDP) {
        t->off = info->payload_off;
        if (tunnel_is_vxlan(info->dport, ports)) {
            return tunnel_vxlan(from, t->off, t);
        }
        switch (info->dport) {
        case UDP_PORT_VXLAN_GPE:
            return tunnel_vxlan_gpe(from, t->off, t);
        case UDP_PORT_GENEVE:
            return tunnel_geneve(from, t->off, t);
        case UDP_PORT_MPLS:
            return tunnel_mpls(from, t->off, ETH_MPLS_OVER_UDP, t);
        default:
            return false;
        }
    }
    switch (info->proto) {
    case IP_PROTO_GRE:
        return tunnel_gre(from, t->off, t);
    case IP_PROTO_MPLS:
        return tunnel_mpls(from, t->off, ETH_MPLS_OVER_IP, t);
    case IP_PROTO_IPV4:
    case IP_PROTO_IPV6:
        t->kind = ETH_TUNNEL_IP;
        t->protocol = info->proto == IP_PROTO_IPV4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6;
        t->inner_off = t->off;
        return true;
    default:
        return false;
    }
}

static bool tunnel_parse(const uint8_t *frame, const struct eth_info *info,
                         const struct eth_vxlan_ports *ports, bool whole, struct eth_tunnel *t)
{
    struct tunnel_from from = {frame, info->ip_version ? info->ip_end : info->frame_len};

    memset(t, 0, sizeof(*t));
    if (!tunnel_parse_header(&from, info, ports, t)) {
        memset(t, 0, sizeof(*t));
        return false;
    }
    t->inner_eth = t->protocol == ETH_TYPE_TEB;
    t->inner.frame_len = from.end;
    if (t->inner_eth) {
        eth_parse_inner(frame, t->inner_off, from.end, 0, whole, &t->inner);
    } else if (t->protocol == ETH_TYPE_IPV4 || t->protocol == ETH_TYPE_IPV6) {
        eth_parse_inner(frame, t->inner_off, from.end, t->protocol, whole, &t->inner);
    }
    return true;
}

bool eth_tunnel_parse(const uint8_t *frame, const struct eth_info *info,
                      const struct eth_vxlan_ports *ports, struct eth_tunnel *tunnel)
{
    return tunnel_parse(frame, info, ports, true, tunnel);
}

bool eth_tunnel_parse_headers(const uint8_t *headers, const struct eth_info *info,
                              const struct eth_vxlan_ports *ports, struct eth_tunnel *tunnel)
{
    return tunnel_parse(headers, info, ports, false, tunnel);
}
