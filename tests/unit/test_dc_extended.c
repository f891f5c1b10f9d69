/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests extended atomics from a DC initiator to targets (docs/adr/0011, docs/explanation/dc.md). */
#include <stdlib.h>
#include <string.h>
#include "tests/unit/dc_lab.h"
#include "tests/unit/suite.h"

#define FA PRM_WQE_OPCODE_ATOMIC_MASKED_FA
#define N  32 /* bytes of a number */

static struct lab *lab;
static struct lab_side *near, *far;
static struct lab_qp dci;
static struct lab_dct dct, other;
static uint64_t result, number;
static const uint8_t operands[2 * N] = {[N - 1] = 1}; /* adds one */

static void setup(void)
{
    lab = lab_new();
    near = &lab->side[0];
    far = &lab->side[1];
    lab_dct_new(far, &dct);
    lab_dct_new(far, &other);
    lab_dci_new(near, &lab_dci, NULL, &dci);
    result = lab_mem(near, N, 0);
    number = lab_mem(far, N, 0);
}

static void teardown(void)
{
    lab_free(lab);
}

static void add(const struct lab_dct *to, uint64_t raddr, uint32_t rkey)
{
    struct lab_wr wr = {.opcode = FA,
                        .opmod = 8 | 3,
                        .operands = operands,
                        .operands_len = sizeof(operands),
                        .sge = {{result, N, 0}},
                        .num_sge = 1,
                        .raddr = raddr,
                        .rkey = rkey};

    lab_post(&dci, lab_to(&wr, to));
}

static void expect_sent(uint8_t syndrome)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(near, &cqe));
    ck_assert_uint_eq(cqe.opcode, syndrome ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

/* In memory the least significant byte comes first, in the result last. */
static void expect_numbers(uint8_t found, uint8_t is)
{
    ck_assert_uint_eq(((uint8_t *)lab_ptr(near, result, N))[N - 1], found);
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(far, number, 1), is);
}

/* Request and response carry the DCETH, and go to the target that the WQE names. */
START_TEST(an_extended_atomic_goes_to_the_target_of_its_wqe)
{
    unsigned requests = 0, responses = 0;

    add(&dct, number, far->key);
    add(&other, number, far->key);
    lab_run(lab);
    expect_sent(0);
    expect_sent(0);
    expect_numbers(1, 2);
    for (unsigned i = 0; i < lab->num_packets; i++) {
        const struct roce_packet *pkt = &lab->trace[i].pkt;

        ck_assert_uint_eq(bth_opcodes[pkt->opcode].transport, BTH_DC);
        requests += pkt->opcode == 0xd1 && pkt->payload_len == 2 * N && pkt->reth.len == N;
        responses += pkt->opcode == 0xd2 && pkt->payload_len == N;
    }
    ck_assert_uint_eq(requests, 2);
    ck_assert_uint_eq(responses, 2);
}
END_TEST

static bool lose_two_responses(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode != 0xd2 || l->tap_count++ > 1;
}

/* A duplicate is answered with the value that the session's responder found the first time. */
START_TEST(lost_responses_add_nothing)
{
    lab->tap = lose_two_responses;
    add(&dct, number, far->key);
    lab_advance(lab, 8 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    expect_numbers(0, 1);
    ck_assert_uint_eq(lab->tap_count, 3);
}
END_TEST

/* A key that allows no atomics, and an address that is not a multiple of the number's length. */
START_TEST(requests_that_are_refused)
{
    uint32_t key = lab_mr(far, number, N, MEM_REMOTE_READ | MEM_REMOTE_WRITE);

    if (_i) {
        add(&dct, number + 8, far->key);
    } else {
        add(&dct, number, key);
    }
    lab_run(lab);
    expect_sent(_i ? PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR : PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    expect_numbers(0, 0);
}
END_TEST

/* dctc.atomic_mode, as qpc.atomic_mode. */
START_TEST(a_target_of_shorter_numbers)
{
    struct lab_dct brief;

    lab_dct_new(far, &brief);
    lab_dct_of(&brief)->qp.atomic_mode = PRM_ATOMIC_MODE_UP_TO_16B;
    add(&brief, number, far->key);
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("extended atomics over DC");
    TCase *tc = tcase_create("to targets");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_extended_atomic_goes_to_the_target_of_its_wqe);
    tcase_add_test(tc, lost_responses_add_nothing);
    tcase_add_loop_test(tc, requests_that_are_refused, 0, 2);
    tcase_add_test(tc, a_target_of_shorter_numbers);
    suite_add_tcase(s, tc);
    return s;
}
