/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the responder of reliable connections: a packet goes in, packets, completions and memory
 * are expected. The path MTU is 256 bytes throughout.
 */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/queue/q_counter.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU 256

/* AETH syndromes on the wire (IBTA 9.5.4). */
#define ACK         0x1f
#define RNR         0x20
#define NAK_SEQ     0x60
#define NAK_INVALID 0x61
#define NAK_ACCESS  0x62
#define NAK_OP      0x63

static struct bench b;
static struct bench_qp qp;
static uint8_t data[64 * MTU];
static uint64_t mem; /* 64 KiB of the host's memory */
static uint32_t all; /* a key for it with every right */

static void setup_attr(const struct bench_qp_attr *attr)
{
    bench_init(&b);
    bench_qp_rts(&b, attr, &qp);
    mem = fake_host_alloc(&b.host, 64 << 10, 4096);
    all = bench_mkey(&b, mem, 64 << 10,
                     MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE |
                         MEM_REMOTE_ATOMIC);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + i / 256 + 1);
    }
}

static void setup(void)
{
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2, .min_rnr_nak = 12});
}

static void teardown(void)
{
    bench_clear(&b);
}

static void *at(uint64_t addr, size_t len)
{
    return fake_host_ptr(&b.host, addr, len);
}

/* Returns a request of the peer. */
static struct roce_packet request(uint8_t op, uint32_t psn)
{
    return bench_packet(&qp, BTH_RC | op, psn);
}

static void rx(uint8_t op, uint32_t psn, bool ackreq, size_t len)
{
    struct roce_packet pkt = request(op, psn);

    pkt.ackreq = ackreq;
    bench_rx(&b, &pkt, data, len);
}

static void rx_rdma(uint8_t op, uint32_t psn, uint64_t va, uint32_t rkey, uint32_t reth_len,
                    size_t len)
{
    struct roce_packet pkt = request(op, psn);

    pkt.ackreq = true;
    pkt.reth.va = va;
    pkt.reth.rkey = rkey;
    pkt.reth.len = reth_len;
    bench_rx(&b, &pkt, data, len);
}

static void rx_atomic(uint8_t op, uint32_t psn, uint64_t va, uint64_t swap_add, uint64_t compare)
{
    struct roce_packet pkt = request(op, psn);

    pkt.atomic.va = va;
    pkt.atomic.rkey = all;
    pkt.atomic.swap_add = swap_add;
    pkt.atomic.compare = compare;
    bench_rx(&b, &pkt, NULL, 0);
}

static void expect_ack(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, psn);
    ck_assert_uint_eq(pkt.aeth.msn, msn);
    ck_assert_uint_eq(pkt.dest_qp, BENCH_PEER_QPN);
}

static void expect_state(uint8_t state)
{
    ck_assert_uint_eq(qp.qp->state, state);
}

static const struct prm_cqe64 *expect_cqe(uint8_t opcode, uint32_t byte_cnt)
{
    const struct prm_cqe64 *cqe = bench_poll(&b, &b.cq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), opcode);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), byte_cnt);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), qp.qpn);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rqpn), BENCH_PEER_QPN);
    return cqe;
}

static void expect_error_cqe(uint8_t syndrome)
{
    const struct prm_err_cqe *cqe = bench_poll(&b, &b.cq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, opcode), PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, qpn), qp.qpn);
}

static void expect_no_cqe(void)
{
    ck_assert_ptr_null(bench_poll(&b, &b.cq));
}

/* -- SEND -------------------------------------------------------------------------------------- */

START_TEST(a_send_lands_in_the_receive_buffer_and_is_acknowledged)
{
    bench_post_recv(&qp, mem, 1000, all);
    rx(BTH_SEND_ONLY, 0, true, 100);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 100);
    ck_assert_mem_eq(at(mem, 100), data, 100);
    expect_ack(ACK, 0, 1);
    bench_expect_silence(&b);
}
END_TEST

/* IBTA 9.7.5.1: only a request with AckReq set must be acknowledged. */
START_TEST(a_send_without_ackreq_is_not_acknowledged)
{
    bench_post_recv(&qp, mem, 1000, all);
    rx(BTH_SEND_ONLY, 0, false, 100);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 100);
    bench_expect_silence(&b);
}
END_TEST

START_TEST(a_message_of_three_packets_is_one_completion)
{
    const struct prm_cqe64 *cqe;
    struct roce_packet last = request(BTH_SEND_LAST_IMM, 2);

    bench_post_recv(&qp, mem, 1000, all);
    rx(BTH_SEND_FIRST, 0, false, MTU);
    rx(BTH_SEND_MIDDLE, 1, false, MTU);
    expect_no_cqe();
    last.ackreq = last.solicited = true;
    last.imm = 0x11223344;
    bench_rx(&b, &last, data + 2 * MTU, 5);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND_IMM, 2 * MTU + 5);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, immediate), 0x11223344);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, se), 1);
    ck_assert_mem_eq(at(mem, MTU), data, MTU);
    ck_assert_mem_eq(at(mem + MTU, MTU), data, MTU);
    ck_assert_mem_eq(at(mem + 2 * MTU, 5), data + 2 * MTU, 5);
    expect_ack(ACK, 2, 1);
}
END_TEST

