/* SPDX-License-Identifier: BSD-2-Clause */
/* The common setup of the tests of dynamic connections: an initiator on side 0, two targets on side
 * 1. */
#ifndef HCASIM_TESTS_TEST_DC_H
#define HCASIM_TESTS_TEST_DC_H

#include <check.h>
#include <string.h>
#include "model/queue/q_counter.h"
#include "tests/unit/dc_lab.h"

#define LEN  100
#define LOOK (2 * LAB_MS) /* an idle session ends within this time */

static struct lab *lab;
static struct lab_side *near, *far;
static struct lab_qp dci;
static struct lab_dct dct, other;
static uint64_t src, dst, word;

static G_GNUC_UNUSED void setup(void)
{
    lab = lab_new();
    near = &lab->side[0];
    far = &lab->side[1];
    lab_dct_new(far, &dct);
    lab_dct_new(far, &other);
    lab_dci_new(near, &lab_dci, NULL, &dci);
    src = lab_mem(near, 65536, 1);
    dst = lab_mem(far, 65536, 0);
    word = lab_mem(far, 64, 0);
}

static G_GNUC_UNUSED void teardown(void)
{
    lab_free(lab);
}

/* -- requests, and their results
 * ---------------------------------------------------------------- */

static G_GNUC_UNUSED void send_from(struct lab_qp *qp, const struct lab_dct *to, uint32_t len,
                                    uint16_t stream)
{
    struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, len, 0}}, .num_sge = 1, .stream = stream};

    lab_post(qp, lab_to(&wr, to));
}

static G_GNUC_UNUSED void write_to(const struct lab_dct *to, uint32_t rkey, uint32_t len,
                                   uint16_t stream)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                        .sge = {{src, len, 0}},
                        .num_sge = 1,
                        .raddr = dst,
                        .rkey = rkey,
                        .stream = stream};

    lab_post(&dci, lab_to(&wr, to));
}

static G_GNUC_UNUSED void add_to(struct lab_qp *qp, const struct lab_dct *to)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                        .sge = {{src, 8, 0}},
                        .num_sge = 1,
                        .raddr = word,
                        .rkey = far->key,
                        .swap_add = 1};

    lab_post(qp, lab_to(&wr, to));
}

static G_GNUC_UNUSED void expect_sent(uint8_t syndrome)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(near, &cqe));
    ck_assert_uint_eq(cqe.opcode, syndrome ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

static G_GNUC_UNUSED void expect_received(const struct lab_dct *at, uint32_t len)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(far, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(cqe.qpn, at->dctn);
    ck_assert_uint_eq(cqe.byte_cnt, len);
}

static G_GNUC_UNUSED void expect_nothing(struct lab_side *side)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(side, &cqe));
}

static G_GNUC_UNUSED uint64_t sum(void)
{
    uint64_t value;

    memcpy(&value, lab_ptr(far, word, 8), 8);
    return value;
}

/* Returns the number of packets of one kind in the trace. */
static G_GNUC_UNUSED unsigned count_connects(bool is_end)
{
    unsigned n = 0;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        const struct roce_packet *pkt = &lab->trace[i].pkt;

        n += pkt->opcode == (BTH_DC | BTH_CONNECT) && pkt->solicited == is_end;
    }
    return n;
}

static G_GNUC_UNUSED unsigned count_cnaks(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        n += lab->trace[i].pkt.opcode == (BTH_DC | BTH_ACK) &&
             lab->trace[i].pkt.aeth.syndrome == AETH_CNAK;
    }
    return n;
}

static G_GNUC_UNUSED unsigned responders(void)
{
    return lab_dct_of(&dct)->responders.length + lab_dct_of(&other)->responders.length;
}

/* Without faults on the wire, these counters do not change. */
static G_GNUC_UNUSED void expect_no_sequence_errors(void)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct q_counter *c = q_counter_get(&lab->side[i].hca, 0);

        ck_assert_uint_eq(c->out_of_sequence, 0);
        ck_assert_uint_eq(c->packet_seq_err, 0);
        ck_assert_uint_eq(c->implied_nak_seq_err, 0);
        ck_assert_uint_eq(c->duplicate_request, 0);
    }
}

#endif
