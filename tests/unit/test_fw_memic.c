/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests device memory: its commands, keys on it, the accesses of a CPU to its windows in BAR0, and
 * what a bad driver or user context may try.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/core/pd.h"
#include "model/memory/memic.h"
#include "model/memory/mkey.h"
#include "model/queue/uar.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define PAGE  MEMIC_PAGE_SIZE
#define START MEMIC_BAR_START

static struct fwd d;
static uint32_t pdn;
static uint8_t owners[MEMIC_BAR_SIZE] __attribute__((aligned(4096)));

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_give_pages(&d, 256), SYN_OK);
    ck_assert_int_eq(pd_alloc(&d.fw->hca, 0, &pdn), SYN_OK);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* -- commands ---------------------------------------------------------------------------------- */

static enum syn alloc_as(uint16_t uid, uint64_t start, uint32_t range, uint32_t size,
                         unsigned align, uint64_t *addr)
{
    struct prm_alloc_memic_in in[1] = {0};
    struct prm_alloc_memic_out out[1] = {0};
    enum syn syn;

    PRM_SET(alloc_memic_in, in, opcode, PRM_CMD_OP_ALLOC_MEMIC);
    PRM_SET(general_obj_in_cmd_hdr, (void *)in, uid, uid);
    PRM_SET(alloc_memic_in, in, range_start_addr, start);
    PRM_SET(alloc_memic_in, in, range_size, range);
    PRM_SET(alloc_memic_in, in, memic_size, size);
    PRM_SET(alloc_memic_in, in, log_memic_addr_alignment, align);
    syn = fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
    *addr = PRM_GET(alloc_memic_out, out, memic_start_addr);
    return syn;
}

static enum syn alloc(uint64_t start, uint32_t range, uint32_t size)
{
    uint64_t addr;

    return alloc_as(0, start, range, size, 0, &addr);
}

/* Allocates size bytes wherever there is room. Returns the address. */
static uint64_t must_alloc(uint32_t size)
{
    uint64_t addr;

    ck_assert_int_eq(alloc_as(0, START, MEMIC_BAR_SIZE, size, 0, &addr), SYN_OK);
    return addr;
}

static enum syn dealloc_as(uint16_t uid, uint64_t addr, uint32_t size)
{
    struct prm_dealloc_memic_in in[1] = {0};
    struct prm_dealloc_memic_out out[1] = {0};

    PRM_SET(dealloc_memic_in, in, opcode, PRM_CMD_OP_DEALLOC_MEMIC);
    PRM_SET(general_obj_in_cmd_hdr, (void *)in, uid, uid);
    PRM_SET(dealloc_memic_in, in, memic_start_addr, addr);
    PRM_SET(dealloc_memic_in, in, memic_size, size);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

static enum syn dealloc(uint64_t addr, uint32_t size)
{
    return dealloc_as(0, addr, size);
}

static enum syn modify_as(uint16_t uid, unsigned op_mod, uint64_t addr, unsigned op,
                          uint64_t *op_addr)
{
    struct prm_modify_memic_in in[1] = {0};
    struct prm_modify_memic_out out[1] = {0};
    enum syn syn;

    PRM_SET(modify_memic_in, in, opcode, PRM_CMD_OP_MODIFY_MEMIC);
    PRM_SET(modify_memic_in, in, uid, uid);
    PRM_SET(modify_memic_in, in, op_mod, op_mod);
    PRM_SET(modify_memic_in, in, memic_operation_type, op);
    PRM_SET(modify_memic_in, in, memic_start_addr, addr);
    syn = fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
    *op_addr = PRM_GET(modify_memic_out, out, memic_operation_addr);
    return syn;
}

static enum syn modify(unsigned op_mod, uint64_t addr, unsigned op)
{
    uint64_t op_addr;

    return modify_as(0, op_mod, addr, op, &op_addr);
}

static uint64_t must_have_op(uint64_t addr, unsigned op)
{
    uint64_t op_addr;

    ck_assert_int_eq(modify_as(0, PRM_MODIFY_MEMIC_OP_ALLOC, addr, op, &op_addr), SYN_OK);
    return op_addr;
}

static uint16_t create_uctx(void)
{
    struct prm_create_uctx_in in[1] = {0};
    struct prm_create_uctx_out out[1] = {0};

    PRM_SET(create_uctx_in, in, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_int_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    return PRM_GET(create_uctx_out, out, uid);
}

static void fill_mkc(struct prm_mkc *mkc, uint64_t addr, uint64_t len)
{
    memset(mkc, 0, sizeof(*mkc));
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MEMIC & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_MEMIC >> 2);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, addr);
    PRM_SET(mkc, mkc, len, len);
}

