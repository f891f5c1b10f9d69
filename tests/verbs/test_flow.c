/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests flows between two hosts in virtual time: specifications of tunnels, rules for what is sent,
 * and what rules change in frames (ibv_create_flow(), mlx5dv_create_flow(),
 * mlx5dv_create_flow_action_*()).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/unit/suite.h"
#include "tests/verbs/flow_bench.h"

/* -- specifications ---------------------------------------------------------------------------- */

/* Whether the frame comes by the rule. */
static bool comes(struct rule *rule, enum kind kind)
{
    struct ibv_flow *flow = ibv_create_flow(qp[1], &rule->attr);
    bool came;

    ck_assert_msg(flow, "errno %d", errno);
    make(kind);
    came = sent() == len;
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    return came;
}

START_TEST(a_vni_is_matched)
{
    struct rule right = rule_new(), wrong = rule_new(), half = rule_new();

    ADD(&right, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val = {BE32(0x123456)},
        .mask = {BE32(0xffffff)});
    ADD(&wrong, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val = {BE32(0x123457)},
        .mask = {BE32(0xffffff)});
    ADD(&half, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val = {BE32(0x120000)},
        .mask = {BE32(0xff0000)});
    ck_assert(comes(&right, VXLAN));
    ck_assert(!comes(&wrong, VXLAN));
    ck_assert(comes(&half, VXLAN));
    ck_assert(!comes(&right, PLAIN));
}
END_TEST

START_TEST(inner_headers_are_matched_apart_from_outer_ones)
{
    struct rule inner = rule_new(), outer = rule_new(), both = rule_new();

    ADD(&inner, tcp_udp, IBV_FLOW_SPEC_UDP | IBV_FLOW_SPEC_INNER, .val = {.dst_port = BE16(5000)},
        .mask = {.dst_port = 0xffff});
    ADD(&outer, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(5000)},
        .mask = {.dst_port = 0xffff});
    ADD(&both, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(4789)},
        .mask = {.dst_port = 0xffff});
    ADD(&both, eth, IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER, .val = {.ether_type = BE16(0x0800)},
        .mask = {.ether_type = 0xffff});
    ADD(&both, ipv4_ext, IBV_FLOW_SPEC_IPV4_EXT | IBV_FLOW_SPEC_INNER,
        .val = {.dst_ip = BE32(0x0a010204)}, .mask = {.dst_ip = 0xffffffff});
    ck_assert(comes(&inner, VXLAN));
    ck_assert(!comes(&outer, VXLAN));
    ck_assert(comes(&both, VXLAN));
    ck_assert(!comes(&inner, PLAIN));
    ck_assert(comes(&outer, PLAIN));
    ck_assert(!comes(&both, PLAIN));
}
END_TEST

START_TEST(a_gre_key_is_matched)
{
    struct rule right = rule_new(), wrong = rule_new();

    ADD(&right, gre, IBV_FLOW_SPEC_GRE, .val = {.protocol = BE16(0x0800), .key = BE32(0xabcdef01)},
        .mask = {.protocol = 0xffff, .key = 0xffffffff});
    ADD(&wrong, gre, IBV_FLOW_SPEC_GRE, .val = {.key = BE32(0xabcdef02)},
        .mask = {.key = 0xffffffff});
    ck_assert(comes(&right, GRE));
    ck_assert(!comes(&wrong, GRE));
    ck_assert(!comes(&right, PLAIN));
}
END_TEST

/* "case IB_FLOW_SPEC_MPLS" of mlx5_ib: the specification before it says where the label is. */
START_TEST(a_label_belongs_to_the_header_before_it)
{
    struct rule plain = rule_new(), in_udp = rule_new();
    const struct ibv_flow_mpls_filter label = {BE32(77u << 12)}, mask = {BE32(0xfffff000)};

    ADD(&plain, mpls, IBV_FLOW_SPEC_MPLS, .val = label, .mask = mask);
    ADD(&in_udp, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(6635)},
        .mask = {.dst_port = 0xffff});
    ADD(&in_udp, mpls, IBV_FLOW_SPEC_MPLS, .val = label, .mask = mask);
    ck_assert(comes(&plain, MPLS));
    ck_assert(!comes(&plain, MPLS_IN_UDP));
    ck_assert(comes(&in_udp, MPLS_IN_UDP));
    ck_assert(!comes(&in_udp, MPLS));
}
END_TEST

