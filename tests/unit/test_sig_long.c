/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests signatures of long blocks: of transactions, which may go over several keys, and blocks of
 * 1 GiB. The CRCs are those of the reference (sig_ref.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/psv.h"
#include "model/memory/sig.h"
#include "tests/unit/mkey_bench.h"
#include "tests/unit/sig_ref.h"
#include "tests/unit/suite.h"

#define RANGES 48u                        /* of the list of the long key */
#define RANGE  (8u * PAGE)                /* each is the same memory */
#define LONG   ((uint64_t)RANGES * RANGE) /* 1.5 MiB */

static uint32_t inner, key, psvs[PSV_MAX];
static struct umr umr;
static bool parity; /* expected_sigerr_count: changes with each error */
static uint8_t data[LONG + 8], got[LONG + 8];

static void long_setup(void)
{
    static const unsigned pages[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct prm_mkc mkc[1];

    setup();
    parity = true;
    inner = create_mtt(VA, 12 * PAGE, pages, 12);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, RANGES);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 4);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, 2, psvs), SYN_OK);
    for (uint64_t i = 0; i < LONG; i++) {
        data[i] = *ram(i % RANGE);
    }
}

static struct prm_bsf *the_bsf(void)
{
    return (struct prm_bsf *)(umr.xlt + RANGES * 16);
}

/* Prepares a UMR that gives the key len bytes of memory at an offset of `data`, and an empty
 * descriptor for raw bytes of data. */
static struct prm_bsf *prepare(uint64_t at, uint64_t len, uint32_t raw)
{
    struct prm_bsf *bsf;

    umr_start(&umr, key,
              MASK(LEN) | MASK(FREE) | MASK(KEY) | MASK(BSF_EN) | MASK(EN_SIGERR) | ACCESS_MASK);
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t begin = (at + (uint64_t)i * RANGE) % RANGE;

        /* every range but the first begins with the memory */
        klm(umr.xlt, i, (uint32_t)(i ? RANGE : RANGE - begin), inner, VA + (i ? 0 : begin));
    }
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, len);
    PRM_SET(mkc, umr.mkc, bsf_en, 1);
    PRM_SET(mkc, umr.mkc, expected_sigerr_count, parity);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, RANGES);
    umr.req.xlt_len = RANGES * 16;
    umr.req.bsf = bsf = the_bsf();
    umr.req.bsf_len = sizeof(*bsf);
    memset(bsf, 0, sizeof(*bsf));
    PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_EXTENDED);
    PRM_SET(bsf, bsf, check_byte_mask, 0xff);
    PRM_SET(bsf, bsf, raw_data_size, raw);
    return bsf;
}

static enum mem_result configure(void)
{
    return mkey_umr(&rig.hca, &umr.req);
}

static unsigned tfs(const struct ref *ref)
{
    unsigned format = ref->kind == SIG_CRC32    ? PRM_BSF_FORMAT_CRC32
                      : ref->kind == SIG_CRC32C ? PRM_BSF_FORMAT_CRC32C
                                                : PRM_BSF_FORMAT_CRC64_XP10;

    return format | (ref->ones ? 0 : PRM_BSF_FORMAT_ZERO_SEED);
}

/* Configures the key as a part of a transaction, on the wire or in memory. */
static void part_of(const struct ref *ref, bool of_wire, uint64_t at, uint32_t len, bool first,
                    bool last)
{
    uint64_t field = !of_wire && last ? ref_bytes(ref) : 0;
    struct prm_bsf *bsf = prepare(at, len + field, len);

    if (of_wire) {
        PRM_SET(bsf, bsf, w_tfs, tfs(ref));
        PRM_SET(bsf, bsf, w_t_psv, psvs[0]);
        PRM_SET(bsf, bsf, w_t_init, first);
        PRM_SET(bsf, bsf, w_t_check_gen, last);
    } else {
        PRM_SET(bsf, bsf, m_tfs, tfs(ref));
        PRM_SET(bsf, bsf, m_t_psv, psvs[0]);
        PRM_SET(bsf, bsf, m_t_init, first);
        PRM_SET(bsf, bsf, m_t_check_gen, last);
    }
    ck_assert_int_eq(configure(), MEM_OK);
}

static enum mem_result transfer(bool is_write, uint64_t at, uint8_t *buf, size_t len)
{
    return is_write ? mkey_write(&rig.hca, key, rig.pdn, at, buf, len, MEM_LOCAL_WRITE)
                    : mkey_read(&rig.hca, key, rig.pdn, at, buf, len, MEM_LOCAL_READ);
}

/* The same in random pieces. */
static enum mem_result pieces(bool is_write, uint64_t at, uint8_t *buf, size_t len)
{
    enum mem_result result = MEM_OK;

