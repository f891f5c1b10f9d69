/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests small data in the CQE (qpc.cs_res, cs_req, dctc.cs_res; docs/adr/0013), of received
 * messages and of the results of READs and atomics.
 */
#include <string.h>
#include "model/queue/cqe.h"
#include "tests/unit/dc_lab.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LOG   3 /* entries of a CQ */
#define NEVER 0xee

/* A side's additional CQ. */
struct cq_of {
    struct lab_side *side;
    uint32_t cqn, ci;
    uint64_t ring, dbr;
    size_t size; /* bytes of a CQE */
};

static struct cq_of send_cq, recv_cq;

static void cq_make(struct cq_of *cq, struct lab_side *side, size_t size)
{
    *cq = (struct cq_of){.side = side, .size = size};
    cq->cqn = size == 128 ? lab_cq128_new(side, LOG, &cq->ring, &cq->dbr)
                          : lab_cq_new(side, LOG, &cq->ring, &cq->dbr);
}

static uint8_t *cq_slot(const struct cq_of *cq, uint32_t index)
{
    return lab_ptr(cq->side, cq->ring + (index % (1u << LOG)) * cq->size, cq->size);
}

static uint8_t *cq_cqe64(const struct cq_of *cq, uint32_t index)
{
    return cq_slot(cq, index) + cq->size - 64;
}

/* Returns the next CQE; NULL: none. Software owns it until it is reported as consumed. */
static const void *cq_next(struct cq_of *cq)
{
    const void *cqe = cq_cqe64(cq, cq->ci);

    if (PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, cqe, owner) != (cq->ci >> LOG & 1)) {
        return NULL;
    }
    cq->ci++;
    return cqe;
}

static void cq_consume(const struct cq_of *cq)
{
    PRM_SET(cq_dbr, lab_ptr(cq->side, cq->dbr, 8), ci, cq->ci & 0xffffff);
}

