/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the memory that the library holds for its HCAs (guest-lib/host/held.h): allocated memory is
 * zeroed and lies in the range in which an access cannot fault, and freed memory is allocated
 * again.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "guest-lib/host/held.h"
#include "guest-lib/host/memory.h"
#include "tests/unit/suite.h"

#define RECORD 64
#define PAGE   4096

static bool all_zero(const uint8_t *p, size_t len)
{
    return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

START_TEST(blocks_are_zeroed_aligned_and_in_the_range)
{
    static const size_t sizes[] = {8, RECORD, RECORD + 1, PAGE, PAGE + 1, 1 << 20, 3 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t align = sizes[i] <= RECORD ? RECORD : sizes[i] < PAGE ? 2 * RECORD : PAGE;
        uint8_t *p = held_alloc(sizes[i]);

        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % align, 0);
        ck_assert(held_has((uintptr_t)p, sizes[i]));
        ck_assert(all_zero(p, sizes[i]));
        memset(p, 0xa5, sizes[i]);
        held_free(p, sizes[i]);
    }
}
END_TEST

START_TEST(a_freed_block_is_given_again_and_zeroed)
{
    static const size_t sizes[] = {RECORD, PAGE, 1 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *first = held_alloc(sizes[i]), *again;

        memset(first, 0xa5, sizes[i]);
        held_free(first, sizes[i]);
        again = held_alloc(sizes[i]);
        ck_assert_ptr_eq(again, first);
        ck_assert(all_zero(again, sizes[i]));
        held_free(again, sizes[i]);
    }
}
END_TEST

START_TEST(blocks_do_not_overlap)
{
    uint8_t *p[200];

    for (unsigned i = 0; i < 200; i++) {
        p[i] = held_alloc(RECORD);
        memset(p[i], (int)i + 1, RECORD);
    }
    for (unsigned i = 0; i < 200; i++) {
        for (unsigned j = 0; j < RECORD; j++) {
            ck_assert_uint_eq(p[i][j], i + 1);
        }
        held_free(p[i], RECORD);
    }
}
END_TEST

START_TEST(a_freed_block_may_still_be_reached)
{
    uint8_t *p = held_alloc(1 << 20);

    held_free(p, 1 << 20);
    ck_assert_uint_eq(*(volatile uint8_t *)(p + (1 << 19)), 0); /* an access does not fault */
}
END_TEST

START_TEST(the_range_ends_where_it_ends)
{
    held_free(held_alloc(RECORD), RECORD);
    ck_assert_uint_gt(held_size, 0);
    ck_assert(held_has(held_start, held_size));
    ck_assert(!held_has(held_start, held_size + 1));
    ck_assert(!held_has(held_start - 1, 1));
    ck_assert(!held_has(held_start + held_size, 1));
    ck_assert(!held_has(held_start + held_size - 1, 2));
    ck_assert(!held_has(held_start + 1, SIZE_MAX));
}
END_TEST

/* Memory that is only reserved must not count as memory. If a program gave the HCA a wild address
 * there, the HCA would fault, and could not recover. */
START_TEST(what_is_only_reserved_does_not_answer)
{
    uint8_t byte, *p = held_alloc(PAGE);
    uint64_t beyond;

    memory_catch_faults();
    beyond = (uintptr_t)p + (1ull << 33); /* half of the range further on */
    ck_assert(held_has((uintptr_t)p, PAGE));
    ck_assert(!held_has(beyond, 1));
    ck_assert(!held_has(held_start + held_size, 1));
    ck_assert(!memory_read(beyond, &byte, 1, NULL));
    held_free(p, PAGE);
}
END_TEST

START_TEST(what_no_range_has_room_for_is_refused)
{
    ck_assert_ptr_null(held_alloc((size_t)1 << 62));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(without_address_space_to_reserve_there_is_memory_all_the_same)
{
    struct rlimit limit = {.rlim_cur = 1 << 30, .rlim_max = 1 << 30};
    uint8_t *record, *ring;

    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    record = held_alloc(RECORD);
    ring = held_alloc(2 * PAGE);
    ck_assert_uint_eq(held_size, 0);
    ck_assert(!held_has((uintptr_t)ring, 1));
    ck_assert(all_zero(record, RECORD));
    ck_assert(all_zero(ring, 2 * PAGE));
    ck_assert_uint_eq((uintptr_t)record % RECORD, 0);
    held_free(record, RECORD);
    held_free(ring, 2 * PAGE);
}
END_TEST

static bool limits_addresses(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false; /* the sanitizer's shadow is larger than any limit */
#else
    return true;
#endif
}

Suite *unit_suite(void)
{
    Suite *suite = suite_create("held");
    TCase *tc = tcase_create("held");

    tcase_add_test(tc, blocks_are_zeroed_aligned_and_in_the_range);
    tcase_add_test(tc, a_freed_block_is_given_again_and_zeroed);
    tcase_add_test(tc, blocks_do_not_overlap);
    tcase_add_test(tc, a_freed_block_may_still_be_reached);
    tcase_add_test(tc, the_range_ends_where_it_ends);
    tcase_add_test(tc, what_is_only_reserved_does_not_answer);
    tcase_add_test(tc, what_no_range_has_room_for_is_refused);
    if (limits_addresses()) {
        tcase_add_test(tc, without_address_space_to_reserve_there_is_memory_all_the_same);
    }
    suite_add_tcase(suite, tc);
    return suite;
}
