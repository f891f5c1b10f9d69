/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests a connected QP's send queue: the packets on the wire and the completions. */
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

/* -- a READ and a later WRITE ------------------------------------------------------------------ */

/* Both requests arrive before the responder answers. */
static void read_then_write(uint32_t len, uint64_t to, uint64_t from, uint64_t at)
{
    struct lab_wr read = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, to, len, at);

    lab_post(&a, &read);
    write_from(from, len, at);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    same(from, at, len);
}

/* A small READ is answered at once, in one packet or several. */
START_TEST(a_small_read_brings_what_was_there_before_a_later_write)
{
    const uint32_t len = _i ? 2048 : 8;
    uint64_t to = lab_mem(left, len, 0), from = lab_mem(left, len, 1), at = lab_mem(right, len, 2);
    uint8_t *before = g_memdup2(lab_ptr(right, at, len), len);

    read_then_write(len, to, from, at);
    ck_assert_mem_eq(lab_ptr(left, to, len), before, len);
    g_free(before);
}
END_TEST

/* The early answer is not a promise: if configured to answer late, the device does what IBTA
 * allows. */
START_TEST(a_late_read_returns_data_of_a_later_write)
{
    uint64_t to = lab_mem(left, 8, 0), from = lab_mem(left, 8, 1), at = lab_mem(right, 8, 2);

    right->hca.late_reads = true;
    read_then_write(8, to, from, at);
    ck_assert_mem_eq(lab_ptr(left, to, 8), lab_ptr(left, from, 8), 8);
}
END_TEST

/* -- what goes through ------------------------------------------------------------------------- */

static const uint32_t sizes[] = {0,    1,    3,    4,     1023,  1024,   1025,
                                 2048, 2049, 4096, 10000, 65536, 200001, 1u << 20};

START_TEST(sends_of_many_sizes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t src = lab_mem(left, sizes[i], 1 + i), dst = lab_mem(right, sizes[i], 0);
        struct lab_wr wr = send_wr(src, sizes[i]);

        lab_post_recv(&b, dst, MAX(sizes[i], 1));
        lab_post(&a, &wr);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_SEND, (uint16_t)i);
        expect_received(sizes[i]);
        same(src, dst, sizes[i]);
    }
    ck_assert_uint_eq(a.qp->req.ssn, G_N_ELEMENTS(sizes));
    expect_none(left);
}
END_TEST

START_TEST(writes_of_many_sizes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t src = lab_mem(left, sizes[i], 1 + i), dst = lab_mem(right, sizes[i], 0);

        write_from(src, sizes[i], dst);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)i);
        same(src, dst, sizes[i]);
    }
    expect_none(right);
}
END_TEST

START_TEST(reads_of_many_sizes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t dst = lab_mem(left, sizes[i], 0), src = lab_mem(right, sizes[i], 1 + i);
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, sizes[i], src);
        struct lab_cqe cqe;

        lab_post(&a, &wr);
        lab_run(lab);
        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
        ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_RDMA_READ);
        ck_assert_uint_eq(cqe.byte_cnt, sizes[i]);
        same(dst, src, sizes[i]);
    }
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), G_N_ELEMENTS(sizes));
}
END_TEST

START_TEST(lists_are_gathered_and_scattered)
{
    uint64_t src = lab_mem(left, 9000, 5), back = lab_mem(left, 9000, 0);
    uint64_t dst = lab_mem(right, 9000, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 1, dst);

    wr.num_sge = 4;
    wr.sge[1] = (struct lab_sge){src + 1, 4000, 0};
    wr.sge[2] = (struct lab_sge){src + 4001, 90, 0};
    wr.sge[3] = (struct lab_sge){src + 4091, 4909, 0};
    lab_post(&a, &wr);
    wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
    for (unsigned i = 0; i < 4; i++) {
        wr.sge[i].addr += back - src;
    }
    lab_post(&a, &wr);
    lab_run(lab);
    same(src, dst, 9000);
    same(back, dst, 9000);
}
END_TEST

START_TEST(inline_data_is_sent)
{
    uint64_t dst = lab_mem(right, 300, 0);
    uint8_t data[300];
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                        .inline_data = data,
                        .inline_len = sizeof(data),
                        .raddr = dst,
                        .rkey = right->key};

    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i ^ 0x5a);
    }
    for (unsigned i = 0; i < 100; i++) { /* 6 basic blocks each: around the ring */
        memset(lab_ptr(right, dst, 300), 0, 300);
        lab_post(&a, &wr);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)(i * 6));
        ck_assert_mem_eq(lab_ptr(right, dst, 300), data, 300);
    }
}
END_TEST

