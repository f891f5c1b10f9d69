/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the command queue: which commands are executed, and which are refused with which delivery
 * status.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/test_fw_driver.h"
#include "tests/unit/suite.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* Commands with mailboxes: QUERY_HCA_CAP is 16 bytes in and 0x1010 out, SET_HCA_CAP the other way
 * round. */
static void prepare_long_input(void)
{
    static struct prm_set_hca_cap_in in[1];

    memset(in, 0, sizeof(in));
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    fwd_prepare(&d, in, sizeof(in), 16);
}

static void prepare_long_output(void)
{
    struct prm_query_hca_cap_in in[1] = {0};

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, 1);
    fwd_prepare(&d, in, sizeof(in), PRM_SIZE(query_hca_cap_out));
}

static void prepare_short(void)
{
    struct prm_cmd_in in[2] = {0};

    PRM_SET(cmd_in, in, opcode, PRM_CMD_OP_QUERY_ISSI);
    fwd_prepare(&d, in, sizeof(in), PRM_SIZE(query_issi_out));
}

static uint8_t xor8(const void *p, size_t len)
{
    const uint8_t *byte = p;
    uint8_t sum = 0;

    while (len--) {
        sum ^= *byte++;
    }
    return sum;
}

/* Signs entry and input mailboxes: the XOR of all bytes is 0xff. */
static void sign(void)
{
    struct prm_cmd_queue_entry *e = fwd_entry(&d);

    for (unsigned i = 0; i < d.in_boxes; i++) {
        struct prm_cmd_if_box *box = fwd_in_box(&d, i);

        PRM_SET(cmd_if_box, box, ctrl_signature, (uint8_t)~xor8(box->bytes + 512, 0x240 - 512));
        PRM_SET(cmd_if_box, box, signature, (uint8_t)~xor8(box, 0x240));
    }
    PRM_SET(cmd_queue_entry, e, signature, (uint8_t)~xor8(e, 64));
}

static uint64_t bus_of(const void *ptr)
{
    return FAKE_HOST_BASE + (uint64_t)((const uint8_t *)ptr - d.host.ram);
}

/* Driver mlx5_cmd_enable(): interface revision 5; at most 32 entries that fit in a 4 KiB page. */
START_TEST(interface_is_what_the_driver_takes)
{
    uint64_t low = fw_mmio_read(d.fw, 0x14, 4);

    ck_assert_uint_eq(fw_mmio_read(d.fw, 4, 4) >> 16, 5);
    ck_assert_uint_eq(1u << (low >> 4 & 0xf), 32);
    ck_assert_uint_le((low >> 4 & 0xf) + (low & 0xf), 12);
    ck_assert_uint_eq(low & ~0xfffull, d.drv->cmdq.bus & 0xfffff000);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1fc, 4) >> 31, 0);
}
END_TEST

START_TEST(inline_command_completes)
{
    struct prm_query_issi_out out[1];

    prepare_short();
    ck_assert_int_eq(fwd_ring(&d), 0);
    fwd_output(&d, out, sizeof(out));
    ck_assert_uint_eq(PRM_GET(query_issi_out, out, status), 0);
    /* bit 1: the revision that the driver wants */
    ck_assert_uint_eq(PRM_GET(query_issi_out, out, supported_issi_dw0) & 2, 2);
}
END_TEST

/* Driver verify_signature(): the XOR of the entry and of every output mailbox is 0xff. */
START_TEST(outputs_are_signed)
{
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    prepare_long_output();
    ck_assert_int_eq(fwd_ring(&d), 0);
    ck_assert_uint_eq(xor8(fwd_entry(&d), 64), 0xff);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(xor8(fwd_out_box(&d, i), 0x240), 0xff);
        ck_assert_uint_eq(xor8(fwd_out_box(&d, i)->bytes + 512, 0x240 - 512 - 1), 0xff);
    }
}
END_TEST

START_TEST(unknown_opcode_is_bad_op)
{
    ck_assert_uint_eq(fwd_simple(&d, 0xfff, 0), SYN_BAD_OPCODE);
    ck_assert_uint_ne(d.drv->syndrome, 0);
    ck_assert_uint_gt(d.host.guest_errors, 0);
}
END_TEST

