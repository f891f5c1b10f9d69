/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what rules can match beyond the outer headers of layers 2 to 4: each field of
 * model/steering/match_fields.def, in frames that scapy made (tunnel_frames.def) or that are
 * written here byte by byte. The values are those of the expressions that stand beside the frames.
 */
#include <check.h>
#include <string.h>
#include "model/steering/key.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

static struct bench *b;
static struct bench_queue rq;
static uint32_t tirn;

static void setup(void)
{
    b = bench_new();
    bench_rq_new(b, NULL, &rq);
    tirn = bench_direct_tir(b, rq.num);
}

static void teardown(void)
{
    bench_free(b);
}

#define FRAME(name, expression, hex) FRAME_##name,
enum frame_name {
#include "tests/unit/match_frames.def"
#include "tests/unit/tunnel_frames.def"
};
#undef FRAME
#define FRAME(name, expression, hex) [FRAME_##name] = (hex),
static const char *const frames[] = {
#include "tests/unit/match_frames.def"
#include "tests/unit/tunnel_frames.def"
};
#undef FRAME

static size_t frame_read(enum frame_name name, uint8_t *frame)
{
    size_t len = strlen(frames[name]) / 2;

    for (size_t i = 0; i < len; i++) {
        frame[i] = (uint8_t)(g_ascii_xdigit_value(frames[name][2 * i]) << 4 |
                             g_ascii_xdigit_value(frames[name][2 * i + 1]));
    }
    memcpy(frame, bench_mac, 6);
    return len;
}

/* A field, as its bits in fte_match_param, and its value in a frame. */
struct seen {
    enum frame_name frame;
    unsigned first, width;
    uint32_t value;
    const char *name;
};

#define SEEN_AT(frame_, section, first_, width_, value_, name_)                                    \
    {                                                                                              \
        .frame = FRAME_##frame_,                                                                   \
        .first = (unsigned)PRM_OFFSET(fte_match_param, section) * 8 + (first_), .width = (width_), \
        .value = (value_), .name = #frame_ ": " name_                                              \
    }