START_TEST(immediate_data_as_on_the_wire)
{
    struct lab_wr wr = send_wr(0, 0);
    struct lab_cqe cqe;

    wr.opcode = PRM_WQE_OPCODE_SEND_IMM;
    wr.imm = 0x11223344;
    wr.solicited = true;
    lab_post_recv(&b, lab_mem(right, 64, 0), 64);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND_IMM);
    ck_assert_uint_eq(cqe.imm, 0x11223344);
    ck_assert(lab->trace[0].pkt.solicited);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_RC | BTH_SEND_ONLY_IMM);
}
END_TEST

START_TEST(write_with_immediate_of_three_packets)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE_IMM, lab_mem(left, 2500, 1), 2500,
                               lab_mem(right, 2500, 0));
    static const uint8_t ops[] = {BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST_IMM};
    struct lab_cqe cqe;

    wr.solicited = true;
    lab_post_recv(&b, lab_mem(right, 64, 0), 64);
    lab_post(&a, &wr);
    lab_run(lab);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(lab->trace[i].pkt.opcode, ops[i]);
        ck_assert_uint_eq(lab->trace[i].pkt.psn, (lab_path.psn + i) & PSN_MASK);
        /* IBTA 9.2.3: the solicited event bit is for the last packet. */
        ck_assert(lab->trace[i].pkt.solicited == (i == 2));
        ck_assert(lab->trace[i].pkt.ackreq || i < 2);
    }
    ck_assert_uint_eq(lab->trace[0].pkt.reth.len, 2500);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(cqe.byte_cnt, 2500);
}
END_TEST

/* IBTA 9.2.3: SE is set in the last packets of messages that complete a receive, and in no
 * others. */
START_TEST(solicited_event_where_no_receive_completes)
{
    static const uint8_t opcodes[] = {PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_READ,
                                      PRM_WQE_OPCODE_ATOMIC_FA, PRM_WQE_OPCODE_ATOMIC_CS};
    struct lab_wr wr = rdma_wr(opcodes[_i], lab_mem(left, 8, 1), 8, lab_mem(right, 8, 0));

    wr.solicited = true;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(opcodes[_i], 0);
    ck_assert(!lab->trace[0].pkt.solicited);
}
END_TEST

/* The original value is delivered in host order (atomic_req_8B_endianness_mode). */
START_TEST(atomics)
{
    uint64_t target = lab_mem(right, 8, 0), result = lab_mem(left, 8, 0);
    uint64_t *memory = lab_ptr(right, target, 8), *got = lab_ptr(left, result, 8);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, target);

    *memory = 0x1122334455667788;
    wr.swap_add = 0x10;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    ck_assert_uint_eq(*got, 0x1122334455667788);
    ck_assert_uint_eq(*memory, 0x1122334455667798);

    wr.opcode = PRM_WQE_OPCODE_ATOMIC_CS;
    wr.compare = 1;
    wr.swap_add = 2;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(*memory, 0x1122334455667798);
    wr.compare = 0x1122334455667798;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(*memory, 2);
    ck_assert_uint_eq(*got, 0x1122334455667798);
}
END_TEST

START_TEST(unsignaled_wqes_complete_silently)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));

    wr.unsignaled = true;
    for (unsigned i = 0; i < 5; i++) {
        lab_post(&a, &wr);
    }
    wr.unsignaled = false;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 5);
    expect_none(left);
}
END_TEST

START_TEST(a_full_ring_again_and_again)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, dst);
    uint16_t counter = 0;

    for (unsigned round = 0; round < 600; round++) { /* past 2^16 */
        for (unsigned i = 0; i < 128; i++) {
            lab_write_wqe(&a, &wr);
        }
        lab_ring(&a);
        lab_run(lab);
        for (unsigned i = 0; i < 128; i++) {
            expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, counter++);
        }
        lab->num_packets = 0;
    }
}
END_TEST

START_TEST(window_bounds_what_is_unacknowledged)
{
    lab->tap = drop_responses;
    write_from(lab_mem(left, 1u << 20, 1), 1u << 20, lab_mem(right, 1u << 20, 0));
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets - lab_count(lab, 1, BTH_ACK), 128);
}
END_TEST

/* qpc.log_ack_req_freq: a long message requests ACKs on the way, this often; its last packet always
 * does. */
