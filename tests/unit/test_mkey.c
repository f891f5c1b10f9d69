/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests memory keys: translation, checks, atomics, lists, and what hostile software may try.
 */
#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/mkey_bench.h"
#include "tests/unit/suite.h"

START_TEST(page_list_is_followed)
{
    uint32_t key = create_scattered();
    static uint8_t buf[LEN];

    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, VA + IN_PAGE, buf, LEN, MEM_REMOTE_READ),
                     MEM_OK);
    for (unsigned i = 0; i < LEN; i++) {
        ck_assert_uint_eq(buf[i], pattern(scattered_at(i)));
    }
    for (unsigned i = 0; i < 3000; i++) {
        buf[i] = i;
    }
    ck_assert_int_eq(
        mkey_write(&rig.hca, key, rig.pdn, VA + IN_PAGE + 2000, buf, 3000, MEM_REMOTE_WRITE),
        MEM_OK);
    for (unsigned i = 0; i < LEN; i++) {
        uint8_t want = i >= 2000 && i < 5000 ? (uint8_t)(i - 2000) : pattern(scattered_at(i));

        ck_assert_uint_eq(*ram(scattered_at(i)), want);
    }
    ck_assert_uint_eq(*ram(scattered_at(0) - 1), pattern(scattered_at(0) - 1));
}
END_TEST

START_TEST(neighbouring_pages_are_read_no_further_than_asked)
{
    uint32_t key = create_mtt(VA, 4 * PAGE, (unsigned[]){2, 3, 4, 9}, 4);
    static uint8_t buf[4 * PAGE];

    for (unsigned len = 1; len < 4 * PAGE; len += 511) {
        memset(buf, 0xee, sizeof(buf));
        ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, VA, buf, len, MEM_LOCAL_READ), MEM_OK);
        ck_assert_uint_eq(buf[len - 1], pattern((len > 3 * PAGE ? 6 * PAGE : 2 * PAGE) + len - 1));
        ck_assert_uint_eq(buf[len], 0xee);
    }
}
END_TEST

/* The result of a first access serves later ones: as far as the key reaches, and for its users
 * only. */
START_TEST(the_cached_key_has_the_bounds_and_users_of_the_key)
{
    uint64_t start = VA + IN_PAGE, end = VA + 3 * PAGE - 0x200;
    uint32_t key = create_mtt(start, end - start, (unsigned[]){2, 3, 4}, 3);
    uint8_t byte, two[2];

    for (unsigned n = 0; n < 2; n++) {
        ck_assert_int_eq(peek(key, VA + PAGE + n, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(3 * PAGE + n));
        ck_assert_int_eq(peek(key, start, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(2 * PAGE + IN_PAGE));
        ck_assert_int_eq(peek(key, start - 1, &byte), MEM_BAD_BOUNDS);
        ck_assert_int_eq(peek(key, end - 1, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(5 * PAGE - 0x201));
        ck_assert_int_eq(peek(key, end, &byte), MEM_BAD_BOUNDS);
        ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, end - 1, two, 2, MEM_LOCAL_READ),
                         MEM_BAD_BOUNDS);
        ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, end - 1, 2, MEM_LOCAL_READ),
                         MEM_BAD_BOUNDS);
        ck_assert_int_eq(mkey_read(&rig.hca, key, rig.user_pdn, start, two, 2, MEM_LOCAL_READ),
                         MEM_BAD_KEY);
        ck_assert_int_eq(mkey_read(&rig.hca, key ^ 1, rig.pdn, start, two, 2, MEM_LOCAL_READ),
                         MEM_BAD_KEY);
        ck_assert_int_eq(mkey_read(&rig.hca, key, MKEY_ANY_PD, start, two, 2, MEM_LOCAL_READ),
                         MEM_OK);
    }
}
END_TEST

/* Uses more keys in turn than the cache holds. */
START_TEST(keys_do_not_take_each_others_place)
{
    uint32_t key[2 * HCA_KEY_RUNS];
    uint8_t byte;

    for (unsigned i = 0; i < G_N_ELEMENTS(key); i++) {
        key[i] = create_mtt(VA, PAGE, &(unsigned){i % PAGES}, 1);
    }
    for (unsigned n = 0; n < 3 * G_N_ELEMENTS(key); n++) {
        unsigned i = n * 7 % G_N_ELEMENTS(key);

        ck_assert_int_eq(peek(key[i], VA + n, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(i % PAGES * PAGE + n));
    }
}
END_TEST

START_TEST(large_pages_are_followed)
{
    const uint64_t pages[2] = {4, 0};
    struct prm_mkc mkc[1];
    uint8_t mtt[16], byte;
    uint32_t key;

    for (unsigned i = 0; i < 2; i++) {
        prm_store64(mtt + 8 * i, mem + pages[i] * PAGE);
    }
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0x4010, 0x7000);
    PRM_SET(mkc, mkc, log_page_size, 14);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    key = create(mkc, mtt, sizeof(mtt));
    ck_assert_int_eq(peek(key, 0x4010, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(4 * PAGE + 0x10));
    ck_assert_int_eq(peek(key, 0x8003, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(3));
}
END_TEST

START_TEST(pa_key_translates_nothing)
{
    struct prm_mkc mkc[1];
    uint8_t byte;
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, 0);
    PRM_SET(mkc, mkc, length64, 1);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(peek(key, mem + 77, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(77));
    ck_assert_int_eq(peek(key, 0x10, &byte), MEM_NO_ANSWER);
    ck_assert_int_eq(peek(key, UINT64_MAX, &byte), MEM_NO_ANSWER);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, UINT64_MAX - 1, 3, MEM_LOCAL_READ),
                     MEM_BAD_BOUNDS);
}
END_TEST

