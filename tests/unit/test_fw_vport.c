/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that a driver reads back what it sets of its virtual port, and that other settings are
 * refused. */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define ROOM (PRM_SIZE(modify_nic_vport_context_in) + 256 * 8)

static struct fwd d;
static uint8_t in_bytes[ROOM], out_bytes[ROOM];

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* Begins a MODIFY_NIC_VPORT_CONTEXT of one field; returns its context. */
static struct prm_nic_vport_context *modify(const char *select)
{
    void *in = in_bytes;
    g_autofree char *path = g_strconcat("field_select.", select, NULL);

    memset(in_bytes, 0, sizeof(in_bytes));
    PRM_SET(modify_nic_vport_context_in, in, opcode, PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT);
    fwd_set(in, PRM_COMMAND(MODIFY_NIC_VPORT_CONTEXT)->in, path, 1);
    return PRM_PTR(modify_nic_vport_context_in, in, nic_vport_context);
}

static enum syn run(unsigned entries)
{
    return fwd_cmd(&d, in_bytes, PRM_SIZE(modify_nic_vport_context_in) + entries * (size_t)8,
                   out_bytes, 16);
}

static const struct prm_nic_vport_context *query(uint32_t list_type, unsigned entries)
{
    struct prm_query_nic_vport_context_in in[1] = {0};
    void *out = out_bytes;

    memset(out_bytes, 0xff, sizeof(out_bytes));
    PRM_SET(query_nic_vport_context_in, in, opcode, PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT);
    PRM_SET(query_nic_vport_context_in, in, allowed_list_type, list_type);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out,
                              PRM_SIZE(query_nic_vport_context_out) + entries * (size_t)8),
                      SYN_OK);
    return PRM_PTR(query_nic_vport_context_out, out, nic_vport_context);
}

/* Driver mlx5_modify_nic_vport_vlans(): the list replaces the one before. */
START_TEST(vlans_are_those_of_the_last_list)
{
    static const unsigned vlans[] = {7, 0, 4095};
    const struct prm_nic_vport_context *seen;
    struct prm_nic_vport_context *ctx = modify("addresses_list");
    uint8_t *list = PRM_PTR(nic_vport_context, ctx, current_uc_mac_address);

    PRM_SET(nic_vport_context, ctx, allowed_list_type, PRM_ALLOWED_LIST_TYPE_VLAN_LIST);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, 3);
    for (unsigned i = 0; i < 3; i++) {
        PRM_SET(vlan_layout, (void *)(list + i * PRM_SIZE(vlan_layout)), vlan, vlans[i]);
    }
    ck_assert_uint_eq(run(3), SYN_OK);
    seen = query(PRM_ALLOWED_LIST_TYPE_VLAN_LIST, 3);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, allowed_list_size), 3);
    list = out_bytes + PRM_SIZE(query_nic_vport_context_out);
    for (unsigned i = 0; i < 3; i++) {
        static const unsigned sorted[] = {0, 7, 4095};

        ck_assert_uint_eq(PRM_GET(vlan_layout, (void *)(list + i * PRM_SIZE(vlan_layout)), vlan),
                          sorted[i]);
    }
    /* a query with less room gets what fits, and the number of entries */
    seen = query(PRM_ALLOWED_LIST_TYPE_VLAN_LIST, 1);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, allowed_list_size), 3);

    ctx = modify("addresses_list");
    PRM_SET(nic_vport_context, ctx, allowed_list_type, PRM_ALLOWED_LIST_TYPE_VLAN_LIST);
    ck_assert_uint_eq(run(0), SYN_OK);
    seen = query(PRM_ALLOWED_LIST_TYPE_VLAN_LIST, 3);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, allowed_list_size), 0);
}
END_TEST

/* 1 << log_max_current_uc_list addresses, by QUERY_HCA_CAP. */
START_TEST(a_list_of_addresses_has_the_reported_limit)
{
    unsigned most = 1u << d.fw->caps.log_max_current_uc_list;
    struct prm_nic_vport_context *ctx = modify("addresses_list");

    ck_assert_uint_lt(most, 256);
    PRM_SET(nic_vport_context, ctx, allowed_list_type,
            PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, most);
    ck_assert_uint_eq(run(most), SYN_OK);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, most + 1);
    ck_assert_uint_eq(run(most + 1), SYN_LIMIT);
    ck_assert_uint_eq(PRM_GET(nic_vport_context,
                              query(PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS, 0),
                              allowed_list_size),
                      most);
    PRM_SET(nic_vport_context, ctx, allowed_list_type, PRM_ALLOWED_LIST_TYPE_VLAN_LIST + 1);
    ck_assert_uint_eq(run(most + 1), SYN_BAD_LIST);
}
END_TEST