/* Expects a CQE with this format of data; returns the place of the data. */
static const uint8_t *expect_data(struct cq_of *cq, unsigned format, uint32_t len)
{
    const uint8_t *cqe = cq_next(cq);

    ck_assert_ptr_nonnull(cqe);
    cq_consume(cq);
    ck_assert_uint_lt(PRM_GET(cqe64, (const void *)cqe, opcode), PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(PRM_GET(cqe64, (const void *)cqe, format), format);
    ck_assert_uint_eq(PRM_GET(cqe64, (const void *)cqe, byte_cnt), len);
    return format == PRM_CQE_FORMAT_INLINE_64 ? cqe - 64 : cqe;
}

static void connect_as(uint8_t st, size_t send_size, uint8_t cs_req, size_t recv_size,
                       uint8_t cs_res)
{
    struct lab_qp_attr attr = lab_rc;

    cq_make(&send_cq, left, send_size);
    cq_make(&recv_cq, right, recv_size);
    attr.st = st;
    attr.cqn = send_cq.cqn;
    attr.cs_req = cs_req;
    lab_qp_new(left, &attr, &a);
    attr.cqn = recv_cq.cqn;
    attr.cs_req = 0;
    attr.cs_res = cs_res;
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
}

static uint64_t untouched(struct lab_side *side, size_t len)
{
    uint64_t addr = lab_mem(side, len, 0);

    memset(lab_ptr(side, addr, len), NEVER, len);
    return addr;
}

static void expect_untouched(struct lab_side *side, uint64_t addr, size_t len)
{
    const uint8_t *p = lab_ptr(side, addr, len);

    for (size_t i = 0; i < len; i++) {
        ck_assert_uint_eq(p[i], NEVER);
    }
}

/* -- received messages ------------------------------------------------------------------------- */

static const struct {
    size_t cqe;
    uint8_t cs_res;
    uint32_t room;
} receives[] = {
    {64, PRM_CS_RES_DISABLE, 0},    {128, PRM_CS_RES_DISABLE, 0},
    {64, PRM_CS_RES_UP_TO_32B, 32}, {128, PRM_CS_RES_UP_TO_32B, 32},
    {64, PRM_CS_RES_UP_TO_64B, 32}, {128, PRM_CS_RES_UP_TO_64B, 64},
};

static const uint32_t lens[] = {64, 1, 65, 8, 32, 0, 33, 24, 200};

static void send_one(uint64_t src, uint32_t len, uint64_t dst)
{
    struct lab_wr wr = send_wr(src, len);

    lab_post_recv(&b, dst, 256);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_ptr_nonnull(cq_next(&send_cq));
    cq_consume(&send_cq);
}

static void sends_of_many_sizes(uint32_t room)
{
    for (size_t i = 0; i < 3 * G_N_ELEMENTS(lens); i++) { /* the slots have contained data before */
        uint32_t len = lens[i % G_N_ELEMENTS(lens)];
        uint64_t src = lab_mem(left, 256, 1 + i), dst = untouched(right, 256);
        bool in_cqe = len && len <= room;
        const uint8_t *data;

        send_one(src, len, dst);
        data = expect_data(&recv_cq,
                           !in_cqe      ? PRM_CQE_FORMAT_NO_INLINE
                           : room == 64 ? PRM_CQE_FORMAT_INLINE_64
                                        : PRM_CQE_FORMAT_INLINE_32,
                           len);
        if (in_cqe) {
            ck_assert_mem_eq(data, lab_ptr(left, src, len), len);
            expect_untouched(right, dst, 256);
        } else {
            same(src, dst, len);
        }
    }
}

START_TEST(a_cqe_takes_what_it_has_room_for)
{
    connect_as(PRM_QP_ST_RC, 64, 0, receives[_i].cqe, receives[_i].cs_res);
    sends_of_many_sizes(receives[_i].room);
}
END_TEST

START_TEST(a_cqe_takes_data_of_unreliable_connections)
{
    connect_as(PRM_QP_ST_UC, 64, 0, receives[_i].cqe, receives[_i].cs_res);
    sends_of_many_sizes(receives[_i].room);
}
END_TEST

/* The receiver of datagrams expects them, and their headers, in the buffers. */
START_TEST(datagrams_are_in_memory)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 256, 0);
    struct lab_wr wr = send_wr(src, 20);

    connect_as(PRM_QP_ST_UD, 128, PRM_CS_REQ_UP_TO_64B, 128, PRM_CS_RES_UP_TO_64B);
    wr.dest_qpn = b.qp->obj.num;
    wr.qkey = lab_path.qkey;
    lab_post_recv(&b, dst, 256);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_data(&recv_cq, PRM_CQE_FORMAT_NO_INLINE, GRH_BYTES + 20);
    same(src, dst + GRH_BYTES, 20);
}
END_TEST

/* Exactly the bytes of the data are written. */
START_TEST(the_rest_of_the_first_half_stays)
{
    connect_as(PRM_QP_ST_RC, 64, 0, 128, PRM_CS_RES_UP_TO_64B);
    memset(cq_slot(&recv_cq, 0), NEVER, 64);
    send_one(lab_mem(left, 64, 1), 10, untouched(right, 256));
    expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_64, 10);
    for (unsigned i = 10; i < 64; i++) {
        ck_assert_uint_eq(cq_slot(&recv_cq, 0)[i], NEVER);
    }
}
END_TEST

/* Whatever the device does at the moment: software that sees the CQE sees its data. */
static void look_at_the_first(void *data, enum fake_call call)
{
    if (PRM_GET(cqe64, (const void *)cq_cqe64(&recv_cq, 0), opcode) != PRM_CQE_OPCODE_INVALID) {
        ck_assert_mem_eq(cq_slot(&recv_cq, 0), data, 60);
    }
}

START_TEST(data_is_there_before_its_cqe)
{
    uint64_t src = lab_mem(left, 64, 1);

    connect_as(PRM_QP_ST_RC, 64, 0, 128, PRM_CS_RES_UP_TO_64B);
    right->host.no_map = _i;
    right->host.hook = look_at_the_first;
    right->host.hook_opaque = lab_ptr(left, src, 60);
    send_one(src, 60, untouched(right, 256));
    right->host.hook = NULL;
    expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_64, 60);
}
END_TEST