/* "In this case, only addresses from the registered range can be used in the WQEs." (manual of
 * ibv_exp_reg_mr()) */
START_TEST(pa_key_of_a_range_reaches_no_further)
{
    struct prm_mkc mkc[1];
    uint8_t byte = 0x77;
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, mem + PAGE, PAGE);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(peek(key, mem + PAGE - 1, &byte), MEM_BAD_BOUNDS);
    ck_assert_int_eq(peek(key, mem + PAGE, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(PAGE));
    ck_assert_int_eq(peek(key, mem + 2 * PAGE - 1, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(2 * PAGE - 1));
    ck_assert_int_eq(peek(key, mem + 2 * PAGE, &byte), MEM_BAD_BOUNDS);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, mem + PAGE + 3, &byte, 1, MEM_REMOTE_WRITE),
                     MEM_OK);
    ck_assert_uint_eq(*ram(PAGE + 3), byte);
}
END_TEST

START_TEST(reserved_lkey_is_the_kernels)
{
    uint8_t byte;

    ck_assert_int_eq(peek(RIG_RESD_LKEY, mem + 5, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(5));
    ck_assert_int_eq(
        mkey_read(&rig.hca, RIG_RESD_LKEY, rig.user_pdn, mem, &byte, 1, MEM_LOCAL_READ),
        MEM_BAD_KEY);
    ck_assert_int_eq(mkey_read(&rig.hca, RIG_RESD_LKEY, rig.pdn, mem, &byte, 1, MEM_REMOTE_READ),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_check(&rig.hca, RIG_RESD_LKEY, rig.user_pdn, mem, 1, MEM_LOCAL_WRITE),
                     MEM_BAD_KEY);
}
END_TEST

START_TEST(null_key_reads_zeros)
{
    uint8_t buf[16];

    memset(buf, 0xee, sizeof(buf));
    ck_assert_int_eq(mkey_read(&rig.hca, RIG_NULL_MKEY, rig.user_pdn, 1, buf, 16, MEM_LOCAL_READ),
                     MEM_OK);
    for (unsigned i = 0; i < 16; i++) {
        ck_assert_uint_eq(buf[i], 0);
    }
    ck_assert_int_eq(mkey_write(&rig.hca, RIG_NULL_MKEY, rig.pdn, mem, buf, 16, MEM_LOCAL_WRITE),
                     MEM_OK);
    ck_assert_uint_eq(*ram(1), pattern(1));
}
END_TEST

/* A peer may only use keys that were made for it; everybody has this one. */
START_TEST(null_key_is_for_local_access_alone)
{
    static const unsigned remote[] = {MEM_REMOTE_READ, MEM_REMOTE_WRITE, MEM_REMOTE_ATOMIC,
                                      MEM_LOCAL_WRITE | MEM_REMOTE_WRITE};
    uint64_t before;
    uint8_t byte;

    for (size_t i = 0; i < G_N_ELEMENTS(remote); i++) {
        ck_assert_int_eq(mkey_check(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, 8, remote[i]),
                         MEM_BAD_KEY);
    }
    ck_assert_int_eq(mkey_check(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, 8, MEM_LOCAL_WRITE), MEM_OK);
    ck_assert_int_eq(mkey_check(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, 0, MEM_REMOTE_READ), MEM_OK);
    ck_assert_int_eq(mkey_read(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, &byte, 1, MEM_REMOTE_READ),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_write(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, &byte, 1, MEM_REMOTE_WRITE),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, RIG_NULL_MKEY, rig.pdn, 8, 5, &before), MEM_BAD_KEY);
}
END_TEST

/* Behind a key that lets peers in. What is written there is lost, including what an atomic adds or
 * swaps in. */
START_TEST(an_atomic_on_the_null_key_finds_zero)
{
    uint64_t before = 7;
    uint8_t list[4 * 16] = {0};
    uint32_t key;

    klm(list, 0, 64, RIG_NULL_MKEY, 0);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, VA, 64, list, 1);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + 8, 5, &before), MEM_OK);
        ck_assert_uint_eq(before, 0);
        before = 7;
        ck_assert_int_eq(mkey_cmp_swap(&rig.hca, key, rig.pdn, VA + 8, 0, 5, &before), MEM_OK);
        ck_assert_uint_eq(before, 0);
        before = 7;
    }
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + 4, 5, &before), MEM_BAD_BOUNDS);
}
END_TEST

START_TEST(klm_list_joins_ranges_of_keys)
{
    uint32_t a = create_mtt(VA, PAGE, (unsigned[]){1}, 1);
    uint32_t b = create_scattered();
    uint8_t list[4 * 16] = {0}, buf[1300];
    uint32_t key;

    klm(list, 0, 100, a, VA + 10);
    klm(list, 1, 0, b, 0); /* nothing */
    klm(list, 2, 1000, b, VA + IN_PAGE + 3500);
    klm(list, 3, 200, RIG_RESD_LKEY, mem + 77);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0x50000, 1300, list, 4);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 0x50000, buf, 1300, MEM_REMOTE_READ),
                     MEM_OK);
    for (unsigned i = 0; i < 1300; i++) {
        uint64_t at = i < 100    ? PAGE + 10 + i
                      : i < 1100 ? scattered_at(3500 + i - 100)
                                 : 77 + i - 1100;

        ck_assert_uint_eq(buf[i], pattern(at));
    }
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 0x50000 + 99, buf, 2, MEM_REMOTE_READ),
                     MEM_OK);
    ck_assert_uint_eq(buf[0], pattern(PAGE + 109));
    ck_assert_uint_eq(buf[1], pattern(scattered_at(3500)));
}
END_TEST

