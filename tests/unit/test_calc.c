/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests calculations with the data of messages, from WQE to completion (docs/adr/0030). */
#include <inttypes.h>
#include "model/memory/calc.h"
#include "tests/unit/page_fault_bench.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define SEND  PRM_WQE_OPCODE_SEND
#define WRITE PRM_WQE_OPCODE_RDMA_WRITE
#define IMM   PRM_WQE_OPCODE_RDMA_WRITE_IMM
#define READ  PRM_WQE_OPCODE_RDMA_READ

#define EL    CALC_ELEMENT
#define MOST  CALC_MAX_BYTES

static uint64_t near, far;
static uint8_t *ours, *theirs;

static void pair_that_calculates(uint8_t st, const struct lab_path *path)
{
    struct lab_qp_attr attr = lab_rc;

    attr.st = st;
    attr.master = true;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, path);
}

static void memory(void)
{
    near = page_aligned(lab_mem(left, 4 * FAULT_PAGE, 0));
    far = page_aligned(lab_mem(right, 4 * FAULT_PAGE, 0));
    ours = lab_ptr(left, near, 2 * MOST);
    theirs = lab_ptr(right, far, 2 * MOST);
}

static void setup_calc(void)
{
    setup_bare();
    pair_that_calculates(PRM_QP_ST_RC, &lab_path);
    memory();
}

static void put(uint8_t *memory, unsigned nth, uint64_t value, uint64_t id)
{
    const uint64_t words[] = {GUINT64_TO_BE(value), GUINT64_TO_BE(id)};

    memcpy(memory + nth * EL, words, EL);
}

static void expect_element(const uint8_t *memory, uint64_t value, uint64_t id)
{
    uint64_t words[2];

    memcpy(words, memory, EL);
    ck_assert_msg(GUINT64_FROM_BE(words[0]) == value && GUINT64_FROM_BE(words[1]) == id,
                  "0x%" PRIx64 " of %" PRIu64 ", expected 0x%" PRIx64 " of %" PRIu64,
                  GUINT64_FROM_BE(words[0]), GUINT64_FROM_BE(words[1]), value, id);
}

static uint64_t bits(double number)
{
    uint64_t word;

    memcpy(&word, &number, sizeof(word));
    return word;
}

/* A request with a calculation. A READ's operands are at the far side, and its result is at the
 * near side; otherwise it is the other way round. */
static struct lab_wr calc_wr(uint8_t opcode, uint8_t opmod, uint32_t len)
{
    struct lab_wr wr = rdma_wr(opcode, near, len, far);

    wr.opmod = opmod;
    return wr;
}

static uint8_t *operands_of(uint8_t opcode)
{
    return opcode == READ ? theirs : ours;
}

static uint8_t *result_of(uint8_t opcode)
{
    return opcode == READ ? ours : theirs;
}

static void post(const struct lab_wr *wr)
{
    if (wr->opcode == SEND || wr->opcode == IMM) {
        lab_post_recv(&b, far, 4 * EL);
    }
    lab_post(&a, wr);
    lab_run(lab);
}

static void expect_calculated(uint8_t opcode)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(left, &cqe));
    ck_assert_msg(cqe.opcode == PRM_CQE_OPCODE_REQ, "syndrome 0x%x", cqe.syndrome);
    ck_assert_uint_eq(cqe.byte_cnt, opcode == READ ? EL : 0);
    if (opcode == SEND || opcode == IMM) {
        ck_assert(lab_poll(right, &cqe));
        ck_assert_uint_eq(cqe.byte_cnt, EL);
    }
}

/* -- the operations ---------------------------------------------------------------------------- */