START_TEST(fields_beside_the_data_are_what_they_are)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 32);
    const void *cqe;

    connect_as(PRM_QP_ST_RC, 64, 0, 64, PRM_CS_RES_UP_TO_32B);
    wr.opcode = PRM_WQE_OPCODE_SEND_IMM;
    wr.imm = 0x11223344;
    lab_post_recv(&b, untouched(right, 256), 256);
    lab_post(&a, &wr);
    lab_run(lab);
    cqe = expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_32, 32);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, immediate), 0x11223344);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), b.qp->obj.num);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND_IMM);
}
END_TEST

/* The data of a WRITE has its own place, independent of the receive WQE. */
START_TEST(a_write_with_immediate_has_no_data_in_its_cqe)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE_IMM, src, 16, dst);

    connect_as(PRM_QP_ST_RC, 64, 0, 64, PRM_CS_RES_UP_TO_32B);
    lab_post_recv(&b, untouched(right, 256), 256);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_data(&recv_cq, PRM_CQE_FORMAT_NO_INLINE, 16);
    same(src, dst, 16);
}
END_TEST

START_TEST(a_message_must_fit_its_wqe)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 20);
    const void *cqe;

    connect_as(PRM_QP_ST_RC, 64, 0, 128, PRM_CS_RES_UP_TO_64B);
    memset(cq_slot(&recv_cq, 0), NEVER, 64);
    lab_post_recv(&b, untouched(right, 256), 19);
    lab_post(&a, &wr);
    lab_run(lab);
    cqe = cq_next(&recv_cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, opcode), PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, format), PRM_CQE_FORMAT_NO_INLINE);
    ck_assert_uint_eq(cq_slot(&recv_cq, 0)[0], NEVER);
}
END_TEST

/* The device does not check the buffers' keys. */
START_TEST(the_keys_of_the_buffers_do_not_matter)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 20);
    struct prm_wqe_data_seg *seg;

    connect_as(PRM_QP_ST_RC, 64, 0, 64, PRM_CS_RES_UP_TO_32B);
    lab_post_recv(&b, untouched(right, 256), 256);
    seg = lab_ptr(right, b.rq_ring, PRM_SIZE(wqe_data_seg));
    PRM_SET(wqe_data_seg, seg, lkey, right->key ^ 0xff);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_32, 20);
}
END_TEST

/* Data and CQEs are unchanged, because software has not polled them. */
START_TEST(a_full_cq_takes_no_data)
{
    const size_t size = receives[_i].cqe;
    uint8_t before[128 << LOG];

    connect_as(PRM_QP_ST_RC, 64, 0, size, receives[_i].cs_res);
    for (unsigned i = 0; i <= 1u << LOG; i++) {
        struct lab_wr wr = send_wr(lab_mem(left, 64, 1 + i), 30);

        if (i == 1u << LOG) {
            memcpy(before, cq_slot(&recv_cq, 0), size << LOG);
        }
        lab_post_recv(&b, untouched(right, 256), 256);
        lab_post(&a, &wr);
        lab_run(lab);
        cq_next(&send_cq);
        cq_consume(&send_cq);
    }
    ck_assert_mem_eq(before, cq_slot(&recv_cq, 0), size << LOG);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(right->hca.cq_overruns, 1);
}
END_TEST

/* CQEs that were not polled before a CQ is resized are still in its old ring; the next is in the
 * new ring (driver: copy_resize_cqes()). */
START_TEST(a_resized_cq_takes_data)
{
    uint64_t old_ring, ring = fake_host_alloc(&right->host, 128 << (LOG + 1), 4096);
    struct mem_buf buf = lab_buf(ring, 128 << (LOG + 1));
    uint64_t first = lab_mem(left, 64, 1), second = lab_mem(left, 64, 2);
    struct prm_cqc cqc[1] = {0};

    connect_as(PRM_QP_ST_RC, 64, 0, 128, PRM_CS_RES_UP_TO_64B);
    old_ring = recv_cq.ring;
    send_one(first, 60, untouched(right, 256));
    PRM_SET(cqc, cqc, log_cq_size, LOG + 1);
    PRM_SET(cqc, cqc, cqe_sz, PRM_CQE_SZ_64_BYTES);
    ck_assert_int_eq(cq_modify(&right->hca, 0, recv_cq.cqn, PRM_CQ_RESIZE_LOG_CQ_SIZE, cqc, &buf),
                     SYN_CQ_SIZE);
    PRM_SET(cqc, cqc, cqe_sz, PRM_CQE_SZ_128_BYTES);
    ck_assert_int_eq(cq_modify(&right->hca, 0, recv_cq.cqn, PRM_CQ_RESIZE_LOG_CQ_SIZE, cqc, &buf),
                     SYN_OK);
    send_one(second, 40, untouched(right, 256));
    ck_assert_mem_eq(lab_ptr(right, old_ring, 60), lab_ptr(left, first, 60), 60);
    /* index 0 was in the old ring, and index 1 announced the new ring */
    ck_assert_mem_eq(lab_ptr(right, ring + 2 * 128, 40), lab_ptr(left, second, 40), 40);
    ck_assert_uint_eq(PRM_GET(cqe64, lab_ptr(right, ring + 2 * 128 + 64, 64), format),
                      PRM_CQE_FORMAT_INLINE_64);
}
END_TEST

