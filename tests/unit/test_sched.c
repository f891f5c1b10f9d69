/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests scheduling elements: how a tree divides bandwidth among send queues, and its limits. */
#include <check.h>
#include "model/eth/eth_queue.h"
#include "model/port/pace.h"
#include "model/port/sched.h"
#include "tests/unit/flow_bench.h"
#include "tests/unit/suite.h"

#define FLOWS 4
#define GROUP PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID
#define TSAR  PRM_SCHEDULING_ELEMENT_TYPE_TSAR
#define LEAF  PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP
#define SHARE PRM_MODIFY_SCHED_BW_SHARE
#define LIMIT PRM_MODIFY_SCHED_MAX_AVERAGE_BW

static struct bench *b;
static struct flow flow[FLOWS];
static struct flow *const flows[FLOWS] = {&flow[0], &flow[1], &flow[2], &flow[3]};

static void setup(void)
{
    b = bench_new();
    for (unsigned i = 0; i < FLOWS; i++) {
        flow_new(b, &flow[i], i % 2 ? 1514 : 600);
    }
}

static void teardown(void)
{
    bench_free(b);
}

static enum syn try_as(uint16_t uid, uint32_t parent, unsigned type, uint32_t share, uint32_t mbps,
                       uint32_t *id)
{
    struct prm_scheduling_context ctx[1] = {0};

    PRM_SET(scheduling_context, ctx, element_type, type);
    PRM_SET(scheduling_context, ctx, parent_element_id, parent);
    PRM_SET(scheduling_context, ctx, bw_share, share);
    PRM_SET(scheduling_context, ctx, max_average_bw, mbps);
    return sched_create(&b->rig.hca, uid, ctx, id);
}

static uint32_t make(uint32_t parent, unsigned type, uint32_t share, uint32_t mbps)
{
    uint32_t id;

    ck_assert_int_eq(try_as(0, parent, type, share, mbps, &id), SYN_OK);
    return id;
}

static struct sched_elem *elem(uint32_t id)
{
    struct sched_elem *found;

    ck_assert_int_eq(sched_find(&b->rig.hca, 0, id, &found), SYN_OK);
    return found;
}

static enum syn modify(uint32_t id, uint64_t fields, uint32_t share, uint32_t mbps)
{
    struct prm_scheduling_context ctx[1] = {0};

    PRM_SET(scheduling_context, ctx, bw_share, share);
    PRM_SET(scheduling_context, ctx, max_average_bw, mbps);
    return sched_modify(&b->rig.hca, elem(id), fields, ctx);
}

static void join(unsigned i, uint32_t id)
{
    ck_assert_int_eq(flow_modify(&flow[i], 0, GROUP, id), SYN_OK);
}

static void run(unsigned n, uint64_t ns)
{
    flow_run(b, (struct flow **)flows, n, ns);
}

static void expect(unsigned i, uint64_t mbps, uint64_t ns)
{
    flow_expect_rate(&flow[i], mbps * 1000, ns);
}

/* -- limits ------------------------------------------------------------------------------------ */

static const uint32_t limits[] = {1, 10, 100, 1000};

START_TEST(a_group_keeps_its_limit)
{
    join(0, make(make(0, TSAR, 0, 0), LEAF, 0, limits[_i]));
    run(1, FLOW_S);
    expect(0, limits[_i], FLOW_S);
}
END_TEST

/* The queues of a group share its limit, byte by byte and not frame by frame. */
START_TEST(queues_of_a_group_take_turns)
{
    uint32_t leaf = make(make(0, TSAR, 0, 0), LEAF, 0, 100);

    join(0, leaf);
    join(1, leaf);
    run(2, FLOW_S);
    ck_assert_uint_ge(flow[0].sent + flow[1].sent, 12500000 * 98 / 100);
    ck_assert_uint_le(flow[0].sent + flow[1].sent, 12500000 * 102 / 100);
    ck_assert_uint_ge(flow[0].sent * 10, flow[1].sent * 9);
    ck_assert_uint_le(flow[0].sent * 9, flow[1].sent * 10);
}
END_TEST