START_TEST(an_empty_send_completes)
{
    bench_post_recv(&qp, mem, 0x10, all);
    rx(BTH_SEND_ONLY, 0, true, 0);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 0);
    expect_ack(ACK, 0, 1);
}
END_TEST

START_TEST(psns_wrap_at_24_bits)
{
    teardown();
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .rq_psn = 0xffffff});
    bench_post_recv(&qp, mem, 1000, all);
    rx(BTH_SEND_FIRST, 0xffffff, false, MTU);
    rx(BTH_SEND_LAST, 0, true, 1);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, MTU + 1);
    expect_ack(ACK, 0, 1);
}
END_TEST

START_TEST(send_with_invalidate_takes_the_key_back)
{
    struct roce_packet pkt = request(BTH_SEND_ONLY_INV, 0);
    uint32_t window = bench_mkey(&b, mem, 4096, MEM_REMOTE_WRITE | MEM_LOCAL_WRITE);
    const struct prm_cqe64 *cqe;

    bench_post_recv(&qp, mem, 1000, all);
    pkt.imm = window;
    bench_rx(&b, &pkt, data, 8);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND_INV, 8);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, inval_rkey), window);

    rx_rdma(BTH_WRITE_ONLY, 1, mem, window, 4, 4);
    expect_ack(NAK_ACCESS, 1, 1);
}
END_TEST

/* -- WRITE ------------------------------------------------------------------------------------- */

START_TEST(a_write_changes_memory_and_nothing_else)
{
    rx_rdma(BTH_WRITE_FIRST, 0, mem + 16, all, 2 * MTU + 3, MTU);
    rx(BTH_WRITE_MIDDLE, 1, false, MTU);
    rx(BTH_WRITE_LAST, 2, true, 3);
    ck_assert_mem_eq(at(mem + 16, MTU), data, MTU);
    ck_assert_mem_eq(at(mem + 16 + MTU, MTU), data, MTU);
    ck_assert_mem_eq(at(mem + 16 + 2 * MTU, 3), data, 3);
    ck_assert_uint_eq(*(uint8_t *)at(mem + 15, 1), 0);
    ck_assert_uint_eq(*(uint8_t *)at(mem + 16 + 2 * MTU + 3, 1), 0);
    expect_no_cqe();
    expect_ack(ACK, 0, 0);
    expect_ack(ACK, 2, 1);
}
END_TEST

START_TEST(a_write_with_immediate_takes_a_receive_wqe)
{
    struct roce_packet pkt = request(BTH_WRITE_ONLY_IMM, 0);
    const struct prm_cqe64 *cqe;

    bench_post_recv(&qp, mem + 0x1000, 10, all);
    pkt.reth.va = mem;
    pkt.reth.rkey = all;
    pkt.reth.len = 20;
    pkt.imm = 7;
    bench_rx(&b, &pkt, data, 20);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_WR_IMM, 20);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, immediate), 7);
    ck_assert_mem_eq(at(mem, 20), data, 20);
    ck_assert_uint_eq(*(uint8_t *)at(mem + 0x1000, 1), 0);
}
END_TEST

/* C9-88: the R_Key of a request of length zero is not checked. */
START_TEST(a_write_of_no_bytes_needs_no_key)
{
    rx_rdma(BTH_WRITE_ONLY, 0, 0, 0xbad, 0, 0);
    expect_ack(ACK, 0, 1);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

/* -- READ -------------------------------------------------------------------------------------- */

static void expect_read(uint8_t op, uint32_t psn, const uint8_t *bytes, size_t len)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | op);
    ck_assert_uint_eq(pkt.psn, psn);
    ck_assert_uint_eq(pkt.payload_len, len);
    if (len) {
        ck_assert_mem_eq(pkt.payload, bytes, len);
    }
    if (bth_opcodes[pkt.opcode].flags & HDR_AETH) {
        ck_assert_uint_eq(pkt.aeth.syndrome, ACK);
        ck_assert_uint_eq(pkt.aeth.msn, 1);
    }
}

START_TEST(a_read_is_answered_in_packets_of_the_path_mtu)
{
    memcpy(at(mem, 1024), data, 1024);
    rx_rdma(BTH_READ_REQUEST, 0, mem + 1, all, 2 * MTU + 1, 0);
    expect_read(BTH_READ_RESP_FIRST, 0, data + 1, MTU);
    expect_read(BTH_READ_RESP_MIDDLE, 1, data + 1 + MTU, MTU);
    expect_read(BTH_READ_RESP_LAST, 2, data + 1 + 2 * MTU, 1);
    bench_expect_silence(&b);

    /* A READ takes as many PSNs as its answer has packets. */
    bench_post_recv(&qp, mem, 100, all);
    rx(BTH_SEND_ONLY, 3, true, 1);
    expect_ack(ACK, 3, 2);
}
END_TEST