/* -- results of READs and atomics -------------------------------------------------------------- */

static const struct {
    size_t cqe;
    uint8_t cs_req;
    uint32_t room;
} requests[] = {
    {64, PRM_CS_REQ_DISABLE, 0},    {128, PRM_CS_REQ_DISABLE, 0},
    {64, PRM_CS_REQ_UP_TO_32B, 32}, {128, PRM_CS_REQ_UP_TO_32B, 32},
    {64, PRM_CS_REQ_UP_TO_64B, 32}, {128, PRM_CS_REQ_UP_TO_64B, 64},
};

static unsigned request_format(int i, uint32_t len)
{
    return !len || len > requests[i].room ? PRM_CQE_FORMAT_NO_INLINE
           : requests[i].room == 64       ? PRM_CQE_FORMAT_INLINE_64
                                          : PRM_CQE_FORMAT_INLINE_32;
}

START_TEST(reads_and_their_cqes)
{
    connect_as(PRM_QP_ST_RC, requests[_i].cqe, requests[_i].cs_req, 64, 0);
    for (size_t i = 0; i < 3 * G_N_ELEMENTS(lens); i++) {
        uint32_t len = lens[i % G_N_ELEMENTS(lens)];
        uint64_t src = lab_mem(right, 256, 1 + i), dst = untouched(left, 256);
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, len, src);
        unsigned format = request_format(_i, len);
        const uint8_t *data;

        lab_post(&a, &wr);
        lab_run(lab);
        data = expect_data(&send_cq, format, len);
        if (format == PRM_CQE_FORMAT_NO_INLINE) {
            same(dst, src, len);
        } else {
            ck_assert_mem_eq(data, lab_ptr(right, src, len), len);
            expect_untouched(left, dst, 256);
        }
    }
}
END_TEST

/* In a CQE a number is as in packets, whatever byte order the driver has requested. */
START_TEST(atomics_and_their_cqes)
{
    uint64_t word = lab_mem(right, 8, 0), old = untouched(left, 8);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, old, 8, word);
    unsigned format = request_format(_i, 8);
    uint64_t found;

    connect_as(PRM_QP_ST_RC, requests[_i].cqe, requests[_i].cs_req, 64, 0);
    wr.swap_add = 5;
    for (uint64_t i = 0; i < 20; i++) {
        const void *data;

        left->hca.big_endian_replies = i >= 10;
        lab_post(&a, &wr);
        lab_run(lab);
        data = expect_data(&send_cq, format, 8);
        memcpy(&found, format == PRM_CQE_FORMAT_NO_INLINE ? lab_ptr(left, old, 8) : data, 8);
        ck_assert_uint_eq(
            format != PRM_CQE_FORMAT_NO_INLINE || i >= 10 ? GUINT64_FROM_BE(found) : found, 5 * i);
    }
    if (format != PRM_CQE_FORMAT_NO_INLINE) {
        expect_untouched(left, old, 8);
    }
}
END_TEST

/* rdma-core's library does not take data of masked atomics from a CQE. */
START_TEST(extended_atomics_have_no_data_in_their_cqes)
{
    uint64_t word = lab_mem(right, 8, 0), old = untouched(left, 8), found;
    uint8_t operands[16] = {[7] = 3};
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_MASKED_FA, old, 8, word);

    connect_as(PRM_QP_ST_RC, 128, PRM_CS_REQ_UP_TO_64B, 64, 0);
    wr.opmod = 8 | 1;
    wr.operands = operands;
    wr.operands_len = sizeof(operands);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_data(&send_cq, PRM_CQE_FORMAT_NO_INLINE, 8);
    memcpy(&found, lab_ptr(left, old, 8), 8);
    ck_assert_uint_eq(found, 0);
}
END_TEST

