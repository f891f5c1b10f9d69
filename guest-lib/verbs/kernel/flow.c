/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows in verbs' terms: which received packets a raw packet QP gets, which sent packets leave, and
 * what is changed in them (ibv_create_flow()). */
#include <netinet/in.h>
#include <string.h>
#include "guest-lib/verbs/kernel/flow.h"

static bool flow_is_zero(const void *data, size_t len)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < len; i++) {
        if (at[i]) {
            return false;
        }
    }
    return true;
}

/* What is read so far. mask, value: of the headers that the specification is about, outer or inner
 * ones. */
struct flow_parse {
    struct hv_flow_rule *rule;
    struct prm_fte_match_set_lyr_2_4 *mask, *value;
    bool inner;
    uint32_t before; /* type of the specification before this one */
};

/* Sets a field of a part of the match parameters in mask and value. */
#define MATCH_IN(layout, to_mask, to_value, field, m, v)                                           \
    do {                                                                                           \
        PRM_SET(layout, to_mask, field, m);                                                        \
        PRM_SET(layout, to_value, field, (v) & (m));                                               \
    } while (0)
#define MATCH(p, field, m, v) MATCH_IN(fte_match_set_lyr_2_4, (p)->mask, (p)->value, field, m, v)
#define MISC(p, field, m, v)                                                                       \
    MATCH_IN(fte_match_set_misc, PRM_PTR(fte_match_param, (p)->rule->mask, misc_parameters),       \
             PRM_PTR(fte_match_param, (p)->rule->value, misc_parameters), field, m, v)

static uint32_t flow_mac_high(const uint8_t *mac)
{
    return (uint32_t)prm_load32(mac);
}

static uint32_t flow_mac_low(const uint8_t *mac)
{
    return (uint32_t)prm_load16(mac + 4);
}

static int flow_add_eth(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_eth *eth = spec;
    uint16_t vlan_mask = GUINT16_FROM_BE(eth->mask.vlan_tag);
    uint16_t vlan = GUINT16_FROM_BE(eth->val.vlan_tag);

    MATCH(p, dmac_47_16, flow_mac_high(eth->mask.dst_mac), flow_mac_high(eth->val.dst_mac));
    MATCH(p, dmac_15_0, flow_mac_low(eth->mask.dst_mac), flow_mac_low(eth->val.dst_mac));
    MATCH(p, smac_47_16, flow_mac_high(eth->mask.src_mac), flow_mac_high(eth->val.src_mac));
    MATCH(p, smac_15_0, flow_mac_low(eth->mask.src_mac), flow_mac_low(eth->val.src_mac));
    MATCH(p, ethertype, GUINT16_FROM_BE(eth->mask.ether_type),
          GUINT16_FROM_BE(eth->val.ether_type));
    if (vlan_mask) {
        MATCH(p, cvlan_tag, 1, 1);
        MATCH(p, first_vid, vlan_mask & 0xfff, vlan);
        MATCH(p, first_cfi, vlan_mask >> 12 & 1, vlan >> 12);
        MATCH(p, first_prio, vlan_mask >> 13, vlan >> 13);
    }
    return 0;
}

/* Adds a protocol, which another specification may have set already: 0, or EINVAL if it differs. */
static int flow_add_proto(struct flow_parse *p, uint8_t mask, uint8_t value)
{
    uint8_t old_mask = (uint8_t)PRM_GET(fte_match_set_lyr_2_4, p->mask, ip_protocol);
    uint8_t old = (uint8_t)PRM_GET(fte_match_set_lyr_2_4, p->value, ip_protocol);

    if (!mask) {
        return 0;
    }
    if (old_mask && (old_mask != mask || old != (value & mask))) {
        return EINVAL;
    }
    MATCH(p, ip_protocol, mask, value);
    return 0;
}

static void flow_add_address(struct flow_parse *p, size_t offset, const void *mask,
                             const void *value, size_t len)
{
    uint8_t *m = p->mask->bytes + offset + 16 - len;
    uint8_t *v = p->value->bytes + offset + 16 - len;

    memcpy(m, mask, len);
    for (size_t i = 0; i < len; i++) {
        v[i] = ((const uint8_t *)value)[i] & m[i];
    }
}

#define SRC_IP PRM_OFFSET(fte_match_set_lyr_2_4, src_ipv4_src_ipv6)
#define DST_IP PRM_OFFSET(fte_match_set_lyr_2_4, dst_ipv4_dst_ipv6)

