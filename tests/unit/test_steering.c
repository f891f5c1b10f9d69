/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests flow tables, groups and entries: what can be made and destroyed, and where a frame goes. */
#include "model/steering/steering.h"
#include <check.h>
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/eth/tir.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define NIC_RX PRM_FLOW_TABLE_TYPE_NIC_RX
#define QUEUES 3

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct bench *b;
static struct hca *hca;
static struct bench_queue rqs[QUEUES];
static uint32_t tirs[QUEUES];

static void setup(void)
{
    b = bench_new();
    hca = &b->rig.hca;
    for (unsigned i = 0; i < QUEUES; i++) {
        bench_rq_new(b, NULL, &rqs[i]);
        tirs[i] = bench_direct_tir(b, rqs[i].num);
        for (unsigned n = 0; n < 1u << BENCH_LOG_RQ; n++) {
            bench_post_recv(&rqs[i], bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
}

static void teardown(void)
{
    bench_free(b);
}

/* -- helpers ----------------------------------------------------------------------------------- */

static void set_root(uint32_t table)
{
    ck_assert_int_eq(flow_table_set_root(hca, NIC_RX, table, true), SYN_OK);
}

static uint32_t counter_new(void)
{
    uint32_t id;

    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &id), SYN_OK);
    return id;
}

static enum syn entry(uint32_t table, uint32_t group, uint32_t index,
                      const struct prm_fte_match_set_lyr_2_4 *value, uint8_t dest_type,
                      uint32_t dest)
{
    const struct bench_fte fte = {.table = table,
                                  .group = group,
                                  .index = index,
                                  .value = value,
                                  .dests = {{dest_type, dest}},
                                  .num_dests = 1,
                                  .flow_tag = index + 0x100};

    return bench_fte_set(b, &fte);
}

static enum syn to_tir(uint32_t table, uint32_t group, uint32_t index,
                       const struct prm_fte_match_set_lyr_2_4 *value, unsigned queue)
{
    return entry(table, group, index, value, PRM_FLOW_DESTINATION_TYPE_TIR, tirs[queue]);
}

static enum syn to_table(uint32_t table, uint32_t group, uint32_t index, uint32_t next)
{
    return entry(table, group, index, NULL, PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next);
}

/* Makes a table of one entry for every frame, with the entry. */
static uint32_t catch_all(unsigned level, unsigned queue)
{
    uint32_t table = bench_table(b, level, 0);

    ck_assert_int_eq(to_tir(table, bench_group(b, table, 0, 0, NULL), 0, NULL, queue), SYN_OK);
    return table;
}

static struct bench_pkt packet(void)
{
    return (struct bench_pkt){.ip_version = 4,
                              .proto = 17,
                              .src = {10, 0, 0, 2},
                              .dst = {10, 0, 0, 1},
                              .sport = 1000,
                              .dport = 2000,
                              .tcp_flags = 0x12,
                              .payload = 20};
}

/* Sends the frame in; returns a bit for each queue that received it. */
static unsigned taken_by(const struct bench_pkt *pkt)
{
    uint8_t frame[256] = {0};
    unsigned bits = 0;

    bench_rx(b, frame, MAX(bench_build(frame, pkt), 60));
    for (unsigned i = 0; i < QUEUES; i++) {
        while (bench_cqe(&rqs[i])) {
            bits |= 1u << i;
            bench_post_recv(&rqs[i], bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
    return bits;
}

static enum syn set_miss(uint32_t table, uint8_t action, uint32_t next)
{
    struct prm_flow_table_context ctx[1] = {0};

    PRM_SET(flow_table_context, ctx, table_miss_action, action);
    PRM_SET(flow_table_context, ctx, table_miss_id, next);
    return flow_table_modify(hca, 0, NIC_RX, table, PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID, ctx);
}

/* -- tables ------------------------------------------------------------------------------------ */

START_TEST(tables_that_cannot_be_are_refused)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id, low = bench_table(b, 3, 1);

    ck_assert_int_eq(flow_table_create(hca, 0, PRM_FLOW_TABLE_TYPE_FDB, ctx, &id), SYN_FT_TYPE);
    ck_assert_int_eq(flow_table_create(hca, 0, 0xff, ctx, &id), SYN_FT_TYPE);
    PRM_SET(flow_table_context, ctx, level, STEERING_MAX_LEVEL);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_LIMIT);
    PRM_SET(flow_table_context, ctx, level, STEERING_MAX_LEVEL - 1);
    PRM_SET(flow_table_context, ctx, log_size, STEERING_LOG_FT_SIZE + 1);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_LIMIT);
    PRM_SET(flow_table_context, ctx, log_size, STEERING_LOG_FT_SIZE);
    PRM_SET(flow_table_context, ctx, table_miss_action, 7);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_FT_MISS_ACTION);
    PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
    PRM_SET(flow_table_context, ctx, table_miss_id, 0xabcdef);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_FT_NOT_FOUND);
    PRM_SET(flow_table_context, ctx, table_miss_id, low);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_FT_LEVEL);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, low), SYN_OK); /* nothing refers to it */
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, low), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(flow_table_query(hca, NIC_RX, low, ctx), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(set_miss(low, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(flow_table_set_root(hca, NIC_RX, low, true), SYN_FT_NOT_FOUND);
}
END_TEST

/* flow_table_context: a table's features are listed in flow_table_prop_layout (sw_owner, reformat,
 * decap, termination_table). Of sniffers none of them is reported. */
START_TEST(tables_that_ask_for_more_are_refused)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id;

    switch (_i) {
    case 0:
        PRM_SET(flow_table_context, ctx, sw_owner, 1);
        break;
    case 1:
        PRM_SET(flow_table_context, ctx, reformat_en, 1);
        break;
    case 2:
        PRM_SET(flow_table_context, ctx, decap_en, 1);
        break;
    case 3:
        PRM_SET(flow_table_context, ctx, termination_table, 1);
        break;
    case 4:
        PRM_SET(flow_table_context, ctx, lag_master_next_table_id, 1);
        break;
    }
    if (_i > 3) {
        ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_FT_FEATURE);
    }
    ck_assert_int_eq(flow_table_create(hca, 0, PRM_FLOW_TABLE_TYPE_SNIFFER_RX, ctx, &id),
                     SYN_FT_FEATURE);
}
END_TEST

