/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests rings of WQEs as a hostile guest may leave them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/rdma/send_wqe.h"
#include "model/rdma/service.h"
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

static struct lab *lab;
static struct lab_side *side;
static struct wq wq;
static uint64_t ring, dbr;
static struct recv_wqe recv_wqe;

static void make_ring(unsigned log_size, unsigned log_stride)
{
    size_t bytes = (size_t)1 << (log_size + log_stride);

    ring = lab_mem(side, bytes, 0);
    dbr = lab_mem(side, 8, 0);
    wq = (struct wq){
        .buf = lab_buf(ring, bytes),
        .log_size = (uint8_t)log_size,
        .log_stride = (uint8_t)log_stride,
        .dbr = dbr,
    };
}

static void setup(void)
{
    lab = lab_new();
    side = &lab->side[0];
    make_ring(3, 6);
}

static void teardown(void)
{
    mem_buf_clear(&wq.buf);
    lab_free(lab);
}

static void *slot(unsigned index)
{
    return lab_ptr(side, ring + ((uint64_t)index << wq.log_stride), 1u << wq.log_stride);
}

static void set_pi(uint32_t pi)
{
    PRM_SET(uint64, lab_ptr(side, dbr, 8), hi, pi);
}

static void put_sge(struct prm_wqe_data_seg *seg, uint32_t len, uint32_t lkey, uint64_t addr)
{
    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, lkey);
    PRM_SET(wqe_data_seg, seg, addr, addr);
}

START_TEST(doorbell_record_counts_modulo_2_16)
{
    wq.ci = 0xfffe;
    set_pi(0xabcd0003); /* only the low 16 bits count */
    ck_assert(wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 5);
}
END_TEST

/* gpunetio's threads raise a shared counter and ring afterwards, each by itself, so a doorbell may
 * tell less than one before it. */
START_TEST(without_a_record_the_greatest_counter_that_was_told_counts)
{
    wq.no_record = true;
    wq.dbr = UINT64_MAX - 3; /* is not read */
    wq.ci = wq.told = 0xfffe;
    wq_tell_pi(&wq, 3);
    wq_tell_pi(&wq, 1);
    wq_tell_pi(&wq, 0xfff0);
    ck_assert(wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 5);
    wq_tell_pi(&wq, 6);
    ck_assert(wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 8);
    wq_tell_pi(&wq, 7); /* more than the ring holds */
    ck_assert(!wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 8);
}
END_TEST

START_TEST(the_largest_ring_may_be_filled_by_one_doorbell)
{
    wq.no_record = true;
    wq.log_size = 15;
    wq_tell_pi(&wq, 0x8000);
    ck_assert(wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 0x8000);
}
END_TEST

START_TEST(more_posted_than_the_ring_holds_is_refused)
{
    set_pi(8);
    ck_assert(wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 8);
    set_pi(9);
    ck_assert(!wq_update_pi(&side->hca, &wq));
    ck_assert_uint_eq(wq_posted(&wq), 8);
    set_pi(0xffff);
    ck_assert(!wq_update_pi(&side->hca, &wq));
}
END_TEST

START_TEST(doorbell_record_outside_memory)
{
    wq.dbr = 0x10;
    ck_assert(!wq_update_pi(&side->hca, &wq));
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_ERROR);
}
END_TEST

START_TEST(reads_wrap_at_the_end)
{
    uint8_t data[128];

    memset(slot(7), 0x77, 64);
    memset(slot(0), 0x11, 64);
    ck_assert(wq_read(&side->hca, &wq, 0xffff, data, sizeof(data)));
    ck_assert_uint_eq(data[0], 0x77);
    ck_assert_uint_eq(data[63], 0x77);
    ck_assert_uint_eq(data[64], 0x11);
    ck_assert_uint_eq(data[127], 0x11);
}
END_TEST

START_TEST(reads_and_writes_stay_inside)
{
    uint8_t data[1024] = {0};

    ck_assert(wq_read(&side->hca, &wq, 3, data, 512));
    ck_assert(!wq_read(&side->hca, &wq, 0, data, 513));
    ck_assert(wq_write(&side->hca, &wq, 9, 60, "abcd", 4));
    ck_assert_mem_eq(slot(1) + 60, "abcd", 4);
    ck_assert(!wq_write(&side->hca, &wq, 0, 61, "abcd", 4));
    ck_assert(!wq_write(&side->hca, &wq, 0, SIZE_MAX, "abcd", 4));
}
END_TEST

