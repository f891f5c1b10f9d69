/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ports, GIDs, the clock and the settings of a context of experimental verbs, against what
 * rdma-core's verbs say of the same device, in virtual time.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

#define SAME(member) ck_assert_uint_eq(exp.port_attr.member, port.member)

START_TEST(a_port_has_the_attributes_of_verbs)
{
    struct ibv_exp_port_attr exp;
    struct ibv_port_attr port;

    ck_assert_int_eq(ibv_query_port(v->a, 1, &port), 0);
    for (int masked = 0; masked < 2; masked++) {
        memset(&exp, 0xee, sizeof(exp));
        exp.comp_mask = masked ? IBV_EXP_QUERY_PORT_ATTR_MASK1 : 0;
        exp.mask1 = IBV_EXP_QUERY_PORT_STATE;
        ck_assert_int_eq(ibv_exp_query_port(v->a, 1, &exp), 0);
        SAME(state);
        SAME(max_mtu);
        SAME(active_mtu);
        SAME(gid_tbl_len);
        SAME(port_cap_flags);
        SAME(max_msg_sz);
        SAME(pkey_tbl_len);
        SAME(lid);
        SAME(active_width);
        SAME(active_speed);
        SAME(phys_state);
        SAME(link_layer);
    }
    ck_assert_uint_eq(exp.port_attr.reserved, 0);
    ck_assert_int_eq(ibv_exp_query_port(v->a, 2, &exp), EINVAL);
    exp.comp_mask = IBV_EXP_QUERY_PORT_ATTR_MASK1;
    exp.mask1 = ~0u;
    ck_assert_int_eq(ibv_exp_query_port(v->a, 1, &exp), -EINVAL);
}
END_TEST