/* A limit of an inner element holds all below it; a smaller one inside holds as well. */
START_TEST(limits_hold_inside_limits)
{
    uint32_t root = make(0, TSAR, 0, 0), inner = make(root, TSAR, 0, 90);
    uint32_t wide = make(root, LEAF, 0, 40);

    join(0, make(inner, LEAF, 0, 20));
    join(1, make(inner, LEAF, 0, 0));
    join(2, make(inner, LEAF, 0, 500));
    join(3, wide);
    run(4, FLOW_S);
    expect(0, 20, FLOW_S);
    expect(1, 35, FLOW_S);
    expect(2, 35, FLOW_S);
    expect(3, 40, FLOW_S);
}
END_TEST

/* -- shares ------------------------------------------------------------------------------------ */

static const struct {
    uint32_t share[3];
    uint32_t mbps[3]; /* of 120 */
} shares[] = {
    {{0, 0, 0}, {40, 40, 40}},
    {{1, 2, 3}, {20, 40, 60}},
    {{100, 50, 50}, {60, 30, 30}},
    {{7, 1, 4}, {70, 10, 40}},
};

START_TEST(siblings_divide_what_there_is_by_their_shares)
{
    uint32_t inner = make(make(0, TSAR, 0, 0), TSAR, 0, 120);

    for (unsigned i = 0; i < 3; i++) {
        join(i, make(inner, LEAF, shares[_i].share[i], 0));
    }
    run(3, FLOW_S);
    for (unsigned i = 0; i < 3; i++) {
        expect(i, shares[_i].mbps[i], FLOW_S);
    }
}
END_TEST

/* "The unused transmission bandwidth will be distributed among the remaining entities assuring the
 * weight setting" (mlx5dv_sched_node_create(3)). */
START_TEST(what_a_sibling_leaves_goes_to_the_others_by_their_shares)
{
    uint32_t inner = make(make(0, TSAR, 0, 0), TSAR, 0, 100);

    join(0, make(inner, LEAF, 50, 10));
    join(1, make(inner, LEAF, 20, 0));
    join(2, make(inner, LEAF, 10, 0));
    run(3, FLOW_S);
    expect(0, 10, FLOW_S);
    expect(1, 60, FLOW_S);
    expect(2, 30, FLOW_S);
    flow[1].stopped = true;
    run(3, FLOW_S / 10);
    flow[0].sent = flow[2].sent = 0;
    run(3, FLOW_S);
    expect(0, 10, FLOW_S);
    expect(2, 90, FLOW_S);
    /* a queue that was idle has no claim to what it did not use */
    flow[1].stopped = false;
    flow[1].sent = 0;
    run(3, FLOW_S);
    expect(1, 60, FLOW_S);
    expect(2, 30, FLOW_S);
}
END_TEST

START_TEST(shares_hold_on_every_level)
{
    uint32_t top = make(make(0, TSAR, 0, 0), TSAR, 0, 80);
    uint32_t left = make(top, TSAR, 3, 0), right = make(top, TSAR, 1, 0);

    join(0, make(left, LEAF, 1, 0));
    join(1, make(left, LEAF, 2, 0));
    join(2, make(right, LEAF, 9, 0));
    join(3, make(right, LEAF, 1, 0));
    run(4, FLOW_S);
    expect(0, 20, FLOW_S);
    expect(1, 40, FLOW_S);
    expect(2, 18, FLOW_S);
    expect(3, 2, FLOW_S);
}
END_TEST

START_TEST(a_tsar_that_takes_turns_knows_no_shares)
{
    struct prm_scheduling_context ctx[1] = {0};
    uint32_t root = make(0, TSAR, 0, 0), id;

    PRM_SET(scheduling_context, ctx, element_type, TSAR);
    PRM_SET(scheduling_context, ctx, parent_element_id, root);
    PRM_SET(scheduling_context, ctx, max_average_bw, 60);
    PRM_SET(tsar_element, PRM_PTR(scheduling_context, ctx, element_attributes), tsar_type,
            PRM_TSAR_TYPE_ROUND_ROBIN);
    ck_assert_int_eq(sched_create(&b->rig.hca, 0, ctx, &id), SYN_OK);
    join(0, make(id, LEAF, 90, 0));
    join(1, make(id, LEAF, 1, 0));
    run(2, FLOW_S);
    expect(0, 30, FLOW_S);
    expect(1, 30, FLOW_S);
}
END_TEST

