/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the text of layouts in one line (prm/line.h), word for word. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "prm/line.h"
#include "prm/prm.h"
#include "tests/unit/suite.h"

static char text[400];
static struct prm_line line;

static void setup(void)
{
    memset(text, '?', sizeof(text));
    prm_line_begin(&line, text, sizeof(text));
}

START_TEST(fields_have_names_and_so_do_values)
{
    struct prm_qpc qpc[1] = {0};

    PRM_SET(qpc, qpc, state, PRM_QP_STATE_RTR);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_UD);
    PRM_SET(qpc, qpc, pd, 0x12);
    PRM_SET(qpc, qpc, log_sq_size, 6);
    PRM_SET(qpc, qpc, next_send_psn, 4660);
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), hop_limit, 255);
    memset(PRM_PTR(ads, PRM_PTR(qpc, qpc, primary_address_path), rgid_rip), 0xab, 16);
    prm_line_add_fields(&line, prm_struct_find("qpc"), qpc, sizeof(qpc));
    ck_assert_str_eq(text, " state=RTR st=UD pd=0x12 log_sq_size=6 "
                           "primary_address_path{hop_limit=0xff "
                           "rgid_rip=abababababababababababababababab} next_send_psn=4660");
}
END_TEST

/* Opcode and status are not repeated; a list of pages shows its first one. */
START_TEST(a_command_has_its_opcode_elsewhere)
{
    uint8_t bytes[PRM_create_cq_in_SIZE + 24] = {0};
    void *in = bytes;

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), log_cq_size, 9);
    PRM_SET_AT(create_cq_in, in, pas, 0, 0x7000);
    PRM_SET_AT(create_cq_in, in, pas, 2, 0x9000);
    prm_line_add_fields(&line, prm_struct_find("create_cq_in"), in, sizeof(bytes));
    ck_assert_str_eq(text, " cq_context{log_cq_size=9} pas[0]=0x7000 pas[2...]");
}
END_TEST

START_TEST(changes_have_both_values)
{
    struct prm_qpc was[1] = {0}, is[1] = {0};

    PRM_SET(qpc, was, pd, 2);
    PRM_SET(qpc, is, pd, 2);
    PRM_SET(qpc, is, state, PRM_QP_STATE_INIT);
    PRM_SET(qpc, was, retry_count, 7);
    PRM_SET(ads, PRM_PTR(qpc, is, primary_address_path), udp_sport, 0xc000);
    prm_line_add_changes(&line, prm_struct_find("qpc"), was, is, sizeof(is));
    ck_assert_str_eq(text, " state=RST->INIT primary_address_path{udp_sport=0->0xc000} "
                           "retry_count=7->0");
}
END_TEST

START_TEST(equal_structures_give_an_empty_line)
{
    struct prm_qpc qpc[1];

    memset(qpc, 0x5a, sizeof(qpc));
    prm_line_add_changes(&line, prm_struct_find("qpc"), qpc, qpc, sizeof(qpc));
    ck_assert_str_eq(text, "");
}
END_TEST

/* The first of the fields that share bits is printed. */
START_TEST(alternatives_are_printed_once)
{
    struct prm_general_obj_in_cmd_hdr hdr[1] = {0};

    memset((uint8_t *)hdr + 12, 0xff, 4);
    prm_line_add_fields(&line, prm_struct_find("general_obj_in_cmd_hdr"), hdr, sizeof(hdr));
    ck_assert_str_eq(text, " op_param_create{alias_object=1 log_obj_range=0x1f}");
}
END_TEST

START_TEST(chosen_fields_have_their_order)
{
    struct prm_wqe_data_seg seg[1] = {0};

    PRM_SET(wqe_data_seg, seg, byte_count, 100);
    PRM_SET(wqe_data_seg, seg, lkey, 0x1000);
    prm_line_add_chosen(&line, prm_struct_find("wqe_data_seg"), seg, sizeof(seg),
                        (const char *[]){"addr", "lkey", "byte_count", NULL});
    ck_assert_str_eq(text, " lkey=0x1000 byte_count=100");
}
END_TEST

/* Nothing behind the buffer is read. */
START_TEST(fields_past_the_length_are_left_out)
{
    uint8_t *heap = malloc(10);

    memset(heap, 1, 10);
    prm_line_add_fields(&line, prm_struct_find("wqe_raddr_seg"), heap, 10);
    ck_assert_str_eq(text, " raddr=0x101010101010101");
    free(heap);
}
END_TEST