START_TEST(receive_wqe_ends_at_the_terminator)
{
    put_sge(slot(0), 100, 0x1234, 0xaaaa000);
    put_sge(slot(0) + 16, 28, 0x5678, 0xbbbb000);
    put_sge(slot(0) + 32, 0, WQE_TERMINATOR_LKEY, 0);
    put_sge(slot(0) + 48, 1000, 0x9999, 0);
    set_pi(1);
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_OK);
    ck_assert_uint_eq(recv_wqe.num_sge, 2);
    ck_assert_uint_eq(recv_wqe.len, 128);
    ck_assert_uint_eq(recv_wqe.sge[1].lkey, 0x5678);
    ck_assert_uint_eq(recv_wqe.sge[1].va, 0xbbbb000);
    ck_assert_uint_eq(recv_wqe.index, 0);
    ck_assert_uint_eq(wq.ci, 0);
}
END_TEST

START_TEST(receive_wqe_ends_at_the_slots_end)
{
    for (unsigned i = 0; i < 4; i++) {
        put_sge(slot(0) + i * 16, 10, 1, 0);
        put_sge(slot(1) + i * 16, 10, 1, 0);
    }
    set_pi(2);
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_OK);
    ck_assert_uint_eq(recv_wqe.num_sge, 4);
    ck_assert_int_eq(rq_peek(&side->hca, &wq, true, &recv_wqe), RECV_OK);
    ck_assert_uint_eq(recv_wqe.num_sge, 3);
}
END_TEST

/* PRM, memory pointer data segment: a byte count of 0 is 2^31. */
START_TEST(length_zero_is_2_31)
{
    put_sge(slot(0), 0, 0x4242, 0);
    put_sge(slot(0) + 16, 0, WQE_TERMINATOR_LKEY, 0);
    set_pi(1);
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_OK);
    ck_assert_uint_eq(recv_wqe.len, 1ull << 31);
}
END_TEST

START_TEST(inline_data_has_no_place_in_a_receive_wqe)
{
    PRM_SET(wqe_inline_seg, slot(0), inl, 1);
    set_pi(1);
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_ERROR);
}
END_TEST

START_TEST(empty_queue)
{
    ck_assert_int_eq(rq_peek(&side->hca, &wq, false, &recv_wqe), RECV_EMPTY);
}
END_TEST

/* -- send WQEs --------------------------------------------------------------------------------- */

static struct send_wqe send_wqe;
static const struct send_limits rc_limits = {
    .service = &services[PRM_QP_ST_RC], .log_msg_max = 20, .max_wqe = 512};

static void *put_ctrl(unsigned index, uint8_t opcode, unsigned ds)
{
    void *ctrl = slot(index);

    PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, ds);
    return ctrl + PRM_SIZE(wqe_ctrl_seg);
}

static uint8_t fetch(unsigned index, unsigned max_bb, const struct send_limits *limits)
{
    return send_wqe_fetch(&side->hca, &wq, (uint16_t)index, max_bb, limits, &send_wqe);
}

START_TEST(send_with_two_elements)
{
    void *seg = put_ctrl(2, PRM_WQE_OPCODE_SEND_IMM, 3);

    PRM_SET(wqe_ctrl_seg, slot(2), imm, 0xdeadbeef);
    PRM_SET(wqe_ctrl_seg, slot(2), se, 1);
    put_sge(seg, 5, 0x11, 0x1000);
    put_sge(seg + 16, 7, 0x22, 0x2000);
    ck_assert_uint_eq(fetch(2, 1, &rc_limits), 0);
    ck_assert_uint_eq(send_wqe.num_bb, 1);
    ck_assert_uint_eq(send_wqe.len, 12);
    ck_assert_uint_eq(send_wqe.imm, 0xdeadbeef);
    ck_assert(send_wqe.solicited);
    ck_assert(!send_wqe.is_special);
}
END_TEST

