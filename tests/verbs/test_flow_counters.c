/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests counters of flows (ibv_create_counters(), IBV_FLOW_SPEC_ACTION_COUNT) between two hosts in
 * virtual time.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/suite.h"
#include "tests/verbs/flow_bench.h"

static struct ibv_counters *counters_new(void)
{
    struct ibv_counters_init_attr attr = {0};
    struct ibv_counters *counters = ibv_create_counters(v->b, &attr);

    ck_assert_ptr_nonnull(counters);
    return counters;
}

static int attach(struct ibv_counters *counters, enum ibv_counter_description what, uint32_t index)
{
    struct ibv_counter_attach_attr attr = {.counter_desc = what, .index = index};

    return ibv_attach_counters_point_flow(counters, &attr, NULL);
}

/* A rule for UDP to a port, with counters, if they are not NULL. NULL with errno. */
static struct ibv_flow *flow_to(uint16_t port, struct ibv_counters *counters)
{
    struct rule rule = rule_new();

    ADD(&rule, tcp_udp, IBV_FLOW_SPEC_UDP, .val = {.dst_port = BE16(port)},
        .mask = {.dst_port = 0xffff});
    if (counters) {
        ADD(&rule, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = counters);
    }
    return ibv_create_flow(qp[1], &rule.attr);
}

/* The counters at indexes 0 and 1 must have these values. */
static void expect(struct ibv_counters *counters, uint64_t first, uint64_t second)
{
    uint64_t values[3] = {~0ull, ~0ull, ~0ull};

    ck_assert_int_eq(ibv_read_counters(counters, values, 2, 0), 0);
    ck_assert_uint_eq(values[0], first);
    ck_assert_uint_eq(values[1], second);
    ck_assert_uint_eq(values[2], ~0ull); /* beyond the array */
    ck_assert_int_eq(ibv_read_counters(counters, values, 2, IBV_READ_COUNTERS_ATTR_PREFER_CACHED),
                     0);
    ck_assert_uint_eq(values[0], first);
}

/* Packets and bytes come to the places of their attachments. Values of one place are added. */
START_TEST(a_flow_counts_its_packets)
{
    struct ibv_counters *counters = counters_new(), *both = counters_new();
    struct ibv_flow *flow;

    ck_assert_int_eq(attach(counters, IBV_COUNTER_PACKETS, 1), 0);
    ck_assert_int_eq(attach(counters, IBV_COUNTER_BYTES, 0), 0);
    flow = flow_to(5000, counters);
    ck_assert_msg(flow, "errno %d", errno);
    expect(counters, 0, 0);
    make(PLAIN);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_uint_eq(sent(), len);
        expect(counters, i * len, i);
    }
    make(VXLAN); /* another port */
    ck_assert_uint_eq(sent(), 0);
    expect(counters, 3 * 62, 3);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(attach(both, IBV_COUNTER_PACKETS, 0), 0);
    ck_assert_int_eq(attach(both, IBV_COUNTER_BYTES, 0), 0);
    flow = flow_to(5000, both);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len);
    expect(both, len + 1, 0);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_counters(counters), 0);
    ck_assert_int_eq(ibv_destroy_counters(both), 0);
}
END_TEST

/* Flows share counters, and keep them alive. A later flow goes on where they were. */
START_TEST(counters_may_have_several_flows)
{
    struct ibv_counters *counters = counters_new();
    struct ibv_flow *flow[2];

    ck_assert_int_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
    flow[0] = flow_to(5000, counters);
    flow[1] = flow_to(4789, counters);
    ck_assert(flow[0] && flow[1]);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len);
    make(VXLAN);
    ck_assert_uint_eq(sent(), len);
    expect(counters, 2, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(attach(counters, IBV_COUNTER_BYTES, 1), EBUSY);
        ck_assert_int_eq(ibv_destroy_counters(counters), EBUSY);
        ck_assert_int_eq(ibv_destroy_flow(flow[i]), 0);
    }
    ck_assert_int_eq(attach(counters, IBV_COUNTER_BYTES, 1), 0);
    flow[0] = flow_to(5000, counters);
    ck_assert_ptr_nonnull(flow[0]);
    make(PLAIN);
    ck_assert_uint_eq(sent(), len);
    expect(counters, 3, 2 * len + 112);
    ck_assert_int_eq(ibv_destroy_flow(flow[0]), 0);
    ck_assert_int_eq(ibv_destroy_counters(counters), 0);
}
END_TEST

