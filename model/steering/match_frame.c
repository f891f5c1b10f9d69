/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fills in what entries can match of a frame, in the layout of fte_match_param: a section at a
 * time, when a group first asks for it. model/steering/match_fields.def lists the fields.
 *
 * A field of a header that the frame does not have is 0.
 */
#include <string.h>
#include "model/steering/walk.h"
#include "wire/encap/roce.h"

#define ETH_HEADER  14
#define ICMP_HEADER 8
#define ESP_SPI     4
#define BTH_PART    8 /* the BTH up to the destination QP */

/* The headers to which info belongs. eth: the Ethernet header, or NULL if there is none. */
static void match_frame_l2_l4(struct prm_fte_match_set_lyr_2_4 *set, const uint8_t *frame,
                              const struct eth_info *info, const uint8_t *eth)
{
    if (eth) {
        PRM_SET(fte_match_set_lyr_2_4, set, dmac_47_16, prm_load32(eth));
        PRM_SET(fte_match_set_lyr_2_4, set, dmac_15_0, prm_load16(eth + 4));
        PRM_SET(fte_match_set_lyr_2_4, set, smac_47_16, prm_load32(eth + 6));
        PRM_SET(fte_match_set_lyr_2_4, set, smac_15_0, prm_load16(eth + 10));
    }
    PRM_SET(fte_match_set_lyr_2_4, set, ethertype, info->ethertype);
    if (info->vlan_count) {
        PRM_SET(fte_match_set_lyr_2_4, set, first_prio, info->vlan_tci[0] >> 13);
        PRM_SET(fte_match_set_lyr_2_4, set, first_cfi, info->vlan_tci[0] >> 12 & 1);
        PRM_SET(fte_match_set_lyr_2_4, set, first_vid, info->vlan_tci[0] & 0xfff);
        PRM_SET(fte_match_set_lyr_2_4, set, cvlan_tag, info->vlan_tpid[0] == ETH_TYPE_VLAN);
        PRM_SET(fte_match_set_lyr_2_4, set, svlan_tag, info->vlan_tpid[0] == ETH_TYPE_QINQ);
    }
    if (!info->ip_version) {
        return;
    }
    PRM_SET(fte_match_set_lyr_2_4, set, ip_version, info->ip_version);
    PRM_SET(fte_match_set_lyr_2_4, set, ip_protocol, info->proto);
    PRM_SET(fte_match_set_lyr_2_4, set, ip_dscp, info->tos >> 2);
    PRM_SET(fte_match_set_lyr_2_4, set, ip_ecn, info->tos & 3);
    PRM_SET(fte_match_set_lyr_2_4, set, frag, info->fragment);
    PRM_SET(fte_match_set_lyr_2_4, set, ttl_hoplimit, info->ttl);
    if (info->ip_version == 4) {
        PRM_SET(fte_match_set_lyr_2_4, set, ipv4_ihl, frame[info->l3_off] & 0xf);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, src_ipv4_src_ipv6) + 12,
               frame + info->l3_off + 12, 4);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, dst_ipv4_dst_ipv6) + 12,
               frame + info->l3_off + 16, 4);
    } else {
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, src_ipv4_src_ipv6), frame + info->l3_off + 8,
               16);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, dst_ipv4_dst_ipv6), frame + info->l3_off + 24,
               16);
    }
    if (info->l4 == ETH_L4_TCP) {
        PRM_SET(fte_match_set_lyr_2_4, set, tcp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, set, tcp_dport, info->dport);
        PRM_SET(fte_match_set_lyr_2_4, set, tcp_flags, info->tcp_flags);
    } else if (info->l4 == ETH_L4_UDP) {
        PRM_SET(fte_match_set_lyr_2_4, set, udp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, set, udp_dport, info->dport);
    }
}

/* The bytes behind an IP header with that protocol number, if there are len of them. NULL: there
 * are not, or the packet is a fragment. */
static const uint8_t *match_frame_proto(const uint8_t *frame, const struct eth_info *info,
                                        uint8_t proto, size_t len)
{
    return info->ip_version && info->proto == proto && !info->fragment &&
                   info->ip_end >= info->l4_off + len
               ? frame + info->l4_off
               : NULL;
}