static int flow_add_ipv4(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_ipv4 *ip = spec;

    MATCH(p, ip_version, 0xf, 4);
    flow_add_address(p, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    flow_add_address(p, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    return 0;
}

static int flow_add_ipv4_ext(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_ipv4_ext *ip = spec;

    if (ip->mask.ttl || ip->mask.flags) {
        return EOPNOTSUPP;
    }
    MATCH(p, ip_version, 0xf, 4);
    flow_add_address(p, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    flow_add_address(p, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    MATCH(p, ip_dscp, ip->mask.tos >> 2, ip->val.tos >> 2);
    MATCH(p, ip_ecn, ip->mask.tos & 3, ip->val.tos);
    return flow_add_proto(p, ip->mask.proto, ip->val.proto);
}

static int flow_add_ipv6(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_ipv6 *ip = spec;

    uint32_t label_mask = GUINT32_FROM_BE(ip->mask.flow_label);
    uint32_t label = GUINT32_FROM_BE(ip->val.flow_label);

    if (ip->mask.hop_limit) {
        return EOPNOTSUPP;
    }
    if ((label_mask | label) >= 1u << 20) {
        return EINVAL;
    }
    if (p->inner) {
        MISC(p, inner_ipv6_flow_label, label_mask, label);
    } else {
        MISC(p, outer_ipv6_flow_label, label_mask, label);
    }
    MATCH(p, ip_version, 0xf, 6);
    flow_add_address(p, SRC_IP, ip->mask.src_ip, ip->val.src_ip, 16);
    flow_add_address(p, DST_IP, ip->mask.dst_ip, ip->val.dst_ip, 16);
    MATCH(p, ip_dscp, ip->mask.traffic_class >> 2, ip->val.traffic_class >> 2);
    MATCH(p, ip_ecn, ip->mask.traffic_class & 3, ip->val.traffic_class);
    return flow_add_proto(p, ip->mask.next_hdr, ip->val.next_hdr);
}

static int flow_add_tcp(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *tcp = spec;

    MATCH(p, tcp_sport, GUINT16_FROM_BE(tcp->mask.src_port), GUINT16_FROM_BE(tcp->val.src_port));
    MATCH(p, tcp_dport, GUINT16_FROM_BE(tcp->mask.dst_port), GUINT16_FROM_BE(tcp->val.dst_port));
    return flow_add_proto(p, 0xff, IPPROTO_TCP);
}

static int flow_add_udp(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *udp = spec;

    MATCH(p, udp_sport, GUINT16_FROM_BE(udp->mask.src_port), GUINT16_FROM_BE(udp->val.src_port));
    MATCH(p, udp_dport, GUINT16_FROM_BE(udp->mask.dst_port), GUINT16_FROM_BE(udp->val.dst_port));
    return flow_add_proto(p, 0xff, IPPROTO_UDP);
}

static int flow_add_vxlan(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_tunnel *tunnel = spec;
    uint32_t mask = GUINT32_FROM_BE(tunnel->mask.tunnel_id);
    uint32_t vni = GUINT32_FROM_BE(tunnel->val.tunnel_id);

    if ((mask | vni) >= 1u << 24) {
        return EINVAL;
    }
    MISC(p, vxlan_vni, mask, vni);
    return 0;
}

static int flow_add_gre(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_gre *gre = spec;

    if (gre->mask.c_ks_res0_ver) {
        return EOPNOTSUPP;
    }
    MISC(p, gre_protocol, GUINT16_FROM_BE(gre->mask.protocol), GUINT16_FROM_BE(gre->val.protocol));
    MISC(p, gre_key, GUINT32_FROM_BE(gre->mask.key), GUINT32_FROM_BE(gre->val.key));
    return flow_add_proto(p, 0xff, IPPROTO_GRE);
}

/* The label belongs to the header before it. */
static int flow_add_mpls(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_mpls *mpls = spec;
    size_t at = p->before == IBV_FLOW_SPEC_UDP
                    ? PRM_OFFSET(fte_match_set_misc2, outer_first_mpls_over_udp)
                : p->before == IBV_FLOW_SPEC_GRE
                    ? PRM_OFFSET(fte_match_set_misc2, outer_first_mpls_over_gre)
                : p->inner ? PRM_OFFSET(fte_match_set_misc2, inner_first_mpls)
                           : PRM_OFFSET(fte_match_set_misc2, outer_first_mpls);
    uint32_t mask = GUINT32_FROM_BE(mpls->mask.label);

    at += PRM_OFFSET(fte_match_param, misc_parameters_2);
    prm_store32(p->rule->mask->bytes + at, mask);
    prm_store32(p->rule->value->bytes + at, GUINT32_FROM_BE(mpls->val.label) & mask);
    return 0;
}

static int flow_add_handle(struct flow_parse *p, const void *spec)
{
    struct ibv_flow_spec_action_handle handle;

    memcpy(&handle, spec, sizeof(handle)); /* specifications follow one another unaligned */
    return hv_flow_take_action(p->rule, (struct ibv_flow_action *)(uintptr_t)handle.action);
}

static int flow_add_count(struct flow_parse *p, const void *spec)
{
    struct ibv_flow_spec_counter_action count;

    memcpy(&count, spec, sizeof(count));
    return hv_counters_take(p->rule, count.counters);
}

static int flow_add_tag(struct flow_parse *p, const void *spec)
{
    const struct ibv_flow_spec_action_tag *tag = spec;

    p->rule->tag = tag->tag_id;
    return tag->tag_id < HV_FLOW_TAG_LIMIT ? 0 : EINVAL;
}

static int flow_add_drop(struct flow_parse *p, const void *spec)
{
    (void)spec;
    p->rule->action |= PRM_FLOW_ACTION_DROP;
    return 0;
}

static const struct {
    uint32_t type; /* those of headers may have IBV_FLOW_SPEC_INNER */
    size_t size;
    int (*add)(struct flow_parse *p, const void *spec);
} kinds[] = {
    {IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth), flow_add_eth},
    {IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4), flow_add_ipv4},
    {IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext), flow_add_ipv4_ext},
    {IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6), flow_add_ipv6},
    {IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp), flow_add_tcp},
    {IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp), flow_add_udp},
    {IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(struct ibv_flow_spec_tunnel), flow_add_vxlan},
    {IBV_FLOW_SPEC_GRE, sizeof(struct ibv_flow_spec_gre), flow_add_gre},
    {IBV_FLOW_SPEC_MPLS, sizeof(struct ibv_flow_spec_mpls), flow_add_mpls},
    {IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), flow_add_tag},
    {IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop), flow_add_drop},
    {IBV_FLOW_SPEC_ACTION_HANDLE, sizeof(struct ibv_flow_spec_action_handle), flow_add_handle},
    {IBV_FLOW_SPEC_ACTION_COUNT, sizeof(struct ibv_flow_spec_counter_action), flow_add_count},
};