START_TEST(a_flow_label_is_matched)
{
    struct rule right = rule_new(), wrong = rule_new();

    ADD(&right, ipv6, IBV_FLOW_SPEC_IPV6, .val = {.flow_label = BE32(0x54321)},
        .mask = {.flow_label = BE32(0xfffff)});
    ADD(&wrong, ipv6, IBV_FLOW_SPEC_IPV6, .val = {.flow_label = BE32(0x54320)},
        .mask = {.flow_label = BE32(0xfffff)});
    ck_assert(comes(&right, IPV6));
    ck_assert(!comes(&wrong, IPV6));
}
END_TEST

static void refuse(const struct rule *rule, int err)
{
    struct rule copy = *rule;

    ck_assert_ptr_null(ibv_create_flow(qp[1], &copy.attr));
    ck_assert_int_eq(errno, err);
}

START_TEST(bad_specifications_are_refused)
{
    struct rule rule = rule_new();

    ADD(&rule, tunnel, IBV_FLOW_SPEC_VXLAN_TUNNEL, .val = {BE32(1u << 24)});
    refuse(&rule, EINVAL);
    rule = rule_new();
    ADD(&rule, gre, IBV_FLOW_SPEC_GRE, .mask = {.c_ks_res0_ver = 1});
    refuse(&rule, EOPNOTSUPP);
    rule = rule_new();
    ADD(&rule, ipv6, IBV_FLOW_SPEC_IPV6, .mask = {.flow_label = BE32(1u << 20)});
    refuse(&rule, EINVAL);
    rule = rule_new(); /* is_valid_ethertype() */
    ADD(&rule, eth, IBV_FLOW_SPEC_ETH, .val = {.ether_type = BE16(0x86dd)},
        .mask = {.ether_type = 0xffff});
    ADD(&rule, ipv4, IBV_FLOW_SPEC_IPV4, .mask = {.dst_ip = 0});
    refuse(&rule, EINVAL);
    rule = rule_new();
    rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    refuse(&rule, EINVAL);
}
END_TEST

/* -- what is sent ------------------------------------------------------------------------------ */

/* All frames of IPv4; the hosts also send ARP. */
static struct ibv_flow *take_all(void)
{
    struct rule all = rule_new();
    struct ibv_flow *flow;

    ADD(&all, ipv4, IBV_FLOW_SPEC_IPV4, .mask = {.dst_ip = 0});
    flow = ibv_create_flow(qp[1], &all.attr);
    ck_assert_ptr_nonnull(flow);
    return flow;
}

START_TEST(a_rule_for_what_is_sent_drops_it)
{
    struct rule rule = rule_new(), allow = rule_new();
    struct ibv_flow *all = take_all(), *flow, *first;

    ADD(&rule, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(5000)},
        .mask = {.dst_port = 0xffff});
    ADD(&rule, action_drop, IBV_FLOW_SPEC_ACTION_DROP, );
    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    rule.attr.priority = 1;
    flow = ibv_create_flow(qp[0], &rule.attr);
    ck_assert_msg(flow, "errno %d", errno);
    make(PLAIN);
    ck_assert_uint_eq(sent(), 0);
    make(VXLAN);
    ck_assert_uint_eq(sent(), len);
    ADD(&allow, ipv4, IBV_FLOW_SPEC_IPV4, .val = {.dst_ip = BE32(0x0a010204)},
        .mask = {.dst_ip = 0xffffffff});
    allow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    first = ibv_create_flow(qp[0], &allow.attr); /* of a higher priority */
    ck_assert_ptr_nonnull(first);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len);
    ck_assert_int_eq(ibv_destroy_flow(first), 0);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_uint_eq(sent(), len);
    ck_assert_int_eq(ibv_destroy_flow(all), 0);
}
END_TEST

/* -- the device's own layout ------------------------------------------------------------------- */

/* Matchers here have the ethertype alone. */
#define ETHERTYPE (PRM_OFFSET(fte_match_set_lyr_2_4, smac_15_0) + 2)

static struct mlx5dv_flow_matcher *matcher_of(struct ibv_context *ctx,
                                              enum mlx5dv_flow_table_type type)
{
    uint8_t bytes[sizeof(struct mlx5dv_flow_match_parameters) + 64] = {0};
    struct mlx5dv_flow_match_parameters *mask = (void *)bytes;
    struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL,
                                            .match_mask = mask,
                                            .match_criteria_enable =
                                                1u << PRM_MATCH_CRITERIA_OUTER_HEADERS,
                                            .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
                                            .ft_type = type};

    mask->match_sz = 64;
    prm_store16((uint8_t *)mask->match_buf + ETHERTYPE, 0xffff);
    return hv_dv_create_flow_matcher(ctx, &attr);
}

