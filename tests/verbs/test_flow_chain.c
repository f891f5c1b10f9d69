/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the order of flows between two hosts in virtual time: priorities, rules that pass packets
 * on (IBV_FLOW_ATTR_FLAGS_DONT_TRAP), and rules that end in a miss
 * (MLX5DV_FLOW_ACTION_DEFAULT_MISS).
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/unit/suite.h"
#include "tests/verbs/flow_bench.h"

/* More receivers of host 1, each with its CQ. */
enum {
    RECEIVERS = 3
};
static struct ibv_cq *to_cq[RECEIVERS];
static struct ibv_qp *to[RECEIVERS];

static void begin(void)
{
    setup();
    for (int i = 0; i < RECEIVERS; i++) {
        struct ibv_qp_init_attr init = {.cap = {1, 64, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
        struct ibv_sge there = {(uintptr_t)mr[1]->addr, ROOM, mr[1]->lkey};
        struct ibv_recv_wr recv = {.sg_list = &there, .num_sge = 1}, *bad;

        to_cq[i] = init.send_cq = init.recv_cq = ibv_create_cq(v->b, 127, NULL, NULL, 0);
        to[i] = ibv_create_qp(v->hosts->host[1].pd, &init);
        for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
            struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

            ck_assert_int_eq(
                ibv_modify_qp(to[i], &attr, IBV_QP_STATE | (s == IBV_QPS_INIT ? IBV_QP_PORT : 0)),
                0);
        }
        for (int n = 0; n < 64; n++) {
            ck_assert_int_eq(ibv_post_recv(to[i], &recv, &bad), 0);
        }
    }
}

static void end(void)
{
    for (int i = 0; i < RECEIVERS; i++) {
        ck_assert_int_eq(ibv_destroy_qp(to[i]), 0);
        ck_assert_int_eq(ibv_destroy_cq(to_cq[i]), 0);
    }
    teardown();
}

/* A rule for UDP to port 5000. NULL with errno. */
static struct ibv_flow *flow_with(struct ibv_qp *receiver, uint16_t priority, uint32_t flags)
{
    struct rule rule = rule_new();

    rule.attr.priority = priority;
    rule.attr.flags = flags;
    ADD(&rule, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(5000)},
        .mask = {.dst_port = 0xffff});
    return ibv_create_flow(receiver, &rule.attr);
}

static struct ibv_flow *flow_of(int receiver, uint16_t priority, uint32_t flags)
{
    struct ibv_flow *flow = flow_with(to[receiver], priority, flags);

    ck_assert_msg(flow, "errno %d", errno);
    return flow;
}

static struct ibv_flow *default_flow(int receiver)
{
    struct rule rule = rule_new();
    struct ibv_flow *flow;

    rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    flow = ibv_create_flow(to[receiver], &rule.attr);
    ck_assert_ptr_nonnull(flow);
    return flow;
}

/* Sends a frame, and returns the receivers that get it, as bits. */
static unsigned got_of(enum kind kind)
{
    unsigned who = 0;
    struct ibv_wc wc;

    make(kind);
    sent();
    for (int i = 0; i < RECEIVERS; i++) {
        unsigned times = 0;

        while (ibv_poll_cq(to_cq[i], 1, &wc) > 0) { /* default rules get other frames, too */
            times += wc.byte_len == len;
        }
        ck_assert_uint_le(times, 1);
        who |= times << i;
    }
    return who;
}

/* The same for a frame to port 5000. */
static unsigned got(void)
{
    return got_of(PLAIN);
}

#define PASS IBV_FLOW_ATTR_FLAGS_DONT_TRAP

/* The rule of the best priority gets the packet, in whatever order rules come and go. */
START_TEST(the_best_priority_gets_the_packet)
{
    struct ibv_flow *all = default_flow(2), *middle, *last, *first;

    ck_assert_uint_eq(got(), 4);
    middle = flow_of(1, 7, 0);
    ck_assert_uint_eq(got(), 2);
    last = flow_of(2, 15, 0);
    ck_assert_uint_eq(got(), 2);
    first = flow_of(0, 0, 0);
    ck_assert_uint_eq(got(), 1);
    ck_assert_int_eq(ibv_destroy_flow(middle), 0);
    ck_assert_uint_eq(got(), 1);
    ck_assert_int_eq(ibv_destroy_flow(first), 0);
    ck_assert_uint_eq(got(), 4);
    ck_assert_int_eq(ibv_destroy_flow(all), 0);
    ck_assert_uint_eq(got(), 4);
    ck_assert_int_eq(ibv_destroy_flow(last), 0);
    ck_assert_uint_eq(got(), 0);
}
END_TEST

