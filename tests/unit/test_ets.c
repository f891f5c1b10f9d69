/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests traffic classes: how the port's bandwidth is divided among send queues by priority. */
#include <check.h>
#include "model/eth/eth_queue.h"
#include "model/eth/tir.h"
#include "model/port/ets.h"
#include "tests/unit/flow_bench.h"
#include "tests/unit/suite.h"

#define FLOWS 4 /* of the priorities 0 to 3 */

static struct bench *b;
static struct uplink_phy *phy;
static struct flow flow[FLOWS];
static struct flow *const flows[FLOWS] = {&flow[0], &flow[1], &flow[2], &flow[3]};

static void setup(void)
{
    b = bench_new();
    phy = &b->rig.hca.vport->uplink->phy;
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        phy->priority_tc[i] = (uint8_t)i;
        phy->tc[i].percent = 100;
    }
    for (unsigned i = 0; i < FLOWS; i++) {
        b->tisn = bench_tis(b, b->tdn);
        bench_set_priority(b, b->tisn, i);
        flow_new(b, &flow[i], i % 2 ? 1514 : 600);
    }
}

static void teardown(void)
{
    bench_free(b);
}

static void changed(void)
{
    ets_changed(b->rig.hca.vport->sw);
}

/* The port sends 1 Gb/s, and the classes have these parts of it, in these groups. */
static void divide(const uint8_t percent[FLOWS], const uint8_t group[FLOWS])
{
    phy->port_max = (struct tc_limit){TC_1_GBPS, 1};
    for (unsigned i = 0; i < FLOWS; i++) {
        phy->tc[i].percent = percent[i];
        phy->tc[i].group = group ? group[i] : 0;
    }
    changed();
}

static void expect(unsigned n, const uint64_t *mbps)
{
    flow_run(b, (struct flow **)flows, n, FLOW_S / 4);
    for (unsigned i = 0; i < n; i++) {
        flow_expect_rate(&flow[i], mbps[i] * 1000, FLOW_S / 4);
    }
}

#define EXPECT(...)                                                                                \
    do {                                                                                           \
        const uint64_t expect_[] = {__VA_ARGS__};                                                  \
                                                                                                   \
        expect(G_N_ELEMENTS(expect_), expect_);                                                    \
    } while (0)

START_TEST(classes_divide_by_their_percentages)
{
    divide((uint8_t[]){20, 30, 40, 10}, NULL);
    EXPECT(200, 300, 400, 100);
}
END_TEST

/* The other classes of a group get the bandwidth that one class does not use. */
START_TEST(a_class_leaves_what_it_does_not_use)
{
    divide((uint8_t[]){20, 30, 50, 100}, NULL);
    EXPECT(400, 600);
}
END_TEST

START_TEST(a_higher_group_goes_first)
{
    divide((uint8_t[]){20, 30, 100, 100}, (uint8_t[]){0, 0, 2, 1});
    EXPECT(0, 0, 1000, 0);
    phy->tc[2].max = (struct tc_limit){TC_100_MBPS, 3};
    phy->tc[3].max = (struct tc_limit){TC_100_MBPS, 2};
    changed();
    EXPECT(200, 300, 300, 200);
}
END_TEST

/* Also a group that always has something to send. */
START_TEST(a_busy_group_leaves_nothing_to_lower_ones)
{
    divide((uint8_t[]){50, 50, 50, 50}, (uint8_t[]){0, 0, 2, 2});
    EXPECT(0, 0, 500, 500);
}
END_TEST

/* Without a limit of the port, a class is held by its own. */
START_TEST(a_class_keeps_its_limit)
{
    phy->tc[0].max = (struct tc_limit){TC_100_MBPS, 1};
    phy->tc[1].max = (struct tc_limit){TC_1_GBPS, 1};
    changed();
    EXPECT(100, 1000);
    phy->tc[0].max = (struct tc_limit){TC_100_MBPS, 5};
    changed();
    EXPECT(500, 1000);
}
END_TEST

/* A frame of 1514 bytes holds its class for 121 us. */
START_TEST(a_changed_limit_holds_at_once)
{
    phy->tc[1].max = (struct tc_limit){TC_100_MBPS, 1};
    changed();
    flow_run(b, (struct flow **)&flows[1], 1, FLOW_S / 1000);
    phy->tc[1].max = (struct tc_limit){TC_1_GBPS, 1};
    changed();
    flow[1].sent = 0;
    flow_run(b, (struct flow **)&flows[1], 1, FLOW_S / 50000);
    ck_assert_uint_gt(flow[1].sent, 0);
}
END_TEST

