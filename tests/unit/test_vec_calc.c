/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests vector calculations: SENDs with opmod 0xff, as libmlx5 of MLNX_OFED posts them
 * (post_ec_vec_calc()). Their data is compared with a reference that computes byte by byte.
 */
#include "model/memory/mkey_priv.h"
#include "model/rdma/vec_calc.h"
#include "tests/unit/gf_ref.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MARK_4BIT 0x10 /* what libmlx5 adds to a constant that is not of 8 bits */
#define MARK_2BIT 0x20

struct calc {
    unsigned k, m;      /* vectors, results */
    unsigned w;         /* bits of a symbol; 0: no matrix */
    uint32_t size;      /* of a vector */
    unsigned log_chunk; /* log2 of the bytes of a chunk, minus 6 */
};

/* -- the reference ----------------------------------------------------------------------------- */

/* Byte i of result j. */
static uint8_t ref_result(const struct calc *calc, const uint8_t *vectors, const uint8_t *matrix,
                          unsigned j, uint32_t i)
{
    uint8_t sum = 0;

    for (unsigned v = 0; v < calc->k; v++) {
        uint8_t byte = vectors[v * calc->size + i];

        sum ^= calc->w ? gf_ref_byte(calc->w, matrix[v * calc->m + j], byte) : byte;
    }
    return sum;
}

static void ref_message(const struct calc *calc, const uint8_t *vectors, const uint8_t *matrix,
                        uint8_t *out)
{
    uint32_t chunk = 64u << calc->log_chunk;

    for (uint32_t first = 0; first < calc->size; first += chunk) {
        for (unsigned j = 0; j < calc->m; j++) {
            for (uint32_t i = first; i < MIN(first + chunk, calc->size); i++) {
                *out++ = ref_result(calc, vectors, matrix, j, i);
            }
        }
    }
}

/* -- posting ----------------------------------------------------------------------------------- */

static uint64_t vectors, matrix, results; /* on the left, left, right */
static struct prm_wqe_vec_calc_seg seg[1];

static uint8_t mark(unsigned w)
{
    return w == 8 ? 0 : w == 2 ? MARK_2BIT : MARK_4BIT;
}

/* Makes the memory of a calculation and its segment. */
static void calc_make(const struct calc *calc)
{
    uint8_t *entries;

    vectors = lab_mem(left, (size_t)calc->k * calc->size, 3);
    matrix = lab_mem(left, calc->k * calc->m, 0);
    results = lab_mem(right, (size_t)calc->m * calc->size + 64, 0);
    entries = lab_ptr(left, matrix, calc->k * calc->m);
    for (unsigned i = 0; calc->w && i < calc->k * calc->m; i++) {
        entries[i] = (uint8_t)((i * 37 + 5) & ((1u << calc->w) - 1)) | mark(calc->w);
    }
    memset(seg, 0, sizeof(seg));
    for (unsigned j = 0; j < calc->m; j++) {
        PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, j, PRM_VEC_CALC_OP_XOR);
    }
    PRM_SET(wqe_vec_calc_seg, seg, matrix, !!calc->w);
    PRM_SET(wqe_vec_calc_seg, seg, matrix_8bit, calc->w == 8);
    PRM_SET(wqe_vec_calc_seg, seg, log_chunk, calc->log_chunk);
    PRM_SET(wqe_vec_calc_seg, seg, vec_count, calc->k);
    PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, left->key);
    PRM_SET(wqe_vec_calc_seg, seg, cm_addr, matrix);
    PRM_SET(wqe_vec_calc_seg, seg, vec_size, calc->size);
    PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, left->key);
    PRM_SET(wqe_vec_calc_seg, seg, vec_addr, vectors);
}

static struct lab_wr calc_wr(void)
{
    return (struct lab_wr){
        .opcode = PRM_WQE_OPCODE_SEND,
        .opmod = PRM_SEND_OPMOD_VECTOR_CALC,
        .operands = seg,
        .operands_len = sizeof(seg),
    };
}

static void calc_post(void)
{
    struct lab_wr wr = calc_wr();

    lab_post(&a, &wr);
}

static void expect_results(const struct calc *calc)
{
    size_t len = (size_t)calc->m * calc->size;
    g_autofree uint8_t *expected = g_malloc(len);

    ref_message(calc, lab_ptr(left, vectors, (size_t)calc->k * calc->size),
                lab_ptr(left, matrix, calc->k * calc->m), expected);
    expect_received((uint32_t)len);
    ck_assert_mem_eq(lab_ptr(right, results, len), expected, len);
    ck_assert_mem_eq(lab_ptr(right, results + len, 64), ((const uint8_t[64]){0}), 64);
}

