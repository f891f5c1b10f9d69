/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a guest that sends arbitrary commands: every command of the table, truncated, overlong, in
 * the wrong state, with numbers that name nothing or an object in use, and with noise. Each command
 * gets a status; the device continues to work, and after a reset it works like a new device.
 */
#include <check.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "tests/sim/examples.h"
#include "tests/unit/suite.h"

#define OVERLONG (1u << 20)
#define IN_MAX   8192

static struct two_hcas *t;
static struct node *a;
static int rows;

static void setup(void)
{
    t = two_hcas_new(NULL);
    a = &t->a;
}

static void teardown(void)
{
    node_revive(a);
    two_hcas_free(t);
}

/* Executes one command unchanged; it must come back. */
static int attempt(const void *in, size_t in_len, size_t out_len)
{
    g_autofree uint8_t *out = g_malloc0(MAX(out_len, 16));
    int status = drv_cmd(a->drv, in, in_len, out, out_len);

    ck_assert_msg(status != DRV_TIMEOUT, "command 0x%x hangs",
                  in_len >= 2 ? (unsigned)prm_load16(in) : 0);
    return status;
}

/* -- lengths ------------------------------------------------------------------------------------
 */

/* A command shorter than the layout is refused before anything is read. */
START_TEST(truncated_command)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX] = {0};

    ck_assert_uint_lt(row->command->in_least, IN_MAX);
    prm_store16(in, row->command->opcode);
    if (!(row->states & CMD_READY)) {
        return;
    }
    for (size_t len = 0; len < row->command->in_least; len++) {
        int status = attempt(in, len, row->command->out_least);

        ck_assert_int_eq(status, len < 8 ? DRV_UNDELIVERED : PRM_CMD_STATUS_BAD_INP_LEN);
    }
    for (size_t len = 0; len < row->command->out_least; len++) {
        int status = attempt(in, row->command->in_least, len);

        ck_assert_int_eq(status, len < 8 ? DRV_UNDELIVERED : PRM_CMD_STATUS_BAD_OUTP_LEN);
    }
}
END_TEST

/* A command longer than any layout, with zeros, ones or noise, gets some status. */
START_TEST(overlong_command)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    g_autofree uint8_t *in = g_malloc0(OVERLONG);

    prm_store16(in, row->command->opcode);
    attempt(in, row->command->in_least + 4, row->command->out_least + 4);
    attempt(in, OVERLONG, OVERLONG);
    memset(in + 4, 0xff, OVERLONG - 4);
    attempt(in, OVERLONG, OVERLONG);
    fill(in + 4, OVERLONG - 4, 7);
    attempt(in, OVERLONG, OVERLONG);
}
END_TEST

/* -- contents -----------------------------------------------------------------------------------
 */

/* Every field has its largest value: numbers of nothing, endless lists, reserved bits. */
START_TEST(all_ones)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX];

    for (size_t len = row->command->in_least; len < row->command->in_least + 64u; len += 8) {
        for (int op_mod = 0; op_mod < 4; op_mod++) {
            memset(in, 0xff, sizeof(in));
            prm_store16(in, row->command->opcode);
            prm_store16(in + 2, 0);
            prm_store16(in + 6, op_mod == 3 ? 0xffff : op_mod);
            attempt(in, len, row->command->out_least + 256);
        }
    }
}
END_TEST

/* A user context that does not exist. */
START_TEST(unknown_uid)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX] = {0};

    if (!(row->states & CMD_READY)) {
        return;
    }
    prm_store16(in, row->command->opcode);
    prm_store16(in + 2, 0x1234);
    ck_assert_int_eq(attempt(in, row->command->in_least, row->command->out_least),
                     PRM_CMD_STATUS_BAD_RES);
}
END_TEST

START_TEST(unknown_opcodes)
{
    uint8_t in[64] = {0};

    for (unsigned opcode = 0; opcode < 0x10000; opcode++) {
        if (!fw_cmd_find((uint16_t)opcode)) {
            prm_store16(in, opcode);
            ck_assert_int_eq(attempt(in, sizeof(in), 64), PRM_CMD_STATUS_BAD_OP);
        }
    }
}
END_TEST