START_TEST(a_read_of_no_bytes_has_one_empty_answer)
{
    rx_rdma(BTH_READ_REQUEST, 0, 0, 0, 0, 0);
    expect_read(BTH_READ_RESP_ONLY, 0, NULL, 0);
}
END_TEST

/* Two requests arrive before the HCA sends: the ACK must not overtake the data. */
START_TEST(an_ack_waits_for_the_data_of_an_earlier_read)
{
    struct roce_packet read = request(BTH_READ_REQUEST, 0), send = request(BTH_SEND_ONLY, 2);
    struct roce_packet pkt;

    bench_post_recv(&qp, mem, 100, all);
    read.reth.va = mem;
    read.reth.rkey = all;
    read.reth.len = MTU + 1;
    send.ackreq = true;
    roce_rx(&b.hca, &read);
    roce_rx(&b.hca, &send);
    bench_run(&b);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_READ_RESP_FIRST);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_READ_RESP_LAST);
    expect_ack(ACK, 2, 2);
}
END_TEST

START_TEST(acks_that_wait_become_one)
{
    struct roce_packet pkt;

    for (uint32_t i = 0; i < 5; i++) {
        bench_post_recv(&qp, mem, 100, all);
    }
    for (uint32_t i = 0; i < 5; i++) {
        pkt = request(BTH_SEND_ONLY, i);
        pkt.ackreq = true;
        roce_rx(&b.hca, &pkt);
    }
    bench_run(&b);
    expect_ack(ACK, 4, 5);
    bench_expect_silence(&b);
}
END_TEST

/* The cable holds fewer frames than the answer has: the rest waits, and nothing is lost. */
START_TEST(a_long_read_waits_for_the_wire)
{
    struct roce_packet pkt;
    uint32_t n = 0;

    memcpy(at(mem, sizeof(data)), data, sizeof(data));
    b.deaf = true;
    rx_rdma(BTH_READ_REQUEST, 0, mem, all, 128 * MTU, 0);
    ck_assert_uint_eq(b.got, 0);
    b.deaf = false;
    bench_run(&b);
    while (bench_tx(&b, &pkt)) {
        ck_assert_uint_eq(pkt.psn, n);
        ck_assert_uint_eq(pkt.payload_len, MTU);
        if (n < 64) {
            ck_assert_mem_eq(pkt.payload, data + n * MTU, MTU);
        }
        n++;
    }
    ck_assert_uint_eq(n, 128);
}
END_TEST

/* IBTA 9.7.4: more READs than the responder has resources for are an invalid request. */
START_TEST(too_many_reads_at_a_time_are_a_fault)
{
    struct roce_packet pkt = {0};

    b.deaf = true;
    for (uint32_t i = 0; i < 4; i++) {
        rx_rdma(BTH_READ_REQUEST, 100 * i, mem, all, 100 * MTU, 0);
        expect_state(PRM_QP_STATE_RTS);
    }
    rx_rdma(BTH_READ_REQUEST, 400, mem, all, MTU, 0);
    expect_state(PRM_QP_STATE_ERR);
    b.deaf = false;
    b.frames = g_realloc(b.frames, sizeof(*b.frames) * 512);
    for (int i = 0; i < 8; i++) {
        b.got = b.read = 0;
        b.deaf = true;
        wire_poll(b.peer, 64);
        while (bench_tx(&b, &pkt)) {
        }
        bench_run(&b);
    }
    /* Earlier requests are answered, then the NAK is sent. */
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, NAK_INVALID);
    ck_assert_uint_eq(pkt.psn, 400);
}
END_TEST

/* Memory that stops answering, or a key that is destroyed, while the answer is on its way. */
START_TEST(a_read_that_fails_midway_ends_in_a_nak)
{
    uint32_t key = bench_mkey(&b, mem, 64 << 10, MEM_REMOTE_READ);
    struct roce_packet pkt;
    uint32_t n = 0;

    b.deaf = true;
    rx_rdma(BTH_READ_REQUEST, 0, mem, key, 100 * MTU, 0);
    ck_assert_int_eq(mkey_destroy(&b.hca, 0, key >> 8), SYN_OK);
    b.deaf = false;
    bench_run(&b);
    while (bench_tx(&b, &pkt) && pkt.opcode != (BTH_RC | BTH_ACK)) {
        n++;
    }
    ck_assert_uint_lt(n, 100);
    ck_assert_uint_eq(pkt.aeth.syndrome, NAK_ACCESS);
    ck_assert_uint_eq(pkt.psn, n);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_ERR);
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_WQ_ACCESS_ERROR);
}
END_TEST

