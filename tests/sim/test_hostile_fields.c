/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a guest that gets one field of a command wrong: a reserved bit, an op_mod that the command
 * does not have, the number of nothing, an object of another user. Each command of the table is
 * examined through its own layout, so a new command is tested from its first day. There must be
 * exactly one status; afterwards the object of the command is unchanged.
 */
#include <check.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "model/core/syndrome.h"
#include "prm/reflect.h"
#include "tests/sim/examples.h"
#include "tests/unit/suite.h"

#define SYNDROME_RESERVED 0x010005
#define SYNDROME_UID      0x01000a
#define IN_MAX            8192

static struct two_hcas *t;
static struct node *a;
static struct guest g;
static int rows;

static void setup(void)
{
    t = two_hcas_new(NULL);
    a = &t->a;
    guest_init(&g, a);
}

static void teardown(void)
{
    node_revive(a);
    two_hcas_free(t);
}

static int attempt(const void *in, size_t in_len, size_t out_len)
{
    uint8_t out[IN_MAX] = {0};
    int status = drv_cmd(a->drv, in, in_len, out, out_len);

    ck_assert_msg(status != DRV_TIMEOUT, "command 0x%x hangs", (unsigned)prm_load16(in));
    return status;
}

static void expect(const void *in, size_t in_len, size_t out_len, int status, uint32_t syndrome)
{
    int got = attempt(in, in_len, out_len);

    ck_assert_msg(got == status && a->drv->syndrome == syndrome,
                  "command 0x%x: status 0x%x, syndrome 0x%x", (unsigned)prm_load16(in), got,
                  a->drv->syndrome);
}

/* Brings a function into a state in which the command is legal: ready, or for some commands between
 * INIT_HCA and the end. */
static void bring_into_state(const struct fw_cmd_row *row)
{
    struct prm_teardown_hca_in in[1] = {0};

    if (!(row->states & CMD_READY)) {
        PRM_SET(teardown_hca_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
        ck_assert_int_eq(attempt(in, sizeof(in), 16), 0);
        a->drv->up = false;
    }
}

/* -- reserved bits ------------------------------------------------------------------------------
 */

/* PRM, command interface: reserved fields are 0; otherwise the command fails with BAD_PARAM.
 * Nothing happens before: a command of zeros would often be legal. */
START_TEST(reserved_bits)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    const struct prm_struct *layout = row->command->in;
    uint8_t in[IN_MAX] = {0};
    size_t len = MAX(layout->size, row->command->in_least);

    ck_assert_uint_lt(len, IN_MAX);
    bring_into_state(row);
    prm_store16(in, row->command->opcode);
    prm_store16(in + 6, row->command->variants ? row->command->variants->values[0].value : 0);
    for (size_t at = 4; at < layout->size; at++) {
        if (layout->reserved[at]) {
            in[at] = layout->reserved[at];
            expect(in, len, row->command->out_least, PRM_CMD_STATUS_BAD_PARAM, SYNDROME_RESERVED);
            /* also tries its lowest bit alone */
            in[at] &= (uint8_t)-in[at];
            expect(in, len, row->command->out_least, PRM_CMD_STATUS_BAD_PARAM, SYNDROME_RESERVED);
            in[at] = 0;
        }
    }
}
END_TEST