START_TEST(truncated_input_is_bad_length)
{
    struct prm_cmd_in in[1] = {0};
    uint8_t out[16];

    PRM_SET(cmd_in, in, opcode, PRM_CMD_OP_ENABLE_HCA);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_IN_LEN);
}
END_TEST

START_TEST(short_output_is_bad_length)
{
    struct prm_cmd_in in[2] = {0};
    uint8_t out[16];

    PRM_SET(cmd_in, in, opcode, PRM_CMD_OP_QUERY_ISSI);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 8), SYN_OUT_LEN);
}
END_TEST

/* One deviation from a correct entry, and the delivery status that it must have. */
enum bend {
    BEND_TYPE,
    BEND_IN_LEN_SHORT,
    BEND_IN_LEN_HUGE,
    BEND_OUT_LEN_SHORT,
    BEND_OUT_LEN_HUGE,
    BEND_RESERVED,
    BEND_SIGNATURE,
    BEND_IN_TOKEN,
    BEND_IN_BLOCK,
    BEND_IN_LOOP,
    BEND_IN_END,
    BEND_IN_ALIGN,
    BEND_IN_NEXT_ALIGN,
    BEND_IN_DMA,
    BEND_IN_BOX_SIGNATURE,
    BEND_IN_CTRL_SIGNATURE,
    BEND_OUT_TOKEN,
    BEND_OUT_BLOCK,
    BEND_OUT_LOOP,
    BEND_OUT_END,
    BEND_OUT_ALIGN,
    BEND_OUT_DMA,
    BEND_COUNT
};

static const uint8_t expected[BEND_COUNT] = {
    [BEND_TYPE] = PRM_CMD_DELIVERY_STATUS_BAD_CMD_TYPE,
    [BEND_IN_LEN_SHORT] = PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR,
    [BEND_IN_LEN_HUGE] = PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR,
    [BEND_OUT_LEN_SHORT] = PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR,
    [BEND_OUT_LEN_HUGE] = PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR,
    [BEND_RESERVED] = PRM_CMD_DELIVERY_STATUS_RESERVED_NOT_ZERO,
    [BEND_SIGNATURE] = PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR,
    [BEND_IN_TOKEN] = PRM_CMD_DELIVERY_STATUS_TOKEN_ERR,
    [BEND_IN_BLOCK] = PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER,
    [BEND_IN_LOOP] = PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER,
    [BEND_IN_END] = PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR,
    [BEND_IN_ALIGN] = PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER,
    [BEND_IN_NEXT_ALIGN] = PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER,
    [BEND_IN_DMA] = PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR,
    [BEND_IN_BOX_SIGNATURE] = PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR,
    [BEND_IN_CTRL_SIGNATURE] = PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR,
    [BEND_OUT_TOKEN] = PRM_CMD_DELIVERY_STATUS_TOKEN_ERR,
    [BEND_OUT_BLOCK] = PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER,
    [BEND_OUT_LOOP] = PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER,
    [BEND_OUT_END] = PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR,
    [BEND_OUT_ALIGN] = PRM_CMD_DELIVERY_STATUS_BAD_OUTPUT_POINTER,
    [BEND_OUT_DMA] = PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR,
};

static void set_next(struct prm_cmd_if_box *box, uint64_t addr)
{
    PRM_SET(cmd_if_box, box, next_pointer_63_32, addr >> 32);
    PRM_SET(cmd_if_box, box, next_pointer_31_10, (addr & 0xffffffff) >> 10);
}

