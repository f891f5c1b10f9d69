/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what the legacy library writes to a WQE for a calculation, and what it reports of them. */
#include <check.h>
#include <errno.h>
#include <glib.h>
#include "guest-lib/verbs/exp/calc.h"
#include "tests/unit/suite.h"

static const enum ibv_exp_wr_opcode with_calc[] = {
    IBV_EXP_WR_SEND, IBV_EXP_WR_RDMA_WRITE, IBV_EXP_WR_RDMA_WRITE_WITH_IMM, IBV_EXP_WR_RDMA_READ};

static struct ibv_exp_send_wr request(enum ibv_exp_wr_opcode opcode, unsigned op, unsigned type)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = opcode, .exp_send_flags = IBV_EXP_SEND_WITH_CALC};

    wr.op.calc.calc_op = (enum ibv_exp_calc_op)op;
    wr.op.calc.data_type = (enum ibv_exp_calc_data_type)type;
    wr.op.calc.data_size = IBV_EXP_CALC_DATA_SIZE_64_BIT;
    return wr;
}

/* libmlx5's mlx5_calc_ops_table: 1 and 2 add integers and floating point numbers, 3 is MAXLOC, and
 * 4, 5 and 6 are AND, OR and XOR of any type. */
START_TEST(each_operation_has_its_number)
{
    static const struct {
        unsigned op;
        uint8_t opmod[IBV_EXP_CALC_DATA_TYPE_NUMBER]; /* INT, UINT, FLOAT; 0: EINVAL */
    } rows[] = {{IBV_EXP_CALC_OP_ADD, {1, 1, 2}},
                {IBV_EXP_CALC_OP_MAXLOC, {0, 3, 0}},
                {IBV_EXP_CALC_OP_BAND, {4, 4, 4}},
                {IBV_EXP_CALC_OP_BOR, {5, 5, 5}},
                {IBV_EXP_CALC_OP_BXOR, {6, 6, 6}}};

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned type = 0; type < IBV_EXP_CALC_DATA_TYPE_NUMBER; type++) {
            struct ibv_exp_send_wr wr = request(with_calc[_i], rows[i].op, type);
            uint8_t opmod = 0xff;

            ck_assert_int_eq(hv_exp_calc_opmod(&wr, true, &opmod),
                             rows[i].opmod[type] ? 0 : EINVAL);
            ck_assert_uint_eq(opmod, rows[i].opmod[type]);
            ck_assert_int_eq(hv_exp_calc_opmod(&wr, false, &opmod), EINVAL);
        }
    }
}
END_TEST

START_TEST(what_is_no_calculation_is_refused)
{
    struct ibv_exp_send_wr op = request(IBV_EXP_WR_SEND, IBV_EXP_CALC_OP_NUMBER, 0),
                           type = request(IBV_EXP_WR_SEND, 0, IBV_EXP_CALC_DATA_TYPE_NUMBER),
                           size = request(IBV_EXP_WR_SEND, 0, 0);
    uint8_t opmod;

    size.op.calc.data_size = IBV_EXP_CALC_DATA_SIZE_NUMBER;
    ck_assert_int_eq(hv_exp_calc_opmod(&op, true, &opmod), EINVAL);
    ck_assert_int_eq(hv_exp_calc_opmod(&type, true, &opmod), EINVAL);
    ck_assert_int_eq(hv_exp_calc_opmod(&size, true, &opmod), EINVAL);
}
END_TEST

/* Without the flag, the other members do not count. Other opcodes go out without a calculation. */
START_TEST(other_requests_have_no_operation)
{
    struct ibv_exp_send_wr plain = request(IBV_EXP_WR_SEND, 99, 99),
                           imm = request(IBV_EXP_WR_SEND_WITH_IMM, 99, 99);
    uint8_t opmod = 1;

    plain.exp_send_flags = 0;
    ck_assert_int_eq(hv_exp_calc_opmod(&plain, false, &opmod), 0);
    ck_assert_uint_eq(opmod, 0);
    opmod = 1;
    ck_assert_int_eq(hv_exp_calc_opmod(&imm, true, &opmod), 0);
    ck_assert_uint_eq(opmod, 0);
}
END_TEST

/* libmlx5's query_device() has these numbers, whatever the device says. */
START_TEST(the_reported_operations)
{
    struct ibv_exp_device_calc_cap caps;

    hv_exp_calc_caps(&caps);
    ck_assert_uint_eq(caps.data_types, 7);
    ck_assert_uint_eq(caps.data_sizes, 1);
    ck_assert_uint_eq(caps.int_ops, 0x1d);
    ck_assert_uint_eq(caps.uint_ops, 0x1d);
    ck_assert_uint_eq(caps.fp_ops, 0x1d);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("experimental verbs: calculations");
    TCase *tc = tcase_create("requests");

    tcase_add_loop_test(tc, each_operation_has_its_number, 0, G_N_ELEMENTS(with_calc));
    tcase_add_test(tc, what_is_no_calculation_is_refused);
    tcase_add_test(tc, other_requests_have_no_operation);
    tcase_add_test(tc, the_reported_operations);
    suite_add_tcase(s, tc);
    return s;
}