/* -- states -------------------------------------------------------------------------------------
 */

static void tell_command_queue(void)
{
    const struct pci_dev *dev = &a->drv->dev;

    dev->ops->mmio_write(dev->pci, 0x10, a->drv->cmdq.bus >> 32, 4);
    dev->ops->mmio_write(dev->pci, 0x14, (uint32_t)a->drv->cmdq.bus, 4);
}

static void expect_refused_in(const struct fw_cmd_row *row, uint8_t state)
{
    uint8_t in[IN_MAX] = {0};
    int status;

    prm_store16(in, row->command->opcode);
    status = attempt(in, row->command->in_least, row->command->out_least);
    if (!(row->states & state)) {
        ck_assert_int_eq(status, PRM_CMD_STATUS_BAD_SYS_STATE);
    }
}

START_TEST(before_enable_hca)
{
    fw_reset(a->hca->fw);
    a->drv->up = false;
    tell_command_queue();
    expect_refused_in(fw_cmd_at((size_t)_i), CMD_DISABLED);
}
END_TEST

START_TEST(after_teardown_hca)
{
    struct prm_teardown_hca_in in[1] = {0};

    PRM_SET(teardown_hca_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    ck_assert_int_eq(attempt(in, sizeof(in), 16), 0);
    a->drv->up = false;
    expect_refused_in(fw_cmd_at((size_t)_i), CMD_ENABLED);
}
END_TEST

/* -- noise --------------------------------------------------------------------------------------
 */

static bool is_ready(void)
{
    uint32_t pdn;

    return drv_alloc_pd(a->drv, &pdn) == 0 && drv_dealloc_pd(a->drv, pdn) == 0;
}

/* Modified examples of one command, for a function that has an object of every kind. */
START_TEST(bent_command)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    struct guest g;
    struct storm s;
    uint8_t in[EXAMPLE_MAX];

    if (!(row->states & CMD_READY)) {
        return;
    }
    storm_init(&s, (uint32_t)_i);
    guest_init(&g, a);
    guest_tell(&g, &s);
    for (int i = 0; i < 200; i++) {
        size_t len = example(&g, row->command->opcode, in);

        storm_bend(&s, in + 4, len - 4);
        attempt(in, len, row->command->out_least + storm_upto(&s, 3) * 100);
        /* now and then restores the proper states of all objects */
        if (i % 40 == 39 || !is_ready()) {
            node_revive(a);
            guest_init(&g, a);
        }
    }
    storm_clear(&s);
    node_revive(a);
    ping(t);
}
END_TEST

/* All commands in any order. */
START_TEST(storm_of_commands)
{
    struct guest g;
    struct storm s;
    uint8_t in[EXAMPLE_MAX];

    storm_init(&s, 1000 + (uint32_t)_i);
    guest_init(&g, a);
    guest_tell(&g, &s);
    for (int i = 0; i < 4000; i++) {
        const struct fw_cmd_row *row = fw_cmd_at(storm_upto(&s, (uint32_t)rows - 1));
        size_t len;

        if (row->command->opcode == PRM_CMD_OP_TEARDOWN_HCA ||
            row->command->opcode == PRM_CMD_OP_DISABLE_HCA) {
            continue;
        }
        len = example(&g, row->command->opcode, in);
        if (storm_upto(&s, 3)) {
            storm_bend(&s, in + (storm_upto(&s, 1) ? 4 : 8), len - 8);
        }
        attempt(in, len, row->command->out_least);
        if (!is_ready()) {
            node_revive(a);
            guest_init(&g, a);
        }
    }
    storm_clear(&s);
    node_revive(a);
    ping(t);
}
END_TEST

