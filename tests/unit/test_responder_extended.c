/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests requests of extended atomics (docs/adr/0011): which are executed, and which are refused. */
#include <stdlib.h>
#include <string.h>
#include "model/memory/masked.h"
#include "model/rdma/responder_internal.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define ACK         0x1f
#define NAK_INVALID 0x61
#define NAK_ACCESS  0x62
#define CMP_SWAP    0xc0
#define FETCH_ADD   0xc1
#define RESPONSE    0xc2
#define XRC         8 /* difference between an opcode of RC and the same one of XRC */
#define LOG_RRA     2

static struct bench b;
static struct bench_qp qp;
static uint64_t mem;
static uint32_t key;
static uint8_t operands[MASKED_OPERANDS_MAX];

static void setup_mode(uint8_t mode)
{
    bench_init(&b);
    bench_qp_rts(&b,
                 &(struct bench_qp_attr){.st = PRM_QP_ST_RC,
                                         .mtu = PRM_QP_MTU_1024,
                                         .log_rra_max = LOG_RRA,
                                         .atomic_mode = mode},
                 &qp);
    mem = fake_host_alloc(&b.host, 4096, 4096);
    key = bench_mkey(&b, mem, 4096, MEM_REMOTE_ATOMIC);
    memset(operands, 0, sizeof(operands));
}

static void setup(void)
{
    setup_mode(PRM_ATOMIC_MODE_UP_TO_128B);
}

static void teardown(void)
{
    bench_clear(&b);
}

static uint8_t *at(uint64_t addr)
{
    return fake_host_ptr(&b.host, addr, 1);
}

static struct roce_packet request(uint8_t opcode, uint32_t psn, uint32_t len)
{
    struct roce_packet pkt = bench_packet(&qp, opcode, psn);

    pkt.ackreq = true;
    pkt.reth.va = mem;
    pkt.reth.rkey = key;
    pkt.reth.len = len;
    return pkt;
}

static size_t operand_bytes(uint8_t opcode, uint32_t len)
{
    return (opcode & 1 ? 2 : 4) * (size_t)len;
}

static void rx(uint8_t opcode, uint32_t psn, uint32_t len)
{
    struct roce_packet pkt = request(opcode, psn, len);

    bench_rx(&b, &pkt, operands, operand_bytes(opcode, len));
}

static void expect_number(uint32_t psn, uint32_t len, uint8_t low)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, RESPONSE);
    ck_assert_uint_eq(pkt.psn, psn);
    ck_assert_uint_eq(pkt.aeth.syndrome, ACK);
    ck_assert_uint_eq(pkt.payload_len, len);
    ck_assert_uint_eq(pkt.payload[len - 1], low);
}

static void expect_nak(uint8_t syndrome)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_ERR);
}

/* Adds one to the number of len bytes, which becomes n. */
static void add_one(uint32_t psn, uint32_t len, uint8_t n)
{
    memset(operands, 0, sizeof(operands));
    operands[len - 1] = 1;
    rx(FETCH_ADD, psn, len);
    expect_number(psn, len, n - 1);
    ck_assert_uint_eq(*at(mem), n);
}

/* qpc.atomic_mode limits the length of a number. Modes of the standard's atomics admit no extended
 * ones; every mode except none admits the standard's atomics. */
START_TEST(the_atomic_mode_is_obeyed)
{
    static const unsigned longest[] = {
        [PRM_ATOMIC_MODE_IB_SPEC] = 0,     [PRM_ATOMIC_MODE_ONLY_8B] = 0,
        [PRM_ATOMIC_MODE_UP_TO_8B] = 8,    [PRM_ATOMIC_MODE_UP_TO_16B] = 16,
        [PRM_ATOMIC_MODE_UP_TO_32B] = 32,  [PRM_ATOMIC_MODE_UP_TO_64B] = 64,
        [PRM_ATOMIC_MODE_UP_TO_128B] = 128};
    unsigned psn = 0;
    struct roce_packet pkt;

    setup_mode((uint8_t)_i);
    pkt = bench_packet(&qp, BTH_RC | BTH_FETCH_ADD, psn++);
    pkt.atomic.va = mem;
    pkt.atomic.rkey = key;
    bench_rx(&b, &pkt, NULL, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ATOMIC_ACK);
    for (uint32_t len = 4; len <= longest[_i]; len *= 2) {
        add_one(psn, len, (uint8_t)psn);
        psn++;
    }
    rx(FETCH_ADD, psn, longest[_i] ? 2 * longest[_i] : 8);
    expect_nak(NAK_INVALID);
    teardown();
}
END_TEST

