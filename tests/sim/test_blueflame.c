/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests BlueFlame: a WQE that was written to the doorbell register itself is taken from the
 * register.
 *
 * The driver finds out whether this works by NOPs whose copy in the ring requests no completion
 * while the copy in the register does (mlx5_core wc.c). These tests do the same.
 */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define NOP_DS  1
#define BF_SIZE 256

static struct two_hcas *t;
static struct qp_pair rc;
static unsigned posted;

static void setup(void)
{
    t = two_hcas_new(NULL);
    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    posted = 0;
}

static void teardown(void)
{
    ck_assert_uint_eq(t->a.hca->log_guest_errors, 0);
    two_hcas_free(t);
}

/* Puts a NOP without a completion into the ring, and a copy that requests a CQE into image. */
static void put_nop(uint8_t image[64])
{
    uint8_t *sq = (uint8_t *)rc.a->ring.ptr + rc.a->sq_offset;
    struct prm_wqe_ctrl_seg *slot = (void *)(sq + (size_t)posted * 64), *copy = (void *)image;

    memset(slot, 0, 64);
    PRM_SET(wqe_ctrl_seg, slot, wqe_index, posted);
    PRM_SET(wqe_ctrl_seg, slot, opcode, PRM_WQE_OPCODE_NOP);
    PRM_SET(wqe_ctrl_seg, slot, qpn, rc.a->qpn);
    PRM_SET(wqe_ctrl_seg, slot, ds, NOP_DS);
    memcpy(image, slot, 64);
    PRM_SET(wqe_ctrl_seg, copy, ce, PRM_WQE_CE_ALWAYS);
    posted++;
    rc.a->dbr[1] = GUINT32_TO_BE(posted);
}

/* Stores the bytes of image from first to last - 1 into the register, 8 at a time. */
static void store(const uint8_t *image, unsigned first, unsigned last)
{
    struct drv *drv = t->a.drv;
    uint64_t reg = (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame);

    for (unsigned at = first; at < last; at += 8) {
        drv->dev.ops->mmio_write(drv->dev.pci, reg + at, prm_load64(image + at), 8);
    }
}

START_TEST(a_wqe_in_the_register_is_executed_from_there)
{
    uint8_t image[64];
    struct drv_wc wc;

    put_nop(image);
    store(image, 0, 64);
    wc = expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(wc.wqe_counter, 0);
}
END_TEST

START_TEST(a_doorbell_alone_takes_the_wqe_from_the_ring)
{
    uint8_t image[64];

    put_nop(image);
    store(image, 0, 8);
    expect_no_wc(t, &t->a);
}
END_TEST

START_TEST(what_comes_after_the_wqe_was_executed_is_ignored)
{
    uint8_t image[64];

    put_nop(image);
    store(image, 0, 8);
    inproc_settle(t->world);
    store(image, 8, 64);
    expect_no_wc(t, &t->a);
}
END_TEST

START_TEST(a_gap_makes_the_register_worthless)
{
    uint8_t image[64];

    put_nop(image);
    store(image, 0, 16);
    store(image, 24, 64);
    expect_no_wc(t, &t->a);
}
END_TEST

START_TEST(the_ring_counts_again_for_the_next_wqe)
{
    uint8_t image[64];

    put_nop(image);
    store(image, 0, 64);
    put_nop(image);
    store(image, 0, 8);
    /* The first WQE was replaced before it was executed; neither came from the register. */
    expect_no_wc(t, &t->a);
}
END_TEST

START_TEST(a_wqe_longer_than_what_was_written_comes_from_the_ring)
{
    uint8_t image[64];
    struct prm_wqe_ctrl_seg *ctrl = (void *)image;

    put_nop(image);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, 5);
    store(image, 0, 64);
    expect_no_wc(t, &t->a);
}
END_TEST

START_TEST(an_inline_wqe_of_several_chunks_is_executed_from_the_register)
{
    struct buf *dst = node_buf(&t->b, 100, DRV_LOCAL_WRITE | DRV_REMOTE_WRITE, 0);
    uint8_t payload[100], image[BF_SIZE];
    uint8_t *slot = (uint8_t *)rc.a->ring.ptr + rc.a->sq_offset;
    struct drv_sge sge = {.va = (uintptr_t)payload, .len = sizeof(payload)};
    struct drv_send send = {
        .opcode = PRM_WQE_OPCODE_RDMA_WRITE,
        .flags = DRV_INLINE | DRV_SIGNALED | DRV_NO_DOORBELL,
        .sge = &sge,
        .num_sge = 1,
        .raddr = dst->va,
        .rkey = dst->mr.key,
    };

    memset(payload, 0x5a, sizeof(payload));
    drv_post_send(rc.a, &send);
    memcpy(image, slot, sizeof(image));
    memset(slot + 64, 0, 128); /* the payload's second part is only in the ring */
    store(image, 0, 192);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert(memcmp(dst->ptr, payload, sizeof(payload)) == 0);
}
END_TEST

START_TEST(any_stores_are_survived)
{
    struct drv *drv = t->a.drv;
    uint64_t page = (uint64_t)drv->uarn * PCI_PAGE;
    static const unsigned sizes[] = {1, 2, 4, 8};
    GRand *rnd = g_rand_new_with_seed(1);
    uint8_t image[64];

    put_nop(image);
    for (int i = 0; i < 20000; i++) {
        unsigned size = sizes[g_rand_int_range(rnd, 0, 4)];
        unsigned at = 0x800 + (unsigned)g_rand_int_range(rnd, 0, 0x800) / size * size;
        uint64_t value =
            g_rand_int_range(rnd, 0, 3) ? prm_load64(image) : (uint64_t)g_rand_int(rnd) << 32;

        drv->dev.ops->mmio_write(drv->dev.pci, page + at, value, size);
        if (i % 64 == 0) {
            inproc_settle(t->world);
        }
    }
    g_rand_free(rnd);
    t->a.hca->log_guest_errors = 0;
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("blueflame");
    TCase *tc = tcase_create("blueflame");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_wqe_in_the_register_is_executed_from_there);
    tcase_add_test(tc, a_doorbell_alone_takes_the_wqe_from_the_ring);
    tcase_add_test(tc, what_comes_after_the_wqe_was_executed_is_ignored);
    tcase_add_test(tc, a_gap_makes_the_register_worthless);
    tcase_add_test(tc, the_ring_counts_again_for_the_next_wqe);
    tcase_add_test(tc, a_wqe_longer_than_what_was_written_comes_from_the_ring);
    tcase_add_test(tc, an_inline_wqe_of_several_chunks_is_executed_from_the_register);
    tcase_add_test(tc, any_stores_are_survived);
    suite_add_tcase(suite, tc);
    return suite;
}