START_TEST(inline_data_wraps_with_the_ring)
{
    struct sge_cursor cursor = {0};
    uint8_t out[100], expected[100];
    void *seg = put_ctrl(7, PRM_WQE_OPCODE_SEND, 1 + 7);

    PRM_SET(wqe_inline_seg, seg, inl, 1);
    PRM_SET(wqe_inline_seg, seg, byte_count, 100);
    for (unsigned i = 0; i < 100; i++) {
        expected[i] = (uint8_t)(i + 1);
        memcpy(i < 44 ? seg + 4 + i : slot(0) + i - 44, &expected[i], 1);
    }
    ck_assert_uint_eq(fetch(7, 2, &rc_limits), 0);
    ck_assert_uint_eq(send_wqe.len, 100);
    ck_assert_int_eq(send_wqe_gather(&side->hca, &send_wqe, side->pdn, &cursor, 30, out, 70),
                     MEM_OK);
    ck_assert_mem_eq(out, expected + 30, 70);
    /* backwards, as in a retransmission */
    ck_assert_int_eq(send_wqe_gather(&side->hca, &send_wqe, side->pdn, &cursor, 0, out, 100),
                     MEM_OK);
    ck_assert_mem_eq(out, expected, 100);
}
END_TEST

START_TEST(inline_and_pointers_in_one_list)
{
    struct sge_cursor cursor = {0};
    uint64_t mem = lab_mem(side, 16, 9);
    uint8_t out[16];
    void *seg = put_ctrl(0, PRM_WQE_OPCODE_SEND, 4);

    PRM_SET(wqe_inline_seg, seg, inl, 1);
    PRM_SET(wqe_inline_seg, seg, byte_count, 3);
    memcpy(seg + 4, "abc", 3);
    put_sge(seg + 16, 5, side->key, mem);
    PRM_SET(wqe_inline_seg, seg + 32, inl, 1);
    PRM_SET(wqe_inline_seg, seg + 32, byte_count, 2);
    memcpy(seg + 36, "de", 2);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), 0);
    ck_assert_uint_eq(send_wqe.len, 10);
    ck_assert_int_eq(send_wqe_gather(&side->hca, &send_wqe, side->pdn, &cursor, 0, out, 10),
                     MEM_OK);
    ck_assert_mem_eq(out, "abc", 3);
    ck_assert_mem_eq(out + 3, lab_ptr(side, mem, 5), 5);
    ck_assert_mem_eq(out + 8, "de", 2);
    /* backwards over elements, as in a retransmission */
    ck_assert_int_eq(send_wqe_gather(&side->hca, &send_wqe, side->pdn, &cursor, 1, out, 1), MEM_OK);
    ck_assert_uint_eq(out[0], 'b');
    ck_assert_int_eq(send_wqe_gather(&side->hca, &send_wqe, side->pdn, &cursor, 8, out, 3),
                     MEM_BAD_BOUNDS);
}
END_TEST