static void bend(int how)
{
    struct prm_cmd_queue_entry *e = fwd_entry(&d);
    struct prm_cmd_if_box *in = fwd_in_box(&d, 3), *out = fwd_out_box(&d, 3);

    switch (how) {
    case BEND_TYPE:
        PRM_SET(cmd_queue_entry, e, type, 6);
        break;
    case BEND_IN_LEN_SHORT:
        PRM_SET(cmd_queue_entry, e, input_length, 7);
        break;
    case BEND_IN_LEN_HUGE:
        PRM_SET(cmd_queue_entry, e, input_length, 0xffffffff);
        break;
    case BEND_OUT_LEN_SHORT:
        PRM_SET(cmd_queue_entry, e, output_length, 7);
        break;
    case BEND_OUT_LEN_HUGE:
        PRM_SET(cmd_queue_entry, e, output_length, 0xffffffff);
        break;
    case BEND_RESERVED:
        e->bytes[2] = 1;
        break;
    case BEND_SIGNATURE:
        PRM_SET(cmd_queue_entry, e, signature, (uint8_t)~xor8(e, 64) ^ 0x10);
        break;
    case BEND_IN_TOKEN:
        PRM_SET(cmd_if_box, in, token, d.drv->token ^ 1);
        break;
    case BEND_IN_BLOCK:
        PRM_SET(cmd_if_box, in, block_number, 4);
        break;
    case BEND_IN_LOOP:
        set_next(in, bus_of(fwd_in_box(&d, 0)));
        break;
    case BEND_IN_END:
        set_next(in, 0);
        break;
    case BEND_IN_ALIGN:
        e->bytes[0xf] = 0x40;
        break;
    case BEND_IN_NEXT_ALIGN:
        in->bytes[0x237] = 0x40;
        break;
    case BEND_IN_DMA:
        set_next(in, 0x1000);
        break;
    case BEND_IN_BOX_SIGNATURE:
        in->bytes[5] ^= 1;
        PRM_SET(cmd_if_box, in, signature, (uint8_t)~xor8(in, 0x240) ^ 1);
        break;
    case BEND_IN_CTRL_SIGNATURE:
        PRM_SET(cmd_if_box, in, ctrl_signature, 0x77);
        break;
    case BEND_OUT_TOKEN:
        PRM_SET(cmd_if_box, out, token, d.drv->token ^ 1);
        break;
    case BEND_OUT_BLOCK:
        PRM_SET(cmd_if_box, out, block_number, 4);
        break;
    case BEND_OUT_LOOP:
        set_next(out, bus_of(fwd_out_box(&d, 0)));
        break;
    case BEND_OUT_END:
        set_next(out, 0);
        break;
    case BEND_OUT_ALIGN:
        e->bytes[0x37] = 0x40;
        break;
    case BEND_OUT_DMA:
        set_next(out, 0x1000);
        break;
    default:
        ck_abort();
    }
}

/* A hostile entry or chain ends with its status; the next command is executed normally. */
START_TEST(broken_delivery_is_refused)
{
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    if (_i >= BEND_OUT_TOKEN) {
        prepare_long_output();
    } else {
        prepare_long_input();
    }
    bend(_i);
    ck_assert_int_eq(fwd_ring(&d), expected[_i]);
    ck_assert_uint_gt(d.host.guest_errors, 0);

    prepare_short();
    ck_assert_int_eq(fwd_ring(&d), 0);
}
END_TEST

/* A broken output chain must be detected before the command takes effect. */
START_TEST(broken_output_chain_has_no_effect)
{
    struct prm_cmd_in in[2] = {0};

    PRM_SET(cmd_in, in, opcode, PRM_CMD_OP_ENABLE_HCA);
    fwd_prepare(&d, in, sizeof(in), 2048);
    set_next(fwd_out_box(&d, 1), 0x1000);
    ck_assert_int_ne(fwd_ring(&d), 0);
    /* QUERY_ADAPTER is legal only after ENABLE_HCA */
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), SYN_SYS_STATE);
}
END_TEST

/* Entry and mailboxes signed as the driver does are taken in every checksum mode. */
START_TEST(good_signatures_pass)
{
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    prepare_long_input();
    sign();
    ck_assert_int_eq(fwd_ring(&d), 0);
}
END_TEST