static struct ibv_flow *flow_of(struct mlx5dv_flow_matcher *matcher, size_t num,
                                struct mlx5dv_flow_action_attr *actions)
{
    uint8_t bytes[sizeof(struct mlx5dv_flow_match_parameters) + 64] = {0};
    struct mlx5dv_flow_match_parameters *value = (void *)bytes;

    value->match_sz = 64;
    prm_store16((uint8_t *)value->match_buf + ETHERTYPE, 0x0800);
    return hv_dv_create_flow(matcher, value, num, actions);
}

#define ENCAP                                                                                      \
    hv_dv_create_flow_action_packet_reformat(                                                      \
        v->a, outer_len, outer, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,           \
        MLX5DV_FLOW_TABLE_TYPE_NIC_TX)
#define DECAP                                                                                      \
    hv_dv_create_flow_action_packet_reformat(                                                      \
        v->b, 0, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2,                    \
        MLX5DV_FLOW_TABLE_TYPE_NIC_RX)

/* test_mlx5_flow's way: the sender puts headers in front, and the receiver takes them off. */
START_TEST(tunnel_headers_are_added_and_removed)
{
    uint8_t outer[50];
    size_t outer_len = sizeof(outer);
    struct mlx5dv_flow_matcher *tx = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
    struct mlx5dv_flow_matcher *rx = matcher_of(v->b, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
    struct ibv_flow_action *encap, *decap;
    struct mlx5dv_flow_action_attr add_it = {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION};
    struct mlx5dv_flow_action_attr take[] = {{.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = qp[1]},
                                             {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION}};
    struct ibv_flow *sends, *receives;

    make(VXLAN);
    memcpy(outer, frame, sizeof(outer));
    encap = ENCAP;
    decap = DECAP;
    ck_assert(encap && decap && tx && rx);
    add_it.action = encap;
    take[1].action = decap;
    sends = flow_of(tx, 1, &add_it);
    receives = flow_of(rx, 1, take);
    ck_assert_msg(sends && receives, "errno %d", errno);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len + sizeof(outer));
    ck_assert_mem_eq((uint8_t *)mr[1]->addr + sizeof(outer), frame, len);
    ck_assert_uint_eq(prm_load16((uint8_t *)mr[1]->addr + 36), 4789);
    ck_assert_int_eq(ibv_destroy_flow(receives), 0);
    receives = flow_of(rx, 2, take);
    ck_assert_msg(receives, "errno %d", errno);
    ck_assert_uint_eq(sent(), len);
    ck_assert_mem_eq(mr[1]->addr, frame, len);
    ck_assert_int_eq(ibv_destroy_flow_action(encap), EBUSY);
    ck_assert_int_eq(ibv_destroy_flow_action(decap), EBUSY);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(tx), EBUSY);
    ck_assert_int_eq(ibv_destroy_flow(sends), 0);
    ck_assert_int_eq(ibv_destroy_flow(receives), 0);
    ck_assert_int_eq(ibv_destroy_flow_action(encap), 0);
    ck_assert_int_eq(ibv_destroy_flow_action(decap), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(tx), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rx), 0);
}
END_TEST

static uint64_t set_field(uint16_t field, uint8_t bits, uint32_t value)
{
    struct prm_set_action_in action[1] = {0};
    uint64_t raw;

    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, field);
    PRM_SET(set_action_in, action, length, bits & 31);
    PRM_SET(set_action_in, action, data, value);
    memcpy(&raw, action, sizeof(raw));
    return raw;
}

/* Verbs' rules have such actions by IBV_FLOW_SPEC_ACTION_HANDLE. */
START_TEST(header_fields_are_rewritten)
{
    uint64_t port = set_field(PRM_MODIFY_HEADER_FIELD_OUT_UDP_DPORT, 16, 4321);
    struct ibv_flow_action *rewrite = hv_dv_create_flow_action_modify_header(
        v->b, sizeof(port), &port, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
    struct rule rule = rule_new();
    struct ibv_flow *flow;

    ck_assert_msg(rewrite, "errno %d", errno);
    ADD(&rule, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(5000)},
        .mask = {.dst_port = 0xffff});
    ADD(&rule, action_handle, IBV_FLOW_SPEC_ACTION_HANDLE, .action = rewrite);
    flow = ibv_create_flow(qp[1], &rule.attr);
    ck_assert_msg(flow, "errno %d", errno);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len);
    ck_assert_uint_eq(prm_load16((uint8_t *)mr[1]->addr + 36), 4321);
    ck_assert_int_eq(ibv_destroy_flow_action(rewrite), EBUSY);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ADD(&rule, action_handle, IBV_FLOW_SPEC_ACTION_HANDLE, .action = rewrite);
    refuse(&rule, EINVAL); /* two of a kind */
    ck_assert_int_eq(ibv_destroy_flow_action(rewrite), 0);
}
END_TEST