START_TEST(klm_list_shorter_than_its_key_ends)
{
    uint8_t list[16] = {0}, buf[8];
    uint32_t key;

    klm(list, 0, 100, RIG_RESD_LKEY, mem);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 1 << 20, list, 1);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 92, buf, 8, MEM_LOCAL_READ), MEM_OK);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 93, buf, 8, MEM_LOCAL_READ), MEM_BAD_BOUNDS);
    memset(list, 0, sizeof(list));
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 1 << 20, list, 1);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 0, buf, 1, MEM_LOCAL_READ), MEM_BAD_BOUNDS);
}
END_TEST

/* The inner key must allow local access of that kind, and be of the same PD. */
START_TEST(inner_keys_are_checked)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[8], list[16] = {0}, byte = 0;
    uint32_t inner, key;

    prm_store64(mtt, mem);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    PRM_SET(mkc, mkc, lw, 0);
    inner = create(mkc, mtt, 8);
    klm(list, 0, 100, inner, 0);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
    ck_assert_int_eq(peek(key, 0, &byte), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, 0, &byte, 1, MEM_REMOTE_WRITE),
                     MEM_BAD_KEY);
    PRM_SET(mkc, mkc, pd, rig.user_pdn);
    klm(list, 0, 100, create(mkc, mtt, 8), 0);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
    ck_assert_int_eq(peek(key, 0, &byte), MEM_BAD_KEY);
    klm(list, 0, 100, inner, PAGE - 50);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
    ck_assert_int_eq(peek(key, 49, &byte), MEM_OK);
    ck_assert_int_eq(peek(key, 50, &byte), MEM_BAD_BOUNDS);
}
END_TEST

/* The first range begins at the key's first byte, whatever the offset of its address in a page: the
 * byte at va is (va - start) bytes on. */
START_TEST(ksm_list_has_ranges_of_one_size)
{
    const uint64_t starts[] = {0x10000, 0x10000 + 8, 0x10000 + 4000};
    uint32_t inner = create_scattered();
    uint8_t list[2 * 16] = {0}, buf[PAGE + 96];

    klm(list, 0, 0, RIG_RESD_LKEY, mem + 7 * PAGE + 16);
    klm(list, 1, 0, inner, VA + IN_PAGE + 1);
    for (unsigned n = 0; n < 3; n++) {
        uint32_t key = create_klm(PRM_MKC_ACCESS_MODE_KSM, starts[n], sizeof(buf), list, 2);

        ck_assert_int_eq(
            mkey_read(&rig.hca, key, rig.pdn, starts[n], buf, sizeof(buf), MEM_LOCAL_READ), MEM_OK);
        for (unsigned i = 0; i < sizeof(buf); i++) {
            uint64_t at = i < PAGE ? 7 * PAGE + 16 + i : scattered_at(1 + i - PAGE);

            ck_assert_uint_eq(buf[i], pattern(at));
        }
    }
}
END_TEST

/* Two ranges of a page each are two pages, also if the key does not begin at a page boundary. */
START_TEST(ksm_list_shorter_than_its_key_ends)
{
    uint8_t list[2 * 16] = {0}, byte;
    uint32_t key;

    klm(list, 0, 0, RIG_RESD_LKEY, mem);
    klm(list, 1, 0, RIG_RESD_LKEY, mem + PAGE);
    key = create_klm(PRM_MKC_ACCESS_MODE_KSM, 0x10000 + 4000, 16 * PAGE, list, 2);
    ck_assert_int_eq(peek(key, 0x10000 + 4000 + 2 * PAGE - 1, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(2 * PAGE - 1));
    ck_assert_int_eq(peek(key, 0x10000 + 4000 + 8 * PAGE, &byte), MEM_BAD_BOUNDS);
}
END_TEST

/* Interleaved: a round takes byte_count bytes of each source; the next round begins stride further
 * on. */
START_TEST(interleaved_list_takes_turns)
{
    uint8_t list_bytes[3 * 16] = {0}, buf[120];
    void *list = list_bytes;
    uint32_t key;

    PRM_SET(wqe_repeat_block_seg, list, byte_count, 12);
    PRM_SET(wqe_repeat_block_seg, list, op, 0x400);
    PRM_SET(wqe_repeat_block_seg, list, repeat_count, 10);
    PRM_SET(wqe_repeat_block_seg, list, num_ent, 2);
    for (unsigned i = 0; i < 2; i++) {
        struct prm_wqe_repeat_ent_seg *entry = list + 16 + 16 * i;

        PRM_SET(wqe_repeat_ent_seg, entry, stride, i ? 64 : 9);
        PRM_SET(wqe_repeat_ent_seg, entry, byte_count, i ? 4 : 8);
        PRM_SET(wqe_repeat_ent_seg, entry, memkey, RIG_RESD_LKEY);
        PRM_SET(wqe_repeat_ent_seg, entry, va, mem + i * PAGE);
    }
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 1000, list, 3);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 0, buf, 120, MEM_LOCAL_READ), MEM_OK);
    for (unsigned i = 0; i < 120; i++) {
        unsigned round = i / 12, in = i % 12;
        uint64_t at = in < 8 ? round * 9 + in : PAGE + round * 64 + in - 8;

        ck_assert_uint_eq(buf[i], pattern(at));
    }
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, 119, buf, 2, MEM_LOCAL_READ),
                     MEM_BAD_BOUNDS);
}
END_TEST

