/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the table of numbered objects: numbers are used in rotation, whichever are freed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>
#include "model/core/obj.h"
#include "tests/unit/suite.h"

#define FIRST 5
#define END   (70 * OBJ_CHUNK + 3) /* more chunks than a word has bits, the last one short */

static struct ledger ledger;
static struct obj_table table;
static struct obj *objs; /* by number */

/* ck_assert() notifies the test's parent each time, which is too slow for a hundred thousand
 * numbers. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ck_abort_msg("%s", #condition);                                                        \
        }                                                                                          \
    } while (0)

static void setup(void)
{
    ledger = (struct ledger){.limit = UINT64_MAX};
    obj_table_init(&table, &ledger, FIRST, END);
    objs = g_new0(struct obj, END);
}

static void teardown(void)
{
    for (uint32_t num = FIRST; num < END; num++) {
        if (obj_find(&table, num)) {
            obj_remove(&table, obj_find(&table, num));
        }
    }
    obj_table_clear(&table);
    ck_assert_uint_eq(ledger.used, 0);
    g_free(objs);
}

static void fill(void)
{
    for (uint32_t num = FIRST; num < END; num++) {
        MUST(obj_insert(&table, &objs[num]) && objs[num].num == num);
    }
}

START_TEST(a_table_gives_out_every_number_once)
{
    struct obj more;

    fill();
    ck_assert_uint_eq(table.count, END - FIRST);
    ck_assert(!obj_insert(&table, &more));
    ck_assert_ptr_null(obj_find(&table, FIRST - 1));
    ck_assert_ptr_null(obj_find(&table, END));
    ck_assert_ptr_eq(obj_next(&table, 0), &objs[FIRST]);
    ck_assert_ptr_null(obj_next(&table, END));
}
END_TEST

/* A stale packet or doorbell finds nothing. */
START_TEST(a_number_given_back_comes_again_last)
{
    static struct obj a, b;

    ck_assert(obj_insert(&table, &a));
    obj_remove(&table, &a);
    for (uint32_t num = FIRST + 1; num < END; num++) {
        MUST(obj_insert(&table, &objs[num]) && objs[num].num == num);
    }
    ck_assert(obj_insert(&table, &b));
    ck_assert_uint_eq(b.num, FIRST);
}
END_TEST

/* The only free number of a table is found, wherever it is and wherever the search begins. */
START_TEST(a_search_may_begin_at_any_number)
{
    obj_table_start(&table, END - FIRST - 1 + 3 * (END - FIRST));
    for (int reset = 0; reset < 2; reset++) {
        MUST(obj_insert(&table, &objs[END - 1]) && objs[END - 1].num == END - 1);
        MUST(obj_insert(&table, &objs[FIRST]) && objs[FIRST].num == FIRST);
        obj_remove(&table, &objs[END - 1]);
        obj_remove(&table, &objs[FIRST]);
        obj_table_reset(&table);
    }
}
END_TEST

START_TEST(a_full_table_finds_its_last_free_number_at_once)
{
    uint64_t most = 0;

    fill();
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t num = FIRST + i * 7919 % (END - FIRST);
        uint64_t before = table.steps;

        obj_remove(&table, &objs[num]);
        MUST(obj_insert(&table, &objs[num]) && objs[num].num == num);
        most = MAX(most, table.steps - before);
    }
    ck_assert_uint_le(most, 64);
}
END_TEST

/* Compares with the plainest table: an array of the used numbers. */
START_TEST(a_walk_meets_what_is_there)
{
    GRand *rand = g_rand_new_with_seed(7);
    struct obj *obj;
    uint32_t n;

    for (unsigned round = 0; round < 20; round++) {
        /* dense in one round, sparse in the other */
        for (unsigned i = 0; i < (round % 2 ? 40u : 40000u); i++) {
            uint32_t num = (uint32_t)g_rand_int_range(rand, FIRST, END);

            MUST(obj_insert_at(&table, &objs[num], num) == (objs[num].kind == OBJ_NONE));
            objs[num].kind = OBJ_PD;
        }
        n = 0;
        for (uint32_t num = 0; (obj = obj_next(&table, num)); num = obj->num + 1) {
            while (n < obj->num) {
                MUST(objs[n++].kind == OBJ_NONE);
            }
            MUST(obj == &objs[n++] && obj->kind == OBJ_PD);
        }
        while (n < END) {
            MUST(objs[n++].kind == OBJ_NONE);
        }
        n = 0;
        while ((obj = obj_next(&table, n))) { /* removing on the way */
            n = obj->num + 1;
            if (g_rand_int_range(rand, 0, 8) || round % 2) {
                obj_remove(&table, obj);
                obj->kind = OBJ_NONE;
            }
        }
    }
    ck_assert_uint_eq(table.count, 0);
    ck_assert_ptr_null(obj_next(&table, 0));
    g_rand_free(rand);
}
END_TEST

