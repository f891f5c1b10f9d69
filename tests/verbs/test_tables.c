/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the tables of an open device (kernel/handles.c, user/uidx.c), without a device: handles, by
 * which a program names objects to the kernel, and user indices, by which CQEs name queues.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/user/user.h"
#include "tests/unit/suite.h"

static struct hv_context *ctx;
static struct ibv_context *context;
static char objs[8]; /* stand for objects */

static void setup(void)
{
    ctx = calloc(1, sizeof(*ctx));
    ctx->file = hv_file_new();
    pthread_mutex_init(&ctx->uidx.lock, NULL);
    context = &ctx->ibv.context;
}

static void teardown(void)
{
    if (ctx) {
        hv_uidx_fini(ctx);
        hv_file_leave(ctx->file, ctx);
        hv_file_free(ctx->file, false); /* frees the context, too */
    }
}

/* -- handles ----------------------------------------------------------------------------------- */

static void expect_handle(enum hv_handle_kind kind, uint32_t handle, void *obj, int err)
{
    int got = -1;

    ck_assert_ptr_eq(hv_handle_get(context, kind, handle, &got), obj);
    ck_assert_int_eq(got, err);
}

/* rdma_core.c of the kernel: xa_alloc() gives the lowest free number, whatever the kind. */
START_TEST(the_lowest_free_handle_is_next)
{
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(hv_handle_add(context, i % 2 ? HV_HANDLE_CQ : HV_HANDLE_PD, &objs[i]), i);
    }
    hv_handle_del(context, 4);
    hv_handle_del(context, 1);
    ck_assert_uint_eq(hv_handle_add(context, HV_HANDLE_QP, &objs[6]), 1);
    ck_assert_uint_eq(hv_handle_add(context, HV_HANDLE_QP, &objs[7]), 4);
    ck_assert_uint_eq(hv_handle_add(context, HV_HANDLE_QP, &objs[7]), 6);
    expect_handle(HV_HANDLE_QP, 1, &objs[6], 0);
    expect_handle(HV_HANDLE_PD, 0, &objs[0], 0);
    expect_handle(HV_HANDLE_CQ, 5, &objs[5], 0);
}
END_TEST

START_TEST(a_handle_is_of_one_object_and_kind)
{
    hv_handle_add(context, HV_HANDLE_PD, &objs[0]);
    hv_handle_add(context, HV_HANDLE_CQ, &objs[1]);
    hv_handle_add(context, HV_HANDLE_PD, &objs[2]);
    expect_handle(HV_HANDLE_CQ, 0, NULL, EINVAL);
    expect_handle(HV_HANDLE_PD, 3, NULL, ENOENT);
    expect_handle(HV_HANDLE_PD, UINT32_MAX, NULL, ENOENT);
    ck_assert_int_eq(hv_handle_check(context, HV_HANDLE_PD, 0, &objs[0]), 0);
    ck_assert_int_eq(hv_handle_check(context, HV_HANDLE_PD, 2, &objs[0]), EINVAL);
    ck_assert_int_eq(hv_handle_check(context, HV_HANDLE_PD, 1, &objs[0]), EINVAL);
    hv_handle_del(context, 0);
    expect_handle(HV_HANDLE_PD, 0, NULL, ENOENT);
    ck_assert_int_eq(hv_handle_check(context, HV_HANDLE_PD, 0, &objs[0]), ENOENT);
}
END_TEST

START_TEST(a_file_is_closed_with_its_last_context)
{
    struct hv_context *other = calloc(1, sizeof(*other));

    ck_assert_ptr_eq(hv_file_share(ctx->file), ctx->file);
    hv_handle_add(context, HV_HANDLE_PD, &objs[0]);
    ck_assert(!hv_file_leave(ctx->file, other));
    expect_handle(HV_HANDLE_PD, 0, &objs[0], 0);
    ck_assert(hv_file_leave(ctx->file, ctx));
    hv_file_free(ctx->file, false);
    ctx = NULL;
}
END_TEST

static GString *ended;

/* Ends an object. An object that must wait for another object's end is in use until then. */
static int end_object(void *obj)
{
    char name = *(char *)obj;
    bool in_use = name == 'a' && !strchr(ended->str, 'b');

    if (in_use || name == 'z') {
        return EBUSY;
    }
    g_string_append_c(ended, name);
    hv_handle_del(context, (uint32_t)((char *)obj - objs));
    return 0;
}

/* uverbs_destroy_ufile_hw(): the youngest first, whatever its handle; objects in use are tried
 * again; the loop ends even if an object can never be destroyed. */
