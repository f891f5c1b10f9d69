/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests extended atomics from WQE to completion, between two HCAs (docs/adr/0011). */
#include "model/memory/masked.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define CS          PRM_WQE_OPCODE_ATOMIC_MASKED_CS
#define FA          PRM_WQE_OPCODE_ATOMIC_MASKED_FA
#define OPMOD(size) ((uint8_t)(8 | (__builtin_ctz(size) - 2)))

/* -- a reference, bit by bit ------------------------------------------------------------------- */

static bool bit(const uint8_t *number, unsigned len, unsigned n)
{
    return number[len - 1 - n / 8] >> n % 8 & 1;
}

static void reference(uint8_t opcode, unsigned len, const uint8_t *operands, uint8_t *number)
{
    const uint8_t *second = operands + len, *third = operands + 2 * len, *fourth = third + len;
    uint8_t made[MASKED_MAX] = {0};
    bool agrees = true, carry = false;

    for (unsigned n = 0; n < 8 * len; n++) {
        bool held = bit(number, len, n), first = bit(operands, len, n), is;

        if (opcode == CS) {
            agrees &= !bit(fourth, len, n) || held == bit(second, len, n);
            is = bit(third, len, n) ? first : held;
        } else {
            is = held ^ first ^ carry;
            carry = !bit(second, len, n) && held + first + carry > 1;
        }
        made[len - 1 - n / 8] |= (uint8_t)(is << n % 8);
    }
    if (agrees) {
        memcpy(number, made, len);
    }
}

static void reverse(uint8_t *to, const uint8_t *from, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        to[i] = from[len - 1 - i];
    }
}

/* -- executed atomics -------------------------------------------------------------------------- */

static uint64_t target, result;
static uint8_t *memory, *got;

/* An atomic's address is a multiple of its size. */
static uint64_t aligned_mem(size_t len)
{
    return (lab_mem(right, len + MASKED_MAX, 1) + MASKED_MAX - 1) & -(uint64_t)MASKED_MAX;
}

static void setup_memory(void)
{
    setup();
    target = aligned_mem(4096);
    result = lab_mem(left, 4096, 0);
    memory = lab_ptr(right, target, 4096);
    got = lab_ptr(left, result, 4096);
}

static struct lab_wr extended_wr(uint8_t opcode, unsigned len, const uint8_t *operands)
{
    struct lab_wr wr = rdma_wr(opcode, result, len, target);

    wr.opmod = OPMOD(len);
    wr.operands = operands;
    wr.operands_len = (opcode == CS ? 4 : 2) * len;
    return wr;
}

static void post(const struct lab_wr *wr)
{
    lab_post(&a, wr);
    lab_run(lab);
}

/* Random bytes; masks and boundaries have few bits, so that most bits stay unchanged and compares
 * match. */
static void random_operands(uint8_t opcode, unsigned len, const uint8_t *held, uint8_t *operands)
{
    for (unsigned i = 0; i < 4 * len; i++) {
        operands[i] = (uint8_t)(rand() >> 7);
    }
    if (opcode == CS && rand() % 2) {
        memcpy(operands + len, held, len);
        operands[len + (unsigned)rand() % len] ^= (uint8_t)(rand() % 2);
    }
    if (opcode == FA) {
        for (unsigned i = 0; i < len; i++) {
            operands[len + i] &= (uint8_t)(rand() >> 7 & rand() >> 7);
        }
    }
}

/* Numbers of every size, with the bits of a mask and the carries of fields, equal the reference. In
 * memory they are in the host's byte order. The returned value has the most significant byte first,
 * except for 8 bytes, which are a word. */
START_TEST(numbers_of_every_size)
{
    static const uint8_t opcodes[] = {CS, FA};

    srand(7);
    for (unsigned len = MASKED_MIN; len <= MASKED_MAX; len *= 2) {
        for (unsigned i = 0; i < 200; i++) {
            uint8_t opcode = opcodes[i % 2], operands[MASKED_OPERANDS_MAX] = {0};
            uint8_t want[MASKED_MAX], held[MASKED_MAX], host[MASKED_MAX];
            struct lab_wr wr = extended_wr(opcode, len, operands);
            struct lab_cqe cqe;

            reverse(held, memory, len);
            memcpy(want, held, len);
            random_operands(opcode, len, held, operands);
            reference(opcode, len, operands, want);
            reverse(host, want, len);
            post(&wr);
            ck_assert(lab_poll(left, &cqe));
            ck_assert_msg(cqe.opcode == PRM_CQE_OPCODE_REQ, "%u bytes: 0x%x", len, cqe.syndrome);
            ck_assert_uint_eq(cqe.send_opcode, opcode);
            ck_assert_uint_eq(cqe.byte_cnt, len);
            ck_assert_mem_eq(memory, host, len);
            if (len == 8) {
                reverse(host, held, len);
                ck_assert_mem_eq(got, host, len);
            } else {
                ck_assert_mem_eq(got, held, len);
            }
            memcpy(memory + 2048, memory + len, 8); /* the bytes behind it are unchanged */
        }
    }
    ck_assert_uint_eq(a.qp->req.flight ? a.qp->req.flight->reads : 0, 0);
}
END_TEST