static void run_calc(const struct calc *calc)
{
    calc_make(calc);
    lab_post_recv(&b, results, calc->m * calc->size);
    calc_post();
    lab_run(lab);
}

/* -- what is computed -------------------------------------------------------------------------- */

static const struct calc calcs[] = {
    {1, 1, 0, 4, 0},     {2, 1, 0, 64, 0},        {5, 1, 0, 4096, 0},   {3, 4, 0, 1000, 1},
    {2, 1, 1, 64, 0},    {4, 2, 1, 192, 0},       {2, 2, 2, 256, 0},    {3, 1, 2, 1024, 0},
    {1, 1, 4, 64, 0},    {10, 4, 4, 1024, 0},     {8, 2, 4, 4096, 0},   {5, 3, 4, 1234 * 4, 0},
    {1, 1, 8, 64, 0},    {10, 4, 8, 1024, 0},     {10, 4, 8, 65536, 0}, {6, 3, 8, 8192, 0},
    {6, 3, 8, 8200, 2},  {4, 4, 8, 12345 * 4, 3}, {7, 2, 8, 4100, 6},   {255, 1, 8, 4096, 0},
    {255, 4, 8, 128, 0}, {32, 4, 8, 20000, 5},    {3, 2, 8, 100, 0},    {3, 4, 4, 60, 6},
};

static const uint8_t mtus[] = {PRM_QP_MTU_256, PRM_QP_MTU_1024, PRM_QP_MTU_4096};

static void connect_with_mtu(uint8_t mtu)
{
    struct lab_path path = lab_path;

    path.mtu = mtu;
    pair_on(PRM_QP_ST_RC, &path);
}

/* Each result is the sum of the vectors, multiplied by the constants of the result's column. The
 * message has the results chunk by chunk, whatever the packets are. */
START_TEST(the_message_has_the_results_chunk_by_chunk)
{
    const struct calc *calc = &calcs[_i % (int)G_N_ELEMENTS(calcs)];

    connect_with_mtu(mtus[_i / (int)G_N_ELEMENTS(calcs)]);
    run_calc(calc);
    expect_results(calc);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
}
END_TEST

/* Without ISA-L the results are the same. */
START_TEST(tables_give_what_the_library_gives)
{
    bool is_there = gf_use_library(true);

    ck_assert(!gf_use_library(false));
    run_calc(&calcs[_i]);
    expect_results(&calcs[_i]);
    ck_assert(gf_use_library(true) == is_there);
}
END_TEST

/* A second calculation does not find what the first one left. */
START_TEST(a_calculation_begins_anew)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(calcs); i++) {
        struct lab_cqe cqe;

        run_calc(&calcs[i]);
        expect_results(&calcs[i]);
        ck_assert(lab_poll(left, &cqe));
    }
}
END_TEST

/* -- losses ------------------------------------------------------------------------------------ */

/* "Go back N": data that were sent are computed again. */
START_TEST(lost_packets_are_computed_again)
{
    const struct calc calc = {10, 4, 8, 16384, 0};

    lose_psn(0, (uint32_t)_i, 2);
    run_calc(&calc);
    lab_advance(lab, 100 * LAB_MS);
    expect_results(&calc);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert_uint_ge(lab->tap_count, 1);
}
END_TEST

START_TEST(a_receiver_that_is_not_ready_gets_the_results_later)
{
    const struct calc calc = {4, 2, 4, 2048, 0};

    calc_make(&calc);
    calc_post();
    lab_run(lab);
    lab_post_recv(&b, results, calc.m * calc.size);
    lab_advance(lab, 1000 * LAB_MS);
    expect_results(&calc);
}
END_TEST

/* A message that was cut off leaves no results to the next. */
START_TEST(a_reset_forgets_the_calculation)
{
    const struct calc calc = {10, 4, 8, 16384, 0};

    lab->tap = drop_requests;
    run_calc(&calc);
    ck_assert_ptr_nonnull(a.qp->req.flight->calc);
    lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL);
    ck_assert_ptr_null(a.qp->req.flight);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

static void expect_refused(uint8_t syndrome)
{
    expect_error(PRM_WQE_OPCODE_SEND, 0, syndrome);
    expect_none(right);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}