static const struct row {
    uint8_t op;
    uint64_t a, a_id, b, b_id, value, id;
} rows[] = {
    {CALC_ADD, 40, 1, 2, 9, 42, 1},
    {CALC_ADD, UINT64_MAX, 1, 2, 9, 1, 1},
    {CALC_MAXLOC, 5, 7, 4, 3, 5, 7},
    {CALC_MAXLOC, 4, 7, 5, 3, 5, 3},
    {CALC_MAXLOC, 5, 7, 5, 3, 5, 3}, /* of equal values the smaller id */
    {CALC_MAXLOC, 5, 3, 5, 7, 5, 3},
    {CALC_MAXLOC, 1, 1, 1ull << 63, 2, 1ull << 63, 2}, /* values have no sign */
    {CALC_MAXLOC, 0, UINT64_MAX, 0, 1ull << 63, 0, 1ull << 63},
    {CALC_AND, 0xff00ff00ff00ff00, 1, 0xf0f0f0f0f0f0f0f0, 9, 0xf000f000f000f000, 1},
    {CALC_OR, 0xff00ff00ff00ff00, 1, 0xf0f0f0f0f0f0f0f0, 9, 0xfff0fff0fff0fff0, 1},
    {CALC_XOR, 0xff00ff00ff00ff00, 1, 0xf0f0f0f0f0f0f0f0, 9, 0x0ff00ff00ff00ff0, 1},
    /* 1.5 + 2.25 */
    {CALC_ADD_FP, 0x3ff8000000000000, 1, 0x4002000000000000, 9, 0x400e000000000000, 1},
    /* 2^53 + 1 is halfway to 2^53 + 2: the even neighbour */
    {CALC_ADD_FP, 0x4340000000000000, 1, 0x3ff0000000000000, 9, 0x4340000000000000, 1},
    /* 2^53 + 2 + 1 likewise */
    {CALC_ADD_FP, 0x4340000000000001, 1, 0x3ff0000000000000, 9, 0x4340000000000002, 1},
    /* the smallest number is not taken for 0 */
    {CALC_ADD_FP, 1, 1, 1, 9, 2, 1},
    /* the largest number twice; infinity minus infinity; no number, with any bits, plus 1 */
    {CALC_ADD_FP, 0x7fefffffffffffff, 1, 0x7fefffffffffffff, 9, 0x7ff0000000000000, 1},
    {CALC_ADD_FP, 0x7ff0000000000000, 1, 0xfff0000000000000, 9, 0x7ff8000000000000, 1},
    {CALC_ADD_FP, 0xfff8000000000123, 1, 0x3ff0000000000000, 9, 0x7ff8000000000000, 1},
    {CALC_ADD_FP, 0x3ff0000000000000, 1, 0x7ff4000000000123, 9, 0x7ff8000000000000, 1},
};
static const uint8_t opcodes[] = {SEND, WRITE, IMM, READ};

#ifdef __x86_64__
/* With no VM, the device works in the program's threads. Their settings: to nearest; upwards;
 * downwards; small numbers are 0, as with -ffast-math; invalid operations trap. */
static const unsigned settings[] = {0x1f80, 0x5f80, 0x3f80, 0x9fc0, 0x1f00};

START_TEST(the_settings_of_the_thread_do_not_matter)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const struct row *row = &rows[i];
        uint8_t operands[2 * EL], sum[EL];
        unsigned after;

        put(operands, 0, row->a, row->a_id);
        put(operands, 1, row->b, row->b_id);
        __builtin_ia32_ldmxcsr(settings[_i]);
        calc_begin((enum calc_op)row->op, sum, operands, 2);
        after = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(settings[0]);
        ck_assert_uint_eq(after, settings[_i]);
        expect_element(sum, row->value, row->id);
    }
}
END_TEST
#endif

/* Operands and result have the most significant byte first. Only MAXLOC looks at ids; otherwise the
 * result has the id of the first operand. 16 bytes are sent or written, and no more. */
START_TEST(two_operands_make_this_result)
{
    const struct row *row = &rows[_i];

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        uint8_t opcode = opcodes[i];
        struct lab_wr wr = calc_wr(opcode, row->op, 2 * EL);

        memset(ours, 0x5a, 4 * EL);
        memset(theirs, 0x5a, 4 * EL);
        put(operands_of(opcode), 0, row->a, row->a_id);
        put(operands_of(opcode), 1, row->b, row->b_id);
        post(&wr);
        expect_calculated(opcode);
        expect_element(result_of(opcode), row->value, row->id);
        expect_element(result_of(opcode) + EL, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a);
    }
}
END_TEST