/* -- atomics ----------------------------------------------------------------------------------- */

static void expect_atomic(uint32_t psn, uint64_t value)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ATOMIC_ACK);
    ck_assert_uint_eq(pkt.psn, psn);
    ck_assert_uint_eq(pkt.atomic_ack, value);
}

START_TEST(atomics_return_what_was_there)
{
    uint64_t *word = at(mem, 8);

    *word = 10;
    rx_atomic(BTH_FETCH_ADD, 0, mem, 5, 0);
    expect_atomic(0, 10);
    ck_assert_uint_eq(*word, 15);
    rx_atomic(BTH_CMP_SWAP, 1, mem, 77, 14);
    expect_atomic(1, 15);
    ck_assert_uint_eq(*word, 15);
    rx_atomic(BTH_CMP_SWAP, 2, mem, 77, 15);
    expect_atomic(2, 15);
    ck_assert_uint_eq(*word, 77);
}
END_TEST

START_TEST(an_atomic_on_an_odd_address_is_a_fault)
{
    rx_atomic(BTH_FETCH_ADD, 0, mem + 4, 5, 0);
    expect_ack(NAK_INVALID, 0, 0);
    expect_state(PRM_QP_STATE_ERR);
}
END_TEST

/* -- duplicates and gaps ----------------------------------------------------------------------- */

/* C9-105: a duplicate SEND or WRITE is acknowledged, and not executed. */
START_TEST(a_duplicate_send_is_acknowledged_again_only)
{
    bench_post_recv(&qp, mem, 100, all);
    bench_post_recv(&qp, mem, 100, all);
    rx(BTH_SEND_ONLY, 0, true, 10);
    rx(BTH_SEND_ONLY, 1, true, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 10);
    expect_ack(ACK, 0, 1);
    expect_ack(ACK, 1, 2);
    rx(BTH_SEND_ONLY, 0, true, 10);
    expect_ack(ACK, 1, 2);
    expect_no_cqe();
    ck_assert_uint_eq(qp_counters(qp.qp)->duplicate_request, 1);
}
END_TEST

START_TEST(a_duplicate_write_does_not_write)
{
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    memset(at(mem, 4), 0xee, 4);
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    ck_assert_uint_eq(*(uint8_t *)at(mem, 1), 0xee);
    expect_ack(ACK, 0, 1);
    expect_ack(ACK, 0, 1);
}
END_TEST

START_TEST(a_duplicate_read_may_begin_in_the_middle)
{
    memcpy(at(mem, 1024), data, 1024);
    rx_rdma(BTH_READ_REQUEST, 0, mem, all, 3 * MTU, 0);
    b.read = b.got;
    rx_rdma(BTH_READ_REQUEST, 1, mem + MTU, all, 2 * MTU, 0);
    expect_read(BTH_READ_RESP_FIRST, 1, data + MTU, MTU);
    expect_read(BTH_READ_RESP_LAST, 2, data + 2 * MTU, MTU);
    ck_assert_uint_eq(qp.qp->peer.resp.epsn, 3);
}
END_TEST

