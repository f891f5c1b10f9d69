/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the accessors and the reflection of prm/, against bytes written by hand.
 */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "prm/prm.h"
#include "tests/unit/suite.h"

/* Layouts are big-endian; bit 31 is the most significant bit of a dword (prm/README.md). */
START_TEST(test_get_reads_big_endian_bits)
{
    struct prm_qpc qpc[1] = {0};

    qpc->bytes[0x00] = 0x35; /* state 3, lag_tx_port_affinity 5 */
    qpc->bytes[0x01] = 0x02; /* st */
    qpc->bytes[0x04] = 0xff; /* reserved beside pd */
    qpc->bytes[0x05] = 0x12;
    qpc->bytes[0x06] = 0x34;
    qpc->bytes[0x07] = 0x56;
    ck_assert_uint_eq(PRM_GET(qpc, qpc, state), 3);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, lag_tx_port_affinity), 5);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, st), 2);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, pd), 0x123456);
}
END_TEST

/* A field wider than 32 bits is a uint64_t, at dword alignment and at any address. */
START_TEST(test_get_reads_64_bits_at_any_alignment)
{
    uint8_t image[PRM_mkc_SIZE + 1] = {0};
    void *mkc = image + 1;
    static const uint8_t start_addr[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

    memcpy(mkc + 0x10, start_addr, sizeof(start_addr));
    ck_assert_uint_eq(PRM_GET(mkc, mkc, start_addr), UINT64_C(0x0123456789abcdef));
    ck_assert_uint_eq(sizeof(PRM_GET(mkc, mkc, start_addr)), 8);
    ck_assert_uint_eq(sizeof(PRM_GET(mkc, mkc, qpn)), 4);
}
END_TEST

/* Setting a field leaves the bits around it as they were. */
START_TEST(test_set_changes_only_its_bits)
{
    struct prm_cqc cqc[1];
    uint8_t want[PRM_cqc_SIZE];

    memset(cqc, 0xff, sizeof(cqc));
    memset(want, 0xff, sizeof(want));
    want[0x0d] = 0xe0; /* log_cq_size is bits 28:24, uar_page 23:0 of dword 0x0c */
    want[0x0e] = 0x00;
    want[0x0f] = 0x01;
    want[0x0c] = 0xe7;
    want[0x0d] = 0x00;
    PRM_SET(cqc, cqc, log_cq_size, 7);
    PRM_SET(cqc, cqc, uar_page, 1);
    ck_assert_mem_eq(cqc, want, sizeof(want));
}
END_TEST

/* Access of every width: 8, 16, 32, 64 bits and a single bit. */
START_TEST(test_set_writes_big_endian_bytes)
{
    struct prm_wqe_ctrl_seg ctrl[1] = {0};
    static const uint8_t want[PRM_wqe_ctrl_seg_SIZE] = {
        0x00, 0xbe, 0xef, 0x0a, 0x12, 0x34, 0x56, 0x03, 0x5a, 0, 0, 0x4a, 0xde, 0xad, 0xbe, 0xef,
    };

    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, 0xbeef);
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, PRM_WQE_OPCODE_SEND);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, 0x123456);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, 3);
    PRM_SET(wqe_ctrl_seg, ctrl, signature, 0x5a);
    PRM_SET(wqe_ctrl_seg, ctrl, fm, PRM_WQE_FM_FENCE);
    PRM_SET(wqe_ctrl_seg, ctrl, ce, PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_ctrl_seg, ctrl, se, 1);
    PRM_SET(wqe_ctrl_seg, ctrl, imm, 0xdeadbeef);
    ck_assert_mem_eq(ctrl, want, sizeof(want));
    ck_assert_uint_eq(PRM_GET(wqe_ctrl_seg, ctrl, fm_ce_se), 0x4a);
}
END_TEST