enum {
    MISALIGNED,
    NO_LENGTH,
    ODD_LENGTH,
    SHORT_LENGTH,
    LONG_LENGTH,
    HUGE_LENGTH,
    FEW_OPERANDS,
    MANY_OPERANDS,
    NO_OPERANDS,
    ODD_OPERANDS,
    NO_KEY,
    PAST_THE_KEY,
    FAULTS,
};

/* IBTA 9.7.4: a malformed request is an invalid request; a key that does not allow it causes an
 * access error. Memory stays unchanged. */
START_TEST(requests_that_are_refused)
{
    static const uint32_t lengths[] = {[NO_LENGTH] = 0,
                                       [ODD_LENGTH] = 12,
                                       [SHORT_LENGTH] = 2,
                                       [LONG_LENGTH] = 256,
                                       [HUGE_LENGTH] = 0x80000000};
    static const size_t payloads[] = {
        [FEW_OPERANDS] = 48, [MANY_OPERANDS] = 128, [NO_OPERANDS] = 0, [ODD_OPERANDS] = 63};
    struct roce_packet pkt = request(CMP_SWAP, 0, 16);
    size_t len = 64;

    memset(operands, 0xff, sizeof(operands));
    switch (_i) {
    case MISALIGNED:
        pkt.reth.va += 8;
        break;
    case NO_KEY:
        pkt.reth.rkey ^= 1;
        break;
    case PAST_THE_KEY:
        pkt.reth.va += 4096;
        break;
    default:
        if (_i <= HUGE_LENGTH) {
            pkt.reth.len = lengths[_i];
            len = MIN(4 * (size_t)lengths[_i], sizeof(operands));
        } else {
            len = payloads[_i];
        }
        break;
    }
    bench_rx(&b, &pkt, operands, len);
    expect_nak(_i >= NO_KEY ? NAK_ACCESS : NAK_INVALID);
    for (unsigned i = 0; i < 256; i++) {
        ck_assert_uint_eq(*at(mem + i), 0);
    }
}
END_TEST

/* Neither mkc.rw nor mkc.rr is enough: mkc.a allows atomics. */
START_TEST(a_key_without_the_right)
{
    key = bench_mkey(&b, mem, 4096, MEM_REMOTE_READ | MEM_REMOTE_WRITE);
    rx(FETCH_ADD, 0, 64);
    expect_nak(NAK_ACCESS);
}
END_TEST

/* IBTA 9.7.5: a duplicate is answered with the value that the first request found, as long as
 * requests may be outstanding (qpc.log_rra_max); an older one is a ghost. */
START_TEST(duplicates_are_answered_and_not_carried_out)
{
    struct roce_packet pkt;
    uint8_t n = 0;

    for (uint32_t psn = 0; psn < 6; psn++) {
        add_one(psn, 4u << psn % 6, ++n);
    }
    for (uint32_t psn = 2; psn < 6; psn++) {
        operands[0] = 0x77; /* even if it says something else */
        rx(FETCH_ADD, psn, 4u << psn % 6);
        expect_number(psn, 4u << psn % 6, (uint8_t)psn);
        ck_assert_uint_eq(*at(mem), n);
    }
    rx(FETCH_ADD, 1, 8);
    ck_assert(!bench_tx(&b, &pkt));
    ck_assert_uint_eq(*at(mem), n);
}
END_TEST

