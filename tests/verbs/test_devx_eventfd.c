/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests DevX events that are signalled through the program's own descriptor. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

/* Returns the number of descriptors that a started program inherits. */
static unsigned inherited(void)
{
    unsigned n = 0;

    for (int i = 0; i < 256; i++) {
        int flags = fcntl(i, F_GETFD);

        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

/* eventfd_ctx_fdget() */
START_TEST(only_an_eventfd_can_be_subscribed)
{
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(v->a, 0);
    uint16_t port = PRM_EVENT_TYPE_PORT_CHANGE;
    int ends[2], file = open("/dev/null", O_WRONLY), fd = eventfd(0, 0);
    unsigned before;

    ck_assert_int_eq(pipe(ends), 0);
    errno = 0;
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, ends[1], NULL, port), EINVAL);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, file, NULL, port), EINVAL);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, -1, NULL, port), EBADF);
    close(file);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, file, NULL, port), EBADF);
    before = inherited();
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, fd, NULL, port), 0);
    /* a started program inherits none of the library's own */
    ck_assert_uint_eq(inherited(), before);
    close(fd);
    close(ends[0]);
    close(ends[1]);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

/* If an eventfd has counted up to its limit, write() blocks; eventfd_signal() does not. */
START_TEST(a_full_eventfd_holds_nobody_up)
{
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(v->a, 0);
    struct drv_event event = {.type = PRM_EVENT_TYPE_PORT_CHANGE};
    uint64_t most = UINT64_MAX - 1, count;
    int fd = eventfd(0, 0);

    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, fd, NULL, event.type), 0);
    ck_assert_int_eq(write(fd, &most, sizeof(most)), sizeof(most));
    hv_dv_event(v->hca[0], &event);
    ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
    ck_assert_uint_eq(count, most);
    hv_dv_event(v->hca[0], &event);
    ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
    ck_assert_uint_eq(count, 1);
    close(fd);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-devx-eventfd");
    TCase *tc = tcase_create("eventfd");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, only_an_eventfd_can_be_subscribed);
    tcase_add_test(tc, a_full_eventfd_holds_nobody_up);
    suite_add_tcase(suite, tc);
    return suite;
}