/* A READ asks for all operands; other messages carry the result only. */
START_TEST(a_message_carries_the_result)
{
    struct lab_wr wr = calc_wr(WRITE, CALC_ADD, 8 * EL), read = calc_wr(READ, CALC_ADD, 8 * EL);

    post(&wr);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_WRITE_ONLY);
    ck_assert_uint_eq(lab->trace[0].pkt.payload_len, EL);
    ck_assert_uint_eq(lab->trace[0].pkt.reth.len, EL);
    lab->num_packets = 0;
    post(&read);
    ck_assert_uint_eq(lab->trace[0].pkt.reth.len, 8 * EL);
    ck_assert_uint_eq(lab->trace[1].pkt.payload_len, 8 * EL);
}
END_TEST

/* Operands may lie in several elements of the list, and several in one (coredirect's allreduce has
 * both forms). A single operand is its own result. The order of additions is the list's. */
START_TEST(operands_lie_anywhere_in_the_list)
{
    struct lab_wr wr = calc_wr(WRITE, CALC_ADD_FP, EL);

    put(ours, 0, bits(1e300), 4);
    put(ours, 1, bits(-1e300), 5);
    put(ours, 9, bits(1.0), 6);
    post(&wr);
    expect_calculated(WRITE);
    expect_element(theirs, bits(1e300), 4);
    wr.sge[0].len = 2 * EL;
    wr.sge[1] = (struct lab_sge){near + 9 * EL, EL, 0};
    wr.num_sge = 2;
    post(&wr);
    expect_calculated(WRITE);
    expect_element(theirs, bits(1.0), 4);
    wr.sge[0] = (struct lab_sge){near, EL, 0};
    wr.sge[2] = (struct lab_sge){near + EL, EL, 0};
    wr.num_sge = 3;
    post(&wr); /* 1e300 + 1 - 1e300 */
    expect_calculated(WRITE);
    expect_element(theirs, bits(0.0), 4);
}
END_TEST

START_TEST(operands_may_be_in_the_wqe)
{
    uint8_t operands[3 * EL];
    struct lab_wr wr = calc_wr(WRITE, CALC_ADD, 0);

    for (unsigned i = 0; i < 3; i++) {
        put(operands, i, 10 + i, i);
    }
    wr.inline_data = operands;
    wr.inline_len = sizeof(operands);
    post(&wr);
    expect_calculated(WRITE);
    expect_element(theirs, 33, 0);
}
END_TEST

/* 256 operands, which is 4096 bytes, whatever the path MTU is: a READ's response has 16 packets
 * then. Each packet goes on where the last one ended. */
START_TEST(the_most_operands)
{
    for (unsigned i = 0; i < 4; i++) {
        struct lab_path path = lab_path;
        struct lab_wr wr = calc_wr(opcodes[i], CALC_ADD, MOST);

        path.mtu = PRM_QP_MTU_256;
        pair_that_calculates(PRM_QP_ST_RC, &path);
        for (unsigned n = 0; n < MOST / EL; n++) {
            put(operands_of(opcodes[i]), n, 1ull << (n % 64), n + 3);
        }
        post(&wr);
        expect_calculated(opcodes[i]);
        expect_element(result_of(opcodes[i]), (uint64_t)-4, 3); /* 4 * (2^64 - 1) */
    }
}
END_TEST

/* Two READs at a time: the response of the second begins after the first is complete. */
START_TEST(reads_do_not_mix_their_results)
{
    struct lab_wr wr = calc_wr(READ, CALC_ADD, MOST), second = wr;

    for (unsigned n = 0; n < 2 * MOST / EL; n++) {
        put(theirs, n, n < MOST / EL ? 1 : 3, 0);
    }
    second.sge[0].addr += MOST;
    second.raddr += MOST;
    lab_post(&a, &wr);
    post(&second);
    expect_calculated(READ);
    expect_calculated(READ);
    expect_element(ours, 256, 0);
    expect_element(ours + MOST, 768, 0);
}
END_TEST

