/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests tunneled atomics: "when an RDMA Write operation is issued, the payload indicates which
 * atomic operation to perform, instead of being written to the memory region". The operations are
 * those of the atomic stores of Power ISA 3.0.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/mkey_bench.h"
#include "tests/unit/suite.h"

#define BYTES PRM_SIZE(tunneled_atomic)

static uint32_t create_tunneled(void)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[16] = {0};

    prm_store64(mtt, mem);
    prm_store64(mtt + 8, mem + 5 * PAGE);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, VA, 2 * PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    PRM_SET(mkc, mkc, tunneled_atomic, 1);
    return create(mkc, mtt, 16);
}

/* An RDMA WRITE whose payload is that operation. */
static enum mem_result tunnel(uint32_t key, uint64_t va, uint32_t op, uint32_t log_size,
                              uint64_t operand)
{
    struct prm_tunneled_atomic payload[1] = {0};

    PRM_SET(tunneled_atomic, payload, op, op);
    PRM_SET(tunneled_atomic, payload, log_size, log_size);
    PRM_SET(tunneled_atomic, payload, operand, operand);
    return mkey_write(&rig.hca, key, rig.pdn, va, payload, BYTES, MEM_REMOTE_WRITE);
}

static void put(uint64_t offset, size_t size, uint64_t value)
{
    memcpy(ram(offset), &value, size); /* little endian, as the host is */
}

static uint64_t get(uint64_t offset, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, ram(offset), size);
    return value;
}

static const struct {
    uint32_t op;
    uint32_t size;
    uint64_t held, operand, result;
} cases[] = {
    {PRM_TUNNELED_OP_ADD, 8, UINT64_MAX, 3, 2},
    {PRM_TUNNELED_OP_ADD, 4, UINT32_MAX, 3, 2},
    {PRM_TUNNELED_OP_XOR, 8, 0xff00ff00ff00ff00, 0xffff000000000001, 0x00ffff00ff00ff01},
    {PRM_TUNNELED_OP_XOR, 4, 0x0f, 0xf000000f, 0xf0000000},
    {PRM_TUNNELED_OP_OR, 8, 1, 1ull << 63, 1ull << 63 | 1},
    {PRM_TUNNELED_OP_OR, 4, 1, 1u << 31, 1u << 31 | 1},
    {PRM_TUNNELED_OP_AND, 8, 0xff, 0xf0f0, 0xf0},
    {PRM_TUNNELED_OP_AND, 4, 0xff, 0xf0f0, 0xf0},
    {PRM_TUNNELED_OP_MAX_UNSIGNED, 8, 5, UINT64_MAX, UINT64_MAX},
    {PRM_TUNNELED_OP_MAX_UNSIGNED, 4, UINT32_MAX, 5, UINT32_MAX},
    {PRM_TUNNELED_OP_MAX_SIGNED, 8, 5, UINT64_MAX, 5},
    {PRM_TUNNELED_OP_MAX_SIGNED, 4, UINT32_MAX, 5, 5},
    {PRM_TUNNELED_OP_MIN_UNSIGNED, 8, 5, UINT64_MAX, 5},
    {PRM_TUNNELED_OP_MIN_UNSIGNED, 4, UINT32_MAX, 5, 5},
    {PRM_TUNNELED_OP_MIN_SIGNED, 8, 5, UINT64_MAX, UINT64_MAX},
    {PRM_TUNNELED_OP_MIN_SIGNED, 4, UINT32_MAX, 5, UINT32_MAX},
    {PRM_TUNNELED_OP_MIN_SIGNED, 4, 7, 0x80000000, 0x80000000},
};

START_TEST(the_payload_says_which_operation_to_perform)
{
    uint32_t key = create_tunneled(), size = cases[_i].size;
    uint64_t at = 5 * PAGE + 64; /* in the key's second page */

    memset(ram(at - 16), 0xaa, 48);
    put(at, size, cases[_i].held);
    ck_assert_int_eq(
        tunnel(key, VA + PAGE + 64, cases[_i].op, size == 8 ? 3 : 2, cases[_i].operand), MEM_OK);
    ck_assert_uint_eq(get(at, size), cases[_i].result);
    for (unsigned i = 0; i < 16; i++) { /* nothing of the payload is in memory */
        ck_assert_uint_eq(*ram(at - 16 + i), 0xaa);
        ck_assert_uint_eq(*ram(at + size + i), 0xaa);
    }
}
END_TEST