static enum syn create_key(uint16_t uid, const struct prm_mkc *mkc, uint32_t *key)
{
    uint32_t index = 0;
    enum syn syn = mkey_create(&d.fw->hca, uid, mkc, NULL, 0, false, &index);

    *key = index << 8;
    return syn;
}

/* A key on len bytes from addr on. */
static uint32_t must_have_key(uint64_t addr, uint64_t len)
{
    struct prm_mkc mkc[1];
    uint32_t key;

    fill_mkc(mkc, addr, len);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_OK);
    return key;
}

static void destroy_key(uint32_t key)
{
    ck_assert_int_eq(mkey_destroy(&d.fw->hca, 0, key >> 8), SYN_OK);
}

static enum mem_result put(uint32_t key, uint64_t va, const void *from, size_t len)
{
    return mkey_write(&d.fw->hca, key, pdn, va, from, len, MEM_REMOTE_WRITE);
}

static enum mem_result get(uint32_t key, uint64_t va, void *to, size_t len)
{
    return mkey_read(&d.fw->hca, key, pdn, va, to, len, MEM_REMOTE_READ);
}

/* -- allocation -------------------------------------------------------------------------------- */

/* Driver mlx5_cmd_alloc_memic(): the range is of as many pages as the size needs; the card chooses
 * the place in it. If the range has no room, the driver sees EAGAIN and goes on to the next page.
 */
START_TEST(memory_lies_in_the_range_that_the_driver_names)
{
    uint64_t addr;

    ck_assert_int_eq(alloc_as(0, START + 3 * PAGE, PAGE, 64, 0, &addr), SYN_OK);
    ck_assert_uint_eq(addr, START + 3 * PAGE);
    ck_assert_int_eq(alloc(START + 3 * PAGE, PAGE, 64), SYN_MEMIC_FULL);
    ck_assert_int_eq(alloc(START + 2 * PAGE, 2 * PAGE, 2 * PAGE), SYN_MEMIC_FULL);
    ck_assert_int_eq(alloc(START + 2 * PAGE, PAGE, 64), SYN_OK);
    ck_assert_int_eq(alloc_as(0, START, MEMIC_BAR_SIZE, 3 * PAGE, 0, &addr), SYN_OK);
    ck_assert_uint_eq(addr, START + 4 * PAGE); /* the first gap is too small */
    ck_assert_int_eq(dealloc(START + 3 * PAGE, 64), SYN_OK);
    ck_assert_int_eq(alloc(START + 3 * PAGE, PAGE, PAGE), SYN_OK);
    ck_assert_uint_eq(syn_status(SYN_MEMIC_FULL), PRM_CMD_STATUS_NO_RES);
}
END_TEST

/* Alignments are in units of 64 bytes: MLX5_MEMIC_BASE_ALIGN. */
START_TEST(memory_is_aligned)
{
    uint64_t addr;

    ck_assert_int_eq(alloc(START, PAGE, 64), SYN_OK);
    for (unsigned align = 0; align <= MEMIC_LOG_ALIGN; align++) {
        /* the range begins at an odd page */
        ck_assert_int_eq(alloc_as(0, START + PAGE, MEMIC_BAR_SIZE - PAGE, 64, align, &addr),
                         SYN_OK);
        ck_assert_uint_eq(addr % (64ull << align), 0);
    }
    ck_assert_int_eq(alloc_as(0, START + PAGE, PAGE, 64, MEMIC_LOG_ALIGN, &addr), SYN_MEMIC_FULL);
    ck_assert_int_eq(alloc_as(0, START, MEMIC_BAR_SIZE, 64, MEMIC_LOG_ALIGN + 1, &addr),
                     SYN_MEMIC_SIZE);
    ck_assert_int_eq(alloc_as(0, START, MEMIC_BAR_SIZE, 64, 255, &addr), SYN_MEMIC_SIZE);
}
END_TEST