/* mlx5_attach_counters_point_flow(), flow_counters_set_data() and mlx5_ib_read_counters(). */
START_TEST(what_cannot_be_counted_is_refused)
{
    struct ibv_counters_init_attr strange = {.comp_mask = 1};
    struct ibv_counter_attach_attr bad = {.comp_mask = 1};
    struct ibv_counters *counters = counters_new(), *many = counters_new();
    struct ibv_flow *flow = flow_to(6000, NULL);
    struct rule twice = rule_new();
    uint64_t values[2];

    ck_assert_ptr_null(ibv_create_counters(v->b, &strange));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(ibv_attach_counters_point_flow(counters, &bad, NULL), EOPNOTSUPP);
    bad.comp_mask = 0;
    ck_assert_int_eq(ibv_attach_counters_point_flow(counters, &bad, flow), EOPNOTSUPP);
    ck_assert_int_eq(attach(counters, (enum ibv_counter_description)(IBV_COUNTER_BYTES + 1), 0),
                     EOPNOTSUPP);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_ptr_null(flow_to(5000, counters)); /* nothing is attached */
    ck_assert_int_eq(errno, EINVAL);
    for (unsigned i = 0; i < 65; i++) {
        ck_assert_int_eq(attach(many, IBV_COUNTER_PACKETS, i), 0);
    }
    ck_assert_ptr_null(flow_to(5000, many));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(attach(counters, IBV_COUNTER_PACKETS, 1), 0);
    ck_assert_int_eq(ibv_read_counters(counters, values, 2, 0), EINVAL); /* no flow has them */
    flow = flow_to(5000, counters);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(ibv_read_counters(counters, values, 1, 0), EINVAL); /* index 1 is attached */
    ck_assert_int_eq(ibv_read_counters(counters, values, 2, 2), EINVAL);
    ck_assert_int_eq(ibv_read_counters(counters, values, 2, 0), 0);
    ADD(&twice, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = counters);
    ADD(&twice, counter_action, IBV_FLOW_SPEC_ACTION_COUNT, .counters = counters);
    ck_assert_ptr_null(ibv_create_flow(qp[1], &twice.attr));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_counters(counters), 0);
    ck_assert_int_eq(ibv_destroy_counters(many), 0);
}
END_TEST

/* A refused command leaves the counters as they were. */
START_TEST(a_refusal_of_the_device_is_told)
{
    struct ibv_counters *counters = counters_new();
    struct ibv_flow *flow;
    uint64_t value;

    ck_assert_int_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
    table_refuse(v, 1, PRM_CMD_STATUS_LIM_ERR); /* the counter */
    ck_assert_ptr_null(flow_to(5000, counters));
    ck_assert_int_eq(errno, ENOMEM);
    flow = flow_to(5000, counters);
    ck_assert_ptr_nonnull(flow);
    table_refuse(v, 1, PRM_CMD_STATUS_INTERNAL_ERR);
    ck_assert_int_eq(ibv_read_counters(counters, &value, 1, 0), EIO);
    ck_assert_int_eq(ibv_read_counters(counters, &value, 1, 0), 0);
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    table_refuse(v, 1, PRM_CMD_STATUS_INTERNAL_ERR);
    ck_assert_int_eq(ibv_destroy_counters(counters), EIO);
    ck_assert_int_eq(ibv_destroy_counters(counters), 0);
}
END_TEST

/* uverbs_destroy_ufile_hw(): counters end with their file, after their flows. */
START_TEST(a_closed_device_has_no_counters)
{
    struct ibv_context *other = ibv_open_device(v->b->device);
    struct ibv_counters_init_attr attr = {0};
    struct ibv_counters *counters = ibv_create_counters(other, &attr);

    ck_assert_ptr_nonnull(counters);
    ck_assert_int_eq(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
    ck_assert_int_eq(ibv_close_device(other), 0);
    free(counters); /* the structure stays */
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("flow_counters");
    TCase *tc = tcase_create("flow_counters");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_flow_counts_its_packets);
    tcase_add_test(tc, counters_may_have_several_flows);
    tcase_add_test(tc, what_cannot_be_counted_is_refused);
    tcase_add_test(tc, a_refusal_of_the_device_is_told);
    tcase_add_test(tc, a_closed_device_has_no_counters);
    return suite;
}