START_TEST(there_are_as_many_tables_as_reported)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id, n = 0;

    while (flow_table_create(hca, 0, NIC_RX, ctx, &id) == SYN_OK) {
        n++;
    }
    ck_assert_uint_eq(n, (1u << STEERING_LOG_FT_NUM) - 1); /* number 0 names none */
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, 17), SYN_OK);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &id), SYN_OK);
    ck_assert_uint_eq(id, 17);
}
END_TEST

START_TEST(a_miss_leads_to_tables_of_higher_levels_only)
{
    uint32_t first = bench_table(b, 1, 0), same = bench_table(b, 1, 0), next = catch_all(2, 0);
    struct bench_pkt pkt = packet();

    set_root(first);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, 1);
    ck_assert_int_eq(set_miss(first, PRM_FLOW_TABLE_MISS_ACTION_FWD, first), SYN_FT_LEVEL);
    ck_assert_int_eq(set_miss(first, PRM_FLOW_TABLE_MISS_ACTION_FWD, same), SYN_FT_LEVEL);
    ck_assert_int_eq(set_miss(next, PRM_FLOW_TABLE_MISS_ACTION_FWD, first), SYN_FT_LEVEL);
    ck_assert_int_eq(set_miss(first, PRM_FLOW_TABLE_MISS_ACTION_FWD, next), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 1);
    ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, next, 1), SYN_IN_USE);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, next, 0), SYN_OK);
    ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, next, 1), SYN_OK);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, next), SYN_IN_USE); /* the miss */
    ck_assert_int_eq(set_miss(first, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0), SYN_OK);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, next), SYN_OK);
}
END_TEST

START_TEST(only_the_miss_table_can_be_modified)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t table = bench_table(b, 1, 0);

    ck_assert_int_eq(
        flow_table_modify(hca, 0, NIC_RX, table, PRM_MODIFY_FLOW_TABLE_LAG_NEXT_TABLE_ID, ctx),
        SYN_FT_MODIFY);
    ck_assert_int_eq(flow_table_modify(hca, 0, NIC_RX, table, 0, ctx), SYN_OK);
    ck_assert_int_eq(flow_table_modify(hca, 0, NIC_RX + 1, table, 0, ctx), SYN_FT_NOT_FOUND);
}
END_TEST

START_TEST(the_root_can_be_set_moved_unset_and_destroyed)
{
    uint32_t first = catch_all(0, 0), second = catch_all(0, 1), third = bench_table(b, 0, 0);
    struct bench_pkt pkt = packet();

    ck_assert_uint_eq(taken_by(&pkt), 0);
    set_root(first);
    ck_assert_uint_eq(taken_by(&pkt), 1);
    set_root(second);
    ck_assert_uint_eq(taken_by(&pkt), 2);
    ck_assert_int_eq(flow_table_set_root(hca, NIC_RX, first, false), SYN_FT_NOT_ROOT);
    ck_assert_int_eq(flow_table_set_root(hca, NIC_RX, second, false), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    /* The driver destroys its last root as it stands: update_root_ft_destroy(). */
    set_root(third);
    set_root(third);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, third), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 0);
}
END_TEST

/* -- groups ------------------------------------------------------------------------------------ */

