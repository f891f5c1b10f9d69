/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests memory keys that WQEs change: UMR as the driver uses it, invalidation, and who may do it.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/mkey_bench.h"
#include "tests/unit/suite.h"

/* The driver's registration: mlx5r_umr_update_mr_pas() with MLX5_IB_UPD_XLT_ENABLE; then
 * re-registration of rights and PD, and revocation. */
START_TEST(driver_registers_changes_and_revokes)
{
    static const unsigned pages[] = {8, 1, 4};
    uint32_t umr_pdn, key;
    struct umr umr;
    uint8_t byte;

    ck_assert_int_eq(pd_alloc(&rig.hca, 0, &umr_pdn), SYN_OK);
    key = create_cached(3, umr_pdn);
    umr_start(&umr, key, ENABLE_MASK);
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_MTT, VA, 3 * PAGE);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_free, PRM_UMR_CHECK_NOT_FREE);
    umr_mtts(&umr, pages, 3);
    umr.req.pdn = umr_pdn;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY); /* PD: the UMR QP's privilege */
    umr.req.privileged = true;
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, VA + PAGE + 5, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(PAGE + 5));
    ck_assert_int_eq(pd_dealloc(&rig.hca, 0, umr_pdn), SYN_OK);  /* the key has left it */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY); /* not free any more */

    umr_start(&umr, key, ACCESS_MASK | MASK(PD));
    PRM_SET(mkc, umr.mkc, lr, 1);
    PRM_SET(mkc, umr.mkc, pd, rig.user_pdn);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_free, PRM_UMR_CHECK_FREE);
    umr.req.privileged = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.user_pdn, VA, 1, MEM_LOCAL_READ), MEM_OK);
    ck_assert_int_eq(pd_dealloc(&rig.hca, RIG_USER, rig.user_pdn), SYN_IN_USE);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.user_pdn, VA, 1, MEM_REMOTE_READ), MEM_BAD_KEY);

    umr_start(&umr, key, MASK(PD) | MASK(FREE));
    PRM_SET(mkc, umr.mkc, free, 1);
    PRM_SET(mkc, umr.mkc, pd, rig.pdn);
    umr.req.privileged = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA, 1, MEM_LOCAL_READ), MEM_BAD_KEY);
    umr_start(&umr, key, ACCESS_MASK);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_free, PRM_UMR_CHECK_FREE);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
}
END_TEST

/* A program's QP (qpc.fre is 0), in a PD of uid 0 like the kernel's, binds windows to its keys, and
 * never gives addresses in the host's memory. */
START_TEST(a_program_names_no_bus_addresses)
{
    uint32_t key = create_cached(3, rig.pdn), inner = create_scattered(), window;
    struct umr umr;
    uint8_t list[64] = {0}, byte;

    umr_start(&umr, key, ENABLE_MASK & ~MASK(PD));
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_MTT, VA, PAGE);
    umr_mtts(&umr, (unsigned[]){1}, 1);
    umr.req.fast = false;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);

    klm(list, 0, PAGE, inner, VA);
    window = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, PAGE, list, 4);
    for (unsigned i = 0; i < 2; i++) {
        umr_start(&umr, window, 0);
        klm(umr.xlt, 0, PAGE, i ? RIG_RESD_LKEY : inner, i ? mem : VA);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
        umr.req.fast = false;
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), i ? MEM_BAD_KEY : MEM_OK);
    }
    umr.req.fast = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(window, 5, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(5));
}
END_TEST

/* A list of equal ranges (KSM) names keys, as a list of ranges does: a program may change both. */
START_TEST(a_program_changes_lists_of_equal_ranges)
{
    uint32_t inner = create_scattered(), key;
    struct umr umr;
    uint8_t list[64] = {0}, byte;

    key = create_klm(PRM_MKC_ACCESS_MODE_KSM, 0, PAGE, list, 4);
    for (unsigned i = 0; i < 2; i++) {
        umr_start(&umr, key, 0);
        klm(umr.xlt, 0, 0, i ? RIG_RESD_LKEY : inner, i ? mem : VA + IN_PAGE);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
        umr.req.fast = false;
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), i ? MEM_BAD_KEY : MEM_OK);
    }
    ck_assert_int_eq(peek(key, 5, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(scattered_at(5)));
}
END_TEST