    for (size_t done = 0, part; done < len && result == MEM_OK; done += part) {
        part = 1 + (size_t)rand() % 9000;
        part = MIN(part, len - done);
        result = transfer(is_write, at + done, buf + done, part);
    }
    return result;
}

static uint64_t field_of(const struct ref *ref, const uint8_t *bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < ref_bytes(ref); i++) {
        number |= (uint64_t)bytes[i] << 8 * i;
    }
    return number;
}

static void no_error(void)
{
    struct sig_error error;

    ck_assert(!sig_take_error(&rig.hca, rig.pdn, &error));
}

static void take_error(struct sig_error *error)
{
    ck_assert(sig_take_error(&rig.hca, rig.pdn, error));
    parity = !parity;
}

static const struct ref kinds[] = {
    {.kind = SIG_CRC32C, .ones = true},     {.kind = SIG_CRC32C},
    {.kind = SIG_CRC32, .ones = true},      {.kind = SIG_CRC32},
    {.kind = SIG_CRC64_XP10, .ones = true}, {.kind = SIG_CRC64_XP10},
};

/* Three keys have the parts of one transaction. The CRC of all data is on the wire behind the last
 * part when the keys are read, as SPDK's accel_mlx5 uses it; it may be read on its own. When they
 * are written, it is checked. */
START_TEST(a_transaction_goes_over_several_keys)
{
    static const uint32_t lens[] = {5000, 1, 20000};
    const struct ref *ref = &kinds[_i / 2];
    size_t bytes = ref_bytes(ref);
    bool alone = _i % 2;
    struct sig_error error;

    srand((unsigned)_i + 1);
    for (unsigned round = 0; round < 4; round++) {
        bool is_write = round % 2, is_damaged = round > 1;
        uint64_t at = 0, want = ref_guard(ref, data, 25001);

        for (unsigned i = 0; i < 3; i++) {
            bool last = i == 2;
            size_t len = lens[i] + (last && !alone ? bytes : 0);

            part_of(ref, true, at, lens[i], i == 0, last);
            memcpy(got, is_write ? data + at : got, is_write ? lens[i] : 0);
            if (is_write && last) {
                for (unsigned b = 0; b < bytes; b++) {
                    got[lens[i] + b] = (uint8_t)(want >> 8 * b);
                }
                got[lens[i] + 1] ^= is_damaged;
            }
            ck_assert_int_eq(pieces(is_write, 0, got, len), MEM_OK);
            if (last && alone) {
                ck_assert_int_eq(pieces(is_write, len, got + len, bytes), MEM_OK);
            }
            ck_assert_int_eq(transfer(false, lens[i] + (last ? bytes : 0), got, 1), MEM_BAD_BOUNDS);
            if (!is_write) {
                ck_assert_int_eq(memcmp(got, data + at, lens[i]), 0);
            }
            at += lens[i];
        }
        if (!is_write) {
            ck_assert_uint_eq(field_of(ref, got + lens[2]), want);
        } else if (is_damaged) {
            take_error(&error);
            ck_assert_uint_eq(error.type, PRM_SIG_ERR_TYPE_TRANSACTION);
            ck_assert_uint_eq(error.domain, PRM_SIG_ERR_DOMAIN_WIRE);
            ck_assert_uint_eq(error.syndrome, 1 << PRM_SIG_ERR_SYNDROME_GUARD);
            ck_assert_uint_eq(error.offset, 0);
            ck_assert_uint_eq(bytes == 4 ? error.computed >> 32 : error.computed, want);
        }
        no_error();
    }
}
END_TEST

/* In memory, the CRC is written when data comes, and checked when it is read. */
START_TEST(a_transaction_ends_in_memory)
{
    const struct ref *ref = &kinds[_i];
    size_t bytes = ref_bytes(ref);
    struct sig_error error;
    uint64_t want;

    srand((unsigned)_i);
    for (size_t i = 0; i < 20000; i++) {
        got[i] = (uint8_t)rand();
    }
    want = ref_guard(ref, got, 20000);
    part_of(ref, false, 0, 7000, true, false);
    ck_assert_int_eq(pieces(true, 0, got, 7000), MEM_OK);
    part_of(ref, false, 7000, 13000, false, true);
    ck_assert_int_eq(pieces(true, 0, got + 7000, 13000), MEM_OK);
    ck_assert_int_eq(memcmp(ram(0), got, 20000), 0);
    ck_assert_uint_eq(field_of(ref, ram(20000)), want);
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        *ram(20000 + bytes - 1) ^= damaged;
        part_of(ref, false, 0, 20000, true, true);
        ck_assert_int_eq(pieces(false, 0, got, 20000), MEM_OK);
        if (damaged) {
            take_error(&error);
            ck_assert_uint_eq(error.domain, PRM_SIG_ERR_DOMAIN_MEMORY);
            ck_assert_uint_eq(error.type, PRM_SIG_ERR_TYPE_TRANSACTION);
        }
        no_error();
    }
}
END_TEST