/* Duplicates whose answers wait for the wire while later requests take their places. */
START_TEST(an_answer_whose_resource_is_taken_is_dropped)
{
    struct roce_packet first = request(FETCH_ADD, 0, 32), pkt;

    operands[31] = 1;
    first.payload = operands;
    first.payload_len = 64;
    for (uint32_t psn = 0; psn < 4; psn++) {
        rx(FETCH_ADD, psn, 32);
        expect_number(psn, 32, (uint8_t)psn);
    }
    roce_rx(&b.hca, &first);
    pkt = request(FETCH_ADD, 4, 32);
    pkt.payload = operands;
    pkt.payload_len = 64;
    roce_rx(&b.hca, &pkt);
    bench_run(&b);
    expect_number(4, 32, 4);
    ck_assert(!bench_tx(&b, &pkt));
}
END_TEST

/* More requests are outstanding than qpc.log_rra_max allows: an invalid request (IBTA 9.7.4). */
START_TEST(more_extended_atomics_than_resources_are_invalid)
{
    struct roce_packet pkt;

    for (uint32_t psn = 0; psn <= 1u << LOG_RRA; psn++) {
        pkt = request(FETCH_ADD, psn, 128);
        pkt.payload = operands;
        pkt.payload_len = 256;
        roce_rx(&b.hca, &pkt);
    }
    bench_run(&b);
    for (uint32_t psn = 0; psn < 1u << LOG_RRA; psn++) {
        expect_number(psn, 128, 0);
    }
    expect_nak(NAK_INVALID);
}
END_TEST

/* A QP without such requests keeps no numbers; their memory is accounted and freed. */
START_TEST(numbers_are_paid_for)
{
    uint64_t before;
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | BTH_FETCH_ADD, 0);

    pkt.atomic.va = mem;
    pkt.atomic.rkey = key;
    bench_rx(&b, &pkt, NULL, 0);
    ck_assert(bench_tx(&b, &pkt));
    before = b.hca.icm.used;
    ck_assert(!qp.qp->peer.resp.answers->numbers);
    add_one(1, 128, 1);
    ck_assert_uint_eq(b.hca.icm.used - before, RESPONDER_NUMBERS_BYTES);
    ck_assert_uint_le(RESPONDER_NUMBERS_BYTES, 2048);
    ck_assert_int_eq(qp_modify(&b.hca, 0, qp.qpn, PRM_CMD_OP_2RST_QP, 0, NULL, NULL), SYN_OK);
    ck_assert_uint_lt(b.hca.icm.used, before);
}
END_TEST

/* On an RC QP, XRC's opcodes are dropped, and the other way round. */
START_TEST(opcodes_of_another_service_are_dropped)
{
    uint64_t before = b.hca.vport->counters.rx_no_qp;
    struct roce_packet pkt = request(FETCH_ADD + XRC, 0, 8);

    bench_rx(&b, &pkt, operands, 16);
    ck_assert(!bench_tx(&b, &pkt));
    ck_assert_uint_eq(b.hca.vport->counters.rx_no_qp, before + 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("responder of extended atomics");
    TCase *tc = tcase_create("requests");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, requests_that_are_refused, 0, FAULTS);
    tcase_add_test(tc, a_key_without_the_right);
    tcase_add_test(tc, duplicates_are_answered_and_not_carried_out);
    tcase_add_test(tc, an_answer_whose_resource_is_taken_is_dropped);
    tcase_add_test(tc, more_extended_atomics_than_resources_are_invalid);
    tcase_add_test(tc, numbers_are_paid_for);
    tcase_add_test(tc, opcodes_of_another_service_are_dropped);
    suite_add_tcase(s, tc);
    tc = tcase_create("modes");
    tcase_add_loop_test(tc, the_atomic_mode_is_obeyed, PRM_ATOMIC_MODE_IB_SPEC,
                        PRM_ATOMIC_MODE_UP_TO_128B + 1);
    suite_add_tcase(s, tc);
    return s;
}