START_TEST(bad_actions_are_refused)
{
    uint8_t outer[64] = {0};
    size_t outer_len = 16;
    uint64_t many[65] = {0};
    const struct {
        size_t size;
        int type, err;
    } table[] = {
        {0, MLX5DV_FLOW_TABLE_TYPE_NIC_RX, EINVAL},
        {12, MLX5DV_FLOW_TABLE_TYPE_NIC_RX, EINVAL},
        {8, 9, EINVAL},
        {8, MLX5DV_FLOW_TABLE_TYPE_FDB, EOPNOTSUPP},
        {8, MLX5DV_FLOW_TABLE_TYPE_RDMA_RX, EOPNOTSUPP},
        {sizeof(many), MLX5DV_FLOW_TABLE_TYPE_NIC_RX, EOPNOTSUPP},
        {8, MLX5DV_FLOW_TABLE_TYPE_NIC_RX, EINVAL}, /* by the device: no such kind of action */
    };
#define REFORMAT(size, data, kind, table)                                                          \
    hv_dv_create_flow_action_packet_reformat(v->a, size, data,                                     \
                                             MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_##kind,       \
                                             MLX5DV_FLOW_TABLE_TYPE_##table)

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        ck_assert_ptr_null(hv_dv_create_flow_action_modify_header(
            v->a, table[i].size, many, (enum mlx5dv_flow_table_type)table[i].type));
        ck_assert_msg(errno == table[i].err, "row %zu: errno %d", i, errno);
    }
    ck_assert_ptr_null(REFORMAT(0, outer, L2_TO_L2_TUNNEL, NIC_TX));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(REFORMAT(0, NULL, L2_TO_L2_TUNNEL, NIC_TX));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_null(REFORMAT(4096, many, L2_TO_L2_TUNNEL, NIC_TX));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(REFORMAT(outer_len, outer, L2_TO_L2_TUNNEL, NIC_RX));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_ptr_null(REFORMAT(outer_len, outer, L3_TUNNEL_TO_L2, NIC_TX));
    ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

/* Where packets of each type of table may go (get_dests()). */
START_TEST(each_table_has_its_destinations)
{
    struct mlx5dv_flow_matcher *rx = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
    struct mlx5dv_flow_matcher *tx = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
    struct mlx5dv_flow_matcher *rdma_rx = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_RDMA_RX);
    struct mlx5dv_flow_matcher *rdma_tx = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_RDMA_TX);
    struct mlx5dv_flow_action_attr to_qp[] = {{.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = qp[0]},
                                              {.type = MLX5DV_FLOW_ACTION_DROP},
                                              {.type = MLX5DV_FLOW_ACTION_DEFAULT_MISS}};
    const struct {
        struct mlx5dv_flow_matcher *matcher;
        unsigned from, num;
        int err;
    } table[] = {
        {rx, 0, 0, EINVAL},      {rx, 0, 2, EOPNOTSUPP},  {rx, 1, 2, EOPNOTSUPP},
        {tx, 0, 1, EINVAL},      {rdma_rx, 0, 0, EINVAL}, {rdma_rx, 1, 1, EINVAL},
        {rdma_rx, 2, 1, EINVAL}, {rdma_tx, 0, 1, EINVAL}, {rx, 0, 1, 0},
        {rx, 1, 1, 0},           {tx, 0, 0, 0},           {tx, 1, 1, 0},
        {rdma_rx, 0, 1, 0},      {rdma_tx, 0, 0, 0},      {rdma_tx, 1, 1, 0},
        {rx, 2, 1, 0},           {tx, 2, 1, 0},           {rdma_tx, 2, 1, 0},
    };

    ck_assert(rx && tx && rdma_rx && rdma_tx);
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        struct ibv_flow *flow;

        errno = 0;
        flow = flow_of(table[i].matcher, table[i].num, to_qp + table[i].from);
        ck_assert_msg(!flow == (table[i].err != 0) && errno == table[i].err, "row %zu: errno %d", i,
                      errno);
        ck_assert(!flow || ibv_destroy_flow(flow) == 0);
    }
    /* get_dests(): the kernel refuses a QP for sent packets itself, without a command */
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(flow_of(tx, 1, to_qp));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert(table_refuse_end());
    ck_assert_ptr_null(matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_FDB));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rx), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(tx), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rdma_rx), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rdma_tx), 0);
}
END_TEST

