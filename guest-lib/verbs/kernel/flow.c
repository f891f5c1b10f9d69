/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows in verbs' terms: which received packets a raw packet QP gets (ibv_create_flow()). */
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

#define OUTER(param) PRM_PTR(fte_match_param, param, outer_headers)
/* Sets a field of the outer headers in mask and value. */
#define MATCH(rule, field, m, v)                                                                   \
    do {                                                                                           \
        PRM_SET(fte_match_set_lyr_2_4, OUTER((rule)->mask), field, m);                             \
        PRM_SET(fte_match_set_lyr_2_4, OUTER((rule)->value), field, (v) & (m));                    \
    } while (0)

static uint32_t flow_mac_high(const uint8_t *mac)
{
    return (uint32_t)prm_load32(mac);
}

static uint32_t flow_mac_low(const uint8_t *mac)
{
    return (uint32_t)prm_load16(mac + 4);
}

static int flow_add_eth(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_eth *eth = spec;
    uint16_t vlan_mask = GUINT16_FROM_BE(eth->mask.vlan_tag);
    uint16_t vlan = GUINT16_FROM_BE(eth->val.vlan_tag);

    MATCH(rule, dmac_47_16, flow_mac_high(eth->mask.dst_mac), flow_mac_high(eth->val.dst_mac));
    MATCH(rule, dmac_15_0, flow_mac_low(eth->mask.dst_mac), flow_mac_low(eth->val.dst_mac));
    MATCH(rule, smac_47_16, flow_mac_high(eth->mask.src_mac), flow_mac_high(eth->val.src_mac));
    MATCH(rule, smac_15_0, flow_mac_low(eth->mask.src_mac), flow_mac_low(eth->val.src_mac));
    MATCH(rule, ethertype, GUINT16_FROM_BE(eth->mask.ether_type),
          GUINT16_FROM_BE(eth->val.ether_type));
    if (vlan_mask) {
        MATCH(rule, cvlan_tag, 1, 1);
        MATCH(rule, first_vid, vlan_mask & 0xfff, vlan);
        MATCH(rule, first_cfi, vlan_mask >> 12 & 1, vlan >> 12);
        MATCH(rule, first_prio, vlan_mask >> 13, vlan >> 13);
    }
    return 0;
}

/* Adds a protocol, which another specification may have set already: 0, or EINVAL if it differs. */
static int flow_add_proto(struct hv_flow_rule *rule, uint8_t mask, uint8_t value)
{
    uint8_t old_mask = (uint8_t)PRM_GET(fte_match_set_lyr_2_4, OUTER(rule->mask), ip_protocol);
    uint8_t old = (uint8_t)PRM_GET(fte_match_set_lyr_2_4, OUTER(rule->value), ip_protocol);

    if (!mask) {
        return 0;
    }
    if (old_mask && (old_mask != mask || old != (value & mask))) {
        return EINVAL;
    }
    MATCH(rule, ip_protocol, mask, value);
    return 0;
}

static void flow_add_address(struct hv_flow_rule *rule, size_t offset, const void *mask,
                             const void *value, size_t len)
{
    uint8_t *m = OUTER(rule->mask)->bytes + offset + 16 - len;
    uint8_t *v = OUTER(rule->value)->bytes + offset + 16 - len;

    memcpy(m, mask, len);
    for (size_t i = 0; i < len; i++) {
        v[i] = ((const uint8_t *)value)[i] & m[i];
    }
}

#define SRC_IP PRM_OFFSET(fte_match_set_lyr_2_4, src_ipv4_src_ipv6)
#define DST_IP PRM_OFFSET(fte_match_set_lyr_2_4, dst_ipv4_dst_ipv6)

