/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows: which received packets a raw packet QP gets (ibv_create_flow()).
 *
 * All flows of an HCA are in one flow table, the root of what is received. It is made with the
 * first flow and goes with the last one. A flow is an entry in a group of its own, as each has its
 * own mask; the first entry that matches takes the packet, so that entries are in the order of
 * their priority. mlx5_ib has a table for each priority, and gives a packet that two flows match
 * with equal values to both; here the older one gets it.
 */
#include <netinet/in.h>
#include <string.h>
#include "guest-lib/verbs/qp.h"

#define PRIORITIES  16  /* of ordinary flows; the one behind is the defaults' */
#define OF_PRIORITY 256 /* flows of one */
#define ENTRIES     ((PRIORITIES + 1) * OF_PRIORITY)
#define LOG_SIZE    13 /* of the table: not below ENTRIES */
#define TAG_LIMIT   (1u << 24)

struct hv_flow {
    struct ibv_flow ibv;
    struct hv_hca *hca;
    struct hv_qp *qp;
    uint32_t index, group_id;
};

struct table {
    uint32_t id;
    unsigned used;
    bool taken[ENTRIES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *tables; /* struct hv_hca -> struct table */

/* What a flow asks for. */
struct rule {
    uint8_t mask[PRM_SIZE(fte_match_param)], value[PRM_SIZE(fte_match_param)];
    bool drop;
    uint32_t tag;
};

/* -- from specifications to match parameters ----------------------------------------------------
 */

static bool is_zero(const void *data, size_t len)
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

static uint32_t mac_high(const uint8_t *mac)
{
    return (uint32_t)prm_load32(mac);
}

static uint32_t mac_low(const uint8_t *mac)
{
    return (uint32_t)prm_load16(mac + 4);
}

static int add_eth(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_eth *eth = spec;
    uint16_t vlan_mask = GUINT16_FROM_BE(eth->mask.vlan_tag);
    uint16_t vlan = GUINT16_FROM_BE(eth->val.vlan_tag);

    MATCH(rule, dmac_47_16, mac_high(eth->mask.dst_mac), mac_high(eth->val.dst_mac));
    MATCH(rule, dmac_15_0, mac_low(eth->mask.dst_mac), mac_low(eth->val.dst_mac));
    MATCH(rule, smac_47_16, mac_high(eth->mask.src_mac), mac_high(eth->val.src_mac));
    MATCH(rule, smac_15_0, mac_low(eth->mask.src_mac), mac_low(eth->val.src_mac));
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

/* The protocol may have been given already, by another specification: 0, or EINVAL if it differs.
 */
static int add_proto(struct rule *rule, uint8_t mask, uint8_t value)
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

static void add_address(struct rule *rule, size_t offset, const void *mask, const void *value,
                        size_t len)
{
    uint8_t *m = OUTER(rule->mask) + offset + 16 - len, *v = OUTER(rule->value) + offset + 16 - len;

    memcpy(m, mask, len);
    for (size_t i = 0; i < len; i++) {
        v[i] = ((const uint8_t *)value)[i] & m[i];
    }
}

#define SRC_IP PRM_OFFSET(fte_match_set_lyr_2_4, src_ipv4_src_ipv6)
#define DST_IP PRM_OFFSET(fte_match_set_lyr_2_4, dst_ipv4_dst_ipv6)

static int add_ipv4(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv4 *ip = spec;

    MATCH(rule, ip_version, 0xf, 4);
    add_address(rule, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    add_address(rule, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    return 0;
}

static int add_ipv4_ext(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv4_ext *ip = spec;

    if (ip->mask.ttl || ip->mask.flags) {
        return EOPNOTSUPP;
    }
    MATCH(rule, ip_version, 0xf, 4);
    add_address(rule, SRC_IP, &ip->mask.src_ip, &ip->val.src_ip, 4);
    add_address(rule, DST_IP, &ip->mask.dst_ip, &ip->val.dst_ip, 4);
    MATCH(rule, ip_dscp, ip->mask.tos >> 2, ip->val.tos >> 2);
    MATCH(rule, ip_ecn, ip->mask.tos & 3, ip->val.tos);
    return add_proto(rule, ip->mask.proto, ip->val.proto);
}

static int add_ipv6(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_ipv6 *ip = spec;

    if (ip->mask.hop_limit || ip->mask.flow_label) {
        return EOPNOTSUPP;
    }
    MATCH(rule, ip_version, 0xf, 6);
    add_address(rule, SRC_IP, ip->mask.src_ip, ip->val.src_ip, 16);
    add_address(rule, DST_IP, ip->mask.dst_ip, ip->val.dst_ip, 16);
    MATCH(rule, ip_dscp, ip->mask.traffic_class >> 2, ip->val.traffic_class >> 2);
    MATCH(rule, ip_ecn, ip->mask.traffic_class & 3, ip->val.traffic_class);
    return add_proto(rule, ip->mask.next_hdr, ip->val.next_hdr);
}

static int add_tcp(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *tcp = spec;

    MATCH(rule, tcp_sport, GUINT16_FROM_BE(tcp->mask.src_port), GUINT16_FROM_BE(tcp->val.src_port));
    MATCH(rule, tcp_dport, GUINT16_FROM_BE(tcp->mask.dst_port), GUINT16_FROM_BE(tcp->val.dst_port));
    return add_proto(rule, 0xff, IPPROTO_TCP);
}

static int add_udp(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_tcp_udp *udp = spec;

    MATCH(rule, udp_sport, GUINT16_FROM_BE(udp->mask.src_port), GUINT16_FROM_BE(udp->val.src_port));
    MATCH(rule, udp_dport, GUINT16_FROM_BE(udp->mask.dst_port), GUINT16_FROM_BE(udp->val.dst_port));
    return add_proto(rule, 0xff, IPPROTO_UDP);
}

static int add_tag(struct rule *rule, const void *spec)
{
    const struct ibv_flow_spec_action_tag *tag = spec;

    rule->tag = tag->tag_id;
    return tag->tag_id < TAG_LIMIT ? 0 : EINVAL;
}

static int add_drop(struct rule *rule, const void *spec)
{
    (void)spec;
    rule->drop = true;
    return 0;
}

static const struct {
    uint32_t type;
    size_t size;
    int (*add)(struct rule *rule, const void *spec);
} kinds[] = {
    {IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth), add_eth},
    {IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4), add_ipv4},
    {IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext), add_ipv4_ext},
    {IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6), add_ipv6},
    {IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp), add_tcp},
    {IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp), add_udp},
    {IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), add_tag},
    {IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop), add_drop},
};

