/* SPDX-License-Identifier: BSD-2-Clause */
/* A QP's send queue: what goes on the wire, what completes, and what happens if it goes wrong. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/q_counter.h"
#include "model/requester_state.h"
#include "tests/unit/lab.h"

static struct lab *lab;
static struct lab_side *left, *right;
static struct lab_qp a, b; /* on left and right */

static void setup(void)
{
    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    lab_rc_pair(lab, &a, &b, &lab_path);
}

/* For tests that connect QPs of their own. */
static void setup_bare(void)
{
    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
}

static void teardown(void)
{
    lab_free(lab);
}

static void expect_cqe(struct lab_side *side, uint8_t opcode, uint8_t send_opcode,
                       uint16_t counter, uint8_t syndrome)
{
    struct lab_cqe cqe;

    ck_assert_msg(lab_poll(side, &cqe), "no completion");
    ck_assert_uint_eq(cqe.opcode, opcode);
    ck_assert_uint_eq(cqe.send_opcode, send_opcode);
    ck_assert_uint_eq(cqe.counter, counter);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

static void expect_sent(uint8_t send_opcode, uint16_t counter)
{
    expect_cqe(left, PRM_CQE_OPCODE_REQ, send_opcode, counter, 0);
}

static void expect_error(uint8_t send_opcode, uint16_t counter, uint8_t syndrome)
{
    expect_cqe(left, PRM_CQE_OPCODE_REQ_ERR, send_opcode, counter, syndrome);
}

static void expect_none(struct lab_side *side)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(side, &cqe));
}

static void expect_received(uint32_t len)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(cqe.byte_cnt, len);
}

static struct lab_wr send_wr(uint64_t addr, uint32_t len)
{
    return (struct lab_wr){
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{addr, len, 0}}, .num_sge = len ? 1 : 0};
}

static struct lab_wr rdma_wr(uint8_t opcode, uint64_t addr, uint32_t len, uint64_t raddr)
{
    return (struct lab_wr){
        .opcode = opcode,
        .sge = {{addr, len, 0}},
        .num_sge = len ? 1 : 0,
        .raddr = raddr,
        .rkey = right->key,
    };
}

static void write_from(uint64_t addr, uint32_t len, uint64_t raddr)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, addr, len, raddr);

    lab_post(&a, &wr);
}

static void same(uint64_t on_left, uint64_t on_right, size_t len)
{
    if (len) {
        ck_assert_mem_eq(lab_ptr(left, on_left, len), lab_ptr(right, on_right, len), len);
    }
}

static struct q_counter *counters(void)
{
    return qp_counters(a.qp);
}

/* -- taps: which packets the cable loses ------------------------------------------------------- */

static uint32_t drop_psn;
static unsigned drop_times, drop_from;

static bool drop_by_psn(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (from == drop_from && pkt->psn == drop_psn && l->tap_count < drop_times) {
        l->tap_count++;
        return false;
    }
    return true;
}

static void lose_psn(unsigned from, uint32_t offset, unsigned times)
{
    drop_from = from;
    drop_psn = (lab_path.psn + offset) & PSN_MASK;
    drop_times = times;
    lab->tap_count = 0;
    lab->tap = drop_by_psn;
}

static bool drop_all(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return false;
}

static bool drop_requests(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != 0;
}

static bool drop_responses(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != 1;
}

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
        /* C9-22: the solicited event bit is for the last packet. */
        ck_assert(lab->trace[i].pkt.solicited == (i == 2));
        ck_assert(lab->trace[i].pkt.ackreq || i < 2);
    }
    ck_assert_uint_eq(lab->trace[0].pkt.reth.len, 2500);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(cqe.byte_cnt, 2500);
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
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64,
                               lab_mem(right, 64, 0));

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
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64,
                               lab_mem(right, 64, 1));

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

START_TEST(fence_waits_for_reads)
{
    struct lab_wr read = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64,
                                 lab_mem(right, 64, 1));
    struct lab_wr write = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64,
                                  lab_mem(right, 64, 0));

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

    /* a READ fence does not wait for writes, strong ordering does */
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