static int flow_add_ipv4(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv4 *ip = spec;

    MATCH(rule, ip_version, 0xf, 4);
    flow_add_address(rule, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    flow_add_address(rule, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    return 0;
}

static int flow_add_ipv4_ext(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv4_ext *ip = spec;

    if (ip->mask.ttl || ip->mask.flags) {
        return EOPNOTSUPP;
    }
    MATCH(rule, ip_version, 0xf, 4);
    flow_add_address(rule, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    flow_add_address(rule, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    MATCH(rule, ip_dscp, ip->mask.tos >> 2, ip->val.tos >> 2);
    MATCH(rule, ip_ecn, ip->mask.tos & 3, ip->val.tos);
    return flow_add_proto(rule, ip->mask.proto, ip->val.proto);
}

static int flow_add_ipv6(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv6 *ip = spec;

    if (ip->mask.hop_limit || ip->mask.flow_label) {
        return EOPNOTSUPP;
    }
    MATCH(rule, ip_version, 0xf, 6);
    flow_add_address(rule, SRC_IP, ip->mask.src_ip, ip->val.src_ip, 16);
    flow_add_address(rule, DST_IP, ip->mask.dst_ip, ip->val.dst_ip, 16);
    MATCH(rule, ip_dscp, ip->mask.traffic_class >> 2, ip->val.traffic_class >> 2);
    MATCH(rule, ip_ecn, ip->mask.traffic_class & 3, ip->val.traffic_class);
    return flow_add_proto(rule, ip->mask.next_hdr, ip->val.next_hdr);
}

static int flow_add_tcp(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *tcp = spec;

    MATCH(rule, tcp_sport, GUINT16_FROM_BE(tcp->mask.src_port), GUINT16_FROM_BE(tcp->val.src_port));
    MATCH(rule, tcp_dport, GUINT16_FROM_BE(tcp->mask.dst_port), GUINT16_FROM_BE(tcp->val.dst_port));
    return flow_add_proto(rule, 0xff, IPPROTO_TCP);
}

static int flow_add_udp(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *udp = spec;

    MATCH(rule, udp_sport, GUINT16_FROM_BE(udp->mask.src_port), GUINT16_FROM_BE(udp->val.src_port));
    MATCH(rule, udp_dport, GUINT16_FROM_BE(udp->mask.dst_port), GUINT16_FROM_BE(udp->val.dst_port));
    return flow_add_proto(rule, 0xff, IPPROTO_UDP);
}

static int flow_add_tag(struct hv_flow_rule *rule, const void *spec)
{
    const struct ibv_flow_spec_action_tag *tag = spec;

    rule->tag = tag->tag_id;
    return tag->tag_id < HV_FLOW_TAG_LIMIT ? 0 : EINVAL;
}

static int flow_add_drop(struct hv_flow_rule *rule, const void *spec)
{
    (void)spec;
    rule->drop = true;
    return 0;
}

static const struct {
    uint32_t type;
    size_t size;
    int (*add)(struct hv_flow_rule *rule, const void *spec);
} kinds[] = {
    {IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth), flow_add_eth},
    {IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4), flow_add_ipv4},
    {IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext), flow_add_ipv4_ext},
    {IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6), flow_add_ipv6},
    {IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp), flow_add_tcp},
    {IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp), flow_add_udp},
    {IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), flow_add_tag},
    {IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop), flow_add_drop},
};

/* The beginning of every specification. Specifications follow each other at multiples of 4. */
struct spec_header {
    uint32_t type;
    uint16_t size;
};

static int flow_add_spec(struct hv_flow_rule *rule, const struct spec_header *spec)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (kinds[i].type == spec->type) {
            return spec->size == kinds[i].size ? kinds[i].add(rule, spec) : EINVAL;
        }
    }
    return EOPNOTSUPP;
}

static int flow_read_rule(struct hv_flow_rule *rule, const struct ibv_flow_attr *attr)
{
    const uint8_t *at = (const uint8_t *)(attr + 1);
    int err = 0;

    if (attr->comp_mask || (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)) {
        return EINVAL;
    }
    if (attr->flags) {
        return EOPNOTSUPP;
    }
    if (attr->type > IBV_FLOW_ATTR_SNIFFER || attr->port != 1 ||
        attr->priority >= HV_FLOW_PRIORITIES ||
        (attr->type != IBV_FLOW_ATTR_NORMAL && attr->num_of_specs)) {
        return EINVAL;
    }
    rule->sniffs = attr->type == IBV_FLOW_ATTR_SNIFFER;
    if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT) { /* matches a group address: IEEE 802 */
        MATCH(rule, dmac_47_16, 1u << 24, 1u << 24);
    }
    for (unsigned i = 0; !err && i < attr->num_of_specs; i++) {
        const struct spec_header *spec = (const struct spec_header *)at;

        err = flow_add_spec(rule, spec);
        at += spec->size;
    }
    rule->priority = attr->type == IBV_FLOW_ATTR_NORMAL ? attr->priority : HV_FLOW_PRIORITIES;
    if (!flow_is_zero(rule->mask, sizeof(rule->mask))) {
        rule->criteria = 1u << PRM_MATCH_CRITERIA_OUTER_HEADERS;
    }
    return err;
}

bool hv_flow_can_reach(const struct hv_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_RAW_PACKET && (qp->ind || qp->rq.wqe_cnt);
}

static struct ibv_flow *create_flow(struct ibv_qp *ibqp, struct ibv_flow_attr *attr)
{
    struct hv_qp *qp = hv_qp(ibqp);
    struct hv_flow_rule rule = {.tirn = qp->tirn};
    int err = flow_read_rule(&rule, attr);

    err = err ? err : hv_qp_check(ibqp);
    if (!err && !hv_flow_can_reach(qp)) {
        err = EINVAL;
    }
    if (err) {
        errno = err;
        return NULL;
    }
    return hv_flow_new(ibqp->context, &rule, qp, NULL);
}

void hv_flow_ops(struct verbs_context *ops)
{
    ops->ibv_create_flow = create_flow;
    ops->ibv_destroy_flow = hv_flow_free;
}