/* libmlx5 posts calculations to RC, XRC and DC only. */
START_TEST(unreliable_queues_do_not_calculate)
{
    static const uint8_t st[] = {PRM_QP_ST_UC, PRM_QP_ST_UD};
    struct lab_wr wr = calc_wr(SEND, CALC_ADD, 2 * EL);

    pair_that_calculates(st[_i], &lab_path);
    wr.dest_qpn = b.qp->obj.num;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(SEND, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* -- loss and missing pages -------------------------------------------------------------------- */

/* After a loss the same bytes are sent again. */
START_TEST(a_lost_result_is_sent_again)
{
    struct lab_wr wr = calc_wr(WRITE, CALC_XOR, 3 * EL);

    for (unsigned i = 0; i < 3; i++) {
        put(ours, i, 0x1111111111111111ull << i, 8);
    }
    lose_psn(0, 0, 1);
    post(&wr);
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_calculated(WRITE);
    expect_element(theirs, 0x7777777777777777, 8);
}
END_TEST

/* The READ goes on with the packet that was lost: no operand counts twice. */
START_TEST(a_lost_response_counts_once)
{
    struct lab_wr wr = calc_wr(READ, CALC_ADD, MOST);

    for (unsigned n = 0; n < MOST / EL; n++) {
        put(theirs, n, n, 5);
    }
    lose_psn(1, (uint32_t)_i, 1);
    drop_psn = (lab_path.psn + (uint32_t)_i) & PSN_MASK;
    post(&wr);
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab->tap_count, 1);
    expect_calculated(READ);
    expect_element(ours, 255 * 256 / 2, 5);
}
END_TEST

/* Answers the page fault of the left side's requester. */
static void page_comes(const struct missing *missing, uint32_t bytes)
{
    const struct prm_eqe *eqe = fault_next(lab, 0);
    const struct prm_wqe_associated_page_fault_event *e;

    ck_assert(eqe);
    e = (const void *)PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, len), bytes);
    expect_none(left);
    fault_page_in(missing);
    qp_resume(a.qp, FAULT_REQUESTER, false);
    lab_run(lab);
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
}

/* If a page of the operands is missing, the pager is asked for all of them; a message is sent when
 * the page has come. */
START_TEST(operands_whose_page_is_missing_are_waited_for)
{
    uint32_t key = lab_mr(left, near, 2 * FAULT_PAGE, 0x1f);
    struct lab_wr wr = calc_wr(WRITE, CALC_ADD, 4 * EL);
    struct missing missing;

    faults_begin(lab);
    for (unsigned i = 0; i < 4; i++) {
        put(ours + FAULT_PAGE - 2 * EL, i, 10, 2);
    }
    missing = fault_take_out(left, key, 1);
    wr.sge[0] = (struct lab_sge){near + FAULT_PAGE - 2 * EL, 4 * EL, key};
    post(&wr);
    ck_assert_uint_eq(lab->num_packets, 0);
    page_comes(&missing, 4 * EL);
    expect_calculated(WRITE);
    expect_element(theirs, 40, 2);
}
END_TEST

/* The last packet of a READ is taken again when the page of the result has come: its operands count
 * once. */
START_TEST(a_result_whose_page_is_missing_counts_once)
{
    uint32_t key = lab_mr(left, near, FAULT_PAGE, 0x1f);
    struct lab_wr wr = calc_wr(READ, CALC_ADD, MOST);
    struct missing missing;

    faults_begin(lab);
    for (unsigned n = 0; n < MOST / EL; n++) {
        put(theirs, n, 1, 6);
    }
    missing = fault_take_out(left, key, 0);
    wr.sge[0].key = key;
    post(&wr);
    page_comes(&missing, EL);
    expect_calculated(READ);
    expect_element(ours, 256, 6);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

#define OP_ERR  PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define LEN_ERR PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR

static const struct bad_wqe {
    uint8_t opmod;
    uint32_t len[2];
    uint8_t syndrome;
} bad_wqes[] = {
    {CALC_OPS, {2 * EL, 0}, OP_ERR}, {0x80, {2 * EL, 0}, OP_ERR},
    {CALC_ADD, {0, 0}, LEN_ERR},     {CALC_ADD, {8, 0}, LEN_ERR},
    {CALC_ADD, {24, 0}, LEN_ERR},    {CALC_ADD, {8, 24}, LEN_ERR},
    {CALC_ADD, {MOST, EL}, LEN_ERR}, {CALC_ADD, {MOST + EL, 0}, LEN_ERR},
};

/* Each element of the list has whole operands, together at most 256. */
START_TEST(wqes_that_make_no_sense)
{
    const struct bad_wqe *bad = &bad_wqes[_i];

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        struct lab_wr wr = calc_wr(opcodes[i], bad->opmod, bad->len[0]);

        wr.sge[1] = (struct lab_sge){near, bad->len[1], 0};
        wr.num_sge += bad->len[1] != 0;
        pair_that_calculates(PRM_QP_ST_RC, &lab_path);
        lab_post(&a, &wr);
        lab_run(lab);
        expect_error(opcodes[i], 0, bad->syndrome);
        ck_assert_uint_eq(lab->num_packets, 0);
    }
}
END_TEST

