/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the commands on what flow entries do besides forwarding: packet reformat contexts, modify
 * header contexts, and bulks of flow counters.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/memory/mkey.h"
#include "model/steering/contexts.h"
#include "model/steering/steering.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define NIC_RX PRM_FLOW_TABLE_TYPE_NIC_RX
#define NIC_TX PRM_FLOW_TABLE_TYPE_NIC_TX

static struct fwd d;
static void *const in = (uint8_t[0x400]){0};
static void *const out = (uint8_t[0x4100]){0};
static uint16_t user, other; /* user contexts */

static uint16_t make_uctx(void)
{
    PRM_SET(create_uctx_in, in, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_uint_eq(fwd_cmd(&d, in, PRM_SIZE(create_uctx_in), out, 16), SYN_OK);
    return (uint16_t)PRM_GET(create_uctx_out, out, uid);
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_give_pages(&d, 8192), SYN_OK);
    memset(in, 0, 0x400);
    user = make_uctx();
    other = make_uctx();
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* Executes the command in `in`, and clears `in`. */
static enum syn run(uint16_t uid, uint16_t opcode, size_t len, size_t out_len)
{
    enum syn syn;

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    memset(out, 0, out_len);
    syn = fwd_cmd(&d, in, len, out, out_len);
    memset(in, 0, len);
    return syn;
}

/* -- packet reformat contexts ------------------------------------------------------------------ */

/* The command has room for `room` bytes of headers. */
static enum syn alloc_reformat(uint16_t uid, unsigned type, unsigned size, unsigned room,
                               uint32_t *id)
{
    struct prm_packet_reformat_context_in *context =
        PRM_PTR(alloc_packet_reformat_context_in, in, packet_reformat_context);
    uint8_t *data = PRM_PTR(packet_reformat_context_in, context, reformat_data);
    enum syn syn;

    PRM_SET(packet_reformat_context_in, context, reformat_type, type);
    PRM_SET(packet_reformat_context_in, context, reformat_data_size, size);
    for (unsigned i = 0; i < room; i++) {
        data[i] = (uint8_t)(i + 1);
    }
    syn = run(uid, PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT, (size_t)(data + room - (uint8_t *)in),
              16);
    *id = PRM_GET(alloc_packet_reformat_context_out, out, packet_reformat_id);
    return syn;
}

static enum syn query_reformat(uint16_t uid, uint32_t id, size_t out_len)
{
    PRM_SET(query_packet_reformat_context_in, in, packet_reformat_id, id);
    return run(uid, PRM_CMD_OP_QUERY_PACKET_REFORMAT_CONTEXT, 0x20, out_len);
}

static enum syn dealloc_reformat(uint16_t uid, uint32_t id)
{
    PRM_SET(dealloc_packet_reformat_context_in, in, packet_reformat_id, id);
    return run(uid, PRM_CMD_OP_DEALLOC_PACKET_REFORMAT_CONTEXT, 16, 16);
}

START_TEST(a_reformat_keeps_its_headers)
{
    struct prm_packet_reformat_context_in *context;
    const uint8_t *data;
    uint32_t id;

    ck_assert_uint_eq(alloc_reformat(0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, 50, 50, &id), SYN_OK);
    ck_assert_uint_eq(query_reformat(0, id, 0x22 + 50), SYN_OK);
    context = PRM_PTR_AT(query_packet_reformat_context_out, out, packet_reformat_context, 0);
    ck_assert_uint_eq(PRM_GET(packet_reformat_context_in, context, reformat_type),
                      PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL);
    ck_assert_uint_eq(PRM_GET(packet_reformat_context_in, context, reformat_data_size), 50);
    data = PRM_PTR(packet_reformat_context_in, context, reformat_data);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert_uint_eq(data[i], i + 1);
    }
    ck_assert_uint_eq(query_reformat(0, id, 0x22 + 49), SYN_OUT_LEN);
    ck_assert_uint_eq(dealloc_reformat(0, id), SYN_OK);
    ck_assert_uint_eq(query_reformat(0, id, 0x22 + 50), SYN_NO_REFORMAT);
    ck_assert_uint_eq(dealloc_reformat(0, id), SYN_NO_REFORMAT);
}
END_TEST