/* Each kind has its own list (driver: mlx5e_vport_context_update()): frames to an address of the
 * list of unicasts go to its function, and to nobody else. */
START_TEST(no_group_is_among_the_unicasts)
{
    struct prm_nic_vport_context *ctx = modify("addresses_list");
    uint8_t *list = PRM_PTR(nic_vport_context, ctx, current_uc_mac_address);
    static const uint8_t group[6] = {0x33, 0x33, 0, 0, 0, 1};

    PRM_SET(nic_vport_context, ctx, allowed_list_type,
            PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, 2);
    list[2] = list[10] = 2;
    ck_assert_uint_eq(run(2), SYN_OK);
    memcpy(list + 10, group, 6);
    ck_assert_uint_eq(run(2), SYN_BAD_MAC);
    ck_assert(!mac_list_has(&d.fw->hca.vport->uc, group));
    PRM_SET(nic_vport_context, ctx, allowed_list_type,
            PRM_ALLOWED_LIST_TYPE_CURRENT_MC_MAC_ADDRESS);
    ck_assert_uint_eq(run(2), SYN_OK);
}
END_TEST

/* Driver mlx5_modify_nic_vport_mac_address(). A group address cannot be a function's own
 * address. */
START_TEST(the_address_can_be_another_one)
{
    static const uint8_t mac[6] = {2, 9, 8, 7, 6, 5};
    struct prm_nic_vport_context *ctx = modify("permanent_address");
    uint8_t *at = (uint8_t *)PRM_PTR(nic_vport_context, ctx, permanent_address) + 2;

    memcpy(at, mac, 6);
    ck_assert_uint_eq(run(0), SYN_OK);
    ck_assert_mem_eq(
        (const uint8_t *)PRM_PTR(nic_vport_context, query(0, 0), permanent_address) + 2, mac, 6);
    at[0] = 1;
    ck_assert_uint_eq(run(0), SYN_BAD_MAC);
    ck_assert_mem_eq(
        (const uint8_t *)PRM_PTR(nic_vport_context, query(0, 0), permanent_address) + 2, mac, 6);
}
END_TEST

START_TEST(the_promiscuous_modes_can_be_queried)
{
    for (unsigned what = 0; what < 8; what++) {
        struct prm_nic_vport_context *ctx = modify("promisc");
        const struct prm_nic_vport_context *seen;

        PRM_SET(nic_vport_context, ctx, promisc_uc, what & 1);
        PRM_SET(nic_vport_context, ctx, promisc_mc, what >> 1 & 1);
        PRM_SET(nic_vport_context, ctx, promisc_all, what >> 2);
        ck_assert_uint_eq(run(0), SYN_OK);
        seen = query(0, 0);
        ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, promisc_uc), what & 1);
        ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, promisc_mc), what >> 1 & 1);
        ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, promisc_all), what >> 2);
    }
}
END_TEST

/* Driver mlx5_nic_vport_update_local_lb(): one command sets both; a command for one leaves the
 * other. A driver that comes after a reset finds loopback enabled. */
START_TEST(local_loopback_is_disabled_by_kind)
{
    struct prm_nic_vport_context *ctx = modify("disable_uc_local_lb");
    const struct prm_nic_vport_context *seen;

    PRM_SET(nic_vport_context, ctx, disable_uc_local_lb, 1);
    PRM_SET(nic_vport_context, ctx, disable_mc_local_lb, 1);
    ck_assert_uint_eq(run(0), SYN_OK);
    seen = query(0, 0);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_uc_local_lb), 1);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_mc_local_lb), 0);
    PRM_SET(nic_vport_context, modify("disable_mc_local_lb"), disable_mc_local_lb, 1);
    ck_assert_uint_eq(run(0), SYN_OK);
    seen = query(0, 0);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_uc_local_lb), 1);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_mc_local_lb), 1);
    vport_release(d.fw->hca.vport);
    seen = query(0, 0);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_uc_local_lb), 0);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, seen, disable_mc_local_lb), 0);
}
END_TEST