/* -- loss -------------------------------------------------------------------------------------- */

/* A gap brings a NAK with the missing PSN, and sending starts over from there (9.7.5.2.8). */
START_TEST(lost_request_is_repeated_after_the_nak)
{
    uint64_t src = lab_mem(left, 10240, 3), dst = lab_mem(right, 10240, 0);

    lose_psn(0, 4, 1);
    write_from(src, 10240, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 10240);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(lost_last_packet_needs_the_timer)
{
    uint64_t src = lab_mem(left, 3000, 3), dst = lab_mem(right, 3000, 0);

    lose_psn(0, 2, 1);
    write_from(src, 3000, dst);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 3000);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 1);
}
END_TEST

START_TEST(lost_ack_is_made_up_for)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lose_psn(1, 0, 1);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

/* C9-110: one ACK stands for all requests before it. */
START_TEST(later_ack_covers_earlier_requests)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lose_psn(1, 0, 1);
    write_from(src, 64, dst);
    lab_run(lab);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(read_goes_on_from_the_missing_response)
{
    uint64_t dst = lab_mem(left, 20480, 0), src = lab_mem(right, 20480, 3);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 20480, src);
    const struct roce_packet *again = NULL;

    lose_psn(1, 7, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(dst, src, 20480);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), 2);
    for (unsigned i = 1; i < lab->num_packets; i++) {
        if (lab->trace[i].pkt.opcode == (BTH_RC | BTH_READ_REQUEST)) {
            again = &lab->trace[i].pkt;
        }
    }
    ck_assert_uint_eq(again->psn, (lab_path.psn + 7) & PSN_MASK);
    ck_assert_uint_eq(again->reth.va, src + 7 * 1024);
    ck_assert_uint_eq(again->reth.len, 20480 - 7 * 1024);
    ck_assert_uint_eq(counters()->implied_nak_seq_err, 1);
}
END_TEST

START_TEST(lost_last_read_response_needs_the_timer)
{
    uint64_t dst = lab_mem(left, 4096, 0), src = lab_mem(right, 4096, 3);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 4096, src);

    lose_psn(1, 3, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(dst, src, 4096);
}
END_TEST

/* C9-150 and following: an atomic that is repeated is not executed again. */
START_TEST(lost_atomic_response)
{
    uint64_t target = lab_mem(right, 8, 0), result = lab_mem(left, 8, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, target);

    wr.swap_add = 5;
    lose_psn(1, 0, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    write_from(result, 8, lab_mem(right, 8, 0));
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, target, 8), 5);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, result, 8), 0);
}
END_TEST

static GRand *rand_;
static unsigned loss_percent;

static bool drop_some(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return g_rand_int_range(rand_, 0, 100) >= (int)loss_percent;
}

