/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests page faults of each service and each kind of key: UD, UC, SRQ, atomics, DC; lists of keys,
 * implicit regions, pages that may only be read, invalidated pages; and many faults at once.
 */
#include "model/core/inject.h"
#include "tests/unit/dc_lab.h"
#include "tests/unit/page_fault_bench.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LEN 100 /* bytes of a message, at the start of a page */

static uint64_t from, to; /* pages on left and right */
static struct missing missing;

static void memory(void)
{
    from = page_aligned(lab_mem(left, 3 * FAULT_PAGE, 3));
    to = page_aligned(lab_mem(right, 3 * FAULT_PAGE, 0));
}

static void setup_faults(void)
{
    setup();
    memory();
    faults_begin(lab);
}

static void setup_faults_bare(void)
{
    setup_bare();
    memory();
    faults_begin(lab);
}

static void wait_long(void)
{
    lab_run(lab);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
}

static uint32_t absent_key(struct lab_side *side, uint64_t addr)
{
    uint32_t key = lab_mr(side, addr, 2 * FAULT_PAGE, 0x1f);

    missing = fault_take_out(side, key, 0);
    return key;
}

/* Takes the only event of a side. Checks kind, type and queue. Returns its data. */
static const void *expect_event(struct lab_side *side, uint8_t sub_type, uint8_t type, uint32_t wqn)
{
    const struct prm_eqe *eqe = fault_next(lab, side == right);
    const struct prm_wqe_associated_page_fault_event *e;

    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), sub_type);
    ck_assert_uint_eq(fault_type(eqe), type);
    e = (const void *)PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, qpn), wqn);
    ck_assert_ptr_null(fault_next(lab, side == right));
    return e;
}

static void resume(uint8_t type, uint32_t wqn, uint32_t token)
{
    fault_page_in(&missing);
    ck_assert_int_eq(paging_resume_transport(&missing.side->hca, type, wqn, token, false), SYN_OK);
    wait_long();
}

/* -- UD, UC ------------------------------------------------------------------------------------ */

static struct lab_wr datagram(uint32_t lkey)
{
    return (struct lab_wr){.opcode = PRM_WQE_OPCODE_SEND,
                           .sge = {{from, LEN, lkey}},
                           .num_sge = 1,
                           .dest_qpn = b.qp->obj.num,
                           .qkey = lab_path.qkey};
}

START_TEST(a_datagram_waits_for_the_page_that_it_is_sent_from)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UD);
    lab_post_recv(&b, to, 40 + LEN);
    wr = datagram(absent_key(left, from));
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    expect_event(left, PRM_PFAULT_SUBTYPE_WQE, TYPE_REQ_SEND_OR_WRITE, a.qp->obj.num);
    resume(TYPE_REQ_SEND_OR_WRITE, a.qp->obj.num, a.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(40 + LEN);
}
END_TEST

/* A service that may not receive into missing pages: the receive WQE fails. */
START_TEST(a_datagram_queue_of_its_own_may_not_miss_a_page)
{
    struct lab_wr wr;
    struct lab_cqe cqe;
    uint32_t key;

    pair_of(PRM_QP_ST_UD);
    right->hca.may_fault[PAGING_UD] = FAULT_SEND | FAULT_SRQ_RECEIVE;
    key = absent_key(right, to);
    lab_post_recv(&b, to, 40 + LEN);
    PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, key);
    wr = datagram(0);
    lab_post(&a, &wr);
    wait_long();
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_ptr_null(fault_next(lab, 1));
}
END_TEST

START_TEST(an_unreliable_connection_may_not_miss_a_page)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UC);
    left->hca.may_fault[PAGING_UC] = 0; /* as the device reports it */
    wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, to);
    wr.sge[0].key = absent_key(left, from);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_ptr_null(fault_next(lab, 0));
}
END_TEST

/* -- SRQ, atomics, DC -------------------------------------------------------------------------- */