/* Two counters of 16 bits in a word of 4 bytes: the overflow of the lower one is lost. */
START_TEST(a_field_does_not_carry_into_the_next)
{
    static const uint8_t operands[] = {0, 1, 0, 2, 0x80, 0, 0x80, 0};
    struct lab_wr wr = extended_wr(FA, 4, operands);
    uint32_t word = 0x0005ffff;

    memcpy(memory, &word, sizeof(word));
    memset(memory + 4, 0x5a, 4);
    post(&wr);
    memcpy(&word, memory, sizeof(word));
    ck_assert_uint_eq(word, 0x00060001);
    ck_assert_uint_eq(memory[4], 0x5a); /* nor into its neighbour */
    ck_assert_mem_eq(got, "\x00\x05\xff\xff", 4);
}
END_TEST

/* A boundary behind each bit: an addition without carries, which is an exclusive or. */
START_TEST(boundaries_everywhere_make_an_exclusive_or)
{
    uint8_t operands[16] = {0};
    struct lab_wr wr = extended_wr(FA, 8, operands);
    uint64_t word = 0x1122334455667788;

    memset(operands, 0xff, sizeof(operands));
    memcpy(memory, &word, sizeof(word));
    post(&wr);
    memcpy(&word, memory, sizeof(word));
    ck_assert_uint_eq(word, ~0x1122334455667788ull);
}
END_TEST

/* atomic_req_8B_endianness_mode: with big-endian replies the 8 returned bytes, of any atomic, have
 * the most significant byte first; memory is a word of the host in either mode. */
START_TEST(replies_are_big_endian_if_the_driver_wants_them_so)
{
    static const uint8_t operands[16] = {[7] = 1};
    struct lab_wr extended = extended_wr(FA, 8, operands);
    struct lab_wr standard = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, target);
    uint64_t word = 0x1122334455667788;

    standard.swap_add = 1;
    memcpy(memory, &word, sizeof(word));
    left->hca.big_endian_replies = true;
    post(&extended);
    ck_assert_mem_eq(got, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
    post(&standard);
    ck_assert_mem_eq(got, "\x11\x22\x33\x44\x55\x66\x77\x89", 8);
    memcpy(&word, memory, sizeof(word));
    ck_assert_uint_eq(word, 0x112233445566778a);
}
END_TEST

/* On the wire: a RETH and the operands as in the WQE; in return an AETH and the number. */
START_TEST(extended_atomics_have_these_headers_on_the_wire)
{
    uint8_t operands[4 * 16] = {0};
    struct lab_wr wr = extended_wr(CS, 16, operands);
    const struct roce_packet *request = &lab->trace[0].pkt, *response = &lab->trace[1].pkt;

    post(&wr);
    ck_assert_uint_eq(lab->num_packets, 2);
    ck_assert_uint_eq(request->opcode, 0xc0);
    ck_assert(request->ackreq && request->reth.va == target && request->reth.len == 16);
    ck_assert_uint_eq(request->payload_len, 64);
    ck_assert_uint_eq(response->opcode, 0xc2);
    ck_assert_uint_eq(response->psn, request->psn);
    ck_assert_uint_eq(response->payload_len, 16);
    wr = extended_wr(FA, 4, operands); /* operands in 16 bytes of the WQE, 8 on the wire */
    post(&wr);
    ck_assert_uint_eq(lab->trace[2].pkt.opcode, 0xc1);
    ck_assert_uint_eq(lab->trace[2].pkt.payload_len, 8);
}
END_TEST

/* -- loss -------------------------------------------------------------------------------------- */

static bool lose_first_response(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from == 0 || pkt->opcode != 0xc2 || l->tap_count++ > 0;
}

/* A lost number is sent again from where the responder keeps it: nothing is added twice (IBTA
 * 9.7.5). */