START_TEST(test_set_64_bits)
{
    struct prm_wqe_raddr_seg raddr[1] = {0};
    static const uint8_t want[PRM_wqe_raddr_seg_SIZE] = {0xfe, 0xdc, 0xba, 0x98,
                                                         0x76, 0x54, 0x32, 0x10};

    PRM_SET(wqe_raddr_seg, raddr, raddr, UINT64_C(0xfedcba9876543210));
    ck_assert_mem_eq(raddr, want, sizeof(want));
}
END_TEST

/* Arrays: of scalars, of structures, open at the end. */
START_TEST(test_arrays)
{
    uint8_t bytes[PRM_create_eq_in_SIZE + 16] = {0};
    void *in = bytes;

    PRM_SET_AT(create_eq_in, in, event_bitmask, 3, 0x1122334455667788);
    ck_assert_uint_eq(PRM_GET_AT(create_eq_in, in, event_bitmask, 3), 0x1122334455667788);
    ck_assert_uint_eq(bytes[0x58 + 24], 0x11);
    PRM_SET_AT(create_eq_in, in, pas, 1, 0xabcd000);
    ck_assert_ptr_eq(PRM_PTR_AT(create_eq_in, in, pas, 1), bytes + 0x118);
    ck_assert_uint_eq(bytes[0x110 + 15], 0);
    ck_assert_uint_eq(bytes[0x110 + 14], 0xd0);
    ck_assert_uint_eq(PRM_COUNT(create_eq_in, event_bitmask), 4);
    ck_assert_uint_eq(PRM_COUNT(create_eq_in, pas), 0);
    ck_assert_uint_eq(PRM_STRIDE(create_eq_in, pas), 8);
    ck_assert_uint_eq(PRM_SIZE(create_eq_in), 0x110);
    ck_assert_uint_eq(PRM_OFFSET(create_eq_in, pas), 0x110);
}
END_TEST

START_TEST(test_ptr_reaches_nested_structures)
{
    struct prm_create_qp_in in[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);

    ck_assert_ptr_eq(qpc, in->bytes + 0x18);
    ck_assert_ptr_eq(path, in->bytes + 0x18 + 0x18);
    memset(PRM_PTR(ads, path, rgid_rip), 0xab, 16);
    ck_assert_uint_eq(PRM_GET_AT(ads, path, rgid_rip, 15), 0xab);
}
END_TEST

/* A value that is too wide for its field ends the process; it is never truncated. */
START_TEST(test_set_aborts_on_a_value_too_wide)
{
    struct prm_qpc qpc[1] = {0};

    PRM_SET(qpc, qpc, state, 16);
}
END_TEST

START_TEST(test_set_aborts_on_a_value_wider_than_32_bits)
{
    struct prm_wqe_ctrl_seg ctrl[1] = {0};

    PRM_SET(wqe_ctrl_seg, ctrl, imm, UINT64_C(1) << 32);
}
END_TEST

START_TEST(test_set_at_aborts_on_a_value_too_wide)
{
    struct prm_ads path[1] = {0};

    PRM_SET_AT(ads, path, rgid_rip, 0, 0x100);
}
END_TEST

START_TEST(test_get_at_aborts_past_the_array)
{
    struct prm_ads path[1] = {0};
    volatile size_t index = 16;

    ck_assert_uint_eq(PRM_GET_AT(ads, path, rgid_rip, index), 0);
}
END_TEST

START_TEST(test_ptr_at_aborts_past_the_array)
{
    struct prm_flow_context context[1] = {0};
    volatile size_t index = 4;

    ck_assert_ptr_nonnull(PRM_PTR_AT(flow_context, context, execute_aso, index));
}
END_TEST

/* Reflection: the tables agree with the accessors. */
START_TEST(test_struct_find)
{
    const struct prm_struct *qpc = prm_struct_find("qpc");

    ck_assert_ptr_nonnull(qpc);
    ck_assert_str_eq(qpc->name, "qpc");
    ck_assert_uint_eq(qpc->size, PRM_SIZE(qpc));
    ck_assert_ptr_null(prm_struct_find("no_such_structure"));
    ck_assert_ptr_null(prm_field_find(qpc, "no_such_field"));

    const struct prm_field *path = prm_field_find(qpc, "primary_address_path");

    ck_assert_ptr_nonnull(path);
    ck_assert_ptr_eq(path->type, prm_struct_find("ads"));
}
END_TEST