/* The capabilities say what the device can do: exclusive or, 255 vectors, chunks up to 64 << 6. */
START_TEST(a_segment_that_the_device_cannot_carry_out_fails)
{
    const struct calc calc = {4, 2, 8, 1024, 0};
    struct lab_wr wr = calc_wr();

    calc_make(&calc);
    switch (_i) {
    case 0: /* no result */
        PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, 0, PRM_VEC_CALC_OP_NONE);
        break;
    case 1: /* another operation */
        PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, 1, 1);
        break;
    case 2:
        PRM_SET(wqe_vec_calc_seg, seg, vec_count, 0);
        break;
    case 3:
        PRM_SET(wqe_vec_calc_seg, seg, vec_size, 0);
        break;
    case 4:
        PRM_SET(wqe_vec_calc_seg, seg, vec_size, 1022);
        break;
    case 5:
        PRM_SET(wqe_vec_calc_seg, seg, log_chunk, VEC_CALC_LOG_MAX_CHUNK + 1);
        break;
    case 6:
        PRM_SET(wqe_vec_calc_seg, seg, op_tags, 1);
        break;
    case 7:
        PRM_SET(wqe_vec_calc_seg, seg, le_tag, 2);
        break;
    case 8: /* the segment is cut off */
        wr.operands_len = 32;
        break;
    default: /* a list behind it */
        wr.sge[0] = (struct lab_sge){vectors, 64, 0};
        wr.num_sge = 1;
        break;
    }
    lab_post_recv(&b, results, calc.m * calc.size);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_refused(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(a_message_that_is_too_long_fails)
{
    const struct calc calc = {1, 4, 8, 64, 0};

    calc_make(&calc);
    PRM_SET(wqe_vec_calc_seg, seg, vec_size, (1u << 28) + 4); /* log_msg_max is 30 */
    calc_post();
    lab_run(lab);
    expect_refused(PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}
END_TEST

START_TEST(other_services_have_no_calculations)
{
    const struct calc calc = {2, 1, 8, 64, 0};

    pair_of(PRM_QP_ST_UC);
    calc_make(&calc);
    calc_post();
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* Matrix and vectors are read with the rights of local keys. */
START_TEST(keys_of_matrix_and_vectors_are_checked)
{
    const struct calc calc = {4, 2, 8, 1024, 0};

    calc_make(&calc);
    switch (_i) {
    case 0:
        PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, left->key + 0x100000);
        break;
    case 1:
        PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, left->key + 0x100000);
        break;
    case 2: /* the key has a byte less than the matrix */
        PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, lab_mr(left, matrix, 4 * 2 - 1, 0x1f));
        break;
    case 3:
        PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, lab_mr(left, vectors, 4 * 1024 - 1, 0x1f));
        break;
    case 4:
        left->host.hole = matrix;
        break;
    case 5:
        left->host.hole = vectors + 4 * 1024 - 1;
        break;
    default:
        a.qp->pdn++;
        break;
    }
    lab_post_recv(&b, results, calc.m * calc.size);
    calc_post();
    lab_run(lab);
    expect_refused(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(counters()->req_local_protection, 1);
}
END_TEST

START_TEST(without_a_matrix_its_key_is_not_used)
{
    const struct calc calc = {4, 2, 0, 1024, 0};

    calc_make(&calc);
    PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, 0);
    lab_post_recv(&b, results, calc.m * calc.size);
    calc_post();
    lab_run(lab);
    expect_results(&calc);
}
END_TEST

START_TEST(the_reserved_lkey_is_not_every_queues)
{
    const struct calc calc = {4, 2, 8, 1024, 0};
    struct lab_qp_attr attr = lab_rc;

    attr.programs = true;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    calc_make(&calc);
    if (_i) {
        PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, left->hca.resd_lkey);
    } else {
        PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, left->hca.resd_lkey);
    }
    calc_post();
    lab_run(lab);
    expect_refused(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* -- work -------------------------------------------------------------------------------------- */

/* The vectors of a packet are added a few at a time, however small the ranges of their key are.
 * Other queues have their turns in between. */
START_TEST(a_long_calculation_keeps_nobody_waiting)
{
    const struct calc calc = {200, 1, 8, 256, 0};
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_qp other, target;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, dst);
    struct lab_cqe cqe;

    lab_rc_pair(lab, &other, &target, &lab_path);
    calc_make(&calc);
    PRM_SET(wqe_vec_calc_seg, seg, vec_lkey,
            lab_crumbs(left, vectors, calc.k * calc.size, vectors));
    lab_post_recv(&b, results, calc.m * calc.size);
    calc_post();
    lab_post(&other, &wr);
    lab_run(lab);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + 2 * VEC_CALC_PART + 32);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_RDMA_WRITE);
    expect_results(&calc);
}
END_TEST