/* Tries to destroy each object that another object needs. */
START_TEST(objects_in_use)
{
    static const uint16_t refused[] = {
        PRM_CMD_OP_DESTROY_CQ,  PRM_CMD_OP_DEALLOC_PD,  PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN,
        PRM_CMD_OP_DESTROY_SRQ, PRM_CMD_OP_DESTROY_RQ,  PRM_CMD_OP_DESTROY_RQT,
        PRM_CMD_OP_DESTROY_TIR, PRM_CMD_OP_DESTROY_TIS, PRM_CMD_OP_DESTROY_EQ,
    };
    struct guest g;
    uint8_t in[EXAMPLE_MAX];

    guest_init(&g, a);
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        size_t len = example(&g, refused[i], in);
        int status = attempt(in, len, 64);

        ck_assert_msg(status == PRM_CMD_STATUS_BAD_RES_STATE, "command 0x%x: status 0x%x",
                      refused[i], status);
    }
    node_revive(a);
}
END_TEST

/* Two short commands can name terabytes: a umem of huge pages, and a key that divides it into small
 * pages. The cost of such a key to the device has the same bound as that of a key whose pages a
 * command lists. */
START_TEST(key_of_terabytes)
{
    struct guest g;
    uint8_t in[EXAMPLE_MAX];
    struct prm_create_umem_in *umem_in = (void *)in;
    struct prm_create_mkey_in *mkey_in = (void *)in;
    struct prm_umem *umem = PRM_PTR(create_umem_in, umem_in, umem);
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, mkey_in, memory_key_mkey_entry);
    struct prm_create_umem_out out[1] = {0};
    const uint64_t pages = 32, log_page = 31;
    uint32_t id, pdn;
    size_t len;

    guest_init(&g, a);
    a->drv->uid = (uint16_t)g.uid;
    ck_assert_int_eq(drv_alloc_pd(a->drv, &pdn), 0);
    example(&g, PRM_CMD_OP_CREATE_UMEM, in);
    PRM_SET(umem, umem, log_page_size, log_page - 12);
    PRM_SET(umem, umem, num_of_mtt, pages);
    len = PRM_SIZE(create_umem_in) + 8 * pages;
    ck_assert_int_eq(drv_cmd(a->drv, in, len, out, sizeof(out)), 0);
    id = PRM_GET(create_umem_out, out, umem_id);

    len = example(&g, PRM_CMD_OP_CREATE_MKEY, in);
    PRM_SET(create_mkey_in, mkey_in, uid, g.uid);
    PRM_SET(create_mkey_in, mkey_in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, mkey_in, mkey_umem_id, id);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, 0);
    PRM_SET(mkc, mkc, len, pages << log_page);
    PRM_SET(mkc, mkc, translations_octword_size, pages << log_page >> 13);
    ck_assert_int_eq(attempt(in, len, 64), PRM_CMD_STATUS_BAD_PARAM);
    /* in large pages it costs almost nothing */
    PRM_SET(mkc, mkc, log_page_size, log_page);
    PRM_SET(mkc, mkc, translations_octword_size, pages / 2);
    ck_assert_int_eq(attempt(in, len, 64), 0);
    node_revive(a);
}
END_TEST

/* Page lists cost the device memory, which a guest gets only up to a limit: 16 MiB each. */
START_TEST(umems_without_end)
{
    const uint64_t pages = 2u << 20;
    const size_t len = PRM_SIZE(create_umem_in) + 8 * pages;
    g_autofree struct prm_create_umem_in *in = g_malloc0(len);
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);
    struct prm_create_umem_out out[1] = {0};
    struct prm_destroy_umem_in destroy[1] = {0};
    uint32_t ids[256];
    unsigned n = 0;
    struct guest g;

    guest_init(&g, a);
    PRM_SET(create_umem_in, in, opcode, PRM_CMD_OP_CREATE_UMEM);
    PRM_SET(create_umem_in, in, uid, g.uid);
    PRM_SET(umem, umem, num_of_mtt, pages);
    while (n < G_N_ELEMENTS(ids) && drv_cmd(a->drv, in, len, out, sizeof(out)) == 0) {
        ids[n++] = PRM_GET(create_umem_out, out, umem_id);
    }
    ck_assert_uint_lt(n, G_N_ELEMENTS(ids));
    ck_assert_int_eq(attempt(in, len, 16), PRM_CMD_STATUS_NO_RES);
    /* freed memory can be allocated again */
    PRM_SET(destroy_umem_in, destroy, opcode, PRM_CMD_OP_DESTROY_UMEM);
    PRM_SET(destroy_umem_in, destroy, uid, g.uid);
    while (n) {
        PRM_SET(destroy_umem_in, destroy, umem_id, ids[--n]);
        ck_assert_int_eq(attempt(destroy, sizeof(destroy), 16), 0);
    }
    ck_assert_int_eq(attempt(in, len, 16), 0);
    node_revive(a);
}
END_TEST

