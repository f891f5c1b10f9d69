/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests steering memory: which ranges of its regions can be taken, accesses to them by keys, and
 * what they cost.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/core/pd.h"
#include "model/memory/mkey.h"
#include "model/memory/sw_icm.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define START SW_ICM_STE_START
#define BLOCK SW_ICM_BLOCK

static struct fwd d;
static struct hca *hca;
static uint32_t pdn;

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_give_pages(&d, 256), SYN_OK);
    hca = &d.fw->hca;
    ck_assert_int_eq(pd_alloc(hca, 0, &pdn), SYN_OK);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static enum syn take_as(uint16_t uid, uint64_t start, unsigned log_size, uint32_t *id)
{
    uint8_t bytes[PRM_SIZE(general_object_in) + PRM_SIZE(sw_icm)] = {0};
    struct prm_general_object_in *in = (void *)bytes;
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    struct prm_sw_icm *icm = PRM_PTR(general_object_in, in, object);
    enum syn syn;

    PRM_SET(general_obj_in_cmd_hdr, (void *)in, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, (void *)in, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, (void *)in, obj_type, PRM_GENERAL_OBJ_TYPE_SW_ICM);
    PRM_SET(sw_icm, icm, log_sw_icm_size, log_size);
    PRM_SET(sw_icm, icm, sw_icm_start_addr, start);
    syn = fwd_cmd(&d, in, sizeof(bytes), out, sizeof(out));
    *id = PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
    return syn;
}

static enum syn take(uint64_t start, unsigned log_size)
{
    uint32_t id;

    return take_as(0, start, log_size, &id);
}

static enum syn give_back(uint32_t id)
{
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    struct prm_general_obj_out_cmd_hdr out[1] = {0};

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_DESTROY_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SW_ICM);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, id);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

static enum syn key_as(uint16_t uid, uint64_t start, uint64_t len, uint32_t *key)
{
    struct prm_mkc mkc[1] = {0};
    uint32_t index = 0;
    enum syn syn;

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_SW_ICM & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_SW_ICM >> 2);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, start);
    PRM_SET(mkc, mkc, len, len);
    syn = mkey_create(hca, uid, mkc, NULL, 0, false, &index);
    *key = index << 8;
    return syn;
}

static uint32_t must_have_key(uint64_t start, uint64_t len)
{
    uint32_t key;

    ck_assert_int_eq(key_as(0, start, len, &key), SYN_OK);
    return key;
}

static enum mem_result put(uint32_t key, uint64_t va, const void *from, size_t len)
{
    return mkey_write(hca, key, pdn, va, from, len, MEM_REMOTE_WRITE);
}

static enum mem_result get(uint32_t key, uint64_t va, void *to, size_t len)
{
    return mkey_read(hca, key, pdn, va, to, len, MEM_REMOTE_READ);
}

/* Driver mlx5_dm_sw_icm_alloc(): the driver chooses an address in units of the granularity, and the
 * size is a power of two. */
START_TEST(ranges_are_whole_blocks_of_one_region)
{
    uint64_t end = START + (1ull << SW_ICM_LOG_STE_SIZE);

    ck_assert_int_eq(take(START - BLOCK, SW_ICM_LOG_BLOCK), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(START + 64, SW_ICM_LOG_BLOCK), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(START, SW_ICM_LOG_BLOCK - 1), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(START, SW_ICM_LOG_STE_SIZE + 1), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(START, 64), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(START, 255), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(end, SW_ICM_LOG_BLOCK), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(end - BLOCK, SW_ICM_LOG_BLOCK + 1), SYN_SW_ICM_RANGE);
    ck_assert_int_eq(take(end - BLOCK, SW_ICM_LOG_BLOCK), SYN_OK);
    ck_assert_int_eq(take(SW_ICM_MODIFY_START, SW_ICM_LOG_MODIFY_SIZE), SYN_OK);
    ck_assert_int_eq(take(SW_ICM_MODIFY_START, SW_ICM_LOG_MODIFY_SIZE + 1), SYN_SW_ICM_RANGE);
}
END_TEST

START_TEST(ranges_do_not_overlap)
{
    uint32_t id;

    ck_assert_int_eq(take_as(0, START + 2 * BLOCK, SW_ICM_LOG_BLOCK + 1, &id), SYN_OK);
    ck_assert_int_eq(take(START + 3 * BLOCK, SW_ICM_LOG_BLOCK), SYN_SW_ICM_TAKEN);
    ck_assert_int_eq(take(START, SW_ICM_LOG_BLOCK + 2), SYN_SW_ICM_TAKEN);
    ck_assert_int_eq(take(START, SW_ICM_LOG_STE_SIZE), SYN_SW_ICM_TAKEN);
    ck_assert_int_eq(take(START, SW_ICM_LOG_BLOCK + 1), SYN_OK);
    ck_assert_int_eq(give_back(id), SYN_OK);
    ck_assert_int_eq(give_back(id), SYN_NO_GENERAL_OBJECT);
    ck_assert_int_eq(take(START + 3 * BLOCK, SW_ICM_LOG_BLOCK), SYN_OK);
}
END_TEST

/* dr_icm_pool_mr_create(): the key is zero-based. A write may cross blocks; what was not written
 * reads as zero. */