START_TEST(test_field_get_agrees_with_the_accessor)
{
    struct prm_mkc mkc[1];
    const struct prm_struct *s = prm_struct_find("mkc");

    for (size_t i = 0; i < sizeof(mkc); i++) {
        mkc->bytes[i] = (uint8_t)(i * 37 + 11);
    }
    ck_assert_uint_eq(prm_field_get(prm_field_find(s, "qpn"), mkc, 0), PRM_GET(mkc, mkc, qpn));
    ck_assert_uint_eq(prm_field_get(prm_field_find(s, "len"), mkc, 0), PRM_GET(mkc, mkc, len));
    ck_assert_uint_eq(prm_field_get(prm_field_find(s, "rw"), mkc, 0), PRM_GET(mkc, mkc, rw));
}
END_TEST

START_TEST(test_enum_names)
{
    ck_assert_str_eq(prm_cmd_op_name(PRM_CMD_OP_CREATE_QP), "CREATE_QP");
    ck_assert_str_eq(prm_cmd_op_name(0xffff), "unknown");
    ck_assert_str_eq(prm_enum_name("cmd_status", PRM_CMD_STATUS_BAD_PARAM), "BAD_PARAM");
    ck_assert_ptr_null(prm_enum_name("cmd_status", 0x1234));
    ck_assert_ptr_null(prm_enum_name("no_such_enum", 0));
}
END_TEST

START_TEST(test_a_command_has_layouts_and_lengths)
{
    const struct prm_command *c = PRM_COMMAND(CREATE_QP);

    ck_assert_uint_eq(c->opcode, PRM_CMD_OP_CREATE_QP);
    ck_assert_str_eq(c->name, "CREATE_QP");
    ck_assert_ptr_eq(c->in, prm_struct_find("create_qp_in"));
    ck_assert_uint_eq(c->in_least, PRM_SIZE(create_qp_in));
    ck_assert_uint_eq(c->out_least, PRM_SIZE(create_qp_out));
    /* a caller may leave out what a command reads or answers last */
    ck_assert_uint_eq(PRM_COMMAND(SET_HCA_CAP)->in_least, PRM_OFFSET(set_hca_cap_in, capability));
    /* named otherwise than its command */
    ck_assert_ptr_eq(PRM_COMMAND(2ERR_QP)->in, prm_struct_find("qp_2err_in"));
}
END_TEST

START_TEST(test_a_command_is_about_an_object)
{
    const struct prm_command *c = PRM_COMMAND(MODIFY_CQ);
    struct prm_destroy_cq_in destroy[1] = {0};
    struct prm_create_cq_out created[1] = {0};

    ck_assert_int_eq(c->act, PRM_MODIFIES);
    ck_assert_ptr_eq(c->object, PRM_OBJECT(CQ));
    ck_assert_ptr_eq(PRM_OBJECT(CQ)->create, PRM_COMMAND(CREATE_CQ));
    ck_assert_ptr_eq(PRM_OBJECT(CQ)->query, PRM_COMMAND(QUERY_CQ));
    ck_assert_ptr_eq(PRM_OBJECT(CQ)->destroy, PRM_COMMAND(DESTROY_CQ));
    ck_assert_ptr_null(PRM_OBJECT(PD)->query);
    ck_assert_ptr_null(PRM_COMMAND(NOP)->object);
    /* its number is in what creates it, and in the inputs of the others */
    PRM_SET(create_cq_out, created, cqn, 0x123456);
    PRM_SET(destroy_cq_in, destroy, cqn, 0x654321);
    ck_assert(PRM_COMMAND(CREATE_CQ)->number_in_out);
    ck_assert_uint_eq(prm_get(created, PRM_COMMAND(CREATE_CQ)->number), 0x123456);
    ck_assert_uint_eq(prm_get(destroy, PRM_COMMAND(DESTROY_CQ)->number), 0x654321);
    /* the caller chooses it */
    ck_assert(!PRM_COMMAND(SET_FLOW_TABLE_ENTRY)->number_in_out);
}
END_TEST