/* The beginning of every specification. Specifications follow each other at multiples of 4. */
struct spec_header {
    uint32_t type;
    uint16_t size;
};

static int flow_add_spec(struct flow_parse *p, const struct spec_header *spec)
{
    uint32_t inner = IBV_FLOW_SPEC_INNER, type = spec->type & ~inner;

    p->inner = spec->type & inner;
    p->mask = p->inner ? PRM_PTR(fte_match_param, p->rule->mask, inner_headers)
                       : PRM_PTR(fte_match_param, p->rule->mask, outer_headers);
    p->value = p->inner ? PRM_PTR(fte_match_param, p->rule->value, inner_headers)
                        : PRM_PTR(fte_match_param, p->rule->value, outer_headers);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (kinds[i].type == type) {
            return spec->size == kinds[i].size ? kinds[i].add(p, spec) : EINVAL;
        }
    }
    return EOPNOTSUPP;
}

/* Whether ethertype and IP version of the headers go together (is_valid_ethertype()). */
static bool flow_ethertype_fits(const struct prm_fte_match_set_lyr_2_4 *mask,
                                const struct prm_fte_match_set_lyr_2_4 *value)
{
    uint32_t type = PRM_GET(fte_match_set_lyr_2_4, value, ethertype);
    uint32_t version = PRM_GET(fte_match_set_lyr_2_4, value, ip_version);

    if (!PRM_GET(fte_match_set_lyr_2_4, mask, ethertype) ||
        !PRM_GET(fte_match_set_lyr_2_4, mask, ip_version)) {
        return true;
    }
    return PRM_GET(fte_match_set_lyr_2_4, mask, ethertype) == 0xffff &&
           (type == (version == 4 ? 0x0800 : 0x86dd) || type == 0x8847 || type == 0x8848);
}