/* Without a CQE the data cannot be in it. */
START_TEST(unsignalled_reads_write_to_memory)
{
    uint64_t src = lab_mem(right, 64, 1), dst = untouched(left, 64);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 16, src);

    connect_as(PRM_QP_ST_RC, 64, PRM_CS_REQ_UP_TO_32B, 64, 0);
    wr.unsignaled = true;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_ptr_null(cq_next(&send_cq));
    same(dst, src, 16);
}
END_TEST

/* Each READ's data is in its own CQE, however many come at once and with whatever other
 * requests. */
START_TEST(many_reads_have_their_own)
{
    uint64_t src = lab_mem(right, 256, 9), dst = untouched(left, 256), out = lab_mem(right, 256, 0);

    connect_as(PRM_QP_ST_RC, 64, PRM_CS_REQ_UP_TO_32B, 64, 0);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 20, src + i * 20);

            lab_post(&a, &wr);
            write_from(dst, 16, out);
        }
        lab_run(lab);
        for (unsigned i = 0; i < 4; i++) {
            const uint8_t *data = expect_data(&send_cq, PRM_CQE_FORMAT_INLINE_32, 20);

            ck_assert_mem_eq(data, lab_ptr(right, src + i * 20, 20), 20);
            expect_data(&send_cq, PRM_CQE_FORMAT_NO_INLINE, 0);
        }
    }
    expect_untouched(left, dst, 256);
}
END_TEST

/* A repeated READ delivers its data once. */
START_TEST(a_lost_response_comes_again)
{
    uint64_t src = lab_mem(right, 64, 1), dst = untouched(left, 64);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 16, src);

    connect_as(PRM_QP_ST_RC, 64, PRM_CS_REQ_UP_TO_32B, 64, 0);
    lose_psn(1, 0, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_ptr_null(cq_next(&send_cq));
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    ck_assert_mem_eq(expect_data(&send_cq, PRM_CQE_FORMAT_INLINE_32, 16), lab_ptr(right, src, 16),
                     16);
    ck_assert_ptr_null(cq_next(&send_cq));
}
END_TEST

START_TEST(a_full_cq_takes_nothing_that_was_read)
{
    const size_t size = requests[_i].cqe;
    uint64_t dst = untouched(left, 64);
    uint8_t before[128 << LOG];

    connect_as(PRM_QP_ST_RC, size, requests[_i].cs_req, 64, 0);
    for (unsigned i = 0; i <= 1u << LOG; i++) {
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 30, lab_mem(right, 64, 1 + i));

        if (i == 1u << LOG) {
            memcpy(before, cq_slot(&send_cq, 0), size << LOG);
        }
        lab_post(&a, &wr);
        lab_run(lab);
    }
    ck_assert_mem_eq(before, cq_slot(&send_cq, 0), size << LOG);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

/* -- shared receive queues, dynamic connections ------------------------------------------------ */

static enum syn make_target(size_t size, uint8_t cs_res, struct lab_dct *dct)
{
    struct prm_dctc dctc[1];

    cq_make(&recv_cq, right, size);
    lab_dctc(right, dctc);
    PRM_SET(dctc, dctc, cqn, recv_cq.cqn);
    PRM_SET(dctc, dctc, cs_res, cs_res);
    return lab_dct_create(right, dctc, dct);
}

static void send_to(struct lab_qp *dci, const struct lab_dct *dct, uint64_t src, uint32_t len)
{
    struct lab_wr wr = send_wr(src, len);

    lab_post(dci, lab_to(&wr, dct));
    lab_run(lab);
}

