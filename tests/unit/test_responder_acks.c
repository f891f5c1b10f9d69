/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the ACK of a request goes: at once to a peer that waits for it, later to one that does not.
 *
 * IBTA 9.7.5.1.2 lets one ACK answer several requests. Each statement takes the device's turns one
 * by one; requests are WRITEs of one packet that ask for an ACK.
 */
#include <stdlib.h>
#include "tests/unit/rdma_bench.h"

#define ACK          0x1f /* AETH syndromes on the wire (IBTA 9.5.4) */
#define NAK_SEQ      0x60

#define MTU          256
#define MOST_COVERED 16 /* packets that an ACK waits for */
#define MOST_TURNS   8  /* it goes in fewer, if nothing more comes */

static struct bench b;
static struct bench_qp qp;
static uint64_t mem;
static uint32_t key, psn;

static void setup(void)
{
    bench_init(&b);
    bench_qp_rts(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2}, &qp);
    mem = fake_host_alloc(&b.host, 4096, 4096);
    key = bench_mkey(&b, mem, 4096, MEM_REMOTE_READ | MEM_REMOTE_WRITE);
    psn = 0;
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

/* One turn of the device. True: it asks for another one. */
static bool turn(void)
{
    bool more = hca_run(&b.hca, 512);

    wire_poll(b.peer, 64);
    return more;
}

static void expect(uint8_t opcode, uint8_t syndrome, uint32_t of)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | opcode);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, of);
}

static void expect_silence(void)
{
    struct roce_packet pkt;

    ck_assert(!bench_tx(&b, &pkt));
}

/* Many requests at once: this peer does not wait for ACKs. Then one more, whose ACK waits. */
static void stream(void)
{
    for (int i = 0; i < MOST_COVERED; i++) {
        put_write();
    }
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    put_write();
    turn();
    expect_silence();
}

static void wait_for_each(void)
{
    for (int i = 0; i < 100; i++) {
        put_write();
        turn();
        expect(BTH_ACK, ACK, psn - 1);
        turn();
        expect_silence();
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
    for (int i = 1; i < MOST_COVERED - 1; i++) {
        put_write();
        turn();
        expect_silence();
    }
    put_write();
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    expect_silence();
}
END_TEST

/* The sender's window may be four such messages. */
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
}
END_TEST

START_TEST(an_ack_that_waits_in_vain_goes_soon)
{
    int turns = 0;

    stream();
    while (b.got == b.read) {
        ck_assert(turn() || b.got != b.read); /* nothing else wakes the device */
        ck_assert_int_lt(++turns, MOST_TURNS);
    }
    expect(BTH_ACK, ACK, psn - 1);
    turn();
    ck_assert(!turn());
    expect_silence();
}
END_TEST

START_TEST(a_stream_that_has_ended_is_forgotten)
{
    stream();
    bench_run(&b);
    expect(BTH_ACK, ACK, psn - 1);
    for (int i = 0; i < 2; i++) { /* it may be believed once more, not for ever */
        put_write();
        bench_run(&b);
        expect(BTH_ACK, ACK, psn - 1);
    }
    wait_for_each();
}
END_TEST

START_TEST(a_read_behind_it_takes_the_ack_along)
{
    stream();
    put(BTH_READ_REQUEST, psn, 0);
    turn();
    expect(BTH_ACK, ACK, psn - 1);
    expect(BTH_READ_RESP_ONLY, ACK, psn);
}
END_TEST

START_TEST(a_gap_is_reported_at_once)
{
    stream();
    put(BTH_WRITE_ONLY, psn + 1, 8);
    turn();
    expect(BTH_ACK, NAK_SEQ, psn);
    expect_silence();
}
END_TEST

static void destroy(void)
{
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
}

static void to_err(void)
{
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &(struct bench_qp_attr){0}), SYN_OK);
}

static void to_rst(void)
{
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2RST_QP, &(struct bench_qp_attr){0}), SYN_OK);
}

static void reset(void)
{
    hca_reset(&b.hca);
}

static void (*const ends[])(void) = {destroy, to_err, to_rst, reset};

/* The request was carried out and its completion may have been seen: its sender must hear so, as it
 * does of a card, whose ACKs do not wait for software. */
START_TEST(what_ends_the_qp_lets_the_ack_go)
{
    stream();
    ends[_i]();
    wire_poll(b.peer, 64);
    expect(BTH_ACK, ACK, psn - 1);
    bench_run(&b);
    expect_silence();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("responder_acks");
    TCase *tc = tcase_create("rc");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_peer_that_waits_for_each_ack_has_it_at_once);
    tcase_add_test(tc, an_ack_of_a_stream_waits_for_the_next_requests);
    tcase_add_test(tc, the_ack_of_a_long_message_does_not_wait);
    tcase_add_test(tc, an_ack_that_waits_in_vain_goes_soon);
    tcase_add_test(tc, a_stream_that_has_ended_is_forgotten);
    tcase_add_test(tc, a_read_behind_it_takes_the_ack_along);
    tcase_add_test(tc, a_gap_is_reported_at_once);
    tcase_add_loop_test(tc, what_ends_the_qp_lets_the_ack_go, 0, (int)G_N_ELEMENTS(ends));
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