/* A table that was large and is nearly empty now uses little memory. */
START_TEST(a_table_keeps_no_room_for_what_is_gone)
{
    unsigned chunks = 0;

    fill();
    for (uint32_t num = FIRST; num < END; num++) {
        obj_remove(&table, &objs[num]);
    }
    for (uint32_t i = 0; i < (END + OBJ_CHUNK - 1) / OBJ_CHUNK; i++) {
        chunks += table.chunks[i] != NULL;
    }
    ck_assert_uint_le(chunks, 1);
    obj_table_reset(&table);
    ck_assert(obj_insert(&table, &objs[FIRST]));
    ck_assert_uint_eq(objs[FIRST].num, FIRST);
}
END_TEST

/* Reserved numbers are not given out, may be requested explicitly, and are free again once
 * released; objects that use one keep it. A walk visits objects only. */
START_TEST(reserved_numbers_are_given_out_on_request_only)
{
    uint32_t first, second, least = 64;

    MUST(obj_insert_at(&table, &objs[OBJ_CHUNK + 70], OBJ_CHUNK + 70));
    MUST(obj_reserve(&table, &first) && first == least);
    for (uint32_t num = least + 64; num < OBJ_CHUNK; num += 64) {
        MUST(obj_reserve(&table, &second) && second == num);
    }
    MUST(obj_reserve(&table, &second) && second == OBJ_CHUNK);
    MUST(obj_reserve(&table, &second) && second == OBJ_CHUNK + 128); /* 70 is in between */
    MUST(obj_insert_at(&table, &objs[100], 100));
    MUST(!obj_insert_at(&table, &objs[100], 100));
    MUST(table.count == 2 && obj_next(&table, 0) == &objs[100]);
    MUST(obj_next(&table, 101) == &objs[OBJ_CHUNK + 70]);
    for (uint32_t num = FIRST; num < 64; num++) {
        MUST(obj_insert(&table, &objs[num]) && objs[num].num == num);
    }
    MUST(obj_insert(&table, &objs[OBJ_CHUNK + 64]) && objs[OBJ_CHUNK + 64].num == OBJ_CHUNK + 64);
    obj_remove(&table, &objs[100]);
    MUST(obj_insert_at(&table, &objs[100], 100)); /* it is still reserved */
    for (uint32_t num = least; num <= OBJ_CHUNK; num += 64) {
        obj_unreserve(&table, num);
    }
    obj_unreserve(&table, OBJ_CHUNK + 128);
    MUST(obj_find(&table, 100) == &objs[100]);
    table.next = 100;
    MUST(obj_insert(&table, &objs[101]) && objs[101].num == 101);
}
END_TEST

/* Reserved numbers do not make a walk more expensive. */
START_TEST(a_walk_steps_over_reserved_numbers)
{
    uint32_t first, n = 0;
    uint64_t before;

    MUST(obj_insert_at(&table, &objs[FIRST], FIRST));
    MUST(obj_insert_at(&table, &objs[END - 1], END - 1));
    while (obj_reserve(&table, &first)) {
        n++;
    }
    before = table.steps;
    MUST(obj_next(&table, FIRST + 1) == &objs[END - 1]);
    MUST(!obj_next(&table, END));
    ck_assert_uint_le(table.steps - before, 64);
    MUST(obj_insert_at(&table, &objs[END / 2], END / 2));
    MUST(obj_next(&table, FIRST + 1) == &objs[END / 2]);
    obj_remove(&table, &objs[END / 2]);
    MUST(obj_next(&table, FIRST + 1) == &objs[END - 1]);
    obj_remove(&table, &objs[END - 1]);
    obj_remove(&table, &objs[FIRST]);
    MUST(!obj_next(&table, 0));
    for (uint32_t i = 1; i <= n; i++) {
        obj_unreserve(&table, 64 * i);
    }
}
END_TEST

/* Every number may be reserved once; a full table reserves none. */
START_TEST(a_table_reserves_what_is_free)
{
    uint32_t first, n = 0;

    while (obj_reserve(&table, &first)) {
        n++;
    }
    ck_assert_uint_eq(n, END / 64 - 1); /* the first 64 are short of some, as the last are */
    for (uint32_t i = 1; i <= n; i++) {
        obj_unreserve(&table, 64 * i);
    }
    fill();
    ck_assert(!obj_reserve(&table, &first));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("obj");
    TCase *tc = tcase_create("table");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_table_gives_out_every_number_once);
    tcase_add_test(tc, a_number_given_back_comes_again_last);
    tcase_add_test(tc, a_search_may_begin_at_any_number);
    tcase_add_test(tc, a_full_table_finds_its_last_free_number_at_once);
    tcase_add_test(tc, a_walk_meets_what_is_there);
    tcase_add_test(tc, a_table_keeps_no_room_for_what_is_gone);
    tcase_add_test(tc, reserved_numbers_are_given_out_on_request_only);
    tcase_add_test(tc, a_walk_steps_over_reserved_numbers);
    tcase_add_test(tc, a_table_reserves_what_is_free);
    suite_add_tcase(s, tc);
    return s;
}