/* QTCT: a queue that waits goes on in its new class. */
START_TEST(a_priority_may_change_its_class)
{
    divide((uint8_t[]){20, 80, 100, 100}, NULL);
    EXPECT(200, 800);
    phy->priority_tc[0] = 1;
    phy->priority_tc[1] = 0;
    changed();
    EXPECT(800, 200);
    phy->priority_tc[1] = 1; /* both in one class: they take turns */
    changed();
    flow_run(b, (struct flow **)flows, 2, FLOW_S / 4);
    ck_assert_uint_ge(flow[0].sent * 10, flow[1].sent * 8);
    ck_assert_uint_le(flow[0].sent * 8, flow[1].sent * 10);
    flow[0].sent += flow[1].sent;
    flow_expect_rate(&flow[0], 1000000, FLOW_S / 4);
}
END_TEST

START_TEST(a_class_may_change_its_group)
{
    divide((uint8_t[]){20, 80, 100, 100}, NULL);
    EXPECT(200, 800);
    phy->tc[0].group = 3;
    changed();
    EXPECT(1000, 0);
    phy->tc[0].group = 0;
    changed();
    EXPECT(200, 800);
}
END_TEST

/* MODIFY_TIS, as drivers do it when a queue changes its class. */
START_TEST(a_queue_may_change_its_priority)
{
    divide((uint8_t[]){20, 80, 100, 100}, NULL);
    EXPECT(200, 800);
    bench_set_priority(b, b->tisn - 3, 1);
    bench_set_priority(b, b->tisn - 2, 0);
    EXPECT(800, 200);
}
END_TEST

/* A percentage of 0 is the least part, not none. */
START_TEST(a_class_without_a_part_is_not_starved)
{
    divide((uint8_t[]){0, 99, 100, 100}, NULL);
    EXPECT(10, 990);
}
END_TEST

START_TEST(equal_classes_need_no_tree)
{
    changed();
    ck_assert_ptr_null(b->rig.hca.ets);
    phy->tc[5].percent = 99;
    changed();
    ck_assert_ptr_nonnull(b->rig.hca.ets);
}
END_TEST

START_TEST(a_tree_ends_and_comes_back_with_the_function)
{
    divide((uint8_t[]){20, 80, 100, 100}, NULL);
    flow_run(b, (struct flow **)flows, 2, FLOW_MS);
    hca_reset(&b->rig.hca); /* the port keeps its settings */
    ck_assert_ptr_nonnull(b->rig.hca.ets);
    phy->port_max.units = TC_NO_LIMIT;
    for (unsigned i = 0; i < FLOWS; i++) {
        phy->tc[i].percent = 100;
    }
    hca_reset(&b->rig.hca);
    ck_assert_ptr_null(b->rig.hca.ets);
}
END_TEST

/* A scheduling element of a driver has its own place. */
START_TEST(queues_of_scheduling_elements_are_in_no_class)
{
    struct prm_scheduling_context ctx[1] = {0};
    uint32_t id;

    PRM_SET(scheduling_context, ctx, element_type, PRM_SCHEDULING_ELEMENT_TYPE_TSAR);
    ck_assert_int_eq(sched_create(&b->rig.hca, 0, ctx, &id), SYN_OK);
    PRM_SET(scheduling_context, ctx, element_type, PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP);
    PRM_SET(scheduling_context, ctx, parent_element_id, id);
    PRM_SET(scheduling_context, ctx, max_average_bw, 300);
    ck_assert_int_eq(sched_create(&b->rig.hca, 0, ctx, &id), SYN_OK);
    phy->tc[0].max = (struct tc_limit){TC_100_MBPS, 1};
    phy->tc[1].max = (struct tc_limit){TC_100_MBPS, 2};
    changed();
    EXPECT(100, 200);
    ck_assert_int_eq(flow_modify(&flow[0], 0, PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID, id), SYN_OK);
    EXPECT(300, 200);
    ck_assert_int_eq(flow_modify(&flow[0], 0, PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID, 0), SYN_OK);
    EXPECT(100, 200);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("ets");
    TCase *tcase = tcase_create("ets");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, classes_divide_by_their_percentages);
    tcase_add_test(tcase, a_class_leaves_what_it_does_not_use);
    tcase_add_test(tcase, a_higher_group_goes_first);
    tcase_add_test(tcase, a_busy_group_leaves_nothing_to_lower_ones);
    tcase_add_test(tcase, a_changed_limit_holds_at_once);
    tcase_add_test(tcase, a_class_keeps_its_limit);
    tcase_add_test(tcase, a_priority_may_change_its_class);
    tcase_add_test(tcase, a_class_may_change_its_group);
    tcase_add_test(tcase, a_queue_may_change_its_priority);
    tcase_add_test(tcase, a_class_without_a_part_is_not_starved);
    tcase_add_test(tcase, equal_classes_need_no_tree);
    tcase_add_test(tcase, a_tree_ends_and_comes_back_with_the_function);
    tcase_add_test(tcase, queues_of_scheduling_elements_are_in_no_class);
    suite_add_tcase(suite, tcase);
    return suite;
}