START_TEST(groups_that_cannot_be_are_refused)
{
    struct prm_create_flow_group_in good[1] = {0};
    struct prm_create_flow_group_in in[1];
    uint32_t table = bench_table(b, 0, 4), id;

    PRM_SET(create_flow_group_in, good, table_id, table);
    PRM_SET(create_flow_group_in, good, start_flow_index, 4);
    PRM_SET(create_flow_group_in, good, end_flow_index, 7);
    ck_assert_int_eq(flow_group_create(hca, 0, good, &id), SYN_OK);
#define TRY(start, end, field, value, syn)                                                         \
    do {                                                                                           \
        memcpy(in, good, sizeof(in));                                                              \
        PRM_SET(create_flow_group_in, in, start_flow_index, start);                                \
        PRM_SET(create_flow_group_in, in, end_flow_index, end);                                    \
        PRM_SET(create_flow_group_in, in, field, value);                                           \
        ck_assert_int_eq(flow_group_create(hca, 0, in, &id), syn);                                 \
    } while (0)
    TRY(0, 3, table_id, 0xabcdef, SYN_FT_NOT_FOUND);
    TRY(0, 3, table_type, NIC_RX + 1, SYN_FT_NOT_FOUND);
    TRY(0, 3, group_type, PRM_FLOW_GROUP_TYPE_HASH_SPLIT, SYN_FG_TYPE);
    TRY(3, 2, group_type, 0, SYN_FG_RANGE);
    TRY(8, 16, group_type, 0, SYN_FG_RANGE);
    TRY(8, 0xffffffff, group_type, 0, SYN_FG_RANGE);
    TRY(0xffffffff, 0xffffffff, group_type, 0, SYN_FG_RANGE);
    TRY(0, 4, group_type, 0, SYN_FG_RANGE); /* overlaps */
    TRY(5, 6, group_type, 0, SYN_FG_RANGE);
    TRY(7, 9, group_type, 0, SYN_FG_RANGE);
    TRY(0, 15, group_type, 0, SYN_FG_RANGE);
    TRY(0, 3, match_criteria_enable, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_4, SYN_FG_CRITERIA);
    TRY(0, 3, match_criteria_enable, 1 << 7, SYN_FG_CRITERIA);
    TRY(0, 3, match_criteria_enable, 0xff, SYN_FG_CRITERIA);
    TRY(0, 3, group_type, 0, SYN_OK);
    TRY(8, 15, group_type, 0, SYN_OK);
#undef TRY
}
END_TEST

START_TEST(masks_beyond_what_frames_are_matched_on_are_refused)
{
    struct prm_create_flow_group_in in[1] = {0};
    struct prm_fte_match_param *criteria = PRM_PTR(create_flow_group_in, in, match_criteria);
    struct prm_fte_match_set_lyr_2_4 *outer = PRM_PTR(fte_match_param, criteria, outer_headers);
    uint32_t id;

    PRM_SET(create_flow_group_in, in, table_id, bench_table(b, 0, 4));
    /* a mask without its enable bit */
    criteria->bytes[0] = 1;
    ck_assert_int_eq(flow_group_create(hca, 0, in, &id), SYN_FG_CRITERIA);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS);
    /* every byte behind the outer headers: its section is not enabled */
    for (size_t i = PRM_SIZE(fte_match_set_lyr_2_4); i < PRM_SIZE(fte_match_param); i++) {
        criteria->bytes[i] = 0x80;
        ck_assert_int_eq(flow_group_create(hca, 0, in, &id), SYN_FG_CRITERIA);
        criteria->bytes[i] = 0;
    }
    PRM_SET(fte_match_set_lyr_2_4, outer, l4_type, 1);
    ck_assert_int_eq(flow_group_create(hca, 0, in, &id), SYN_FG_CRITERIA);
    PRM_SET(fte_match_set_lyr_2_4, outer, l4_type, 0);
    ck_assert_int_eq(flow_group_create(hca, 0, in, &id), SYN_OK);
}
END_TEST

/* -- entries ----------------------------------------------------------------------------------- */

START_TEST(entries_that_cannot_be_are_refused)
{
    uint32_t low = bench_table(b, 2, 0), table = bench_table(b, 2, 3);
    uint32_t group = bench_group(b, table, 2, 5, NULL);
    const struct bench_fte good = {.table = table,
                                   .group = group,
                                   .index = 2,
                                   .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]}},
                                   .num_dests = 1};
    struct bench_fte fte;

#define REFUSED(change, syn)                                                                       \
    do {                                                                                           \
        fte = good;                                                                                \
        change;                                                                                    \
        ck_assert_int_eq(bench_fte_set(b, &fte), syn);                                             \
    } while (0)
    REFUSED(fte.table = 0xabcdef, SYN_FT_NOT_FOUND);
    REFUSED(fte.group = group + 1, SYN_FTE_GROUP);
    REFUSED(fte.index = 1, SYN_FTE_GROUP);
    REFUSED(fte.index = 6, SYN_FTE_GROUP);
    REFUSED(fte.index = 0xffffffff, SYN_FTE_GROUP);
    REFUSED(fte.dests[0].id = 0xabcdef, SYN_FTE_DEST);
    REFUSED(fte.dests[0].type = PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
            fte.dests[0].id = 0, SYN_FTE_DEST);
    REFUSED(fte.dests[0].type = 0xff, SYN_FTE_DEST);
    REFUSED(fte.dests[0].type = PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
            fte.dests[0].id = table, SYN_FT_LEVEL);
    REFUSED(fte.dests[0].type = PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
            fte.dests[0].id = low, SYN_FT_LEVEL);
    REFUSED(fte.num_dests = STEERING_MAX_DEST + 1, SYN_LIMIT);
    REFUSED(fte.num_counters = STEERING_MAX_COUNTERS + 1, SYN_LIMIT);
    REFUSED(fte.num_counters = 1, SYN_FTE_COUNTER); /* counter 0 */
    REFUSED(fte.num_dests = 0, SYN_FTE_ACTION);
    REFUSED(fte.action = PRM_FLOW_ACTION_ALLOW, SYN_FTE_ACTION); /* with a destination */
    REFUSED(fte.action = PRM_FLOW_ACTION_FWD_DEST | PRM_FLOW_ACTION_DROP, SYN_FTE_ACTION);
    REFUSED(fte.action = PRM_FLOW_ACTION_FWD_DEST | PRM_FLOW_ACTION_DECAP, SYN_FTE_ACTION);
    REFUSED(fte.action = PRM_FLOW_ACTION_FWD_DEST; fte.num_counters = 1;
            fte.counters[0] = counter_new(), SYN_FTE_ACTION);
    REFUSED(fte.modify = 1, SYN_FTE_NOT_FOUND);
