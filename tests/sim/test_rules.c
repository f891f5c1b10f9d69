/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests rules that a driver relies on and that no workload shows: which interrupts come, what a key
 * may contain. Each test was added for a mutant that no other test found from outside
 * (scripts/mutate).
 */
#include <check.h>
#include <string.h>
#include "tests/sim/examples.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

static struct two_hcas *t;

static void setup(void)
{
    t = two_hcas_new(NULL);
}

static void teardown(void)
{
    node_revive(&t->a); /* destroys everything that a test has made */
    two_hcas_free(t);
}

static unsigned interrupts(void)
{
    unsigned n = 0;

    inproc_settle(t->world);
    for (unsigned i = 0; i < INPROC_VECTORS; i++) {
        n += t->a.hca->irqs[i];
    }
    return n;
}

/* Posts a request that completes at once, and makes the CQ report it. */
static void complete_one(struct drv_qp *qp)
{
    struct drv_send nop = {.opcode = PRM_WQE_OPCODE_NOP, .flags = DRV_SIGNALED};
    struct drv_wc wc;

    drv_arm_cq(t->a.drv, &t->a.cq, false);
    drv_post_send(qp, &nop);
    inproc_settle(t->world);
    ck_assert(drv_poll_cq(t->a.drv, &t->a.cq, &wc)); /* does not read the event queue */
    t->a.cq.arm_sn++;                                /* as if its event had been seen */
}

/* PRM, EQ doorbell with arm: an interrupt comes for the next event, and at once if an event waits
 * already. The driver arms after its last read (mlx5_eq_update_ci()): an event that came in between
 * must not be lost. */
START_TEST(an_event_queue_that_is_armed_late_interrupts_at_once)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    unsigned before;

    drv_poll_events(t->a.drv);
    drv_arm_eqs(t->a.drv);
    before = interrupts();
    complete_one(rc.a);
    ck_assert_uint_eq(interrupts(), before + 1);
    complete_one(rc.a); /* nobody has armed it again */
    ck_assert_uint_eq(interrupts(), before + 1);
    drv_arm_eqs(t->a.drv); /* neither event was taken */
    ck_assert_uint_eq(interrupts(), before + 2);
}
END_TEST

/* CREATE_MKEY: translations_octword_size is the key's room, translations_octword_actual_size is the
 * number of entries in the command. */
START_TEST(a_key_takes_no_more_entries_than_it_has_room_for)
{
    static struct guest guest;
    uint8_t in_bytes[EXAMPLE_MAX + 256] = {0}, out[16];
    void *in = in_bytes;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    size_t len;

    guest_init(&guest, &t->a);
    len = example(&guest, PRM_CMD_OP_CREATE_MKEY, in);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 8);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, translations_octword_size), 4);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len + 64, out, sizeof(out)), PRM_CMD_STATUS_BAD_PARAM);
}
END_TEST

/* UMR: changes only a key that is named by its present value (its variant is in bits 7:0), and,
 * with check_free, only a key that is in use. */
START_TEST(a_umr_changes_the_key_that_it_names)
{
    static struct guest guest;
    struct prm_mkc mkc[1] = {0};
    uint64_t len = 1ull << PRM_MKEY_MASK_LEN, free_bit = 1ull << PRM_MKEY_MASK_FREE;

    guest_init(&guest, &t->a);
    PRM_SET(mkc, mkc, len, PCI_PAGE);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, len, mkc), 0);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key ^ 1, len, mkc), PRM_CMD_STATUS_BAD_PARAM);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, len, mkc), 0);
    PRM_SET(mkc, mkc, free, 1);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, free_bit, mkc), 0);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, len, mkc), PRM_CMD_STATUS_BAD_PARAM);
}
END_TEST

/* Posts a UMR to a QP as any other request: the key's new length is a page, and it gets that many
 * entries, which map nothing. */
static void post_umr(struct drv_qp *qp, uint32_t key, unsigned entries)
{
    struct {
        struct prm_wqe_ctrl_seg ctrl[1];
        struct prm_wqe_umr_ctrl_seg umr[1];
        struct prm_mkc mkc[1];
        struct prm_wqe_klm_seg klm[8];
    } wqe = {0};
    size_t len = offsetof(typeof(wqe), klm) + entries * PRM_SIZE(wqe_klm_seg);
    uint8_t *sq = (uint8_t *)qp->ring.ptr + qp->sq_offset;

    PRM_SET(wqe_ctrl_seg, wqe.ctrl, wqe_index, qp->sq_pi);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ds, (uint32_t)len / 16);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ce, PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, umr_mkey, key);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, xlt_octowords, entries);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, mkey_mask, 1ull << PRM_MKEY_MASK_LEN);
    PRM_SET(mkc, wqe.mkc, len, PCI_PAGE);
    memcpy(sq + qp->sq_pi * 64ul, &wqe, sizeof(wqe)); /* the ring does not wrap here */
    qp->sq_pi = (uint16_t)(qp->sq_pi + (len + 63) / 64);
    qp->dbr[1] = GUINT32_TO_BE((uint32_t)qp->sq_pi);
    drv_ring_doorbell(qp, (uint32_t)prm_load32(&wqe), (uint32_t)prm_load32(&wqe.ctrl->bytes[4]));
}