START_TEST(bad_ranges_and_sizes_are_refused)
{
    static const struct {
        uint64_t start;
        uint32_t range, size;
        enum syn syn;
    } bad[] = {
        {START, PAGE, 0, SYN_MEMIC_SIZE},
        {START, PAGE, 63, SYN_MEMIC_SIZE},
        {START, PAGE, 65, SYN_MEMIC_SIZE},
        {START, MEMIC_BAR_SIZE, MEMIC_MAX_SIZE + 64, SYN_MEMIC_SIZE},
        {START, MEMIC_BAR_SIZE, UINT32_MAX - 63, SYN_MEMIC_SIZE},
        {START, PAGE, PAGE + 64, SYN_MEMIC_FULL},
        {START, 0, 64, SYN_MEMIC_FULL},
        {START - PAGE, PAGE, 64, SYN_MEMIC_RANGE},
        {START + 64, PAGE, 64, SYN_MEMIC_RANGE},
        {START, PAGE + 64, 64, SYN_MEMIC_RANGE},
        {START, MEMIC_BAR_SIZE + PAGE, 64, SYN_MEMIC_RANGE},
        {START + MEMIC_BAR_SIZE, PAGE, 64, SYN_MEMIC_RANGE},
        {START + MEMIC_BAR_SIZE - PAGE, 2 * PAGE, 64, SYN_MEMIC_RANGE},
        {0, PAGE, 64, SYN_MEMIC_RANGE},
        {UINT64_MAX - PAGE + 1, PAGE, 64, SYN_MEMIC_RANGE},
        {1ull << 32 | START, PAGE, 64, SYN_MEMIC_RANGE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        ck_assert_int_eq(alloc(bad[i].start, bad[i].range, bad[i].size), bad[i].syn);
    }
    ck_assert_uint_eq(d.fw->hca.memics.count, 0);
    ck_assert_ptr_null(d.fw->hca.device_memory);
    ck_assert_int_eq(alloc(START, MEMIC_BAR_SIZE, MEMIC_MAX_SIZE), SYN_OK);
}
END_TEST

START_TEST(only_an_allocation_as_a_whole_is_freed)
{
    uint64_t addr = must_alloc(3 * PAGE);

    ck_assert_int_eq(dealloc(addr + PAGE, 3 * PAGE), SYN_NO_MEMIC);
    ck_assert_int_eq(dealloc(addr + 64, 3 * PAGE - 64), SYN_NO_MEMIC);
    ck_assert_int_eq(dealloc(addr, 2 * PAGE), SYN_MEMIC_SIZE);
    ck_assert_int_eq(dealloc(addr + 3 * PAGE, PAGE), SYN_NO_MEMIC);
    ck_assert_int_eq(dealloc(0, 3 * PAGE), SYN_NO_MEMIC);
    ck_assert_int_eq(dealloc(UINT64_MAX, 3 * PAGE), SYN_NO_MEMIC);
    ck_assert_int_eq(dealloc(addr, 3 * PAGE), SYN_OK);
    ck_assert_int_eq(dealloc(addr, 3 * PAGE), SYN_NO_MEMIC);
}
END_TEST

/* The memory that the function allocates itself is there while there are allocations, and is paid
 * from the ledger. */
START_TEST(the_ledger_pays_for_the_memory)
{
    uint64_t used, limit = d.fw->hca.memory.limit, addr = must_alloc(64);

    ck_assert_int_eq(dealloc(addr, 64), SYN_OK);
    used = d.fw->hca.memory.used; /* with the table of the numbers */
    d.fw->hca.memory.limit = used + MEMIC_BAR_SIZE;
    ck_assert_int_eq(alloc(START, PAGE, 64), SYN_NO_MEMORY);
    ck_assert_uint_eq(d.fw->hca.memory.used, used);
    d.fw->hca.memory.limit = limit;
    addr = must_alloc(64);
    ck_assert_uint_ge(d.fw->hca.memory.used, used + MEMIC_BAR_SIZE);
    ck_assert_int_eq(dealloc(addr, 64), SYN_OK);
    ck_assert_uint_eq(d.fw->hca.memory.used, used);
}
END_TEST

/* The end of one allocation leaves the others as they are. */
START_TEST(memory_stays_while_it_is_allocated)
{
    uint64_t first = must_alloc(64), second = must_alloc(64);
    uint32_t key = must_have_key(first, 64);
    uint8_t byte = 0xee;

    ck_assert_int_eq(put(key, 5, &byte, 1), MEM_OK);
    byte = 0;
    ck_assert_int_eq(dealloc(second, 64), SYN_OK);
    ck_assert_int_eq(get(key, 5, &byte, 1), MEM_OK);
    ck_assert_uint_eq(byte, 0xee);
}
END_TEST

/* A program must not see what another one has left in its memory. */
START_TEST(new_memory_is_zero)
{
    uint64_t addr = must_alloc(2 * PAGE);
    uint32_t key = must_have_key(addr, 2 * PAGE);
    uint8_t byte = 0xee;

    ck_assert_int_eq(put(key, PAGE + 5, &byte, 1), MEM_OK);
    ck_assert_int_eq(put(key, 2 * PAGE - 1, &byte, 1), MEM_OK);
    destroy_key(key);
    must_alloc(64); /* keeps the function's memory */
    ck_assert_int_eq(dealloc(addr, 2 * PAGE), SYN_OK);
    ck_assert_int_eq(alloc(addr, 2 * PAGE, PAGE + 64), SYN_OK);
    key = must_have_key(addr, PAGE + 64);
    ck_assert_int_eq(get(key, PAGE + 5, &byte, 1), MEM_OK);
    ck_assert_uint_eq(byte, 0);
    /* also in the rest of the last page, which is mapped, too */
    for (uint64_t at = PAGE; at < 2 * PAGE; at++) {
        ck_assert_uint_eq(fw_mmio_read(d.fw, addr + at, 1), 0);
    }
}
END_TEST

/* -- keys -------------------------------------------------------------------------------------- */

/* Driver mlx5_ib_reg_dm_mr(): start_addr is the place in BAR0. Addresses in the key begin at 0:
 * ibv_reg_dm_mr() wants IBV_ACCESS_ZERO_BASED. */
START_TEST(a_key_reaches_its_part_of_the_memory)
{
    uint64_t addr = must_alloc(2 * PAGE);
    uint32_t whole = must_have_key(addr, 2 * PAGE), part = must_have_key(addr + 64, PAGE);
    uint8_t data[300], back[300], byte = 7;

    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + 1);
    }
    for (unsigned n = 0; n < 2; n++) { /* the second time, the cache has the keys */
        ck_assert_int_eq(put(part, n, data, sizeof(data)), MEM_OK);
        ck_assert_int_eq(get(whole, 64 + n, back, sizeof(back)), MEM_OK);
        ck_assert_mem_eq(back, data, sizeof(data));
        ck_assert_int_eq(put(part, PAGE - 1, &byte, 1), MEM_OK);
        ck_assert_int_eq(put(part, PAGE, &byte, 1), MEM_BAD_BOUNDS);
        ck_assert_int_eq(put(part, PAGE - 1, data, 2), MEM_BAD_BOUNDS);
        ck_assert_int_eq(get(part, addr, &byte, 1), MEM_BAD_BOUNDS);
        ck_assert_int_eq(get(part, UINT64_MAX, &byte, 1), MEM_BAD_BOUNDS);
        ck_assert_int_eq(get(whole, 64 + PAGE, &byte, 1), MEM_OK);
        ck_assert_uint_eq(byte, 0);
        byte = 7;
    }
}
END_TEST

