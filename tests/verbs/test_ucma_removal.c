/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests identifiers whose device is removed (guest-lib/cm/ucma.h), as in cma_process_remove() and
 * ucma_event_handler() of Linux. Host 0, or the listening host 1, loses its device.
 */
#include <check.h>
#include <string.h>
#include "tests/verbs/ucma_hosts.h"

static void remove_device(unsigned host)
{
    ucma_lock(hosts[host].ucma);
    ucma_remove_device(hosts[host].ucma, 0);
    ucma_unlock(hosts[host].ucma);
    g_queue_clear_full(&mails, g_free); /* nothing leaves a removed card */
}

static int disconnect(struct ucma_file *file, uint32_t id)
{
    return COMMAND(file, DISCONNECT, (struct rdma_ucm_disconnect){id});
}

/* An identifier that is bound to the device gets the event once. It can be destroyed; everything
 * else is refused. */
START_TEST(a_bound_identifier_gets_the_event)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP);
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_query_route_resp route;

    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    remove_device(0);
    event = event_of(file, CMA_EVENT_DEVICE_REMOVAL);
    ck_assert_uint_eq(event.uid, 7);
    ck_assert_uint_eq(event.id, id);
    ck_assert_uint_eq(event.status, 0);
    ck_assert(!is_readable(file));
    ck_assert_int_eq(COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id}),
                     ENXIO);
    ck_assert_int_eq(ASK(file, QUERY_ROUTE, route,
                         (struct rdma_ucm_query){.response = (uintptr_t)&route, .id = id}),
                     ENXIO);
    ck_assert_int_eq(disconnect(file, id), ENXIO);
    ck_assert_uint_eq(destroy(file, id), 2);
}
END_TEST

/* An identifier whose device was removed does not migrate to another file. */
START_TEST(an_identifier_of_a_removed_device_does_not_migrate)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP);
    struct rdma_ucm_migrate_resp resp;

    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", PORT), 0);
    remove_device(0);
    event_of(file, CMA_EVENT_DEVICE_REMOVAL);
    ck_assert_int_eq(
        ASK(second, MIGRATE_ID, resp,
            (struct rdma_ucm_migrate_id){.response = (uintptr_t)&resp, .id = id, .fd = 0}),
        ENXIO);
    ck_assert_uint_eq(destroy(file, id), 1);
}
END_TEST

START_TEST(a_connection_ends)
{
    struct ucma_file *file = hosts[0].file;
    struct rdma_ucm_event_resp event;
    uint32_t id;

    listener(0);
    id = connecting(0xa, "");
    event = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST);
    ck_assert_int_eq(COMMAND(hosts[1].file, ACCEPT,
                             (struct rdma_ucm_accept){
                                 .uid = 0xb, .id = event.id, .conn_param = param(0x222, "")}),
                     0);
    event_of(file, CMA_EVENT_CONNECT_RESPONSE);
    ck_assert_int_eq(COMMAND(file, ACCEPT, (struct rdma_ucm_accept){.id = id}), 0);
    event_of(hosts[1].file, CMA_EVENT_ESTABLISHED);
    remove_device(0);
    event_of(file, CMA_EVENT_DEVICE_REMOVAL);
    ck_assert_uint_eq(destroy(file, id), 4);
    deliver();
    ck_assert(!is_readable(hosts[1].file)); /* its peer gets no event */
}
END_TEST

/* A request that has not been accepted gets no event (its uid is 0), and can no longer be accepted.
 * Its listener on all devices stays, and nobody reaches it (cma_listen_handler()). */
START_TEST(a_listener_of_all_addresses_stays)
{
    struct ucma_file *file = hosts[1].file;
    uint32_t listens = listener(0);
    struct rdma_ucm_event_resp event;

    connecting(0xa, "");
    event = event_of(file, CMA_EVENT_CONNECT_REQUEST);
    remove_device(1);
    ck_assert(!is_readable(file));
    ck_assert_int_eq(COMMAND(file, ACCEPT,
                             (struct rdma_ucm_accept){
                                 .uid = 0xb, .id = event.id, .conn_param = param(0x222, "")}),
                     ENXIO);
    ck_assert_uint_eq(destroy(file, event.id), 0);
    ck_assert_int_eq(listen_on(file, listens, 3), EINVAL); /* it is listening */
    ck_assert_uint_eq(destroy(file, listens), 1);
}
END_TEST

/* A listener at the device's own address is bound to the device; its port is free afterwards. */
START_TEST(a_listener_at_its_address_gets_the_event)
{
    struct ucma_file *file = hosts[1].file;
    uint32_t listens = create(file, 1, RDMA_PS_TCP), other = create(file, 2, RDMA_PS_TCP);

    ck_assert_int_eq(bind_to(file, listens, "10.0.0.2", PORT), 0);
    ck_assert_int_eq(listen_on(file, listens, 0), 0);
    ck_assert_int_eq(bind_to(file, other, "0.0.0.0", PORT), EADDRNOTAVAIL);
    remove_device(1);
    ck_assert_uint_eq(event_of(file, CMA_EVENT_DEVICE_REMOVAL).uid, 1);
    ck_assert_int_eq(bind_to(file, other, "0.0.0.0", PORT), 0);
}
END_TEST

/* An identifier that is resolving an address and is bound to no device does not find its peer. */
START_TEST(a_pending_resolution_fails)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP), bound = create(file, 8, RDMA_PS_TCP);

    found = EAGAIN;
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    ck_assert_int_eq(bind_to(file, bound, "10.0.0.1", 0), 0);
    ck_assert_int_eq(resolve(file, bound, "10.0.0.2"), 0);
    remove_device(0);
    ck_assert_int_eq((int)event_of(file, CMA_EVENT_ADDR_ERROR).status, -ENODEV);
    ck_assert_uint_eq(event_of(file, CMA_EVENT_DEVICE_REMOVAL).uid, 8);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), ENODEV);
    destroy(file, id);
    destroy(file, bound);
}
END_TEST

/* No route exists, and the device's addresses belong to nobody. */
START_TEST(new_identifiers_find_no_device)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP);

    remove_device(0);
    ck_assert(!is_readable(file)); /* it is bound to no device */
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 0), EADDRNOTAVAIL);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), ENODEV);
    ck_assert_int_eq(resolve(file, id, "127.0.0.1"), ENODEV);
    destroy(file, id);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-ucma-removal");
    TCase *tc = tcase_create("removal");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_bound_identifier_gets_the_event);
    tcase_add_test(tc, an_identifier_of_a_removed_device_does_not_migrate);
    tcase_add_test(tc, a_connection_ends);
    tcase_add_test(tc, a_listener_of_all_addresses_stays);
    tcase_add_test(tc, a_listener_at_its_address_gets_the_event);
    tcase_add_test(tc, a_pending_resolution_fails);
    tcase_add_test(tc, new_identifiers_find_no_device);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
