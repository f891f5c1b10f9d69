/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bench of the tests of cross channel: on the left a master with a CQ of its own, and a QP a
 * that it may start; WQEs that wait and enable; the master's completions.
 */
#ifndef HCASIM_TESTS_CROSS_BENCH_H
#define HCASIM_TESTS_CROSS_BENCH_H

#include "model/queue/cq_priv.h"
#include "model/rdma/cross.h"
#include "tests/unit/requester_bench.h"

/* The master, on the left side, and its CQ, on which nothing else posts. */
static struct lab_qp master;
static uint32_t master_cqn;
static struct {
    uint64_t ring;
    uint32_t ci;
} master_cq;

static const struct lab_qp_attr masters = {
    .st = PRM_QP_ST_RC, .log_sq = 6, .log_rq = 4, .master = true};

static inline uint32_t new_cq(uint64_t *ring)
{
    uint64_t dbr;

    return lab_cq_new(left, 4, ring, &dbr);
}

/* A master that is connected to a QP which takes its messages. */
static inline void new_master(const struct lab_qp_attr *attr, struct lab_qp *qp, uint32_t cqn)
{
    struct lab_qp_attr with_cq = *attr;
    struct lab_qp far;

    with_cq.cqn = cqn;
    lab_qp_new(left, &with_cq, qp);
    lab_qp_new(right, &lab_rc, &far);
    lab_connect(lab, qp, &far, &lab_path);
}

/* Makes a with these attributes, and connects it to a new b. */
static inline void new_a(const struct lab_qp_attr *attr)
{
    lab_qp_new(left, attr, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
}

/* a and b are connected; a has the managed queues that are asked for, and CQEs on the side's CQ. */
static inline void setup_cross(bool managed_send, bool managed_recv)
{
    struct lab_qp_attr attr = lab_rc;

    setup_bare();
    master_cqn = new_cq(&master_cq.ring);
    master_cq.ci = 0;
    new_master(&masters, &master, master_cqn);
    attr.managed_send = managed_send;
    attr.managed_recv = managed_recv;
    new_a(&attr);
}

static inline void setup_plain(void)
{
    setup_cross(false, false);
}

static inline void setup_managed_send(void)
{
    setup_cross(true, false);
}

static inline void setup_managed_recv(void)
{
    setup_cross(false, true);
}

static inline void *write_cross(struct lab_qp *qp, uint8_t opcode, uint32_t num, uint32_t pi,
                                bool unsignaled)
{
    struct prm_wqe_wait_en_seg seg[1] = {0};

    PRM_SET(wqe_wait_en_seg, seg, pi, pi);
    PRM_SET(wqe_wait_en_seg, seg, obj_num, num);
    return lab_write_wqe(qp, &(struct lab_wr){.opcode = opcode,
                                              .operands = seg,
                                              .operands_len = sizeof(seg),
                                              .unsignaled = unsignaled});
}

static inline void post_cross(struct lab_qp *qp, uint8_t opcode, uint32_t num, uint32_t pi)
{
    write_cross(qp, opcode, num, pi, false);
    lab_ring(qp);
}

static inline void post_wait(uint32_t cqn, uint32_t pi)
{
    post_cross(&master, PRM_WQE_OPCODE_CQE_WAIT, cqn, pi);
}

static inline void post_send_enable(const struct lab_qp *qp, uint32_t pi)
{
    post_cross(&master, PRM_WQE_OPCODE_SEND_ENABLE, qp->qp->obj.num, pi);
}

static inline void post_nop(struct lab_qp *qp)
{
    lab_post(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP});
}

/* Writes a NOP as the legacy library writes the WQEs of a managed queue: no record, no doorbell. */
static inline void write_nop(struct lab_qp *qp)
{
    lab_write_wqe(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP});
}

/* The next CQE of the master. */
static inline void expect_master(uint8_t opcode, uint16_t counter, uint8_t syndrome)
{
    void *raw = lab_ptr(left, master_cq.ring + (master_cq.ci & 15) * 64ull, 64);

    lab_run(lab);
    ck_assert_uint_ne(PRM_GET(cqe64, raw, opcode), PRM_CQE_OPCODE_INVALID);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, send_wqe_opcode), opcode);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, wqe_counter), counter);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, opcode),
                      syndrome ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_REQ);
    if (syndrome) {
        ck_assert_uint_eq(PRM_GET(err_cqe, raw, syndrome), syndrome);
    }
    master_cq.ci++;
}

static inline void expect_master_holds(void)
{
    const void *raw = lab_ptr(left, master_cq.ring + (master_cq.ci & 15) * 64ull, 64);

    lab_run(lab);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)raw, opcode),
                      PRM_CQE_OPCODE_INVALID);
    ck_assert_ptr_null(master.qp->req.work.next);
}

static inline struct cq_wait *master_wait(void)
{
    return &master.qp->cross->wait;
}

static inline TCase *cross_case(const char *name, void (*up)(void))
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, up, teardown);
    return tc;
}

#endif