/* cmdif_checksum 3 (enabled): an unsigned entry is an error; 0 (disabled): a wrong one is not. */
START_TEST(checksum_mode_is_obeyed)
{
    static struct prm_set_hca_cap_in in[1];
    void *cap = PRM_PTR(set_hca_cap_in, in, capability);
    uint8_t out[16];
    static const uint8_t modes[] = {3, 0};

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, 0, false, cap), 0);
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    PRM_SET(cmd_hca_cap, cap, cmdif_checksum, modes[_i]);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), 0);

    prepare_short();
    if (modes[_i] == 0) {
        PRM_SET(cmd_queue_entry, fwd_entry(&d), signature, 0x33);
        ck_assert_int_eq(fwd_ring(&d), 0);
    } else {
        ck_assert_int_eq(fwd_ring(&d), PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR);
        prepare_short();
        sign();
        ck_assert_int_eq(fwd_ring(&d), 0);
    }
}
END_TEST

START_TEST(entry_of_software_is_left_alone)
{
    prepare_short();
    PRM_SET(cmd_queue_entry, fwd_entry(&d), ownership, 0);
    PRM_SET(cmd_queue_entry, fwd_entry(&d), status, 0x55);
    ck_assert_int_eq(fwd_ring(&d), 0x55);
    ck_assert_uint_gt(d.host.guest_errors, 0);
}
END_TEST

START_TEST(doorbell_without_queue_is_harmless)
{
    fw_mmio_write(d.fw, 0x10, 0xffff, 4);
    fw_mmio_write(d.fw, 0x18, 0xffffffff, 4);
    while (fw_run(d.fw, 4)) {
    }
    ck_assert_uint_ge(d.host.guest_errors, 32);
}
END_TEST

/* Many doorbells at once: every entry is served, in any order. */
START_TEST(all_entries_are_served)
{
    struct prm_cmd_queue_entry *e;

    prepare_short();
    for (unsigned i = 1; i < 32; i++) {
        memcpy(fake_host_ptr(&d.host, d.drv->cmdq.bus + i * 64, 64), fwd_entry(&d), 64);
    }
    /* they share one output chain, which every one of them signs anew */
    fw_mmio_write(d.fw, 0x18, 0xffffffff, 4);
    while (fw_run(d.fw, 3)) {
    }
    for (unsigned i = 0; i < 32; i++) {
        e = fake_host_ptr(&d.host, d.drv->cmdq.bus + i * 64, 64);
        ck_assert_uint_eq(PRM_GET(cmd_queue_entry, e, ownership), 0);
        ck_assert_uint_eq(PRM_GET(cmd_queue_entry, e, status), 0);
    }
}
END_TEST

/* Entry 0 is posted again whenever it is done, and turns are short. The other entries are served
 * anyway: Linux puts the pages that the device asks for into the last one. */
START_TEST(a_busy_lowest_entry_does_not_starve_the_others)
{
    struct prm_cmd_queue_entry *first, *last;
    struct prm_cmd_queue_entry again[1];
    unsigned served = 0;

    prepare_short();
    first = fwd_entry(&d);
    last = fake_host_ptr(&d.host, d.drv->cmdq.bus + 31 * 64, 64);
    memcpy(again, first, 64);
    memcpy(last, first, 64);
    fw_mmio_write(d.fw, 0x18, 1u | 1u << 31, 4);
    for (unsigned turns = 0; PRM_GET(cmd_queue_entry, last, ownership); turns++) {
        ck_assert_msg(turns < 1000, "%u of entry 0, none of entry 31", served);
        fw_run(d.fw, 1);
        if (!PRM_GET(cmd_queue_entry, first, ownership)) {
            memcpy(first, again, 64);
            fw_mmio_write(d.fw, 0x18, 1, 4);
            served++;
        }
    }
    ck_assert_uint_le(served, 1);
    while (fw_run(d.fw, 64)) {
    }
}
END_TEST

/* Health: the counter must move with time, the syndrome stays 0 (driver health.c). */
START_TEST(health_counter_moves)
{
    uint64_t before = fw_mmio_read(d.fw, 0x1010, 4);

    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1010, 4), before);
    d.host.now += 1000000000;
    ck_assert_uint_ne(fw_mmio_read(d.fw, 0x1010, 4), before);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x23d, 1), 0);          /* health.synd */
    ck_assert_uint_ne(fw_mmio_read(d.fw, 0x230, 4), 0xffffffff); /* health.fw_ver */
}
END_TEST