/* Packets are sent again from any byte on that has passed; what has not passed cannot be skipped.
 */
START_TEST(a_transfer_goes_back_anywhere_and_skips_nothing)
{
    const struct ref *ref = &kinds[_i];
    const uint32_t len = (uint32_t)LONG - 77;
    size_t bytes = ref_bytes(ref), at = 0, reached = 0;
    uint8_t byte;

    srand((unsigned)_i);
    part_of(ref, true, 0, len, true, true);
    ck_assert_int_eq(transfer(false, 1, got, 1), MEM_BAD_BOUNDS);
    ck_assert_int_eq(transfer(false, len, got, bytes), MEM_BAD_BOUNDS);
    while (at < len) {
        size_t part = 1 + (size_t)rand() % 70000;

        part = MIN(part, len - at);
        ck_assert_int_eq(transfer(false, at, got + at, part), MEM_OK);
        at += part;
        reached = MAX(reached, at);
        if (reached + SIG_STRIDE < len) {
            ck_assert_int_eq(transfer(false, reached + SIG_STRIDE, &byte, 1), MEM_BAD_BOUNDS);
        }
        if (rand() % 3 == 0 && at == reached) {
            at -= (size_t)rand() % at; /* never to byte 0, where all begins again */
        }
    }
    ck_assert_int_eq(transfer(false, len, got + len, bytes), MEM_OK);
    ck_assert_int_eq(memcmp(got, data, len), 0);
    ck_assert_uint_eq(field_of(ref, got + len), ref_guard(ref, data, len));
    no_error();
}
END_TEST

static uint64_t crc_of_key(const struct ref *ref, uint32_t len)
{
    ck_assert_int_eq(pieces(false, 0, got, len + ref_bytes(ref)), MEM_OK);
    return field_of(ref, got + len);
}

/* A key that does not begin the transaction begins with the PSV's value. If all of its data passes
 * once more, because the last packet was lost, it begins with the same. If somebody has changed the
 * PSV since, it begins with the new value. */
START_TEST(a_part_begins_with_the_psv)
{
    const struct ref *ref = &kinds[_i];
    struct psv *psv = psv_find(&rig.hca, psvs[0], rig.pdn);
    uint64_t first, zeros;
    uint32_t again[PSV_MAX];

    part_of(ref, true, 0, 1000, true, false);
    ck_assert_int_eq(pieces(false, 0, got, 1000), MEM_OK);
    part_of(ref, true, 1000, 1000, false, true);
    first = crc_of_key(ref, 1000);
    ck_assert_uint_eq(first, ref_guard(ref, data, 2000));
    ck_assert_uint_eq(crc_of_key(ref, 1000), first);
    ck_assert_int_eq(transfer(false, 0, got, 500), MEM_OK); /* again, and again in the midst */
    ck_assert_uint_eq(crc_of_key(ref, 1000), first);
    psv_set(&rig.hca, psv, 0);
    zeros = ref_guard(&(struct ref){.kind = ref->kind}, data + 1000, 1000);
    ck_assert_uint_eq(crc_of_key(ref, 1000), zeros);
    ck_assert_uint_eq(crc_of_key(ref, 1000), zeros);
    ck_assert_int_eq(psv_destroy(&rig.hca, 0, psvs[0]), SYN_OK);
    ck_assert_int_eq(transfer(false, 0, got, 1), MEM_BAD_KEY);

    /* other PSVs that come to have the number, and have been changed as often as the last one */
    for (unsigned n = 1; n < 5; n++) {
        bool ones = n % 2;

        do {
            ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, 1, again), SYN_OK);
        } while (again[0] != psvs[0] && !psv_destroy(&rig.hca, 0, again[0]));
        for (unsigned i = 0; i < n; i++) {
            psv_set(&rig.hca, psv_find(&rig.hca, again[0], rig.pdn), ones ? UINT64_MAX : 0);
        }
        ck_assert_uint_eq(
            crc_of_key(ref, 1000),
            ref_guard(&(struct ref){.kind = ref->kind, .ones = ones}, data + 1000, 1000));
        ck_assert_int_eq(psv_destroy(&rig.hca, 0, again[0]), SYN_OK);
    }
}
END_TEST