static const struct {
    unsigned type, size, room;
    enum syn syn;
} reformats[] = {
    {PRM_REFORMAT_TYPE_L2_TO_VXLAN, 50, 50, SYN_OK},
    {PRM_REFORMAT_TYPE_L2_TO_NVGRE, 42, 42, SYN_OK},
    {PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, REFORMAT_MAX, REFORMAT_MAX, SYN_OK},
    {PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, REFORMAT_MAX + 1, REFORMAT_MAX + 1, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, 0x3ff, 0x300, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, 50, 49, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL, 13, 13, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL, 0, 2, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, 14, 14, SYN_OK},
    {PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, 18, 18, SYN_OK},
    {PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, 19, 19, SYN_REFORMAT_SIZE},
    {PRM_REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4, 20, 20, SYN_REFORMAT_TYPE},
    {PRM_REFORMAT_TYPE_INSERT_HDR, 20, 20, SYN_REFORMAT_TYPE},
    {PRM_REFORMAT_TYPE_REMOVE_HDR, 20, 20, SYN_REFORMAT_TYPE},
    {0xff, 20, 20, SYN_REFORMAT_TYPE},
};

START_TEST(a_reformat_of_the_wrong_length_or_type_is_refused)
{
    uint32_t id;

    ck_assert_uint_eq(
        alloc_reformat(0, reformats[_i].type, reformats[_i].size, reformats[_i].room, &id),
        reformats[_i].syn);
}
END_TEST

/* -- modify header contexts -------------------------------------------------------------------- */

static enum syn alloc_modify(uint16_t uid, uint8_t type, unsigned n, unsigned there, uint32_t *id)
{
    enum syn syn;

    PRM_SET(alloc_modify_header_context_in, in, table_type, type);
    PRM_SET(alloc_modify_header_context_in, in, num_of_actions, n);
    for (unsigned i = 0; i < there; i++) {
        struct prm_set_action_in *action =
            PRM_PTR_AT(alloc_modify_header_context_in, in, actions, i);

        PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
        PRM_SET(set_action_in, action, field, PRM_MODIFY_HEADER_FIELD_OUT_SIPV4);
        PRM_SET(set_action_in, action, data, i);
    }
    syn = run(uid, PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT, 16 + there * 8, 16);
    *id = PRM_GET(alloc_modify_header_context_out, out, modify_header_id);
    return syn;
}

static enum syn dealloc_modify(uint16_t uid, uint32_t id)
{
    PRM_SET(dealloc_modify_header_context_in, in, modify_header_id, id);
    return run(uid, PRM_CMD_OP_DEALLOC_MODIFY_HEADER_CONTEXT, 16, 16);
}

START_TEST(lists_of_actions_have_a_bound)
{
    uint32_t id;

    ck_assert_uint_eq(alloc_modify(0, NIC_RX, REWRITE_MAX, REWRITE_MAX, &id), SYN_OK);
    ck_assert_uint_eq(dealloc_modify(0, id), SYN_OK);
    ck_assert_uint_eq(dealloc_modify(0, id), SYN_NO_MODIFY_HEADER);
    ck_assert_uint_eq(alloc_modify(0, NIC_TX, 1, 1, &id), SYN_OK);
    ck_assert_uint_eq(alloc_modify(0, NIC_RX, REWRITE_MAX + 1, REWRITE_MAX + 1, &id), SYN_LIMIT);
    ck_assert_uint_eq(alloc_modify(0, NIC_RX, 2, 1, &id), SYN_IN_LEN);
    ck_assert_uint_eq(alloc_modify(0, NIC_RX, 0, 1, &id), SYN_MH_ACTION);
    ck_assert_uint_eq(alloc_modify(0, PRM_FLOW_TABLE_TYPE_SNIFFER_RX, 1, 1, &id), SYN_FT_TYPE);
}
END_TEST

START_TEST(contexts_belong_to_the_user_who_made_them)
{
    uint32_t reformat, modify;

    ck_assert_uint_eq(alloc_reformat(user, PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL, 14, 14, &reformat),
                      SYN_OK);
    ck_assert_uint_eq(alloc_modify(user, NIC_RX, 1, 1, &modify), SYN_OK);
    ck_assert_uint_eq(query_reformat(user, reformat, 0x100), SYN_OK);
    ck_assert_uint_eq(query_reformat(other, reformat, 0x100), SYN_BAD_UID);
    ck_assert_uint_eq(dealloc_reformat(other, reformat), SYN_BAD_UID);
    ck_assert_uint_eq(dealloc_modify(other, modify), SYN_BAD_UID);

    PRM_SET(destroy_uctx_in, in, uid, user);
    ck_assert_uint_eq(run(0, PRM_CMD_OP_DESTROY_UCTX, PRM_SIZE(destroy_uctx_in), 16), SYN_OK);
    ck_assert_uint_eq(dealloc_reformat(0, reformat), SYN_NO_REFORMAT);
    ck_assert_uint_eq(dealloc_modify(0, modify), SYN_NO_MODIFY_HEADER);
}
END_TEST