START_TEST(a_target_has_64_bytes_or_none)
{
    uint64_t src = lab_mem(left, 64, 1), dst = untouched(right, 64);
    struct lab_dct dct;
    struct lab_qp dci;

    lab_dct_new(right, &dct); /* its SRQ */
    lab_dci_new(left, &lab_dci, NULL, &dci);
    ck_assert_int_eq(make_target(128, PRM_CS_RES_UP_TO_64B, &dct), SYN_OK);
    lab_dct_post_recv(&dct, dst, 64);
    send_to(&dci, &dct, src, 64);
    ck_assert_mem_eq(expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_64, 64), lab_ptr(left, src, 64),
                     64);
    expect_untouched(right, dst, 64);
    ck_assert_int_eq(make_target(64, PRM_CS_RES_UP_TO_64B, &dct), SYN_OK);
    lab_dct_post_recv(&dct, dst, 64);
    send_to(&dci, &dct, src, 20);
    expect_data(&recv_cq, PRM_CQE_FORMAT_NO_INLINE, 20);
    same(src, dst, 20);
}
END_TEST

/* UCX's DCTC_CS_RES_NA. */
START_TEST(a_target_of_32_bytes_is_refused)
{
    struct lab_dct dct;

    lab_dct_new(right, &dct);
    ck_assert_int_eq(make_target(128, PRM_CS_RES_UP_TO_32B, &dct), SYN_DCT_CS_RES);
    ck_assert_int_eq(make_target(128, 3, &dct), SYN_DCT_CS_RES);
}
END_TEST

START_TEST(an_initiator_reads_into_its_cqes)
{
    uint64_t src = lab_mem(right, 64, 1), dst = untouched(left, 64), old = untouched(left, 8);
    struct lab_qp_attr attr = lab_dci;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 30, src);
    struct lab_dct dct;
    struct lab_qp dci;

    lab_dct_new(right, &dct);
    cq_make(&send_cq, left, 64);
    attr.cqn = send_cq.cqn;
    attr.cs_req = PRM_CS_REQ_UP_TO_32B;
    lab_dci_new(left, &attr, NULL, &dci);
    lab_post(&dci, lab_to(&wr, &dct));
    wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, old, 8, lab_mem(right, 8, 0));
    lab_post(&dci, lab_to(&wr, &dct));
    lab_run(lab);
    ck_assert_mem_eq(expect_data(&send_cq, PRM_CQE_FORMAT_INLINE_32, 30), lab_ptr(right, src, 30),
                     30);
    expect_data(&send_cq, PRM_CQE_FORMAT_INLINE_32, 8);
    expect_untouched(left, dst, 64);
    expect_untouched(left, old, 8);
}
END_TEST

static void expect_failed(struct cq_of *cq, uint8_t syndrome)
{
    const void *cqe = cq_next(cq);

    ck_assert_ptr_nonnull(cqe);
    cq_consume(cq);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, opcode), PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, format), PRM_CQE_FORMAT_NO_INLINE);
}

/* The first READ cannot be written here, which ends its stream. The second READ's data is written
 * nowhere, also not into the CQE of a waiting request. */
