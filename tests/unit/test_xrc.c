/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the extended reliable connection (IBTA annex A14): each request names its SRQ, and uses
 * that SRQ's WQEs, completion queue and protection domain. The path MTU is 256 bytes.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/mkey_priv.h"
#include "model/rdma/paging.h"
#include "model/core/pd.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU         256
#define LOG_SIZE    3
#define LOG_STRIDE  6

#define ACK         0x1f
#define RNR         0x20
#define NAK_INVALID 0x61
#define NAK_ACCESS  0x62
#define NAK_OP      0x63

struct xrc_srq {
    struct srq *srq;
    struct bench_cq cq;
    uint64_t ring, dbr, mem;
    uint32_t pdn, key;
    uint16_t posted;
};

static struct bench b;
static struct bench_qp target;
static uint32_t xrcd;
static struct xrc_srq one, two; /* each with a PD and memory of its own */
static uint8_t data[4 * MTU];

/* A target as the driver makes it: an SRQ that it never uses, and no send queue. */
static const struct bench_qp_attr *target_attr(void)
{
    static struct bench_qp_attr attr;

    attr = (struct bench_qp_attr){.st = PRM_QP_ST_XRC,
                                  .log_rra_max = 2,
                                  .min_rnr_nak = 12,
                                  .srqn = one.srq->obj.num,
                                  .no_sq = true,
                                  .xrcd = xrcd};
    attr.atomic_mode = PRM_ATOMIC_MODE_UP_TO_128B;
    return &attr;
}

static void make_srq(struct xrc_srq *x, uint32_t domain, uint32_t user_index)
{
    struct srq_attr attr = {
        .kind = OBJ_XRC_SRQ,
        .log_size = LOG_SIZE,
        .log_stride = LOG_STRIDE,
        .xrcdn = domain,
        .user_index = user_index,
    };
    uint64_t pa;
    struct mtt *mtt;

    memset(x, 0, sizeof(*x));
    ck_assert_int_eq(pd_alloc(&b.hca, 0, &x->pdn), SYN_OK);
    bench_cq(&b, 4, &x->cq);
    x->ring = fake_host_alloc(&b.host, 4096, 4096);
    x->dbr = attr.dbr = fake_host_alloc(&b.host, 8, 8);
    pa = GUINT64_TO_BE(x->ring);
    mtt = mtt_new(&pa, 1, 12);
    ck_assert(mem_buf_init(&attr.buf, mtt, 0, 4096));
    mtt_unref(mtt);
    attr.pdn = x->pdn;
    attr.cqn = x->cq.cqn;
    ck_assert_int_eq(srq_create(&b.hca, &attr, &x->srq), SYN_OK);
    x->mem = fake_host_alloc(&b.host, 4096, 4096);

    uint32_t pdn = b.pdn;

    b.pdn = x->pdn;
    x->key = bench_mkey(&b, x->mem, 4096,
                        MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE |
                            MEM_REMOTE_ATOMIC);
    b.pdn = pdn;
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        void *slot = fake_host_ptr(&b.host, x->ring + ((uint64_t)i << LOG_STRIDE), 64);
        void *seg = slot + PRM_SIZE(wqe_srq_next_seg);

        PRM_SET(wqe_srq_next_seg, slot, next_wqe_index, (i + 1) % (1 << LOG_SIZE));
        PRM_SET(wqe_data_seg, seg, byte_count, 4 * MTU);
        PRM_SET(wqe_data_seg, seg, lkey, x->key);
        PRM_SET(wqe_data_seg, seg, addr, x->mem);
        PRM_SET(wqe_data_seg, seg + 16, lkey, WQE_TERMINATOR_LKEY);
    }
}

static void post(struct xrc_srq *x)
{
    PRM_SET(srq_dbr, fake_host_ptr(&b.host, x->dbr, 4), counter, ++x->posted);
}

static void setup(void)
{
    bench_init(&b);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 5 + i / 256 + 1);
    }
    ck_assert_int_eq(xrcd_alloc(&b.hca, 0, &xrcd), SYN_OK);
    make_srq(&one, xrcd, 0x111);
    make_srq(&two, xrcd, 0xffffff);
    bench_qp_rts(&b, target_attr(), &target);
}

static void teardown(void)
{
    bench_clear(&b);
}