/* Returns whether the command's layout ends in a list. */
static bool ends_in_list(uint16_t opcode)
{
    static const uint16_t opcodes[] = {
        PRM_CMD_OP_CREATE_MKEY,
        PRM_CMD_OP_CREATE_EQ,
        PRM_CMD_OP_CREATE_CQ,
        PRM_CMD_OP_MODIFY_CQ,
        PRM_CMD_OP_CREATE_QP,
        PRM_CMD_OP_CREATE_SRQ,
        PRM_CMD_OP_CREATE_XRC_SRQ,
        PRM_CMD_OP_CREATE_RMP,
        PRM_CMD_OP_CREATE_XRQ,
        PRM_CMD_OP_MODIFY_RMP,
        PRM_CMD_OP_CREATE_SQ,
        PRM_CMD_OP_MODIFY_SQ,
        PRM_CMD_OP_CREATE_RQ,
        PRM_CMD_OP_MODIFY_RQ,
        PRM_CMD_OP_CREATE_RQT,
        PRM_CMD_OP_MODIFY_RQT,
        PRM_CMD_OP_SET_FLOW_TABLE_ENTRY,
        PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT,
        PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT,
        PRM_CMD_OP_MANAGE_PAGES,
        PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT,
        PRM_CMD_OP_ACCESS_REG,
        PRM_CMD_OP_CREATE_UMEM,
        PRM_CMD_OP_CREATE_GENERAL_OBJECT,
        PRM_CMD_OP_MODIFY_GENERAL_OBJECT,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        if (opcodes[i] == opcode) {
            return true;
        }
    }
    return false;
}

/* The bytes behind the end of a layout are reserved, too: a longer input is accepted if they are
 * zero (a newer driver's layout), and refused if they are not. */
START_TEST(bytes_behind_the_end)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    const struct prm_struct *layout = row->command->in;
    uint8_t in[IN_MAX];
    size_t len;

    bring_into_state(row);
    if (ends_in_list(row->command->opcode)) {
        return;
    }
    len = MAX(example(&g, row->command->opcode, in), layout->size);
    in[len + 3] = 1;
    expect(in, len + 4, row->command->out_least, PRM_CMD_STATUS_BAD_PARAM, SYNDROME_RESERVED);
    in[len + 3] = 0;
    attempt(in, len + 4, row->command->out_least);
    ck_assert_uint_ne(a->drv->syndrome, SYNDROME_RESERVED);
}
END_TEST

/* An op_mod that no command has. */
START_TEST(unknown_op_mod)
{
    static const uint16_t op_mods[] = {0x7fff, 0x8000, 0xffff};
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX];
    size_t len;

    bring_into_state(row);
    len = example(&g, row->command->opcode, in);
    for (size_t i = 0; i < G_N_ELEMENTS(op_mods); i++) {
        prm_store16(in + 6, op_mods[i]);
        ck_assert_int_eq(attempt(in, len, row->command->out_least), PRM_CMD_STATUS_BAD_PARAM);
    }
}
END_TEST

/* -- numbers ------------------------------------------------------------------------------------
 */

/* Fields that name an object. */
static const char *const handles[] = {
    "pd",
    "cqn",
    "cqn_snd",
    "cqn_rcv",
    "srqn",
    "xrc_srqn",
    "rmpn",
    "srq_number",
    "xrcd",
    "uar",
    "uar_page",
    "qpn",
    "sqn",
    "rqn",
    "tirn",
    "tisn",
    "rqtn",
    "mkey_index",
    "eq_number",
    "c_eqn_or_apu_element",
    "tis_num_0",
    "table_id",
    "transport_domain",
    "indirect_table",
    "group_id",
    "umem_id",
    "counter_set_id",
    "srqn_xrqn",
    "dctn",
    "dct_number",
    "flow_counter_id",
    "psvn",
};

/* Fields of a context that the device does not check when an object is created. */
static const struct {
    uint16_t opcode;
    const char *layout, *field, *reason;
} unread[] = {
    {PRM_CMD_OP_CREATE_MKEY, "mkc", "qpn", "compared with the QP that uses the key"},
    {PRM_CMD_OP_CREATE_QP, "qpc", "counter_set_id", "what names no set is counted for nobody"},
    {PRM_CMD_OP_CREATE_RQ, "rqc", "counter_set_id", "as above"},
    {PRM_CMD_OP_CREATE_DCT, "dctc", "counter_set_id", "as above"},
    {PRM_CMD_OP_CREATE_QP, "qpc", "xrcd", "the example is no XRC QP"},
    {PRM_CMD_OP_CREATE_SRQ, "srqc", "xrcd", "basic"},
    {PRM_CMD_OP_CREATE_SRQ, "srqc", "cqn", "basic"},
    {PRM_CMD_OP_CREATE_RMP, "wq", "uar_page", "receive queues have no doorbell page"},
    {PRM_CMD_OP_CREATE_XRQ, "wq", "uar_page", "as above"},
    {PRM_CMD_OP_CREATE_RQ, "wq", "uar_page", "as above"},
    {PRM_CMD_OP_CREATE_RQ, "rqc", "rmpn", "the example has memory of its own"},
    {PRM_CMD_OP_CREATE_TIS, "tisc", "pd", "for TLS, which is not reported"},
};