/* The event names the SRQ; the token is the number of the QP, or of the target. */
static void expect_rmp(const struct lab_dct *srq, uint32_t num)
{
    const struct prm_wqe_associated_page_fault_event *e =
        expect_event(right, PRM_PFAULT_SUBTYPE_WQE, TYPE_RMP, srq->srq->obj.num);

    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, token), num);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, wqe_index), 0);
    ck_assert_int_eq(paging_resume_transport(&right->hca, TYPE_RMP, num, num, false), SYN_NO_FAULT);
    resume(TYPE_RMP, srq->srq->obj.num, num);
}

static void post_absent_recv(struct lab_dct *srq)
{
    uint32_t key = absent_key(right, to);

    lab_dct_post_recv(srq, to, LEN);
    PRM_SET(wqe_data_seg, lab_ptr(right, srq->ring + 16, 16), lkey, key);
}

START_TEST(a_receive_of_an_srq_names_the_srq)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_dct srq; /* only its SRQ is used */
    struct lab_wr wr = send_wr(from, LEN);

    lab_dct_new(right, &srq);
    attr.srqn = srq.srq->obj.num;
    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    post_absent_recv(&srq);
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    expect_rmp(&srq, b.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(LEN);
    same(from, to, LEN);
}
END_TEST

static const struct fault_names no_names; /* the rule has no names of the firmware */

static uint64_t lab_clock_ns(void *opaque)
{
    return hca_now(opaque);
}

/* rdma-core, mlx5_complete_odp_fault(): the CQE by which the library knows such a receive. */
static void expect_returned(uint16_t counter)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR);
    ck_assert_uint_eq(cqe.vendor, 0x93);
    ck_assert_uint_eq(cqe.counter, counter);
}

/* The rule "receive returned": the message takes the next receive, and the QP goes on. */
START_TEST(a_rule_returns_a_receive_whose_page_is_missing)
{
    const struct fault_options options = {
        .clock_ns = lab_clock_ns, .clock_opaque = &right->hca, .names = &no_names};
    struct fault_set *rules = fault_set_new(&options);
    struct lab_qp_attr attr = lab_rc;
    struct lab_dct srq; /* only its SRQ is used */
    struct lab_wr wr = send_wr(from, LEN);

    ck_assert(fault_set_add(rules, "receive returned once", NULL));
    inject_set(&right->hca, rules);
    lab_dct_new(right, &srq);
    attr.srqn = srq.srq->obj.num;
    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    post_absent_recv(&srq);
    lab_dct_post_recv(&srq, to + FAULT_PAGE, LEN);
    lab_post(&a, &wr);
    wait_long();
    expect_returned(0);
    expect_received(LEN);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    same(from, to + FAULT_PAGE, LEN);
    expect_rmp(&srq, b.qp->obj.num);
    ck_assert_int_eq(b.qp->state, PRM_QP_STATE_RTS);
    inject_set(&right->hca, NULL);
    fault_set_free(rules);
}
END_TEST

/* A receive that has data of the message stays, whatever the rule says. */
START_TEST(a_rule_returns_no_receive_that_has_data)
{
    const struct fault_options options = {
        .clock_ns = lab_clock_ns, .clock_opaque = &right->hca, .names = &no_names};
    struct fault_set *rules = fault_set_new(&options);
    struct lab_qp_attr attr = lab_rc;
    struct lab_dct srq; /* only its SRQ is used */
    struct lab_wr wr = send_wr(from, 2 * FAULT_PAGE);
    uint32_t key;

    ck_assert(fault_set_add(rules, "receive returned", NULL));
    inject_set(&right->hca, rules);
    lab_dct_new(right, &srq);
    attr.srqn = srq.srq->obj.num;
    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    key = lab_mr(right, to, 2 * FAULT_PAGE, 0x1f);
    missing = fault_take_out(right, key, 1);
    lab_dct_post_recv(&srq, to, 2 * FAULT_PAGE);
    PRM_SET(wqe_data_seg, lab_ptr(right, srq.ring + 16, 16), lkey, key);
    lab_post(&a, &wr);
    wait_long();
    expect_rmp(&srq, b.qp->obj.num);
    expect_received(2 * FAULT_PAGE);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    same(from, to, 2 * FAULT_PAGE);
    inject_set(&right->hca, NULL);
    fault_set_free(rules);
}
END_TEST