static void rx(uint8_t op, uint32_t psn, uint32_t srqn, const struct xrc_srq *memory, size_t len)
{
    struct roce_packet pkt = bench_packet(&target, BTH_XRC | op, psn);

    pkt.xrc_srqn = srqn;
    pkt.ackreq = true;
    if (memory) {
        pkt.reth.va = pkt.atomic.va = memory->mem;
        pkt.reth.rkey = pkt.atomic.rkey = memory->key;
        pkt.reth.len = (uint32_t)(op == BTH_READ_REQUEST ? MTU : len);
        pkt.atomic.swap_add = 5;
    }
    bench_rx(&b, &pkt, data, len);
}

static void expect_ack(uint8_t syndrome, uint32_t psn)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_XRC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, psn);
}

static void expect_refused(uint8_t syndrome, uint32_t psn)
{
    expect_ack(syndrome, psn);
    ck_assert_uint_eq(target.qp->state, PRM_QP_STATE_ERR);
}

/* The log names this cause. */
static void __attribute__((format(printf, 2, 3))) expect_said(uint32_t psn, const char *fmt, ...)
{
    char why[128], line[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    snprintf(line, sizeof(line),
             "qp 0x%x: a request of the peer (psn 0x%x) fails: %s (syndrome 0x12, nak 0x61)",
             target.qpn, psn, why);
    ck_assert_str_eq(b.host.last_line, line);
}

static uint32_t srqn(const struct xrc_srq *x)
{
    return x->srq->obj.num;
}

static void expect_data(const struct xrc_srq *x, size_t len)
{
    ck_assert_mem_eq(fake_host_ptr(&b.host, x->mem, len), data, len);
}

START_TEST(a_send_goes_to_the_srq_that_it_names)
{
    const struct prm_cqe64 *cqe;

    post(&one);
    post(&two);
    rx(BTH_SEND_ONLY, 0, srqn(&two), NULL, 100);
    expect_ack(ACK, 0);
    ck_assert_ptr_null(bench_poll(&b, &one.cq));
    ck_assert_ptr_null(bench_poll(&b, &b.cq));
    cqe = bench_poll(&b, &two.cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 100);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), target.qpn);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), srqn(&two)); /* it has no user index */
    expect_data(&two, 100);

    rx(BTH_SEND_ONLY, 1, srqn(&one), NULL, 50);
    expect_ack(ACK, 1);
    cqe = bench_poll(&b, &one.cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), 0x111);
    expect_data(&one, 50);
}
END_TEST

/* A key of one page, which is missing. */
static struct mkey *absent_key(struct xrc_srq *x)
{
    uint64_t pas[2] = {GUINT64_TO_BE(x->mem)};
    struct prm_mkc mkc[1] = {0};
    struct mkey *mkey;
    uint32_t index;

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, x->pdn);
    PRM_SET(mkc, mkc, start_addr, x->mem);
    PRM_SET(mkc, mkc, len, 4096);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    ck_assert_int_eq(mkey_create(&b.hca, 0, mkc, pas, sizeof(pas), true, &index), SYN_OK);
    mkey = mkey_find(&b.hca, index);
    mkey->mtt[0] = 0;
    return mkey;
}

/* The pager is told of the SRQ that the message names, not of the target's own. The peer gets RNR
 * NAKs until the page is there. */
START_TEST(a_receive_waits_for_its_page)
{
    struct mkey *mkey = absent_key(&two);
    void *seg = fake_host_ptr(&b.host, two.ring + PRM_SIZE(wqe_srq_next_seg), 16);

    paging_follow_eqs(&b.hca);
    b.hca.may_fault[PAGING_XRC] = FAULT_SRQ_RECEIVE;
    PRM_SET(wqe_data_seg, seg, lkey, mkey->obj.num << 8);
    post(&two);
    for (unsigned i = 0; i < 2; i++) {
        rx(BTH_SEND_ONLY, 0, srqn(&two), NULL, 100);
        expect_ack(AETH_RNR | 12, 0);
    }
    ck_assert_int_eq(paging_resume_transport(&b.hca, 0, srqn(&one), target.qpn, false),
                     SYN_NO_FAULT);
    mkey->mtt[0] = two.mem | MTT_RIGHTS;
    mkey_changed(&b.hca);
    ck_assert_int_eq(paging_resume_transport(&b.hca, 0, srqn(&two), target.qpn, false), SYN_OK);
    rx(BTH_SEND_ONLY, 0, srqn(&two), NULL, 100);
    expect_ack(ACK, 0);
    ck_assert_ptr_nonnull(bench_poll(&b, &two.cq));
    expect_data(&two, 100);
}
END_TEST