/* The free-running timer is 64 bits of nanoseconds in two registers. */
START_TEST(timer_runs)
{
    d.host.now = 0x123456789abull;
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1000, 4), 0x123);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1004, 4), 0x456789ab);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1000, 8), 0x123456789abull);
}
END_TEST

START_TEST(mmio_outside_registers_is_harmless)
{
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x300, 4), 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x100000, 4), 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x1ffffff, 1), 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x13, 2), 0);
    fw_mmio_write(d.fw, 0x300, 1, 4);
    fw_mmio_write(d.fw, 0x11, 1, 1);
    fw_mmio_write(d.fw, 0x8000, 1, 8);
    fw_mmio_write(d.fw, 0x1fffff8, ~0ull, 8);
    ck_assert_uint_ge(d.host.guest_errors, 6);
}
END_TEST

/* The driver polls for CREATE_EQ itself: there is no event of it, but of the next command. */
START_TEST(completions_are_events_from_the_command_after_create_eq_on)
{
    uint8_t in_bytes[PRM_SIZE(create_eq_in) + 8] = {0}, out_bytes[16];
    void *in = in_bytes, *out = out_bytes;
    struct prm_alloc_uar_in uar_in[1] = {0};
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    uint64_t pa = fake_host_alloc(&d.host, 4096, 4096);
    const struct prm_eqe *ring = fake_host_ptr(&d.host, pa, 4096);

    fwd_bring_up(&d);
    memset((void *)ring, 0xff, 4096);
    PRM_SET(alloc_uar_in, uar_in, opcode, PRM_CMD_OP_ALLOC_UAR);
    ck_assert_uint_eq(fwd_cmd(&d, uar_in, 16, out, 16), 0);
    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, PRM_GET(alloc_uar_out, out, uar));
    PRM_SET_AT(create_eq_in, in, event_bitmask, 0, 1ull << PRM_EVENT_TYPE_CMD);
    PRM_SET_AT(create_eq_in, in, pas, 0, pa);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    ck_assert_uint_eq(PRM_GET(eqe, ring, owner), 1); /* not written */
    ck_assert_uint_eq(fwd_cmd(&d, uar_in, 16, out, 16), 0);
    ck_assert_uint_eq(PRM_GET(eqe, ring, owner), 0);
    ck_assert_uint_eq(PRM_GET(eqe, ring, event_type), PRM_EVENT_TYPE_CMD);
    ck_assert_uint_ne(
        PRM_GET(cmd_inter_comp_event, PRM_PTR(eqe, ring, event_data), command_completion_vector),
        0);
    ck_assert_uint_eq(PRM_GET(eqe, ring + 1, owner), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw-cmdq");
    TCase *tc = tcase_create("cmdq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, interface_is_what_the_driver_takes);
    tcase_add_test(tc, inline_command_completes);
    tcase_add_test(tc, outputs_are_signed);
    tcase_add_test(tc, unknown_opcode_is_bad_op);
    tcase_add_test(tc, truncated_input_is_bad_length);
    tcase_add_test(tc, short_output_is_bad_length);
    tcase_add_loop_test(tc, broken_delivery_is_refused, 0, BEND_COUNT);
    tcase_add_test(tc, broken_output_chain_has_no_effect);
    tcase_add_test(tc, good_signatures_pass);
    tcase_add_loop_test(tc, checksum_mode_is_obeyed, 0, 2);
    tcase_add_test(tc, entry_of_software_is_left_alone);
    tcase_add_test(tc, doorbell_without_queue_is_harmless);
    tcase_add_test(tc, all_entries_are_served);
    tcase_add_test(tc, a_busy_lowest_entry_does_not_starve_the_others);
    tcase_add_test(tc, health_counter_moves);
    tcase_add_test(tc, timer_runs);
    tcase_add_test(tc, mmio_outside_registers_is_harmless);
    tcase_add_test(tc, completions_are_events_from_the_command_after_create_eq_on);
    suite_add_tcase(s, tc);
    return s;
}