/* The BTH of a RoCEv2 packet. NULL: the frame is none. */
static const uint8_t *match_frame_bth(const struct walk *walk)
{
    const struct eth_info *info = walk->info;

    return info->l4 == ETH_L4_UDP && info->dport == ROCE_UDP_DPORT &&
                   info->ip_end >= info->payload_off + BTH_PART
               ? walk->frame + info->payload_off
               : NULL;
}

static void match_frame_second_vlans(const struct walk *walk, struct prm_fte_match_set_misc *misc)
{
    const struct eth_info *outer = walk->info, *inner = &walk->tunnel.inner;

    if (outer->vlan_count > 1) {
        PRM_SET(fte_match_set_misc, misc, outer_second_prio, outer->vlan_tci[1] >> 13);
        PRM_SET(fte_match_set_misc, misc, outer_second_cfi, outer->vlan_tci[1] >> 12 & 1);
        PRM_SET(fte_match_set_misc, misc, outer_second_vid, outer->vlan_tci[1] & 0xfff);
        PRM_SET(fte_match_set_misc, misc, outer_second_cvlan_tag,
                outer->vlan_tpid[1] == ETH_TYPE_VLAN);
        PRM_SET(fte_match_set_misc, misc, outer_second_svlan_tag,
                outer->vlan_tpid[1] == ETH_TYPE_QINQ);
    }
    if (inner->vlan_count > 1) {
        PRM_SET(fte_match_set_misc, misc, inner_second_prio, inner->vlan_tci[1] >> 13);
        PRM_SET(fte_match_set_misc, misc, inner_second_cfi, inner->vlan_tci[1] >> 12 & 1);
        PRM_SET(fte_match_set_misc, misc, inner_second_vid, inner->vlan_tci[1] & 0xfff);
        PRM_SET(fte_match_set_misc, misc, inner_second_cvlan_tag,
                inner->vlan_tpid[1] == ETH_TYPE_VLAN);
        PRM_SET(fte_match_set_misc, misc, inner_second_svlan_tag,
                inner->vlan_tpid[1] == ETH_TYPE_QINQ);
    }
}

static void match_frame_tunnel(const struct walk *walk, struct prm_fte_match_set_misc *misc)
{
    const struct eth_tunnel *tunnel = &walk->tunnel;

    if (tunnel->kind == ETH_TUNNEL_GRE ||
        (tunnel->kind == ETH_TUNNEL_MPLS && tunnel->over == ETH_MPLS_OVER_GRE)) {
        PRM_SET(fte_match_set_misc, misc, gre_protocol,
                prm_load16(walk->frame + walk->info->l4_off + 2));
        PRM_SET(fte_match_set_misc, misc, gre_c_present, !!(tunnel->gre_flags & GRE_HAS_CSUM));
        PRM_SET(fte_match_set_misc, misc, gre_k_present, !!(tunnel->gre_flags & GRE_HAS_KEY));
        PRM_SET(fte_match_set_misc, misc, gre_s_present, !!(tunnel->gre_flags & GRE_HAS_SEQ));
        PRM_SET(fte_match_set_misc, misc, gre_key, tunnel->gre_key);
    } else if (tunnel->kind == ETH_TUNNEL_VXLAN) {
        PRM_SET(fte_match_set_misc, misc, vxlan_vni, tunnel->vni);
    } else if (tunnel->kind == ETH_TUNNEL_GENEVE) {
        PRM_SET(fte_match_set_misc, misc, geneve_vni, tunnel->vni);
        PRM_SET(fte_match_set_misc, misc, geneve_oam, tunnel->oam);
        PRM_SET(fte_match_set_misc, misc, geneve_protocol_type, tunnel->protocol);
        PRM_SET(fte_match_set_misc, misc, geneve_opt_len, tunnel->opt_len / 4);
    }
}