static bool is_handle(uint16_t opcode, const struct prm_struct *layout, const struct prm_field *f)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unread); i++) {
        if (unread[i].opcode == opcode && strcmp(unread[i].layout, layout->name) == 0 &&
            strcmp(unread[i].field, f->name) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(handles); i++) {
        if (strcmp(handles[i], f->name) == 0) {
            return true;
        }
    }
    return false;
}

/* A context has its object's references only at creation: no command changes them. */
static bool takes_references(uint16_t opcode)
{
    return g_str_has_prefix(prm_cmd_op_name(opcode), "CREATE_") ||
           opcode == PRM_CMD_OP_SET_FLOW_TABLE_ENTRY;
}

/* An entry's group is a field of the table, and not an object: the status is BAD_PARAM. */
static int status_for(uint16_t opcode, const char *field)
{
    return opcode == PRM_CMD_OP_SET_FLOW_TABLE_ENTRY && strcmp(field, "group_id") == 0
               ? PRM_CMD_STATUS_BAD_PARAM
               : PRM_CMD_STATUS_BAD_RES;
}

/* Tries the largest number in each handle of the layout at base, one after the other. */
static unsigned try_handles(const struct fw_cmd_row *row, const struct prm_struct *s, size_t base,
                            uint8_t *in, size_t len)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];
        size_t word = (base + f->bit / 8) / 4 * 4;

        if (f->type && f->count < 0 && takes_references(row->command->opcode)) {
            n += try_handles(row, f->type, base + f->bit / 8, in, len);
        } else if (!f->type && is_handle(row->command->opcode, s, f) && word + 4 <= len) {
            uint32_t was = (uint32_t)prm_load32(in + word);
            int status;

            prm_store32(in + word, was | ((1ull << f->width) - 1) << (32 - f->bit % 32 - f->width));
            status = attempt(in, len, MAX(row->command->out_least, 64));
            ck_assert_msg(status == status_for(row->command->opcode, f->name),
                          "%s, %s.%s: status 0x%x, syndrome 0x%x",
                          prm_cmd_op_name(row->command->opcode), s->name, f->name, status,
                          a->drv->syndrome);
            prm_store32(in + word, was);
            n++;
        }
    }
    return n;
}

/* The number of an object that does not exist: BAD_RES. With its own number the command succeeds
 * afterwards, so the number caused the refusal. */
START_TEST(numbers_of_nothing)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX];
    size_t len;

    if (!(row->states & CMD_READY)) {
        return;
    }
    len = example(&g, row->command->opcode, in);
    /* the example's flow table entry is there already */
    if (try_handles(row, row->command->in, 0, in, len) &&
        g_str_has_prefix(prm_cmd_op_name(row->command->opcode), "CREATE_")) {
        ck_assert_int_eq(attempt(in, len, MAX(row->command->out_least, 64)), 0);
    }
}
END_TEST

/* -- objects of another user ------------------------------------------------------------------- */

/* What a user context may do without an object of its own, or with any object; a mapping may name
 * anybody's QP (docs/adr/0009). */
static bool is_open_to_all(uint16_t opcode)
{
    const char *name = prm_cmd_op_name(opcode);

    return g_str_has_prefix(name, "ALLOC_") || g_str_has_prefix(name, "QUERY_") ||
           opcode == PRM_CMD_OP_NOP || opcode == PRM_CMD_OP_SYNC_STEERING ||
           opcode == PRM_CMD_OP_SET_PP_RATE_LIMIT || opcode == PRM_CMD_OP_CREATE_UMEM ||
           opcode == PRM_CMD_OP_CREATE_FLOW_TABLE || opcode == PRM_CMD_OP_CREATE_GENERAL_OBJECT;
}

