/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a port of the connection manager: how it handles the datagrams of its queue pair 1, in
 * turns.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/cm/port.h"
#include "guest-lib/verbs/kernel/config.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define GID_IPV4 1
#define FLOOD    (3 * CM_PORT_TURN + 8)

static struct verbs_table *v;
static struct cm_port ports[2];
static struct cm *cm;
static bool has_arrived;

static void arrived(void *opaque)
{
    has_arrived = true;
}

static void send_nothing(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    ck_abort_msg("what is malformed is answered");
}

static uint64_t clock_ns(void *opaque)
{
    return 1;
}

static uint32_t random32(void *opaque)
{
    return 1;
}

static uint64_t guid(void *opaque, unsigned port)
{
    return 1;
}

static const struct cm_ops ops = {
    .send = send_nothing, .now_ns = clock_ns, .random = random32, .ca_guid = guid};

static void setup(void)
{
    struct cma_device device;

    v = verbs_table_new();
    verbs_must_be_0(cm_port_open(&ports[0], 0, v->a, arrived, NULL, &device));
    verbs_must_be_0(cm_port_open(&ports[1], 0, v->b, arrived, NULL, &device));
    cm = cm_new(&ops, NULL);
}

static void teardown(void)
{
    cm_free(cm);
    cm_port_close(&ports[0]);
    cm_port_close(&ports[1]);
    verbs_table_free(v);
}

/* Sends datagrams of no class from host 0 to host 1, at most as many as are sent at a time. */
static void flood(unsigned n)
{
    static const uint8_t mad[CM_MAD_LEN];
    struct cm_av av = {.sgid_index = GID_IPV4};

    memcpy(av.dgid, hv_device(v->b->device)->config->gid[GID_IPV4].raw, sizeof(av.dgid));
    for (unsigned i = 0; i < n; i++) {
        cm_port_send(&ports[0], &av, mad);
    }
    while (n) { /* waiting sends go out when others are done */
        table_wait(v);
        cm_port_run(&ports[0], cm);
        n -= MIN(n, CM_PORT_TURN);
    }
}

/* The connection manager holds its lock for a turn, and a program's requests wait meanwhile.
 * Therefore it handles at most CM_PORT_TURN datagrams of a flooding peer at a time, and each
 * datagram once. */
START_TEST(a_turn_takes_no_more_than_its_share)
{
    const uint64_t *heard = &cm_get_stats(cm)->malformed;

    flood(FLOOD);
    for (unsigned turn = 1; turn <= FLOOD / CM_PORT_TURN; turn++) {
        ck_assert(cm_port_run(&ports[1], cm));
        ck_assert_uint_eq(*heard, turn * CM_PORT_TURN);
    }
    ck_assert(!cm_port_run(&ports[1], cm));
    ck_assert_uint_eq(*heard, FLOOD);
}
END_TEST

/* After the callback has found no more datagrams, it is called for the next one. */
START_TEST(the_next_one_is_announced)
{
    flood(CM_PORT_TURN);
    ck_assert(cm_port_run(&ports[1], cm));
    ck_assert(!cm_port_run(&ports[1], cm));
    has_arrived = false;
    flood(1);
    ck_assert(has_arrived);
    ck_assert(!cm_port_run(&ports[1], cm));
    ck_assert_uint_eq(cm_get_stats(cm)->malformed, CM_PORT_TURN + 1);
}
END_TEST

/* A manager that sends through a port, and the index of the GID that it sent from last. */
struct sender {
    struct cm_port *port;
    unsigned sgid_index;
};

static void send_through(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    struct sender *sender = opaque;

    sender->sgid_index = av->sgid_index;
    cm_port_send(sender->port, av, mad);
}

static int take_event(struct cm_id *id, const struct cm_event *event)
{
    *(bool *)id->context = true;
    return 0;
}

/* cm_init_av_for_response(): an answer goes back by the GID type of the request. */
START_TEST(an_answer_has_the_version_of_roce_of_its_request)
{
    static const struct cm_ops through = {
        .send = send_through, .now_ns = clock_ns, .random = random32, .ca_guid = guid};

    for (unsigned index = 0; index < HV_GIDS; index++) {
        struct sender asker = {&ports[0], HV_GIDS}, answerer = {&ports[1], HV_GIDS};
        struct cm *asks = cm_new(&through, &asker), *answers = cm_new(&through, &answerer);
        struct cm_sidr_req_param req = {.av = {.sgid_index = (uint8_t)index},
                                        .service_id = 7, /* nobody listens */
                                        .timeout_ms = 1000};
        bool is_answered = false;
        struct cm_id *id = cm_create_id(asks, take_event, &is_answered);

        memcpy(req.av.dgid, hv_config_gid(hv_device(v->b->device)->config, index)->raw, 16);
        ck_assert_int_eq(cm_send_sidr_req(id, &req), 0);
        while (!is_answered) {
            table_wait(v);
            cm_port_run(&ports[1], answers);
            cm_port_run(&ports[0], asks);
        }
        ck_assert_uint_eq(answerer.sgid_index, index);
        cm_destroy_id(id);
        cm_free(asks);
        cm_free(answers);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-cm-port");
    TCase *tc = tcase_create("cm_port");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_turn_takes_no_more_than_its_share);
    tcase_add_test(tc, the_next_one_is_announced);
    tcase_add_test(tc, an_answer_has_the_version_of_roce_of_its_request);
    suite_add_tcase(suite, tc);
    return suite;
}