START_TEST(atomics_work_on_device_memory)
{
    static const uint8_t add[16] = {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t addr = must_alloc(64), was = 1;
    uint32_t key = must_have_key(addr, 64);
    uint64_t words[3] = {40, 0, 0};
    uint8_t original[8];
    struct hca *hca = &d.fw->hca;

    ck_assert_int_eq(put(key, 0, words, sizeof(words)), MEM_OK);
    ck_assert_int_eq(mkey_fetch_add(hca, key, pdn, 0, 2, &was), MEM_OK);
    ck_assert_uint_eq(was, 40);
    ck_assert_int_eq(mkey_cmp_swap(hca, key, pdn, 0, 42, 50, &was), MEM_OK);
    ck_assert_uint_eq(was, 42);
    ck_assert_int_eq(mkey_cmp_swap(hca, key, pdn, 0, 42, 60, &was), MEM_OK);
    ck_assert_uint_eq(was, 50);
    ck_assert_int_eq(mkey_masked(hca, key, pdn, 8, MASKED_FETCH_ADD, 8, add, original), MEM_OK);
    ck_assert_int_eq(mkey_fetch_add(hca, key, pdn, 4, 2, &was), MEM_BAD_BOUNDS);
    ck_assert_int_eq(mkey_fetch_add(hca, key, pdn, 64, 2, &was), MEM_BAD_BOUNDS);
    ck_assert_int_eq(get(key, 0, words, sizeof(words)), MEM_OK);
    ck_assert_uint_eq(words[0], 50);
    ck_assert_uint_eq(words[1], 3);
    ck_assert_uint_eq(words[2], 0);
}
END_TEST

/* An access through a list of keys to device memory and host memory. */
START_TEST(an_indirect_key_names_keys_of_device_memory)
{
    uint64_t addr = must_alloc(PAGE), host = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t device = must_have_key(addr + 128, 256), index;
    struct prm_wqe_klm_seg list[4] = {0};
    uint8_t data[64], back[64];
    struct prm_mkc mkc[1] = {0};

    PRM_SET(wqe_klm_seg, &list[0], byte_count, 32);
    PRM_SET(wqe_klm_seg, &list[0], mkey, device);
    PRM_SET(wqe_klm_seg, &list[0], va, 16);
    PRM_SET(wqe_klm_seg, &list[1], byte_count, 32);
    PRM_SET(wqe_klm_seg, &list[1], mkey, d.fw->hca.resd_lkey);
    PRM_SET(wqe_klm_seg, &list[1], va, host);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, len, 64);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    ck_assert_int_eq(mkey_create(&d.fw->hca, 0, mkc, list, sizeof(list), false, &index), SYN_OK);
    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(200 - i);
    }
    ck_assert_int_eq(put(index << 8, 0, data, sizeof(data)), MEM_OK);
    ck_assert_int_eq(get(device, 16, back, 32), MEM_OK);
    ck_assert_mem_eq(back, data, 32);
    ck_assert_mem_eq(fake_host_ptr(&d.host, host, 32), data + 32, 32);
    ck_assert_int_eq(get(index << 8, 0, back, sizeof(back)), MEM_OK);
    ck_assert_mem_eq(back, data, 64);
}
END_TEST