START_TEST(test_what_two_layouts_have_in_common_is_copied)
{
    struct prm_set_fte_in set[1] = {0};
    struct prm_delete_fte_in end[1] = {0};

    memset(set, 0xff, sizeof(set));
    PRM_SET(set_fte_in, set, table_id, 0x123456);
    prm_copy_common(PRM_COMMAND(DELETE_FLOW_TABLE_ENTRY)->in, end,
                    PRM_COMMAND(SET_FLOW_TABLE_ENTRY)->in, set, PRM_OFFSET(set_fte_in, flow_index));
    ck_assert_uint_eq(PRM_GET(delete_fte_in, end, table_id), 0x123456);
    ck_assert_uint_eq(PRM_GET(delete_fte_in, end, vport_number), 0xffff);
    ck_assert_uint_eq(PRM_GET(delete_fte_in, end, flow_index), 0); /* past what there is */
    ck_assert(prm_reserved_clear(PRM_COMMAND(DELETE_FLOW_TABLE_ENTRY)->in, end, sizeof(end), NULL));
}
END_TEST

START_TEST(test_a_command_has_the_variants_of_its_op_mod)
{
    ck_assert(prm_command_has_variant(PRM_COMMAND(CREATE_QP), 0));
    ck_assert(!prm_command_has_variant(PRM_COMMAND(CREATE_QP), 1));
    ck_assert(!prm_command_has_variant(PRM_COMMAND(QUERY_PAGES), 0));
    ck_assert(prm_command_has_variant(PRM_COMMAND(QUERY_PAGES), 3));
    ck_assert(!prm_command_has_variant(PRM_COMMAND(QUERY_PAGES), 4));
    ck_assert(prm_command_has_variant(PRM_COMMAND(QUERY_HCA_CAP), 0xffff));
}
END_TEST

START_TEST(test_dump_names_nested_fields_and_constants)
{
    uint8_t bytes[PRM_create_cq_in_SIZE + 8] = {0};
    void *in = bytes;
    char *text;

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), log_cq_size, 9);
    PRM_SET_AT(create_cq_in, in, pas, 0, 0x7000);

    text = prm_dump_string(prm_struct_find("create_cq_in"), in, sizeof(bytes), PRM_DUMP_NONZERO);
    ck_assert_str_eq(text, "create_cq_in\n"
                           "  opcode: 0x400 (CREATE_CQ)\n"
                           "  cq_context:\n"
                           "    log_cq_size: 0x9\n"
                           "  pas[0]: 0x7000\n");
    free(text);

    text = prm_dump_string(prm_struct_find("wqe_raddr_seg"), in, 16, PRM_DUMP_ALL);
    ck_assert_str_eq(text, "wqe_raddr_seg\n"
                           "  raddr: 0x400000000000000\n"
                           "  rkey: 0x0\n");
    free(text);
}
END_TEST

/* "Fields past len are left out": nothing behind the buffer is read. */
START_TEST(test_dump_stops_at_the_length)
{
    uint8_t seg[12] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2};
    uint8_t *heap = malloc(12);
    char *text;

    memcpy(heap, seg, sizeof(seg));
    text = prm_dump_string(prm_struct_find("wqe_raddr_seg"), heap, 8, PRM_DUMP_ALL);
    ck_assert_str_eq(text, "wqe_raddr_seg\n  raddr: 0x1\n");
    free(text);
    free(heap);
}
END_TEST