/* A false duplicate: it has another address or another key, or is longer than the original. */
START_TEST(a_false_duplicate_read_is_dropped)
{
    rx_rdma(BTH_READ_REQUEST, 0, mem, all, 3 * MTU, 0);
    b.read = b.got;
    rx_rdma(BTH_READ_REQUEST, 1, mem, all, MTU, 0);
    rx_rdma(BTH_READ_REQUEST, 1, mem + MTU, all ^ 1, MTU, 0);
    rx_rdma(BTH_READ_REQUEST, 1, mem + MTU, all, 3 * MTU, 0);
    rx_rdma(BTH_READ_REQUEST, 0xfffff0, mem, all, MTU, 0);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

START_TEST(a_duplicate_atomic_gets_the_saved_result)
{
    uint64_t *word = at(mem, 8);

    *word = 10;
    rx_atomic(BTH_FETCH_ADD, 0, mem, 5, 0);
    rx_atomic(BTH_FETCH_ADD, 0, mem, 5, 0);
    ck_assert_uint_eq(*word, 15);
    expect_atomic(0, 10);
    expect_atomic(0, 10);
}
END_TEST

/* A peer that repeats READs faster than they can be answered does not fill memory. */
START_TEST(duplicates_without_end_are_bounded)
{
    b.deaf = true;
    rx_rdma(BTH_READ_REQUEST, 0, mem, all, 200 * MTU, 0);
    for (int i = 0; i < 1000; i++) {
        rx_rdma(BTH_READ_REQUEST, 0, mem, all, 200 * MTU, 0);
        rx_rdma(BTH_WRITE_ONLY, 200 + i, mem, all, 0, 0);
    }
    expect_state(PRM_QP_STATE_RTS);
    ck_assert_uint_eq(qp.qp->peer.resp.epsn, 1200);
}
END_TEST

START_TEST(a_gap_is_reported_once)
{
    for (int i = 0; i < 3; i++) {
        bench_post_recv(&qp, mem, 100, all);
    }
    rx(BTH_SEND_ONLY, 0, false, 1);
    rx(BTH_SEND_ONLY, 2, true, 1);
    expect_ack(NAK_SEQ, 1, 1);
    rx(BTH_SEND_ONLY, 3, true, 1);
    bench_expect_silence(&b);
    ck_assert_uint_eq(qp_counters(qp.qp)->out_of_sequence, 2);

    rx(BTH_SEND_ONLY, 1, true, 1);
    expect_ack(ACK, 1, 2);
    rx(BTH_SEND_ONLY, 3, true, 1);
    expect_ack(NAK_SEQ, 2, 2);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

/* IBTA 9.7.5.2.8: no receive WQE is an RNR NAK with the QP's timer; the request may come again. */
START_TEST(an_empty_receive_queue_is_not_ready)
{
    rx(BTH_SEND_ONLY, 0, true, 10);
    expect_ack(RNR | 12, 0, 0);
    rx(BTH_SEND_ONLY, 1, true, 10);
    bench_expect_silence(&b);
    ck_assert_uint_eq(qp_counters(qp.qp)->out_of_buffer, 1);

    bench_post_recv(&qp, mem, 100, all);
    rx(BTH_SEND_ONLY, 0, true, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 10);
    expect_ack(ACK, 0, 1);
}
END_TEST

/* Packets behind a request that was not accepted are no gap on the wire: they are dropped without
 * an answer and without a count, until that request is accepted. */
START_TEST(a_packet_behind_an_rnr_nak_is_not_out_of_sequence)
{
    const struct q_counter *c = qp_counters(qp.qp);

    rx(BTH_SEND_ONLY, 0, true, 1);
    expect_ack(RNR | 12, 0, 0);
    for (uint32_t psn = 1; psn < 4; psn++) {
        rx(BTH_SEND_ONLY, psn, true, 1);
    }
    bench_expect_silence(&b);
    ck_assert_uint_eq(c->out_of_sequence, 0);
    rx(BTH_SEND_ONLY, 0, true, 1);
    expect_ack(RNR | 12, 0, 0);
    ck_assert_uint_eq(c->out_of_buffer, 2);

    bench_post_recv(&qp, mem, 100, all);
    rx(BTH_SEND_ONLY, 0, true, 1);
    expect_ack(ACK, 0, 1);
    rx(BTH_SEND_ONLY, 2, true, 1); /* and now one is missing */
    expect_ack(NAK_SEQ, 1, 1);
    ck_assert_uint_eq(c->out_of_sequence, 1);
    rx(BTH_SEND_ONLY, 1, true, 1);
    expect_ack(RNR | 12, 1, 1);
    rx(BTH_SEND_ONLY, 2, true, 1);
    bench_expect_silence(&b);
    ck_assert_uint_eq(c->out_of_sequence, 1);
}
END_TEST

START_TEST(a_write_with_immediate_waits_for_its_wqe_at_the_end)
{
    rx_rdma(BTH_WRITE_FIRST, 0, mem, all, MTU + 4, MTU);
    b.read = b.got;
    rx(BTH_WRITE_LAST_IMM, 1, true, 4);
    expect_ack(RNR | 12, 1, 0);
    bench_post_recv(&qp, mem + 0x1000, 1, all);
    rx(BTH_WRITE_LAST_IMM, 1, true, 4);
    expect_cqe(PRM_CQE_OPCODE_RESP_WR_IMM, MTU + 4);
    expect_ack(ACK, 1, 1);
}
END_TEST

/* -- faults ------------------------------------------------------------------------------------ */

/* Sequences or packets that are not allowed: opcode, length, RETH length. */
static const struct {
    uint8_t before; /* opcode of a first packet of MTU bytes, or 0xff */
    uint8_t op;
    size_t len;
    uint32_t reth_len;
} invalid[] = {
    /* order of opcodes */
    {0xff, BTH_SEND_MIDDLE, MTU, 0},
    {0xff, BTH_SEND_LAST, 1, 0},
    {0xff, BTH_WRITE_MIDDLE, MTU, 0},
    {0xff, BTH_WRITE_LAST, 1, 0},
    {BTH_SEND_FIRST, BTH_SEND_FIRST, MTU, 0},
    {BTH_SEND_FIRST, BTH_SEND_ONLY, 1, 0},
    {BTH_SEND_FIRST, BTH_WRITE_LAST, 1, 0},
    {BTH_SEND_FIRST, BTH_READ_REQUEST, 0, 4},
    {BTH_WRITE_FIRST, BTH_SEND_LAST, 1, 0},
    {BTH_WRITE_FIRST, BTH_WRITE_ONLY, 4, 4},
    {BTH_WRITE_FIRST, BTH_FETCH_ADD, 0, 0},
    /* length of the packet, C9-92 */
    {0xff, BTH_SEND_FIRST, MTU - 1, 0},
    {0xff, BTH_SEND_FIRST, MTU + 4, 0},
    {0xff, BTH_SEND_ONLY, MTU + 1, 0},
    {BTH_SEND_FIRST, BTH_SEND_MIDDLE, MTU - 4, 0},
    {BTH_SEND_FIRST, BTH_SEND_LAST, 0, 0},
    {BTH_SEND_FIRST, BTH_SEND_LAST, MTU + 1, 0},
    /* length of the message; the one begun is of MTU + 4 bytes */
    {0xff, BTH_WRITE_ONLY, 4, 5},
    {0xff, BTH_WRITE_ONLY, 4, 3},
    {0xff, BTH_WRITE_FIRST, MTU, MTU},
    {BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, MTU, 0},
    {BTH_WRITE_FIRST, BTH_WRITE_LAST, 3, 0},
    {BTH_WRITE_FIRST, BTH_WRITE_LAST, 5, 0},
    {0xff, BTH_READ_REQUEST, 0, 0x80000001},
    {0xff, BTH_WRITE_FIRST, MTU, 0x80000001},
};

START_TEST(a_request_that_contradicts_itself_is_invalid)
{
    uint32_t psn = 0;

    bench_post_recv(&qp, mem + 0x1000, 0x1000, all);
    if (invalid[_i].before != 0xff) {
        rx_rdma(invalid[_i].before, psn++, mem, all, MTU + 4, MTU);
        b.read = b.got;
    }
    rx_rdma(invalid[_i].op, psn, mem, all, invalid[_i].reth_len, invalid[_i].len);
    expect_ack(NAK_INVALID, psn, 0);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_ERR);
    if (invalid[_i].before == BTH_SEND_FIRST) {
        expect_error_cqe(PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
        ck_assert_int_eq(bench_event(&b, qp.qpn), -1);
    } else {
        ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR);
        expect_error_cqe(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    expect_no_cqe();
}
END_TEST

START_TEST(a_message_longer_than_its_buffer_is_a_length_error)
{
    bench_post_recv(&qp, mem, MTU + 9, all);
    bench_post_recv(&qp, mem, MTU + 9, all);
    rx(BTH_SEND_FIRST, 0, false, MTU);
    rx(BTH_SEND_LAST, 1, true, 10);
    expect_ack(NAK_INVALID, 1, 0);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    expect_error_cqe(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_no_cqe();
    expect_state(PRM_QP_STATE_ERR);
    ck_assert_uint_eq(qp_counters(qp.qp)->resp_local_length_error, 1);
    ck_assert_uint_eq(*(uint8_t *)at(mem + MTU, 1), 0);
}
END_TEST

START_TEST(a_receive_buffer_of_a_bad_key_is_our_own_fault)
{
    bench_post_recv(&qp, mem, 100, 0xbad00);
    rx(BTH_SEND_ONLY, 0, true, 10);
    expect_ack(NAK_OP, 0, 0);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_state(PRM_QP_STATE_ERR);
}
END_TEST

enum rkey_fault {
    NO_SUCH_KEY,
    OTHER_VARIANT,
    NO_RIGHT,
    OTHER_PD,
    BELOW_START,
    BEYOND_END,
    ADDRESS_WRAPS,
    RKEY_FAULTS,
};

/* All faults of an rkey, each with WRITE, READ and atomic. */
START_TEST(an_access_that_the_rkey_does_not_allow_is_refused)
{
    enum rkey_fault fault = _i % RKEY_FAULTS;
    uint64_t va = mem + 0x1000;
    uint32_t rkey, pdn = b.pdn;
    unsigned rights =
        MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC | MEM_LOCAL_WRITE | MEM_LOCAL_READ;
    struct roce_packet pkt;
    static const uint8_t ops[] = {BTH_WRITE_ONLY, BTH_READ_REQUEST, BTH_FETCH_ADD};
    uint8_t op = ops[_i / RKEY_FAULTS];

    if (fault == NO_RIGHT) {
        rights &= ~(op == BTH_WRITE_ONLY     ? MEM_REMOTE_WRITE
                    : op == BTH_READ_REQUEST ? MEM_REMOTE_READ
                                             : MEM_REMOTE_ATOMIC);
    }
    if (fault == OTHER_PD) {
        ck_assert_int_eq(pd_alloc(&b.hca, 0, &b.pdn), SYN_OK);
    }
    rkey = bench_mkey(&b, va, 0x100, rights);
    b.pdn = pdn;
    if (fault == NO_SUCH_KEY) {
        rkey += 0x100;
    } else if (fault == OTHER_VARIANT) {
        rkey ^= 1;
    } else if (fault == BELOW_START) {
        va -= 8;
    } else if (fault == BEYOND_END) {
        va += 0x100;
    } else if (fault == ADDRESS_WRAPS) {
        va = -8ull;
    }
    pkt = request(op, 0);
    pkt.reth.va = pkt.atomic.va = va;
    pkt.reth.rkey = pkt.atomic.rkey = rkey;
    pkt.reth.len = 16;
    pkt.atomic.swap_add = 1;
    bench_rx(&b, &pkt, data, op == BTH_WRITE_ONLY ? 16 : 0);
    expect_ack(NAK_ACCESS, 0, 0);
    expect_state(PRM_QP_STATE_ERR);
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_WQ_ACCESS_ERROR);
    ck_assert_uint_eq(qp_counters(qp.qp)->resp_remote_access_errors, 1);
    for (int i = 0; i < 0x200; i++) {
        ck_assert_uint_eq(*(uint8_t *)at(mem + 0xf80 + i, 1), 0);
    }
}
END_TEST

/* IBTA 10.2.4: without remote access enabled on the QP the operation itself is not valid. */
START_TEST(access_that_the_qp_does_not_allow_is_an_invalid_request)
{
    static const uint8_t ops[] = {BTH_WRITE_ONLY, BTH_READ_REQUEST, BTH_FETCH_ADD};

    teardown();
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .no_access = true});
    if (ops[_i] == BTH_FETCH_ADD) {
        rx_atomic(ops[_i], 0, mem, 1, 0);
    } else {
        rx_rdma(ops[_i], 0, mem, all, 4, ops[_i] == BTH_WRITE_ONLY ? 4 : 0);
    }
    expect_ack(NAK_INVALID, 0, 0);
    expect_state(PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(after_a_fault_the_qp_answers_no_more)
{
    rx(BTH_SEND_LAST, 0, true, 1);
    expect_ack(NAK_INVALID, 0, 0);
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    bench_expect_silence(&b);
    ck_assert_uint_eq(*(uint8_t *)at(mem, 1), 0);
}
END_TEST

/* -- delivery ---------------------------------------------------------------------------------- */

START_TEST(the_first_packet_in_rtr_establishes_the_connection)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_RC};

    bench_qp(&b, &attr, &qp);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_RST2INIT_QP, &attr), SYN_OK);
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    ck_assert_int_eq(bench_event(&b, qp.qpn), -1);
    bench_expect_silence(&b);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &attr), SYN_OK);
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    rx_rdma(BTH_WRITE_ONLY, 1, mem, all, 4, 4);
    expect_ack(ACK, 0, 1);
    expect_ack(ACK, 1, 2);
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_COMM_EST);
    ck_assert_int_eq(bench_event(&b, qp.qpn), -1);
}
END_TEST