START_TEST(translation_offset_counts_octwords)
{
    uint32_t key = create_cached(16, rig.pdn);
    struct umr umr;
    uint8_t byte;

    umr_start(&umr, key, ENABLE_MASK & ~MASK(PD));
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_MTT, 0, 16 * PAGE);
    umr_mtts(&umr, (unsigned[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, 8 * PAGE, &byte), MEM_NO_ANSWER); /* not written yet */

    umr_start(&umr, key, 0);
    umr_mtts(&umr, (unsigned[]){15, 14, 13, 12, 11, 10, 9, 8}, 8);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, translation_offset_en, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, 4);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, 7 * PAGE, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(7 * PAGE));
    ck_assert_int_eq(peek(key, 9 * PAGE, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(14 * PAGE));

    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, 8);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, 4);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset_47_16, 0xffffffff);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
}
END_TEST

START_TEST(refused_umr_changes_nothing)
{
    uint32_t key = create_scattered();
    struct prm_mkc before[1], after[1];
    uint8_t byte;
    struct umr umr;

    mkey_query(&rig.hca, key >> 8, before);
    umr_start(&umr, key, MASK(LEN) | MASK(FREE));
    PRM_SET(mkc, umr.mkc, free, 1);
    umr_mtts(&umr, (unsigned[]){0}, 1);
    umr.req.xlt_len = 8; /* less than xlt_octowords says */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    umr_start(&umr, key, MASK(LEN) | 1ull << 63); /* a field that does not exist */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    umr_start(&umr, key, MASK(LEN) | MASK(PAGE_SIZE)); /* page size 0 */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    umr_start(&umr, key, MASK(PD)); /* PD 0 does not exist */
    umr.req.privileged = true;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    umr_start(&umr, key ^ 0xff, MASK(LEN)); /* wrong variant */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    umr_start(&umr, key, MASK(LEN));
    umr.req.pdn = rig.user_pdn;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    mkey_query(&rig.hca, key >> 8, after);
    ck_assert_mem_eq(before, after, sizeof(before));
    ck_assert_int_eq(peek(key, VA + IN_PAGE, &byte), MEM_OK);
    ck_assert_uint_eq(byte, pattern(scattered_at(0)));
}
END_TEST

START_TEST(umr_needs_umr_en)
{
    struct prm_mkc mkc[1];
    struct umr umr;
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    PRM_SET(mkc, mkc, umr_en, 0);
    key = create(mkc, NULL, 0);
    umr_start(&umr, key, MASK(LEN));
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, false), MEM_BAD_KEY);
}
END_TEST

#define FRWR_MASK                                                                                  \
    (MASK(LEN) | MASK(PAGE_SIZE) | MASK(START_ADDR) | MASK(EN_RINVAL) | MASK(KEY) | ACCESS_MASK |  \
     MASK(SMALL_FENCE) | MASK(FREE))

/* The kernel's fast registration (IB_WR_REG_MR, LOCAL_INV) uses a new variant byte each time. */
START_TEST(fast_registration_gives_the_key_a_new_variant)
{
    uint32_t key = create_cached(4, rig.pdn), next = (key & ~0xffu) | 0x77;
    struct umr umr;
    uint8_t byte;

    umr_start(&umr, next, FRWR_MASK);
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_MTT, VA, 2 * PAGE);
    PRM_SET(mkc, umr.mkc, mkey_7_0, 0x77);
    PRM_SET(mkc, umr.mkc, en_rinval, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_free, PRM_UMR_CHECK_NOT_FREE);
    umr_mtts(&umr, (unsigned[]){6, 7}, 2);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(peek(next, VA, &byte), MEM_OK);

    umr_start(&umr, next, MASK(FREE)); /* LOCAL_INV */
    PRM_SET(mkc, umr.mkc, free, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(next, VA, &byte), MEM_BAD_KEY);
}
END_TEST

START_TEST(remote_invalidate_needs_en_rinval)
{
    struct prm_mkc mkc[1];
    uint32_t key;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_PA, 0, PAGE);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, true), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.user_pdn, false), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, false), MEM_OK);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, false), MEM_BAD_KEY);
    PRM_SET(mkc, mkc, en_rinval, 1);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, 0, 1, ALL), MEM_OK);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, true), MEM_OK);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, 0, 1, ALL), MEM_BAD_KEY);
}
END_TEST