START_TEST(test_reserved_clear_finds_the_first_set_bit)
{
    const struct prm_struct *s = prm_struct_find("alloc_pd_in");
    uint8_t in[PRM_alloc_pd_in_SIZE] = {0};
    size_t bad = 99;

    memset(in, 0xff, 4); /* opcode and uid: no reserved bit */
    ck_assert(prm_reserved_clear(s, in, sizeof(in), &bad));
    ck_assert_uint_eq(bad, 99);
    in[12] = 0x80;
    ck_assert(!prm_reserved_clear(s, in, sizeof(in), &bad));
    ck_assert_uint_eq(bad, 12);
    ck_assert(!prm_reserved_clear(s, in, sizeof(in), NULL));
    ck_assert(prm_reserved_clear(s, in, 12, &bad)); /* only the first len bytes count */
}
END_TEST

START_TEST(test_reserved_clear_looks_into_nested_structures)
{
    const struct prm_struct *s = prm_struct_find("create_cq_in");
    uint8_t bytes[PRM_create_cq_in_SIZE + 8] = {0};
    void *in = bytes;
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    size_t bad;

    PRM_SET(cqc, cqc, status, 0xf);
    ck_assert(prm_reserved_clear(s, in, sizeof(bytes), &bad));
    cqc->bytes[0x0c] = 0xe0; /* above log_cq_size */
    ck_assert(!prm_reserved_clear(s, in, sizeof(bytes), &bad));
    ck_assert_uint_eq(bad, 0x10 + 0x0c);
}
END_TEST

/* Elements of an open array of structures have reserved bits of their own. */
START_TEST(test_reserved_clear_looks_into_open_arrays)
{
    const struct prm_struct *s = prm_struct_find("wq");
    uint8_t wq[PRM_wq_SIZE + 16] = {0};
    size_t bad;

    wq[PRM_wq_SIZE + 14] = 0x10; /* pa_l is bits 31:12: this is bit 12 */
    ck_assert(prm_reserved_clear(s, wq, sizeof(wq), &bad));
    wq[PRM_wq_SIZE + 15] = 0x01;
    ck_assert(!prm_reserved_clear(s, wq, sizeof(wq), &bad));
    ck_assert_uint_eq(bad, PRM_SIZE(wq) + 15);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("prm");
    TCase *access = tcase_create("access");
    TCase *reflect = tcase_create("reflect");

    tcase_add_test(access, test_get_reads_big_endian_bits);
    tcase_add_test(access, test_get_reads_64_bits_at_any_alignment);
    tcase_add_test(access, test_set_changes_only_its_bits);
    tcase_add_test(access, test_set_writes_big_endian_bytes);
    tcase_add_test(access, test_set_64_bits);
    tcase_add_test(access, test_arrays);
    tcase_add_test(access, test_ptr_reaches_nested_structures);
    tcase_add_test_raise_signal(access, test_set_aborts_on_a_value_too_wide, SIGABRT);
    tcase_add_test_raise_signal(access, test_set_aborts_on_a_value_wider_than_32_bits, SIGABRT);
    tcase_add_test_raise_signal(access, test_set_at_aborts_on_a_value_too_wide, SIGABRT);
    tcase_add_test_raise_signal(access, test_get_at_aborts_past_the_array, SIGABRT);
    tcase_add_test_raise_signal(access, test_ptr_at_aborts_past_the_array, SIGABRT);
    suite_add_tcase(suite, access);

    tcase_add_test(reflect, test_struct_find);
    tcase_add_test(reflect, test_field_get_agrees_with_the_accessor);
    tcase_add_test(reflect, test_enum_names);
    tcase_add_test(reflect, test_a_command_has_layouts_and_lengths);
    tcase_add_test(reflect, test_a_command_is_about_an_object);
    tcase_add_test(reflect, test_what_two_layouts_have_in_common_is_copied);
    tcase_add_test(reflect, test_a_command_has_the_variants_of_its_op_mod);
    tcase_add_test(reflect, test_dump_names_nested_fields_and_constants);
    tcase_add_test(reflect, test_dump_stops_at_the_length);
    tcase_add_test(reflect, test_reserved_clear_finds_the_first_set_bit);
    tcase_add_test(reflect, test_reserved_clear_looks_into_nested_structures);
    tcase_add_test(reflect, test_reserved_clear_looks_into_open_arrays);
    suite_add_tcase(suite, reflect);
    return suite;
}
