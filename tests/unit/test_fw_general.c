/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests general objects: the header of the four commands, and mappings of an address to a QP.
 * test_fw_qp.c tests ranges of reserved QP numbers.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define IN_LEN  (PRM_SIZE(general_object_in) + PRM_SIZE(av_qp_mapping))
#define OUT_LEN (PRM_SIZE(general_obj_out_cmd_hdr) + PRM_SIZE(av_qp_mapping))

static const uint8_t there[16] = {[10] = 0xff, 0xff, 192, 0, 2, 2};

static struct fwd d;
static struct drv_cq cq;
static struct drv_qp qp;
static void *const in = (uint8_t[IN_LEN]){0}, *const out = (uint8_t[OUT_LEN]){0};

static void make_qp(void)
{
    struct drv_qp_attr attr = {
        .st = PRM_QP_ST_UD, .pdn = d.drv->pdn, .log_sq = 2, .log_rq = 2, .max_recv_sge = 1};

    ck_assert_int_eq(drv_create_cq(d.drv, 6, &cq), 0);
    attr.send_cq = attr.recv_cq = &cq;
    ck_assert_int_eq(drv_create_qp(d.drv, &attr, &qp), 0);
}

static void setup(void)
{
    fwd_open(&d);
    make_qp();
}

static void teardown(void)
{
    fwd_clear(&d);
}

static uint16_t user(void)
{
    struct prm_create_uctx_in create[1] = {0};
    struct prm_create_uctx_out made[1];

    PRM_SET(create_uctx_in, create, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_uint_eq(fwd_cmd(&d, create, sizeof(create), made, sizeof(made)), SYN_OK);
    return (uint16_t)PRM_GET(create_uctx_out, made, uid);
}

/* Begins in `in` a command about a type and an object. */
static void *begin(uint16_t opcode, uint16_t type, uint16_t uid, uint32_t id)
{
    memset(in, 0, IN_LEN);
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, type);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, id);
    return PRM_PTR(general_obj_in_cmd_hdr, in, op_param_create);
}

static enum syn run(void)
{
    return fwd_cmd(&d, in, IN_LEN, out, OUT_LEN);
}

/* CREATE of a mapping to the QP, in in. */
static struct prm_av_qp_mapping *mapping_in(uint16_t uid)
{
    struct prm_av_qp_mapping *mapping = PRM_PTR(general_object_in, in, object);
    struct prm_ud_av *av = PRM_PTR(av_qp_mapping, mapping, remote_address_vector);

    begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, uid, 0);
    PRM_SET(av_qp_mapping, mapping, qpn, qp.qpn);
    PRM_SET(ud_av, av, sl_or_eth_prio, 5 << 1);
    PRM_SET(ud_av, av, src_addr_index, 3);
    memcpy(PRM_PTR(ud_av, av, rgid_or_rip), there, sizeof(there));
    return mapping;
}

static uint32_t map(uint16_t uid)
{
    mapping_in(uid);
    ck_assert_uint_eq(run(), SYN_OK);
    return PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

static enum syn about(uint16_t opcode, uint16_t uid, uint32_t id)
{
    begin(opcode, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, uid, id);
    return run();
}

START_TEST(a_query_returns_the_mapping)
{
    uint32_t id = map(0), second = map(0);
    const void *mapping = (const uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr);
    const struct prm_ud_av *av = PRM_PTR(av_qp_mapping, mapping, remote_address_vector);

    ck_assert_uint_ne(id, second);
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, id), SYN_OK);
    ck_assert_uint_eq(PRM_GET(general_obj_out_cmd_hdr, out, obj_id), id);
    ck_assert_uint_eq(PRM_GET(av_qp_mapping, mapping, qpn), qp.qpn);
    ck_assert_uint_eq(PRM_GET(ud_av, av, sl_or_eth_prio), 5 << 1);
    ck_assert_uint_eq(PRM_GET(ud_av, av, src_addr_index), 3);
    ck_assert_mem_eq(PRM_PTR(ud_av, av, rgid_or_rip), there, sizeof(there));
    ck_assert_uint_eq(fwd_cmd(&d, in, IN_LEN, out, OUT_LEN - 4), SYN_OUT_LEN);
    ck_assert_uint_eq(about(PRM_CMD_OP_MODIFY_GENERAL_OBJECT, 0, id), SYN_NO_OBJ_TYPE);
    ck_assert_uint_eq(about(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, 0, id), SYN_OK);
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, id), SYN_NO_GENERAL_OBJECT);
    ck_assert_uint_eq(about(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, 0, id), SYN_NO_GENERAL_OBJECT);
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, second), SYN_OK);
}
END_TEST

/* mlx5dv_map_ah_to_qp(3): a mapping "is not affected by the destruction of QP qp_num". */
START_TEST(a_mapping_outlives_its_qp)
{
    struct prm_destroy_qp_in destroy[1] = {0};
    uint32_t id = map(0);

    PRM_SET(destroy_qp_in, destroy, opcode, PRM_CMD_OP_DESTROY_QP);
    PRM_SET(destroy_qp_in, destroy, qpn, qp.qpn);
    ck_assert_uint_eq(fwd_cmd(&d, destroy, sizeof(destroy), out, 16), SYN_OK);
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, id), SYN_OK);
    mapping_in(0);
    ck_assert_uint_eq(run(), SYN_QP_NUM);
}
END_TEST