/* A process may bind windows (KLM), but not change the kernel's page list. */
START_TEST(user_qp_cannot_change_a_page_key)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[64] = {0};
    uint32_t index, key;
    struct umr umr;

    prm_store64(mtt, mem);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, PAGE);
    PRM_SET(mkc, mkc, pd, rig.user_pdn);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, mtt, 64, false, &index), SYN_OK);
    key = index << 8 | VARIANT;
    umr_start(&umr, key, MASK(LEN));
    umr.req.pdn = rig.user_pdn;
    PRM_SET(mkc, umr.mkc, len, 8 * PAGE);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    umr_start(&umr, key, 0);
    umr.req.pdn = rig.user_pdn;
    umr_mtts(&umr, (unsigned[]){3}, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0);
    PRM_SET(mkc, mkc, pd, rig.user_pdn);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_OK);
    umr_start(&umr, index << 8 | VARIANT, FRWR_MASK | MASK(QPN));
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_KLMS, 0x100, 50);
    PRM_SET(mkc, umr.mkc, qpn, 0x42);
    klm(umr.xlt, 0, 50, key, 0x100);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
    umr.req.pdn = rig.user_pdn;
    umr.req.qpn = 0x42;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(
        mkey_check(&rig.hca, index << 8 | VARIANT, rig.user_pdn, 0x100, 50, MEM_REMOTE_READ),
        MEM_OK);
    ck_assert(!mkey_allows_qp(&rig.hca, index << 8 | VARIANT, 0x43));

    umr_start(&umr, index << 8 | VARIANT, MASK(FREE)); /* unbinding by another QP */
    PRM_SET(mkc, umr.mkc, free, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_qpn, 1);
    umr.req.pdn = rig.user_pdn;
    umr.req.qpn = 0x43;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_KEY);
    umr.req.qpn = 0x42;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
}
END_TEST

/* rdma-core's LOCAL_INV requests the check (_build_umr_wqe()), also for keys that were made for
 * every QP. */
START_TEST(a_key_of_every_qp_passes_the_check_of_its_qpn)
{
    uint32_t key = create_mtt(VA, PAGE, (unsigned[]){3}, 1);
    struct umr umr;

    umr_start(&umr, key, MASK(FREE));
    PRM_SET(mkc, umr.mkc, free, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, check_qpn, 1);
    umr.req.qpn = 0x43;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA, 8, MEM_LOCAL_READ), MEM_BAD_KEY);
}
END_TEST

/* -- KLM lists -------------------------------------------------------------------------------- */

/* The test's copy of a key's list; its ranges are of the null key, or in the test's pages. */
#define KLMS 203

static struct prm_wqe_klm_seg klms[KLMS + 1];

/* Returns a value from 0 to n - 1, the same in each run. */
static uint32_t any(uint32_t n)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Finds byte `at` of the list by adding up the lengths. */
static enum mem_result byte_in_list(uint64_t at, uint8_t *byte)
{
    const void *head = klms;
    bool repeat = PRM_GET(wqe_klm_seg, klms, mkey) == PRM_WQE_REPEAT_OP_STRIDED_BLOCK;
    unsigned rounds = repeat ? PRM_GET(wqe_repeat_block_seg, head, repeat_count) : 1;
    unsigned end =
        repeat ? MIN(PRM_GET(wqe_repeat_block_seg, head, num_ent) + 1, KLMS + 1) : KLMS + 1;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = repeat; i < end; i++) {
            const struct prm_wqe_klm_seg *entry = &klms[i];
            uint32_t count = PRM_GET(wqe_klm_seg, entry, byte_count);
            uint64_t va = PRM_GET(wqe_klm_seg, entry, va);

            if (repeat) {
                va += (uint64_t)round * (count >> 16);
                count &= 0xffff;
            }
            if (at < count) {
                bool null = PRM_GET(wqe_klm_seg, entry, mkey) == RIG_NULL_MKEY;

                *byte = null ? 0 : pattern(va + at - mem);
                return MEM_OK;
            }
            at -= count;
        }
    }
    return MEM_BAD_BOUNDS;
}

/* Makes a range of no, few or very many bytes, or, as the first entry, one that makes the list
 * repeat. */
static void any_klm(void *entry, bool first)
{
    memset(entry, 0, 16);
    if (first && any(2)) {
        PRM_SET(wqe_repeat_block_seg, entry, byte_count, any(1 << 20));
        PRM_SET(wqe_repeat_block_seg, entry, op, PRM_WQE_REPEAT_OP_STRIDED_BLOCK);
        PRM_SET(wqe_repeat_block_seg, entry, repeat_count, 1 + any(3));
        PRM_SET(wqe_repeat_block_seg, entry, num_ent, any(2 * KLMS));
    } else if (any(4) == 0) {
        klm(entry, 0, any(2) << 16 | any(1 << 16), RIG_NULL_MKEY, 0);
    } else {
        klm(entry, 0, any(20), RIG_RESD_LKEY, mem + any(PAGES * PAGE - 20));
    }
}

/* Entries change a few at a time, and the list from plain to interleaved and back: each byte is
 * where the list now says. */