START_TEST(keys_that_name_each_other_end)
{
    uint8_t list[16] = {0};
    struct prm_mkc mkc[1];
    struct prm_wqe_umr_ctrl_seg umr_ctrl[1] = {0};
    uint8_t xlt[64] = {0}, byte;
    struct mkey_umr umr = {
        .pdn = rig.pdn, .ctrl = umr_ctrl, .mkey_seg = mkc, .xlt = xlt, .xlt_len = sizeof(xlt)};
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 100);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    key = create(mkc, list, 16);
    klm(xlt, 0, 100, key, 0);
    umr.key = key;
    PRM_SET(wqe_umr_ctrl_seg, umr_ctrl, xlt_octowords, 4);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr), MEM_OK);
    ck_assert_int_eq(peek(key, 3, &byte), MEM_BAD_KEY);
}
END_TEST

/* max_indirection counts lists: the key with the pages comes behind them (driver:
 * pagefault_single_data_segment() compares a list's depth, from 0 on). */
START_TEST(chain_of_keys_has_an_end)
{
    uint8_t list[16] = {0}, byte;
    uint32_t key = RIG_RESD_LKEY;

    for (unsigned depth = 1; depth <= MKEY_MAX_DEPTH + 2; depth++) {
        klm(list, 0, 100, key, depth == 1 ? mem + 9 : 0);
        key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
        ck_assert_int_eq(peek(key, 0, &byte), depth <= MKEY_MAX_DEPTH ? MEM_OK : MEM_BAD_KEY);
    }
    key = create_mtt(VA, PAGE, &(unsigned){1}, 1);
    for (unsigned depth = 1; depth <= MKEY_MAX_DEPTH + 2; depth++) {
        klm(list, 0, 100, key, depth == 1 ? VA : 0);
        key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
        ck_assert_int_eq(peek(key, 0, &byte), depth <= MKEY_MAX_DEPTH ? MEM_OK : MEM_BAD_KEY);
    }
}
END_TEST

/* -- what the log says ------------------------------------------------------------------------- */

static void __attribute__((format(printf, 1, 2))) why(const char *fmt, ...)
{
    struct mkey_words words;
    char expected[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(expected, sizeof(expected), fmt, ap);
    va_end(ap);
    ck_assert_str_eq(mkey_why(&rig.hca, &words), expected);
}

/* A refusal names the key that refused, and the key whose list names that key. */
START_TEST(a_key_behind_a_key_says_why)
{
    uint32_t inner = create_mtt(VA, PAGE, &(unsigned){1}, 1), outer;
    uint8_t list[16] = {0}, byte;

    klm(list, 0, PAGE, inner ^ 0x100000, VA);
    outer = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, PAGE, list, 1);
    ck_assert_int_eq(peek(outer, 0, &byte), MEM_BAD_KEY);
    why("lkey 0x%x does not exist; the list of key 0x%x names it", inner ^ 0x100000, outer);

    klm(list, 0, PAGE, inner, VA + 1);
    outer = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, PAGE, list, 1);
    ck_assert_int_eq(peek(outer, 0, &byte), MEM_OK);
    ck_assert_int_eq(peek(outer, PAGE - 1, &byte), MEM_BAD_BOUNDS);
    why("1 byte at 0x%llx is not inside lkey 0x%x, which has 4096 bytes at 0x%llx; the list of key "
        "0x%x names it",
        VA + PAGE, inner, VA, outer);

    ck_assert_int_eq(peek(outer, PAGE, &byte), MEM_BAD_BOUNDS);
    why("1 byte at 0x1000 is not inside lkey 0x%x, which has 4096 bytes at 0x0", outer);
}
END_TEST

START_TEST(a_chain_of_keys_that_is_too_long_says_why)
{
    uint8_t list[16] = {0}, byte;
    uint32_t key = RIG_RESD_LKEY, before = 0, last = 0;

    for (unsigned depth = 1; depth <= MKEY_MAX_DEPTH + 1; depth++) {
        klm(list, 0, 100, key, depth == 1 ? mem + 9 : 0);
        last = depth == 2 ? key : last;
        before = depth == 3 ? key : before;
        key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
    }
    ck_assert_int_eq(peek(key, 0, &byte), MEM_BAD_KEY);
    why("the lists of keys before lkey 0x%x are more than 4 deep; the list of key 0x%x names it",
        last, before);
}
END_TEST

START_TEST(lists_that_are_too_short_say_why)
{
    struct sge sge = {VA, 8, create_mtt(VA, PAGE, &(unsigned){1}, 1)};
    struct sge_cursor next = {0};
    uint8_t list[16] = {0}, buf[16];
    uint32_t key;

    ck_assert_int_eq(sge_gather(&rig.hca, &sge, 1, rig.pdn, &next, 0, buf, 16), MEM_BAD_BOUNDS);
    why("the list is shorter than the data");

    klm(list, 0, 10, sge.lkey, VA);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 100, list, 1);
    ck_assert_int_eq(peek(key, 50, buf), MEM_BAD_BOUNDS);
    why("1 byte at 0x32 is not inside the list of lkey 0x%x, which is too short", key);
}
END_TEST