/* Whatever is lost, everything arrives once and in order, as long as retries last. */
START_TEST(random_loss)
{
    uint64_t local = lab_mem(left, 65536, 3), remote = lab_mem(right, 65536, 0);
    uint64_t sum = lab_mem(right, 8, 0), result = lab_mem(left, 8, 0);
    uint8_t *from = lab_ptr(left, local, 65536), *to = lab_ptr(right, remote, 65536);
    unsigned adds = 0;

    rand_ = g_rand_new_with_seed((guint32)_i);
    loss_percent = 5;
    lab->tap = drop_some;
    for (unsigned i = 0; i < 400; i++) {
        uint32_t len = (uint32_t)g_rand_int_range(rand_, 0, 20000);
        uint32_t at = (uint32_t)g_rand_int_range(rand_, 0, 20000);
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, local + at, len, remote + at);

        switch (g_rand_int_range(rand_, 0, 4)) {
        case 0:
            wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
            memcpy(to + at, from + at, len);
            memset(from + at, 0xee, len);
            break;
        case 1:
            wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, sum);
            wr.swap_add = 1;
            adds++;
            break;
        case 2:
            wr = send_wr(local + at, len);
            memset(to + at, 0, len);
            lab_post_recv(&b, remote + at, MAX(len, 1));
            break;
        default:
            memset(to + at, 0, len);
            break;
        }
        lab_post(&a, &wr);
        if (g_rand_boolean(rand_)) {
            write_from(local, 8, remote);
            g_assert(sum && result);
        } else {
            struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};

            lab_post(&a, &nop);
        }
        for (unsigned wait = 0; a.qp->req.s->head != a.qp->req.s->tail ||
                                a.qp->sq.ci != a.sq_pi; wait++) {
            lab_advance(lab, LAB_ACK_TIMEOUT_NS);
            ck_assert_uint_lt(wait, 100);
        }
        ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
        expect_sent(wr.opcode, (uint16_t)(a.sq_pi - 2));
        left->cq_ci++;
        PRM_SET(cq_dbr, lab_ptr(left, left->cq_dbr, 8), ci, left->cq_ci);
        if (wr.opcode != PRM_WQE_OPCODE_ATOMIC_FA) {
            ck_assert_mem_eq(from + at, to + at, len);
        } else {
            ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, result, 8), adds - 1);
        }
        if (wr.opcode == PRM_WQE_OPCODE_SEND) {
            expect_received(len);
        }
        expect_none(right);
        lab->num_packets = 0;
    }
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, sum, 8), adds);
    g_rand_free(rand_);
}
END_TEST

/* -- giving up --------------------------------------------------------------------------------- */

/* C9-140: after retry_count repetitions without an answer the WQE fails. */
START_TEST(retries_are_used_up)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 8);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 7);
    ck_assert_uint_eq(a.qp->req.timer.pos, 0);
}
END_TEST

START_TEST(progress_starts_the_count_anew)
{
    uint64_t src = lab_mem(left, 1024, 1), dst = lab_mem(right, 1024, 0);

    for (unsigned i = 0; i < 3; i++) {
        lab->tap = drop_all;
        write_from(src, 1024, dst);
        lab_advance(lab, 6 * LAB_ACK_TIMEOUT_NS);
        lab->tap = NULL;
        lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)i);
    }
}
END_TEST

START_TEST(timeout_0_waits_for_ever)
{
    struct lab_path path = lab_path;

    path.ack_timeout = 0;
    lab_rc_pair(lab, &a, &b, &path);
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 1000 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab->num_packets, 1);
    expect_none(left);
}
END_TEST

START_TEST(idle_qp_has_no_timer)
{
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_uint_eq(left->host.deadline, UINT64_MAX);
}
END_TEST

/* 9.7.5.2.8, RNR NAK: wait as long as the responder says, then start over. */
START_TEST(receiver_not_ready)
{
    uint64_t src = lab_mem(left, 3000, 4), dst = lab_mem(right, 3000, 0);
    struct lab_wr wr = send_wr(src, 3000);

    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_ge(lab_count(lab, 1, BTH_ACK), 1);
    lab->num_packets = 0;
    lab_advance(lab, 600000); /* of 640 us */
    ck_assert_uint_eq(lab->num_packets, 0);
    lab_post_recv(&b, dst, 3000);
    lab_advance(lab, 100000);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(3000);
    same(src, dst, 3000);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 1);
}
END_TEST

START_TEST(rnr_retries_are_used_up)
{
    struct lab_path path = lab_path;
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    path.rnr_retry = 2;
    lab_rc_pair(lab, &a, &b, &path);
    lab_post(&a, &wr);
    lab_advance(lab, 10 * LAB_MS);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_SEND_ONLY), 3);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 2);
}
END_TEST

START_TEST(rnr_retry_7_never_ends)
{
    uint64_t dst = lab_mem(right, 64, 0);
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    lab_post(&a, &wr);
    lab_advance(lab, 50 * LAB_MS);
    ck_assert_uint_gt(lab_count(lab, 0, BTH_SEND_ONLY), 20);
    lab_post_recv(&b, dst, 64);
    lab_advance(lab, LAB_MS);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
}
END_TEST