START_TEST(a_key_lies_in_one_allocation)
{
    uint64_t first = must_alloc(PAGE), second = must_alloc(PAGE);
    struct prm_mkc mkc[1];
    uint32_t key;

    ck_assert_uint_eq(second, first + PAGE);
    fill_mkc(mkc, first, PAGE + 1);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, first + PAGE - 1, 2);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, second + PAGE, 64);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, first - 64, 64);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, first, UINT64_MAX);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, 0, 64);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, first, 64);
    PRM_SET(mkc, mkc, length64, 1);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fill_mkc(mkc, second, PAGE);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_OK);
}
END_TEST

/* ibv_free_dm() with MRs fails in the kernel (EBUSY), so the driver never asks for this. */
START_TEST(memory_with_keys_or_operations_is_in_use)
{
    uint64_t addr = must_alloc(PAGE);
    uint32_t key = must_have_key(addr, 64);

    ck_assert_int_eq(dealloc(addr, PAGE), SYN_IN_USE);
    ck_assert_int_eq(put(key, 0, "12345678", 8), MEM_OK);
    destroy_key(key);
    must_have_op(addr, PRM_MEMIC_OPERATION_INCREMENT);
    ck_assert_int_eq(dealloc(addr, PAGE), SYN_IN_USE);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, PRM_MEMIC_OPERATION_INCREMENT),
                     SYN_OK);
    ck_assert_int_eq(dealloc(addr, PAGE), SYN_OK);
}
END_TEST

/* A UMR could otherwise move a key of the kernel to memory that is not its own. */
START_TEST(a_umr_does_not_move_a_key_of_device_memory)
{
    uint64_t addr = must_alloc(PAGE);
    struct prm_wqe_umr_ctrl_seg ctrl[1] = {0};
    struct prm_mkc mkc[1], change[1] = {0};
    struct mkey_umr umr = {
        .pdn = pdn, .qpn = 1, .privileged = true, .fast = true, .ctrl = ctrl, .mkey_seg = change};
    uint8_t byte;

    fill_mkc(mkc, addr, 64);
    PRM_SET(mkc, mkc, umr_en, 1);
    ck_assert_int_eq(create_key(0, mkc, &umr.key), SYN_OK);
    PRM_SET(mkc, change, len, 2 * PAGE);
    PRM_SET(mkc, change, start_addr, addr + PAGE);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, 1ull << PRM_MKEY_MASK_LEN);
    ck_assert_int_eq(mkey_umr(&d.fw->hca, &umr), MEM_BAD_KEY);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, 1ull << PRM_MKEY_MASK_START_ADDR);
    ck_assert_int_eq(mkey_umr(&d.fw->hca, &umr), MEM_BAD_KEY);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, 1ull << PRM_MKEY_MASK_FREE);
    PRM_SET(mkc, change, free, 1);
    ck_assert_int_eq(get(umr.key, 0, &byte, 1), MEM_OK);
    ck_assert_int_eq(mkey_umr(&d.fw->hca, &umr), MEM_OK);
    ck_assert_int_eq(get(umr.key, 0, &byte, 1), MEM_BAD_KEY);
}
END_TEST