/* The page of a READ that was answered has gone. A copy of the READ that comes late misses the
 * page. The peer does not repeat it. A request behind it is dropped once, because it might come
 * again behind the READ; when the peer repeats it without the READ, it is taken. */
START_TEST(a_ghost_of_a_read_drops_a_request_once)
{
    struct mkey *mkey = absent_key(&two);
    struct roce_packet pkt;

    paging_follow_eqs(&b.hca);
    b.hca.may_fault[PAGING_XRC] = FAULT_READ;
    two.key = mkey->obj.num << 8;
    mkey->mtt[0] = two.mem | MTT_RIGHTS;
    rx(BTH_READ_REQUEST, 0, srqn(&two), &two, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_XRC | BTH_READ_RESP_ONLY);
    mkey->mtt[0] = 0;
    mkey_changed(&b.hca);
    rx(BTH_READ_REQUEST, 0, srqn(&two), &two, 0);
    expect_ack(AETH_RNR | 12, 0);
    post(&two);
    rx(BTH_SEND_ONLY, 1, srqn(&two), NULL, 100);
    ck_assert(!bench_tx(&b, &pkt));
    rx(BTH_SEND_ONLY, 1, srqn(&two), NULL, 100);
    expect_ack(ACK, 1);
}
END_TEST

START_TEST(a_message_of_several_packets_stays_with_its_srq)
{
    post(&one);
    rx(BTH_SEND_FIRST, 0, srqn(&one), NULL, MTU);
    expect_ack(ACK, 0);
    rx(BTH_SEND_LAST, 1, srqn(&one), NULL, 1);
    expect_ack(ACK, 1);
    ck_assert_ptr_nonnull(bench_poll(&b, &one.cq));

    post(&one);
    post(&two);
    rx(BTH_SEND_FIRST, 2, srqn(&one), NULL, MTU);
    expect_ack(ACK, 2);
    rx(BTH_SEND_LAST, 3, srqn(&two), NULL, 1);
    expect_refused(NAK_INVALID, 3);
    expect_said(3, "the packet names SRQ 0x%x, but its message names SRQ 0x%x", srqn(&two),
                srqn(&one));
    ck_assert_ptr_nonnull(bench_poll(&b, &one.cq));
    ck_assert_ptr_null(bench_poll(&b, &two.cq));
}
END_TEST

START_TEST(an_empty_srq_is_not_ready)
{
    rx(BTH_SEND_ONLY, 0, srqn(&one), NULL, 8);
    expect_ack(RNR | 12, 0);
    post(&one);
    rx(BTH_SEND_ONLY, 0, srqn(&one), NULL, 8);
    expect_ack(ACK, 0);
}
END_TEST

/* The PD of the SRQ, not the QP's, decides what a request may access. */
START_TEST(keys_belong_to_the_srqs_domain)
{
    struct roce_packet pkt;
    uint64_t value = 7;

    rx(BTH_WRITE_ONLY, 0, srqn(&one), &one, MTU);
    expect_ack(ACK, 0);
    expect_data(&one, MTU);

    rx(BTH_READ_REQUEST, 1, srqn(&one), &one, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_XRC | BTH_READ_RESP_ONLY);
    ck_assert_mem_eq(pkt.payload, data, MTU);
    rx(BTH_READ_REQUEST, 1, srqn(&one), &one, 0); /* a duplicate */
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_mem_eq(pkt.payload, data, MTU);

    memcpy(fake_host_ptr(&b.host, one.mem, 8), &value, 8);
    rx(BTH_FETCH_ADD, 2, srqn(&one), &one, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_XRC | BTH_ATOMIC_ACK);
    ck_assert_uint_eq(pkt.atomic_ack, 7);

    rx(BTH_WRITE_ONLY, 3, srqn(&two), &one, 8);
    expect_refused(NAK_ACCESS, 3);
}
END_TEST