static int add_spec(struct rule *rule, const struct ibv_flow_spec *spec)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (kinds[i].type == (uint32_t)spec->hdr.type) {
            return spec->hdr.size == kinds[i].size ? kinds[i].add(rule, spec) : EINVAL;
        }
    }
    return EOPNOTSUPP;
}

static int read_rule(struct rule *rule, const struct ibv_flow_attr *attr)
{
    const uint8_t *at = (const uint8_t *)(attr + 1);
    int err = 0;

    if (attr->comp_mask || (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)) {
        return EINVAL;
    }
    if (attr->flags || attr->type == IBV_FLOW_ATTR_SNIFFER) {
        return EOPNOTSUPP;
    }
    if (attr->type > IBV_FLOW_ATTR_SNIFFER || attr->port != 1 || attr->priority >= PRIORITIES ||
        (attr->type != IBV_FLOW_ATTR_NORMAL && attr->num_of_specs)) {
        return EINVAL;
    }
    if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT) { /* a group address: IEEE 802 */
        MATCH(rule, dmac_47_16, 1u << 24, 1u << 24);
    }
    for (unsigned i = 0; !err && i < attr->num_of_specs; i++) {
        const struct ibv_flow_spec *spec = (const struct ibv_flow_spec *)at;

        err = add_spec(rule, spec);
        at += spec->hdr.size;
    }
    return err;
}

/* -- the table ----------------------------------------------------------------------------------
 */