/* -- bulks of counters ------------------------------------------------------------------------- */

static enum syn alloc_bulk(uint16_t uid, unsigned bulk, uint32_t *id)
{
    enum syn syn;

    PRM_SET(alloc_flow_counter_in, in, flow_counter_bulk, bulk);
    syn = run(uid, PRM_CMD_OP_ALLOC_FLOW_COUNTER, 16, 16);
    *id = PRM_GET(alloc_flow_counter_out, out, flow_counter_id);
    return syn;
}

static enum syn dealloc_counter(uint16_t uid, uint32_t id)
{
    PRM_SET(dealloc_flow_counter_in, in, flow_counter_id, id);
    return run(uid, PRM_CMD_OP_DEALLOC_FLOW_COUNTER, 16, 16);
}

static struct flow_counter *counter(uint32_t id)
{
    return flow_counter_find(&d.fw->hca, id);
}

/* Driver mlx5_fc_bulk_create(): it asks for all bits of the capability, and then uses the sum of
 * their counters, which begin at the number in the answer. */
START_TEST(a_bulk_has_consecutive_counters)
{
    static const unsigned sizes[] = {1, 2, 4, 7};
    uint32_t single, first[G_N_ELEMENTS(sizes)], id;

    ck_assert_uint_eq(alloc_bulk(0, 0, &single), SYN_OK);
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint32_t count = 128 * sizes[i];

        ck_assert_uint_eq(alloc_bulk(0, sizes[i], &first[i]), SYN_OK);
        ck_assert_uint_eq(first[i] % 128, 0);
        for (uint32_t n = 0; n < count; n++) {
            ck_assert_ptr_nonnull(counter(first[i] + n));
            ck_assert_uint_eq(counter(first[i] + n)->first, first[i]);
        }
        ck_assert(!counter(first[i] + count) || counter(first[i] + count)->first != first[i]);
    }
    ck_assert_uint_eq(dealloc_counter(0, first[1] + 1), SYN_FC_NOT_FOUND); /* only the whole */
    ck_assert_uint_eq(dealloc_counter(0, first[1]), SYN_OK);
    for (uint32_t n = 0; n < 256; n++) {
        ck_assert_ptr_null(counter(first[1] + n));
    }
    ck_assert_ptr_nonnull(counter(first[2]));
    ck_assert_ptr_nonnull(counter(single));
    ck_assert_uint_eq(alloc_bulk(0, 8, &id), SYN_FC_BULK);
    ck_assert_uint_eq(alloc_bulk(0, 0xff, &id), SYN_FC_BULK);
}
END_TEST

/* All numbers can be taken by bulks; then there is none left, and a bulk that is given back makes
 * room for another one. */
START_TEST(bulks_find_the_gaps)
{
    uint32_t id, some = 0, n = 0;

    while (alloc_bulk(0, 7, &id) == SYN_OK) {
        some = n++ == 5 ? id : some;
    }
    ck_assert_uint_eq(n, (65536 - 128) / 896);
    ck_assert_uint_eq(dealloc_counter(0, some), SYN_OK);
    ck_assert_uint_eq(alloc_bulk(0, 7, &id), SYN_OK);
    ck_assert_uint_eq(id, some);
    ck_assert_uint_eq(alloc_bulk(0, 7, &id), SYN_NO_MEMORY);
}
END_TEST

START_TEST(a_bulk_in_use_stays)
{
    struct obj *used;
    uint32_t id;

    ck_assert_uint_eq(alloc_bulk(user, 1, &id), SYN_OK);
    used = &counter(id + 77)->obj;
    used->refs++;
    ck_assert_uint_eq(dealloc_counter(user, id), SYN_IN_USE);
    ck_assert_ptr_nonnull(counter(id));
    used->refs--;
    ck_assert_uint_eq(dealloc_counter(other, id), SYN_BAD_UID);
    ck_assert_uint_eq(dealloc_counter(user, id), SYN_OK);
}
END_TEST

static enum syn query_bulk(uint16_t uid, uint32_t id, unsigned n, bool clear)
{
    PRM_SET(query_flow_counter_in, in, flow_counter_id, id);
    PRM_SET(query_flow_counter_in, in, num_of_counters, n);
    PRM_SET(query_flow_counter_in, in, clear, clear);
    return run(uid, PRM_CMD_OP_QUERY_FLOW_COUNTER, 32, 16 + n * 16);
}