START_TEST(acks_are_requested_as_often_as_log_ack_req_freq_says)
{
    const unsigned packets = 16;
    uint64_t addr = lab_mem(left, packets * 1024, 1), raddr = lab_mem(right, packets * 1024, 0);
    unsigned asked = 0;

    PRM_SET(qpc, a.qp->qpc, log_ack_req_freq, _i);
    qp_load(a.qp);
    write_from(addr, packets * 1024, raddr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    for (unsigned i = 0; i < lab->num_packets; i++) {
        asked += lab->trace[i].from == 0 && lab->trace[i].pkt.ackreq;
    }
    /* packets 0, 2^freq, ... and the last one, which is one of these only if all are */
    ck_assert_uint_eq(asked, (packets >> _i) + (_i != 0));
}
END_TEST

START_TEST(read_responses_do_not_fill_the_window)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 1u << 19, 0), 1u << 19,
                               lab_mem(right, 1u << 19, 1));

    lab->tap = drop_all;
    lab_post(&a, &wr);
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 2);
}
END_TEST

/* IBTA 11.2.5.2, initiator depth: no more READs and atomics outstanding than log_sra_max says. */
START_TEST(outstanding_reads_are_limited)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64, lab_mem(right, 64, 1));

    lab->tap = drop_all;
    for (unsigned i = 0; i < 9; i++) {
        lab_post(&a, &wr);
    }
    lab_run(lab);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), 4);
    lab->tap = NULL;
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    for (unsigned i = 0; i < 9; i++) {
        expect_sent(PRM_WQE_OPCODE_RDMA_READ, (uint16_t)i);
    }
}
END_TEST

/* Two QPs of one device: requests and responses share the loopback path and its few slots. */
START_TEST(loopback)
{
    const uint32_t len = 1u << 20;
    uint64_t src = lab_mem(left, len, 1), dst = lab_mem(left, len, 0), back = lab_mem(left, len, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, len, dst);

    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(left, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
    wr.rkey = left->key;
    lab_post(&a, &wr);
    wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
    wr.sge[0].addr = back;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 1);
    ck_assert_mem_eq(lab_ptr(left, src, len), lab_ptr(left, dst, len), len);
    ck_assert_mem_eq(lab_ptr(left, src, len), lab_ptr(left, back, len), len);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* IBTA 9.7.1: at most half the PSNs are in flight. A READ takes one for each response packet. */
START_TEST(half_the_psns_at_most)
{
    struct lab_path path = lab_path;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, 0, 1u << 30, 0);

    path.mtu = PRM_QP_MTU_256;
    lab_rc_pair(lab, &a, &b, &path);
    lab->tap = drop_all;
    lab_post(&a, &wr);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), 1);
    ck_assert_uint_eq(a.qp->req.next_psn, (path.psn + (1u << 22)) & PSN_MASK);
}
END_TEST

/* A guest that overwrites WQEs which have not completed harms only itself. */
START_TEST(posted_over_what_is_in_flight)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_qp_attr attr = lab_rc;

    attr.log_sq = 3;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    lab->tap = drop_all;
    for (unsigned i = 0; i < 8; i++) {
        write_from(src, 64, dst);
    }
    lab_run(lab);
    for (unsigned i = 0; i < 8; i++) {
        write_from(src, 32, dst);
    }
    lab_run(lab);
    ck_assert_uint_eq(requester_started(a.qp), 8);
    lab->tap = NULL;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    for (uint16_t i = 1; i < 16; i++) {
        expect_error(PRM_WQE_OPCODE_RDMA_WRITE, i, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    expect_none(left);
}
END_TEST

START_TEST(fence_waits_for_reads)
{
    struct lab_wr read =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64, lab_mem(right, 64, 1));
    struct lab_wr write =
        rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));

    lab->tap = drop_all;
    lab_post(&a, &read);
    write.fence = PRM_WQE_FM_FENCE;
    lab_post(&a, &write);
    lab_run(lab);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 0);
    lab->tap = NULL;
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 1);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);

    /* a READ fence does not wait for WRITEs; strong ordering does */
    lab->tap = drop_all;
    lab->num_packets = 0;
    lab_post(&a, &write);
    lab_post(&a, &write);
    lab_run(lab);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 2);
    write.fence = PRM_WQE_FM_STRONG_ORDERING;
    lab_post(&a, &write);
    lab_run(lab);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 2);
    lab->tap = NULL;
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    for (uint16_t i = 2; i < 5; i++) {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, i);
    }
}
END_TEST

START_TEST(nop_completes_in_order)
{
    struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};

    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_post(&a, &nop);
    lab_run(lab);
    expect_none(left);
    lab->tap = NULL;
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_sent(PRM_WQE_OPCODE_NOP, 1);
}
END_TEST