START_TEST(memory_that_does_not_answer_says_why)
{
    uint32_t key = create_mtt(VA, PAGE, &(unsigned){1u << 20}, 1);
    uint8_t byte;

    ck_assert_int_eq(peek(key, VA, &byte), MEM_NO_ANSWER);
    why("the memory of lkey 0x%x does not answer: it was unmapped, protected or never there", key);
    ck_assert_int_eq(peek(RIG_RESD_LKEY, 1ull << 50, &byte), MEM_NO_ANSWER);
    why("the memory of lkey 0x%x does not answer: it was unmapped, protected or never there",
        RIG_RESD_LKEY);
}
END_TEST

START_TEST(a_range_that_wraps_says_why)
{
    struct prm_mkc mkc[1];
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, 0);
    PRM_SET(mkc, mkc, length64, 1);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, UINT64_MAX - 1, 3, MEM_LOCAL_READ),
                     MEM_BAD_BOUNDS);
    why("3 bytes at 0xfffffffffffffffe are beyond the last address, where lkey 0x%x ends", key);
}
END_TEST

/* The last refusal is that of another key. */
START_TEST(an_atomic_whose_memory_does_not_answer_says_why)
{
    uint32_t key = create_mtt(VA, PAGE, &(unsigned){1u << 20}, 1);
    uint8_t operands[2 * MASKED_MAX] = {0}, number[MASKED_MAX], byte;
    uint64_t value;

    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(peek(key ^ 0x100000, VA, &byte), MEM_BAD_KEY);
        ck_assert_int_eq(i == 0   ? mkey_fetch_add(&rig.hca, key, rig.pdn, VA, 1, &value)
                         : i == 1 ? mkey_cmp_swap(&rig.hca, key, rig.pdn, VA, 0, 1, &value)
                                  : mkey_masked(&rig.hca, key, rig.pdn, VA, MASKED_FETCH_ADD,
                                                i == 2 ? 8 : MASKED_MAX, operands, number),
                         MEM_NO_ANSWER);
        why("the memory of rkey 0x%x does not answer: it was unmapped, protected or never there",
            key);
    }
}
END_TEST

/* An atomic needs a word that is aligned in memory, too. */
START_TEST(an_atomic_that_is_not_aligned_in_memory_says_why)
{
    uint64_t value;
    uint32_t key;
    uint8_t list[16] = {0};

    klm(list, 0, PAGE, create_mtt(VA, PAGE, &(unsigned){1}, 1), VA + 4);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, PAGE - 8, list, 1);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, 8, 1, &value), MEM_BAD_BOUNDS);
    why("8 bytes at 0x8 are not aligned, or not in one piece of the memory of rkey 0x%x", key);
}
END_TEST

/* -- checks ----------------------------------------------------------------------------------- */

START_TEST(bounds_are_checked)
{
    uint32_t key = create_scattered();
    const uint64_t start = VA + IN_PAGE;
    const struct {
        uint64_t va, len;
        enum mem_result want;
    } cases[] = {
        {start, LEN, MEM_OK},
        {start + LEN - 1, 1, MEM_OK},
        {start, LEN + 1, MEM_BAD_BOUNDS},
        {start - 1, 1, MEM_BAD_BOUNDS},
        {start + LEN, 1, MEM_BAD_BOUNDS},
        {start + 1, UINT64_MAX, MEM_BAD_BOUNDS},
        {start + 1, UINT64_MAX - start, MEM_BAD_BOUNDS},
        {UINT64_MAX, 2, MEM_BAD_BOUNDS},
        {0, 1, MEM_BAD_BOUNDS},
        {0, 0, MEM_OK}, /* C9-88: a zero-length request's key is not checked */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, cases[i].va, cases[i].len, ALL),
                         cases[i].want);
    }
}
END_TEST

/* The kernel registers a region of no bytes as a page and a length of zero. */
START_TEST(a_region_of_no_bytes_has_nothing_but_them)
{
    uint32_t key = create_mtt(VA + 8, 0, (unsigned[]){2}, 1);
    uint8_t byte = 0xee;

    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA + 8, 0, MEM_REMOTE_WRITE), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA + 8, NULL, 0, MEM_REMOTE_WRITE), MEM_OK);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.pdn, VA + 8, NULL, 0, MEM_LOCAL_READ), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA + 8, &byte, 1, MEM_LOCAL_WRITE),
                     MEM_BAD_BOUNDS);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA + 8, 1, MEM_REMOTE_READ),
                     MEM_BAD_BOUNDS);
}
END_TEST

START_TEST(each_right_allows_only_its_own_access)
{
    for (unsigned have = 0; have < 32; have++) {
        struct prm_mkc mkc[1];
        uint32_t key;

        fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, UINT64_MAX);
        PRM_SET(mkc, mkc, lr, !!(have & MEM_LOCAL_READ));
        PRM_SET(mkc, mkc, lw, !!(have & MEM_LOCAL_WRITE));
        PRM_SET(mkc, mkc, rr, !!(have & MEM_REMOTE_READ));
        PRM_SET(mkc, mkc, rw, !!(have & MEM_REMOTE_WRITE));
        PRM_SET(mkc, mkc, a, !!(have & MEM_REMOTE_ATOMIC));
        key = create(mkc, NULL, 0);
        for (unsigned want = 1; want < 32; want++) {
            ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, mem, 1, want),
                             want & ~have ? MEM_BAD_KEY : MEM_OK);
        }
    }
}
END_TEST