START_TEST(an_atomic_waits_for_its_page)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                        .sge = {{from, 8, 0}},
                        .num_sge = 1,
                        .raddr = to,
                        .swap_add = 5};
    const struct prm_rdma_page_fault_event *e;

    wr.rkey = absent_key(right, to);
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    e = expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_op_len), 8);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_va), to);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, r_key), wr.rkey);
    resume(TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, to, 8), 5);
}
END_TEST

/* The answer of an atomic has no place. The atomic is carried out once. */
START_TEST(the_result_of_an_atomic_waits_for_its_page)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                        .sge = {{from, 8, 0}},
                        .num_sge = 1,
                        .raddr = to,
                        .swap_add = 5};

    wr.rkey = right->key;
    *(uint64_t *)lab_ptr(right, to, 8) = 7;
    wr.sge[0].key = absent_key(left, from);
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    expect_event(left, PRM_PFAULT_SUBTYPE_WQE, TYPE_REQ_READ_OR_ATOMIC, a.qp->obj.num);
    resume(TYPE_REQ_READ_OR_ATOMIC, a.qp->obj.num, a.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, to, 8), 12);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, from, 8), 7);
}
END_TEST

static struct lab_dct dct;

static void dc_pair(void)
{
    lab_dct_new(right, &dct);
    lab_dci_new(left, &lab_dci, NULL, &a);
}

START_TEST(an_initiator_waits_for_its_page)
{
    struct lab_wr wr = send_wr(from, LEN);

    dc_pair();
    lab_dct_post_recv(&dct, to, LEN);
    wr.sge[0].key = absent_key(left, from);
    lab_post(&a, lab_to(&wr, &dct));
    wait_long();
    expect_none(left);
    expect_event(left, PRM_PFAULT_SUBTYPE_WQE, TYPE_REQ_SEND_OR_WRITE, a.qp->obj.num);
    resume(TYPE_REQ_SEND_OR_WRITE, a.qp->obj.num, a.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    same(from, to, LEN);
}
END_TEST

START_TEST(a_target_waits_for_its_page)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, to);

    dc_pair();
    wr.rkey = absent_key(right, to);
    lab_post(&a, lab_to(&wr, &dct));
    wait_long();
    expect_none(left);
    expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, dct.dctn);
    resume(TYPE_RDMA_WRITE, dct.dctn, dct.dctn);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(from, to, LEN);
}
END_TEST

START_TEST(a_receive_of_a_target_names_the_srq)
{
    struct lab_wr wr = send_wr(from, LEN);

    dc_pair();
    post_absent_recv(&dct);
    lab_post(&a, lab_to(&wr, &dct));
    wait_long();
    expect_none(left);
    expect_rmp(&dct, dct.dctn);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    same(from, to, LEN);
}
END_TEST

START_TEST(a_fault_ends_with_its_target)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, to);
    enum syn syn;

    dc_pair();
    wr.rkey = absent_key(right, to);
    lab_post(&a, lab_to(&wr, &dct));
    wait_long();
    ck_assert_ptr_nonnull(right->hca.rdma->paging.first);
    while ((syn = dct_destroy(&right->hca, 0, dct.dctn)) == SYN_AGAIN) {
        lab_run(lab);
    }
    ck_assert_int_eq(syn, SYN_OK);
    ck_assert_ptr_null(right->hca.rdma->paging.first);
    ck_assert_int_eq(
        paging_resume_transport(&right->hca, TYPE_RDMA_WRITE, dct.dctn, dct.dctn, false),
        SYN_NO_FAULT);
}
END_TEST