#undef REFUSED
    ck_assert_int_eq(bench_fte_set(b, &good), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &good), SYN_FTE_EXISTS);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, table, 3), SYN_FTE_NOT_FOUND);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, table, 2), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &good), SYN_OK);
}
END_TEST

/* A driver replaces the last entry of a table: it sets the new one, and then deletes the old one.
 * Of entries with equal values the oldest takes the frames, whatever its index. */
START_TEST(the_oldest_of_equal_entries_takes_the_frames)
{
    uint32_t table = bench_table(b, 0, 3), group = bench_group(b, table, 0, 7, NULL);
    struct bench_fte fte = {.table = table, .group = group, .num_dests = 1};
    const uint32_t indices[] = {5, 2, 7}, gone[] = {5, 7, 2};
    const unsigned then[] = {2, 2, 0}; /* who takes frames when that one is gone */
    struct bench_pkt pkt = packet();

    set_root(table);
    for (unsigned i = 0; i < 3; i++) {
        fte.index = indices[i];
        fte.dests[0] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirs[i == 1]};
        ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
        ck_assert_uint_eq(taken_by(&pkt), 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, table, group), SYN_IN_USE);
        ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, table, gone[i]), SYN_OK);
        ck_assert_uint_eq(taken_by(&pkt), then[i]);
    }
    ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, table, group), SYN_OK);
}
END_TEST

/* The lists come behind the context: a list that claims more than the command has is cut off. */
START_TEST(lists_longer_than_the_command_are_refused)
{
    uint8_t bytes[PRM_SIZE(set_fte_in) + 8] = {0};
    void *in = bytes;
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    uint32_t table = bench_table(b, 0, 0);

    PRM_SET(set_fte_in, in, table_id, table);
    PRM_SET(flow_context, ctx, group_id, bench_group(b, table, 0, 0, NULL));
    PRM_SET(flow_context, ctx, action, PRM_FLOW_ACTION_FWD_DEST);
    PRM_SET(flow_context, ctx, destination_list_size, 2);
    ck_assert_int_eq(flow_entry_set(hca, 0, in, sizeof(bytes), false), SYN_IN_LEN);
    PRM_SET(flow_context, ctx, destination_list_size, 0xffffff);
    ck_assert_int_eq(flow_entry_set(hca, 0, in, sizeof(bytes), false), SYN_LIMIT);
    PRM_SET(flow_context, ctx, destination_list_size, 1);
    PRM_SET(flow_context, ctx, flow_counter_list_size, 1);
    ck_assert_int_eq(flow_entry_set(hca, 0, in, sizeof(bytes), false), SYN_IN_LEN);
}
END_TEST

START_TEST(entries_hold_what_they_name)
{
    uint32_t root = bench_table(b, 0, 1), next = bench_table(b, 1, 0), counter = counter_new();
    const struct bench_fte fte = {.table = root,
                                  .group = bench_group(b, root, 0, 1, NULL),
                                  .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]},
                                            {PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next}},
                                  .num_dests = 2,
                                  .counters = {counter},
                                  .num_counters = 1};

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(tir_destroy(hca, 0, tirs[0]), SYN_IN_USE);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, next), SYN_IN_USE);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, root), SYN_IN_USE); /* its group */
    ck_assert_int_eq(flow_counter_dealloc(hca, 0, counter), SYN_IN_USE);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, root, 0), SYN_OK);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, root, 0), SYN_FTE_NOT_FOUND);
    ck_assert_int_eq(tir_destroy(hca, 0, tirs[0]), SYN_OK);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, next), SYN_OK);
    ck_assert_int_eq(flow_counter_dealloc(hca, 0, counter), SYN_OK);
    ck_assert_int_eq(flow_counter_dealloc(hca, 0, counter), SYN_FC_NOT_FOUND);
    ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, root, fte.group), SYN_OK);
    ck_assert_int_eq(flow_group_destroy(hca, 0, NIC_RX, root, fte.group), SYN_FG_NOT_FOUND);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, root), SYN_OK);
}
END_TEST

START_TEST(a_modify_moves_the_references)
{
    uint32_t root = bench_table(b, 0, 0);
    struct bench_fte fte = {.table = root,
                            .group = bench_group(b, root, 0, 0, NULL),
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]}},
                            .num_dests = 1};
    struct bench_pkt pkt = packet();

    set_root(root);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    fte.dests[0].id = tirs[1];
    fte.modify = 1 << PRM_SET_FTE_MODIFY_DESTINATION_LIST;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 2);
    ck_assert_int_eq(tir_destroy(hca, 0, tirs[0]), SYN_OK);
    ck_assert_int_eq(tir_destroy(hca, 0, tirs[1]), SYN_IN_USE);
    /* one that fails changes nothing */
    fte.dests[0].id = 0xabcdef;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FTE_DEST);
    fte.dests[0].id = tirs[2];
    fte.modify |= 0x80;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FTE_MODIFY);
    ck_assert_uint_eq(taken_by(&pkt), 2);
}
END_TEST

