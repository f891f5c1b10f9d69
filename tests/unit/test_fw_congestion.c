/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the commands for congestion control: what a driver reads and changes (mlx5_ib's debugfs
 * cc_params, hw_counters), and how long that lasts.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static enum syn query_params(unsigned protocol, void *params)
{
    struct prm_query_cong_params_in in[1] = {0};
    struct prm_query_cong_params_out out[1];
    enum syn syn;

    PRM_SET(query_cong_params_in, in, opcode, PRM_CMD_OP_QUERY_CONG_PARAMS);
    PRM_SET(query_cong_params_in, in, cong_protocol, protocol);
    syn = fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
    memcpy(params, PRM_PTR(query_cong_params_out, out, congestion_parameters), 256);
    return syn;
}

static enum syn modify_params(unsigned protocol, uint32_t select, const void *params)
{
    struct prm_modify_cong_params_in in[1] = {0};
    uint32_t out[4];

    PRM_SET(modify_cong_params_in, in, opcode, PRM_CMD_OP_MODIFY_CONG_PARAMS);
    PRM_SET(modify_cong_params_in, in, cong_protocol, protocol);
    PRM_SET(modify_cong_params_in, in, field_select, select);
    memcpy(PRM_PTR(modify_cong_params_in, in, congestion_parameters), params, 256);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

static void query_statistics(bool clear, struct prm_query_cong_statistics_out *out)
{
    struct prm_query_cong_statistics_in in[1] = {0};

    PRM_SET(query_cong_statistics_in, in, opcode, PRM_CMD_OP_QUERY_CONG_STATISTICS);
    PRM_SET(query_cong_statistics_in, in, clear, clear);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(*out)), SYN_OK);
}

static void query_status(unsigned protocol, unsigned priority, bool *enable, bool *tag)
{
    struct prm_query_cong_status_in in[1] = {0};
    struct prm_query_cong_status_out out[1];

    PRM_SET(query_cong_status_in, in, opcode, PRM_CMD_OP_QUERY_CONG_STATUS);
    PRM_SET(query_cong_status_in, in, cong_protocol, protocol);
    PRM_SET(query_cong_status_in, in, priority, priority);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    *enable = PRM_GET(query_cong_status_out, out, enable);
    *tag = PRM_GET(query_cong_status_out, out, tag_enable);
}

static void modify_status(unsigned protocol, unsigned priority, bool enable, bool tag)
{
    struct prm_modify_cong_status_in in[1] = {0};
    uint32_t out[4];

    PRM_SET(modify_cong_status_in, in, opcode, PRM_CMD_OP_MODIFY_CONG_STATUS);
    PRM_SET(modify_cong_status_in, in, cong_protocol, protocol);
    PRM_SET(modify_cong_status_in, in, priority, priority);
    PRM_SET(modify_cong_status_in, in, enable, enable);
    PRM_SET(modify_cong_status_in, in, tag_enable, tag);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
}

#define RP PRM_CONG_PROTOCOL_R_ROCE_ECN_RP
#define NP PRM_CONG_PROTOCOL_R_ROCE_ECN_NP

/* The defaults are those that mlxconfig shows on a card that nobody configured. */
START_TEST(parameters_begin_as_a_cards)
{
    struct prm_cong_control_r_roce_ecn_rp rp[1];
    struct prm_cong_control_r_roce_ecn_np np[1];

    ck_assert_uint_eq(query_params(RP, rp), SYN_OK);
    ck_assert_uint_eq(query_params(NP, np), SYN_OK);
#define RP_IS(field, value) ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_rp, rp, field), value)
    RP_IS(clamp_tgt_rate, 0);
    RP_IS(clamp_tgt_rate_after_time_inc, 1);
    RP_IS(rpg_time_reset, 300);
    RP_IS(rpg_byte_reset, 32767);
    RP_IS(rpg_threshold, 1);
    RP_IS(rpg_max_rate, 0);
    RP_IS(rpg_ai_rate, 5);
    RP_IS(rpg_hai_rate, 50);
    RP_IS(rpg_gd, 11);
    RP_IS(rpg_min_dec_fac, 50);
    RP_IS(rpg_min_rate, 1);
    RP_IS(rate_to_set_on_first_cnp, 0);
    RP_IS(dce_tcp_g, 1019);
    RP_IS(dce_tcp_rtt, 1);
    RP_IS(rate_reduce_monitor_period, 4);
    RP_IS(initial_alpha_value, 1023);
#undef RP_IS
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, min_time_between_cnps), 4);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, cnp_dscp), 48);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, cnp_prio_mode), 0);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, cnp_802p_prio), 6);
}
END_TEST