START_TEST(remote_access_refused)
{
    uint64_t dst = lab_mem(right, 64, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64, dst);

    wr.rkey = lab_mr(right, dst, 64, MEM_LOCAL_WRITE | MEM_REMOTE_READ);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(counters()->req_remote_access_errors, 1);
}
END_TEST

START_TEST(receive_buffer_too_short)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    lab_post_recv(&b, lab_mem(right, 10, 0), 10);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    ck_assert_uint_eq(counters()->req_remote_invalid_request, 1);
}
END_TEST

START_TEST(bad_local_key_fails_the_wqe)
{
    uint64_t src = lab_mem(left, 5000, 1), dst = lab_mem(right, 5000, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 2000, dst);

    write_from(src, 64, dst);
    wr.num_sge = 2;
    wr.sge[1] = (struct lab_sge){src + 2000, 3000, 0x123400};
    lab_post(&a, &wr);
    write_from(src, 64, dst);
    lab_run(lab);
    /* C10-97: those before it complete as they should */
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(counters()->req_cqe_error, 2);
    ck_assert_uint_eq(counters()->req_cqe_flush_error, 1);
}
END_TEST

START_TEST(read_into_a_key_without_write_access)
{
    uint64_t mem = lab_mem(left, 64, 1);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, mem, 64, lab_mem(right, 64, 1));

    wr.sge[0].key = lab_mr(left, mem, 64, MEM_LOCAL_READ);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

START_TEST(wqe_of_no_known_opcode)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SET_PSV};

    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SET_PSV, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(doorbell_record_beyond_the_ring)
{
    uint8_t type;
    uint32_t num;

    a.sq_pi = 129;
    lab_ring(&a);
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    ck_assert_uint_eq(num, a.qp->obj.num);
}
END_TEST

/* A WQE that changes while it is in flight is no longer trusted. */
START_TEST(wqe_changed_in_flight)
{
    uint64_t src = lab_mem(left, 64, 1);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, lab_mem(right, 64, 0));
    uint8_t *wqe;

    lab->tap = drop_all;
    wqe = lab_write_wqe(&a, &wr);
    lab_ring(&a);
    lab_run(lab);
    write_from(src, 64, lab_mem(right, 64, 0)); /* the cache is now of this one */
    lab_run(lab);
    PRM_SET(wqe_data_seg, wqe + 32, byte_count, 1u << 29);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
}
END_TEST

/* C10-42: what is posted to a QP in error completes with a flush error, signaled or not. */
START_TEST(error_flushes_everything)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64,
                               lab_mem(right, 64, 0));

    lab->tap = drop_all;
    wr.unsignaled = true;
    for (unsigned i = 0; i < 100; i++) {
        lab_post(&a, &wr);
    }
    lab_run(lab);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_post(&a, &wr);
    lab_run(lab);
    for (uint16_t i = 0; i < 101; i++) {
        expect_error(PRM_WQE_OPCODE_RDMA_WRITE, i, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 101, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

START_TEST(reset_forgets_everything)
{
    uint64_t src = lab_mem(left, 64, 7), dst = lab_mem(right, 64, 0);

    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_run(lab);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    lab_advance(lab, 10 * LAB_ACK_TIMEOUT_NS);
    expect_none(left);
    a.sq_pi = 0;
    lab->tap = NULL;
    lab_connect(lab, &a, &b, &lab_path);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 64);
}
END_TEST

/* 10.3.1.7: in SQD what was started is finished, and nothing new is started. */
START_TEST(send_queue_drains)
{
    uint64_t src = lab_mem(left, 100000, 7), dst = lab_mem(right, 100000, 0);
    unsigned budget = 1;
    uint8_t type;
    uint32_t num;

    write_from(src, 100000, dst);
    hca_run(&left->hca, budget); /* only a first packet leaves */
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTS2SQD_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQ_DRAINING);
    ck_assert(!lab_event(left, &type, &num));
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_none(left);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQD);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_SQ_DRAINED);
    ck_assert_uint_eq(num, a.qp->obj.num);

    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQD_RTS_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
}
END_TEST