/* Only queues with qpc.cd_master calculate. */
START_TEST(an_ordinary_queue_does_not_calculate)
{
    struct lab_wr wr = calc_wr(opcodes[_i], CALC_ADD, 2 * EL);

    lab_rc_pair(lab, &a, &b, &lab_path);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(opcodes[_i], 0, OP_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

START_TEST(operands_without_a_key_fail)
{
    struct lab_wr wr = calc_wr(SEND, CALC_ADD, 2 * EL);

    wr.sge[0].key = 0x123400;
    post(&wr);
    expect_error(SEND, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* The operation of a READ disappears from its WQE, or becomes another, while the response is on its
 * way: the program has written over a WQE that is in use. */
START_TEST(the_wqe_of_a_read_loses_its_operation)
{
    struct lab_wr wr = calc_wr(READ, CALC_ADD, MOST);
    struct prm_wqe_ctrl_seg *ctrl = lab_write_wqe(&a, &wr);

    lab_ring(&a);
    hca_run(&left->hca, LAB_BUDGET);
    PRM_SET(wqe_ctrl_seg, ctrl, opmod, _i ? CALC_OPS : CALC_NONE);
    lab_run(lab);
    expect_error(READ, 0, OP_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("calculations");
    TCase *tc = tcase_create("operations");

    tcase_add_checked_fixture(tc, setup_calc, teardown);
    tcase_add_loop_test(tc, two_operands_make_this_result, 0, G_N_ELEMENTS(rows));
#ifdef __x86_64__
    tcase_add_loop_test(tc, the_settings_of_the_thread_do_not_matter, 0, G_N_ELEMENTS(settings));
#endif
    tcase_add_test(tc, a_message_carries_the_result);
    tcase_add_test(tc, operands_lie_anywhere_in_the_list);
    tcase_add_test(tc, operands_may_be_in_the_wqe);
    tcase_add_test(tc, the_most_operands);
    tcase_add_test(tc, reads_do_not_mix_their_results);
    suite_add_tcase(s, tc);
    tc = tcase_create("loss");
    tcase_add_checked_fixture(tc, setup_calc, teardown);
    tcase_add_test(tc, a_lost_result_is_sent_again);
    tcase_add_loop_test(tc, a_lost_response_counts_once, 0, 4);
    tcase_add_test(tc, operands_whose_page_is_missing_are_waited_for);
    tcase_add_test(tc, a_result_whose_page_is_missing_counts_once);
    suite_add_tcase(s, tc);
    tc = tcase_create("refusals");
    tcase_add_checked_fixture(tc, setup_calc, teardown);
    tcase_add_loop_test(tc, unreliable_queues_do_not_calculate, 0, 2);
    tcase_add_loop_test(tc, wqes_that_make_no_sense, 0, G_N_ELEMENTS(bad_wqes));
    tcase_add_loop_test(tc, an_ordinary_queue_does_not_calculate, 0, G_N_ELEMENTS(opcodes));
    tcase_add_test(tc, operands_without_a_key_fail);
    tcase_add_loop_test(tc, the_wqe_of_a_read_loses_its_operation, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