#define SEEN(frame, section, layout, field, value)                                                 \
    SEEN_AT(frame, section, PRM_FIELD_BIT(PRM_##layout##_##field##_FIELD),                         \
            PRM_FIELD_WIDTH(PRM_##layout##_##field##_FIELD), value, #field)
#define IN_L2_L4(frame, field, value)                                                              \
    SEEN(frame, inner_headers, fte_match_set_lyr_2_4, field, value)
#define IN_ADDRESS(frame, field, word, value)                                                      \
    SEEN_AT(frame, inner_headers,                                                                  \
            (unsigned)PRM_OFFSET(fte_match_set_lyr_2_4, field) * 8 + 32 * (word), 32, value,       \
            #field " " #word)
#define MISC(frame, field, value) SEEN(frame, misc_parameters, fte_match_set_misc, field, value)
#define MPLS(frame, field, value)                                                                  \
    SEEN_AT(frame, misc_parameters_2, (unsigned)PRM_OFFSET(fte_match_set_misc2, field) * 8, 32,    \
            value, #field)
#define MISC3(frame, field, value) SEEN(frame, misc_parameters_3, fte_match_set_misc3, field, value)
#define MISC5(frame, field, value) SEEN(frame, misc_parameters_5, fte_match_set_misc5, field, value)

static const struct seen seen[] = {
    IN_L2_L4(vxlan, dmac_47_16, 0x02000000),
    IN_L2_L4(vxlan, dmac_15_0, 0x0011),
    IN_L2_L4(vxlan, smac_47_16, 0x02000000),
    IN_L2_L4(vxlan, smac_15_0, 0x0012),
    IN_L2_L4(vxlan, ethertype, 0x0800),
    IN_L2_L4(vxlan, ip_version, 4),
    IN_L2_L4(vxlan, ipv4_ihl, 5),
    IN_L2_L4(vxlan, ip_protocol, 6),
    IN_L2_L4(vxlan, ttl_hoplimit, 64),
    IN_L2_L4(vxlan, tcp_sport, 443),
    IN_L2_L4(vxlan, tcp_dport, 50000),
    IN_L2_L4(vxlan, tcp_flags, 0x10),
    IN_L2_L4(vxlan, udp_dport, 0),
    IN_ADDRESS(vxlan, src_ipv4_src_ipv6, 3, 0x0a010001),
    IN_ADDRESS(vxlan, dst_ipv4_dst_ipv6, 3, 0x0a010002),
    IN_L2_L4(vxlan_v6, cvlan_tag, 1),
    IN_L2_L4(vxlan_v6, svlan_tag, 0),
    IN_L2_L4(vxlan_v6, first_vid, 9),
    IN_L2_L4(vxlan_v6, ip_version, 6),
    IN_L2_L4(vxlan_v6, udp_sport, 1000),
    IN_L2_L4(vxlan_v6, udp_dport, 2000),
    IN_ADDRESS(vxlan_v6, src_ipv4_src_ipv6, 0, 0xfd000000),
    IN_ADDRESS(vxlan_v6, src_ipv4_src_ipv6, 1, 0),
    IN_ADDRESS(vxlan_v6, src_ipv4_src_ipv6, 2, 0),
    IN_ADDRESS(vxlan_v6, src_ipv4_src_ipv6, 3, 1),
    IN_ADDRESS(vxlan_v6, dst_ipv4_dst_ipv6, 0, 0xfd000000),
    IN_ADDRESS(vxlan_v6, dst_ipv4_dst_ipv6, 1, 0),
    IN_ADDRESS(vxlan_v6, dst_ipv4_dst_ipv6, 2, 0),
    IN_ADDRESS(vxlan_v6, dst_ipv4_dst_ipv6, 3, 2),
    IN_L2_L4(gre, ethertype, 0x0800), /* without an Ethernet header, too */
    IN_L2_L4(gre, dmac_15_0, 0),
    IN_L2_L4(ip4in6, udp_dport, 2000),
    IN_L2_L4(mpls_udp, ip_version, 6),
    IN_L2_L4(inner_tags, first_prio, 5),
    IN_L2_L4(inner_tags, first_cfi, 1),
    IN_L2_L4(inner_tags, svlan_tag, 1),
    IN_L2_L4(inner_tags, frag, 1),
    IN_L2_L4(inner_tags, ip_dscp, 0x2e),
    IN_L2_L4(inner_tags, ip_ecn, 2),
    IN_L2_L4(tags, dmac_15_0, 0), /* no tunnel */

    MISC(tags, outer_second_prio, 3),
    MISC(tags, outer_second_cfi, 1),
    MISC(tags, outer_second_vid, 0x123),
    MISC(tags, outer_second_cvlan_tag, 1),
    MISC(tags, outer_second_svlan_tag, 0),
    MISC(tags, inner_second_vid, 0),
    MISC(inner_tags, inner_second_prio, 6),
    MISC(inner_tags, inner_second_cfi, 0),
    MISC(inner_tags, inner_second_vid, 0x45),
    MISC(inner_tags, inner_second_cvlan_tag, 1),
    MISC(inner_tags, inner_second_svlan_tag, 0),
    MISC(inner_tags, outer_second_vid, 0),
    MISC(gre_all, gre_protocol, 0x86dd),
    MISC(gre_all, gre_c_present, 1),
    MISC(gre_all, gre_k_present, 1),
    MISC(gre_all, gre_s_present, 1),
    MISC(gre_all, gre_key, 0x11223344),
    MISC(gre, gre_protocol, 0x0800),
    MISC(gre, gre_k_present, 0),
    MISC(nvgre, gre_key, 0xabcdef07),
    MISC(mpls_gre, gre_protocol, 0x8847),
    MISC(mpls_gre, gre_key, 5),
    MISC(vxlan, vxlan_vni, 0xabcdef),
    MISC(geneve, vxlan_vni, 0),
    MISC(gpe, vxlan_vni, 0),
    MISC(geneve, geneve_vni, 0x102030),
    MISC(geneve, geneve_oam, 1),
    MISC(geneve, geneve_protocol_type, 0x6558),
    MISC(geneve, geneve_opt_len, 2),
    MISC(geneve_ip, geneve_protocol_type, 0x0800),
    MISC(geneve_ip, geneve_opt_len, 0),
    MISC(vxlan, geneve_vni, 0),
    MISC(labels, outer_ipv6_flow_label, 0x12345),
    MISC(labels, inner_ipv6_flow_label, 0xabcde),
    MISC(esp, outer_esp_spi, 0xdeadbeef),
    MISC(esp, inner_esp_spi, 0),
    MISC(inner_esp, inner_esp_spi, 0x01020304),
    MISC(roce, bth_opcode, 0x81),
    MISC(roce, bth_dst_qp, 0xabcdef),
    MISC(vxlan, bth_opcode, 0),

    MPLS(mpls, outer_first_mpls, 0xabcdea09),
    MPLS(mpls, outer_first_mpls_over_udp, 0),
    MPLS(mpls_udp, outer_first_mpls_over_udp, 0x12345140),
    MPLS(mpls_gre, outer_first_mpls_over_gre, 0x54321140),
    MPLS(mpls_gre, outer_first_mpls, 0),
    MPLS(inner_mpls, inner_first_mpls, 0x00777140),

    MISC3(vxlan, inner_tcp_seq_num, 1),
    MISC3(vxlan, inner_tcp_ack_num, 2),
    MISC3(vxlan, outer_tcp_seq_num, 0),
    MISC3(tcp, outer_tcp_seq_num, 0x01020304),
    MISC3(tcp, outer_tcp_ack_num, 0x05060708),
    MISC3(gpe, outer_vxlan_gpe_vni, 0x123456),
    MISC3(gpe, outer_vxlan_gpe_next_protocol, 1),
    MISC3(gpe, outer_vxlan_gpe_flags, 0x0c),
    MISC3(vxlan, outer_vxlan_gpe_vni, 0),
    MISC3(icmp, icmp_type, 8),
    MISC3(icmp, icmp_code, 0),
    MISC3(icmp, icmp_header_data, 0x12340007),
    MISC3(icmp, icmpv6_type, 0),
    MISC3(icmpv6, icmpv6_type, 129),
    MISC3(icmpv6, icmpv6_code, 0),
    MISC3(icmpv6, icmpv6_header_data, 0x43210009),

    MISC5(vxlan, tunnel_header_0, 0x08000000),
    MISC5(vxlan, tunnel_header_1, 0xabcdef00),
    MISC5(geneve, tunnel_header_0, 0x02c06558),
    MISC5(gre, tunnel_header_0, 0),
};

static void param_set(struct prm_fte_match_param *param, const struct seen *s, uint32_t value)
{
    prm_set(param, s->first << 8 | s->width, value, s->name);
}

/* Makes a root table with one rule: this field has this value. */
static void rule(const struct seen *s, uint32_t value)
{
    struct prm_fte_match_param mask[1] = {0}, values[1] = {0};
    struct bench_fte fte = {.table = bench_table(b, 0, 0),
                            .param = values,
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirn}},
                            .num_dests = 1};

    param_set(mask, s, (uint32_t)(UINT32_MAX >> (32 - s->width)));
    param_set(values, s, value);
    ck_assert_int_eq(
        bench_try_group(b, fte.table, (uint8_t)(1u << s->first / 512), mask, &fte.group), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, fte.table, true), SYN_OK);
}

static bool takes(const uint8_t *frame, size_t len)
{
    bench_post_recv(&rq, bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    bench_rx(b, frame, len);
    return bench_cqe(&rq) != NULL;
}

START_TEST(a_field_of_a_frame_is_matched)
{
    const struct seen *s = &seen[_i];
    uint8_t frame[512];
    size_t len = frame_read(s->frame, frame);

    rule(s, s->value);
    ck_assert_msg(takes(frame, len), "%s is not 0x%x", s->name, s->value);
    for (unsigned bit = 0; bit < s->width; bit += 7) {
        rule(s, s->value ^ 1u << bit);
        ck_assert_msg(!takes(frame, len), "%s is also 0x%x", s->name, s->value ^ 1u << bit);
    }
}
END_TEST

static void has_row(size_t first, const char *name)
{
    bool found = first < 512; /* the outer headers */

    for (size_t i = 0; i < G_N_ELEMENTS(seen); i++) {
        found |= seen[i].first == first;
    }
    ck_assert_msg(found, "no row has the field %s", name);
}

/* No field can be matched without a row above. The outer headers are those of test_steering.c,
 * registers and the send queue those of test_steering_tx.c. */
START_TEST(each_field_has_a_row)
{
#define MATCH(in, section, layout, field, capability) MORE(in, section, layout, field)
#define MATCH_BYTES(in, section, layout, field, bytes, capability)                                 \
    has_row(PRM_OFFSET(fte_match_param, section) * 8 + PRM_OFFSET(layout, field) * 8, #field);
#define MORE(in, section, layout, field)                                                           \
    if (((in)&IN(NIC_RX)) && strncmp(#field, "metadata", 8) != 0) {                                \
        has_row(PRM_OFFSET(fte_match_param, section) * 8 +                                         \
                    PRM_FIELD_BIT(PRM_##layout##_##field##_FIELD),                                 \
                #field);                                                                           \
    }
#include "model/steering/match_fields.def"
}
END_TEST

/* Fields that need what this card does not have: other functions' ports, objects for the options of
 * GENEVE, MACsec, samples of a flexible parser; and those that only sent frames have. */
START_TEST(other_fields_are_refused)
{
#define NO(section, layout, field)                                                                 \
    {                                                                                              \
        PRM_MATCH_CRITERIA_##section,                                                              \
            (PRM_##layout##_##field##_FIELD) + (PRM_MATCH_CRITERIA_##section * 512u << 8)          \
    }
    static const struct {
        unsigned section;
        uint32_t field;
    } no[] = {
        NO(OUTER_HEADERS, fte_match_set_lyr_2_4, l4_type),
        NO(MISC_PARAMETERS, fte_match_set_misc, source_port),
        NO(MISC_PARAMETERS, fte_match_set_misc, source_sqn),
        NO(MISC_PARAMETERS, fte_match_set_misc, geneve_tlv_option_0_exist),
        NO(INNER_HEADERS, fte_match_set_lyr_2_4, l4_type),
        NO(MISC_PARAMETERS_2, fte_match_set_misc2, metadata_reg_a),
        NO(MISC_PARAMETERS_2, fte_match_set_misc2, ipsec_syndrome),
        NO(MISC_PARAMETERS_3, fte_match_set_misc3, geneve_tlv_option_0_data),
        NO(MISC_PARAMETERS_3, fte_match_set_misc3, gtpu_teid),
        NO(MISC_PARAMETERS_4, fte_match_set_misc4, prog_sample_field_value_0),
        NO(MISC_PARAMETERS_5, fte_match_set_misc5, macsec_tag_0),
        NO(MISC_PARAMETERS_5, fte_match_set_misc5, tunnel_header_2),
    };
    uint32_t table = bench_table(b, 0, 0), id;

    for (size_t i = 0; i < G_N_ELEMENTS(no); i++) {
        struct prm_fte_match_param mask[1] = {0};

        prm_set(mask, no[i].field, 1, "mask");
        ck_assert_int_eq(bench_try_group(b, table, (uint8_t)(1u << no[i].section), mask, &id),
                         SYN_FG_CRITERIA);
    }
}
END_TEST

/* Groups of one table may look at different sections of the same frame. */
START_TEST(groups_of_a_table_look_at_sections_of_their_own)
{
    static const struct seen wrong = MISC(vxlan, vxlan_vni, 1),
                             right = MISC5(vxlan, tunnel_header_1, 0);
    struct prm_fte_match_param mask[1] = {0}, values[1] = {0};
    uint32_t table = bench_table(b, 0, 1);
    struct prm_create_flow_group_in in[1] = {0};
    struct bench_fte fte = {.table = table,
                            .param = values,
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirn}},
                            .num_dests = 1};
    uint8_t frame[512];
    size_t len = frame_read(FRAME_vxlan, frame);

    param_set(mask, &wrong, 0xffffff);
    param_set(values, &wrong, 1);
    ck_assert_int_eq(
        bench_try_group(b, table, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS, mask, &fte.group),
        SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);

    memset(mask, 0, sizeof(mask));
    memset(values, 0, sizeof(values));
    param_set(mask, &right, UINT32_MAX);
    param_set(values, &right, 0xabcdef00);
    PRM_SET(create_flow_group_in, in, table_id, table);
    PRM_SET(create_flow_group_in, in, start_flow_index, 1);
    PRM_SET(create_flow_group_in, in, end_flow_index, 1);
    PRM_SET(create_flow_group_in, in, match_criteria_enable,
            1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_5);
    memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), mask, sizeof(mask));
    ck_assert_int_eq(flow_group_create(&b->rig.hca, 0, in, &fte.group), SYN_OK);
    fte.index = 1;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, table, true), SYN_OK);
    ck_assert(takes(frame, len));
}
END_TEST

/* A mask over all sections is read back as it was set, and so is the value under it. */
START_TEST(a_query_tells_the_whole_mask)
{
    struct prm_fte_match_param mask[1] = {0}, values[1];
    struct prm_query_flow_group_out out[1] = {0};
    union {
        struct prm_flow_context ctx[1];
        uint8_t bytes[PRM_SIZE(flow_context) + 64];
    } entry = {0};
    struct bench_fte fte = {.table = bench_table(b, 0, 0),
                            .param = values,
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirn}},
                            .num_dests = 1};
    const uint8_t *value = (const void *)PRM_PTR(flow_context, entry.ctx, match_value);

    for (size_t i = 0; i < G_N_ELEMENTS(seen); i++) {
        param_set(mask, &seen[i], (uint32_t)(UINT32_MAX >> (32 - seen[i].width)));
    }
    memset(values, 0xff, sizeof(values));
    ck_assert_int_eq(bench_try_group(b, fte.table, 0x5f, mask, &fte.group), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_group_query(&b->rig.hca, b->table_type, fte.table, fte.group, out),
                     SYN_OK);
    ck_assert_uint_eq(PRM_GET(query_flow_group_out, out, match_criteria_enable), 0x5f);
    ck_assert_mem_eq(PRM_PTR(query_flow_group_out, out, match_criteria), mask, sizeof(mask));
    ck_assert_int_eq(
        flow_entry_query(&b->rig.hca, b->table_type, fte.table, 0, entry.ctx, sizeof(entry)),
        SYN_OK);
    ck_assert_mem_eq(value, mask, sizeof(mask)); /* all ones, under the mask */
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("steering_match");
    TCase *tcase = tcase_create("steering_match");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_field_of_a_frame_is_matched, 0, (int)G_N_ELEMENTS(seen));
    tcase_add_test(tcase, each_field_has_a_row);
    tcase_add_test(tcase, other_fields_are_refused);
    tcase_add_test(tcase, groups_of_a_table_look_at_sections_of_their_own);
    tcase_add_test(tcase, a_query_tells_the_whole_mask);
    suite_add_tcase(suite, tcase);
    return suite;
}