/* -- ghosts ------------------------------------------------------------------------------------ */

static void fake_response(uint8_t op, uint32_t psn, uint8_t syndrome)
{
    static const uint8_t payload[4096];
    struct roce_packet pkt = {.opcode = BTH_RC | op, .psn = psn & PSN_MASK, .payload = payload};

    pkt.aeth.syndrome = syndrome;
    requester_rx(a.qp, &pkt);
    lab_run(lab);
}

/* C9-111: responses to what was not asked have no effect. */
START_TEST(ghost_responses_are_ignored)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    for (uint32_t distance = 1; distance < 0x800000; distance = distance * 3 + 1) {
        fake_response(BTH_ACK, lab_path.psn + distance, 0x1f);
        fake_response(BTH_ACK, lab_path.psn - distance, 0x60);
        fake_response(BTH_ACK, lab_path.psn + distance, 0x62);
        fake_response(BTH_ACK, lab_path.psn - distance, 0x20);
        fake_response(BTH_READ_RESP_ONLY, lab_path.psn + distance, 0);
        fake_response(BTH_ATOMIC_ACK, lab_path.psn - distance, 0);
    }
    fake_response(BTH_ACK, lab_path.psn, 0x40); /* reserved class */
    fake_response(BTH_ACK, lab_path.psn, 0xff);
    fake_response(BTH_ACK, lab_path.psn, 0x7f); /* reserved NAK code */
    expect_none(left);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(lab->num_packets, 1);
    fake_response(BTH_ACK, lab_path.psn, 0x1f);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    fake_response(BTH_ACK, lab_path.psn, 0x62); /* answered already */
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

START_TEST(response_of_the_wrong_sort)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    fake_response(BTH_READ_RESP_ONLY, lab_path.psn, 0);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

START_TEST(read_response_of_the_wrong_length)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64,
                               lab_mem(right, 64, 1));

    lab->tap = drop_all;
    lab_post(&a, &wr);
    lab_run(lab);
    fake_response(BTH_READ_RESP_ONLY, lab_path.psn, 0); /* without payload */
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

/* An ACK cannot stand for the READ before it: that counts as a NAK (implied NAK). */
START_TEST(ack_behind_an_unanswered_read)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64,
                               lab_mem(right, 64, 1));

    lose_psn(1, 0, 1);
    lab_post(&a, &wr);
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(counters()->implied_nak_seq_err, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

/* One lost packet of many makes one repetition, however many NAKs follow from it. */
START_TEST(naks_are_answered_once)
{
    lab->tap = drop_requests;
    write_from(lab_mem(left, 50000, 1), 50000, lab_mem(right, 50000, 0));
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 49);
    for (unsigned i = 0; i < 100; i++) {
        fake_response(BTH_ACK, lab_path.psn, 0x60);
    }
    ck_assert_uint_eq(lab->num_packets, 2 * 49);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
}
END_TEST

