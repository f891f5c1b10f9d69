/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills in the tags of frames, which steering entries compare and hash: prm/ste.prm has their
 * layouts. */
#include <string.h>
#include "model/steering/ste.h"
#include "wire/bytes.h"

/* The headers that a tag is made of: those of the frame, or those inside its tunnel. */
struct ste_headers {
    const uint8_t *frame;
    const struct eth_info *info;
    const uint8_t *macs; /* the two addresses, or NULL: there is no Ethernet header */
};

static void ste_parse(struct ste_walk *walk)
{
    if (walk->parsed) {
        return;
    }
    walk->parsed = true;
    walk->has_tunnel = eth_parse(walk->frame, walk->len, &walk->info) &&
                       eth_tunnel_possible(&walk->info) &&
                       eth_tunnel_parse(walk->frame, &walk->info, &walk->hca->vxlan, &walk->tunnel);
}

static uint32_t ste_l3(const struct eth_info *info)
{
    return info->ip_version == 4   ? PRM_STE_L3_IPV4
           : info->ip_version == 6 ? PRM_STE_L3_IPV6
                                   : PRM_STE_L3_NONE;
}

static uint32_t ste_l4(const struct eth_info *info)
{
    return info->l4 == ETH_L4_TCP   ? PRM_STE_L4_TCP
           : info->l4 == ETH_L4_UDP ? PRM_STE_L4_UDP
                                    : PRM_STE_L4_NONE;
}

static uint32_t ste_vlan(const struct eth_info *info, unsigned i)
{
    return info->vlan_count <= i                 ? PRM_STE_VLAN_NONE
           : info->vlan_tpid[i] == ETH_TYPE_VLAN ? PRM_STE_VLAN_CVLAN
                                                 : PRM_STE_VLAN_SVLAN;
}