/* modify_enable_mask: a bit for each of action, flow tag, destinations, counters. */
START_TEST(a_modify_changes_what_it_names)
{
    uint32_t root = bench_table(b, 0, 0), first = counter_new(), second = counter_new();
    struct bench_fte fte = {.table = root,
                            .group = bench_group(b, root, 0, 0, NULL),
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]}},
                            .num_dests = 1,
                            .counters = {first},
                            .num_counters = 1};
    struct bench_pkt pkt = packet();

    set_root(root);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    fte.counters[0] = second;
    fte.modify = 1 << PRM_SET_FTE_MODIFY_FLOW_COUNTERS;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 1);
    ck_assert_uint_eq(flow_counter_find(hca, first)->packets, 0);
    ck_assert_uint_eq(flow_counter_find(hca, second)->packets, 1);
    ck_assert_int_eq(flow_counter_dealloc(hca, 0, first), SYN_OK);
    ck_assert_int_eq(flow_counter_dealloc(hca, 0, second), SYN_IN_USE);
    /* an action that goes nowhere, and the destinations that it still has */
    fte.action = PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_COUNT;
    fte.num_dests = 0;
    fte.modify = 1 << PRM_SET_FTE_MODIFY_ACTION;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FTE_ACTION);
    ck_assert_uint_eq(taken_by(&pkt), 1);
    fte.modify |= 1 << PRM_SET_FTE_MODIFY_DESTINATION_LIST | 1 << PRM_SET_FTE_MODIFY_FLOW_TAG;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    ck_assert_uint_eq(flow_counter_find(hca, second)->packets, 3);
}
END_TEST

START_TEST(queries_tell_what_was_set)
{
    struct prm_fte_match_set_lyr_2_4 mask[1] = {0};
    struct prm_fte_match_set_lyr_2_4 value[1] = {0};
    struct prm_query_flow_group_out out[1] = {0};
    uint8_t ctx_bytes[PRM_SIZE(flow_context) + 16] = {0};
    void *ctx = ctx_bytes, *counters;
    struct prm_flow_table_context table_ctx[1] = {0};
    uint32_t table = bench_table(b, 5, 3), counter = counter_new(), group;
    struct bench_fte fte = {.table = table,
                            .index = 6,
                            .value = value,
                            .flow_tag = 0x123456,
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[1]}},
                            .num_dests = 1,
                            .counters = {counter},
                            .num_counters = 1};

    PRM_SET(fte_match_set_lyr_2_4, mask, ethertype, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, value, ethertype, 0x0806);
    fte.group = group = bench_group(b, table, 4, 7, mask);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_query(hca, NIC_RX, table, table_ctx), SYN_OK);
    ck_assert_uint_eq(PRM_GET(flow_table_context, table_ctx, level), 5);
    ck_assert_uint_eq(PRM_GET(flow_table_context, table_ctx, log_size), 3);
    ck_assert_int_eq(flow_group_query(hca, NIC_RX, table, group, out), SYN_OK);
    ck_assert_uint_eq(PRM_GET(query_flow_group_out, out, start_flow_index), 4);
    ck_assert_uint_eq(PRM_GET(query_flow_group_out, out, end_flow_index), 7);
    ck_assert_mem_eq(PRM_PTR(query_flow_group_out, out, match_criteria), mask, sizeof(mask));
    ck_assert_int_eq(flow_group_query(hca, NIC_RX, table, group + 1, out), SYN_FG_NOT_FOUND);
    ck_assert_int_eq(flow_entry_query(hca, NIC_RX, table, 6, ctx, sizeof(ctx_bytes) - 1),
                     SYN_OUT_LEN);
    ck_assert_int_eq(flow_entry_query(hca, NIC_RX, table, 6, ctx, sizeof(ctx_bytes)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(flow_context, ctx, group_id), group);
    ck_assert_uint_eq(PRM_GET(flow_context, ctx, flow_tag), 0x123456);
    ck_assert_mem_eq(PRM_PTR(flow_context, ctx, match_value), value, sizeof(value));
    ck_assert_uint_eq(
        PRM_GET(dest_format_struct, PRM_PTR_AT(flow_context, ctx, destination, 0), destination_id),
        tirs[1]);
    counters = PRM_PTR_AT(flow_context, ctx, destination, 1);
    ck_assert_uint_eq(PRM_GET(flow_counter_list, counters, flow_counter_id), counter);
    ck_assert_int_eq(flow_entry_query(hca, NIC_RX, table, 5, ctx, sizeof(ctx_bytes)),
                     SYN_FTE_NOT_FOUND);
}
END_TEST

/* -- the path of a frame ----------------------------------------------------------------------- */

/* Groups are tried by their indices, whatever the order in which they were made. */
START_TEST(lower_indices_come_first)
{
    struct prm_fte_match_set_lyr_2_4 mask[1] = {0};
    struct prm_fte_match_set_lyr_2_4 value[1] = {0};
    uint32_t table = bench_table(b, 0, 4), any, dport;
    struct bench_pkt pkt = packet();

    PRM_SET(fte_match_set_lyr_2_4, mask, udp_dport, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, value, udp_dport, 2000);
    any = bench_group(b, table, 8, 8, NULL);
    dport = bench_group(b, table, 0, 3, mask);
    ck_assert_int_eq(to_tir(table, any, 8, NULL, 0), SYN_OK);
    ck_assert_int_eq(to_tir(table, dport, 3, value, 1), SYN_OK);
    set_root(table);
    ck_assert_uint_eq(taken_by(&pkt), 2);
    pkt.dport = 2001;
    ck_assert_uint_eq(taken_by(&pkt), 1);
}
END_TEST