START_TEST(key_must_be_the_right_one)
{
    uint32_t key = create_scattered();
    uint8_t byte;

    ck_assert_int_eq(peek(key, VA + IN_PAGE, &byte), MEM_OK);
    ck_assert_int_eq(peek(key ^ 1, VA + IN_PAGE, &byte), MEM_BAD_KEY); /* variant byte */
    ck_assert_int_eq(peek(0, VA + IN_PAGE, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(peek(0xffffffff, VA + IN_PAGE, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_read(&rig.hca, key, rig.user_pdn, VA + IN_PAGE, &byte, 1, MEM_LOCAL_READ),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, key >> 8), SYN_OK);
    ck_assert_int_eq(peek(key, VA + IN_PAGE, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, key >> 8), SYN_NO_MKEY);
}
END_TEST

/* mkc.qpn 0xffffff is every QP. */
START_TEST(key_can_be_bound_to_a_qp)
{
    struct prm_mkc mkc[1];
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, 0);
    PRM_SET(mkc, mkc, qpn, 0x123);
    key = create(mkc, NULL, 0);
    ck_assert(mkey_allows_qp(&rig.hca, key, 0x123));
    ck_assert(!mkey_allows_qp(&rig.hca, key, 0x124));
    ck_assert(mkey_allows_qp(&rig.hca, create_scattered(), 0x124));
}
END_TEST

START_TEST(bad_contexts_are_refused)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[16] = {0};
    uint32_t index;

    prm_store64(mtt, mem);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, 2 * PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 8, false, &index), SYN_MKEY_XLT);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_OK);
    PRM_SET(mkc, mkc, len, UINT64_MAX);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_MKEY_XLT);
    PRM_SET(mkc, mkc, log_page_size, 11);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_MKEY_PAGE_SIZE);
    PRM_SET(mkc, mkc, log_page_size, 63);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_MKEY_PAGE_SIZE);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, PAGE);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_MKEY_XLT);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, 0xffffffff);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_LIMIT);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, (1 << MKEY_LOG_MAX_KLM) + 1);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_LIMIT);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_SW_ICM, 0, PAGE);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_MKEY_DEVICE);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    PRM_SET(mkc, mkc, bsf_en, 1);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_MKEY_MODE);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 16, false, &index), SYN_MKEY_XLT);
    PRM_SET(mkc, mkc, pd, 200);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_NO_PD);
}
END_TEST

/* A user context could access all memory if it were allowed to name bus addresses. */
START_TEST(user_context_names_no_bus_addresses)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[16] = {0};
    uint32_t index;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    ck_assert_int_eq(mkey_create(&rig.hca, RIG_USER, mkc, NULL, 0, false, &index), SYN_BAD_UID);
    PRM_SET(mkc, mkc, pd, rig.user_pdn);
    ck_assert_int_eq(mkey_create(&rig.hca, RIG_USER, mkc, NULL, 0, true, &index),
                     SYN_MKEY_PHYSICAL);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, PAGE);
    PRM_SET(mkc, mkc, pd, rig.user_pdn);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    ck_assert_int_eq(mkey_create(&rig.hca, RIG_USER, mkc, mtt, 16, false, &index),
                     SYN_MKEY_PHYSICAL);
    ck_assert_int_eq(mkey_create(&rig.hca, RIG_USER, mkc, mtt, 16, true, &index), SYN_OK);
    ck_assert_int_eq(mkey_destroy(&rig.hca, RIG_USER + 1, index), SYN_BAD_UID);
    ck_assert_int_eq(mkey_destroy(&rig.hca, RIG_USER, index), SYN_OK);
    ck_assert_int_eq(mkey_destroy(&rig.hca, RIG_USER, index), SYN_NO_MKEY);
}
END_TEST

START_TEST(key_holds_its_pd)
{
    uint32_t key = create_scattered();
    struct prm_mkc mkc[1];

    ck_assert_int_eq(pd_dealloc(&rig.hca, 0, rig.pdn), SYN_IN_USE);
    ck_assert_int_eq(mkey_query(&rig.hca, key >> 8, mkc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, pd), rig.pdn);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, mkey_7_0), VARIANT);
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, key >> 8), SYN_OK);
    ck_assert_int_eq(mkey_query(&rig.hca, key >> 8, mkc), SYN_NO_MKEY);
    ck_assert_int_eq(pd_dealloc(&rig.hca, 0, rig.pdn), SYN_OK);
}
END_TEST

/* -- atomics ---------------------------------------------------------------------------------- */

/* Atomics count in words of the host's byte order. */
START_TEST(atomics_work_on_host_words)
{
    uint32_t key = create_mtt(VA, 2 * PAGE, (unsigned[]){3, 1}, 2);
    uint64_t *word = (uint64_t *)(void *)ram(PAGE + 8);
    uint64_t original;

    *word = 100;
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + PAGE + 8, 5, &original), MEM_OK);
    ck_assert_uint_eq(original, 100);
    ck_assert_uint_eq(*word, 105);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + PAGE + 8, UINT64_MAX, &original),
                     MEM_OK);
    ck_assert_uint_eq(*word, 104);
    ck_assert_int_eq(mkey_cmp_swap(&rig.hca, key, rig.pdn, VA + PAGE + 8, 7, 9, &original), MEM_OK);
    ck_assert_uint_eq(original, 104);
    ck_assert_uint_eq(*word, 104);
    ck_assert_int_eq(mkey_cmp_swap(&rig.hca, key, rig.pdn, VA + PAGE + 8, 104, 9, &original),
                     MEM_OK);
    ck_assert_uint_eq(original, 104);
    ck_assert_uint_eq(*word, 9);
}
END_TEST