/* The wire takes 16 frames at a time, and neither queue has a limit: the shares decide who gets the
 * room. */
START_TEST(shares_hold_if_the_wire_is_what_limits)
{
    uint32_t root = make(0, TSAR, 0, 0);
    unsigned n[2] = {0};

    for (unsigned i = 0; i < 2; i++) {
        flow_new(b, &flow[i], 1000 + 100 * i);
        join(i, make(root, LEAF, i ? 25 : 75, 0));
    }
    for (unsigned round = 0; round < 500; round++) {
        for (unsigned i = 0; i < 2; i++) {
            while (flow[i].posted && bench_cqe(&flow[i].sq)) {
                flow[i].posted--;
            }
            for (; flow[i].posted < 1u << BENCH_LOG_SQ; flow[i].posted++) {
                bench_write_wqe(&flow[i].sq, &flow[i].wr);
            }
            bench_ring_sq(&flow[i].sq);
        }
        rig_run(&b->rig);
        b->num_frames = 0;
        wire_poll(b->far, 4);
        for (unsigned i = 0; i < b->num_frames; i++) {
            n[b->frames[i].len == 1100] += (unsigned)b->frames[i].len;
        }
    }
    ck_assert_uint_ge(n[0] * 100, (n[0] + n[1]) * 73);
    ck_assert_uint_le(n[0] * 100, (n[0] + n[1]) * 77);
}
END_TEST

/* -- changes while queues wait ----------------------------------------------------------------- */

/* Makes the first queue wait in a group with a limit, for 72 ms. Returns the group. */
static uint32_t let_one_wait(void)
{
    uint32_t leaf = make(make(0, TSAR, 0, 0), LEAF, 0, 1);

    flow_new(b, &flow[0], 9000);
    join(0, leaf);
    run(1, FLOW_MS);
    flow[0].sent = 0;
    run(1, 10 * FLOW_MS);
    ck_assert_uint_eq(flow[0].sent, 0);
    ck_assert_uint_ne(b->rig.host.deadline, UINT64_MAX);
    return leaf;
}

START_TEST(a_changed_limit_holds_at_once)
{
    uint32_t leaf = let_one_wait();

    ck_assert_int_eq(modify(leaf, LIMIT, 0, 50), SYN_OK);
    run(1, FLOW_S);
    expect(0, 50, FLOW_S);
}
END_TEST

START_TEST(changed_shares_hold_from_then_on)
{
    uint32_t inner = make(make(0, TSAR, 0, 0), TSAR, 0, 100);
    uint32_t leaf = make(inner, LEAF, 10, 0);

    join(0, leaf);
    join(1, make(inner, LEAF, 10, 0));
    run(2, FLOW_S);
    expect(0, 50, FLOW_S);
    expect(1, 50, FLOW_S);
    ck_assert_int_eq(modify(leaf, SHARE, 40, 0), SYN_OK);
    run(2, FLOW_S);
    expect(0, 80, FLOW_S);
    expect(1, 20, FLOW_S);
}
END_TEST