START_TEST(a_long_line_is_cut)
{
    char small[16];
    struct prm_qpc qpc[1];

    memset(qpc, 0xff, sizeof(qpc));
    prm_line_begin(&line, small, sizeof(small));
    prm_line_add_fields(&line, prm_struct_find("qpc"), qpc, sizeof(qpc));
    ck_assert_uint_eq(strlen(small), sizeof(small) - 1);
    ck_assert_str_eq(small, " state=0xf l...");
    prm_line_add(&line, "more");
    ck_assert_str_eq(small, " state=0xf l...");
}
END_TEST

/* A part is cut, and the rest of the line goes on. */
START_TEST(a_long_part_is_cut)
{
    struct prm_line part;

    prm_line_add(&line, "a");
    prm_line_begin_part(&part, &line, 6);
    prm_line_add(&part, "0123456789");
    prm_line_end_part(&line, &part);
    prm_line_add(&line, " b");
    ck_assert_str_eq(text, "a012... b");
}
END_TEST

START_TEST(a_value_without_a_name_is_a_number)
{
    prm_line_add_name(&line, "event_type", 0xee);
    ck_assert_str_eq(text, "unknown event_type 0xee");
}
END_TEST

/* -- JSON -------------------------------------------------------------------------------------- */

static void begin_json(void)
{
    prm_line_begin_json(&line, text, sizeof(text));
}

/* Names are strings. Lengths and small numbers are numbers, and the others hexadecimal strings. */
START_TEST(json_has_members)
{
    uint8_t bytes[PRM_create_cq_in_SIZE + 24] = {0};
    struct prm_qpc qpc[1] = {0};
    void *in = bytes;

    PRM_SET(qpc, qpc, state, PRM_QP_STATE_RTR);
    PRM_SET(qpc, qpc, pd, 0x12);
    PRM_SET(qpc, qpc, log_sq_size, 6);
    PRM_SET(qpc, qpc, next_send_psn, 4660);
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), hop_limit, 255);
    memset(PRM_PTR(ads, PRM_PTR(qpc, qpc, primary_address_path), rgid_rip), 0xab, 16);
    begin_json();
    prm_line_add_fields(&line, prm_struct_find("qpc"), qpc, sizeof(qpc));
    ck_assert_str_eq(text, "\"state\":\"RTR\",\"pd\":\"0x12\",\"log_sq_size\":6,"
                           "\"primary_address_path\":{\"hop_limit\":\"0xff\","
                           "\"rgid_rip\":\"abababababababababababababababab\"},"
                           "\"next_send_psn\":4660");
    PRM_SET_AT(create_cq_in, in, pas, 0, 0x7000);
    PRM_SET_AT(create_cq_in, in, pas, 2, 0x9000);
    begin_json();
    prm_line_add_fields(&line, prm_struct_find("create_cq_in"), in, sizeof(bytes));
    ck_assert_str_eq(text, "\"pas[0]\":\"0x7000\",\"pas[2]\":\"...\"");
}
END_TEST

/* Groups of the same title have an index, because names of members must differ. */
START_TEST(json_groups_differ)
{
    begin_json();
    for (unsigned i = 0; i < 3; i++) {
        prm_line_open_group(&line, i == 2 ? "other" : "data");
        prm_line_add_count(&line, "n", i);
        prm_line_close_group(&line);
    }
    ck_assert_str_eq(text, "\"data\":{\"n\":0},\"data[1]\":{\"n\":1},\"other\":{\"n\":2}");
}
END_TEST

START_TEST(json_texts_are_escaped)
{
    begin_json();
    prm_line_add_text(&line, "a", "\"\\\n/");
    ck_assert_str_eq(text, "\"a\":\"\\\"\\\\ /\"");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("prm line");
    TCase *tc = tcase_create("line");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, fields_have_names_and_so_do_values);
    tcase_add_test(tc, a_command_has_its_opcode_elsewhere);
    tcase_add_test(tc, changes_have_both_values);
    tcase_add_test(tc, equal_structures_give_an_empty_line);
    tcase_add_test(tc, alternatives_are_printed_once);
    tcase_add_test(tc, chosen_fields_have_their_order);
    tcase_add_test(tc, fields_past_the_length_are_left_out);
    tcase_add_test(tc, a_long_line_is_cut);
    tcase_add_test(tc, a_long_part_is_cut);
    tcase_add_test(tc, a_value_without_a_name_is_a_number);
    tcase_add_test(tc, json_has_members);
    tcase_add_test(tc, json_groups_differ);
    tcase_add_test(tc, json_texts_are_escaped);
    suite_add_tcase(s, tc);
    return s;
}