/* An entry that is not in use has type RoCE v1 and GID 0. Only what is asked for is written. */
START_TEST(a_gid_has_its_type)
{
    const uint32_t both = IBV_EXP_QUERY_GID_ATTR_TYPE | IBV_EXP_QUERY_GID_ATTR_GID;
    struct ibv_exp_gid_attr attr;
    struct ibv_gid_entry entry;
    struct ibv_port_attr port;
    unsigned used = 0, unused = 0;

    ck_assert_int_eq(ibv_query_port(v->a, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        bool is_used = ibv_query_gid_ex(v->a, 1, (uint32_t)i, &entry, 0) == 0;
        static const union ibv_gid none;

        used += is_used;
        unused += !is_used;
        memset(&attr, 0xee, sizeof(attr));
        attr.comp_mask = both;
        ck_assert_int_eq(ibv_exp_query_gid_attr(v->a, 1, (unsigned)i, &attr), 0);
        ck_assert_int_eq(attr.type, is_used && entry.gid_type == IBV_GID_TYPE_ROCE_V2
                                        ? IBV_EXP_ROCE_V2_GID_TYPE
                                        : IBV_EXP_IB_ROCE_V1_GID_TYPE);
        ck_assert_mem_eq(&attr.gid, is_used ? &entry.gid : &none, sizeof(none));
    }
    ck_assert(used > 0 && unused > 0);
    for (uint32_t bit = 1; bit <= 2; bit <<= 1) {
        struct ibv_exp_gid_attr before;

        memset(&attr, 0xee, sizeof(attr));
        attr.comp_mask = bit;
        before = attr;
        ck_assert_int_eq(ibv_exp_query_gid_attr(v->a, 1, 0, &attr), 0);
        ck_assert((memcmp(&attr.type, &before.type, sizeof(attr.type)) == 0) !=
                  (bit == IBV_EXP_QUERY_GID_ATTR_TYPE));
        ck_assert((memcmp(&attr.gid, &before.gid, sizeof(attr.gid)) == 0) !=
                  (bit == IBV_EXP_QUERY_GID_ATTR_GID));
    }
    ck_assert_int_ne(ibv_exp_query_gid_attr(v->a, 1, (unsigned)port.gid_tbl_len, &attr), 0);
    ck_assert_int_ne(ibv_exp_query_gid_attr(v->a, 2, 0, &attr), 0);
}
END_TEST

/* The clock runs with virtual time, and both ways to nanoseconds agree. */
START_TEST(the_clock_is_read)
{
    const int clock = IBV_EXP_VALUES_HW_CLOCK | IBV_EXP_VALUES_HW_CLOCK_NS;
    struct ibv_exp_values first = {0}, then = {0}, info = {0};
    uint64_t passed;

    ck_assert_int_eq(ibv_exp_query_values(v->a, clock, &first), 0);
    ck_assert_uint_eq(first.comp_mask, clock);
    inproc_advance(v->hosts->world, VERBS_SECOND);
    ck_assert_int_eq(ibv_exp_query_values(v->a, IBV_EXP_VALUES_HW_CLOCK_NS, &then), 0);
    ck_assert_uint_eq(then.comp_mask, IBV_EXP_VALUES_HW_CLOCK_NS);
    passed = then.hwclock_ns - first.hwclock_ns;
    ck_assert(passed >= VERBS_SECOND - 1000 && passed < VERBS_SECOND + VERBS_SECOND / 100);
    ck_assert_int_eq(ibv_exp_query_values(v->a, IBV_EXP_VALUES_CLOCK_INFO, &info), 0);
    ck_assert_uint_eq(info.comp_mask, IBV_EXP_VALUES_CLOCK_INFO);
    ck_assert_uint_eq(info.hwclock, 0); /* was not asked for */
    passed = ibv_exp_cqe_ts_to_ns(&info.clock_info, then.hwclock) -
             ibv_exp_cqe_ts_to_ns(&info.clock_info, first.hwclock);
    ck_assert(passed >= VERBS_SECOND - 1000 && passed < VERBS_SECOND + VERBS_SECOND / 100);
    info.comp_mask = IBV_EXP_VALUES_RESERVED;
    ck_assert_int_ne(ibv_exp_query_values(v->a, clock, &info), 0);
}
END_TEST

static const char *private_value(const char *name)
{
    struct verbs_env_item *item = verbs_get_exp_ctx(v->a)->venv->head;

    while (item && strcmp(item->name, name) != 0) {
        item = item->next;
    }
    return item ? item->value : NULL;
}

/* Settings are those of the process until the context has its own, which begin as a copy. */
START_TEST(a_context_may_have_settings_of_its_own)
{
    unsetenv("HV_TEST_NEW");
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_OLD", "1", 1), 0);
    ck_assert_str_eq(getenv("HV_TEST_OLD"), "1");
    ck_assert_int_eq(ibv_exp_use_priv_env(v->a), 0);
    ck_assert_str_eq(private_value("HV_TEST_OLD"), "1");
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_NEW", "2", 0), 0);
    ck_assert_str_eq(private_value("HV_TEST_NEW"), "2");
    ck_assert_ptr_null(getenv("HV_TEST_NEW"));
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_OLD", "1", 0), 0); /* it has this value */
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_OLD", "3", 0), -1);
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_str_eq(private_value("HV_TEST_OLD"), "1");
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_OLD", "3", 1), 0);
    ck_assert_str_eq(private_value("HV_TEST_OLD"), "3");
    ck_assert_str_eq(getenv("HV_TEST_OLD"), "1");
    ck_assert_int_eq(ibv_exp_use_priv_env(v->a), 0); /* it keeps what it has */
    ck_assert_str_eq(private_value("HV_TEST_OLD"), "3");
    ck_assert_ptr_null(verbs_get_exp_ctx(v->b)->venv);
    unsetenv("HV_TEST_OLD");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("exp_port");
    TCase *tc = tcase_create("exp_port");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_port_has_the_attributes_of_verbs);
    tcase_add_test(tc, a_gid_has_its_type);
    tcase_add_test(tc, the_clock_is_read);
    tcase_add_test(tc, a_context_may_have_settings_of_its_own);
    suite_add_tcase(suite, tc);
    return suite;
}