START_TEST(local_invalidate_frees_the_key)
{
    uint64_t mem = lab_mem(left, 64, 1);
    uint32_t key = lab_mr(left, mem, 64, MEM_LOCAL_READ);
    struct lab_wr inval = {.opcode = PRM_WQE_OPCODE_LOCAL_INVAL, .imm = key};
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, mem, 64, lab_mem(right, 64, 0));

    wr.sge[0].key = key;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    lab_post(&a, &inval);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_LOCAL_INVAL, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 2, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

START_TEST(send_with_invalidate_carries_the_key)
{
    uint64_t mem = lab_mem(right, 64, 0);
    uint32_t key = lab_mr(right, mem, 64, MEM_REMOTE_WRITE | MEM_LOCAL_WRITE);
    struct lab_wr wr = send_wr(lab_mem(left, 2000, 1), 2000);
    struct lab_cqe cqe;

    wr.opcode = PRM_WQE_OPCODE_SEND_INVAL;
    wr.imm = key;
    lab_post_recv(&b, lab_mem(right, 2000, 0), 2000);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND_INVAL, 0);
    ck_assert_uint_eq(lab->trace[1].pkt.opcode, BTH_RC | BTH_SEND_LAST_INV);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND_INV);
    ck_assert_uint_eq(cqe.imm, key);
}
END_TEST

/* qpc_extension.error_syndrome: syndrome and vendor syndrome of the error that ended the QP, on
 * either side; not those of flushed requests. For a QP without error they are zero. */
static void expect_error_of(const struct lab_qp *qp, unsigned syndrome)
{
    struct prm_qp_context_extension ext[1] = {0};
    const struct prm_cqe_error_syndrome *error = PRM_PTR(qp_context_extension, ext, error_syndrome);

    qp_query_extension(&qp->side->hca, qp->qp->obj.num, ext);
    ck_assert_uint_eq(PRM_GET(cqe_error_syndrome, error, syndrome), syndrome);
    ck_assert_int_eq(!PRM_GET(cqe_error_syndrome, error, vendor_error_syndrome), !syndrome);
}

START_TEST(a_qp_keeps_the_syndrome_of_its_error)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, dst);

    expect_error_of(&a, 0);
    wr.rkey = 0x99999999;
    lab_post_recv(&b, dst, 64);
    lab_post(&a, &wr);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error_of(&a, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    expect_error_of(&b, PRM_CQE_SYNDROME_LOCAL_ACCESS_ERR);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    expect_error_of(&a, 0);
}
END_TEST

/* A driver need not clear the doorbell record when it resets a QP. The record counts from the next
 * doorbell on; before that, nothing is posted, neither in RTS nor to be flushed. */
START_TEST(after_a_reset_the_record_counts_from_the_next_doorbell_on)
{
    uint64_t src = lab_mem(left, 64, 7), dst = lab_mem(right, 64, 0);

    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_none(left);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    memset(lab_ptr(right, dst, 64), 0, 64);
    lab_connect(lab, &a, &b, &lab_path);
    lab_run(lab);
    expect_none(left);
    a.sq_pi = 0;
    write_from(src, 64, dst); /* the record has that value already */
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_none(left);
    same(src, dst, 64);
}
END_TEST

/* IBTA 10.3.1, SQD state: work may be posted, and starts in RTS. libmlx5 does not check the state
 * when it posts: work that was rung for before RTS is executed in RTS. */
START_TEST(a_doorbell_before_rts_is_not_lost)
{
    uint64_t src = lab_mem(left, 64, 7), dst = lab_mem(right, 64, 0);

    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTS2SQD_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_none(left);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQD_RTS_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, &b), SYN_OK);
    a.sq_pi = 0;
    write_from(src, 64, dst);
    lab_run(lab);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, &a), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, &b), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, &a), SYN_OK);
    expect_none(left);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

/* A driver may leave the doorbell record as it was when it resets a QP: nothing is posted before
 * the doorbell rings again. */
START_TEST(a_reset_queue_waits_for_its_doorbell)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);

    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    lab->num_packets = 0;
    lab_connect(lab, &a, &b, &lab_path);
    lab_run(lab);
    expect_none(left);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* -- patience ---------------------------------------------------------------------------------- */

static void connect_patiently(uint8_t log_rtm)
{
    struct lab_path path = lab_path;

    path.log_rtm = log_rtm;
    lab_rc_pair(lab, &a, &b, &path);
}