/* A waiting queue leaves its group, or joins another one, or ends, or fails. */
START_TEST(a_queue_may_leave_while_it_waits)
{
    uint32_t leaf = let_one_wait();

    flow[0].stopped = true;
    ck_assert_uint_eq(elem(leaf)->obj.refs, 1);
    b->num_frames = 0;
    if (_i == 0) {
        join(0, 0);
        bench_run(b);
        ck_assert_uint_eq(b->num_frames, flow[0].posted);
    } else if (_i == 1) {
        join(0, make(make(0, TSAR, 0, 0), LEAF, 0, 0));
        bench_run(b);
        ck_assert_uint_eq(b->num_frames, flow[0].posted);
    } else if (_i == 2) {
        ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, flow[0].sq.num), SYN_OK);
    } else {
        ck_assert_int_eq(bench_sq_move(&flow[0].sq, PRM_SQC_STATE_RDY,
                                       _i == 3 ? PRM_SQC_STATE_ERR : PRM_SQC_STATE_RST),
                         SYN_OK);
        ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, flow[0].sq.num), SYN_OK);
    }
    ck_assert_uint_eq(elem(leaf)->obj.refs, 0);
    sched_free(&b->rig.hca, &elem(leaf)->obj);
    rig_advance(&b->rig, 100 * FLOW_S);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
}
END_TEST

START_TEST(a_reset_of_the_function_ends_trees_and_waits)
{
    let_one_wait();
    hca_reset(&b->rig.hca);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
    ck_assert_uint_eq(b->rig.hca.sched_elements.count, 0);
    rig_advance(&b->rig, FLOW_S);
    bench_free(b);
    b = bench_new();
}
END_TEST

/* A rate of the queue's own holds inside the group's limit. */
START_TEST(a_queue_of_a_group_may_also_be_paced)
{
    uint32_t leaf = make(make(0, TSAR, 0, 0), LEAF, 0, 50);
    struct pace_rate rate = {.kbps = 10000};

    ck_assert_int_eq(pace_set(&b->rig.hca, 1, &rate), SYN_OK);
    ck_assert_int_eq(flow_modify(&flow[0], 0, PRM_MODIFY_SQ_PACKET_PACING_RATE_LIMIT_INDEX, 1),
                     SYN_OK);
    join(0, leaf);
    join(1, leaf);
    run(2, FLOW_S);
    expect(0, 10, FLOW_S);
    expect(1, 40, FLOW_S);
}
END_TEST