/* The length of a block is 1 GiB, and the data ends before: its signature is behind the data. */
START_TEST(a_block_may_have_1_gib)
{
    static const struct ref blocks[] = {{SIG_T10_CRC, 0, true, false, 0x1234, 77},
                                        {SIG_CRC64_XP10, 0, true, false, 0, 0}};
    const struct ref *ref = &blocks[_i];
    const uint32_t len = 300000;
    struct sig_error error;
    struct prm_bsf *bsf = prepare(0, len, len);
    uint64_t want = ref_guard(ref, data, len);

    srand((unsigned)_i);
    PRM_SET(bsf, bsf, wire_bs_selector, PRM_BSF_BLOCK_1_GIB);
    PRM_SET(bsf, bsf, w_psv, psvs[1]);
    if (_i) {
        PRM_SET(bsf, bsf, w_bfs, tfs(ref) | PRM_BSF_FORMAT_REPEAT);
    } else {
        struct prm_bsf_inl *inl = PRM_PTR(bsf, bsf, w_inl);

        PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_WITH_INLINE);
        PRM_SET(bsf_inl, inl, valid, 1);
        PRM_SET(bsf_inl, inl, sig_type, PRM_BSF_DIF_CRC);
        PRM_SET(bsf_inl, inl, repeat_block, 1);
        want = GUINT64_SWAP_LE_BE(want << 48 | 0x1234ull << 32 | 77);
    }
    psv_find(&rig.hca, psvs[1], rig.pdn)->value = ref_psv(ref);
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(pieces(false, 0, got, 200000), MEM_OK);
    ck_assert_int_eq(pieces(false, 150000, got + 150000, len - 150000), MEM_OK);
    ck_assert_int_eq(pieces(false, len, got + len, 8), MEM_OK);
    ck_assert_int_eq(memcmp(got, data, len), 0);
    ck_assert_uint_eq(field_of(&(struct ref){.kind = SIG_T10_CRC}, got + len), want);
    ck_assert_int_eq(pieces(true, 0, got, len + 8), MEM_OK);
    no_error();
    got[len + 7] ^= 1;
    ck_assert_int_eq(pieces(true, 0, got, len + 8), MEM_OK);
    take_error(&error);
}
END_TEST

/* A descriptor that the device cannot obey is refused. */
START_TEST(bad_descriptors_are_refused)
{
    static const struct {
        uint32_t field;
        uint64_t value;
    } bad[] = {
        {PRM_bsf_raw_data_size_FIELD, SIG_LONG_MAX + 1},
        {PRM_bsf_raw_data_size_FIELD, UINT32_MAX},
        {PRM_bsf_w_t_psv_FIELD, 0xffff},
        {PRM_bsf_w_tfs_FIELD, PRM_BSF_FORMAT_CRC32C | PRM_BSF_FORMAT_REPEAT},
        {PRM_bsf_w_tfs_FIELD, 0x80},
        {PRM_bsf_w_tfs_FIELD, 0},
        {PRM_bsf_m_t_init_FIELD, 1},
        {PRM_bsf_m_t_check_gen_FIELD, 1},
        {PRM_bsf_t_init_gen_pro_size_FIELD, 1u << 29 | 1},
        {PRM_bsf_epi_size_FIELD, 4},
        {PRM_bsf_w_bfs_FIELD, PRM_BSF_FORMAT_CRC32C | PRM_BSF_FORMAT_REPEAT},
    };

    for (size_t i = 0; i <= G_N_ELEMENTS(bad); i++) {
        struct prm_bsf *bsf = prepare(0, 1000, 1000);

        PRM_SET(bsf, bsf, w_tfs, PRM_BSF_FORMAT_CRC32C);
        PRM_SET(bsf, bsf, w_t_psv, psvs[0]);
        PRM_SET(bsf, bsf, w_t_init, 1);
        PRM_SET(bsf, bsf, wire_bs_selector, PRM_BSF_BLOCK_512);
        PRM_SET(bsf, bsf, w_psv, psvs[0]);
        if (i < G_N_ELEMENTS(bad)) {
            prm_set(bsf, bad[i].field, bad[i].value, "bsf");
        }
        ck_assert_msg(configure() == (i < G_N_ELEMENTS(bad) ? MEM_BAD_BOUNDS : MEM_OK), "case %zu",
                      i);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("long signatures");
    TCase *tc = tcase_create("long");
    int n = (int)G_N_ELEMENTS(kinds);

    tcase_add_checked_fixture(tc, long_setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_transaction_goes_over_several_keys, 0, 2 * n);
    tcase_add_loop_test(tc, a_transaction_ends_in_memory, 0, n);
    tcase_add_loop_test(tc, a_transfer_goes_back_anywhere_and_skips_nothing, 0, n);
    tcase_add_loop_test(tc, a_part_begins_with_the_psv, 0, n);
    tcase_add_loop_test(tc, a_block_may_have_1_gib, 0, 2);
    tcase_add_test(tc, bad_descriptors_are_refused);
    suite_add_tcase(s, tc);
    return s;
}