START_TEST(the_mtu_has_bounds)
{
    struct prm_nic_vport_context *ctx = modify("mtu");

    PRM_SET(nic_vport_context, ctx, mtu, 1522);
    ck_assert_uint_eq(run(0), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, query(0, 0), mtu), 1522);
    PRM_SET(nic_vport_context, ctx, mtu, 10000 + 1);
    ck_assert_uint_eq(run(0), SYN_BAD_MTU);
    PRM_SET(nic_vport_context, ctx, mtu, 63);
    ck_assert_uint_eq(run(0), SYN_BAD_MTU);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, query(0, 0), mtu), 1522);
}
END_TEST

/* Only the manager of the card's ports may set these. */
START_TEST(fields_of_the_port_manager_are_refused)
{
    static const char *const fields[] = {"affiliation", "node_guid", "port_guid", "change_event",
                                         "min_inline"};

    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        modify(fields[i]);
        ck_assert_msg(run(0) == SYN_VPORT_FIELD, "%s", fields[i]);
    }
}
END_TEST

START_TEST(roce_can_be_turned_off_and_on)
{
    for (unsigned on = 0; on < 2; on++) {
        PRM_SET(nic_vport_context, modify("roce_en"), roce_en, on);
        ck_assert_uint_eq(run(0), SYN_OK);
        ck_assert_uint_eq(PRM_GET(nic_vport_context, query(0, 0), roce_en), on);
    }
}
END_TEST

/* QUERY_VPORT_COUNTER with clear: the next query counts from there. */
START_TEST(cleared_counters_start_at_0)
{
    struct prm_query_vport_counter_in in[1] = {0};
    struct prm_query_vport_counter_out out[1];
    const struct prm_traffic_counter *errors =
        PRM_PTR(query_vport_counter_out, out, received_errors);

    PRM_SET(query_vport_counter_in, in, opcode, PRM_CMD_OP_QUERY_VPORT_COUNTER);
    d.fw->hca.vport->counters.rx_bad_icrc = 3;
    for (unsigned clear = 0; clear < 2; clear++) {
        PRM_SET(query_vport_counter_in, in, clear, clear);
        ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
        ck_assert_uint_eq(PRM_GET(traffic_counter, errors, packets), 3);
    }
    d.fw->hca.vport->counters.rx_bad_icrc = 5;
    PRM_SET(query_vport_counter_in, in, clear, 0);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(traffic_counter, errors, packets), 2);
}
END_TEST

/* IBTA 10.9.1: a RoCE port has only the default partition. */
START_TEST(the_partition_table_has_the_default_one)
{
    struct prm_query_hca_vport_pkey_in in[1] = {0};
    static struct prm_query_hca_vport_pkey_out out[1];

    PRM_SET(query_hca_vport_pkey_in, in, opcode, PRM_CMD_OP_QUERY_HCA_VPORT_PKEY);
    PRM_SET(query_hca_vport_pkey_in, in, pkey_index, 0);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out_bytes, sizeof(out_bytes)), SYN_OK);
    memcpy(out, out_bytes, sizeof(out));
    ck_assert_uint_eq(
        PRM_GET(pkey, PRM_PTR_AT(query_hca_vport_pkey_out, (void *)out_bytes, pkey, 0), pkey),
        0xffff);
    PRM_SET(query_hca_vport_pkey_in, in, pkey_index, 0xfffe);
    ck_assert_uint_ne(fwd_cmd(&d, in, sizeof(in), out_bytes, sizeof(out_bytes)), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw vport");
    TCase *tc = tcase_create("vport");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, vlans_are_those_of_the_last_list);
    tcase_add_test(tc, a_list_of_addresses_has_the_reported_limit);
    tcase_add_test(tc, no_group_is_among_the_unicasts);
    tcase_add_test(tc, the_address_can_be_another_one);
    tcase_add_test(tc, the_promiscuous_modes_can_be_queried);
    tcase_add_test(tc, local_loopback_is_disabled_by_kind);
    tcase_add_test(tc, the_mtu_has_bounds);
    tcase_add_test(tc, fields_of_the_port_manager_are_refused);
    tcase_add_test(tc, roce_can_be_turned_off_and_on);
    tcase_add_test(tc, cleared_counters_start_at_0);
    tcase_add_test(tc, the_partition_table_has_the_default_one);
    suite_add_tcase(s, tc);
    return s;
}