START_TEST(large_sends_keep_shares_and_limits)
{
    uint32_t inner = make(make(0, TSAR, 0, 0), TSAR, 0, 100);

    flow_new_lso(b, &flow[0], 30000, 1460);
    join(0, make(inner, LEAF, 1, 0));
    join(1, make(inner, LEAF, 3, 0));
    run(2, FLOW_S);
    expect(0, 25, FLOW_S);
    expect(1, 75, FLOW_S);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

START_TEST(trees_have_a_root_inner_elements_and_groups)
{
    uint32_t root = make(0, TSAR, 0, 0), leaf = make(root, LEAF, 0, 0), id;

    ck_assert_int_eq(try_as(0, 0, LEAF, 0, 0, &id), SYN_SCHED_KIND);
    ck_assert_int_eq(try_as(0, leaf, LEAF, 0, 0, &id), SYN_SCHED_KIND);
    ck_assert_int_eq(try_as(0, leaf, TSAR, 0, 0, &id), SYN_SCHED_KIND);
    ck_assert_int_eq(try_as(0, root, PRM_SCHEDULING_ELEMENT_TYPE_VPORT, 0, 0, &id), SYN_SCHED_KIND);
    ck_assert_int_eq(try_as(0, root, 0xff, 0, 0, &id), SYN_SCHED_KIND);
    ck_assert_int_eq(try_as(0, 0, TSAR, 1, 0, &id), SYN_SCHED_ROOT);
    ck_assert_int_eq(try_as(0, 0, TSAR, 0, 1, &id), SYN_SCHED_ROOT);
    ck_assert_int_eq(modify(root, LIMIT, 0, 1), SYN_SCHED_ROOT);
    ck_assert_int_eq(modify(root, SHARE, 1, 0), SYN_SCHED_ROOT);
    ck_assert_int_eq(try_as(0, root, LEAF, SCHED_MAX_SHARE + 1, 0, &id), SYN_LIMIT);
    ck_assert_int_eq(modify(leaf, SHARE, SCHED_MAX_SHARE + 1, 0), SYN_LIMIT);
    ck_assert_int_eq(modify(leaf, 4, 0, 0), SYN_SCHED_FIELDS);
    ck_assert_int_eq(try_as(0, 99, LEAF, 0, 0, &id), SYN_NO_SCHEDULING_ELEMENT);
    ck_assert_int_eq(flow_modify(&flow[0], 0, GROUP, root), SYN_SCHED_KIND);
    ck_assert_int_eq(flow_modify(&flow[0], 0, GROUP, 99), SYN_NO_SCHEDULING_ELEMENT);
}
END_TEST

START_TEST(a_tree_has_at_most_eight_levels)
{
    uint32_t at = make(0, TSAR, 0, 0), id;

    for (unsigned level = 2; level < SCHED_MAX_LEVELS; level++) {
        at = make(at, TSAR, 0, 0);
    }
    ck_assert_int_eq(try_as(0, at, TSAR, 0, 0, &id), SYN_SCHED_DEPTH);
    join(0, make(at, LEAF, 0, 10));
    run(1, FLOW_S);
    expect(0, 10, FLOW_S);
}
END_TEST

START_TEST(a_user_names_only_elements_of_its_own)
{
    uint32_t root, leaf, id;

    ck_assert_int_eq(try_as(RIG_USER, 0, TSAR, 0, 0, &root), SYN_OK);
    ck_assert_int_eq(try_as(RIG_USER, root, LEAF, 0, 0, &leaf), SYN_OK);
    ck_assert_int_eq(try_as(RIG_USER + 1, root, LEAF, 0, 0, &id), SYN_BAD_UID);
    ck_assert_int_eq(try_as(RIG_USER, make(0, TSAR, 0, 0), LEAF, 0, 0, &id), SYN_BAD_UID);
    join(0, leaf);
}
END_TEST

/* The cost of a frame does not grow with the groups that have nothing to send. */
START_TEST(a_wide_tree_has_shares_too)
{
    uint32_t inner = make(make(0, TSAR, 0, 0), TSAR, 0, 100);

    for (unsigned i = 0; i < 1000; i++) {
        uint32_t leaf = make(inner, LEAF, 1 + i % 2, 0);

        if (i < FLOWS) {
            join(i, leaf);
        }
    }
    run(FLOWS, FLOW_S);
    ck_assert_uint_ge(flow[1].sent * 100, flow[0].sent * 196);
    ck_assert_uint_le(flow[1].sent * 100, flow[0].sent * 204);
    ck_assert_uint_ge(flow[2].sent * 100, flow[0].sent * 98);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("sched");
    TCase *tcase = tcase_create("sched");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_group_keeps_its_limit, 0, G_N_ELEMENTS(limits));
    tcase_add_test(tcase, queues_of_a_group_take_turns);
    tcase_add_test(tcase, limits_hold_inside_limits);
    tcase_add_loop_test(tcase, siblings_divide_what_there_is_by_their_shares, 0,
                        G_N_ELEMENTS(shares));
    tcase_add_test(tcase, what_a_sibling_leaves_goes_to_the_others_by_their_shares);
    tcase_add_test(tcase, shares_hold_on_every_level);
    tcase_add_test(tcase, a_tsar_that_takes_turns_knows_no_shares);
    tcase_add_test(tcase, shares_hold_if_the_wire_is_what_limits);
    tcase_add_test(tcase, a_changed_limit_holds_at_once);
    tcase_add_test(tcase, changed_shares_hold_from_then_on);
    tcase_add_loop_test(tcase, a_queue_may_leave_while_it_waits, 0, 5);
    tcase_add_test(tcase, a_reset_of_the_function_ends_trees_and_waits);
    tcase_add_test(tcase, a_queue_of_a_group_may_also_be_paced);
    tcase_add_test(tcase, large_sends_keep_shares_and_limits);
    tcase_add_test(tcase, trees_have_a_root_inner_elements_and_groups);
    tcase_add_test(tcase, a_tree_has_at_most_eight_levels);
    tcase_add_test(tcase, a_user_names_only_elements_of_its_own);
    tcase_add_test(tcase, a_wide_tree_has_shares_too);
    suite_add_tcase(suite, tcase);
    return suite;
}