/* -- keys behind keys -------------------------------------------------------------------------- */

/* A key whose list has one range: of the key behind, at its address. */
static uint32_t outer_key(uint32_t mode, uint32_t behind, uint64_t start, uint64_t len)
{
    struct prm_wqe_klm_seg xlt[4] = {0};
    struct prm_mkc mkc[1] = {0};
    uint32_t index;

    PRM_SET(wqe_klm_seg, &xlt[0], byte_count, (uint32_t)len);
    PRM_SET(wqe_klm_seg, &xlt[0], mkey, behind);
    PRM_SET(wqe_klm_seg, &xlt[0], va, to);
    PRM_SET(mkc, mkc, access_mode_1_0, mode);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, right->pdn);
    PRM_SET(mkc, mkc, start_addr, start);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, log_page_size, 30);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    ck_assert_int_eq(mkey_create(&right->hca, 0, mkc, xlt, sizeof(xlt), true, &index), SYN_OK);
    return index << 8;
}

/* The transport scheme names the key of the access, and the driver asks for its list. The memory
 * scheme names the key whose page is missing. */
START_TEST(a_page_may_be_missing_behind_a_list_of_keys)
{
    uint32_t inner = absent_key(right, to);
    uint32_t outer = outer_key(PRM_MKC_ACCESS_MODE_KLMS, inner, 0x5000, FAULT_PAGE);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, 0x5000);
    struct prm_wqe_klm_seg list[1] = {0};
    uint64_t token = (uint64_t)1 << 24 | b.qp->obj.num;

    right->hca.memory_faults = _i;
    wr.rkey = outer;
    lab_post(&a, &wr);
    wait_long();
    if (_i) {
        const struct prm_eqe *eqe = fault_next(lab, 1);
        const struct prm_memory_page_fault_event *e;

        ck_assert_ptr_nonnull(eqe);
        e = (const void *)PRM_PTR(eqe, eqe, event_data);
        ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, mkey), inner);
        ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, va), to);
        fault_page_in(&missing);
        ck_assert_int_eq(paging_resume_memory(&right->hca, token, false), SYN_OK);
        wait_long();
    } else {
        const struct prm_rdma_page_fault_event *e =
            expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);

        ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, r_key), outer);
        ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_va), 0x5000);
        mkey_query_list(&right->hca, 0, outer >> 8, list, sizeof(list));
        ck_assert_uint_eq(PRM_GET(wqe_klm_seg, list, byte_count), FAULT_PAGE);
        ck_assert_uint_eq(PRM_GET(wqe_klm_seg, list, mkey), inner);
        ck_assert_uint_eq(PRM_GET(wqe_klm_seg, list, va), to);
        resume(TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num);
    }
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(from, to, LEN);
}
END_TEST

/* A user context sees neither addresses nor the lists of keys that it does not own. */
START_TEST(a_list_is_told_to_its_owner_only)
{
    uint32_t outer = outer_key(PRM_MKC_ACCESS_MODE_KLMS, right->key, 0x5000, FAULT_PAGE);
    uint32_t pages = lab_mr(right, to, FAULT_PAGE, 0x1f);
    struct prm_wqe_klm_seg list[1] = {0}, nothing[1] = {0};

    mkey_query_list(&right->hca, 7, outer >> 8, list, sizeof(list));
    mkey_query_list(&right->hca, 0, pages >> 8, list, sizeof(list));
    mkey_query_list(&right->hca, 0, 0xffffff, list, sizeof(list));
    mkey_query_list(&right->hca, 0, outer >> 8, list, sizeof(list) - 1);
    ck_assert_mem_eq(list, nothing, sizeof(list));
}
END_TEST

/* An implicit region begins with the null key in each entry; then a child key takes its place
 * (driver: pagefault_implicit_mr()). Without a pager the null key takes writes and keeps nothing.
 */