START_TEST(what_is_left_in_a_file_ends_the_youngest_first)
{
    int (*end[HV_HANDLE_KINDS])(void *obj) = {[HV_HANDLE_MR] = end_object};

    ended = g_string_new(NULL);
    memcpy(objs, "xbcadz", 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(hv_handle_add(context, HV_HANDLE_MR, &objs[i]), i);
    }
    hv_handle_del(context, 0);
    hv_handle_add(context, HV_HANDLE_MR, &objs[0]);
    ck_assert_uint_eq(hv_file_end_objects(ctx->file, end), 1);
    ck_assert_str_eq(ended->str, "xdcba");
    expect_handle(HV_HANDLE_MR, 5, &objs[5], 0);
    g_string_free(ended, TRUE);
}
END_TEST

/* -- user indices ------------------------------------------------------------------------------ */

static void expect_uidx(uint32_t uidx, enum hv_rsc_type type, const void *obj)
{
    const struct hv_rsc *rsc = hv_uidx_find(ctx, uidx);

    ck_assert_int_eq(rsc ? rsc->type : HV_RSC_NONE, type);
    ck_assert_ptr_eq(rsc ? rsc->obj : NULL, obj);
}

START_TEST(a_user_index_finds_its_queue)
{
    int qp = hv_uidx_alloc(ctx, HV_RSC_QP, &objs[0]);
    int rwq = hv_uidx_alloc(ctx, HV_RSC_RWQ, &objs[1]);

    ck_assert_int_eq(qp, 0);
    ck_assert_int_eq(rwq, 1);
    expect_uidx(0, HV_RSC_QP, &objs[0]);
    expect_uidx(1, HV_RSC_RWQ, &objs[1]);
    expect_uidx(2, HV_RSC_NONE, NULL);
    expect_uidx(HV_UIDX_NONE - 1, HV_RSC_NONE, NULL); /* in a chunk that does not exist */
    hv_uidx_free(ctx, 0);
    expect_uidx(0, HV_RSC_NONE, NULL);
    expect_uidx(1, HV_RSC_RWQ, &objs[1]);
    ck_assert_int_eq(hv_uidx_alloc(ctx, HV_RSC_XSRQ, &objs[2]), 0);
    expect_uidx(0, HV_RSC_XSRQ, &objs[2]);
}
END_TEST

/* Freed indices are used again before the table grows, and no index is given twice. */
START_TEST(indices_beyond_a_chunk)
{
    const int chunk = 1 << HV_UIDX_CHUNK_SHIFT;

    for (int i = 0; i < chunk + 2; i++) {
        ck_assert_int_eq(hv_uidx_alloc(ctx, HV_RSC_QP, &objs[i % 8]), i);
    }
    expect_uidx((uint32_t)chunk + 1, HV_RSC_QP, &objs[(chunk + 1) % 8]);
    hv_uidx_free(ctx, 5);
    hv_uidx_free(ctx, (uint32_t)chunk);
    ck_assert_int_eq(hv_uidx_alloc(ctx, HV_RSC_QP, &objs[0]), 5);
    ck_assert_int_eq(hv_uidx_alloc(ctx, HV_RSC_QP, &objs[0]), chunk);
    ck_assert_int_eq(hv_uidx_alloc(ctx, HV_RSC_QP, &objs[0]), chunk + 2);
}
END_TEST

/* -- GIDs -------------------------------------------------------------------------------------- */

START_TEST(gids_of_ipv4_and_of_groups)
{
    static const struct {
        union ibv_gid gid;
        bool ipv4, multicast;
    } cases[] = {
        {{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, true, false},
        {{{[10] = 0xff, 0xff, 223, 255, 255, 255}}, true, false},
        {{{[10] = 0xff, 0xff, 224, 0, 0, 1}}, true, true},
        {{{[10] = 0xff, 0xff, 239, 255, 255, 255}}, true, true},
        {{{[10] = 0xff, 0xff, 240, 0, 0, 0}}, true, false},
        {{{[10] = 0xff, 0xfe, 224, 0, 0, 1}}, false, false},
        {{{1, [10] = 0xff, 0xff, 224, 0, 0, 1}}, false, false},
        {{{0xfe, 0x80, [15] = 1}}, false, false},
        {{{0xff, 0x02, [15] = 1}}, false, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ck_assert_int_eq(hv_gid_is_ipv4(&cases[i].gid), cases[i].ipv4);
        ck_assert_int_eq(hv_gid_is_multicast(&cases[i].gid), cases[i].multicast);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-tables");
    TCase *tc = tcase_create("tables");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_lowest_free_handle_is_next);
    tcase_add_test(tc, a_handle_is_of_one_object_and_kind);
    tcase_add_test(tc, a_file_is_closed_with_its_last_context);
    tcase_add_test(tc, what_is_left_in_a_file_ends_the_youngest_first);
    tcase_add_test(tc, a_user_index_finds_its_queue);
    tcase_add_test(tc, indices_beyond_a_chunk);
    tcase_add_test(tc, gids_of_ipv4_and_of_groups);
    suite_add_tcase(suite, tc);
    return suite;
}