/* One field of the outer headers after the other: a frame with the value is taken, a frame without
 * is not. */
START_TEST(every_field_is_matched)
{
#define FIELD(f, v)                                                                                \
    PRM_SET(fte_match_set_lyr_2_4, mask, f,                                                        \
            (uint32_t)(((1ull << (PRM_fte_match_set_lyr_2_4_##f##_FIELD & 0xff)) - 1)));           \
    PRM_SET(fte_match_set_lyr_2_4, value, f, v)
    struct prm_fte_match_set_lyr_2_4 mask[1] = {0};
    struct prm_fte_match_set_lyr_2_4 value[1] = {0};
    uint32_t table = bench_table(b, 0, 0), group;
    struct bench_pkt with = packet(), without = packet();

    switch (_i) {
    case 0:
        FIELD(ethertype, 0x0800);
        without.ip_version = 6;
        break;
    case 1:
        FIELD(ip_version, 6);
        with.ip_version = 6;
        break;
    case 2:
        FIELD(ip_protocol, 6);
        with.proto = 6;
        break;
    case 3:
        FIELD(udp_sport, 1000);
        without.sport = 1001;
        break;
    case 4:
        FIELD(tcp_dport, 2000);
        with.proto = 6; /* the same port of UDP does not match */
        break;
    case 5:
        FIELD(tcp_flags, 0x12);
        with.proto = without.proto = 6;
        without.tcp_flags = 0x10;
        break;
    case 6:
        FIELD(cvlan_tag, 1);
        FIELD(first_vid, 7);
        with.vlan = without.vlan = true;
        with.tci = 0x2007;
        without.tci = 0x2008;
        break;
    case 7:
        FIELD(first_prio, 5);
        with.vlan = true;
        with.tci = 5 << 13;
        break;
    case 8:
        memset(PRM_PTR(fte_match_set_lyr_2_4, mask, dst_ipv4_dst_ipv6) + 12, 0xff, 4);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, value, dst_ipv4_dst_ipv6) + 12, with.dst, 4);
        without.dst[3] = 9;
        break;
    case 9:
        with.ip_version = without.ip_version = 6;
        memset(PRM_PTR(fte_match_set_lyr_2_4, mask, src_ipv4_src_ipv6), 0xff, 16);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, value, src_ipv4_src_ipv6), with.src, 16);
        without.src[15] = 9;
        break;
    case 10:
        FIELD(dmac_47_16, 0xffffffff);
        FIELD(dmac_15_0, 0xffff);
        with.dmac = broadcast;
        break;
    case 11:
        FIELD(smac_47_16, 0x02000000);
        FIELD(smac_15_0, 2);
        FIELD(ttl_hoplimit, 64);
        FIELD(frag, 0);
        FIELD(udp_dport, 2000);
        without.dport = 2001;
        break;
    }
    group = bench_group(b, table, 0, 0, mask);
    ck_assert_int_eq(to_tir(table, group, 0, value, 0), SYN_OK);
    set_root(table);
    ck_assert_uint_eq(taken_by(&with), 1);
    ck_assert_uint_eq(taken_by(&without), 0);
}
END_TEST

/* Value bits outside the mask do not count. */
START_TEST(values_are_masked)
{
    struct prm_fte_match_set_lyr_2_4 mask[1] = {0};
    struct prm_fte_match_set_lyr_2_4 value[1];
    uint32_t table = bench_table(b, 0, 0);
    struct bench_pkt pkt = packet();

    memset(value, 0xff, sizeof(value));
    PRM_SET(fte_match_set_lyr_2_4, mask, dmac_47_16, 0x01000000);
    PRM_SET(fte_match_set_lyr_2_4, value, dmac_47_16, 0xfeffffff);
    ck_assert_int_eq(to_tir(table, bench_group(b, table, 0, 0, mask), 0, value, 0), SYN_OK);
    set_root(table);
    ck_assert_uint_eq(taken_by(&pkt), 1); /* any unicast */
}
END_TEST

START_TEST(a_chain_of_tables_is_walked_to_its_end)
{
    uint32_t table = catch_all(STEERING_MAX_LEVEL - 1, 2), before;
    struct bench_pkt pkt = packet();

    for (unsigned level = STEERING_MAX_LEVEL - 1; level-- > 0;) {
        before = bench_table(b, level, 0);
        if (level % 2) {
            ck_assert_int_eq(set_miss(before, PRM_FLOW_TABLE_MISS_ACTION_FWD, table), SYN_OK);
        } else {
            ck_assert_int_eq(to_table(before, bench_group(b, before, 0, 0, NULL), 0, table),
                             SYN_OK);
        }
        table = before;
    }
    set_root(table);
    ck_assert_uint_eq(taken_by(&pkt), 4);
}
END_TEST

START_TEST(every_destination_gets_a_copy_and_counters_count)
{
    uint32_t root = bench_table(b, 0, 0), next = catch_all(1, 2), counter = counter_new();
    const struct bench_fte fte = {.table = root,
                                  .group = bench_group(b, root, 0, 0, NULL),
                                  .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]},
                                            {PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next},
                                            {PRM_FLOW_DESTINATION_TYPE_TIR, tirs[1]}},
                                  .num_dests = 3,
                                  .counters = {counter},
                                  .num_counters = 1};
    struct bench_pkt pkt = packet();

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(root);
    ck_assert_uint_eq(taken_by(&pkt), 7);
    ck_assert_uint_eq(taken_by(&pkt), 7);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 2);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->bytes, 2 * 62);
}
END_TEST