START_TEST(the_null_key_in_a_list_of_the_kernels_is_a_page_fault)
{
    uint32_t null = right->hca.null_mkey = 0x900;
    uint32_t region = outer_key(PRM_MKC_ACCESS_MODE_KSM, null, 0, 1 << 30);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, 0x7000);
    struct mkey *mkey = mkey_find(&right->hca, region >> 8);
    const struct prm_rdma_page_fault_event *e;

    if (_i == 1) {
        right->hca.pager = NULL;
    } else if (_i == 2) {
        mkey->obj.uid = 1; /* in a list of a user context, the null key is memory */
    }
    wr.rkey = region;
    lab_post(&a, &wr);
    wait_long();
    if (_i) {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
        return;
    }
    e = expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, r_key), region);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_va), 0x7000);
    mkey->klm[0].key = lab_mr(right, to, FAULT_PAGE, 0x1f);
    mkey->klm[0].va = to - 0x7000;
    mkey_changed(&right->hca);
    ck_assert_int_eq(
        paging_resume_transport(&right->hca, TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num, false),
        SYN_OK);
    wait_long();
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(from, to, LEN);
}
END_TEST

/* -- access bits ------------------------------------------------------------------------------- */

/* A page that was brought in for reading (ibv_advise_mr(PREFETCH)): a READ takes it as it is, and
 * a write is a fault, also after the READ has made the device remember the page. */
START_TEST(a_page_that_may_only_be_read)
{
    uint32_t key = lab_mr(right, to, FAULT_PAGE, 0x1f);
    struct mkey *mkey = mkey_find(&right->hca, key >> 8);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, from, LEN, to);

    missing = (struct missing){right, &mkey->mtt[0], mkey->mtt[0]};
    mkey->mtt[0] &= ~MTT_WRITE;
    mkey_changed(&right->hca);
    wr.rkey = key;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    ck_assert_ptr_null(fault_next(lab, 1));
    wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from + FAULT_PAGE, LEN, to);
    wr.rkey = key;
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);
    resume(TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    same(from + FAULT_PAGE, to, LEN);
}
END_TEST

/* An atomic reads and writes. */
START_TEST(an_atomic_needs_a_page_that_may_be_written)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                        .sge = {{from, 8, 0}},
                        .num_sge = 1,
                        .raddr = to,
                        .swap_add = 5};
    uint32_t key = lab_mr(right, to, FAULT_PAGE, 0x1f);
    struct mkey *mkey = mkey_find(&right->hca, key >> 8);

    missing = (struct missing){right, &mkey->mtt[0], mkey->mtt[0]};
    mkey->mtt[0] &= ~MTT_WRITE;
    mkey_changed(&right->hca);
    wr.rkey = key;
    lab_post(&a, &wr);
    wait_long();
    expect_none(left);
    expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, to, 8), 0);
    resume(TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, to, 8), 5);
}
END_TEST

/* Bits 0 and 1 of an MTT allow reads and writes; without both, the page is missing. They count in a
 * UMR, and in CREATE_MKEY with pg_access. */
START_TEST(access_bits_of_mtts)
{
    static const uint64_t expected[] = {0, MTT_READ, MTT_WRITE, MTT_RIGHTS};
    uint8_t xlt[64] = {0};
    struct prm_wqe_umr_ctrl_seg ctrl[1] = {0};
    struct prm_mkc mkc[1] = {0};
    uint32_t key = lab_mr(right, to, 4 * FAULT_PAGE, 0x1f);
    struct mkey *mkey = mkey_find(&right->hca, key >> 8);
    struct mkey_umr umr = {.key = key,
                           .pdn = right->pdn,
                           .privileged = true,
                           .ctrl = ctrl,
                           .mkey_seg = mkc,
                           .xlt = xlt,
                           .xlt_len = sizeof(xlt)};

    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(mkey->mtt[i], (to + i * FAULT_PAGE) | MTT_RIGHTS);
        prm_store64(xlt + 8 * i, (to + i * FAULT_PAGE) | i);
    }
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, 4);
    ck_assert_int_eq(mkey_umr(&right->hca, &umr), MEM_OK);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(mkey->mtt[i] & MTT_RIGHTS, expected[i]);
    }
}
END_TEST