START_TEST(data_that_a_failed_stream_reads_is_in_no_cqe)
{
    uint64_t src = lab_mem(right, 5000, 1), dst = untouched(left, 64);
    struct lab_qp_attr attr = {.st = PRM_QP_ST_DCI,
                               .log_sq = 7,
                               .no_rq = true,
                               .log_streams = 3,
                               .log_errored = 2,
                               .cs_req = PRM_CS_REQ_UP_TO_32B};
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 5000, src);
    struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_NOP, .stream = 2};
    struct lab_dct dct;
    struct lab_qp dci;

    lab_dct_new(right, &dct);
    cq_make(&send_cq, left, 64);
    attr.cqn = send_cq.cqn;
    lab_dci_new(left, &attr, NULL, &dci);
    wr.stream = 1;
    wr.sge[0].key = left->key ^ 0x100;
    lab_post(&dci, lab_to(&wr, &dct));
    wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 20, src);
    wr.stream = 1;
    lab_post(&dci, lab_to(&wr, &dct));
    lab_post(&dci, &nop);
    lab_run(lab);
    expect_failed(&send_cq, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_failed(&send_cq, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_data(&send_cq, PRM_CQE_FORMAT_NO_INLINE, 0);
    expect_untouched(left, dst, 64);
}
END_TEST

START_TEST(messages_to_a_shared_queue)
{
    struct lab_qp_attr attr = lab_rc;
    uint64_t src = lab_mem(left, 64, 1), dst = untouched(right, 64);
    struct lab_wr wr = send_wr(src, 20);
    struct lab_dct dct;

    lab_dct_new(right, &dct); /* its SRQ */
    cq_make(&recv_cq, right, 64);
    lab_qp_new(left, &attr, &a);
    attr.cqn = recv_cq.cqn;
    attr.srqn = dct.srq->obj.num;
    attr.cs_res = PRM_CS_RES_UP_TO_32B;
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    lab_dct_post_recv(&dct, dst, 64);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_mem_eq(expect_data(&recv_cq, PRM_CQE_FORMAT_INLINE_32, 20), lab_ptr(left, src, 20),
                     20);
    expect_untouched(right, dst, 64);
}
END_TEST

/* -- requests that are refused ----------------------------------------------------------------- */

static enum syn try_qp(uint8_t cs_req, uint8_t cs_res)
{
    struct prm_qpc qpc[1] = {0};
    struct mem_buf buf = {0};
    uint32_t qpn;

    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    PRM_SET(qpc, qpc, no_sq, 1);
    PRM_SET(qpc, qpc, pd, left->pdn);
    PRM_SET(qpc, qpc, cs_req, cs_req);
    PRM_SET(qpc, qpc, cs_res, cs_res);
    return qp_create(&left->hca, 0, qpc, &buf, 0, &qpn);
}

START_TEST(other_sizes_are_refused)
{
    ck_assert_int_eq(try_qp(0, 0), SYN_OK);
    ck_assert_int_eq(try_qp(PRM_CS_REQ_UP_TO_64B, PRM_CS_RES_UP_TO_64B), SYN_OK);
    ck_assert_int_eq(try_qp(0x12, 0), SYN_QP_FEATURE);
    ck_assert_int_eq(try_qp(0x33, 0), SYN_QP_FEATURE);
    ck_assert_int_eq(try_qp(0, 3), SYN_QP_FEATURE);
    ck_assert_int_eq(try_qp(0, 0x11), SYN_QP_FEATURE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("data in CQEs");
    TCase *tc = tcase_create("data in CQEs");

    tcase_add_checked_fixture(tc, setup_bare, teardown);
    tcase_add_loop_test(tc, a_cqe_takes_what_it_has_room_for, 0, G_N_ELEMENTS(receives));
    tcase_add_loop_test(tc, a_cqe_takes_data_of_unreliable_connections, 0, G_N_ELEMENTS(receives));
    tcase_add_test(tc, datagrams_are_in_memory);
    tcase_add_test(tc, the_rest_of_the_first_half_stays);
    tcase_add_loop_test(tc, data_is_there_before_its_cqe, 0, 2);
    tcase_add_test(tc, fields_beside_the_data_are_what_they_are);
    tcase_add_test(tc, a_write_with_immediate_has_no_data_in_its_cqe);
    tcase_add_test(tc, a_message_must_fit_its_wqe);
    tcase_add_test(tc, the_keys_of_the_buffers_do_not_matter);
    tcase_add_loop_test(tc, a_full_cq_takes_no_data, 2, G_N_ELEMENTS(receives));
    tcase_add_test(tc, a_resized_cq_takes_data);
    tcase_add_loop_test(tc, reads_and_their_cqes, 0, G_N_ELEMENTS(requests));
    tcase_add_loop_test(tc, atomics_and_their_cqes, 0, G_N_ELEMENTS(requests));
    tcase_add_test(tc, extended_atomics_have_no_data_in_their_cqes);
    tcase_add_test(tc, unsignalled_reads_write_to_memory);
    tcase_add_test(tc, many_reads_have_their_own);
    tcase_add_test(tc, a_lost_response_comes_again);
    tcase_add_loop_test(tc, a_full_cq_takes_nothing_that_was_read, 2, G_N_ELEMENTS(requests));
    tcase_add_test(tc, a_target_has_64_bytes_or_none);
    tcase_add_test(tc, a_target_of_32_bytes_is_refused);
    tcase_add_test(tc, an_initiator_reads_into_its_cqes);
    tcase_add_test(tc, data_that_a_failed_stream_reads_is_in_no_cqe);
    tcase_add_test(tc, messages_to_a_shared_queue);
    tcase_add_test(tc, other_sizes_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
