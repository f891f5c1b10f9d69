/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a wire that has no room just once, at any place: work that waits for room continues when
 * there is some, nothing is lost, nothing is sent twice, and no counter says otherwise. Each
 * conversation is repeated, each time with another packet that finds no room; and once with no room
 * for any packet at the first try.
 */
#include "model/port/cong.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"
#include "wire/filter.h"

#define BYTES 3000u

/* The port of the examined side. */
struct narrow_port {
    struct wire_filter f;
    unsigned asked;  /* how often room was requested */
    unsigned refuse; /* refuses this request; 0: every second one */
    bool waits;
};

static struct narrow_port narrow;
static struct lab_qp second, a, b;

static uint8_t *narrow_reserve(struct wire_port *port, size_t len)
{
    narrow.asked++;
    if (narrow.refuse ? narrow.asked == narrow.refuse : narrow.asked % 2) {
        narrow.waits = true;
        return NULL;
    }
    return wire_tx_reserve(narrow.f.inner, len);
}

static struct wire_port_ops narrow_ops;

static void plug_narrow_port(struct lab_side *side, unsigned refuse)
{
    struct wire_port *cable = side->hca.vport->uplink->wire;

    narrow_ops = wire_filter_ops;
    narrow_ops.tx_reserve = narrow_reserve;
    narrow_ops.tx_reserve_to = NULL;
    narrow_ops.tx_credit_class = NULL;
    narrow_ops.tx_credits = NULL;
    narrow = (struct narrow_port){.refuse = refuse};
    port_set_wire(&side->hca, NULL);
    wire_filter_init(&narrow.f, cable, &narrow_ops, &wire_filter_client);
    port_set_wire(&side->hca, &narrow.f.port);
}

/* Room returns as soon as everybody is idle. */
static void run(void)
{
    lab_run(lab);
    while (narrow.waits) {
        narrow.waits = false;
        narrow.f.port.client->tx_ready(narrow.f.port.opaque);
        lab_run(lab);
    }
}

static void advance(unsigned ms)
{
    for (unsigned i = 0; i < ms * 20; i++) {
        run();
        lab_advance(lab, LAB_MS / 20);
    }
    run();
}

/* Expects so many completions without an error. */
static void expect_good(struct lab_side *side, unsigned n)
{
    struct lab_cqe cqe;

    for (unsigned i = 0; i < n; i++) {
        ck_assert_msg(lab_poll(side, &cqe), "%u of %u completions; no room for packet %u", i, n,
                      narrow.refuse);
        ck_assert_msg(cqe.opcode != PRM_CQE_OPCODE_REQ_ERR && cqe.opcode != PRM_CQE_OPCODE_RESP_ERR,
                      "syndrome %u; no room for packet %u", cqe.syndrome, narrow.refuse);
    }
    expect_nothing(side);
}

static void read_by(struct lab_qp *qp, uint64_t to, const struct lab_dct *at)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                        .sge = {{to, BYTES, 0}},
                        .num_sge = 1,
                        .raddr = dst + 16384,
                        .rkey = far->key};

    lab_post(qp, at ? lab_to(&wr, at) : &wr);
}

static void add_by(struct lab_qp *qp, const struct lab_dct *at)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                        .sge = {{src + 60000, 8, 0}},
                        .num_sge = 1,
                        .raddr = word,
                        .rkey = far->key,
                        .swap_add = 1};

    lab_post(qp, at ? lab_to(&wr, at) : &wr);
}

/* Two initiators and two targets that share one responder: sessions begin, are refused, and end. */
static void talk_dynamically(void)
{
    far->hca.limits.dc_responders = 1;
    lab_dct_post_recv(&dct, dst, BYTES);
    lab_dct_post_recv(&other, dst + 4096, BYTES);
    send_from(&dci, &dct, BYTES, 0);
    read_by(&dci, src + 8192, &dct);
    add_by(&dci, &dct);
    send_from(&dci, &other, BYTES, 0);
    run();
    read_by(&second, src + 16384, &dct);
    add_by(&second, &dct);
    advance(40);
    expect_good(near, 6);
    expect_good(far, 2);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_gt(count_cnaks(), 0);
}