START_TEST(random_responses)
{
    static const uint8_t ops[] = {BTH_ACK, BTH_ACK, BTH_ACK, BTH_READ_RESP_FIRST,
                                  BTH_READ_RESP_MIDDLE, BTH_READ_RESP_LAST, BTH_READ_RESP_ONLY,
                                  BTH_ATOMIC_ACK, BTH_SEND_ONLY};
    uint64_t mem = lab_mem(left, 8192, 0);
    struct lab_cqe cqe;

    rand_ = g_rand_new_with_seed(7);
    lab->tap = drop_all;
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = 0; i < 12; i++) {
            struct lab_wr wr = rdma_wr(g_rand_boolean(rand_) ? PRM_WQE_OPCODE_RDMA_READ
                                                             : PRM_WQE_OPCODE_RDMA_WRITE,
                                       mem, (uint32_t)g_rand_int_range(rand_, 0, 8192), mem);

            lab_post(&a, &wr);
        }
        lab_run(lab);
        for (unsigned i = 0; i < 60; i++) {
            static const uint8_t payload[1024];
            struct roce_packet pkt = {
                .opcode = BTH_RC | ops[g_rand_int_range(rand_, 0, G_N_ELEMENTS(ops))],
                .psn = (a.qp->req.unacked_psn + (uint32_t)g_rand_int_range(rand_, -2, 12)) &
                       PSN_MASK,
                .payload = payload,
                .payload_len = g_rand_boolean(rand_) ? 1024 : 3,
            };

            pkt.aeth.syndrome = (uint8_t)(g_rand_int_range(rand_, 0, 6) ? 0 : g_rand_int(rand_));
            requester_rx(a.qp, &pkt);
            lab_run(lab);
            ck_assert_uint_le(a.qp->req.s->tail - a.qp->req.s->head, 128);
        }
        lab_advance(lab, LAB_ACK_TIMEOUT_NS);
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
        lab_run(lab);
        ck_assert_uint_eq(a.qp->sq.ci, a.sq_pi);
        /* every WQE completed exactly once, in order */
        for (uint16_t i = 0; i < a.sq_pi; i++) {
            ck_assert(lab_poll(left, &cqe));
            ck_assert_uint_eq(cqe.counter, i);
        }
        expect_none(left);
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        a.sq_pi = 0;
        ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        lab_connect(lab, &a, &b, &lab_path);
        lab->num_packets = 0;
    }
    g_rand_free(rand_);
}
END_TEST

/* -- UC, UD, UMR ------------------------------------------------------------------------------- */

static void pair_of(uint8_t st)
{
    struct lab_qp_attr attr = lab_rc;

    attr.st = st;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
}

START_TEST(uc_completes_when_sent)
{
    uint64_t src = lab_mem(left, 5000, 1), dst = lab_mem(right, 5000, 0);

    pair_of(PRM_QP_ST_UC);
    write_from(src, 5000, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 5000);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_UC | BTH_WRITE_FIRST);
    ck_assert(!lab->trace[4].pkt.ackreq);
    ck_assert_uint_eq(lab_count(lab, 1, BTH_ACK), 0);

    lab->tap = drop_all;
    write_from(src, 5000, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(left->host.deadline, UINT64_MAX);
}
END_TEST

/* 10.3.1.6: an error in the send queue of an unreliable QP leaves its receive queue alone. */
START_TEST(uc_error_leads_to_sqer_and_back)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr bad = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, src, 64, dst);

    pair_of(PRM_QP_ST_UC);
    lab_post(&a, &bad);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 3);
    same(src, dst, 64);
}
END_TEST

static struct lab_wr ud_wr(uint32_t len)
{
    struct lab_wr wr = send_wr(lab_mem(left, len, 2), len);

    wr.dest_qpn = b.qp->obj.num;
    wr.qkey = lab_path.qkey;
    return wr;
}

START_TEST(ud_goes_where_its_vector_says)
{
    uint64_t dst = lab_mem(right, 1024 + 40, 0);
    struct lab_wr wr;
    const struct roce_packet *pkt = &lab->trace[0].pkt;
    struct lab_cqe cqe;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(1000);
    lab_post_recv(&b, dst, 1040);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.byte_cnt, 1040);
    same(wr.sge[0].addr, dst + 40, 1000);
    ck_assert_uint_eq(pkt->opcode, BTH_UD | BTH_SEND_ONLY);
    ck_assert_uint_eq(pkt->deth.src_qp, a.qp->obj.num);
    ck_assert_uint_eq(pkt->deth.qkey, lab_path.qkey);
    ck_assert_uint_eq(pkt->addr.udp_sport, 0xd000);
    ck_assert_uint_eq(pkt->addr.hop_limit, 33);
    ck_assert_uint_eq(pkt->addr.tclass, 0x48);
    ck_assert(pkt->addr.is_ipv4);
    ck_assert_mem_eq(pkt->addr.smac, left->mac, 6);
    ck_assert_mem_eq(pkt->addr.dmac, right->mac, 6);
}
END_TEST