START_TEST(dropped_frames_are_counted_and_go_nowhere)
{
    uint32_t root = bench_table(b, 0, 0), counter = counter_new();
    const struct bench_fte fte = {.table = root,
                                  .group = bench_group(b, root, 0, 0, NULL),
                                  .action = PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_COUNT,
                                  .counters = {counter},
                                  .num_counters = 1};
    struct bench_pkt pkt = packet();

    ck_assert_int_eq(set_miss(root, PRM_FLOW_TABLE_MISS_ACTION_FWD, catch_all(1, 0)), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(root);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 1);
}
END_TEST

/* Levels bound how deep rules lead, not how wide: 32 branches at each of 128 levels. The walk
 * ends. */
START_TEST(a_fan_of_rules_does_not_keep_the_device)
{
    uint32_t counter = counter_new(), next = 0;
    struct bench_pkt pkt = packet();

    for (unsigned level = STEERING_MAX_LEVEL; level-- > 0;) {
        uint32_t table = bench_table(b, level, 0);
        struct bench_fte fte = {.table = table,
                                .group = bench_group(b, table, 0, 0, NULL),
                                .num_dests = STEERING_MAX_DEST,
                                .counters = {counter},
                                .num_counters = 1};

        for (unsigned i = 0; i < STEERING_MAX_DEST; i++) {
            fte.dests[i] = next ? (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next}
                                : (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]};
        }
        ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
        next = table;
    }
    set_root(next);
    ck_assert_uint_eq(taken_by(&pkt), 1);
    /* a step for each table, one for its group */
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, STEERING_MAX_STEPS / 2);
}
END_TEST

/* set_fte_in.ignore_flow_level: "A destination table may be at any level". Without it the level
 * must rise. */
START_TEST(an_entry_may_ignore_levels)
{
    uint32_t low = catch_all(1, 1), high = bench_table(b, 5, 0);
    struct bench_fte fte = {.table = high,
                            .group = bench_group(b, high, 0, 0, NULL),
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, low}},
                            .num_dests = 1};
    struct bench_pkt pkt = packet();

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FT_LEVEL);
    fte.any_level = true;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(high);
    ck_assert_uint_eq(taken_by(&pkt), 2);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, low), SYN_IN_USE);
}
END_TEST

/* Ignored levels make loops possible: the walk is cut off, the actions on its way were executed,
 * and the device continues. */
START_TEST(a_loop_of_tables_ends)
{
    uint32_t counter = counter_new(), a = bench_table(b, 3, 0), z = bench_table(b, 3, 0);
    struct bench_fte fte = {.table = a,
                            .group = bench_group(b, a, 0, 0, NULL),
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, z}},
                            .num_dests = 1,
                            .counters = {counter},
                            .num_counters = 1,
                            .any_level = true};
    struct bench_pkt pkt = packet();

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    fte.table = z;
    fte.group = bench_group(b, z, 0, 0, NULL);
    fte.dests[0].id = a;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(a);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, STEERING_MAX_STEPS / 2);
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, 1);

    /* a table that leads to itself cannot be destroyed until its entry is deleted */
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, z, 0), SYN_OK);
    fte.dests[0].id = z;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 0);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, z, 0), SYN_OK);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, a, 0), SYN_OK);
    ck_assert_uint_eq(taken_by(&pkt), 0);
}
END_TEST

/* Driver: devx_is_obj_create_cmd() passes on a process's flow tables, groups, entries and counters
 * with its uid. They belong to the process, and lead only to its own objects. */