static void match_frame_misc(struct walk *walk, void *words)
{
    struct prm_fte_match_set_misc *misc = words;
    const struct eth_info *inner = &walk->tunnel.inner;
    const uint8_t *spi = match_frame_proto(walk->frame, walk->info, IP_PROTO_ESP, ESP_SPI);
    const uint8_t *inner_spi = match_frame_proto(walk->frame, inner, IP_PROTO_ESP, ESP_SPI);
    const uint8_t *bth = match_frame_bth(walk);

    PRM_SET(fte_match_set_misc, misc, source_sqn, walk->sqn);
    match_frame_second_vlans(walk, misc);
    match_frame_tunnel(walk, misc);
    PRM_SET(fte_match_set_misc, misc, outer_ipv6_flow_label, walk->info->flow_label);
    PRM_SET(fte_match_set_misc, misc, inner_ipv6_flow_label, inner->flow_label);
    PRM_SET(fte_match_set_misc, misc, outer_esp_spi, spi ? prm_load32(spi) : 0);
    PRM_SET(fte_match_set_misc, misc, inner_esp_spi, inner_spi ? prm_load32(inner_spi) : 0);
    if (bth) {
        PRM_SET(fte_match_set_misc, misc, bth_opcode, bth[0]);
        PRM_SET(fte_match_set_misc, misc, bth_dst_qp, prm_load32(bth + 4) & 0xffffff);
    }
}

static void match_frame_inner(struct walk *walk, void *words)
{
    const struct eth_tunnel *tunnel = &walk->tunnel;

    if (tunnel->kind != ETH_TUNNEL_NONE) {
        bool has_eth = tunnel->inner_eth && tunnel->inner_off + ETH_HEADER <= walk->len;

        match_frame_l2_l4(words, walk->frame, &tunnel->inner,
                          has_eth ? walk->frame + tunnel->inner_off : NULL);
    }
}

/* The first entry of a stack of MPLS labels behind the inner Ethernet header. */
static uint32_t match_frame_inner_mpls(const struct walk *walk)
{
    const struct eth_info *inner = &walk->tunnel.inner;

    return inner->ethertype == ETH_TYPE_MPLS && walk->len >= inner->l3_off + 4u
               ? (uint32_t)prm_load32(walk->frame + inner->l3_off)
               : 0;
}

static void match_frame_misc2(struct walk *walk, void *words)
{
    static const size_t places[] = {
        [ETH_MPLS_OVER_ETH] = PRM_OFFSET(fte_match_set_misc2, outer_first_mpls),
        [ETH_MPLS_OVER_IP] = PRM_OFFSET(fte_match_set_misc2, outer_first_mpls),
        [ETH_MPLS_OVER_UDP] = PRM_OFFSET(fte_match_set_misc2, outer_first_mpls_over_udp),
        [ETH_MPLS_OVER_GRE] = PRM_OFFSET(fte_match_set_misc2, outer_first_mpls_over_gre),
    };
    struct prm_fte_match_set_misc2 *misc = words;

    if (walk->tunnel.kind == ETH_TUNNEL_MPLS) {
        prm_store32(misc->bytes + places[walk->tunnel.over], walk->tunnel.mpls);
    }
    prm_store32(PRM_PTR(fte_match_set_misc2, misc, inner_first_mpls)->bytes,
                match_frame_inner_mpls(walk));
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_a, walk->regs.a);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_0, walk->regs.c[0]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_1, walk->regs.c[1]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_2, walk->regs.c[2]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_3, walk->regs.c[3]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_4, walk->regs.c[4]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_5, walk->regs.c[5]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_6, walk->regs.c[6]);
    PRM_SET(fte_match_set_misc2, misc, metadata_reg_c_7, walk->regs.c[7]);
}