/* Each packet is a correct WRITE except for one thing. */
START_TEST(packets_of_others_are_not_taken)
{
    struct roce_packet pkt = request(BTH_WRITE_ONLY, 0);
    struct vport_counters *c = &b.hca.vport->counters;
    const uint64_t *counter = NULL;

    pkt.reth.va = mem;
    pkt.reth.rkey = all;
    pkt.reth.len = 4;
    pkt.ackreq = true;
    switch (_i) {
    case 0: /* IBTA 9.6.1: P_Key of another partition */
        pkt.pkey = 0x8001;
        counter = &c->rx_bad_pkey;
        break;
    case 1: /* source is not the connection's */
        pkt.addr.sgid[15] ^= 1;
        counter = &c->rx_bad_gid;
        break;
    case 2: /* destination is not an address of this port */
        pkt.addr.dgid[15] ^= 0x40;
        counter = &c->rx_bad_gid;
        break;
    case 3: /* destination is in another VLAN */
        pkt.addr.has_vlan = true;
        pkt.addr.vlan_tci = 5;
        counter = &c->rx_bad_gid;
        break;
    case 4: /* no such QP */
        pkt.dest_qp++;
        counter = &c->rx_no_qp;
        break;
    case 5: /* SMI */
        pkt.dest_qp = 0;
        counter = &c->rx_no_qp;
        break;
    case 6: /* another service */
        pkt.opcode = BTH_UC | BTH_WRITE_ONLY;
        counter = &c->rx_no_qp;
        break;
    }
    bench_rx(&b, &pkt, data, 4);
    bench_expect_silence(&b);
    ck_assert_uint_eq(*(uint8_t *)at(mem, 1), 0);
    ck_assert_uint_eq(*counter, 1);
}
END_TEST