/* A cached run stands for the checks of later accesses, but a WRITE stays an operation. */
START_TEST(other_accesses_of_the_key_are_plain)
{
    uint32_t key = create_tunneled();
    uint64_t word = 40, held;
    uint8_t byte = 9;

    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA + 8, &word, 8, MEM_LOCAL_WRITE),
                         MEM_OK);
        ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, VA + 8, &held, 8, MEM_REMOTE_READ),
                         MEM_OK);
        ck_assert_uint_eq(held, 40);
        ck_assert_int_eq(tunnel(key, VA + 8, PRM_TUNNELED_OP_ADD, 3, 2), MEM_OK);
        ck_assert_uint_eq(get(8, 8), 42);
        ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + 8, 1, &held), MEM_OK);
        ck_assert_uint_eq(held, 42);
        ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA + 9, &byte, 1, MEM_REMOTE_WRITE),
                         MEM_BAD_BOUNDS);
    }
}
END_TEST

/* A peer may send a payload that is no operation, or name an address where no word is. */
START_TEST(anything_else_is_refused_and_changes_nothing)
{
    uint32_t key = create_tunneled();
    uint8_t before[2 * BYTES], payload[2 * BYTES] = {PRM_TUNNELED_OP_ADD, 3};
    struct mkey_words words;
    char *why;

    memcpy(before, ram(0), sizeof(before));
    for (size_t len = 1; len <= sizeof(payload); len++) {
        if (len != BYTES) {
            ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, payload, len, MEM_REMOTE_WRITE),
                             MEM_BAD_BOUNDS);
        }
    }
    for (size_t i = 2; i < 8; i++) {
        payload[i] = 1;
        ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, payload, BYTES, MEM_REMOTE_WRITE),
                         MEM_BAD_BOUNDS);
        payload[i] = 0;
    }
    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_MIN_SIGNED + 1, 3, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_ADD, 1, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_ADD, 4, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_ADD, 2, 1ull << 32), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA + 4, PRM_TUNNELED_OP_ADD, 3, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA + 2, PRM_TUNNELED_OP_ADD, 2, 1), MEM_BAD_BOUNDS);
    why = g_strdup_printf("rkey 0x%x takes only tunneled atomics: 16 bytes with an operation, for "
                          "an aligned word in one piece of its memory",
                          key);
    ck_assert_str_eq(mkey_why(&rig.hca, &words), why);
    g_free(why);
    ck_assert_int_eq(tunnel(key, VA + 2 * PAGE - 8, PRM_TUNNELED_OP_ADD, 3, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key ^ 1, VA, PRM_TUNNELED_OP_ADD, 3, 1), MEM_BAD_KEY);
    ck_assert_mem_eq(ram(0), before, sizeof(before));
    ck_assert_int_eq(tunnel(key, VA + 2 * PAGE - 16, PRM_TUNNELED_OP_ADD, 3, 1), MEM_OK);
}
END_TEST

START_TEST(memory_that_is_not_there_is_no_word)
{
    uint32_t key = create_tunneled();

    rig.host.hole = mem + 8;
    ck_assert_int_eq(tunnel(key, VA + 8, PRM_TUNNELED_OP_XOR, 3, 1), MEM_NO_ANSWER);
    rig.host.hole = 0;
    rig.host.atomics_lose = true;
    ck_assert_int_eq(tunnel(key, VA + 8, PRM_TUNNELED_OP_XOR, 3, 1), MEM_BUSY);
    rig.host.atomics_lose = false;
    ck_assert_int_eq(tunnel(key, VA + 8, PRM_TUNNELED_OP_XOR, 3, 1), MEM_OK);
}
END_TEST

/* The driver takes the bit away by UMR when it puts the key back (MLX5_MKEY_MASK_TUNNELED_ATOMIC).
 */
START_TEST(a_umr_changes_what_a_write_does)
{
    uint32_t key = create_tunneled();
    uint64_t word = 7;
    struct umr umr;

    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_ADD, 3, 0), MEM_OK);
    umr_start(&umr, key, MASK(TUNNELED_ATOMIC));
    umr.req.privileged = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, &word, 8, MEM_REMOTE_WRITE), MEM_OK);
    ck_assert_uint_eq(get(0, 8), 7);

    umr_start(&umr, key, MASK(TUNNELED_ATOMIC));
    umr.req.privileged = true;
    PRM_SET(mkc, umr.mkc, tunneled_atomic, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, &word, 8, MEM_REMOTE_WRITE),
                     MEM_BAD_BOUNDS);
    ck_assert_int_eq(tunnel(key, VA, PRM_TUNNELED_OP_ADD, 3, 1), MEM_OK);
    ck_assert_uint_eq(get(0, 8), 8);

    umr_start(&umr, key, MASK(TUNNELED_ATOMIC));
    umr.req.privileged = umr.req.fast = false;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY); /* not the kernel's QP */
}
END_TEST

