/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the commands on signature values: how many are made at a time, and of which domain. */
#include <check.h>
#include "fw/fw_internal.h"
#include "model/core/pd.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;
static uint32_t pdn;
static void *const out = (uint8_t[0x40]){0};

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_give_pages(&d, 4096), SYN_OK);
    ck_assert_int_eq(pd_alloc(&d.fw->hca, 0, &pdn), SYN_OK);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static enum syn psv(uint16_t opcode, unsigned n, uint32_t num)
{
    struct prm_create_psv_in request[1] = {0};

    PRM_SET(create_psv_in, request, opcode, opcode);
    PRM_SET(create_psv_in, request, num_psv, n);
    PRM_SET(create_psv_in, request, pd, num); /* DESTROY_PSV: psvn */
    return fwd_cmd(&d, request, sizeof(request), out,
                   opcode == PRM_CMD_OP_CREATE_PSV ? PRM_SIZE(create_psv_out) : 16);
}

/* Driver mlx5_core_create_psv(): one command creates up to four PSVs. While they exist, their PD
 * cannot be destroyed. */
START_TEST(signature_values_are_of_a_pd)
{
    uint32_t first, last, users;

    users = obj_find(&d.fw->hca.pds, pdn)->refs;
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 4, pdn), SYN_OK);
    first = PRM_GET(create_psv_out, out, psv0_index);
    last = PRM_GET(create_psv_out, out, psv3_index);
    ck_assert_uint_eq(d.fw->hca.psvs.count, 4);
    ck_assert_uint_eq(obj_find(&d.fw->hca.pds, pdn)->refs, users + 4);
    ck_assert_uint_eq(psv(PRM_CMD_OP_DESTROY_PSV, 0, first), SYN_OK);
    ck_assert_uint_eq(psv(PRM_CMD_OP_DESTROY_PSV, 0, first), SYN_NO_PSV);
    ck_assert_uint_eq(psv(PRM_CMD_OP_DESTROY_PSV, 0, last), SYN_OK);
    ck_assert_uint_eq(obj_find(&d.fw->hca.pds, pdn)->refs, users + 2);
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 0, pdn), SYN_PSV_COUNT);
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 5, pdn), SYN_PSV_COUNT);
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 1, pdn + 1), SYN_NO_PD);
}
END_TEST

/* All or none: if there is room for three, a command for four creates none. */
START_TEST(signature_values_come_together)
{
    while (d.fw->hca.psvs.count < d.fw->hca.psvs.end - d.fw->hca.psvs.first - 3) {
        ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 1, pdn), SYN_OK);
    }
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 4, pdn), SYN_NO_MEMORY);
    ck_assert_uint_eq(psv(PRM_CMD_OP_CREATE_PSV, 3, pdn), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw-psv");
    TCase *tc = tcase_create("psv");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, signature_values_are_of_a_pd);
    tcase_add_test(tc, signature_values_come_together);
    suite_add_tcase(s, tc);
    return s;
}