/* C10-2: a Q_Key with the high bit set in the WQE stands for the QP's own. */
START_TEST(ud_own_qkey)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(8);
    wr.qkey = 0x80000000;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(lab->trace[0].pkt.deth.qkey, lab_path.qkey);
}
END_TEST

START_TEST(ud_longer_than_the_mtu)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(1025);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* The driver's active_mtu for an Ethernet MTU of 1500 is 1024. */
START_TEST(ud_longer_than_the_port_allows)
{
    struct lab_path path = lab_path;
    struct lab_wr wr;
    struct lab_qp_attr attr = lab_rc;

    attr.st = PRM_QP_ST_UD;
    path.mtu = PRM_QP_MTU_4096;
    left->hca.port.mtu = 1522;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &path);
    wr = ud_wr(1024);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    wr = ud_wr(1025);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 2, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}
END_TEST

START_TEST(ud_without_a_source_gid)
{
    struct lab_wr wr;
    uint8_t *wqe;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(8);
    wqe = lab_write_wqe(&a, &wr);
    PRM_SET(wqe_av, wqe + 16, src_addr_index, 200);
    lab_ring(&a);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

START_TEST(gsi_sends_as_qp_1)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_QP1);
    lab_post_recv(&b, lab_mem(right, 300, 0), 300);
    wr = ud_wr(256);
    wr.dest_qpn = 1;
    wr.qkey = 0x80010000;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert_uint_eq(lab->trace[0].pkt.deth.src_qp, 1);
    expect_received(296);
}
END_TEST

/* The driver registers memory by UMR on a QP of its own kind. */
START_TEST(umr_on_the_drivers_queue)
{
    struct lab_qp_attr attr = {.st = PRM_QP_ST_REG_UMR, .log_sq = 5, .no_rq = true};
    uint64_t pages = lab_mem(left, 8192, 9), entries = fake_host_alloc(&left->host, 64, 64);
    uint32_t key = lab_mr(left, pages, 8192, MEM_LOCAL_READ);
    uint64_t elsewhere = fake_host_alloc(&left->host, 8192, 4096);
    struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_UMR, .imm = key};
    struct lab_qp umr;
    uint8_t *wqe, data[16];

    lab_qp_new(left, &attr, &umr);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_RST2INIT_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_INIT2RTR_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_RTR2RTS_QP, NULL, 0, NULL), SYN_OK);
    for (unsigned i = 0; i < 2; i++) {
        ((uint64_t *)lab_ptr(left, entries, 16))[i] = GUINT64_TO_BE(elsewhere + i * 4096);
    }
    memcpy(lab_ptr(left, elsewhere, 16), "here I am, again", 16);

    wqe = lab_write_wqe(&umr, &nop);
    umr.sq_pi = 3;
    PRM_SET(wqe_ctrl_seg, wqe, ds, 9);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, xlt_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, mkey_mask, 1ull << PRM_MKEY_MASK_START_ADDR);
    PRM_SET(mkc, wqe + 64, start_addr, 0x5000);
    PRM_SET(mkc, wqe + 64, mkey_7_0, key & 0xff);
    PRM_SET(wqe_data_seg, wqe + 128, byte_count, 64);
    PRM_SET(wqe_data_seg, wqe + 128, lkey, left->hca.resd_lkey);
    PRM_SET(wqe_data_seg, wqe + 128, addr, entries);
    lab_ring(&umr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_UMR, 0);
    ck_assert_int_eq(mkey_read(&left->hca, key, left->pdn, 0x5000, data, 16, MEM_LOCAL_READ),
                     MEM_OK);
    ck_assert_mem_eq(data, "here I am, again", 16);
}
END_TEST