START_TEST(a_mapping_that_cannot_be_is_refused)
{
    static const uint8_t fields[0x30] = {[0x0c] = 0xff, 0xff, 0xff, 0xff, /* qpn */
                                         [0x1c] = 0x0f,                   /* sl_or_eth_prio */
                                         [0x2c] = 0x0f, 0xf0};            /* src_addr_index */
    struct prm_av_qp_mapping *mapping = mapping_in(0);

    PRM_SET(av_qp_mapping, mapping, qpn, 0x1000000 | qp.qpn);
    ck_assert_uint_eq(run(), SYN_QP_NUM);
    for (size_t at = 0; at < 0x30; at++) { /* up to the GID */
        if (fields[at] != 0xff) {
            mapping_in(0);
            mapping->bytes[at] |= (uint8_t)~fields[at];
            ck_assert_msg(run() == SYN_RESERVED, "byte 0x%zx", at);
        }
    }
    mapping_in(0);
    ck_assert_uint_eq(fwd_cmd(&d, in, IN_LEN - 4, out, OUT_LEN), SYN_IN_LEN);
    ck_assert_uint_eq(d.fw->hca.av_qp_mappings.count, 0);
}
END_TEST

/* A user's objects, of either type, belong to nobody else, and are destroyed with the user. The
 * owner of the QP does not matter: rdma-core's own test maps an address to a QP of another
 * context. */
START_TEST(an_object_is_its_users_alone)
{
    uint16_t uid = user(), other = user();
    uint32_t id = map(uid), first;
    struct prm_general_obj_create_param *param;
    struct prm_destroy_uctx_in destroy[1] = {0};

    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, other, id), SYN_BAD_UID);
    ck_assert_uint_eq(about(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, other, id), SYN_BAD_UID);
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, uid, id), SYN_OK);

    param = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN, uid, 0);
    PRM_SET(general_obj_create_param, param, log_obj_range, OBJ_LOG_RESERVED);
    ck_assert_uint_eq(run(), SYN_OK);
    first = PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN, other, first);
    ck_assert_uint_eq(run(), SYN_BAD_UID);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN, uid, first);
    ck_assert_uint_eq(run(), SYN_OK);
    /* a number counts within its type only */
    ck_assert_uint_eq(about(PRM_CMD_OP_QUERY_GENERAL_OBJECT, uid, first), SYN_NO_GENERAL_OBJECT);

    PRM_SET(destroy_uctx_in, destroy, opcode, PRM_CMD_OP_DESTROY_UCTX);
    PRM_SET(destroy_uctx_in, destroy, uid, uid);
    ck_assert_uint_eq(fwd_cmd(&d, destroy, sizeof(destroy), out, 16), SYN_OK);
    ck_assert_uint_eq(d.fw->hca.av_qp_mappings.count, 0);
    ck_assert_uint_eq(d.fw->hca.reserved_qpns.count, 0);
}
END_TEST

/* A header may name no other function's object, no alias, no part of an object, and not more than
 * one object. */
START_TEST(a_header_with_unsupported_fields_is_refused)
{
    static const struct {
        uint32_t op_param;
        enum syn create, other;
    } heads[] = {
        {1u << 31, SYN_NO_FUNCTION, SYN_NO_FUNCTION}, /* alias_object */
        {1, SYN_RESERVED, SYN_RESERVED},              /* obj_offset */
        {1u << 24, SYN_LIMIT, SYN_RESERVED},          /* log_obj_range */
        {1u << 29, SYN_RESERVED, SYN_RESERVED},
    };
    uint32_t id = map(0);

    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        uint8_t *param = (uint8_t *)in + PRM_OFFSET(general_obj_in_cmd_hdr, op_param_create);

        mapping_in(0);
        prm_store32(param, heads[i].op_param);
        ck_assert_uint_eq(run(), heads[i].create);
        begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, 0, id);
        prm_store32(param, heads[i].op_param);
        ck_assert_uint_eq(run(), heads[i].other);
        begin(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, 0, id);
        prm_store32(param, heads[i].op_param);
        ck_assert_uint_eq(run(), heads[i].other);
    }
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, 0, id);
    PRM_SET(general_obj_in_cmd_hdr, in, vhca_tunnel_id, 1);
    ck_assert_uint_eq(run(), SYN_NO_FUNCTION);
}
END_TEST

/* A type that general_obj_types of a generation lacks is refused; the other type is not. */
START_TEST(no_mappings_before_connectx_5)
{
    struct prm_general_obj_create_param *param;
    uint8_t cap[4096];

    fwd_clear(&d);
    fwd_init_as(&d, _i ? "cx4lx" : "cx4");
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, general_obj_types),
                      1ull << PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    mapping_in(0);
    ck_assert_uint_eq(run(), SYN_NO_OBJ_TYPE);
    param = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN, 0, 0);
    PRM_SET(general_obj_create_param, param, log_obj_range, OBJ_LOG_RESERVED);
    ck_assert_uint_eq(run(), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw general");
    TCase *tc = tcase_create("objects");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_query_returns_the_mapping);
    tcase_add_test(tc, a_mapping_outlives_its_qp);
    tcase_add_test(tc, a_mapping_that_cannot_be_is_refused);
    tcase_add_test(tc, an_object_is_its_users_alone);
    tcase_add_test(tc, a_header_with_unsupported_fields_is_refused);
    tcase_add_loop_test(tc, no_mappings_before_connectx_5, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