START_TEST(keys_read_and_write_a_range)
{
    static uint8_t out[3 * BLOCK], back[3 * BLOCK], zero[64];
    uint32_t key;

    ck_assert_int_eq(take(START, SW_ICM_LOG_BLOCK + 2), SYN_OK);
    key = must_have_key(START + BLOCK, 3 * BLOCK);
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    ck_assert_int_eq(put(key, BLOCK - 100, out, 200), MEM_OK);
    ck_assert_int_eq(get(key, BLOCK - 100, back, 200), MEM_OK);
    ck_assert_mem_eq(out, back, 200);
    ck_assert_int_eq(get(key, BLOCK - 164, back, 64), MEM_OK);
    ck_assert_mem_eq(back, zero, 64);
    ck_assert_int_eq(get(key, 2 * BLOCK + 64, back, 64), MEM_OK);
    ck_assert_mem_eq(back, zero, 64);
    ck_assert_int_eq(put(key, 0, out, sizeof(out)), MEM_OK);
    ck_assert_int_eq(get(key, 0, back, sizeof(back)), MEM_OK);
    ck_assert_mem_eq(out, back, sizeof(out));
    ck_assert_int_eq(put(key, 3 * BLOCK - 4, out, 8), MEM_BAD_BOUNDS);
    /* the same bytes by their address, as steering entries name them */
    ck_assert(sw_icm_read(hca, START + BLOCK + 1000, back, 64));
    ck_assert_mem_eq(back, out + 1000, 64);
    ck_assert(!sw_icm_read(hca, START + 4 * BLOCK - 32, back, 64));
}
END_TEST

START_TEST(keys_lie_in_one_range_and_keep_it)
{
    uint32_t id, key;

    ck_assert_int_eq(take_as(0, START, SW_ICM_LOG_BLOCK, &id), SYN_OK);
    ck_assert_int_eq(take(START + BLOCK, SW_ICM_LOG_BLOCK), SYN_OK);
    ck_assert_int_eq(key_as(0, START, BLOCK + 64, &key), SYN_MKEY_DEVICE);
    ck_assert_int_eq(key_as(0, START + 2 * BLOCK, 64, &key), SYN_MKEY_DEVICE);
    ck_assert_int_eq(key_as(0, SW_ICM_MODIFY_START, 64, &key), SYN_MKEY_DEVICE);
    ck_assert_int_eq(key_as(7, START, 64, &key), SYN_BAD_UID);
    key = must_have_key(START, BLOCK);
    ck_assert_int_eq(give_back(id), SYN_IN_USE);
    ck_assert_int_eq(mkey_destroy(hca, 0, key >> 8), SYN_OK);
    ck_assert_int_eq(give_back(id), SYN_OK);
    ck_assert_int_eq(key_as(0, START, 64, &key), SYN_MKEY_DEVICE);
}
END_TEST

/* A range of 64 MiB costs little until it is written. A write for which there is no memory fails,
 * and what the range has cost comes back with it. */
START_TEST(a_range_costs_what_is_written)
{
    uint64_t before = hca->memory.used, taken;
    uint8_t line[64] = {1};
    uint32_t id, key;

    ck_assert_int_eq(take_as(0, START, 26, &id), SYN_OK);
    ck_assert_uint_lt(hca->memory.used - before, 256 << 10);
    key = must_have_key(START, 1 << 26);
    taken = hca->memory.used;
    for (unsigned i = 0; i < 16; i++) {
        ck_assert_int_eq(put(key, (uint64_t)i * BLOCK, line, sizeof(line)), MEM_OK);
        ck_assert_int_eq(put(key, (uint64_t)i * BLOCK + 640, line, sizeof(line)), MEM_OK);
    }
    ck_assert_uint_ge(hca->memory.used - taken, 16 * BLOCK);
    ck_assert_uint_lt(hca->memory.used - taken, 17 * BLOCK);
    hca->memory.limit = hca->memory.used + BLOCK / 2;
    ck_assert_int_eq(put(key, 20 * BLOCK, line, sizeof(line)), MEM_NO_ANSWER);
    ck_assert_int_eq(put(key, 3 * BLOCK, line, sizeof(line)), MEM_OK);
    hca->memory.limit = UINT64_MAX;
    ck_assert_int_eq(mkey_destroy(hca, 0, key >> 8), SYN_OK);
    ck_assert_int_eq(give_back(id), SYN_OK);
    ck_assert_uint_le(hca->memory.used, before + (32 << 10)); /* the tables of numbers */
}
END_TEST

/* A range may take several turns to end. Its blocks that are freed already answer no entry. */
START_TEST(a_range_that_ends_answers_no_more)
{
    uint8_t line[64] = {1}, back[64];
    uint32_t id, key;
    struct obj *icm;

    ck_assert_int_eq(take_as(0, START, SW_ICM_LOG_BLOCK + 2, &id), SYN_OK);
    key = must_have_key(START, 4 * BLOCK);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(put(key, (uint64_t)i * BLOCK, line, sizeof(line)), MEM_OK);
    }
    ck_assert_int_eq(mkey_destroy(hca, 0, key >> 8), SYN_OK);
    icm = obj_find(&hca->sw_icms, id);
    ck_assert(!hca_has_room(hca)); /* there is no turn */
    ck_assert(!sw_icm_trim(hca, icm));
    ck_assert(sw_icm_read(hca, START, back, sizeof(back)));
    ck_assert_mem_eq(back, line, sizeof(line));
    ck_assert(!sw_icm_read(hca, START + 3 * BLOCK, back, sizeof(back)));
    ck_assert_int_eq(give_back(id), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw-sw-icm");
    TCase *tc = tcase_create("sw-icm");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, ranges_are_whole_blocks_of_one_region);
    tcase_add_test(tc, ranges_do_not_overlap);
    tcase_add_test(tc, keys_read_and_write_a_range);
    tcase_add_test(tc, keys_lie_in_one_range_and_keep_it);
    tcase_add_test(tc, a_range_costs_what_is_written);
    tcase_add_test(tc, a_range_that_ends_answers_no_more);
    suite_add_tcase(s, tc);
    return s;
}