/* The driver selects one field by its bit (mlx5_ib_set_cc_param_mask_val()); the others stay. */
START_TEST(only_what_is_selected_changes)
{
    struct prm_cong_control_r_roce_ecn_rp rp[1];
    struct prm_cong_control_r_roce_ecn_np np[1] = {0};

    memset(rp, 0xff, sizeof(rp));
    PRM_SET(cong_control_r_roce_ecn_rp, rp, rpg_ai_rate, 40);
    ck_assert_uint_eq(modify_params(RP, 1u << 7, rp), SYN_OK);
    ck_assert_uint_eq(query_params(RP, rp), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_rp, rp, rpg_ai_rate), 40);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_rp, rp, rpg_hai_rate), 50);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_rp, rp, rpg_time_reset), 300);
    PRM_SET(cong_control_r_roce_ecn_np, np, cnp_802p_prio, 3);
    ck_assert_uint_eq(modify_params(NP, 1u << 4, np), SYN_OK);
    ck_assert_uint_eq(query_params(NP, np), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, cnp_802p_prio), 3);
    ck_assert_uint_eq(PRM_GET(cong_control_r_roce_ecn_np, np, cnp_dscp), 48);
}
END_TEST

START_TEST(a_priority_is_switched_by_itself)
{
    bool enable, tag;

    for (unsigned protocol = RP; protocol <= NP; protocol++) {
        for (unsigned priority = 0; priority < 8; priority++) {
            query_status(protocol, priority, &enable, &tag);
            ck_assert(enable && tag);
        }
    }
    modify_status(RP, 3, false, true);
    modify_status(NP, 7, true, false);
    query_status(RP, 3, &enable, &tag);
    ck_assert(!enable && tag);
    query_status(NP, 7, &enable, &tag);
    ck_assert(enable && !tag);
    query_status(NP, 3, &enable, &tag);
    ck_assert(enable && tag);
    query_status(RP, 2, &enable, &tag);
    ck_assert(enable && tag);
}
END_TEST

START_TEST(counters_are_read_and_cleared)
{
    struct cong *cong = &d.fw->hca.vport->uplink->cong;
    struct prm_query_cong_statistics_out out[1];

    cong->counters.cnps_handled = 0x500000007ull;
    cong->counters.cnps_ignored = 2;
    cong->counters.marked = 3;
    cong->counters.cnps_sent = 4;
    cong->counters.sum_flows = 5;
    for (unsigned i = 0; i < 2; i++) {
        query_statistics(i == 1, out);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cnp_handled_high), 5);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cnp_handled_low), 7);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cnp_ignored_low), 2);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, np_ecn_marked_roce_packets_low),
                          3);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, np_cnp_sent_low), 4);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, sum_flows), 5);
        ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cur_flows), 0);
    }
    query_statistics(false, out);
    ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cnp_handled_high), 0);
    ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, rp_cnp_handled_low), 0);
    ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, np_cnp_sent_low), 0);
    ck_assert_uint_eq(PRM_GET(query_cong_statistics_out, out, sum_flows), 0);
}
END_TEST

/* No limit of a rate is above the speed of the link. */
START_TEST(the_link_is_as_fast_as_its_generation)
{
    ck_assert_uint_eq(d.fw->hca.vport->uplink->line_mbps, 100000);
    fwd_clear(&d);
    fwd_init_as(&d, "cx4lx");
    fwd_bring_up(&d);
    ck_assert_uint_eq(d.fw->hca.vport->uplink->line_mbps, 25000);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw_congestion");
    TCase *tc = tcase_create("fw_congestion");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, parameters_begin_as_a_cards);
    tcase_add_test(tc, only_what_is_selected_changes);
    tcase_add_test(tc, a_priority_is_switched_by_itself);
    tcase_add_test(tc, counters_are_read_and_cleared);
    tcase_add_test(tc, the_link_is_as_fast_as_its_generation);
    suite_add_tcase(s, tc);
    return s;
}