START_TEST(inline_data_beyond_the_wqe)
{
    struct prm_wqe_inline_seg *seg = put_ctrl(0, PRM_WQE_OPCODE_SEND, 2);

    PRM_SET(wqe_inline_seg, seg, inl, 1);
    PRM_SET(wqe_inline_seg, seg, byte_count, 13);
    ck_assert_uint_eq(fetch(0, 8, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    PRM_SET(wqe_inline_seg, seg, byte_count, 12);
    ck_assert_uint_eq(fetch(0, 8, &rc_limits), 0);
}
END_TEST

START_TEST(ds_of_nothing_or_of_more_than_was_posted)
{
    put_ctrl(0, PRM_WQE_OPCODE_SEND, 0);
    ck_assert_uint_eq(fetch(0, 8, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(send_wqe.num_bb, 0);
    put_ctrl(0, PRM_WQE_OPCODE_NOP, 5);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(fetch(0, 2, &rc_limits), 0);
    ck_assert_uint_eq(send_wqe.num_bb, 2);
    put_ctrl(0, PRM_WQE_OPCODE_NOP, 33); /* 528 bytes, and the limit is 512 */
    ck_assert_uint_eq(fetch(0, 60, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    put_ctrl(0, PRM_WQE_OPCODE_NOP, 63); /* more than the ring */
    ck_assert_uint_eq(
        fetch(0, 8, &(struct send_limits){.service = &services[PRM_QP_ST_RC], .max_wqe = 1024}),
        PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(opcodes_by_service)
{
    static const struct {
        uint8_t opcode, ds;
        bool rc, uc, ud, umr;
    } rows[] = {
        {PRM_WQE_OPCODE_NOP, 1, true, true, true, true},
        {PRM_WQE_OPCODE_SEND, 4, true, true, true, false},
        {PRM_WQE_OPCODE_SEND_IMM, 4, true, true, true, false},
        {PRM_WQE_OPCODE_SEND_INVAL, 4, true, false, false, false},
        {PRM_WQE_OPCODE_RDMA_WRITE, 4, true, true, false, false},
        {PRM_WQE_OPCODE_RDMA_WRITE_IMM, 4, true, true, false, false},
        {PRM_WQE_OPCODE_RDMA_READ, 4, true, false, false, false},
        {PRM_WQE_OPCODE_LOCAL_INVAL, 1, true, true, false, true},
        {PRM_WQE_OPCODE_DUMP, 1, true, true, false, false},
        {PRM_WQE_OPCODE_UMR, 12, true, true, false, true},
        {PRM_WQE_OPCODE_SET_PSV, 4, true, true, false, true},
        {PRM_WQE_OPCODE_TSO, 4, false, false, false, false},
        {0x3f, 4, false, false, false, false},
        {0xff, 4, false, false, false, false},
    };
    struct send_limits limits = {.log_msg_max = 20, .max_wqe = 512};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        memset(slot(0), 0, 512);
        put_ctrl(0, rows[i].opcode, rows[i].ds);
        if (rows[i].ds == 4) {
            put_sge(slot(0) + 32, 1, 1, 0);
            put_sge(slot(0) + 48, 1, 1, 0);
            if (rows[i].opcode == PRM_WQE_OPCODE_SEND ||
                rows[i].opcode == PRM_WQE_OPCODE_SEND_IMM ||
                rows[i].opcode == PRM_WQE_OPCODE_SEND_INVAL) {
                put_sge(slot(0) + 16, 1, 1, 0);
            }
        } else if (rows[i].opcode == PRM_WQE_OPCODE_UMR) {
            put_sge(slot(0) + 128, 64, 1, 0);
        }
        limits.service = &services[PRM_QP_ST_RC];
        ck_assert_msg((fetch(0, 8, &limits) == 0) == rows[i].rc, "RC 0x%x", rows[i].opcode);
        limits.service = &services[PRM_QP_ST_UC];
        ck_assert_msg((fetch(0, 8, &limits) == 0) == rows[i].uc, "UC 0x%x", rows[i].opcode);
        limits.service = &services[PRM_QP_ST_UD];
        ck_assert_msg((fetch(0, 8, &limits) == 0) == rows[i].ud, "UD 0x%x", rows[i].opcode);
        limits.service = &services[PRM_QP_ST_REG_UMR];
        ck_assert_msg((fetch(0, 8, &limits) == 0) == rows[i].umr, "UMR 0x%x", rows[i].opcode);
    }
}
END_TEST

START_TEST(message_longer_than_allowed)
{
    void *seg = put_ctrl(0, PRM_WQE_OPCODE_SEND, 3);

    put_sge(seg, 1u << 19, 1, 0);
    put_sge(seg + 16, 1u << 19, 1, 0);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), 0);
    put_sge(seg + 16, (1u << 19) + 1, 1, 0);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}
END_TEST

/* IBTA 9.4.5: the operand of an atomic has 64 bits. */
START_TEST(atomic_takes_eight_bytes)
{
    void *seg = put_ctrl(0, PRM_WQE_OPCODE_ATOMIC_FA, 4);

    put_sge(seg + 32, 8, 1, 0);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), 0);
    put_sge(seg + 32, 4, 1, 0);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}
END_TEST

START_TEST(read_has_no_inline_data)
{
    void *seg = put_ctrl(0, PRM_WQE_OPCODE_RDMA_READ, 3);

    PRM_SET(wqe_inline_seg, seg + 16, inl, 1);
    PRM_SET(wqe_inline_seg, seg + 16, byte_count, 4);
    ck_assert_uint_eq(fetch(0, 1, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(umr_entries_inline_or_behind_a_pointer)
{
    struct prm_wqe_umr_ctrl_seg *umr = put_ctrl(0, PRM_WQE_OPCODE_UMR, 12);

    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, umr, inl, 1);
    ck_assert_uint_eq(fetch(0, 3, &rc_limits), 0);
    ck_assert_uint_eq(send_wqe.umr_xlt_len, 64);
    ck_assert_ptr_eq(send_wqe.umr_xlt, send_wqe.image + 128);
    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, 5);
    ck_assert_uint_eq(fetch(0, 3, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);

    PRM_SET(wqe_ctrl_seg, slot(0), ds, 9);
    PRM_SET(wqe_umr_ctrl_seg, umr, inl, 0);
    put_sge(slot(2), 80, 1, 0);
    ck_assert_uint_eq(fetch(0, 3, &rc_limits), 0);
    ck_assert_ptr_null(send_wqe.umr_xlt);
    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, 6);
    ck_assert_uint_eq(fetch(0, 3, &rc_limits), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* Whatever a ring contains, parsing it reads only inside the WQE and ends. */
START_TEST(random_wqes)
{
    static const uint8_t types[] = {PRM_QP_ST_RC,  PRM_QP_ST_UC,  PRM_QP_ST_UD,
                                    PRM_QP_ST_XRC, PRM_QP_ST_QP1, PRM_QP_ST_REG_UMR};
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    uint8_t *bytes = lab_ptr(side, ring, 512);
    unsigned good = 0;

    for (unsigned round = 0; round < 200000; round++) {
        struct send_limits limits = {
            .service = &services[types[g_rand_int_range(rand, 0, G_N_ELEMENTS(types))]],
            .log_msg_max = 30,
            .max_wqe = 1024,
        };

        for (unsigned i = 0; i < 512; i += 4) {
            uint32_t v = g_rand_int(rand) & g_rand_int(rand) & g_rand_int(rand);

            memcpy(bytes + i, &v, 4);
        }
        PRM_SET(wqe_ctrl_seg, slot(round % 8), opcode, g_rand_int_range(rand, 0, 0x28));
        good += fetch(round % 8, 8, &limits) == 0;
        ck_assert_uint_le(send_wqe.num_sge, WQE_MAX_SGE);
        ck_assert_uint_le(send_wqe.num_bb, 8);
    }
    ck_assert_uint_gt(good, 1000);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("wq");
    TCase *tc = tcase_create("rings");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, doorbell_record_counts_modulo_2_16);
    tcase_add_test(tc, without_a_record_the_greatest_counter_that_was_told_counts);
    tcase_add_test(tc, the_largest_ring_may_be_filled_by_one_doorbell);
    tcase_add_test(tc, more_posted_than_the_ring_holds_is_refused);
    tcase_add_test(tc, doorbell_record_outside_memory);
    tcase_add_test(tc, reads_wrap_at_the_end);
    tcase_add_test(tc, reads_and_writes_stay_inside);
    tcase_add_test(tc, receive_wqe_ends_at_the_terminator);
    tcase_add_test(tc, receive_wqe_ends_at_the_slots_end);
    tcase_add_test(tc, length_zero_is_2_31);
    tcase_add_test(tc, inline_data_has_no_place_in_a_receive_wqe);
    tcase_add_test(tc, empty_queue);
    tcase_add_test(tc, send_with_two_elements);
    tcase_add_test(tc, inline_data_wraps_with_the_ring);
    tcase_add_test(tc, inline_and_pointers_in_one_list);
    tcase_add_test(tc, inline_data_beyond_the_wqe);
    tcase_add_test(tc, ds_of_nothing_or_of_more_than_was_posted);
    tcase_add_test(tc, opcodes_by_service);
    tcase_add_test(tc, message_longer_than_allowed);
    tcase_add_test(tc, atomic_takes_eight_bytes);
    tcase_add_test(tc, read_has_no_inline_data);
    tcase_add_test(tc, umr_entries_inline_or_behind_a_pointer);
    tcase_add_test(tc, random_wqes);
    suite_add_tcase(suite, tc);
    return suite;
}