static void match_frame_misc3(struct walk *walk, void *words)
{
    struct prm_fte_match_set_misc3 *misc = words;
    const struct eth_info *info = walk->info, *inner = &walk->tunnel.inner;
    const uint8_t *icmp = match_frame_proto(walk->frame, info, IP_PROTO_ICMP, ICMP_HEADER);
    const uint8_t *icmpv6 = match_frame_proto(walk->frame, info, IP_PROTO_ICMPV6, ICMP_HEADER);

    if (info->l4 == ETH_L4_TCP) {
        PRM_SET(fte_match_set_misc3, misc, outer_tcp_seq_num,
                prm_load32(walk->frame + info->l4_off + 4));
        PRM_SET(fte_match_set_misc3, misc, outer_tcp_ack_num,
                prm_load32(walk->frame + info->l4_off + 8));
    }
    if (inner->l4 == ETH_L4_TCP) {
        PRM_SET(fte_match_set_misc3, misc, inner_tcp_seq_num,
                prm_load32(walk->frame + inner->l4_off + 4));
        PRM_SET(fte_match_set_misc3, misc, inner_tcp_ack_num,
                prm_load32(walk->frame + inner->l4_off + 8));
    }
    if (walk->tunnel.kind == ETH_TUNNEL_VXLAN_GPE) {
        PRM_SET(fte_match_set_misc3, misc, outer_vxlan_gpe_vni, walk->tunnel.vni);
        PRM_SET(fte_match_set_misc3, misc, outer_vxlan_gpe_next_protocol, walk->tunnel.next);
        PRM_SET(fte_match_set_misc3, misc, outer_vxlan_gpe_flags, walk->tunnel.flags);
    }
    if (icmp) {
        PRM_SET(fte_match_set_misc3, misc, icmp_type, icmp[0]);
        PRM_SET(fte_match_set_misc3, misc, icmp_code, icmp[1]);
        PRM_SET(fte_match_set_misc3, misc, icmp_header_data, prm_load32(icmp + 4));
    }
    if (icmpv6) {
        PRM_SET(fte_match_set_misc3, misc, icmpv6_type, icmpv6[0]);
        PRM_SET(fte_match_set_misc3, misc, icmpv6_code, icmpv6[1]);
        PRM_SET(fte_match_set_misc3, misc, icmpv6_header_data, prm_load32(icmpv6 + 4));
    }
}

/* The first two words of a VXLAN, VXLAN-GPE or GENEVE header. */
static void match_frame_misc5(struct walk *walk, void *words)
{
    const struct eth_tunnel *tunnel = &walk->tunnel;

    if (tunnel->kind == ETH_TUNNEL_VXLAN || tunnel->kind == ETH_TUNNEL_VXLAN_GPE ||
        tunnel->kind == ETH_TUNNEL_GENEVE) {
        memcpy(words + PRM_OFFSET(fte_match_set_misc5, tunnel_header_0), walk->frame + tunnel->off,
               8);
    }
}

static void match_frame_outer(struct walk *walk, void *words)
{
    match_frame_l2_l4(words, walk->frame, walk->info, walk->frame);
}

static void (*const fillers[MATCH_SECTIONS])(struct walk *walk, void *words) = {
    [PRM_MATCH_CRITERIA_OUTER_HEADERS] = match_frame_outer,
    [PRM_MATCH_CRITERIA_MISC_PARAMETERS] = match_frame_misc,
    [PRM_MATCH_CRITERIA_INNER_HEADERS] = match_frame_inner,
    [PRM_MATCH_CRITERIA_MISC_PARAMETERS_2] = match_frame_misc2,
    [PRM_MATCH_CRITERIA_MISC_PARAMETERS_3] = match_frame_misc3,
    [PRM_MATCH_CRITERIA_MISC_PARAMETERS_5] = match_frame_misc5,
};

const struct eth_tunnel *steering_tunnel(struct walk *walk)
{
    if (!walk->knows_tunnel) {
        walk->knows_tunnel = true;
        if (!eth_tunnel_possible(walk->info) ||
            !eth_tunnel_parse(walk->frame, walk->info, &walk->hca->vxlan, &walk->tunnel)) {
            memset(&walk->tunnel, 0, sizeof(walk->tunnel));
        }
    }
    return &walk->tunnel;
}

void steering_fill_key(struct walk *walk, uint8_t sections)
{
    if (sections & ~(1u << PRM_MATCH_CRITERIA_OUTER_HEADERS)) {
        steering_tunnel(walk);
    }
    for (unsigned i = 0; i < MATCH_SECTIONS; i++) {
        uint32_t *words = walk->key + i * MATCH_SECTION_WORDS;

        if (sections & 1u << i && fillers[i]) {
            memset(words, 0, MATCH_SECTION_WORDS * sizeof(words[0]));
            fillers[i](walk, words);
        }
    }
    walk->filled |= sections;
}