/* Makes a key of that PD, with room for four entries. */
static uint32_t new_umr_key(struct guest *guest, uint32_t pdn)
{
    struct prm_create_mkey_out out[1];
    uint8_t in_bytes[EXAMPLE_MAX];
    void *in = in_bytes;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    size_t len = example(guest, PRM_CMD_OP_CREATE_MKEY, in);

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, pd, pdn);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    return PRM_GET(create_mkey_out, out, mkey_index) << 8;
}

START_TEST(a_umr_writes_no_entries_beyond_the_keys_room)
{
    static struct guest guest;
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    uint32_t key;

    guest_init(&guest, &t->a);
    key = new_umr_key(&guest, t->a.drv->pdn);
    post_umr(rc.a, key, 4);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    post_umr(rc.a, key, 8);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR);
}
END_TEST

/* A QP may change a key of its PD, but not a key of another PD. */
START_TEST(a_umr_changes_no_key_of_another_protection_domain)
{
    static struct guest guest;
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct prm_alloc_pd_in pd_in[1] = {0};
    struct prm_alloc_pd_out pd_out[1];
    uint32_t keys[2];

    guest_init(&guest, &t->a);
    PRM_SET(alloc_pd_in, pd_in, opcode, PRM_CMD_OP_ALLOC_PD);
    ck_assert_int_eq(drv_cmd(t->a.drv, pd_in, sizeof(pd_in), pd_out, sizeof(pd_out)), 0);
    keys[0] = new_umr_key(&guest, t->a.drv->pdn);
    keys[1] = new_umr_key(&guest, PRM_GET(alloc_pd_out, pd_out, pd));
    post_umr(rc.a, keys[0], 0);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    post_umr(rc.a, keys[1], 0);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_MW_BIND_ERR);
}
END_TEST

/* IBTA volume 1, chapter 10.6.3: a key is valid for the queue pairs of its protection domain. A
 * successful use by one of them opens it to no other queue pair. */
START_TEST(a_key_in_use_is_not_another_protection_domains)
{
    struct buf *at = node_buf(&t->a, 64, DRV_ALL, 0), *from = node_buf(&t->b, 64, DRV_ALL, 1);
    struct drv_sge sge = buf_sge(from, 0, 64);
    struct drv_send write = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                             .flags = DRV_SIGNALED,
                             .sge = &sge,
                             .num_sge = 1,
                             .raddr = at->va,
                             .rkey = at->mr.key};
    struct qp_pair own = qp_pair_new(t, PRM_QP_ST_RC, NULL), other;
    uint32_t pdn = t->a.drv->pdn;

    ck_assert_int_eq(drv_alloc_pd(t->a.drv, &t->a.drv->pdn), 0);
    other = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    t->a.drv->pdn = pdn;
    drv_post_send(own.b, &write);
    expect_wc(&t->b, own.b, PRM_CQE_OPCODE_REQ);
    drv_post_send(other.b, &write);
    expect_error(&t->b, other.b, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}
END_TEST

/* IBTA 9.4.1.1.3: SEND with invalidate ends the key's rights, once the message has come. */
START_TEST(an_invalidated_key_is_free)
{
    static struct guest guest;
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct buf *at = node_buf(&t->a, 64, DRV_LOCAL_WRITE, 0);
    struct drv_sge sge = buf_sge(at, 0, 64);
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_SEND_INVAL, .flags = DRV_SIGNALED};
    struct prm_mkc mkc[1] = {0};
    uint64_t len = 1ull << PRM_MKEY_MASK_LEN, rinval = 1ull << PRM_MKEY_MASK_EN_RINVAL;

    guest_init(&guest, &t->a);
    PRM_SET(mkc, mkc, len, PCI_PAGE);
    PRM_SET(mkc, mkc, en_rinval, 1);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, len | rinval, mkc), 0);
    drv_post_recv(rc.a, &sge, 1);
    send.imm = guest.umr_key;
    drv_post_send(rc.b, &send);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_RESP_SEND_INV);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_REQ);
    ck_assert_int_eq(drv_umr(t->a.drv, guest.umr_key, len, mkc), PRM_CMD_STATUS_BAD_PARAM);
}
END_TEST

/* DRAIN_DCT: the driver waits for the event before it destroys the target
 * (mlx5_core_destroy_dct()). */
START_TEST(a_target_that_is_drained_says_so)
{
    static struct guest guest;
    struct prm_drain_dct_in in[1] = {0};
    uint8_t out[16];

    guest_init(&guest, &t->a);
    PRM_SET(drain_dct_in, in, opcode, PRM_CMD_OP_DRAIN_DCT);
    PRM_SET(drain_dct_in, in, dctn, guest.dctn);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, sizeof(in), out, sizeof(out)), 0);
    expect_event(&t->a, PRM_EVENT_TYPE_DCT_DRAINED, guest.dctn);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("rules");
    TCase *tc = tcase_create("rules");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_event_queue_that_is_armed_late_interrupts_at_once);
    tcase_add_test(tc, a_key_takes_no_more_entries_than_it_has_room_for);
    tcase_add_test(tc, a_umr_changes_the_key_that_it_names);
    tcase_add_test(tc, a_umr_changes_no_key_of_another_protection_domain);
    tcase_add_test(tc, a_key_in_use_is_not_another_protection_domains);
    tcase_add_test(tc, an_invalidated_key_is_free);
    tcase_add_test(tc, a_umr_writes_no_entries_beyond_the_keys_room);
    tcase_add_test(tc, a_target_that_is_drained_says_so);
    suite_add_tcase(s, tc);
    return s;
}
