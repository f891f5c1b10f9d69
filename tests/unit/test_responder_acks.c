/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests when the ACK of a request is sent: at once to a peer that waits for it, later to a peer
 * that does not.
 *
 * IBTA 9.7.5.1.2 lets one ACK answer several requests. Each test takes the device's turns one by
 * one; requests are WRITEs of one packet that ask for an ACK.
 */
#include <stdlib.h>
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define ACK          0x1f /* AETH syndromes on the wire (IBTA 9.5.4) */
#define NAK_SEQ      0x60

#define MTU          256
#define MOST_COVERED 16  /* packets that an ACK waits for */
#define MOST_LOOKS   12  /* looks at the wire in a turn in which nothing more arrives */
#define TURN         512 /* pieces of a turn, each look one of them */

static struct bench b;
static struct bench_qp qp, other;
static uint64_t mem;
static uint32_t key, psn, other_psn;

/* The wire counts the device's looks at it; to a look that would find nothing it delivers the next
 * request. */
static const struct wire_port_ops *pair_ops;
static struct wire_port_ops ops;
static unsigned looks, more;
static bool in_turns; /* to two QPs alternately */

static unsigned look(struct wire_port *port, unsigned max);

static void setup(void)
{
    const struct bench_qp_attr attr = {.st = PRM_QP_ST_RC, .log_rra_max = 2};

    bench_init(&b);
    bench_qp_rts(&b, &attr, &qp);
    bench_qp_rts(&b, &attr, &other);
    mem = fake_host_alloc(&b.host, 4096, 4096);
    key = bench_mkey(&b, mem, 4096, MEM_REMOTE_READ | MEM_REMOTE_WRITE);
    psn = other_psn = 0;
    more = 0;
    in_turns = false;
    pair_ops = b.hca.vport->uplink->wire->ops;
    ops = *pair_ops;
    ops.poll = look;
    b.hca.vport->uplink->wire->ops = &ops;
}

static void teardown(void)
{
    bench_clear(&b);
}

static void put_part(uint8_t op, uint32_t at, bool ackreq, size_t len, uint32_t total)
{
    static const uint8_t data[MTU];
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | op, at);

    pkt.ackreq = ackreq;
    pkt.reth.va = mem;
    pkt.reth.rkey = key;
    pkt.reth.len = total;
    bench_put(&b, &pkt, data, len);
}

static void put(uint8_t op, uint32_t at, size_t len)
{
    put_part(op, at, true, len, 8);
}

static void put_write(void)
{
    put(BTH_WRITE_ONLY, psn++, 8);
}

static void put_other(void)
{
    static const uint8_t data[8];
    struct roce_packet pkt = bench_packet(&other, BTH_RC | BTH_WRITE_ONLY, other_psn++);

    pkt.ackreq = true;
    pkt.reth.va = mem;
    pkt.reth.rkey = key;
    pkt.reth.len = 8;
    bench_put(&b, &pkt, data, 8);
}

static unsigned look(struct wire_port *port, unsigned max)
{
    unsigned n = pair_ops->poll(port, max);

    looks++;
    if (n == 0 && more) {
        more--;
        put_write();
        if (in_turns) {
            put_other();
        }
        n = pair_ops->poll(port, max);
    }
    return n;
}

/* One turn of the device. */
static void turn(void)
{
    looks = 0;
    hca_run(&b.hca, TURN);
    wire_poll(b.peer, 64);
}

static void expect(uint8_t opcode, uint8_t syndrome, uint32_t of)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | opcode);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, of);
}

/* Sends many requests at once: this peer does not wait for ACKs. */
static void stream(void)
{
    for (int i = 0; i < MOST_COVERED; i++) {
        put_write();
    }
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    bench_expect_silence(&b);
}

static void wait_for_each(void)
{
    for (int i = 0; i < 100; i++) {
        put_write();
        turn();
        expect(BTH_ACK, ACK, psn - 1);
        bench_expect_silence(&b);
        ck_assert_uint_le(looks, 2);
    }
}

START_TEST(a_peer_that_waits_for_each_ack_has_it_at_once)
{
    wait_for_each();
}
END_TEST

START_TEST(an_ack_of_a_stream_waits_for_the_next_requests)
{
    stream();
    more = MOST_COVERED - 1;
    put_write();
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    bench_expect_silence(&b);
    ck_assert_uint_eq(psn, 2 * MOST_COVERED);
}
END_TEST

/* However many requests come: the sender's window must not close meanwhile. */
START_TEST(an_ack_answers_so_many_packets_at_most)
{
    uint32_t first;

    stream();
    first = psn;
    more = 3 * MOST_COVERED;
    put_write();
    turn();
    expect(BTH_ACK, ACK, first + MOST_COVERED - 1);
}
END_TEST