static int set_root(struct hv_hca *hca, uint32_t table_id, uint16_t op_mod)
{
    uint8_t in[PRM_SIZE(set_flow_table_root_in)] = {0};

    PRM_SET(set_flow_table_root_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, in, op_mod, op_mod);
    PRM_SET(set_flow_table_root_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(set_flow_table_root_in, in, table_id, table_id);
    return hv_cmd_simple(hca, in, sizeof(in));
}

static void destroy_table(struct hv_hca *hca, uint32_t table_id)
{
    uint8_t in[PRM_SIZE(destroy_flow_table_in)] = {0};

    set_root(hca, table_id, PRM_SET_FLOW_TABLE_ROOT_OP_UNSET);
    PRM_SET(destroy_flow_table_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_TABLE);
    PRM_SET(destroy_flow_table_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(destroy_flow_table_in, in, table_id, table_id);
    hv_cmd_simple(hca, in, sizeof(in));
}

static int create_table(struct hv_hca *hca, uint32_t *table_id)
{
    uint8_t in[PRM_SIZE(create_flow_table_in)] = {0}, out[PRM_SIZE(create_flow_table_out)] = {0};
    int err;

    PRM_SET(create_flow_table_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(flow_table_context, PRM_PTR(create_flow_table_in, in, flow_table_context), log_size,
            LOG_SIZE);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    if (err) {
        return err;
    }
    *table_id = PRM_GET(create_flow_table_out, out, table_id);
    err = set_root(hca, *table_id, PRM_SET_FLOW_TABLE_ROOT_OP_SET);
    if (err) {
        destroy_table(hca, *table_id);
    }
    return err;
}

/* The HCA's table, made if there is none: 0 or errno. Under the lock. */
static int get_table(struct hv_hca *hca, struct table **table)
{
    uint32_t id;
    int err;

    if (!tables) {
        tables = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    }
    *table = g_hash_table_lookup(tables, hca);
    if (*table) {
        return 0;
    }
    err = create_table(hca, &id);
    if (!err) {
        *table = g_new0(struct table, 1);
        (*table)->id = id;
        g_hash_table_insert(tables, hca, *table);
    }
    return err;
}

static void put_table(struct hv_hca *hca, struct table *table)
{
    if (!table->used) {
        destroy_table(hca, table->id);
        g_hash_table_remove(tables, hca);
    }
}

/* -- entries ------------------------------------------------------------------------------------
 */

static int create_group(struct hv_flow *flow, const struct table *table, const struct rule *rule)
{
    uint8_t in[PRM_SIZE(create_flow_group_in)] = {0}, out[PRM_SIZE(create_flow_group_out)] = {0};
    bool any = !is_zero(rule->mask, sizeof(rule->mask));
    int err;

    PRM_SET(create_flow_group_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(create_flow_group_in, in, table_id, table->id);
    PRM_SET(create_flow_group_in, in, start_flow_index, flow->index);
    PRM_SET(create_flow_group_in, in, end_flow_index, flow->index);
    PRM_SET(create_flow_group_in, in, match_criteria_enable,
            any ? 1u << PRM_MATCH_CRITERIA_OUTER_HEADERS : 0);
    memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), rule->mask, sizeof(rule->mask));
    err = hv_cmd(flow->hca, in, sizeof(in), out, sizeof(out));
    flow->group_id = PRM_GET(create_flow_group_out, out, group_id);
    return err;
}

static int destroy_group(const struct hv_flow *flow, const struct table *table)
{
    uint8_t in[PRM_SIZE(destroy_flow_group_in)] = {0};

    PRM_SET(destroy_flow_group_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_GROUP);
    PRM_SET(destroy_flow_group_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(destroy_flow_group_in, in, table_id, table->id);
    PRM_SET(destroy_flow_group_in, in, group_id, flow->group_id);
    return hv_cmd_simple(flow->hca, in, sizeof(in));
}

static int set_entry(struct hv_flow *flow, const struct table *table, const struct rule *rule)
{
    uint8_t in[PRM_SIZE(set_fte_in) + PRM_SIZE(dest_format_struct)] = {0};
    uint8_t *ctx = PRM_PTR(set_fte_in, in, flow_context);
    uint8_t *dest = ctx + PRM_SIZE(flow_context);
    size_t len = rule->drop ? PRM_SIZE(set_fte_in) : sizeof(in);

    PRM_SET(set_fte_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    PRM_SET(set_fte_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(set_fte_in, in, table_id, table->id);
    PRM_SET(set_fte_in, in, flow_index, flow->index);
    PRM_SET(flow_context, ctx, group_id, flow->group_id);
    PRM_SET(flow_context, ctx, flow_tag, rule->tag);
    PRM_SET(flow_context, ctx, action,
            rule->drop ? PRM_FLOW_ACTION_DROP : PRM_FLOW_ACTION_FWD_DEST);
    memcpy(PRM_PTR(flow_context, ctx, match_value), rule->value, sizeof(rule->value));
    if (!rule->drop) {
        PRM_SET(flow_context, ctx, destination_list_size, 1);
        PRM_SET(dest_format_struct, dest, destination_type, PRM_FLOW_DESTINATION_TYPE_TIR);
        PRM_SET(dest_format_struct, dest, destination_id, flow->qp->tirn);
    }
    return hv_cmd_simple(flow->hca, in, len);
}

static int delete_entry(const struct hv_flow *flow, const struct table *table)
{
    uint8_t in[PRM_SIZE(delete_fte_in)] = {0};

    PRM_SET(delete_fte_in, in, opcode, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY);
    PRM_SET(delete_fte_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(delete_fte_in, in, table_id, table->id);
    PRM_SET(delete_fte_in, in, flow_index, flow->index);
    return hv_cmd_simple(flow->hca, in, sizeof(in));
}

/* A place among those of its priority: 0 or ENOSPC. */
static int take_index(struct hv_flow *flow, struct table *table, const struct ibv_flow_attr *attr)
{
    uint32_t first = attr->type == IBV_FLOW_ATTR_NORMAL ? attr->priority : PRIORITIES;

    for (uint32_t i = first * OF_PRIORITY; i < (first + 1) * OF_PRIORITY; i++) {
        if (!table->taken[i]) {
            table->taken[i] = true;
            table->used++;
            flow->index = i;
            return 0;
        }
    }
    return ENOSPC;
}

static void give_index(const struct hv_flow *flow, struct table *table)
{
    table->taken[flow->index] = false;
    table->used--;
}

/* Under the lock. */
static int add_flow(struct hv_flow *flow, const struct ibv_flow_attr *attr, const struct rule *rule)
{
    struct table *table;
    int err = get_table(flow->hca, &table);

    if (err) {
        return err;
    }
    err = take_index(flow, table, attr);
    if (!err) {
        err = create_group(flow, table, rule);
        if (!err) {
            err = set_entry(flow, table, rule);
            if (err) {
                destroy_group(flow, table);
            }
        }
        if (err) {
            give_index(flow, table);
        }
    }
    put_table(flow->hca, table);
    return err;
}

static struct ibv_flow *create_flow(struct ibv_qp *ibqp, struct ibv_flow_attr *attr)
{
    struct hv_qp *qp = hv_qp(ibqp);
    struct rule rule = {.drop = false};
    struct hv_flow *flow;
    int err = read_rule(&rule, attr);

    if (!err && (ibqp->qp_type != IBV_QPT_RAW_PACKET || (!qp->ind && !qp->rq.wqe_cnt))) {
        err = EINVAL;
    }
    flow = err ? NULL : calloc(1, sizeof(*flow));
    if (!flow) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    flow->hca = qp->hca;
    flow->qp = qp;
    flow->ibv.context = ibqp->context;
    pthread_mutex_lock(&lock);
    err = add_flow(flow, attr, &rule);
    pthread_mutex_unlock(&lock);
    if (err) {
        free(flow);
        errno = err;
        return NULL;
    }
    flow->ibv.handle = flow->index;
    g_atomic_int_inc(&qp->refs);
    return &flow->ibv;
}

static int destroy_flow(struct ibv_flow *ibflow)
{
    struct hv_flow *flow = (struct hv_flow *)ibflow;
    struct table *table;
    int err;

    pthread_mutex_lock(&lock);
    table = g_hash_table_lookup(tables, flow->hca);
    err = delete_entry(flow, table);
    if (!err) {
        destroy_group(flow, table);
        give_index(flow, table);
        put_table(flow->hca, table);
    }
    pthread_mutex_unlock(&lock);
    if (!err) {
        g_atomic_int_add(&flow->qp->refs, -1);
        free(flow);
    }
    return err;
}

void hv_flow_ops(struct verbs_context *ops)
{
    ops->ibv_create_flow = create_flow;
    ops->ibv_destroy_flow = destroy_flow;
}