/* The parts of the match parameters that the mask uses (get_match_criteria_enable()). */
static uint8_t flow_criteria(const struct prm_fte_match_param *mask)
{
#define PART(name, member)                                                                         \
    (flow_is_zero(PRM_PTR(fte_match_param, mask, member)->bytes,                                   \
                  sizeof(PRM_PTR(fte_match_param, mask, member)->bytes))                           \
         ? 0                                                                                       \
         : 1u << PRM_MATCH_CRITERIA_##name)
    return (uint8_t)(PART(OUTER_HEADERS, outer_headers) | PART(INNER_HEADERS, inner_headers) |
                     PART(MISC_PARAMETERS, misc_parameters) |
                     PART(MISC_PARAMETERS_2, misc_parameters_2));
#undef PART
}

static int flow_check_attr(const struct ibv_flow_attr *attr)
{
    const uint32_t egress = IBV_FLOW_ATTR_FLAGS_EGRESS;
    bool normal = attr->type == IBV_FLOW_ATTR_NORMAL;

    if (attr->comp_mask || (attr->flags & ~(IBV_FLOW_ATTR_FLAGS_DONT_TRAP | egress))) {
        return EINVAL;
    }
    if (attr->type > IBV_FLOW_ATTR_SNIFFER || attr->port != 1 ||
        attr->priority >= HV_FLOW_PRIORITIES ||
        (!normal && (attr->num_of_specs || attr->flags & egress))) {
        return EINVAL;
    }
    return 0;
}

static int flow_read_rule(struct hv_flow_rule *rule, const struct ibv_flow_attr *attr)
{
    const uint8_t *at = (const uint8_t *)(attr + 1);
    bool egress = attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS;
    struct flow_parse p = {.rule = rule};
    int err = flow_check_attr(attr);

    rule->table = egress ? PRM_FLOW_TABLE_TYPE_NIC_TX : PRM_FLOW_TABLE_TYPE_NIC_RX;
    rule->sniffs = attr->type == IBV_FLOW_ATTR_SNIFFER;
    rule->passes_on =
        attr->type == IBV_FLOW_ATTR_NORMAL && attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT) { /* matches a group address: IEEE 802 */
        MATCH_IN(fte_match_set_lyr_2_4, PRM_PTR(fte_match_param, rule->mask, outer_headers),
                 PRM_PTR(fte_match_param, rule->value, outer_headers), dmac_47_16, 1u << 24,
                 1u << 24);
    }
    for (unsigned i = 0; !err && i < attr->num_of_specs; i++) {
        const struct spec_header *spec = (const struct spec_header *)at;

        err = flow_add_spec(&p, spec);
        p.before = spec->type;
        at += spec->size;
    }
    if (!err && (!flow_ethertype_fits(PRM_PTR(fte_match_param, rule->mask, outer_headers),
                                      PRM_PTR(fte_match_param, rule->value, outer_headers)) ||
                 !flow_ethertype_fits(PRM_PTR(fte_match_param, rule->mask, inner_headers),
                                      PRM_PTR(fte_match_param, rule->value, inner_headers)))) {
        err = EINVAL;
    }
    if (!(rule->action & PRM_FLOW_ACTION_DROP)) {
        rule->action |= egress ? PRM_FLOW_ACTION_ALLOW : PRM_FLOW_ACTION_FWD_DEST;
    }
    rule->priority = attr->type == IBV_FLOW_ATTR_NORMAL ? attr->priority : HV_FLOW_PRIORITIES;
    rule->criteria = flow_criteria(rule->mask);
    return err;
}

bool hv_flow_can_reach(const struct hv_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_RAW_PACKET && (qp->ind || qp->rq.wqe_cnt);
}

static struct ibv_flow *create_flow(struct ibv_qp *ibqp, struct ibv_flow_attr *attr)
{
    struct hv_qp *qp = hv_qp(ibqp);
    struct hv_flow_rule rule = {.dest = {PRM_FLOW_DESTINATION_TYPE_TIR, qp->tirn}};
    int err = flow_read_rule(&rule, attr);

    err = err ? err : hv_qp_check(ibqp);
    if (!err && (rule.table == PRM_FLOW_TABLE_TYPE_NIC_TX ? ibqp->qp_type != IBV_QPT_RAW_PACKET
                                                          : !hv_flow_can_reach(qp))) {
        err = EINVAL;
    }
    if (err) {
        errno = err;
        return NULL;
    }
    return hv_flow_new(ibqp->context, &rule, qp);
}

void hv_flow_ops(struct verbs_context *ops)
{
    ops->ibv_create_flow = create_flow;
    ops->ibv_destroy_flow = hv_flow_free;
    hv_flow_action_ops(ops);
    hv_counters_ops(ops);
}