/* -- user contexts ----------------------------------------------------------------------------- */

/* The memory is the kernel's. A context that could name a place in it would reach the memory of
 * other processes. */
START_TEST(a_user_context_gets_none_of_the_kernels_memory)
{
    uint64_t addr = must_alloc(PAGE), op_addr;
    uint16_t uid = create_uctx();
    struct prm_mkc mkc[1];
    uint32_t key, user_pdn;

    ck_assert_int_eq(alloc_as(uid, START, MEMIC_BAR_SIZE, 64, 0, &op_addr), SYN_BAD_UID);
    ck_assert_int_eq(dealloc_as(uid, addr, PAGE), SYN_BAD_UID);
    ck_assert_int_eq(modify_as(uid, PRM_MODIFY_MEMIC_OP_ALLOC, addr, 0, &op_addr), SYN_BAD_UID);
    must_have_op(addr, 0);
    ck_assert_int_eq(modify_as(uid, PRM_MODIFY_MEMIC_OP_DEALLOC, addr, 0, &op_addr), SYN_BAD_UID);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, 0), SYN_OK);
    ck_assert_int_eq(pd_alloc(&d.fw->hca, uid, &user_pdn), SYN_OK);
    fill_mkc(mkc, addr, 64);
    PRM_SET(mkc, mkc, pd, user_pdn);
    ck_assert_int_eq(create_key(uid, mkc, &key), SYN_MKEY_PHYSICAL);
}
END_TEST

/* -- the windows ------------------------------------------------------------------------------- */

/* The BAR is big-endian (fw_mmio_read()): the first byte is the most significant one. */
START_TEST(a_cpu_sees_what_a_key_sees)
{
    uint64_t addr = must_alloc(64);
    uint32_t key = must_have_key(addr, 64);
    uint8_t byte[8];

    ck_assert_int_eq(put(key, 8, "\1\2\3\4\5\6\7\10", 8), MEM_OK);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 8, 8), 0x0102030405060708);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 12, 4), 0x05060708);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 10, 2), 0x0304);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 15, 1), 8);
    fw_mmio_write(d.fw, addr + 16, 0x1122334455667788, 8);
    fw_mmio_write(d.fw, addr + 20, 0xaabbccdd, 4);
    fw_mmio_write(d.fw, addr + 16, 0xeeff, 2);
    fw_mmio_write(d.fw, addr + 18, 0x99, 1);
    ck_assert_int_eq(get(key, 16, byte, 8), MEM_OK);
    ck_assert_mem_eq(byte, "\xee\xff\x99\x44\xaa\xbb\xcc\xdd", 8);
}
END_TEST

/* Test test_dm_atomic_ops of rdma-core: two increments, then two tests return 2 and 1. */
START_TEST(operations_are_done_on_the_memory)
{
    uint64_t addr = must_alloc(PAGE);
    uint32_t key = must_have_key(addr, 64);
    uint64_t inc = must_have_op(addr, PRM_MEMIC_OPERATION_INCREMENT);
    uint64_t tas = must_have_op(addr, PRM_MEMIC_OPERATION_TEST_AND_SET);
    uint64_t word;

    ck_assert(inc != tas && inc != addr && tas != addr);
    ck_assert_uint_eq(inc % PAGE, addr % PAGE);
    ck_assert_uint_eq(tas % PAGE, addr % PAGE);
    for (unsigned size = 1; size <= 8; size *= 2) {
        uint64_t one = 1ull << 8 * (size - 1); /* its first byte is 1 */

        ck_assert_uint_eq(fw_mmio_read(d.fw, tas + 8 * size, size), 0);
        ck_assert_uint_eq(fw_mmio_read(d.fw, tas + 8 * size, size), one);
        fw_mmio_write(d.fw, inc + 8 * size, one, size);
        fw_mmio_write(d.fw, inc + 8 * size, 3 * one, size);
        ck_assert_uint_eq(fw_mmio_read(d.fw, tas + 8 * size, size), 5 * one);
        ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 8 * size, size), one);
        ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 8 * size + size, size), 0);
    }
    ck_assert_int_eq(get(key, 8, &word, 8), MEM_OK);
    ck_assert_uint_eq(word, GUINT64_FROM_LE(1));
    /* an operation is in one direction only */
    ck_assert_uint_eq(fw_mmio_read(d.fw, inc + 8, 1), 0);
    fw_mmio_write(d.fw, tas + 8, 9, 1);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 8, 1), 1);
}
END_TEST