/* The parts of a VLAN tag in a layout. */
#define TAG_VLAN(layout, to, which, h, i)                                                          \
    do {                                                                                           \
        PRM_SET(layout, to, which##_priority, (h)->info->vlan_tci[i] >> 13);                       \
        PRM_SET(layout, to, which##_cfi, (h)->info->vlan_tci[i] >> 12 & 1);                        \
        PRM_SET(layout, to, which##_vlan_id, (h)->info->vlan_tci[i] & 0xfff);                      \
        PRM_SET(layout, to, which##_vlan_qualifier, ste_vlan((h)->info, i));                       \
    } while (0)

static bool ste_tag_l2(const struct ste_walk *walk, const struct ste_headers *h, unsigned mac_at,
                       void *tag)
{
    struct prm_ste_eth_l2 *to = tag;

    if (h->macs) {
        PRM_SET(ste_eth_l2, to, mac_47_16, get32(h->macs + mac_at));
        PRM_SET(ste_eth_l2, to, mac_15_0, get16(h->macs + mac_at + 4));
    }
    PRM_SET(ste_eth_l2, to, l3_ethertype, h->info->ethertype);
    PRM_SET(ste_eth_l2, to, functional_lb, walk->is_own);
    TAG_VLAN(ste_eth_l2, to, first, h, 0);
    TAG_VLAN(ste_eth_l2, to, second, h, 1);
    PRM_SET(ste_eth_l2, to, ip_fragmented, h->info->fragment);
    PRM_SET(ste_eth_l2, to, l3_type, ste_l3(h->info));
    PRM_SET(ste_eth_l2, to, l4_type, ste_l4(h->info));
    return true;
}

static bool ste_tag_l2_dst(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    return ste_tag_l2(walk, h, 0, tag);
}

static bool ste_tag_l2_src(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    return ste_tag_l2(walk, h, 6, tag);
}

static bool ste_tag_l2_src_dst(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    struct prm_ste_eth_l2_src_dst *to = tag;

    if (h->macs) {
        PRM_SET(ste_eth_l2_src_dst, to, dmac_47_16, get32(h->macs));
        PRM_SET(ste_eth_l2_src_dst, to, dmac_15_0, get16(h->macs + 4));
        PRM_SET(ste_eth_l2_src_dst, to, smac_47_32, get16(h->macs + 6));
        PRM_SET(ste_eth_l2_src_dst, to, smac_31_0, get32(h->macs + 8));
    }
    PRM_SET(ste_eth_l2_src_dst, to, functional_lb, walk->is_own);
    PRM_SET(ste_eth_l2_src_dst, to, l3_type, ste_l3(h->info));
    TAG_VLAN(ste_eth_l2_src_dst, to, first, h, 0);
    return true;
}

static bool ste_tag_l2_tnl(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const struct eth_tunnel *tunnel = &walk->tunnel;
    struct prm_ste_eth_l2_tnl *to = tag;
    bool has_key = tunnel->gre_flags & GRE_HAS_KEY;

    if (h->macs) {
        PRM_SET(ste_eth_l2_tnl, to, dmac_47_16, get32(h->macs));
        PRM_SET(ste_eth_l2_tnl, to, dmac_15_0, get16(h->macs + 4));
    }
    PRM_SET(ste_eth_l2_tnl, to, l3_ethertype, h->info->ethertype);
    PRM_SET(ste_eth_l2_tnl, to, l2_tunneling_network_id,
            has_key ? tunnel->gre_key : tunnel->vni << 8);
    PRM_SET(ste_eth_l2_tnl, to, gre_key_flag, has_key);
    PRM_SET(ste_eth_l2_tnl, to, ip_fragmented, h->info->fragment);
    PRM_SET(ste_eth_l2_tnl, to, l3_type, ste_l3(h->info));
    PRM_SET(ste_eth_l2_tnl, to, l4_type, ste_l4(h->info));
    TAG_VLAN(ste_eth_l2_tnl, to, first, h, 0);
    return true;
}

static bool ste_tag_ipv6(const struct ste_headers *h, unsigned at, void *tag)
{
    if (h->info->ip_version != 6) {
        return false;
    }
    memcpy(tag, h->frame + h->info->l3_off + at, STE_TAG_BYTES);
    return true;
}

static bool ste_tag_ipv6_dst(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    return ste_tag_ipv6(h, 24, tag);
}

static bool ste_tag_ipv6_src(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    return ste_tag_ipv6(h, 8, tag);
}

static bool ste_tag_5_tuple(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const uint8_t *ip = h->frame + h->info->l3_off;
    struct prm_ste_ipv4_5_tuple *to = tag;

    if (h->info->ip_version != 4) {
        return false;
    }
    PRM_SET(ste_ipv4_5_tuple, to, source_address, get32(ip + 12));
    PRM_SET(ste_ipv4_5_tuple, to, destination_address, get32(ip + 16));
    PRM_SET(ste_ipv4_5_tuple, to, source_port, h->info->sport);
    PRM_SET(ste_ipv4_5_tuple, to, destination_port, h->info->dport);
    PRM_SET(ste_ipv4_5_tuple, to, fragmented, h->info->fragment);
    PRM_SET(ste_ipv4_5_tuple, to, ecn, h->info->tos & 3);
    PRM_SET(ste_ipv4_5_tuple, to, tcp_flags, h->info->tcp_flags);
    PRM_SET(ste_ipv4_5_tuple, to, dscp, h->info->tos >> 2);
    PRM_SET(ste_ipv4_5_tuple, to, protocol, h->info->proto);
    return true;
}

static bool ste_tag_ipv4_misc(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const uint8_t *ip = h->frame + h->info->l3_off;
    struct prm_ste_ipv4_misc *to = tag;

    if (h->info->ip_version != 4) {
        return false;
    }
    PRM_SET(ste_ipv4_misc, to, version, 4);
    PRM_SET(ste_ipv4_misc, to, ihl, ip[0] & 0xf);
    PRM_SET(ste_ipv4_misc, to, total_length, get16(ip + 2));
    PRM_SET(ste_ipv4_misc, to, fragment, get32(ip + 4));
    PRM_SET(ste_ipv4_misc, to, time_to_live, ip[8]);
    PRM_SET(ste_ipv4_misc, to, checksum, get16(ip + 10));
    return true;
}

static bool ste_tag_l4(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const struct eth_info *info = h->info;
    struct prm_ste_eth_l4 *to = tag;

    if (!info->ip_version) {
        return false;
    }
    PRM_SET(ste_eth_l4, to, fragmented, info->fragment);
    PRM_SET(ste_eth_l4, to, protocol, info->proto);
    PRM_SET(ste_eth_l4, to, dst_port, info->dport);
    PRM_SET(ste_eth_l4, to, src_port, info->sport);
    PRM_SET(ste_eth_l4, to, ipv6_version, info->ip_version);
    PRM_SET(ste_eth_l4, to, ecn, info->tos & 3);
    PRM_SET(ste_eth_l4, to, tcp_flags, info->tcp_flags);
    PRM_SET(ste_eth_l4, to, ipv6_hop_limit, info->ttl);
    PRM_SET(ste_eth_l4, to, dscp, info->tos >> 2);
    PRM_SET(ste_eth_l4, to, flow_label, info->flow_label);
    if (info->ip_version == 6) {
        PRM_SET(ste_eth_l4, to, ipv6_payload_length, get16(h->frame + info->l3_off + 4));
    }
    if (info->l4 == ETH_L4_TCP) {
        PRM_SET(ste_eth_l4, to, tcp_data_offset, h->frame[info->l4_off + 12] >> 4);
    }
    return true;
}

static bool ste_tag_l4_misc(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const uint8_t *l4 = h->frame + h->info->l4_off;
    struct prm_ste_eth_l4_misc *to = tag;

    if (h->info->l4 == ETH_L4_UDP) {
        PRM_SET(ste_eth_l4_misc, to, checksum, get16(l4 + 6));
        PRM_SET(ste_eth_l4_misc, to, length, get16(l4 + 4));
    } else if (h->info->l4 == ETH_L4_TCP) {
        PRM_SET(ste_eth_l4_misc, to, checksum, get16(l4 + 16));
        PRM_SET(ste_eth_l4_misc, to, seq_num, get32(l4 + 4));
        PRM_SET(ste_eth_l4_misc, to, ack_num, get32(l4 + 8));
        PRM_SET(ste_eth_l4_misc, to, urgent_pointer, get16(l4 + 18));
        PRM_SET(ste_eth_l4_misc, to, window_size, get16(l4 + 14));
    }
    return h->info->l4 != ETH_L4_NONE;
}

static bool ste_tag_mpls(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    if (!walk->has_tunnel || walk->tunnel.kind != ETH_TUNNEL_MPLS ||
        walk->tunnel.over != ETH_MPLS_OVER_ETH) {
        return false;
    }
    PRM_SET(ste_mpls, (struct prm_ste_mpls *)tag, mpls0, walk->tunnel.mpls);
    PRM_SET(ste_mpls, (struct prm_ste_mpls *)tag, mpls0_qualifier, 1);
    return true;
}

static bool ste_tag_gre(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    const struct eth_tunnel *tunnel = &walk->tunnel;

    if (!walk->has_tunnel || tunnel->kind != ETH_TUNNEL_GRE) {
        return false;
    }
    put32(tag, get32(walk->frame + tunnel->off));
    put32((uint8_t *)tag + 8, tunnel->gre_key);
    put32((uint8_t *)tag + 12, tunnel->gre_seq);
    return true;
}

/* The first eight bytes of the tunnel's header, which VXLAN and GENEVE have. */
static bool ste_tag_tunnel(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    enum eth_tunnel_kind kind = walk->has_tunnel ? walk->tunnel.kind : ETH_TUNNEL_NONE;

    if (kind != ETH_TUNNEL_VXLAN && kind != ETH_TUNNEL_VXLAN_GPE && kind != ETH_TUNNEL_GENEVE) {
        return false;
    }
    memcpy(tag, walk->frame + walk->tunnel.off, 8);
    return true;
}

static bool ste_tag_reg_a(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    put32(tag, walk->regs->a);
    return true;
}

static bool ste_tag_regs_0(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    for (unsigned i = 0; i < 4; i++) {
        put32((uint8_t *)tag + 4 * i, walk->regs->c[i]);
    }
    return true;
}

static bool ste_tag_regs_1(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    for (unsigned i = 0; i < 4; i++) {
        put32((uint8_t *)tag + 4 * i, walk->regs->c[4 + i]);
    }
    return true;
}

static bool ste_tag_source(const struct ste_walk *walk, const struct ste_headers *h, void *tag)
{
    PRM_SET(ste_src_gvmi_qp, (struct prm_ste_src_gvmi_qp *)tag, functional_lb, walk->is_own);
    PRM_SET(ste_src_gvmi_qp, (struct prm_ste_src_gvmi_qp *)tag, source_qp, walk->sqn);
    return true;
}

enum ste_of {
    STE_OF_NONE, /* no such lookup type */
    STE_OF_OUTER,
    STE_OF_INNER,
    STE_OF_TUNNEL, /* the tunnel's header, or no header at all */
};

/* After a tunnel is removed, its frame is the frame. So the types D, which are those of the
 * innermost headers that are left, are those of the frame, like the types O. */
#define LOOKUP(type) PRM_STE_LOOKUP_##type
#define OUTER_INNER(name, builder)                                                                 \
    [LOOKUP(name##_O)] = {STE_OF_OUTER, builder}, [LOOKUP(name##_D)] = {STE_OF_OUTER, builder},    \
    [LOOKUP(name##_I)] = {STE_OF_INNER, builder}

static const struct {
    uint8_t of; /* enum ste_of */
    bool (*fill)(const struct ste_walk *walk, const struct ste_headers *h, void *tag);
} ste_lookups[] = {
    OUTER_INNER(ETHL2_DST, ste_tag_l2_dst),
    OUTER_INNER(ETHL2_SRC, ste_tag_l2_src),
    OUTER_INNER(ETHL2_SRC_DST, ste_tag_l2_src_dst),
    OUTER_INNER(ETHL3_IPV6_DST, ste_tag_ipv6_dst),
    OUTER_INNER(ETHL3_IPV6_SRC, ste_tag_ipv6_src),
    OUTER_INNER(ETHL3_IPV4_5_TUPLE, ste_tag_5_tuple),
    OUTER_INNER(ETHL3_IPV4_MISC, ste_tag_ipv4_misc),
    OUTER_INNER(ETHL4, ste_tag_l4),
    OUTER_INNER(ETHL4_MISC, ste_tag_l4_misc),
    [LOOKUP(ETHL2_TUNNELING_I)] = {STE_OF_INNER, ste_tag_l2_tnl},
    [LOOKUP(MPLS_FIRST_O)] = {STE_OF_TUNNEL, ste_tag_mpls},
    [LOOKUP(MPLS_FIRST_D)] = {STE_OF_TUNNEL, ste_tag_mpls},
    [LOOKUP(GRE)] = {STE_OF_TUNNEL, ste_tag_gre},
    [LOOKUP(FLEX_PARSER_TNL_HEADER)] = {STE_OF_TUNNEL, ste_tag_tunnel},
    [LOOKUP(TUNNEL_HEADER)] = {STE_OF_TUNNEL, ste_tag_tunnel},
    [LOOKUP(GENERAL_PURPOSE)] = {STE_OF_TUNNEL, ste_tag_reg_a},
    [LOOKUP(STEERING_REGISTERS_0)] = {STE_OF_TUNNEL, ste_tag_regs_0},
    [LOOKUP(STEERING_REGISTERS_1)] = {STE_OF_TUNNEL, ste_tag_regs_1},
    [LOOKUP(SRC_GVMI_AND_QP)] = {STE_OF_TUNNEL, ste_tag_source},
};

bool ste_tag(struct ste_walk *walk, uint8_t lookup, uint8_t tag[STE_TAG_BYTES])
{
    unsigned of = lookup < G_N_ELEMENTS(ste_lookups) ? ste_lookups[lookup].of : STE_OF_NONE;
    struct ste_headers h = {0};

    memset(tag, 0, STE_TAG_BYTES);
    if (of == STE_OF_NONE) {
        return false;
    }
    ste_parse(walk);
    h.frame = walk->frame;
    h.info = &walk->info;
    h.macs = walk->len >= 12 ? walk->frame : NULL;
    if (of == STE_OF_INNER) {
        if (!walk->has_tunnel) {
            return false;
        }
        h.info = &walk->tunnel.inner;
        h.macs = walk->tunnel.inner_eth && walk->tunnel.inner_off + 12 <= walk->len
                     ? walk->frame + walk->tunnel.inner_off
                     : NULL;
    }
    return ste_lookups[lookup].fill(walk, &h, tag);
}