/* After the UMR that takes the page out, no byte of it is touched: not by a message that is in the
 * midst of it, and not by what the device remembers of the key. */
START_TEST(an_invalidated_page_is_not_touched)
{
    uint32_t key = lab_mr(right, to, 2 * FAULT_PAGE, 0x1f);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, FAULT_PAGE, to);
    struct prm_wqe_umr_ctrl_seg ctrl[1] = {0};
    struct prm_mkc mkc[1] = {0};
    uint8_t xlt[64] = {0}, *page = lab_ptr(right, to, FAULT_PAGE);
    struct mkey *mkey = mkey_find(&right->hca, key >> 8);
    struct mkey_umr umr = {.key = key,
                           .pdn = right->pdn,
                           .privileged = true,
                           .ctrl = ctrl,
                           .mkey_seg = mkc,
                           .xlt = xlt,
                           .xlt_len = sizeof(xlt)};

    wr.rkey = key;
    lose_psn(0, 2, UINT32_MAX); /* the message stops after two packets */
    lab_post(&a, &wr);
    lab_run(lab);
    lab->tap = NULL;
    missing = (struct missing){right, &mkey->mtt[0], mkey->mtt[0]};
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, 4);
    ck_assert_int_eq(mkey_umr(&right->hca, &umr), MEM_OK);
    memset(page, 0xee, FAULT_PAGE);
    wait_long();
    for (unsigned i = 0; i < FAULT_PAGE; i++) {
        ck_assert_uint_eq(page[i], 0xee);
    }
    expect_event(right, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_WRITE, b.qp->obj.num);
    mkey->mtt[1] = (to + FAULT_PAGE) | MTT_RIGHTS;
    resume(TYPE_RDMA_WRITE, b.qp->obj.num, b.qp->obj.num);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_mem_eq(page + 2048, lab_ptr(left, from + 2048, 2048), 2048);
}
END_TEST

/* -- many faults ------------------------------------------------------------------------------- */

#define STORM (3u << LAB_EQ_LOG) /* faults: three times as many as the EQ holds */

static struct lab_qp qps[STORM], peers[STORM];

/* Takes all events that the EQ has, and answers them. Returns how many there were. */
static unsigned answer_all(void)
{
    const struct prm_eqe *eqe;
    unsigned n = 0;

    while ((eqe = fault_next(lab, 0))) {
        const struct prm_wqe_associated_page_fault_event *e =
            (const void *)PRM_PTR(eqe, eqe, event_data);
        uint32_t qpn = PRM_GET(wqe_associated_page_fault_event, e, qpn);

        ck_assert_int_eq(
            paging_resume_transport(&left->hca, TYPE_REQ_SEND_OR_WRITE, qpn, qpn, false), SYN_OK);
        n++;
    }
    eq_doorbell(&left->hca, left->uarn, left->eqn << 24 | fault_ci[0], true);
    return n;
}

/* Makes QPs that all miss the same page when they send. */
static void storm_begin(void)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, LEN, to);
    uint64_t ring, dbr;
    struct lab_qp_attr attr = lab_rc;

    attr.log_sq = 2;
    attr.log_rq = 2;
    attr.cqn = lab_cq_new(left, 10, &ring, &dbr);
    for (unsigned i = 0; i < STORM; i++) {
        lab_qp_new(left, &attr, &qps[i]);
        lab_qp_new(right, &lab_rc, &peers[i]);
        lab_connect(lab, &qps[i], &peers[i], &lab_path);
    }
    wr.sge[0].key = absent_key(left, from);
    for (unsigned i = 0; i < STORM; i++) {
        lab_post(&qps[i], &wr);
    }
}