START_TEST(atomics_are_checked)
{
    uint32_t key = create_scattered();
    struct prm_mkc mkc[1];
    uint8_t list[2 * 16] = {0};
    uint64_t original;

    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + 0x12c, 1, &original),
                     MEM_BAD_BOUNDS); /* not aligned */
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, VA + 0x120, 1, &original),
                     MEM_BAD_BOUNDS); /* begins before the key */
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.user_pdn, VA + 0x128, 1, &original),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_cmp_swap(&rig.hca, RIG_RESD_LKEY, rig.pdn, mem, 0, 1, &original),
                     MEM_BAD_KEY);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, UINT64_MAX);
    PRM_SET(mkc, mkc, a, 0);
    ck_assert_int_eq(mkey_cmp_swap(&rig.hca, create(mkc, NULL, 0), rig.pdn, mem, 0, 1, &original),
                     MEM_BAD_KEY);
    PRM_SET(mkc, mkc, a, 1);
    ck_assert_int_eq(mkey_cmp_swap(&rig.hca, create(mkc, NULL, 0), rig.pdn, 64, 0, 1, &original),
                     MEM_NO_ANSWER);
    klm(list, 0, 4, RIG_RESD_LKEY, mem);
    klm(list, 1, 4, RIG_RESD_LKEY, mem + 4);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 8, list, 2);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, 0, 1, &original), MEM_BAD_BOUNDS);
    klm(list, 0, 8, RIG_RESD_LKEY, mem + 4);
    key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 8, list, 1);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, 0, 1, &original), MEM_BAD_BOUNDS);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(*ram(i), pattern(i));
    }
}
END_TEST

/* -- lists ------------------------------------------------------------------------------------ */

START_TEST(list_is_walked_in_any_steps)
{
    uint32_t key = create_scattered();
    const struct sge list[] = {
        {mem + 100, 10, RIG_RESD_LKEY},
        {0, 0, 0xdead}, /* an empty element's key is not looked at */
        {VA + IN_PAGE, 5000, key},
        {mem + 9000, 7, RIG_RESD_LKEY},
    };
    const unsigned total = 5017;

    for (unsigned step = 1; step < 6000; step = step * 3 + 1) {
        struct sge_cursor cursor = {0};
        static uint8_t buf[5017];

        for (unsigned at = 0; at < total; at += step) {
            unsigned n = MIN(step, total - at);

            ck_assert_int_eq(sge_gather(&rig.hca, list, 4, rig.pdn, &cursor, at, buf + at, n),
                             MEM_OK);
        }
        for (unsigned i = 0; i < total; i++) {
            uint64_t from = i < 10 ? 100 + i : i < 5010 ? scattered_at(i - 10) : 9000 + i - 5010;

            ck_assert_uint_eq(buf[i], pattern(from));
        }
        ck_assert_int_eq(sge_gather(&rig.hca, list, 4, rig.pdn, &cursor, total - 1, buf, 2),
                         MEM_BAD_BOUNDS);
        /* back to the front, as in a retransmission */
        ck_assert_int_eq(sge_gather(&rig.hca, list, 4, rig.pdn, &cursor, 9, buf, 2), MEM_OK);
        ck_assert_uint_eq(buf[0], pattern(109));
        ck_assert_uint_eq(buf[1], pattern(scattered_at(0)));
    }
}
END_TEST

START_TEST(scatter_writes_and_is_checked)
{
    const struct sge list[] = {
        {mem + 100, 4, RIG_RESD_LKEY},
        {mem + 200, 4, RIG_RESD_LKEY},
        {mem, 4, 0xdeadbeef},
    };
    struct sge_cursor cursor = {0};

    ck_assert_int_eq(sge_scatter(&rig.hca, list, 3, rig.pdn, &cursor, 0, "abcdefgh", 8), MEM_OK);
    ck_assert_mem_eq(ram(100), "abcd", 4);
    ck_assert_mem_eq(ram(200), "efgh", 4);
    ck_assert_uint_eq(*ram(104), pattern(104));
    ck_assert_int_eq(sge_scatter(&rig.hca, list, 3, rig.pdn, &cursor, 8, "i", 1), MEM_BAD_KEY);
    ck_assert_int_eq(sge_scatter(&rig.hca, list, 0, rig.pdn, &(struct sge_cursor){0}, 0, "i", 1),
                     MEM_BAD_BOUNDS);
    ck_assert_int_eq(
        sge_scatter(&rig.hca, list, 2, rig.user_pdn, &(struct sge_cursor){0}, 0, "i", 1),
        MEM_BAD_KEY);
}
END_TEST

/* -- hostile ---------------------------------------------------------------------------------- */

/* Arbitrary contexts, UMRs and accesses must not crash, hang or access memory that does not
 * exist. */
