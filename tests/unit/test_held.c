/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests memory that the library holds for its HCAs: blocks that are allocated and freed. */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include "guest-lib/host/held.h"
#include "tests/unit/suite.h"

#define PAGE   4096
#define BLOCKS 100

static bool is_zero(const uint8_t *block, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i]) {
            return false;
        }
    }
    return true;
}

/* Returns the number of its pages that use memory. */
static unsigned resident(void *block, size_t size)
{
    unsigned char in[16] = {0};
    unsigned n = 0;

    ck_assert_uint_le(size / PAGE, sizeof(in));
    ck_assert_int_eq(mincore(block, size, in), 0);
    for (size_t i = 0; i < size / PAGE; i++) {
        n += in[i] & 1;
    }
    return n;
}

static const size_t sizes[] = {64, 100, 2048, PAGE, 5000, 4 * PAGE};

/* Twice: fresh blocks, then freed blocks. */
START_TEST(blocks_are_zero_and_apart)
{
    size_t size = sizes[_i];
    uint8_t *block[BLOCKS];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = held_alloc(size);
            ck_assert_ptr_nonnull(block[i]);
            ck_assert(held_has((uintptr_t)block[i], size));
            ck_assert_uint_eq((uintptr_t)block[i] % MIN(PAGE, size & -size), 0);
            ck_assert(is_zero(block[i], size));
            memset(block[i], i + 1, size);
        }
        for (int i = 0; i < BLOCKS; i++) {
            ck_assert_uint_eq(block[i][0], i + 1);
            ck_assert_uint_eq(block[i][size - 1], i + 1);
            held_free(block[i], size);
        }
    }
}
END_TEST

START_TEST(a_block_given_back_is_taken_again)
{
    size_t size = sizes[_i], before;
    void *block = held_alloc(size);

    held_free(block, size);
    before = held_size;
    ck_assert_ptr_eq(held_alloc(size), block);
    ck_assert_uint_eq(held_size, before);
    held_free(block, size);
}
END_TEST

/* A device frees a thousand pages when it is closed: afterwards they use no memory. */
START_TEST(pages_given_back_take_no_memory)
{
    uint8_t *block = held_alloc(4 * PAGE);

    memset(block, 1, 4 * PAGE);
    ck_assert_uint_eq(resident(block, 4 * PAGE), 4);
    held_free(block, 4 * PAGE);
    ck_assert_uint_eq(resident(block, 4 * PAGE), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("held");
    TCase *tc = tcase_create("blocks");

    tcase_add_loop_test(tc, blocks_are_zero_and_apart, 0, (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_loop_test(tc, a_block_given_back_is_taken_again, 0,
                        (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_test(tc, pages_given_back_take_no_memory);
    suite_add_tcase(s, tc);
    return s;
}