/* -- the queue itself ---------------------------------------------------------------------------
 */

/* Noise in the entry and its mailboxes; invalid pointers; any doorbell. The entry comes back, or is
 * unchanged if the device never owned it. */
START_TEST(noise_in_the_command_queue)
{
    struct storm s;
    struct guest g;
    const struct pci_dev *dev = &a->drv->dev;
    struct prm_cmd_queue_entry *entries = a->drv->cmdq.ptr;
    uint8_t in[EXAMPLE_MAX];

    storm_init(&s, (uint32_t)_i);
    guest_init(&g, a);
    guest_tell(&g, &s);
    for (int i = 0; i < 2000; i++) {
        unsigned slot = storm_upto(&s, 31);
        struct prm_cmd_queue_entry *entry = &entries[slot];
        size_t len = example(&g, PRM_CMD_OP_CREATE_QP, in);

        /* first a correct command, whose remains are modified */
        attempt(in, len, 64);
        memcpy(entry, entries, PRM_SIZE(cmd_queue_entry));
        storm_bend(&s, entry->bytes, PRM_SIZE(cmd_queue_entry));
        if (storm_upto(&s, 1)) {
            storm_bend(&s, a->drv->mailboxes[DRV_SLOT_CMD].ptr, PRM_SIZE(cmd_if_box));
        }
        PRM_SET(cmd_queue_entry, entry, ownership, 1);
        dev->ops->mmio_write(dev->pci, PRM_OFFSET(initial_seg, command_doorbell_vector),
                             storm_upto(&s, 3) ? 1u << slot : storm_word(&s), 4);
        inproc_settle(t->world);
        if (storm_upto(&s, 7) == 0) {
            drv_poll_events(a->drv);
        }
    }
    storm_clear(&s);
    node_revive(a);
    ping(t);
}
END_TEST

START_TEST(command_queue_at_no_memory)
{
    const struct pci_dev *dev = &a->drv->dev;

    dev->ops->mmio_write(dev->pci, 0x10, 0xdead0000, 4);
    dev->ops->mmio_write(dev->pci, 0x14, 0x1000, 4);
    dev->ops->mmio_write(dev->pci, PRM_OFFSET(initial_seg, command_doorbell_vector), UINT32_MAX, 4);
    inproc_settle(t->world);
    node_revive(a);
    ping(t);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hostile guest, commands");
    TCase *tc = tcase_create("commands");

    rows = num_commands();
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, truncated_command, 0, rows);
    tcase_add_loop_test(tc, overlong_command, 0, rows);
    tcase_add_loop_test(tc, all_ones, 0, rows);
    tcase_add_loop_test(tc, unknown_uid, 0, rows);
    tcase_add_test(tc, unknown_opcodes);
    tcase_add_loop_test(tc, before_enable_hca, 0, rows);
    tcase_add_loop_test(tc, after_teardown_hca, 0, rows);
    tcase_add_loop_test(tc, bent_command, 0, rows);
    tcase_add_loop_test(tc, storm_of_commands, 0, 6);
    tcase_add_test(tc, objects_in_use);
    tcase_add_test(tc, key_of_terabytes);
    tcase_add_test(tc, umems_without_end);
    tcase_add_loop_test(tc, noise_in_the_command_queue, 0, 4);
    tcase_add_test(tc, command_queue_at_no_memory);
    suite_add_tcase(suite, tc);
    return suite;
}
