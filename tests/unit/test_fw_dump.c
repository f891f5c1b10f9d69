/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests RESOURCE_DUMP as the driver uses it (diag/rsc_dump.c): it reads the menu, finds a kind of
 * dump by its name, and reads objects in parts of any length, in memory or in the register itself.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/memory/mkey.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;
static struct prm_resource_dump reg[1];
static uint8_t dump[4096]; /* what dump_all() got */

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static void ask(uint32_t type, uint32_t index)
{
    memset(reg, 0, sizeof(reg));
    PRM_SET(resource_dump, reg, segment_type, type);
    PRM_SET(resource_dump, reg, index1, index);
    PRM_SET(resource_dump, reg, inline_dump, 1);
}

/* Reads a whole dump in the register. Returns its length. */
static size_t dump_all(uint32_t type, uint32_t index)
{
    size_t len = 0;
    unsigned parts = 0;

    ask(type, index);
    do {
        size_t size;

        ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_OK);
        size = PRM_GET(resource_dump, reg, size);
        ck_assert_uint_eq(PRM_GET(resource_dump, reg, seq_num), ++parts);
        ck_assert_uint_le(size, 52 * 4);
        memcpy(dump + len, PRM_PTR(resource_dump, reg, inline_data), size);
        len += size;
    } while (PRM_GET(resource_dump, reg, more_dump));
    return len;
}

/* The segment of that type in a dump, or NULL. Segments follow each other up to the last one. */
static void *find(size_t len, uint32_t type)
{
    void *found = NULL;
    uint32_t last = 0;

    for (size_t at = 0; at < len;) {
        void *segment = dump + at;

        last = PRM_GET(resource_dump_segment_header, segment, segment_type);
        found = last == type ? segment : found;
        ck_assert_uint_gt(PRM_GET(resource_dump_segment_header, segment, length_dw), 0);
        at += 4 * PRM_GET(resource_dump_segment_header, segment, length_dw);
        ck_assert_uint_le(at, len);
    }
    ck_assert_uint_eq(last, PRM_DUMP_SEGMENT_TERMINATE);
    return found;
}

/* Driver mlx5_rsc_dump_read_menu_sgmt(): the menu stands behind the first two segments, and names
 * are those of mlx5_rsc_sgmt_name. */
static uint32_t type_of(const char *name)
{
    size_t len = dump_all(PRM_DUMP_SEGMENT_MENU, 0);
    void *menu =
        dump + PRM_SIZE(resource_dump_info_segment) + PRM_SIZE(resource_dump_command_segment);

    ck_assert_ptr_eq(find(len, PRM_DUMP_SEGMENT_MENU), menu);
    for (uint32_t i = 0; i < PRM_GET(resource_dump_menu_segment, menu, num_of_records); i++) {
        const struct prm_resource_dump_menu_record *record =
            PRM_PTR_AT(resource_dump_menu_segment, menu, record, i);

        if (strcmp((const char *)PRM_PTR(resource_dump_menu_record, record, segment_name), name) ==
            0) {
            ck_assert_uint_eq(PRM_GET(resource_dump_menu_record, record, support_index1), 1);
            return PRM_GET(resource_dump_menu_record, record, segment_type);
        }
    }
    return 0;
}

START_TEST(the_menu_names_the_kinds_of_dumps)
{
    static const char *const names[] = {"FULL_QPC",     "FULL_CQC",     "FULL_EQC",
                                        "PRM_QUERY_QP", "PRM_QUERY_CQ", "PRM_QUERY_MKEY"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        ck_assert_uint_ne(type_of(names[i]), 0);
    }
    ck_assert_uint_eq(type_of("SX_SLICE_ALL"), 0);
}
END_TEST

/* A PA key of all memory, as the driver makes it (mlx5_rsc_dump_create_mkey()). */
static uint32_t make_key(bool may_write)
{
    struct prm_alloc_pd_in pd_in[1] = {0};
    struct prm_alloc_pd_out pd_out[1] = {0};
    struct prm_create_mkey_in in[1] = {0};
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(alloc_pd_in, pd_in, opcode, PRM_CMD_OP_ALLOC_PD);
    ck_assert_uint_eq(fwd_cmd(&d, pd_in, sizeof(pd_in), pd_out, sizeof(pd_out)), SYN_OK);
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(mkc, mkc, lw, may_write);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, pd, PRM_GET(alloc_pd_out, pd_out, pd));
    PRM_SET(mkc, mkc, length64, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    return PRM_GET(create_mkey_out, out, mkey_index) << 8;
}

/* rdma resource show mr -dd: PRM_QUERY_MKEY by the index of the key. */
START_TEST(a_dump_is_what_the_query_command_says)
{
    uint32_t key = make_key(true);
    size_t len = dump_all(type_of("PRM_QUERY_MKEY"), key >> 8);
    const uint8_t *segment = find(len, PRM_DUMP_SEGMENT_PRM_QUERY_MKEY);
    struct prm_query_mkey_in in[1] = {0};
    struct prm_query_mkey_out out[1] = {0};

    PRM_SET(query_mkey_in, in, opcode, PRM_CMD_OP_QUERY_MKEY);
    PRM_SET(query_mkey_in, in, mkey_index, key >> 8);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    ck_assert_ptr_nonnull(segment);
    ck_assert_uint_eq(PRM_GET(resource_dump_resource_segment, (const void *)segment, index1),
                      key >> 8);
    ck_assert_mem_eq(PRM_PTR(query_mkey_out,
                             (const void *)(segment + PRM_SIZE(resource_dump_resource_segment)),
                             memory_key_mkey_entry),
                     PRM_PTR(query_mkey_out, out, memory_key_mkey_entry), PRM_SIZE(mkc));
}
END_TEST