START_TEST(a_changed_list_is_followed_as_it_is_now)
{
    uint32_t key = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 1ull << 32, klms, KLMS + 1);
    unsigned found = 0;
    struct umr umr;

    for (unsigned i = 0; i < 2000; i++) {
        unsigned n = 1 + any(i % 10 ? 5 : 60), first = any(4) ? any(KLMS + 2 - n) : 0;

        umr_start(&umr, key, 0);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, n);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, translation_offset_en, 1);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, first);
        for (unsigned e = 0; e < n; e++) {
            any_klm(umr.xlt + 16 * e, first + e == 0);
        }
        memcpy(klms + first, umr.xlt, 16 * n);
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        for (unsigned t = 0; t < 20; t++) {
            uint64_t at = t % 2 ? any(4000) : any(6000000);
            uint8_t want = 0, byte = 0xee;
            enum mem_result result = byte_in_list(at, &want);

            ck_assert_int_eq(peek(key, at, &byte), result);
            if (result == MEM_OK) {
                ck_assert_uint_eq(byte, want);
                found++;
            }
        }
    }
    ck_assert_uint_gt(found, 5000);
}
END_TEST

START_TEST(a_umr_costs_what_it_changes)
{
    uint32_t n = 1 << MKEY_LOG_MAX_KLM;
    struct prm_mkc mkc[1];
    uint64_t pieces;
    struct umr umr;
    uint32_t key;
    uint8_t byte;

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 100);
    PRM_SET(mkc, mkc, translations_octword_size, n);
    key = create(mkc, NULL, 0);
    for (unsigned first = 0; first < n; first += n / 8) {
        umr_start(&umr, key, 0);
        klm(umr.xlt, 3, 8, RIG_RESD_LKEY, mem + first / 8);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, translation_offset_en, 1);
        PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_offset, first);
        pieces = rig.hca.pieces;
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        ck_assert_uint_eq(rig.hca.pieces, pieces); /* fewer than HCA_PIECE_ENTRIES entries */
        ck_assert_int_eq(peek(key, first / (n / 8) * 8 + 7, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(first / 8 + 7));
    }
}
END_TEST

/* An access uses the key as it is at that time, however often it was used before. */
START_TEST(an_access_sees_each_change_of_its_key)
{
    static const unsigned pages[] = {3, 4}, others[] = {7, 9};
    uint32_t key = create_mtt(VA, 2 * PAGE, pages, 2), index = key >> 8;
    struct umr umr;
    uint8_t byte;

    for (unsigned n = 0; n < 2; n++) {
        ck_assert_int_eq(peek(key, VA + PAGE + 7, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(4 * PAGE + 7));
    }
    umr_start(&umr, key, 0);
    umr_mtts(&umr, others, 2);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    for (unsigned n = 0; n < 2; n++) {
        ck_assert_int_eq(peek(key, VA + PAGE + 7, &byte), MEM_OK);
        ck_assert_uint_eq(byte, pattern(9 * PAGE + 7));
    }
    umr_start(&umr, key, ACCESS_MASK);
    PRM_SET(mkc, umr.mkc, lw, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, &byte, 1, MEM_LOCAL_WRITE), MEM_OK);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA, 1, MEM_LOCAL_WRITE), MEM_OK);
    ck_assert_int_eq(mkey_invalidate(&rig.hca, key, rig.pdn, false), MEM_OK);
    ck_assert_int_eq(mkey_write(&rig.hca, key, rig.pdn, VA, &byte, 1, MEM_LOCAL_WRITE),
                     MEM_BAD_KEY);
    ck_assert_int_eq(mkey_check(&rig.hca, key, rig.pdn, VA, 1, MEM_LOCAL_WRITE), MEM_BAD_KEY);
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, index), SYN_OK);

    key = create_mtt(VA, 2 * PAGE, pages, 2);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_OK);
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, key >> 8), SYN_OK);
    ck_assert_int_eq(peek(key, VA, &byte), MEM_BAD_KEY);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("mkey_umr");
    TCase *tc = tcase_create("mkey_umr");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, driver_registers_changes_and_revokes);
    tcase_add_test(tc, a_program_names_no_bus_addresses);
    tcase_add_test(tc, a_program_changes_lists_of_equal_ranges);
    tcase_add_test(tc, translation_offset_counts_octwords);
    tcase_add_test(tc, refused_umr_changes_nothing);
    tcase_add_test(tc, umr_needs_umr_en);
    tcase_add_test(tc, fast_registration_gives_the_key_a_new_variant);
    tcase_add_test(tc, remote_invalidate_needs_en_rinval);
    tcase_add_test(tc, user_qp_cannot_change_a_page_key);
    tcase_add_test(tc, a_key_of_every_qp_passes_the_check_of_its_qpn);
    tcase_add_test(tc, a_changed_list_is_followed_as_it_is_now);
    tcase_add_test(tc, a_umr_costs_what_it_changes);
    tcase_add_test(tc, an_access_sees_each_change_of_its_key);
    suite_add_tcase(suite, tc);
    return suite;
}