/* The same for an extended atomic, which has XRC's own opcodes (docs/adr/0011). */
START_TEST(extended_atomics_name_their_srq)
{
    static const uint8_t operands[32] = {[15] = 3};
    struct roce_packet pkt = bench_packet(&target, 0xc9, 0);
    uint8_t *memory = fake_host_ptr(&b.host, one.mem, 16);

    memory[0] = 7;
    pkt.xrc_srqn = srqn(&one);
    pkt.reth.va = one.mem;
    pkt.reth.rkey = one.key;
    pkt.reth.len = 16;
    for (unsigned i = 0; i < 2; i++) { /* the second is a duplicate */
        struct roce_packet answer;

        bench_rx(&b, &pkt, operands, sizeof(operands));
        ck_assert(bench_tx(&b, &answer));
        ck_assert_uint_eq(answer.opcode, 0xca);
        ck_assert_uint_eq(answer.payload_len, 16);
        ck_assert_uint_eq(answer.payload[15], 7);
        ck_assert_uint_eq(memory[0], 10);
    }
    pkt.xrc_srqn = srqn(&two);
    pkt.psn = 1;
    bench_rx(&b, &pkt, operands, sizeof(operands));
    expect_refused(NAK_ACCESS, 1);
    ck_assert_uint_eq(memory[0], 10);
}
END_TEST

START_TEST(an_srq_that_is_not_in_the_domain_is_no_recipient)
{
    static struct xrc_srq other;
    uint32_t domain;

    ck_assert_int_eq(xrcd_alloc(&b.hca, 0, &domain), SYN_OK);
    make_srq(&other, domain, 0x222);
    post(&other);
    rx(BTH_SEND_ONLY, 0, _i == 0 ? srqn(&other) : 0xabcdef, NULL, 8);
    expect_refused(NAK_INVALID, 0);
    expect_said(0, "SRQ 0x%x does not exist in the QP's XRC domain",
                _i == 0 ? srqn(&other) : 0xabcdef);
    ck_assert_ptr_null(bench_poll(&b, &other.cq));
    ck_assert_int_eq(bench_event(&b, target.qpn), PRM_EVENT_TYPE_SRQ_LAST_WQE);
    ck_assert_int_eq(bench_event(&b, target.qpn), PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR);
}
END_TEST

START_TEST(an_srq_may_go_in_the_middle_of_a_message)
{
    uint32_t number = srqn(&one);

    post(&one);
    rx(BTH_SEND_FIRST, 0, srqn(&one), NULL, MTU);
    expect_ack(ACK, 0);
    ck_assert_int_eq(srq_destroy(&b.hca, 0, number, OBJ_XRC_SRQ), SYN_OK);
    rx(BTH_SEND_LAST, 1, number, NULL, 8);
    expect_refused(NAK_INVALID, 1);
}
END_TEST

START_TEST(an_srq_fails_with_its_cq)
{
    uint32_t psn = 0;

    struct roce_packet pkt;

    for (; psn < 16; psn++) {
        post(&one);
        rx(BTH_SEND_ONLY, psn, srqn(&one), NULL, 8);
        expect_ack(ACK, psn);
    }
    /* one more than the CQ holds: its QP fails and gives no answer */
    post(&one);
    rx(BTH_SEND_ONLY, psn, srqn(&one), NULL, 8);
    ck_assert(!bench_tx(&b, &pkt));
    ck_assert_uint_eq(target.qp->state, PRM_QP_STATE_ERR);
    ck_assert(one.srq->error);
    /* the other SRQ of the domain still works; another QP's message for this one fails */
    bench_qp_rts(&b, target_attr(), &target);
    post(&two);
    rx(BTH_SEND_ONLY, 0, srqn(&two), NULL, 8);
    expect_ack(ACK, 0);
    rx(BTH_SEND_ONLY, 1, srqn(&one), NULL, 8);
    expect_refused(NAK_OP, 1);
}
END_TEST