/* What the previous connection has answered does not matter to the next one, whose PSNs begin
 * anywhere. */
START_TEST(a_connection_that_starts_again_resets_its_counts)
{
    struct roce_packet ack;
    uint32_t first;

    stream();
    first = psn = (psn - 100) & PSN_MASK;
    responder_reset(&qp.qp->peer, first);
    for (unsigned i = 0; i < MOST_COVERED; i++) {
        put(BTH_WRITE_ONLY, psn++ & PSN_MASK, 8);
    }
    more = 3 * MOST_COVERED;
    turn();
    ck_assert(bench_tx(&b, &ack));
    ck_assert_uint_eq(ack.aeth.syndrome, ACK);
    ck_assert_int_lt(psn_diff(ack.psn, first), 2 * MOST_COVERED);
}
END_TEST

START_TEST(the_ack_of_a_long_message_does_not_wait)
{
    stream();
    put_part(BTH_WRITE_FIRST, psn++, false, MTU, MOST_COVERED * MTU);
    for (int i = 1; i < MOST_COVERED - 1; i++) {
        put_part(BTH_WRITE_MIDDLE, psn++, false, MTU, 0);
    }
    put_part(BTH_WRITE_LAST, psn++, true, MTU, 0);
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    ck_assert_uint_le(looks, 3); /* 8 frames in each, and one that found no more */
}
END_TEST

/* There may be no further turn: a program that has what it wants, a guest that is stopped. */
START_TEST(an_ack_that_waits_in_vain_goes_with_the_turn)
{
    stream();
    put_write();
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    ck_assert_uint_gt(looks, 2);
    ck_assert_uint_le(looks, MOST_LOOKS);
}
END_TEST

START_TEST(a_stream_that_has_ended_is_forgotten)
{
    stream();
    for (int i = 0; i < 2; i++) { /* it may expect more twice, not for ever */
        put_write();
        turn();
        expect(BTH_ACK, ACK, psn - 1);
    }
    wait_for_each();
}
END_TEST

/* IBTA 9.7.5.1.2: the response to a READ acknowledges what came before it. */
START_TEST(the_answer_to_a_read_is_the_ack_as_well)
{
    stream();
    put_write();
    put(BTH_READ_REQUEST, psn, 0);
    turn();
    expect(BTH_READ_RESP_ONLY, ACK, psn);
    bench_expect_silence(&b);
    ck_assert_uint_le(looks, 2);
}
END_TEST

START_TEST(a_gap_is_reported_at_once)
{
    stream();
    put_write();
    put(BTH_WRITE_ONLY, psn + 1, 8);
    turn();
    expect(BTH_ACK, NAK_SEQ, psn);
    bench_expect_silence(&b);
    ck_assert_uint_le(looks, 2);
}
END_TEST

/* The ACKs of two QPs wait while the other QP's requests come: the turn ends anyway. */
START_TEST(a_turn_ends_even_if_requests_keep_coming)
{
    struct roce_packet pkt;
    uint32_t sent = 0;

    for (int i = 0; i < MOST_COVERED; i++) {
        put_write();
        put_other();
    }
    turn();
    for (int i = 0; i < MOST_COVERED / 2; i++) {
        put_other();
    }
    in_turns = true;
    more = 10000;
    turn();
    ck_assert_uint_le(looks, TURN);
    more = 0;
    bench_run(&b);
    while (bench_tx(&b, &pkt)) {
        ck_assert_uint_eq(pkt.aeth.syndrome, ACK);
        sent = MAX(sent, pkt.psn);
    }
    ck_assert_uint_eq(sent, other_psn - 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("responder_acks");
    TCase *tc = tcase_create("rc");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_peer_that_waits_for_each_ack_has_it_at_once);
    tcase_add_test(tc, an_ack_of_a_stream_waits_for_the_next_requests);
    tcase_add_test(tc, an_ack_answers_so_many_packets_at_most);
    tcase_add_test(tc, a_connection_that_starts_again_resets_its_counts);
    tcase_add_test(tc, the_ack_of_a_long_message_does_not_wait);
    tcase_add_test(tc, an_ack_that_waits_in_vain_goes_with_the_turn);
    tcase_add_test(tc, a_stream_that_has_ended_is_forgotten);
    tcase_add_test(tc, the_answer_to_a_read_is_the_ack_as_well);
    tcase_add_test(tc, a_gap_is_reported_at_once);
    tcase_add_test(tc, a_turn_ends_even_if_requests_keep_coming);
    suite_add_tcase(s, tc);
    return s;
}
