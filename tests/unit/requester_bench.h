/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the requester share: two QPs a and b on the lab's left and right side, work
 * requests of a, their completions, and the packets that the cable loses.
 */
#ifndef HCASIM_TESTS_REQUESTER_BENCH_H
#define HCASIM_TESTS_REQUESTER_BENCH_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/rdma/requester_internal.h"
#include "tests/unit/lab.h"

static struct lab *lab;
static struct lab_side *left, *right;
static struct lab_qp a, b; /* QPs on left and right */

static inline void setup(void)
{
    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    lab_rc_pair(lab, &a, &b, &lab_path);
}

/* For tests that connect their own QPs. */
static inline void setup_bare(void)
{
    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
}

/* Connects two QPs of a service type (PRM_QP_ST_). */
static inline void pair_on(uint8_t st, const struct lab_path *path)
{
    struct lab_qp_attr attr = lab_rc;

    attr.st = st;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, path);
}

static inline void pair_of(uint8_t st)
{
    pair_on(st, &lab_path);
}

static inline void teardown(void)
{
    lab_free(lab);
}

static inline void expect_cqe(struct lab_side *side, uint8_t opcode, uint8_t send_opcode,
                              uint16_t counter, uint8_t syndrome)
{
    struct lab_cqe cqe;

    ck_assert_msg(lab_poll(side, &cqe), "no completion");
    ck_assert_uint_eq(cqe.opcode, opcode);
    ck_assert_uint_eq(cqe.send_opcode, send_opcode);
    ck_assert_uint_eq(cqe.counter, counter);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

static inline void expect_sent(uint8_t send_opcode, uint16_t counter)
{
    expect_cqe(left, PRM_CQE_OPCODE_REQ, send_opcode, counter, 0);
}

static inline void expect_error(uint8_t send_opcode, uint16_t counter, uint8_t syndrome)
{
    expect_cqe(left, PRM_CQE_OPCODE_REQ_ERR, send_opcode, counter, syndrome);
}

static inline void expect_none(struct lab_side *side)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(side, &cqe));
}

static inline void expect_received(uint32_t len)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(cqe.byte_cnt, len);
}

static inline struct lab_wr send_wr(uint64_t addr, uint32_t len)
{
    return (struct lab_wr){
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{addr, len, 0}}, .num_sge = len ? 1 : 0};
}

static inline struct lab_wr rdma_wr(uint8_t opcode, uint64_t addr, uint32_t len, uint64_t raddr)
{
    return (struct lab_wr){
        .opcode = opcode,
        .sge = {{addr, len, 0}},
        .num_sge = len ? 1 : 0,
        .raddr = raddr,
        .rkey = right->key,
    };
}

static inline void write_from(uint64_t addr, uint32_t len, uint64_t raddr)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, addr, len, raddr);

    lab_post(&a, &wr);
}

static inline void same(uint64_t on_left, uint64_t on_right, size_t len)
{
    if (len) {
        ck_assert_mem_eq(lab_ptr(left, on_left, len), lab_ptr(right, on_right, len), len);
    }
}

static inline struct q_counter *counters(void)
{
    return qp_counters(a.qp);
}

/* -- taps: which packets the cable loses ------------------------------------------------------- */

static uint32_t drop_psn;
static unsigned drop_times, drop_from;

static inline bool drop_by_psn(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (from == drop_from && pkt->psn == drop_psn && l->tap_count < drop_times) {
        l->tap_count++;
        return false;
    }
    return true;
}

static inline void lose_psn(unsigned from, uint32_t offset, unsigned times)
{
    drop_from = from;
    drop_psn = (lab_path.psn + offset) & PSN_MASK;
    drop_times = times;
    lab->tap_count = 0;
    lab->tap = drop_by_psn;
}

static inline bool drop_all(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return false;
}

static inline bool drop_requests(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != 0;
}

static inline bool drop_responses(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != 1;
}

#endif
