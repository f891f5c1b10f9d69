/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a guest that posts one WQE with one error. Each WQE is correct at first; a test changes it
 * in the ring and rings the doorbell. The completion reports the error (IBTA 10.8.5, 11.6.2; PRM,
 * completion with error), the QP is in ERR, and another QP works.
 */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define LEN 64 /* bytes of the usual message */

static struct two_hcas *t;
static struct qp_pair pair;
static struct buf *src, *dst, *other_pd, *read_only;
static uint32_t pdn;

static void setup(void)
{
    uint32_t own;

    t = two_hcas_new(NULL);
    pair = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    src = node_buf(&t->a, 8192, DRV_ALL, 1);
    read_only = node_buf(&t->a, 8192, 0, 1);
    dst = node_buf(&t->b, 8192, DRV_ALL, 0);
    own = t->a.drv->pdn;
    ck_assert_int_eq(drv_alloc_pd(t->a.drv, &pdn), 0);
    t->a.drv->pdn = pdn;
    other_pd = node_buf(&t->a, 8192, DRV_ALL, 1);
    t->a.drv->pdn = own;
}

static void teardown(void)
{
    ping(t);
    ck_assert_uint_eq(t->a.hca->log_errors + t->b.hca->log_errors, 0);
    node_revive(&t->a); /* also destroys the PD of other_pd */
    two_hcas_free(t);
}

/* Writes a correct WQE of that opcode at the start of the ring, without ringing its doorbell. */
static struct prm_wqe_ctrl_seg *write_wqe(uint8_t opcode)
{
    bool atomic = opcode == PRM_WQE_OPCODE_ATOMIC_FA || opcode == PRM_WQE_OPCODE_ATOMIC_CS;
    struct drv_sge sge = buf_sge(src, 0, atomic ? 8 : LEN);
    struct drv_send send = {.opcode = opcode,
                            .flags = DRV_SIGNALED | DRV_NO_DOORBELL,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = dst->va,
                            .rkey = dst->mr.key};

    drv_post_send(pair.a, &send);
    return (void *)((uint8_t *)pair.a->ring.ptr + pair.a->sq_offset);
}

static void ring(void)
{
    const uint8_t *wqe = (uint8_t *)pair.a->ring.ptr + pair.a->sq_offset;

    drv_ring_doorbell(pair.a, (uint32_t)prm_load32(wqe), (uint32_t)prm_load32(wqe + 4));
}

/* Returns the segments behind control and remote address: data of a WRITE or READ. */
static struct prm_wqe_data_seg *data_of(struct prm_wqe_ctrl_seg *wqe)
{
    return (void *)(wqe + 2);
}

static struct prm_wqe_raddr_seg *raddr_of(struct prm_wqe_ctrl_seg *wqe)
{
    return (void *)(wqe + 1);
}

/* -- errors in it ------------------------------------------------------------------------------ */

static void bad_opcode(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_ctrl_seg, wqe, opcode, 0x7f);
}

static void opcode_of_another_service(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_TSO);
}

static void no_segments(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_ctrl_seg, wqe, ds, 0);
}

static void control_segment_only(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_ctrl_seg, wqe, ds, 1);
}

static void longer_than_what_was_posted(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_ctrl_seg, wqe, ds, 63);
}

static void key_of_nothing(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), lkey, 0xabcdef00);
}

static void key_with_another_variant(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), lkey, src->mr.key ^ 1);
}

static void key_of_another_pd(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), lkey, other_pd->mr.key);
    PRM_SET(wqe_data_seg, data_of(wqe), addr, other_pd->va);
}

static void beyond_the_region(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), addr, src->va + src->len - LEN + 1);
}

static void before_the_region(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), addr, src->va - 1);
}

static void around_the_end_of_addresses(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), addr, UINT64_MAX - 3);
}

static void no_local_write(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe), lkey, read_only->mr.key);
    PRM_SET(wqe_data_seg, data_of(wqe), addr, read_only->va);
}

static void inline_beyond_the_wqe(struct prm_wqe_ctrl_seg *wqe)
{
    prm_store32(data_of(wqe), 1u << 31 | 500);
}

static void inline_read(struct prm_wqe_ctrl_seg *wqe)
{
    prm_store32(data_of(wqe), 1u << 31 | 8);
}

static void two_gigabytes_and_one(struct prm_wqe_ctrl_seg *wqe)
{
    struct prm_wqe_data_seg *data = data_of(wqe);

    /* 0 means 2^31; one byte more is too many (C9-94) */
    PRM_SET(wqe_data_seg, data, byte_count, 0);
    PRM_SET(wqe_data_seg, &data[1], byte_count, 1);
    PRM_SET(wqe_data_seg, &data[1], lkey, src->mr.key);
    PRM_SET(wqe_data_seg, &data[1], addr, src->va);
    PRM_SET(wqe_ctrl_seg, wqe, ds, 4);
}

static void atomic_of_four_bytes(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_data_seg, data_of(wqe) + 1, byte_count, 4);
}

static void remote_key_of_nothing(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_raddr_seg, raddr_of(wqe), rkey, 0xabcdef00);
}

static void remote_beyond_the_region(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_raddr_seg, raddr_of(wqe), raddr, dst->va + dst->len - 7);
}

static void remote_misaligned(struct prm_wqe_ctrl_seg *wqe)
{
    PRM_SET(wqe_raddr_seg, raddr_of(wqe), raddr, dst->va + 4);
}