/* create_dont_trap_rule(): the receiver gets the packet, and so does the rule behind: of a worse
 * priority, or one of the same priority that does not pass it on. Rules that come and go behind it
 * are found, whether or not there was one before. */
START_TEST(a_rule_may_pass_packets_on)
{
    struct ibv_flow *pass = flow_of(0, 3, PASS), *same, *behind, *better, *more;

    ck_assert_uint_eq(got(), 1); /* nothing is behind it */
    behind = flow_of(1, 9, 0);
    ck_assert_uint_eq(got(), 3);
    same = flow_of(2, 3, 0);
    ck_assert_uint_eq(got(), 5);
    ck_assert_int_eq(ibv_destroy_flow(behind), 0);
    ck_assert_uint_eq(got(), 5);
    ck_assert_int_eq(ibv_destroy_flow(same), 0);
    ck_assert_uint_eq(got(), 1);
    more = flow_of(1, 4, PASS);
    ck_assert_uint_eq(got(), 3);
    behind = default_flow(2);
    ck_assert_uint_eq(got(), 7);
    better = flow_of(2, 2, 0);
    ck_assert_uint_eq(got(), 4);
    ck_assert_int_eq(ibv_destroy_flow(better), 0);
    ck_assert_int_eq(ibv_destroy_flow(pass), 0);
    ck_assert_uint_eq(got(), 6);
    ck_assert_int_eq(ibv_destroy_flow(more), 0);
    ck_assert_uint_eq(got(), 4);
    ck_assert_int_eq(ibv_destroy_flow(behind), 0);
    ck_assert_uint_eq(got(), 0);
}
END_TEST

/* A rule that passes on and does not match leads on, too. A rule for sent packets decides alone. */
START_TEST(other_packets_go_by_a_rule_that_passes_on)
{
    struct rule other = rule_new();
    struct ibv_flow *pass, *behind = flow_of(1, 5, 0), *egress;

    other.attr.flags = PASS;
    ADD(&other, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(6000)},
        .mask = {.dst_port = 0xffff});
    pass = ibv_create_flow(to[0], &other.attr);
    ck_assert_ptr_nonnull(pass);
    ck_assert_uint_eq(got(), 2);
    egress = flow_with(qp[0], 1, PASS | IBV_FLOW_ATTR_FLAGS_EGRESS);
    ck_assert_ptr_nonnull(egress);
    ck_assert_uint_eq(got(), 2);
    ck_assert_int_eq(ibv_destroy_flow(egress), 0);
    ck_assert_int_eq(ibv_destroy_flow(pass), 0);
    ck_assert_int_eq(ibv_destroy_flow(behind), 0);
}
END_TEST

static struct mlx5dv_flow_matcher *matcher_of(struct ibv_context *ctx, uint16_t priority,
                                              enum mlx5dv_flow_table_type type)
{
    struct mlx5dv_flow_match_parameters mask = {0};
    struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL,
                                            .priority = priority,
                                            .match_mask = &mask,
                                            .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
                                            .ft_type = type};
    struct mlx5dv_flow_matcher *matcher = hv_dv_create_flow_matcher(ctx, &attr);

    ck_assert_ptr_nonnull(matcher);
    return matcher;
}

static struct ibv_flow *miss_of(struct mlx5dv_flow_matcher *matcher)
{
    struct mlx5dv_flow_match_parameters value = {0};
    struct mlx5dv_flow_action_attr miss = {.type = MLX5DV_FLOW_ACTION_DEFAULT_MISS};
    struct ibv_flow *flow = hv_dv_create_flow(matcher, &value, 1, &miss);

    ck_assert_msg(flow, "errno %d", errno);
    return flow;
}

/* The memory that a host's device has for objects. */
static uint64_t device_memory(int side)
{
    struct fw *fw = local_lock_fw(v->hca[side]->local);
    uint64_t used = fw->hca.memory.used;

    local_unlock_fw(v->hca[side]->local);
    return used;
}

/* A packet of such a rule is treated as one that no rule matches, though rules behind it would. A
 * sent one leaves. */