/* -- a page that is missing -------------------------------------------------------------------- */

static unsigned told;

/* Drivers do not know the form of the WQE, so the pager is told the range that is missing. */
static bool note_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                       const struct mem_fault *fault)
{
    ck_assert_int_eq(side, FAULT_REQUESTER);
    ck_assert(!fault->step.is_wqe);
    told++;
    return true;
}

/* A program that writes over the WQE of a message gets other data, but no calculation without end.
 */
START_TEST(a_calculation_that_has_fewer_vectors_than_before_ends)
{
    const struct calc calc = {10, 1, 0, VEC_CALC_PART, 0};
    struct vec_calc *part = g_new0(struct vec_calc, 1);
    bool is_done = true;

    calc_make(&calc);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(vec_calc_step(&left->hca, part, seg, 0, left->pdn, MKEY_NONE, 0, &is_done),
                         MEM_OK);
        ck_assert(!is_done);
    }
    PRM_SET(wqe_vec_calc_seg, seg, vec_count, 3);
    ck_assert_int_eq(vec_calc_step(&left->hca, part, seg, 0, left->pdn, MKEY_NONE, 0, &is_done),
                     MEM_OK);
    ck_assert(is_done);
    g_free(part);
}
END_TEST

/* If a page of vectors or matrix is missing, the calculation goes on when the page is there. */
START_TEST(a_missing_page_parks_the_calculation)
{
    const struct calc calc = {10, 4, 8, 4096, 0};
    struct pager pager = {.fault = note_fault};
    uint64_t *entry, address;
    uint32_t key;

    calc_make(&calc);
    key = _i ? lab_mr(left, matrix, 40, 0x1f) : lab_mr(left, vectors, 10 * 4096, 0x1f);
    if (_i) {
        PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, key);
    } else {
        PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, key);
    }
    entry = &mkey_find(&left->hca, key >> 8)->mtt[_i ? 0 : 5];
    address = *entry;
    *entry = 0;
    left->hca.pager = &pager;
    told = 0;
    lab_post_recv(&b, results, calc.m * calc.size);
    calc_post();
    lab_run(lab);
    ck_assert_uint_eq(told, 1);
    expect_none(right);
    *entry = address;
    qp_resume(a.qp, FAULT_REQUESTER, false);
    lab_run(lab);
    expect_results(&calc);
    left->hca.pager = NULL;
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("vec_calc");
    TCase *computed = tcase_create("computed");
    TCase *losses = tcase_create("losses");
    TCase *refused = tcase_create("refused");
    TCase *work = tcase_create("work");

    tcase_add_checked_fixture(computed, setup_bare, teardown);
    tcase_add_loop_test(computed, the_message_has_the_results_chunk_by_chunk, 0,
                        G_N_ELEMENTS(calcs) * G_N_ELEMENTS(mtus));
    suite_add_tcase(s, computed);
    tcase_add_checked_fixture(losses, setup, teardown);
    tcase_add_loop_test(losses, tables_give_what_the_library_gives, 0, G_N_ELEMENTS(calcs));
    tcase_add_test(losses, a_calculation_begins_anew);
    tcase_add_loop_test(losses, lost_packets_are_computed_again, 0, 64);
    tcase_add_test(losses, a_receiver_that_is_not_ready_gets_the_results_later);
    tcase_add_test(losses, a_reset_forgets_the_calculation);
    suite_add_tcase(s, losses);
    tcase_add_checked_fixture(refused, setup, teardown);
    tcase_add_loop_test(refused, a_segment_that_the_device_cannot_carry_out_fails, 0, 10);
    tcase_add_test(refused, a_message_that_is_too_long_fails);
    tcase_add_test(refused, other_services_have_no_calculations);
    tcase_add_loop_test(refused, keys_of_matrix_and_vectors_are_checked, 0, 7);
    tcase_add_test(refused, without_a_matrix_its_key_is_not_used);
    tcase_add_loop_test(refused, the_reserved_lkey_is_not_every_queues, 0, 2);
    suite_add_tcase(s, refused);
    tcase_add_checked_fixture(work, setup, teardown);
    tcase_add_test(work, a_long_calculation_keeps_nobody_waiting);
    tcase_add_test(work, a_calculation_that_has_fewer_vectors_than_before_ends);
    tcase_add_loop_test(work, a_missing_page_parks_the_calculation, 0, 2);
    suite_add_tcase(s, work);
    return s;
}