START_TEST(a_lost_response_is_sent_again)
{
    uint8_t operands[2 * 128] = {[127] = 1};
    struct lab_wr wr = extended_wr(FA, 128, operands);
    uint8_t before[128];

    reverse(before, memory, 128);
    memory[0] = before[127] = 41;
    lab->tap = lose_first_response;
    post(&wr);
    post(&wr);
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_sent(FA, 0);
    expect_sent(FA, 5);
    ck_assert_uint_eq(memory[0], 43);
    before[127] = 42;
    ck_assert_mem_eq(got, before, 128);
    ck_assert_uint_ge(lab->tap_count, 3);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

static const struct bad_wqe {
    uint8_t opmod;
    uint32_t operands_len, list_len;
    uint8_t syndrome;
} bad_wqes[] = {
    {0, 32, 8, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR},      /* not extended */
    {8 | 7, 32, 8, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR},  /* operands behind pointers */
    {8 | 6, 960, 8, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR}, /* 256 bytes */
    {16 | 1, 32, 8, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR},
    {8 | 1, 16, 8, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR}, /* the scatter list is taken for masks */
    {8 | 2, 32, 16, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR}, /* operands end too early */
    {8 | 1, 32, 4, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
    {8 | 0, 16, 8, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
};

START_TEST(wqes_that_make_no_sense)
{
    const struct bad_wqe *bad = &bad_wqes[_i];
    uint8_t operands[960] = {0};
    struct lab_wr wr = extended_wr(CS, 8, operands);

    wr.opmod = bad->opmod;
    wr.operands_len = bad->operands_len;
    wr.sge[0].len = bad->list_len;
    post(&wr);
    expect_error(CS, 0, bad->syndrome);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* A packet has at most the path MTU behind its headers: at 256 bytes a compare-and-swap has numbers
 * of 64 bytes at most, a fetch-and-add of 128. */
START_TEST(operands_fit_the_path_mtu)
{
    uint8_t operands[MASKED_OPERANDS_MAX] = {0};
    struct lab_path path = lab_path;
    struct lab_wr wr;

    setup_bare();
    path.mtu = PRM_QP_MTU_256;
    lab_rc_pair(lab, &a, &b, &path);
    target = aligned_mem(128);
    result = lab_mem(left, 128, 0);
    wr = extended_wr(CS, 64, operands);
    post(&wr);
    expect_sent(CS, 0);
    wr = extended_wr(FA, 128, operands);
    post(&wr);
    expect_sent(FA, 5);
    wr = extended_wr(CS, 128, operands);
    post(&wr);
    expect_error(CS, 10, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    teardown();
}
END_TEST

/* The answer to one atomic cannot be taken for the answer to another. */
START_TEST(a_response_of_another_length_is_an_error)
{
    static const struct {
        uint8_t opcode, response;
        size_t len;
    } rows[] = {{FA, 0xc2, 4},
                {FA, 0xc2, 16},
                {FA, BTH_ATOMIC_ACK, 0},
                {PRM_WQE_OPCODE_ATOMIC_FA, 0xc2, 8}};
    static const uint8_t operands[16] = {0};
    struct lab_wr wr = extended_wr(FA, 8, operands);
    struct roce_packet pkt = {
        .opcode = rows[_i].response, .psn = lab_path.psn, .aeth.syndrome = AETH_ACK};
    static const uint8_t payload[16];

    if (rows[_i].opcode != FA) {
        wr = rdma_wr(rows[_i].opcode, result, 8, target);
    }
    lab->tap = lose_first_response;
    lab_post(&a, &wr);
    /* as if the response had come: the request is on its way */
    hca_run(&left->hca, LAB_BUDGET);
    pkt.payload = payload;
    pkt.payload_len = rows[_i].len;
    requester_rx(a.qp, &pkt);
    hca_run(&left->hca, LAB_BUDGET);
    expect_error(rows[_i].opcode, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("extended atomics");
    TCase *tc = tcase_create("WQE to completion");

    tcase_add_checked_fixture(tc, setup_memory, teardown);
    tcase_add_test(tc, numbers_of_every_size);
    tcase_add_test(tc, a_field_does_not_carry_into_the_next);
    tcase_add_test(tc, boundaries_everywhere_make_an_exclusive_or);
    tcase_add_test(tc, replies_are_big_endian_if_the_driver_wants_them_so);
    tcase_add_test(tc, extended_atomics_have_these_headers_on_the_wire);
    tcase_add_test(tc, a_lost_response_is_sent_again);
    tcase_add_loop_test(tc, wqes_that_make_no_sense, 0, G_N_ELEMENTS(bad_wqes));
    tcase_add_loop_test(tc, a_response_of_another_length_is_an_error, 0, 4);
    suite_add_tcase(s, tc);
    tc = tcase_create("path MTU");
    tcase_add_test(tc, operands_fit_the_path_mtu);
    suite_add_tcase(s, tc);
    return s;
}