/* A sum of words that does not fit wraps around, and does not reach the next word. */
START_TEST(an_increment_stays_in_its_word)
{
    uint64_t addr = must_alloc(64);
    uint64_t inc = must_have_op(addr, PRM_MEMIC_OPERATION_INCREMENT);

    fw_mmio_write(d.fw, addr, 0xffff, 2);
    fw_mmio_write(d.fw, inc, 1, 1);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr, 2), 0x00ff);
}
END_TEST

START_TEST(operations_have_one_address)
{
    uint64_t addr = must_alloc(PAGE), op_addr;

    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, addr, MEMIC_OPS), SYN_MEMIC_OP);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, addr, 255), SYN_MEMIC_OP);
    ck_assert_int_eq(modify(2, addr, 0), SYN_BAD_OP_MOD);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, 0), SYN_MEMIC_OP_STATE);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, addr + 64, 0), SYN_NO_MEMIC);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, addr + PAGE, 0), SYN_NO_MEMIC);
    op_addr = must_have_op(addr, 0);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, addr, 0), SYN_MEMIC_OP_STATE);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, 1), SYN_MEMIC_OP_STATE);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, MEMIC_OPS), SYN_MEMIC_OP);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr + PAGE, 0), SYN_NO_MEMIC);
    fw_mmio_write(d.fw, op_addr, 1, 1);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, 0), SYN_OK);
    fw_mmio_write(d.fw, op_addr, 1, 1); /* the address is gone */
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr, 1), 1);
    /* the end of one operation is not that of the other */
    op_addr = must_have_op(addr, PRM_MEMIC_OPERATION_TEST_AND_SET);
    must_have_op(addr, PRM_MEMIC_OPERATION_INCREMENT);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_DEALLOC, addr, PRM_MEMIC_OPERATION_INCREMENT),
                     SYN_OK);
    ck_assert_uint_eq(fw_mmio_read(d.fw, op_addr, 1), 1);
}
END_TEST

/* Whatever a CPU does in the windows, it reaches only memory that is allocated. */
START_TEST(windows_answer_only_where_there_is_memory)
{
    uint64_t addr = must_alloc(64);
    uint64_t tas = must_have_op(addr, PRM_MEMIC_OPERATION_TEST_AND_SET);

    for (uint64_t at = MEMIC_BAR_START - PAGE; at <= MEMIC_BAR_END; at += PAGE / 4) {
        bool mine = at - at % PAGE == addr || at - at % PAGE == tas;

        fw_mmio_write(d.fw, at, 0x11, 1);
        if (!mine) {
            ck_assert_uint_eq(fw_mmio_read(d.fw, at, 1), 0);
        }
    }
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr, 1), 0x11);
    ck_assert_uint_eq(fw_mmio_read(d.fw, tas + 64, 1), 0); /* not aligned for its size: */
    ck_assert_uint_eq(fw_mmio_read(d.fw, tas + 66, 8), 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 65, 8), 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 64, 1), 1);
}
END_TEST

/* -- life of the function ---------------------------------------------------------------------- */

START_TEST(a_reset_leaves_nothing)
{
    uint64_t addr = must_alloc(PAGE);

    must_have_key(addr, PAGE);
    must_have_op(addr, PRM_MEMIC_OPERATION_INCREMENT);
    fw_mmio_write(d.fw, addr, 0x77, 1);
    fw_reset(d.fw);
    while (fw_run(d.fw, 1000)) {
    }
    ck_assert_uint_eq(d.fw->hca.memics.count, 0);
    ck_assert_ptr_null(d.fw->hca.device_memory);
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr, 1), 0);
    fw_mmio_write(d.fw, addr, 0x77, 1);
}
END_TEST