START_TEST(a_rule_may_end_in_a_miss)
{
    struct mlx5dv_flow_matcher *rx = matcher_of(v->b, 4, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
    struct mlx5dv_flow_matcher *tx = matcher_of(v->a, 0, MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
    struct ibv_flow *behind = flow_of(0, 5, 0), *miss[2], *pass, *sends;
    uint64_t memory;

    /* once before, for what the device keeps */
    ck_assert_int_eq(ibv_destroy_flow(miss_of(tx)), 0);
    memory = device_memory(0);
    ck_assert_uint_eq(got(), 1);
    miss[0] = miss_of(rx);
    ck_assert_uint_eq(got(), 0);
    miss[1] = miss_of(rx);
    ck_assert_int_eq(ibv_destroy_flow(miss[0]), 0);
    ck_assert_uint_eq(got(), 0);
    pass = flow_of(1, 3, PASS); /* passes on to the miss */
    ck_assert_uint_eq(got(), 2);
    ck_assert_int_eq(ibv_destroy_flow(miss[1]), 0);
    ck_assert_uint_eq(got(), 3);
    sends = miss_of(tx);
    ck_assert_uint_eq(got(), 3);
    ck_assert_int_eq(ibv_destroy_flow(sends), 0);
    ck_assert_uint_eq(device_memory(0), memory);
    ck_assert_int_eq(ibv_destroy_flow(pass), 0);
    ck_assert_int_eq(ibv_destroy_flow(behind), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rx), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(tx), 0);
}
END_TEST

/* Whichever command of a new rule the device refuses, the rules that were there go on as before,
 * and nothing is left of the new one. _i: 0, a rule before the others; 1, between; 2, behind; 3, a
 * miss. */
START_TEST(a_refused_rule_changes_nothing)
{
    struct mlx5dv_flow_matcher *rx = matcher_of(v->b, 1, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
    struct ibv_flow *pass = flow_of(0, 3, PASS), *behind = flow_of(1, 9, 0), *more;
    struct ibv_flow *all = default_flow(2);
    struct mlx5dv_flow_match_parameters value = {0};
    struct mlx5dv_flow_action_attr miss = {.type = MLX5DV_FLOW_ACTION_DEFAULT_MISS};
    static const uint16_t priority[] = {1, 5, 12};
    unsigned n = 0;
    uint64_t memory = 0;

    for (;; n++) {
        if (n) {
            table_refuse_nth(v, 1, PRM_CMD_STATUS_LIM_ERR, n - 1);
        }
        more =
            _i == 3 ? hv_dv_create_flow(rx, &value, 1, &miss) : flow_with(to[2], priority[_i], 0);
        if (!n) { /* once before, for what the device keeps */
            ck_assert_int_eq(ibv_destroy_flow(more), 0);
            memory = device_memory(1);
            continue;
        }
        if (table_refuse_end()) { /* it needs no more commands */
            break;
        }
        ck_assert_ptr_null(more);
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_uint_eq(got(), 3);
        ck_assert_uint_eq(got_of(VXLAN), 4); /* no rule but the default one matches it */
        ck_assert_uint_eq(device_memory(1), memory);
    }
    ck_assert_uint_ge(n, 4); /* table, link, group, entry */
    ck_assert_ptr_nonnull(more);
    ck_assert_uint_eq(got(), _i == 0 ? 4 : _i == 1 ? 5 : _i == 2 ? 3 : 0);
    ck_assert_int_eq(ibv_destroy_flow(more), 0);
    ck_assert_uint_eq(got(), 3);
    ck_assert_int_eq(ibv_destroy_flow(pass), 0);
    ck_assert_int_eq(ibv_destroy_flow(behind), 0);
    ck_assert_int_eq(ibv_destroy_flow(all), 0);
    ck_assert_int_eq(hv_dv_destroy_flow_matcher(rx), 0);
}
END_TEST

/* 256 rules of a priority have room. */
START_TEST(a_priority_has_room_for_256_rules)
{
    struct ibv_flow *flow[256], *other;

    for (unsigned i = 0; i < G_N_ELEMENTS(flow); i++) {
        flow[i] = flow_of(0, 2, 0);
    }
    ck_assert_ptr_null(flow_with(to[0], 2, 0));
    ck_assert_int_eq(errno, ENOSPC);
    other = flow_of(0, 3, 0);
    ck_assert_int_eq(ibv_destroy_flow(flow[100]), 0);
    flow[100] = flow_of(0, 2, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(flow); i++) {
        ck_assert_int_eq(ibv_destroy_flow(flow[i]), 0);
    }
    ck_assert_int_eq(ibv_destroy_flow(other), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("flow_chain");
    TCase *tc = tcase_create("flow_chain");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, the_best_priority_gets_the_packet);
    tcase_add_test(tc, a_rule_may_pass_packets_on);
    tcase_add_test(tc, other_packets_go_by_a_rule_that_passes_on);
    tcase_add_test(tc, a_rule_may_end_in_a_miss);
    tcase_add_loop_test(tc, a_refused_rule_changes_nothing, 0, 4);
    tcase_add_test(tc, a_priority_has_room_for_256_rules);
    return suite;
}