/* When the EQ ends, all faults end; that takes several turns. */
START_TEST(many_faults_end_turn_by_turn)
{
    struct hca *hca = &left->hca;

    storm_begin();
    lab_run(lab);
    memset(hca->eqs_for[PRM_EVENT_TYPE_PAGE_FAULT], 0,
           sizeof(hca->eqs_for[PRM_EVENT_TYPE_PAGE_FAULT]));
    paging_follow_eqs(hca);
    ck_assert_uint_eq(hca->rdma->paging.ending, STORM);
    hca_run(hca, 50);
    ck_assert_uint_gt(hca->rdma->paging.ending, STORM - 100);
    ck_assert_uint_lt(hca->rdma->paging.ending, STORM);
    lab_run(lab);
    ck_assert_ptr_null(hca->rdma->paging.first);
}
END_TEST

/* More QPs miss the page than the EQ has room for. No event is lost, the memory is bounded by the
 * number of QPs, and a QP that misses nothing goes on meanwhile. */
START_TEST(a_storm_of_faults)
{
    uint64_t before;
    unsigned answered;

    storm_begin();
    before = left->hca.memory.used;
    lab_run(lab);
    ck_assert_uint_lt(left->hca.memory.used - before, STORM * 24576ull);
    write_from(from + 2 * FAULT_PAGE, LEN, to);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);

    fault_page_in(&missing);
    answered = 0;
    for (unsigned n; (n = answer_all());) {
        answered += n;
        lab_run(lab);
    }
    ck_assert_uint_eq(answered, STORM);
    ck_assert_ptr_null(left->hca.rdma->paging.first);
    for (unsigned i = 0; i < STORM; i++) {
        ck_assert_uint_eq(requester_started(qps[i].qp), 0);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("page faults of services and keys");
    TCase *rc = tcase_create("rc"), *others = tcase_create("others");

    tcase_add_checked_fixture(rc, setup_faults, teardown);
    tcase_set_timeout(rc, 60);
    tcase_add_test(rc, an_atomic_waits_for_its_page);
    tcase_add_test(rc, the_result_of_an_atomic_waits_for_its_page);
    tcase_add_loop_test(rc, a_page_may_be_missing_behind_a_list_of_keys, 0, 2);
    tcase_add_test(rc, a_list_is_told_to_its_owner_only);
    tcase_add_loop_test(rc, the_null_key_in_a_list_of_the_kernels_is_a_page_fault, 0, 3);
    tcase_add_test(rc, a_page_that_may_only_be_read);
    tcase_add_test(rc, an_atomic_needs_a_page_that_may_be_written);
    tcase_add_test(rc, access_bits_of_mtts);
    tcase_add_test(rc, an_invalidated_page_is_not_touched);
    tcase_add_test(rc, a_storm_of_faults);
    tcase_add_test(rc, many_faults_end_turn_by_turn);
    suite_add_tcase(s, rc);
    tcase_add_checked_fixture(others, setup_faults_bare, teardown);
    tcase_add_test(others, a_datagram_waits_for_the_page_that_it_is_sent_from);
    tcase_add_test(others, a_datagram_queue_of_its_own_may_not_miss_a_page);
    tcase_add_test(others, an_unreliable_connection_may_not_miss_a_page);
    tcase_add_test(others, a_receive_of_an_srq_names_the_srq);
    tcase_add_test(others, a_rule_returns_a_receive_whose_page_is_missing);
    tcase_add_test(others, a_rule_returns_no_receive_that_has_data);
    tcase_add_test(others, an_initiator_waits_for_its_page);
    tcase_add_test(others, a_target_waits_for_its_page);
    tcase_add_test(others, a_receive_of_a_target_names_the_srq);
    tcase_add_test(others, a_fault_ends_with_its_target);
    suite_add_tcase(s, others);
    return s;
}
