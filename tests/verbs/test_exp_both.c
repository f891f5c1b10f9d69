/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that experimental verbs and those of rdma-core live in one process: a number goes back and
 * forth between a side compiled with each header, on one wire.
 */
#include <check.h>
#include "tests/unit/suite.h"
#include "tests/programs/exp_sides.h"
#include "tests/verbs/verbs_table.h"

#define ROUNDS 20

static uint32_t receive(struct verbs_table *v, const struct side *side, void *program)
{
    uint32_t value = 0;
    bool received = false;

    for (int i = 0; i < 1000 && !received; i++) {
        if (!side->poll(program, &received, &value)) {
            table_wait(v);
        }
    }
    ck_assert_msg(received, "%s received nothing", side->name);
    return value;
}

static void play(const struct side *first, const struct side *second)
{
    struct verbs_table *v = verbs_table_new();
    void *a = first->open(v->a, v->hosts->host[0].pd);
    void *b = second->open(v->b, v->hosts->host[1].pd);
    uint32_t value = 0;

    table_connect(v, first->qp(a), second->qp(b));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        second->post_recv(b);
        first->send(a, value + 1);
        value = receive(v, second, b);
        ck_assert_uint_eq(value, 2 * i + 1);
        first->post_recv(a);
        second->send(b, value + 1);
        value = receive(v, first, a);
        ck_assert_uint_eq(value, 2 * i + 2);
    }
    first->close(a);
    second->close(b);
    verbs_table_free(v);
}

START_TEST(both_headers_meet_on_one_wire)
{
    play(&exp_side, &core_side);
    play(&core_side, &exp_side);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-both");
    TCase *tc = tcase_create("both");

    tcase_add_test(tc, both_headers_meet_on_one_wire);
    suite_add_tcase(suite, tc);
    return suite;
}