/* Driver mlx5_rsc_dump_next(): the same dump, in memory, in parts of any multiple of 4 bytes. */
START_TEST(parts_in_memory_are_the_same_dump)
{
    static uint8_t whole[sizeof(dump)];
    uint32_t key = make_key(true);
    size_t len = dump_all(PRM_DUMP_SEGMENT_MENU, 0);
    uint64_t addr = fake_host_alloc(&d.host, 4096, 4096);
    uint8_t *memory = fake_host_ptr(&d.host, addr, 4096);

    memcpy(whole, dump, len);
    for (uint32_t size = 4; size <= 4096; size *= 2) {
        size_t at = 0;
        unsigned seq = 0;

        ask(PRM_DUMP_SEGMENT_MENU, 0);
        PRM_SET(resource_dump, reg, inline_dump, 0);
        PRM_SET(resource_dump, reg, mkey, key);
        PRM_SET(resource_dump, reg, address, addr);
        do {
            memset(memory, 0xee, 4096);
            PRM_SET(resource_dump, reg, size, size);
            ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_OK);
            ck_assert_uint_eq(PRM_GET(resource_dump, reg, seq_num), ++seq % 16);
            ck_assert_uint_le(PRM_GET(resource_dump, reg, size), size);
            ck_assert_mem_eq(memory, whole + at, PRM_GET(resource_dump, reg, size));
            at += PRM_GET(resource_dump, reg, size);
            ck_assert_uint_eq(memory[PRM_GET(resource_dump, reg, size) % 4096],
                              PRM_GET(resource_dump, reg, size) == 4096 ? memory[0] : 0xee);
        } while (PRM_GET(resource_dump, reg, more_dump));
        ck_assert_uint_eq(at, len);
    }
}
END_TEST

/* An object that is not there: an error segment in the place of its dump. */
START_TEST(an_object_that_is_not_there_has_an_error)
{
    size_t len = dump_all(type_of("FULL_CQC"), 0xabcdef);
    void *error = find(len, PRM_DUMP_SEGMENT_ERROR);
    const uint8_t *text;

    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_null(find(len, PRM_DUMP_SEGMENT_FULL_CQC));
    ck_assert_uint_ne(PRM_GET(resource_dump_error_segment, error, syndrome_id), 0);
    text = PRM_PTR(resource_dump_error_segment, error, error);
    ck_assert_uint_ne(text[0], 0);
    ck_assert_uint_eq(text[31], 0);
}
END_TEST

/* A request for the menu, to be written to memory. */
static void ask_to_memory(uint32_t size, uint64_t addr, uint32_t key)
{
    ask(PRM_DUMP_SEGMENT_MENU, 0);
    PRM_SET(resource_dump, reg, inline_dump, 0);
    PRM_SET(resource_dump, reg, size, size);
    PRM_SET(resource_dump, reg, address, addr);
    PRM_SET(resource_dump, reg, mkey, key);
}

/* A refused request leaves nothing in the register, so each one is made anew. */
START_TEST(requests_that_are_not_legal_are_refused)
{
    uint64_t addr = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t key = make_key(true);

    ask(0x1fff, 0); /* no such kind */
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask(PRM_DUMP_SEGMENT_FULL_CQC, 0);
    PRM_SET(resource_dump, reg, num_of_obj1, 2);
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask(PRM_DUMP_SEGMENT_MENU, 0);
    PRM_SET(resource_dump, reg, vhca_id, 1);
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask(PRM_DUMP_SEGMENT_MENU, 0);
    PRM_SET(resource_dump, reg, device_opaque, 100000); /* behind the end */
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask(PRM_DUMP_SEGMENT_MENU, 0);
    PRM_SET(resource_dump, reg, device_opaque, 2); /* within a dword */
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask_to_memory(3, addr, key);
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask_to_memory(4096, addr, make_key(false)); /* memory that may not be written */
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_REG_VALUE);
    ask_to_memory(4096, addr, 0xabcdef00); /* no key */
    ck_assert_uint_ne(WRITE(RESOURCE_DUMP, reg), SYN_OK);
    ask_to_memory(4096, addr, key);
    ck_assert_uint_eq(WRITE(RESOURCE_DUMP, reg), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw dump");
    TCase *tc = tcase_create("dump");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_menu_names_the_kinds_of_dumps);
    tcase_add_test(tc, a_dump_is_what_the_query_command_says);
    tcase_add_test(tc, parts_in_memory_are_the_same_dump);
    tcase_add_test(tc, an_object_that_is_not_there_has_an_error);
    tcase_add_test(tc, requests_that_are_not_legal_are_refused);
    suite_add_tcase(s, tc);
    return s;
}
