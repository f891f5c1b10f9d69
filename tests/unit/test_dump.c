/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests DUMP: it reads a buffer through its key and drops the data. NVSHMEM
 * (ibgda_write_dump_wqe()) and gpunetio (doca_gpu_dev_verbs_wqe_prepare_dump()) post it with one
 * data segment; the kernel's TLS posts it on Ethernet queues (mlx5e_dump_wqe).
 */
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LONG (1 << 20)

static struct lab_wr dump_wr(uint64_t addr, uint32_t len)
{
    return (struct lab_wr){
        .opcode = PRM_WQE_OPCODE_DUMP, .sge = {{addr, len, 0}}, .num_sge = len ? 1 : 0};
}

static void post_dump(uint64_t addr, uint32_t len, uint32_t key)
{
    struct lab_wr wr = dump_wr(addr, len);

    wr.sge[0].key = key;
    lab_post(&a, &wr);
}

static void expect_packets(unsigned num)
{
    ck_assert_uint_eq(lab->num_packets, num);
}

START_TEST(a_dump_completes_and_sends_nothing)
{
    struct lab_wr wr = dump_wr(lab_mem(left, 8, 1), 8);
    uint64_t reads;

    post_dump(lab_mem(left, 1, 1), 1, 0);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 0);
    wr.num_sge = 3;
    wr.sge[1] = (struct lab_sge){lab_mem(left, 5000, 2), 5000, 0};
    wr.sge[2] = (struct lab_sge){lab_mem(left, 3, 3), 3, 0};
    reads = left->hca.pieces;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 1);
    ck_assert_uint_ge(left->hca.pieces - reads, 4); /* three ranges, one of them in two pages */
    /* a WQE without data segments has nothing to read */
    post_dump(0, 0, 0);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 2);
    expect_packets(0);
    expect_none(left);
}
END_TEST

START_TEST(a_dump_need_not_write_a_cqe)
{
    struct lab_wr wr = dump_wr(lab_mem(left, 64, 1), 64);

    wr.unsignaled = true;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_none(left);
    post_dump(wr.sge[0].addr, 64, 0);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 1);
}
END_TEST

/* The errors are those of any local read: a key that does not exist or is another PD's, a range
 * beyond the key, memory that does not answer. A DUMP in error has a CQE even if it asked for none.
 */
START_TEST(a_dump_through_a_bad_key_fails)
{
    uint64_t mem = lab_mem(left, 8192, 1);
    uint32_t key = lab_mr(left, mem, 4096, MEM_LOCAL_READ);
    struct lab_wr wr = dump_wr(mem, 64);

    switch (_i) {
    case 0:
        wr.sge[0].key = key + 0x100000;
        break;
    case 1:
        wr.sge[0] = (struct lab_sge){mem + 4000, 97, key};
        break;
    case 2:
        a.qp->pdn++;
        break;
    default:
        left->host.hole = mem + 32;
        break;
    }
    wr.unsignaled = true;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_DUMP, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(counters()->req_local_protection, 1);
}
END_TEST

START_TEST(on_an_unreliable_connection_a_failed_dump_stops_the_send_queue)
{
    pair_of(PRM_QP_ST_UC);
    post_dump(lab_mem(left, 8, 1), 8, 0x777700);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_DUMP, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
}
END_TEST

START_TEST(a_dump_has_no_inline_data_and_no_more_than_a_message)
{
    struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_DUMP, .inline_data = "data", .inline_len = 4, .num_sge = 0};

    if (_i == 0) {
        lab_post(&a, &wr);
    } else {
        a.qp->req.limits.log_msg_max = 12;
        post_dump(lab_mem(left, 8192, 1), 4097, 0);
    }
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_DUMP, 0,
                 _i ? PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR : PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* NVSHMEM posts it with a fence: it must come after the data of earlier READs. */
START_TEST(a_fenced_dump_waits_for_a_read)
{
    struct lab_wr read =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 8, 0), 8, lab_mem(right, 8, 1));
    struct lab_wr wr = dump_wr(read.sge[0].addr, 8);

    wr.fence = PRM_WQE_FM_FENCE;
    lab->tap = drop_all;
    lab_post(&a, &read);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(requester_started(a.qp), 1);
    lab->tap = NULL;
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    expect_sent(PRM_WQE_OPCODE_DUMP, 1);
}
END_TEST

static void post_long_dump(void)
{
    struct lab_sge sge = {lab_mem(left, LONG, 1), LONG, 0};
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_DUMP, .sge = {sge, sge, sge, sge}, .num_sge = 4};

    lab_post(&a, &wr);
}

/* A long one is read a part at a time. Other queues have their turns in between. */
START_TEST(a_long_dump_keeps_nobody_waiting)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_qp other, target;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, dst);
    struct lab_cqe cqe;
    uint64_t pieces;

    lab_rc_pair(lab, &other, &target, &lab_path);
    post_long_dump();
    lab_post(&other, &wr);
    lab_run(lab);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + 8);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_RDMA_WRITE);
    expect_sent(PRM_WQE_OPCODE_DUMP, 0);
    /* the next one begins at its start */
    pieces = left->hca.pieces;
    post_long_dump();
    lab_run(lab);
    ck_assert_uint_ge(left->hca.pieces - pieces, 4 * LONG / 4096);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.counter, 2);
}
END_TEST

static void begin_long_dump(void)
{
    post_long_dump();
    hca_run(&left->hca, 1);
    ck_assert_uint_gt(a.qp->req.flight->local.have, 0);
    ck_assert_uint_lt(a.qp->req.flight->local.have, 4 * LONG);
}

START_TEST(a_dump_that_is_flushed_is_read_no_further)
{
    begin_long_dump();
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_DUMP, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

/* The program changes a WQE that it has posted, and the device reads the WQE again. */
START_TEST(a_dump_that_has_changed_begins_again)
{
    struct lab_sge sge = {lab_mem(left, 8, 1), 8, 0};
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_DUMP, .sge = {sge, sge, sge, sge}, .num_sge = 4};

    begin_long_dump();
    a.sq_pi = 0;
    lab_write_wqe(&a, &wr);
    requester_forget_lines(a.qp);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 0);
    expect_none(left);
}
END_TEST

/* After a reset, another WQE does not continue where the DUMP was. */
START_TEST(a_reset_forgets_a_dump)
{
    begin_long_dump();
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert(!a.qp->req.flight || !a.qp->req.flight->local.len);
    a.sq_pi = 0;
    lab_connect(lab, &a, &b, &lab_path);
    post_dump(lab_mem(left, 8, 1), 8, 0);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_DUMP, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dump");
    TCase *tc = tcase_create("dump");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_dump_completes_and_sends_nothing);
    tcase_add_test(tc, a_dump_need_not_write_a_cqe);
    tcase_add_loop_test(tc, a_dump_through_a_bad_key_fails, 0, 4);
    tcase_add_test(tc, on_an_unreliable_connection_a_failed_dump_stops_the_send_queue);
    tcase_add_loop_test(tc, a_dump_has_no_inline_data_and_no_more_than_a_message, 0, 2);
    tcase_add_test(tc, a_fenced_dump_waits_for_a_read);
    tcase_add_test(tc, a_long_dump_keeps_nobody_waiting);
    tcase_add_test(tc, a_dump_that_is_flushed_is_read_no_further);
    tcase_add_test(tc, a_dump_that_has_changed_begins_again);
    tcase_add_test(tc, a_reset_forgets_a_dump);
    suite_add_tcase(s, tc);
    return s;
}