/* UCX (EXP_BACKOFF): "ACK timeout will be multiplied by 2^EXP_BACKOFF every consecutive retry".
 * Progress resets it. */
START_TEST(a_timeout_grows_with_each_retry_in_a_row)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);

    connect_patiently(1);
    lab->tap = drop_all;
    write_from(src, 64, dst);
    for (unsigned retries = 0; retries < 4; retries++) {
        lab_advance(lab, (LAB_ACK_TIMEOUT_NS << retries) - (retries ? 2000 : 1000));
        ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), retries + 1);
        lab_advance(lab, 2000);
        ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), retries + 2);
    }
    lab->tap = NULL;
    lab_advance(lab, LAB_ACK_TIMEOUT_NS << 4);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);

    lab->num_packets = 0;
    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_ge(lab_count(lab, 0, BTH_WRITE_ONLY), 2);
}
END_TEST

/* Loses the first two requests, and the second one also when both are sent again. */
static bool lose_the_second_twice(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    unsigned nth = from == 0 ? l->tap_count++ : UINT_MAX;

    return nth == 2 || nth >= 4;
}

/* An acknowledgement ends the longer timeout. For the rest the timer runs again, with the usual
 * timeout, which takes between one and two times as long. */
START_TEST(the_ack_timer_runs_again_after_progress)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);

    connect_patiently(4);
    lab->tap = lose_the_second_twice;
    lab->tap_count = 0;
    write_from(src, 64, dst);
    write_from(src, 64, dst);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS + 1000);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 4);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS + 1000);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 5);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
}
END_TEST

/* Up to the longest timeout that ack_timeout can request. */
START_TEST(a_timeout_grows_to_the_longest)
{
    connect_patiently(15);
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, LAB_ACK_TIMEOUT_NS + 1000);
    lab_advance(lab, (LAB_ACK_TIMEOUT_NS << 15) + 1000);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 3);
    for (unsigned i = 3; i < 8; i++) {
        lab_advance(lab, (4096ull << 31) - 4000);
        ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), i);
        lab_advance(lab, 4000);
        ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), i + 1);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("requester");
    TCase *rc = tcase_create("connected");

    tcase_add_checked_fixture(rc, setup, teardown);
    tcase_add_test(rc, a_reset_queue_waits_for_its_doorbell);
    tcase_add_loop_test(rc, a_small_read_brings_what_was_there_before_a_later_write, 0, 2);
    tcase_add_test(rc, a_late_read_returns_data_of_a_later_write);
    tcase_add_test(rc, sends_of_many_sizes);
    tcase_add_test(rc, writes_of_many_sizes);
    tcase_add_test(rc, reads_of_many_sizes);
    tcase_add_test(rc, lists_are_gathered_and_scattered);
    tcase_add_test(rc, inline_data_is_sent);
    tcase_add_test(rc, immediate_data_as_on_the_wire);
    tcase_add_test(rc, write_with_immediate_of_three_packets);
    tcase_add_loop_test(rc, solicited_event_where_no_receive_completes, 0, 4);
    tcase_add_test(rc, atomics);
    tcase_add_test(rc, a_qp_keeps_the_syndrome_of_its_error);
    tcase_add_test(rc, unsignaled_wqes_complete_silently);
    tcase_add_test(rc, a_full_ring_again_and_again);
    tcase_add_test(rc, window_bounds_what_is_unacknowledged);
    tcase_add_loop_test(rc, acks_are_requested_as_often_as_log_ack_req_freq_says, 0, 5);
    tcase_add_test(rc, read_responses_do_not_fill_the_window);
    tcase_add_test(rc, outstanding_reads_are_limited);
    tcase_add_test(rc, loopback);
    tcase_add_test(rc, half_the_psns_at_most);
    tcase_add_test(rc, posted_over_what_is_in_flight);
    tcase_add_test(rc, fence_waits_for_reads);
    tcase_add_test(rc, nop_completes_in_order);
    tcase_add_test(rc, local_invalidate_frees_the_key);
    tcase_add_test(rc, send_with_invalidate_carries_the_key);
    tcase_add_test(rc, after_a_reset_the_record_counts_from_the_next_doorbell_on);
    tcase_add_test(rc, a_doorbell_before_rts_is_not_lost);
    tcase_add_test(rc, a_timeout_grows_with_each_retry_in_a_row);
    tcase_add_test(rc, the_ack_timer_runs_again_after_progress);
    tcase_add_test(rc, a_timeout_grows_to_the_longest);
    suite_add_tcase(suite, rc);
    return suite;
}