START_TEST(umr_that_is_refused)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR, .imm = 0x777700};
    uint8_t *wqe = lab_write_wqe(&a, &wr);

    a.sq_pi = 2;
    PRM_SET(wqe_ctrl_seg, wqe, ds, 8);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, inl, 1);
    lab_ring(&a);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_UMR, 0, PRM_CQE_SYNDROME_MW_BIND_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("requester");
    TCase *rc = tcase_create("rc"), *bare = tcase_create("others");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(rc, setup, teardown);
    tcase_add_test(rc, sends_of_many_sizes);
    tcase_add_test(rc, writes_of_many_sizes);
    tcase_add_test(rc, reads_of_many_sizes);
    tcase_add_test(rc, lists_are_gathered_and_scattered);
    tcase_add_test(rc, inline_data_is_sent);
    tcase_add_test(rc, immediate_data_as_on_the_wire);
    tcase_add_test(rc, write_with_immediate_of_three_packets);
    tcase_add_test(rc, atomics);
    tcase_add_test(rc, unsignaled_wqes_complete_silently);
    tcase_add_test(rc, a_full_ring_again_and_again);
    tcase_add_test(rc, window_bounds_what_is_unacknowledged);
    tcase_add_test(rc, read_responses_do_not_fill_the_window);
    tcase_add_test(rc, outstanding_reads_are_limited);
    tcase_add_test(rc, fence_waits_for_reads);
    tcase_add_test(rc, nop_completes_in_order);
    tcase_add_test(rc, local_invalidate_frees_the_key);
    tcase_add_test(rc, send_with_invalidate_carries_the_key);
    tcase_add_test(rc, lost_request_is_repeated_after_the_nak);
    tcase_add_test(rc, lost_last_packet_needs_the_timer);
    tcase_add_test(rc, lost_ack_is_made_up_for);
    tcase_add_test(rc, later_ack_covers_earlier_requests);
    tcase_add_test(rc, read_goes_on_from_the_missing_response);
    tcase_add_test(rc, lost_last_read_response_needs_the_timer);
    tcase_add_test(rc, lost_atomic_response);
    tcase_add_loop_test(rc, random_loss, 1, 6);
    tcase_add_test(rc, retries_are_used_up);
    tcase_add_test(rc, progress_starts_the_count_anew);
    tcase_add_test(rc, idle_qp_has_no_timer);
    tcase_add_test(rc, receiver_not_ready);
    tcase_add_test(rc, rnr_retry_7_never_ends);
    tcase_add_test(rc, remote_access_refused);
    tcase_add_test(rc, receive_buffer_too_short);
    tcase_add_test(rc, bad_local_key_fails_the_wqe);
    tcase_add_test(rc, read_into_a_key_without_write_access);
    tcase_add_test(rc, wqe_of_no_known_opcode);
    tcase_add_test(rc, doorbell_record_beyond_the_ring);
    tcase_add_test(rc, wqe_changed_in_flight);
    tcase_add_test(rc, error_flushes_everything);
    tcase_add_test(rc, reset_forgets_everything);
    tcase_add_test(rc, send_queue_drains);
    tcase_add_test(rc, ghost_responses_are_ignored);
    tcase_add_test(rc, response_of_the_wrong_sort);
    tcase_add_test(rc, read_response_of_the_wrong_length);
    tcase_add_test(rc, ack_behind_an_unanswered_read);
    tcase_add_test(rc, naks_are_answered_once);
    tcase_add_test(rc, random_responses);
    tcase_add_test(rc, umr_that_is_refused);
    suite_add_tcase(suite, rc);

    tcase_add_checked_fixture(bare, setup_bare, teardown);
    tcase_add_test(bare, timeout_0_waits_for_ever);
    tcase_add_test(bare, rnr_retries_are_used_up);
    tcase_add_test(bare, uc_completes_when_sent);
    tcase_add_test(bare, uc_error_leads_to_sqer_and_back);
    tcase_add_test(bare, ud_goes_where_its_vector_says);
    tcase_add_test(bare, ud_own_qkey);
    tcase_add_test(bare, ud_longer_than_the_mtu);
    tcase_add_test(bare, ud_longer_than_the_port_allows);
    tcase_add_test(bare, ud_without_a_source_gid);
    tcase_add_test(bare, gsi_sends_as_qp_1);
    tcase_add_test(bare, umr_on_the_drivers_queue);
    suite_add_tcase(suite, bare);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