static uint64_t packets(unsigned i)
{
    return PRM_GET(traffic_counter, PRM_PTR_AT(query_flow_counter_out, out, flow_statistics, i),
                   packets);
}

START_TEST(a_bulk_is_read_at_once)
{
    uint32_t id;

    ck_assert_uint_eq(alloc_bulk(user, 7, &id), SYN_OK);
    for (unsigned i = 0; i < 896; i++) {
        counter(id + i)->packets = i + 1;
    }
    ck_assert_uint_eq(query_bulk(user, id, 896, true), SYN_OK);
    for (unsigned i = 0; i < 896; i++) {
        ck_assert_uint_eq(packets(i), i + 1);
    }
    ck_assert_uint_eq(counter(id + 895)->packets, 0);
    counter(id)->packets = 5; /* another user reads zeros, and clears nothing */
    ck_assert_uint_eq(query_bulk(other, id, 4, true), SYN_OK);
    ck_assert_uint_eq(packets(0), 0);
    ck_assert_uint_eq(counter(id)->packets, 5);
}
END_TEST

static uint32_t make_key(uint16_t uid, uint64_t at, uint64_t len)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint32_t pdn;

    ck_assert_uint_eq(run(uid, PRM_CMD_OP_ALLOC_PD, 16, 16), SYN_OK);
    pdn = PRM_GET(alloc_pd_out, out, pd);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, at);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 1);
    prm_store64(PRM_PTR_AT(create_mkey_in, in, klm_pas_mtt, 0), at);
    ck_assert_uint_eq(run(0, PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in) + 16, 16), SYN_OK);
    return PRM_GET(create_mkey_out, out, mkey_index) << 8;
}

static enum syn dump(uint16_t uid, uint32_t id, unsigned n, uint32_t key, uint64_t at)
{
    PRM_SET(query_flow_counter_in, in, flow_counter_id, id);
    PRM_SET(query_flow_counter_in, in, num_of_counters, n);
    PRM_SET(query_flow_counter_in, in, dump_to_memory, 1);
    PRM_SET(query_flow_counter_in, in, mkey, key);
    PRM_SET(query_flow_counter_in, in, address, at);
    return run(uid, PRM_CMD_OP_QUERY_FLOW_COUNTER, 32, 16);
}

/* DPDK reads bulks into memory (mlx5_devx_cmd_flow_counter_query()). */
START_TEST(a_bulk_is_read_into_memory)
{
    uint64_t at = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t key = make_key(0, at, 4096), id;
    const uint8_t *memory = fake_host_ptr(&d.host, at, 4096);

    ck_assert_uint_eq(alloc_bulk(0, 1, &id), SYN_OK);
    counter(id + 127)->packets = 3;
    counter(id + 127)->bytes = 400;
    ck_assert_uint_eq(dump(0, id, 128, key, at + 8), SYN_OK);
    ck_assert_uint_eq(prm_load64(memory + 8 + 127 * 16), 3);
    ck_assert_uint_eq(prm_load64(memory + 8 + 127 * 16 + 8), 400);
    ck_assert_uint_eq(prm_load64(memory + 8 + 126 * 16), 0);
    ck_assert_uint_eq(dump(0, id, 128, key, at + 4096 - 127 * 16), SYN_FC_MEMORY);
    ck_assert_uint_eq(dump(0, id, 1, 0x777700, at), SYN_NO_MKEY);
    ck_assert_uint_eq(dump(user, id, 1, key, at), SYN_BAD_UID);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw-actions");
    TCase *tc = tcase_create("actions");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_reformat_keeps_its_headers);
    tcase_add_loop_test(tc, a_reformat_of_the_wrong_length_or_type_is_refused, 0,
                        (int)G_N_ELEMENTS(reformats));
    tcase_add_test(tc, lists_of_actions_have_a_bound);
    tcase_add_test(tc, contexts_belong_to_the_user_who_made_them);
    tcase_add_test(tc, a_bulk_has_consecutive_counters);
    tcase_add_test(tc, bulks_find_the_gaps);
    tcase_add_test(tc, a_bulk_in_use_stays);
    tcase_add_test(tc, a_bulk_is_read_at_once);
    tcase_add_test(tc, a_bulk_is_read_into_memory);
    suite_add_tcase(s, tc);
    return s;
}