static struct mlx5dv_devx_obj *counter_new(void)
{
    struct prm_alloc_flow_counter_in in[1] = {0};
    struct prm_alloc_flow_counter_out out[1] = {0};

    PRM_SET(alloc_flow_counter_in, in, opcode, PRM_CMD_OP_ALLOC_FLOW_COUNTER);
    return hv_dv_devx_obj_create(v->a, in, sizeof(in), out, sizeof(out));
}

static uint64_t packets(struct mlx5dv_devx_obj *counter)
{
    struct prm_query_flow_counter_in in[1] = {0};
    uint8_t bytes[PRM_SIZE(query_flow_counter_out) + PRM_SIZE(traffic_counter)] = {0};
    struct prm_query_flow_counter_out *out = (void *)bytes;

    PRM_SET(query_flow_counter_in, in, opcode, PRM_CMD_OP_QUERY_FLOW_COUNTER);
    PRM_SET(query_flow_counter_in, in, flow_counter_id, counter->id);
    ck_assert_int_eq(hv_dv_devx_obj_query(counter, in, sizeof(in), out, sizeof(bytes)), 0);
    return PRM_GET(traffic_counter, PRM_PTR_AT(query_flow_counter_out, out, flow_statistics, 0),
                   packets);
}

/* A SEND and its acknowledgement: host 0 sends one RoCE packet, and no other. */
START_TEST(sent_roce_packets_are_counted)
{
    struct mlx5dv_flow_matcher *matcher = matcher_of(v->a, MLX5DV_FLOW_TABLE_TYPE_RDMA_TX);
    struct mlx5dv_flow_action_attr count = {.type = MLX5DV_FLOW_ACTION_COUNTERS_DEVX,
                                            .obj = counter_new()};
    struct ibv_cq *a_cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_cq *b_cq = ibv_create_cq(v->b, 15, NULL, NULL, 0);
    struct ibv_qp *a = table_qp_new(v, 0, a_cq, NULL), *b = table_qp_new(v, 1, b_cq, NULL);
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
    struct ibv_flow *flow = flow_of(matcher, 1, &count);

    ck_assert_msg(flow, "errno %d", errno);
    table_connect(v, a, b);
    ck_assert_int_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
    ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
    ck_assert_int_eq(table_wc(v, a_cq).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(packets(count.obj), 1);
    make(PLAIN); /* is no RoCE */
    sent();
    ck_assert_uint_eq(packets(count.obj), 1);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(count.obj), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(matcher), 0);
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_cq(a_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(b_cq), 0);
}
END_TEST

/* uverbs_destroy_ufile_hw(): flows and actions end with their file. */
START_TEST(a_closed_device_leaves_nothing)
{
    struct ibv_context *other = ibv_open_device(v->a->device);
    uint8_t headers[64] = {0};
    struct mlx5dv_flow_action_attr action = {
        .type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION,
        .action = hv_dv_create_flow_action_packet_reformat(
            other, sizeof(headers), headers,
            MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
            MLX5DV_FLOW_TABLE_TYPE_NIC_TX)};
    struct mlx5dv_flow_matcher *matcher = matcher_of(other, MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
    struct ibv_flow *flow;

    ck_assert_ptr_nonnull(action.action);
    flow = flow_of(matcher, 1, &action);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(ibv_close_device(other), 0);
    ck_assert_ptr_null(v->hca[0]->flow_tables[PRM_FLOW_TABLE_TYPE_NIC_TX]);
    free(flow); /* the structures stay */
    free(matcher);
    free(action.action);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("flow");
    TCase *tc = tcase_create("two hosts");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_vni_is_matched);
    tcase_add_test(tc, inner_headers_are_matched_apart_from_outer_ones);
    tcase_add_test(tc, a_gre_key_is_matched);
    tcase_add_test(tc, a_label_belongs_to_the_header_before_it);
    tcase_add_test(tc, a_flow_label_is_matched);
    tcase_add_test(tc, bad_specifications_are_refused);
    tcase_add_test(tc, a_rule_for_what_is_sent_drops_it);
    tcase_add_test(tc, tunnel_headers_are_added_and_removed);
    tcase_add_test(tc, header_fields_are_rewritten);
    tcase_add_test(tc, bad_actions_are_refused);
    tcase_add_test(tc, each_table_has_its_destinations);
    tcase_add_test(tc, sent_roce_packets_are_counted);
    tcase_add_test(tc, a_closed_device_leaves_nothing);
    return suite;
}