static const struct wrong {
    const char *what;
    uint8_t opcode;
    void (*spoil)(struct prm_wqe_ctrl_seg *wqe);
    uint8_t syndrome;
} wrongs[] = {
#define QP_OP   PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define LENGTH  PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR
#define PROT    PRM_CQE_SYNDROME_LOCAL_PROT_ERR
#define ACCESS  PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR
#define INVALID PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
    {"opcode", PRM_WQE_OPCODE_RDMA_WRITE, bad_opcode, QP_OP},
    {"service", PRM_WQE_OPCODE_RDMA_WRITE, opcode_of_another_service, QP_OP},
    {"ds 0", PRM_WQE_OPCODE_RDMA_WRITE, no_segments, QP_OP},
    {"ds 1", PRM_WQE_OPCODE_RDMA_WRITE, control_segment_only, QP_OP},
    {"ds 63", PRM_WQE_OPCODE_RDMA_WRITE, longer_than_what_was_posted, QP_OP},
    {"lkey", PRM_WQE_OPCODE_RDMA_WRITE, key_of_nothing, PROT},
    {"variant", PRM_WQE_OPCODE_RDMA_WRITE, key_with_another_variant, PROT},
    {"PD", PRM_WQE_OPCODE_RDMA_WRITE, key_of_another_pd, PROT},
    {"end", PRM_WQE_OPCODE_RDMA_WRITE, beyond_the_region, PROT},
    {"start", PRM_WQE_OPCODE_RDMA_WRITE, before_the_region, PROT},
    {"wrap", PRM_WQE_OPCODE_RDMA_WRITE, around_the_end_of_addresses, PROT},
    {"local write", PRM_WQE_OPCODE_RDMA_READ, no_local_write, PROT},
    {"inline", PRM_WQE_OPCODE_RDMA_WRITE, inline_beyond_the_wqe, QP_OP},
    {"inline READ", PRM_WQE_OPCODE_RDMA_READ, inline_read, QP_OP},
    {"2^31 + 1", PRM_WQE_OPCODE_RDMA_WRITE, two_gigabytes_and_one, LENGTH},
    {"atomic of 4", PRM_WQE_OPCODE_ATOMIC_FA, atomic_of_four_bytes, LENGTH},
    {"rkey, WRITE", PRM_WQE_OPCODE_RDMA_WRITE, remote_key_of_nothing, ACCESS},
    {"rkey, READ", PRM_WQE_OPCODE_RDMA_READ, remote_key_of_nothing, ACCESS},
    {"rkey, atomic", PRM_WQE_OPCODE_ATOMIC_FA, remote_key_of_nothing, ACCESS},
    {"remote end", PRM_WQE_OPCODE_RDMA_WRITE, remote_beyond_the_region, ACCESS},
    {"misaligned", PRM_WQE_OPCODE_ATOMIC_CS, remote_misaligned, INVALID},
};

START_TEST(wrong_wqe)
{
    const struct wrong *w = &wrongs[_i];
    struct prm_wqe_ctrl_seg *wqe = write_wqe(w->opcode);
    struct drv_wc wc;

    w->spoil(wqe);
    ring();
    wc = expect_wc(&t->a, pair.a, PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_msg(wc.syndrome == w->syndrome, "%s: syndrome 0x%x, not 0x%x", w->what, wc.syndrome,
                  w->syndrome);
    ck_assert_uint_eq(wc.wqe_counter, 0);
    ck_assert_uint_eq(qp_state(pair.a), PRM_QP_STATE_ERR);
    for (size_t i = 0; i < dst->len; i++) {
        ck_assert_uint_eq(dst->ptr[i], 0);
    }
}
END_TEST

/* The doorbell counts more WQEs than the ring has: there is none that a completion could name. */
START_TEST(doorbell_beyond_the_ring)
{
    write_wqe(PRM_WQE_OPCODE_RDMA_WRITE);
    pair.a->dbr[1] = GUINT32_TO_BE((1u << LOG_SQ) + 1 + (unsigned)_i * 1000);
    ring();
    expect_event(&t->a, PRM_EVENT_TYPE_WQ_CATAS_ERROR, pair.a->qpn);
    ck_assert_uint_eq(qp_state(pair.a), PRM_QP_STATE_ERR);
    expect_no_wc(t, &t->a);
}
END_TEST

/* A doorbell that names no QP, or a QP of another kind, has no effect. The next doorbell counts. */
START_TEST(doorbell_of_no_queue)
{
    write_wqe(PRM_WQE_OPCODE_RDMA_WRITE);
    drv_ring_doorbell(pair.a, PRM_WQE_OPCODE_RDMA_WRITE, 0xffffff03);
    drv_ring_doorbell(pair.a, PRM_WQE_OPCODE_RDMA_WRITE, 3);
    expect_no_wc(t, &t->a);
    ring();
    expect_wc(&t->a, pair.a, PRM_CQE_OPCODE_REQ);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hostile guest, WQEs");
    TCase *tc = tcase_create("WQEs");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, wrong_wqe, 0, (int)G_N_ELEMENTS(wrongs));
    tcase_add_loop_test(tc, doorbell_beyond_the_ring, 0, 3);
    tcase_add_test(tc, doorbell_of_no_queue);
    suite_add_tcase(suite, tc);
    return suite;
}