/* UAR pages end where the windows begin, however many are allocated. */
START_TEST(no_uar_page_is_in_the_windows)
{
    struct hca *hca = &d.fw->hca;
    uint32_t uarn, most = 0, n = 0;

    for (; uar_alloc(hca, 0, &uarn) == SYN_OK; n++) {
        most = MAX(most, uarn);
    }
    ck_assert_uint_lt(n, 8192);
    ck_assert_uint_eq(most + 1, MEMIC_BAR_START / 4096);
}
END_TEST

/* fw/profile.c: device memory came with ConnectX-5. */
START_TEST(an_older_card_has_no_device_memory)
{
    struct prm_mkc mkc[1];
    uint8_t cap[4096];
    uint32_t key;

    fwd_clear(&d);
    fwd_init_as(&d, "cx4");
    fwd_bring_up(&d);
    ck_assert_int_eq(pd_alloc(&d.fw->hca, 0, &pdn), SYN_OK);
    ck_assert_int_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_DEV_MEM, true, cap), SYN_NO_CAP_SECTION);
    ck_assert_int_eq(alloc(START, PAGE, 64), SYN_BAD_OPCODE);
    ck_assert_int_eq(dealloc(START, 64), SYN_BAD_OPCODE);
    ck_assert_int_eq(modify(PRM_MODIFY_MEMIC_OP_ALLOC, START, 0), SYN_BAD_OPCODE);
    fill_mkc(mkc, START, 64);
    ck_assert_int_eq(create_key(0, mkc, &key), SYN_MKEY_DEVICE);
    fw_mmio_write(d.fw, START, 1, 1);
    ck_assert_uint_eq(fw_mmio_read(d.fw, START, 1), 0);
}
END_TEST

/* As a QEMU does it: the owner maps the memory into the guest. */
START_TEST(the_owner_may_have_the_memory)
{
    struct hca *hca = &d.fw->hca;
    uint64_t used = hca->memory.used, addr;
    uint32_t key;

    memset(owners, 0xcc, sizeof(owners));
    memic_init(hca, owners);
    addr = must_alloc(64);
    ck_assert_uint_lt(hca->memory.used - used, MEMIC_BAR_SIZE);
    key = must_have_key(addr, 64);
    ck_assert_uint_eq(owners[addr - START], 0);
    owners[addr - START + 3] = 0x5a;
    ck_assert_uint_eq(fw_mmio_read(d.fw, addr + 3, 1), 0x5a);
    ck_assert_int_eq(put(key, 1, "abc", 3), MEM_OK);
    ck_assert_mem_eq(owners + (addr - START) + 1, "abc", 3);
    ck_assert_uint_eq(owners[PAGE], 0xcc); /* the next page is nobody's */
    destroy_key(key);
    ck_assert_int_eq(dealloc(addr, 64), SYN_OK);
    ck_assert_ptr_eq(hca->device_memory, owners);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("memic");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, memory_lies_in_the_range_that_the_driver_names);
    tcase_add_test(tc, memory_is_aligned);
    tcase_add_test(tc, bad_ranges_and_sizes_are_refused);
    tcase_add_test(tc, only_an_allocation_as_a_whole_is_freed);
    tcase_add_test(tc, the_ledger_pays_for_the_memory);
    tcase_add_test(tc, memory_stays_while_it_is_allocated);
    tcase_add_test(tc, new_memory_is_zero);
    tcase_add_test(tc, a_key_reaches_its_part_of_the_memory);
    tcase_add_test(tc, atomics_work_on_device_memory);
    tcase_add_test(tc, an_indirect_key_names_keys_of_device_memory);
    tcase_add_test(tc, a_key_lies_in_one_allocation);
    tcase_add_test(tc, memory_with_keys_or_operations_is_in_use);
    tcase_add_test(tc, a_umr_does_not_move_a_key_of_device_memory);
    tcase_add_test(tc, a_user_context_gets_none_of_the_kernels_memory);
    tcase_add_test(tc, a_cpu_sees_what_a_key_sees);
    tcase_add_test(tc, operations_are_done_on_the_memory);
    tcase_add_test(tc, an_increment_stays_in_its_word);
    tcase_add_test(tc, operations_have_one_address);
    tcase_add_test(tc, windows_answer_only_where_there_is_memory);
    tcase_add_test(tc, a_reset_leaves_nothing);
    tcase_add_test(tc, no_uar_page_is_in_the_windows);
    tcase_add_test(tc, an_older_card_has_no_device_memory);
    tcase_add_test(tc, the_owner_may_have_the_memory);
    suite_add_tcase(s, tc);
    return s;
}
