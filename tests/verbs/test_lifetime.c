/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a device that is closed with objects left: the file of ib_uverbs owned them, and closing it
 * destroys all of them, while another context keeps the HCA.
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/programs/own_wire.h"
#include "tests/verbs/things.h"

static struct ibv_device **list;
static struct ibv_context *witness; /* keeps the HCA in use */
static GRand *rand_;
static int file;
static struct census before;

static struct ibv_context *open_another(void)
{
    struct ibv_context *opened = ibv_open_device(list[0]);

    ck_assert_ptr_nonnull(opened);
    return opened;
}

static void setup(void)
{
    /* such as "3 objects of a closed device cannot be destroyed" */
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
    witness = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(witness);
    rand_ = g_rand_new_with_seed(1);
    file = memfd_create("domain", MFD_CLOEXEC);
    before = census_take(witness);
}

static void teardown(void)
{
    g_rand_free(rand_);
    close(file);
    ck_assert_int_eq(ibv_close_device(witness), 0);
    ibv_free_device_list(list);
}

static void expect_nothing_left(const char *when)
{
    struct census after = census_take(witness);

    census_compare(&after, &before, when);
}

/* Makes one kind, with the objects that it needs; twice, with other choices. */
START_TEST(each_kind_ends_with_its_file)
{
    for (enum thing kind = 0; kind < THINGS; kind++) {
        for (int round = 0; round < 2; round++) {
            struct things *t = things_new(open_another(), rand_, file);

            for (enum thing need = 0; need <= kind; need++) {
                thing_make(t, need);
            }
            while (t->made[kind]->len < 3) {
                ck_assert_msg(thing_make(t, kind), "%s: errno %d", thing_names[kind], errno);
            }
            for (enum thing need = THINGS; need-- > 0;) {
                for (unsigned i = t->made[need]->len; need != kind && i-- > 0;) {
                    thing_destroy(t, need, i); /* except objects in use */
                }
            }
            things_close(t);
            expect_nothing_left(thing_names[kind]);
        }
    }
}
END_TEST

/* Makes many objects of all kinds, which refer to one another. */
START_TEST(all_kinds_end_with_their_file)
{
    struct things *t = things_new(open_another(), rand_, file);

    for (int i = 0; i < 20 * THINGS; i++) {
        thing_make(t, (enum thing)(i % THINGS));
    }
    things_close(t);
    expect_nothing_left("all kinds");
}
END_TEST

/* Closing the file also takes a queue pair out of its multicast groups. In a group, it could not be
 * destroyed. */
START_TEST(a_member_of_a_multicast_group_ends_with_its_file)
{
    struct ibv_context *ctx = open_another();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    union ibv_gid group = {.raw = {[0] = 0xff, [1] = 0x0e, [15] = 7}};

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_attach_mcast(qp, &group, 0), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), EBUSY);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    expect_nothing_left("a member of a multicast group");
}
END_TEST

/* Contexts that share a file: a context's objects stay until the last context closes, and their
 * events are delivered to nobody. */
START_TEST(what_is_shared_ends_with_the_last_context)
{
    struct things *t = things_new(open_another(), rand_, file);
    struct ibv_context *other = ibv_import_device(t->ctx->cmd_fd);
    struct ibv_pd *pd, *imported;
    struct ibv_port_attr port;
    uint32_t handle;

    ck_assert_ptr_nonnull(other);
    for (int i = 0; i < 3 * THINGS; i++) {
        thing_make(t, (enum thing)(i % THINGS));
    }
    pd = t->made[THING_PD]->pdata[0];
    handle = pd->handle;
    ck_assert_int_eq(ibv_close_device(t->ctx), 0);
    ck_assert_int_eq(ibv_query_port(other, 1, &port), 0);
    imported = ibv_import_pd(other, handle);
    ck_assert_ptr_nonnull(imported);
    ibv_unimport_pd(imported);
    ck_assert_int_eq(ibv_close_device(other), 0);
    expect_nothing_left("a shared file");
    things_leave(t);
}
END_TEST

/* A target was destroyed with its file: its peer gets no answer, and nothing is written to where
 * the target's context was. */
START_TEST(a_target_is_gone_for_its_peer)
{
    struct ibv_context *target_ctx = open_another();
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_qp_init_attr_ex target_attr = {.qp_type = IBV_QPT_XRC_RECV,
                                              .comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                              .xrcd = ibv_open_xrcd(target_ctx, &domain)};
    static struct ibv_qp *target; /* it stays the program's */
    uint32_t number;
    struct hv_hca *hca = hv_hca_of(witness);

    target = ibv_create_qp_ex(target_ctx, &target_attr);
    number = target->qp_num;
    ck_assert_ptr_eq(hv_number_find(hca, HV_ABOUT_QP, number), target);
    ck_assert_int_eq(ibv_close_device(target_ctx), 0);
    ck_assert_ptr_null(hv_number_find(hca, HV_ABOUT_QP, number));
    expect_nothing_left("a target");
}
END_TEST

/* uverbs_completion_event_file_destroy_uobj(): the descriptor stays, and reports that no more
 * events come. Then the channel can be destroyed. */
START_TEST(a_channel_outlives_its_file)
{
    struct ibv_context *opened = open_another();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(opened);
    struct mlx5dv_devx_event_channel *events = hv_dv_devx_create_event_channel(opened, 0);
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};

    ck_assert_int_eq(poll(&ready, 1, 0), 0);
    ck_assert_int_eq(ibv_close_device(opened), 0);
    expect_nothing_left("channels");
    ck_assert_int_eq(poll(&ready, 1, 0), 1);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
    hv_dv_devx_destroy_event_channel(events);
}
END_TEST

/* lookup_get_fd_uobject() */
START_TEST(a_channel_of_another_file_is_refused)
{
    struct ibv_context *opened = open_another();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(opened);

    errno = 0;
    ck_assert_ptr_null(ibv_create_cq(witness, 4, NULL, channel, 0));
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
    ck_assert_int_eq(ibv_close_device(opened), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-lifetime");
    TCase *tc = tcase_create("closing");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, each_kind_ends_with_its_file);
    tcase_add_test(tc, all_kinds_end_with_their_file);
    tcase_add_test(tc, a_member_of_a_multicast_group_ends_with_its_file);
    tcase_add_test(tc, what_is_shared_ends_with_the_last_context);
    tcase_add_test(tc, a_target_is_gone_for_its_peer);
    tcase_add_test(tc, a_channel_outlives_its_file);
    tcase_add_test(tc, a_channel_of_another_file_is_refused);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "verbs-lifetime");
}