/* A reliable connection with a late receive and with marks on its packets. */
static void talk_reliably(void)
{
    struct lab_wr send = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, BYTES, 0}}, .num_sge = 1};

    lab_rc_pair(lab, &a, &b, &lab_path);
    a.qp->peer.path.tclass |= ECN_CE;
    lab_post_recv(&b, dst, BYTES);
    lab_post(&a, &send);
    read_by(&a, src + 8192, NULL);
    add_by(&a, NULL);
    lab_post(&a, &send);
    run();
    lab_post_recv(&b, dst + 4096, BYTES);
    read_by(&a, src + 16384, NULL);
    add_by(&a, NULL);
    advance(40);
    expect_good(near, 6);
    expect_good(far, 2);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_gt(far->hca.vport->uplink->cong.counters.cnps_sent, 0);
}

/* Returns how often the side asked for room. */
static unsigned hold(void (*talk)(void), unsigned side, unsigned refuse)
{
    setup();
    memcpy(lab_ptr(far, dst + 16384, BYTES), lab_ptr(near, src + 32768, BYTES), BYTES);
    lab_dci_new(near, &lab_dci, NULL, &second);
    plug_narrow_port(&lab->side[side], refuse);
    talk();
    ck_assert_mem_eq(lab_ptr(far, dst, BYTES), lab_ptr(near, src, BYTES), BYTES);
    ck_assert_mem_eq(lab_ptr(far, dst + 4096, BYTES), lab_ptr(near, src, BYTES), BYTES);
    ck_assert_mem_eq(lab_ptr(near, src + 8192, BYTES), lab_ptr(near, src + 32768, BYTES), BYTES);
    ck_assert_mem_eq(lab_ptr(near, src + 16384, BYTES), lab_ptr(near, src + 32768, BYTES), BYTES);
    expect_no_sequence_errors();
    teardown();
    return narrow.asked;
}

static void hold_again_and_again(void (*talk)(void), unsigned side)
{
    unsigned n = 1;

    while (hold(talk, side, n) >= n) {
        n++;
    }
    ck_assert_uint_gt(n, 10);
    hold(talk, side, 0);
}

START_TEST(dynamic_connections)
{
    hold_again_and_again(talk_dynamically, (unsigned)_i);
}
END_TEST

START_TEST(a_reliable_connection)
{
    hold_again_and_again(talk_reliably, (unsigned)_i);
}
END_TEST

/* Work that waits for room on a cable does not wait on the next cable, which does not know of it.
 * The port has been without a cable, however short the time. */
START_TEST(a_cable_that_is_replaced_holds_nothing_back)
{
    struct lab_wr send = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};
    struct wire_port *cable;
    uint64_t downs;

    setup();
    cable = near->hca.vport->uplink->wire;
    send.sge[0] = (struct lab_sge){src, BYTES, 0};
    lab_rc_pair(lab, &a, &b, &lab_path);
    lab_post_recv(&b, dst, BYTES);
    plug_narrow_port(near, 1);
    lab_post(&a, &send);
    lab_run(lab);
    ck_assert(narrow.waits);
    downs = near->hca.vport->uplink->counters.link_downs;

    port_set_wire(&near->hca, cable);
    lab_run(lab);
    expect_good(near, 1);
    expect_good(far, 1);
    ck_assert_mem_eq(lab_ptr(far, dst, BYTES), lab_ptr(near, src, BYTES), BYTES);
    ck_assert_uint_eq(near->hca.vport->uplink->counters.link_downs, downs + 1);
    ck_assert(near->hca.vport->was_up);
    teardown();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("no room");
    TCase *tc = tcase_create("no room");

    tcase_set_timeout(tc, 100);
    tcase_add_loop_test(tc, dynamic_connections, 0, 2);
    tcase_add_loop_test(tc, a_reliable_connection, 0, 2);
    tcase_add_test(tc, a_cable_that_is_replaced_holds_nothing_back);
    suite_add_tcase(suite, tc);
    return suite;
}