/* IBTA 10.9.3: a limited member may send to a full member; a tag of VLAN 0 is only a priority. */
START_TEST(a_limited_member_and_a_priority_tag_are_fine)
{
    struct roce_packet pkt = request(BTH_WRITE_ONLY, 0);

    pkt.reth.va = mem;
    pkt.reth.rkey = all;
    pkt.reth.len = 4;
    pkt.ackreq = true;
    pkt.pkey = 0x7fff;
    pkt.addr.has_vlan = true;
    pkt.addr.vlan_tci = 5 << 13;
    bench_rx(&b, &pkt, data, 4);
    expect_ack(ACK, 0, 1);
}
END_TEST

START_TEST(a_responder_works_over_ipv6)
{
    struct roce_packet pkt;

    teardown();
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .gid = BENCH_IPV6});
    rx_rdma(BTH_WRITE_ONLY, 0, mem, all, 4, 4);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert(!pkt.addr.is_ipv4);
    ck_assert_uint_eq(pkt.aeth.syndrome, ACK);
}
END_TEST

START_TEST(a_qp_that_is_destroyed_leaves_nothing_behind)
{
    b.deaf = true;
    rx_rdma(BTH_READ_REQUEST, 0, mem, all, 100 * MTU, 0);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    b.deaf = false;
    bench_run(&b);
    ck_assert_uint_lt(b.got, 100);
    rx_rdma(BTH_WRITE_ONLY, 100, mem, all, 4, 4);
    ck_assert_uint_eq(b.hca.vport->counters.rx_no_qp, 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("responder");
    TCase *tc = tcase_create("rc");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_send_lands_in_the_receive_buffer_and_is_acknowledged);
    tcase_add_test(tc, a_send_without_ackreq_is_not_acknowledged);
    tcase_add_test(tc, a_message_of_three_packets_is_one_completion);
    tcase_add_test(tc, an_empty_send_completes);
    tcase_add_test(tc, psns_wrap_at_24_bits);
    tcase_add_test(tc, send_with_invalidate_takes_the_key_back);
    tcase_add_test(tc, a_write_changes_memory_and_nothing_else);
    tcase_add_test(tc, a_write_with_immediate_takes_a_receive_wqe);
    tcase_add_test(tc, a_write_of_no_bytes_needs_no_key);
    tcase_add_test(tc, a_read_is_answered_in_packets_of_the_path_mtu);
    tcase_add_test(tc, a_read_of_no_bytes_has_one_empty_answer);
    tcase_add_test(tc, an_ack_waits_for_the_data_of_an_earlier_read);
    tcase_add_test(tc, acks_that_wait_become_one);
    tcase_add_test(tc, a_long_read_waits_for_the_wire);
    tcase_add_test(tc, too_many_reads_at_a_time_are_a_fault);
    tcase_add_test(tc, a_read_that_fails_midway_ends_in_a_nak);
    tcase_add_test(tc, atomics_return_what_was_there);
    tcase_add_test(tc, an_atomic_on_an_odd_address_is_a_fault);
    tcase_add_test(tc, a_duplicate_send_is_acknowledged_again_only);
    tcase_add_test(tc, a_duplicate_write_does_not_write);
    tcase_add_test(tc, a_duplicate_read_may_begin_in_the_middle);
    tcase_add_test(tc, a_false_duplicate_read_is_dropped);
    tcase_add_test(tc, a_duplicate_atomic_gets_the_saved_result);
    tcase_add_test(tc, duplicates_without_end_are_bounded);
    tcase_add_test(tc, a_gap_is_reported_once);
    tcase_add_test(tc, an_empty_receive_queue_is_not_ready);
    tcase_add_test(tc, a_packet_behind_an_rnr_nak_is_not_out_of_sequence);
    tcase_add_test(tc, a_write_with_immediate_waits_for_its_wqe_at_the_end);
    tcase_add_loop_test(tc, a_request_that_contradicts_itself_is_invalid, 0,
                        (int)G_N_ELEMENTS(invalid));
    tcase_add_test(tc, a_message_longer_than_its_buffer_is_a_length_error);
    tcase_add_test(tc, a_receive_buffer_of_a_bad_key_is_our_own_fault);
    tcase_add_loop_test(tc, an_access_that_the_rkey_does_not_allow_is_refused, 0, 3 * RKEY_FAULTS);
    tcase_add_loop_test(tc, access_that_the_qp_does_not_allow_is_an_invalid_request, 0, 3);
    tcase_add_test(tc, after_a_fault_the_qp_answers_no_more);
    tcase_add_test(tc, the_first_packet_in_rtr_establishes_the_connection);
    tcase_add_loop_test(tc, packets_of_others_are_not_taken, 0, 7);
    tcase_add_test(tc, a_limited_member_and_a_priority_tag_are_fine);
    tcase_add_test(tc, a_responder_works_over_ipv6);
    tcase_add_test(tc, a_qp_that_is_destroyed_leaves_nothing_behind);
    suite_add_tcase(s, tc);
    return s;
}