START_TEST(a_user_context_has_tables_of_its_own)
{
    struct prm_flow_table_context ctx[1] = {0};
    struct prm_create_flow_group_in in[1] = {0};
    uint32_t table, other, group, counter, kernels = counter_new(), id;
    unsigned left;
    struct bench_fte fte = {.num_dests = 1, .uid = RIG_USER};

    ck_assert_int_eq(flow_table_create(hca, RIG_USER, NIC_RX, ctx, &table), SYN_OK);
    PRM_SET(flow_table_context, ctx, level, 1);
    ck_assert_int_eq(flow_table_create(hca, RIG_USER, NIC_RX, ctx, &other), SYN_OK);
    ck_assert_int_eq(flow_counter_alloc(hca, RIG_USER, 1, &counter), SYN_OK);
    PRM_SET(create_flow_group_in, in, table_type, NIC_RX);
    PRM_SET(create_flow_group_in, in, table_id, table);
    ck_assert_int_eq(flow_group_create(hca, RIG_USER + 1, in, &id), SYN_BAD_UID);
    ck_assert_int_eq(flow_group_create(hca, RIG_USER, in, &group), SYN_OK);

    fte.table = table;
    fte.group = group;
    fte.dests[0] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]};
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_BAD_UID); /* the kernel's TIR */
    fte.dests[0] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, bench_table(b, 1, 0)};
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_BAD_UID); /* the kernel's table */
    fte.dests[0].id = other;
    fte.counters[0] = kernels;
    fte.num_counters = 1;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_BAD_UID); /* the kernel's counter */
    fte.counters[0] = counter;
    fte.uid = RIG_USER + 1;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_BAD_UID); /* another's table */
    fte.uid = RIG_USER;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);

    ck_assert_int_eq(flow_table_modify(hca, RIG_USER + 1, NIC_RX, table, 0, ctx), SYN_BAD_UID);
    ck_assert_int_eq(flow_entry_delete(hca, RIG_USER + 1, NIC_RX, table, 0), SYN_BAD_UID);
    ck_assert_int_eq(flow_group_destroy(hca, RIG_USER + 1, NIC_RX, table, group), SYN_BAD_UID);
    ck_assert_int_eq(flow_table_destroy(hca, RIG_USER + 1, NIC_RX, table), SYN_BAD_UID);
    ck_assert_int_eq(flow_counter_dealloc(hca, RIG_USER + 1, counter), SYN_BAD_UID);

    /* what the context leaves behind is destroyed at once, except what the kernel's objects refer
     * to */
    set_root(table);
    ck_assert_int_eq(to_table(bench_table(b, 0, 0), 1, 0, other), SYN_FTE_GROUP);
    id = bench_table(b, 0, 0);
    ck_assert_int_eq(to_table(id, bench_group(b, id, 0, 0, NULL), 0, other), SYN_OK);
    while (!flow_tables_empty_of(hca, RIG_USER)) {
    }
    ck_assert_uint_eq(flow_tables_destroy_of(hca, RIG_USER, &left), 1);
    ck_assert_uint_eq(left, 1);
    ck_assert_int_eq(flow_counter_dealloc(hca, RIG_USER, counter), SYN_OK);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, id, 0), SYN_OK);
    ck_assert_uint_eq(flow_tables_destroy_of(hca, RIG_USER, &left), 1);
    ck_assert_uint_eq(left, 0);
}
END_TEST

START_TEST(frames_of_every_length_and_noise_are_looked_at_safely)
{
    uint32_t seed = 1;

    set_root(catch_all(0, 0));
    for (unsigned i = 0; i < 4000; i++) {
        uint8_t *frame = g_malloc(14 + i % 100); /* exactly that length, for ASan */

        for (unsigned n = 0; n < 14 + i % 100; n++) {
            seed = seed * 1664525 + 1013904223;
            frame[n] = (uint8_t)(seed >> 24);
        }
        memcpy(frame, bench_mac, 6);
        prm_store16(frame + 12, (const uint16_t[]){0x0800, 0x86dd, 0x8100, 0x88a8}[i % 4]);
        if (14 + i % 100 > 14 && i % 8 < 4) {
            frame[14] = i % 4 == 1 ? 0x60 : 0x45;
        }
        bench_rx(b, frame, 14 + i % 100);
        if (bench_cqe(&rqs[0])) {
            bench_post_recv(&rqs[0], FAKE_HOST_BASE + FAKE_HOST_SIZE - 4096, 4096);
        }
        g_free(frame);
    }
}
END_TEST

START_TEST(reset_takes_everything_away)
{
    struct bench_pkt pkt = packet();
    uint8_t frame[128];

    set_root(catch_all(0, 0));
    counter_new();
    hca_reset(hca);
    bench_rx(b, frame, bench_build(frame, &pkt));
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, 1);
    ck_assert_uint_eq(hca->flow_counters.count, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("steering");
    TCase *tcase = tcase_create("steering");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, tables_that_cannot_be_are_refused);
    tcase_add_loop_test(tcase, tables_that_ask_for_more_are_refused, 0, 5);
    tcase_add_test(tcase, there_are_as_many_tables_as_reported);
    tcase_add_test(tcase, a_miss_leads_to_tables_of_higher_levels_only);
    tcase_add_test(tcase, only_the_miss_table_can_be_modified);
    tcase_add_test(tcase, the_root_can_be_set_moved_unset_and_destroyed);
    tcase_add_test(tcase, groups_that_cannot_be_are_refused);
    tcase_add_test(tcase, masks_beyond_what_frames_are_matched_on_are_refused);
    tcase_add_test(tcase, entries_that_cannot_be_are_refused);
    tcase_add_test(tcase, the_oldest_of_equal_entries_takes_the_frames);
    tcase_add_test(tcase, lists_longer_than_the_command_are_refused);
    tcase_add_test(tcase, entries_hold_what_they_name);
    tcase_add_test(tcase, a_modify_moves_the_references);
    tcase_add_test(tcase, a_modify_changes_what_it_names);
    tcase_add_test(tcase, queries_tell_what_was_set);
    tcase_add_test(tcase, lower_indices_come_first);
    tcase_add_loop_test(tcase, every_field_is_matched, 0, 12);
    tcase_add_test(tcase, values_are_masked);
    tcase_add_test(tcase, a_chain_of_tables_is_walked_to_its_end);
    tcase_add_test(tcase, every_destination_gets_a_copy_and_counters_count);
    tcase_add_test(tcase, dropped_frames_are_counted_and_go_nowhere);
    tcase_add_test(tcase, a_fan_of_rules_does_not_keep_the_device);
    tcase_add_test(tcase, an_entry_may_ignore_levels);
    tcase_add_test(tcase, a_loop_of_tables_ends);
    tcase_add_test(tcase, a_user_context_has_tables_of_its_own);
    tcase_add_test(tcase, frames_of_every_length_and_noise_are_looked_at_safely);
    tcase_add_test(tcase, reset_takes_everything_away);
    suite_add_tcase(suite, tcase);
    return suite;
}
