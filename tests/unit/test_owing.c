/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests how long a busy device makes its peers wait for answers (model/port/owing.c). */
#include <check.h>
#include <string.h>
#include "model/core/work.h"
#include "model/port/uplink.h"
#include "prm/prm.h"
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

#define QPS    8
#define READS  4 /* of each, outstanding at a time */
#define BYTES  65536
#define BUDGET 64 /* pieces of a turn */

static struct lab *lab;
static struct lab_side *left, *right;
static struct lab_qp a[QPS], b[QPS];
static struct wire_port_ops noting_ops;
static bool owes;
static unsigned said; /* how often */

static void note_owe(struct wire_port *port, bool now)
{
    owes = now;
    said++;
}

static void setup(void)
{
    struct lab_path path = lab_path;
    struct wire_port *wire;

    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    path.mtu = PRM_QP_MTU_4096;
    for (unsigned i = 0; i < QPS; i++) {
        lab_rc_pair(lab, &a[i], &b[i], &path);
    }
    wire = right->hca.vport->uplink->wire;
    noting_ops = *wire->ops;
    noting_ops.owe = note_owe;
    wire->ops = &noting_ops;
    owes = false;
    said = 0;
}

static void teardown(void)
{
    lab_free(lab);
}

/* Each of so many QPs READs as much as it may, so many bytes at a time; then the requests wait
 * before the right side. */
static void ask(unsigned qps, uint32_t bytes)
{
    uint64_t src = lab_mem(right, bytes, 1), dst = lab_mem(left, bytes, 0);

    for (unsigned i = 0; i < qps * READS; i++) {
        lab_post(&a[i / READS], &(struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_READ,
                                                 .sge = {{dst, bytes, 0}},
                                                 .num_sge = 1,
                                                 .raddr = src,
                                                 .rkey = right->key});
    }
    while (hca_run(&left->hca, BUDGET)) {
    }
    wire_poll(lab->mid[0], qps * READS);
}

/* Takes a turn of the right side; counts how many responses each QP got in it. */
static bool answer(unsigned got[QPS])
{
    unsigned before = lab->num_packets;
    bool more = hca_run(&right->hca, BUDGET);

    wire_poll(lab->mid[1], 2 * BUDGET);
    while (hca_run(&left->hca, BUDGET)) {
    }
    for (unsigned n = before; n < lab->num_packets; n++) {
        for (unsigned i = 0; i < QPS; i++) {
            got[i] += lab->trace[n].from == 1 && lab->trace[n].pkt.dest_qp == a[i].qp->obj.num;
        }
    }
    return more;
}

START_TEST(until_each_queue_pair_had_a_turn_answers_are_owed)
{
    unsigned got[QPS] = {0}, rounds = 0;

    ask(QPS, BYTES);
    while (answer(got)) {
        if (owes || !said) {
            continue;
        }
        for (unsigned i = 0; i < QPS; i++) {
            ck_assert_uint_ge(got[i], 1);
        }
        rounds++;
        memset(got, 0, sizeof(got));
        said = 0;
    }
    ck_assert_uint_ge(rounds, 1);
    ck_assert(!owes);
}
END_TEST

/* A peer that lost a packet waits for one round, not until all work of the others is done. */
START_TEST(a_busy_device_does_not_always_owe)
{
    unsigned got[QPS] = {0}, turns = 0;

    ask(1, BYTES);
    do {
        ck_assert(answer(got));
        turns++;
    } while (!said || owes);
    ck_assert_uint_lt(turns, READS * BYTES / 4096 * 3 / BUDGET);
}
END_TEST

START_TEST(an_idle_device_owes_nothing)
{
    unsigned got[QPS] = {0};

    hca_run(&right->hca, BUDGET);
    ck_assert_uint_eq(said, 0);
    ask(1, BYTES);
    while (answer(got)) {
    }
    ck_assert(said && !owes);
}
END_TEST

/* Nobody takes the frames that fill the cable: the wire knows that, so others must not wait for
 * this device. */
START_TEST(a_device_without_credit_owes_nothing)
{
    unsigned got[QPS] = {0};

    ask(QPS, 16 * BYTES);
    while (hca_run(&right->hca, BUDGET)) {
    }
    ck_assert(hca_tx_awaited(&right->hca));
    ck_assert(said && !owes);
    said = 0;
    wire_poll(lab->mid[1], 2 * BUDGET);
    ck_assert(hca_run(&right->hca, BUDGET));
    ck_assert(said && owes);
    while (answer(got) || hca_tx_awaited(&right->hca)) {
    }
    ck_assert(!owes && !hca_tx_awaited(&right->hca));
}
END_TEST

START_TEST(a_cable_that_is_pulled_is_owed_nothing)
{
    struct wire_port *wire = right->hca.vport->uplink->wire;
    unsigned got[QPS] = {0};

    ask(QPS, BYTES);
    ck_assert(answer(got));
    ck_assert(owes);
    port_set_wire(&right->hca, NULL);
    ck_assert(!owes);
    port_set_wire(&right->hca, wire);
    ck_assert(owes); /* the round is not over */
}
END_TEST

START_TEST(a_reset_owes_nothing)
{
    unsigned got[QPS] = {0};

    ask(QPS, BYTES);
    ck_assert(answer(got));
    ck_assert(owes);
    hca_reset(&right->hca);
    ck_assert(!owes);
    hca_run(&right->hca, BUDGET);
    ck_assert(!owes);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("owing");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, until_each_queue_pair_had_a_turn_answers_are_owed);
    tcase_add_test(tcase, a_busy_device_does_not_always_owe);
    tcase_add_test(tcase, an_idle_device_owes_nothing);
    tcase_add_test(tcase, a_device_without_credit_owes_nothing);
    tcase_add_test(tcase, a_cable_that_is_pulled_is_owed_nothing);
    tcase_add_test(tcase, a_reset_owes_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}