/* The QP determines the transport of a packet, and a target takes requests only. */
START_TEST(packets_of_another_kind_are_dropped)
{
    static const uint8_t opcodes[] = {BTH_RC | BTH_SEND_ONLY, BTH_UC | BTH_SEND_ONLY,
                                      BTH_XRC | BTH_ACK};
    struct roce_packet pkt = bench_packet(&target, opcodes[_i], 0);
    uint64_t before = b.hca.vport->counters.rx_no_qp;

    bench_rx(&b, &pkt, data, 0);
    ck_assert(!bench_tx(&b, &pkt));
    ck_assert_uint_eq(b.hca.vport->counters.rx_no_qp, before + 1);
    ck_assert_uint_eq(target.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

START_TEST(a_qp_holds_its_domain)
{
    struct prm_qpc qpc[1];
    struct mem_buf none = {0};
    uint32_t qpn;

    ck_assert_int_eq(srq_destroy(&b.hca, 0, srqn(&one), OBJ_XRC_SRQ), SYN_OK);
    ck_assert_int_eq(srq_destroy(&b.hca, 0, srqn(&two), OBJ_XRC_SRQ), SYN_OK);
    ck_assert_int_eq(xrcd_dealloc(&b.hca, 0, xrcd), SYN_IN_USE);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, target.qpn), SYN_OK);
    ck_assert_int_eq(xrcd_dealloc(&b.hca, 0, xrcd), SYN_OK);

    bench_qpc(&b,
              &(struct bench_qp_attr){.st = PRM_QP_ST_XRC, .srqn = 1, .no_sq = true, .xrcd = xrcd},
              qpc);
    ck_assert_int_eq(qp_create(&b.hca, 0, qpc, &none, 0, &qpn), SYN_QP_XRCD);
}
END_TEST

/* Writes a SEND of 8 inline bytes to SRQ 0x4321 and rings. */
static void post_send(struct bench_qp *qp)
{
    void *wqe = fake_host_ptr(&b.host, qp->ring, 64);
    struct prm_wqe_xrc_seg *xrc = wqe + PRM_SIZE(wqe_ctrl_seg);
    struct prm_wqe_inline_seg *inl = wqe + PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_xrc_seg);

    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_SEND);
    PRM_SET(wqe_ctrl_seg, wqe, ds, 3);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, wqe, ce, PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_xrc_seg, xrc, xrc_srqn, 0x4321);
    PRM_SET(wqe_inline_seg, inl, inl, 1);
    PRM_SET(wqe_inline_seg, inl, byte_count, 8);
    memcpy(PRM_PTR(wqe_inline_seg, inl, data), data, 8);
    PRM_SET(qp_dbr, fake_host_ptr(&b.host, qp->dbr, 8), send_counter, 1);
    requester_doorbell(qp->qp);
    bench_run(&b);
}

START_TEST(an_initiator_sends_the_srq_number_and_completes_on_an_ack)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_XRC, .srqn = srqn(&one), .xrcd = xrcd};
    struct bench_qp initiator;
    struct roce_packet pkt;
    const struct prm_cqe64 *cqe;

    bench_qp_rts(&b, &attr, &initiator);
    post_send(&initiator);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_XRC | BTH_SEND_ONLY);
    ck_assert_uint_eq(pkt.xrc_srqn, 0x4321);
    ck_assert_uint_eq(pkt.payload_len, 8);
    ck_assert_mem_eq(pkt.payload, data, 8);
    ck_assert_ptr_null(bench_poll(&b, &b.cq));

    pkt = bench_packet(&initiator, BTH_XRC | BTH_SEND_ONLY, 0);
    bench_rx(&b, &pkt, data, 8); /* it must ignore a request */
    ck_assert(!bench_tx(&b, &pkt));
    pkt = bench_packet(&initiator, BTH_XRC | BTH_ACK, 0);
    pkt.aeth.syndrome = ACK;
    bench_rx(&b, &pkt, NULL, 0);
    cqe = bench_poll(&b, &b.cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("xrc");
    TCase *tc = tcase_create("xrc");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_send_goes_to_the_srq_that_it_names);
    tcase_add_test(tc, a_receive_waits_for_its_page);
    tcase_add_test(tc, a_ghost_of_a_read_drops_a_request_once);
    tcase_add_test(tc, a_message_of_several_packets_stays_with_its_srq);
    tcase_add_test(tc, an_empty_srq_is_not_ready);
    tcase_add_test(tc, keys_belong_to_the_srqs_domain);
    tcase_add_test(tc, extended_atomics_name_their_srq);
    tcase_add_loop_test(tc, an_srq_that_is_not_in_the_domain_is_no_recipient, 0, 2);
    tcase_add_test(tc, an_srq_may_go_in_the_middle_of_a_message);
    tcase_add_test(tc, an_srq_fails_with_its_cq);
    tcase_add_loop_test(tc, packets_of_another_kind_are_dropped, 0, 3);
    tcase_add_test(tc, a_qp_holds_its_domain);
    tcase_add_test(tc, an_initiator_sends_the_srq_number_and_completes_on_an_ack);
    suite_add_tcase(s, tc);
    return s;
}