START_TEST(arbitrary_requests_do_no_harm)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20260);
    uint32_t keys[32] = {0};

    for (unsigned n = 0; n < 20000; n++) {
        unsigned slot = g_rand_int_range(rand, 0, 32);
        struct umr umr;
        void *xlt = umr.xlt;
        uint8_t buf[64];
        uint64_t original;
        uint32_t index;

        umr_start(&umr, keys[slot], 0);
        for (unsigned i = 0; i < sizeof(umr.xlt); i += 16) {
            klm(umr.xlt, i / 16, g_rand_int_range(rand, 0, 3000),
                keys[g_rand_int_range(rand, 0, 32)], g_rand_int_range(rand, 0, 5000));
        }
        if (g_rand_int_range(rand, 0, 8) == 0) {
            PRM_SET(wqe_klm_seg, xlt, mkey, 0x400);
        }
        for (unsigned i = 0; i < sizeof(umr.mkc); i++) {
            umr.mkc->bytes[i] = g_rand_int(rand);
        }
        PRM_SET(mkc, umr.mkc, pd, g_rand_boolean(rand) ? rig.pdn : rig.user_pdn);
        PRM_SET(mkc, umr.mkc, bsf_en, 0);
        PRM_SET(mkc, umr.mkc, bsf_octword_size, 0);
        PRM_SET(mkc, umr.mkc, access_mode_4_2, 0);
        PRM_SET(mkc, umr.mkc, start_addr, g_rand_int_range(rand, 0, 10000));
        PRM_SET(mkc, umr.mkc, len, g_rand_int_range(rand, 0, 20000));
        PRM_SET(mkc, umr.mkc, log_page_size, g_rand_int_range(rand, 10, 16));
        PRM_SET(mkc, umr.mkc, translations_octword_size, g_rand_int_range(rand, 0, 70));
        for (unsigned i = 0; i < 4; i++) {
            umr.ctrl->bytes[i] = g_rand_int(rand);
        }
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, g_rand_int_range(rand, 0, 70));
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, g_rand_int_range(rand, 0, 70));
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, mkey_mask,
                ((uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand)) &
                    (g_rand_int_range(rand, 0, 8) ? ENABLE_MASK : UINT64_MAX));
        PRM_SET(mkc, umr.mkc, free, g_rand_int_range(rand, 0, 8) == 0);
        PRM_SET(mkc, umr.mkc, umr_en, g_rand_int_range(rand, 0, 8) != 0);
        umr.req.privileged = g_rand_boolean(rand);
        switch (g_rand_int_range(rand, 0, 5)) {
        case 0:
            if (mkey_create(&rig.hca, 0, umr.mkc, umr.xlt,
                            16 * (size_t)g_rand_int_range(rand, 0, 64), false, &index) == SYN_OK) {
                mkey_destroy(&rig.hca, 0, keys[slot] >> 8);
                keys[slot] = index << 8 | PRM_GET(mkc, umr.mkc, mkey_7_0);
            }
            break;
        case 1:
            mkey_umr(&rig.hca, &umr.req);
            break;
        case 2:
            mkey_fetch_add(&rig.hca, keys[slot], rig.pdn, g_rand_int_range(rand, 0, 30000) & ~7, 1,
                           &original);
            break;
        case 3:
            mkey_write(&rig.hca, keys[slot], rig.pdn, g_rand_int_range(rand, 0, 30000), buf,
                       g_rand_int_range(rand, 0, 64), MEM_REMOTE_WRITE);
            break;
        default:
            mkey_read(&rig.hca, keys[slot], rig.pdn, g_rand_int_range(rand, 0, 30000), buf,
                      g_rand_int_range(rand, 0, 64), MEM_LOCAL_READ);
        }
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("mkey");
    TCase *tc = tcase_create("mkey");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, page_list_is_followed);
    tcase_add_test(tc, neighbouring_pages_are_read_no_further_than_asked);
    tcase_add_test(tc, the_cached_key_has_the_bounds_and_users_of_the_key);
    tcase_add_test(tc, keys_do_not_take_each_others_place);
    tcase_add_test(tc, large_pages_are_followed);
    tcase_add_test(tc, pa_key_translates_nothing);
    tcase_add_test(tc, pa_key_of_a_range_reaches_no_further);
    tcase_add_test(tc, reserved_lkey_is_the_kernels);
    tcase_add_test(tc, null_key_reads_zeros);
    tcase_add_test(tc, null_key_is_for_local_access_alone);
    tcase_add_test(tc, an_atomic_on_the_null_key_finds_zero);
    tcase_add_test(tc, klm_list_joins_ranges_of_keys);
    tcase_add_test(tc, klm_list_shorter_than_its_key_ends);
    tcase_add_test(tc, inner_keys_are_checked);
    tcase_add_test(tc, ksm_list_has_ranges_of_one_size);
    tcase_add_test(tc, ksm_list_shorter_than_its_key_ends);
    tcase_add_test(tc, interleaved_list_takes_turns);
    tcase_add_test(tc, keys_that_name_each_other_end);
    tcase_add_test(tc, chain_of_keys_has_an_end);
    tcase_add_test(tc, a_key_behind_a_key_says_why);
    tcase_add_test(tc, a_chain_of_keys_that_is_too_long_says_why);
    tcase_add_test(tc, lists_that_are_too_short_say_why);
    tcase_add_test(tc, memory_that_does_not_answer_says_why);
    tcase_add_test(tc, a_range_that_wraps_says_why);
    tcase_add_test(tc, an_atomic_whose_memory_does_not_answer_says_why);
    tcase_add_test(tc, an_atomic_that_is_not_aligned_in_memory_says_why);
    tcase_add_test(tc, bounds_are_checked);
    tcase_add_test(tc, a_region_of_no_bytes_has_nothing_but_them);
    tcase_add_test(tc, each_right_allows_only_its_own_access);
    tcase_add_test(tc, key_must_be_the_right_one);
    tcase_add_test(tc, key_can_be_bound_to_a_qp);
    tcase_add_test(tc, bad_contexts_are_refused);
    tcase_add_test(tc, user_context_names_no_bus_addresses);
    tcase_add_test(tc, key_holds_its_pd);
    tcase_add_test(tc, atomics_work_on_host_words);
    tcase_add_test(tc, atomics_are_checked);
    tcase_add_test(tc, list_is_walked_in_any_steps);
    tcase_add_test(tc, scatter_writes_and_is_checked);
    tcase_add_test(tc, arbitrary_requests_do_no_harm);
    suite_add_tcase(suite, tc);
    return suite;
}