/* A user context that owns nothing must not change or destroy the kernel's objects, or use them for
 * something new. Most refusals concern the owner (BAD_RES, PRM: resource belongs to another).
 * Actions that no user context may do at all, or that are impossible, give BAD_PARAM. */
START_TEST(objects_of_another_user)
{
    const struct fw_cmd_row *row = fw_cmd_at((size_t)_i);
    uint8_t in[IN_MAX];
    size_t len;
    struct prm_create_uctx_in create[1] = {0};
    struct prm_create_uctx_out out[1] = {0};
    int status, want = PRM_CMD_STATUS_BAD_RES;

    if (!(row->states & CMD_READY) || is_open_to_all(row->command->opcode)) {
        return;
    }
    PRM_SET(create_uctx_in, create, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_int_eq(drv_cmd(a->drv, create, sizeof(create), out, sizeof(out)), 0);
    if (row->command->opcode == PRM_CMD_OP_CREATE_EQ ||
        row->command->opcode == PRM_CMD_OP_MODIFY_GENERAL_OBJECT) {
        want = PRM_CMD_STATUS_BAD_PARAM;
    }
    len = example(&g, row->command->opcode, in);
    prm_store16(in + 2, PRM_GET(create_uctx_out, out, uid));
    status = attempt(in, len, MAX(row->command->out_least, 64));
    ck_assert_msg(status == want, "%s: status 0x%x, syndrome 0x%x",
                  prm_cmd_op_name(row->command->opcode), status, a->drv->syndrome);
    if (want == PRM_CMD_STATUS_BAD_RES &&
        g_str_has_prefix(prm_cmd_op_name(row->command->opcode), "MODIFY")) {
        ck_assert_int_eq(a->drv->syndrome, SYNDROME_UID);
    }
}
END_TEST

/* -- UAR pages ----------------------------------------------------------------------------------
 */

static uint32_t alloc_uar(void)
{
    struct prm_alloc_uar_in in[1] = {0};
    struct prm_alloc_uar_out out[1] = {0};

    PRM_SET(alloc_uar_in, in, opcode, PRM_CMD_OP_ALLOC_UAR);
    ck_assert_int_eq(drv_cmd(a->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(alloc_uar_out, out, uar);
}

/* A process that rings another process's send queue on its own page has no effect. */
START_TEST(doorbell_on_a_foreign_page)
{
    struct drv_sge sge = buf_sge(g.mem, 0, 8);
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                            .flags = DRV_SIGNALED | DRV_NO_DOORBELL,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = g.mem->va,
                            .rkey = g.mem->mr.key};
    const struct pci_dev *dev = &a->drv->dev;
    uint64_t ring = (uint64_t)g.rc_loop->qpn << 8 | 3;
    uint32_t other = alloc_uar();

    drv_post_send(g.rc_loop, &send);
    dev->ops->mmio_write(dev->pci, other * (uint64_t)PCI_PAGE + PRM_OFFSET(uar, blue_flame), ring,
                         8);
    expect_no_wc(t, a);
    dev->ops->mmio_write(dev->pci, a->drv->uarn * (uint64_t)PCI_PAGE + PRM_OFFSET(uar, blue_flame),
                         ring, 8);
    expect_wc(a, g.rc_loop, PRM_CQE_OPCODE_REQ);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hostile guest, fields");
    TCase *tc = tcase_create("fields");

    rows = num_commands();
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, reserved_bits, 0, rows);
    tcase_add_loop_test(tc, bytes_behind_the_end, 0, rows);
    tcase_add_loop_test(tc, unknown_op_mod, 0, rows);
    tcase_add_loop_test(tc, numbers_of_nothing, 0, rows);
    tcase_add_loop_test(tc, objects_of_another_user, 0, rows);
    tcase_add_test(tc, doorbell_on_a_foreign_page);
    suite_add_tcase(suite, tc);
    return suite;
}