/* A generation that does not report the capability has no such keys, by command or by UMR. */
START_TEST(a_device_without_tunneled_atomics_has_no_such_keys)
{
    struct prm_mkc mkc[1];
    struct mkey *made = NULL;
    uint32_t key = create_scattered();
    uint64_t word = 7;
    struct umr umr;

    rig.hca.limits.tunneled = false;
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    ck_assert_int_eq(mkey_new(&rig.hca, 0, mkc, 0, true, &made), SYN_OK);
    mkey_drop(&rig.hca, made);
    PRM_SET(mkc, mkc, tunneled_atomic, 1);
    ck_assert_int_eq(mkey_new(&rig.hca, 0, mkc, 0, true, &made), SYN_MKEY_MODE);

    umr_start(&umr, key, MASK(TUNNELED_ATOMIC));
    umr.req.privileged = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK); /* it clears the bit */
    PRM_SET(mkc, umr.mkc, tunneled_atomic, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA + IN_PAGE, &word, 8, MEM_REMOTE_WRITE),
                     MEM_OK);
}
END_TEST

/* A list of ranges can be tunneled as a whole; as a part of a list, the key is plain memory. */
START_TEST(keys_of_keys_may_be_tunneled)
{
    uint32_t inner = create_tunneled(), plain = create_scattered();
    struct prm_mkc mkc[1];
    uint8_t list[2 * 16] = {0};
    uint64_t word = 5;
    uint32_t key;

    klm(list, 0, 8, inner, VA);
    klm(list, 1, PAGE, RIG_NULL_MKEY, 0);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 8 + PAGE, list, 2);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, 0, &word, 8, MEM_REMOTE_WRITE), MEM_OK);
    ck_assert_uint_eq(get(0, 8), 5);

    klm(list, 0, 24, inner, VA);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 24 + PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, 2);
    PRM_SET(mkc, mkc, tunneled_atomic, 1);
    key = create(mkc, list, sizeof(list));
    ck_assert_int_eq(tunnel(key, 0, PRM_TUNNELED_OP_ADD, 3, 1), MEM_OK);
    ck_assert_uint_eq(get(0, 8), 6);
    ck_assert_int_eq(tunnel(key, 24, PRM_TUNNELED_OP_ADD, 3, 1), MEM_OK); /* the null key */

    klm(list, 0, 12, plain, VA + IN_PAGE + 1); /* 0x124: aligned to 4 */
    PRM_SET(mkc, mkc, len, 12 + PAGE);
    key = create(mkc, list, sizeof(list));
    ck_assert_int_eq(tunnel(key, 0, PRM_TUNNELED_OP_OR, 2, 0), MEM_OK);
    ck_assert_int_eq(tunnel(key, 0, PRM_TUNNELED_OP_OR, 3, 0), MEM_BAD_BOUNDS); /* 4 of 8 */
    ck_assert_int_eq(tunnel(key, 8, PRM_TUNNELED_OP_OR, 3, 0), MEM_BAD_BOUNDS); /* two pieces */

    klm(list, 0, 4, inner, VA); /* memory at 8 has the address 4 */
    klm(list, 1, PAGE, inner, VA + 8);
    PRM_SET(mkc, mkc, len, 4 + PAGE);
    key = create(mkc, list, sizeof(list));
    ck_assert_int_eq(tunnel(key, 4, PRM_TUNNELED_OP_OR, 2, 0), MEM_OK);
    ck_assert_int_eq(tunnel(key, 4, PRM_TUNNELED_OP_OR, 3, 0), MEM_BAD_BOUNDS);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tunneled");
    TCase *tc = tcase_create("tunneled");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, the_payload_says_which_operation_to_perform, 0, G_N_ELEMENTS(cases));
    tcase_add_test(tc, other_accesses_of_the_key_are_plain);
    tcase_add_test(tc, anything_else_is_refused_and_changes_nothing);
    tcase_add_test(tc, memory_that_is_not_there_is_no_word);
    tcase_add_test(tc, a_umr_changes_what_a_write_does);
    tcase_add_test(tc, a_device_without_tunneled_atomics_has_no_such_keys);
    tcase_add_test(tc, keys_of_keys_may_be_tunneled);
    suite_add_tcase(suite, tc);
    return suite;
}
