/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the device's own pager (model/rdma/paging.h): the events of both schemes, the driver's
 * answers, and drivers that answer wrongly, late or never.
 */
#include "tests/unit/page_fault_bench.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"
#include "wire/packet/describe.h"

#define LEN  10000 /* bytes of a message: three pages of memory, ten packets */
#define PAGE FAULT_PAGE
#define MTU  1024

static uint64_t from, to; /* on left and right */
static struct missing missing;
static uint32_t paged; /* the key with the missing page */

/* An operation of a, and the fault that its missing page causes. */
static const struct op {
    const char *name;
    uint8_t opcode;
    bool remote;
    uint8_t sub_type, type;
    uint8_t never;      /* the syndrome if the page never comes */
    uint64_t done, len; /* bytes_committed; rdma_op_len */
} ops[] = {
    {"SEND, what is sent", PRM_WQE_OPCODE_SEND, false, PRM_PFAULT_SUBTYPE_WQE,
     TYPE_REQ_SEND_OR_WRITE, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 4 * MTU, 0},
    {"WRITE, what is sent", PRM_WQE_OPCODE_RDMA_WRITE, false, PRM_PFAULT_SUBTYPE_WQE,
     TYPE_REQ_SEND_OR_WRITE, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 4 * MTU, 0},
    {"READ, where it comes to", PRM_WQE_OPCODE_RDMA_READ, false, PRM_PFAULT_SUBTYPE_WQE,
     TYPE_REQ_READ_OR_ATOMIC, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 4 * MTU, 0},
    {"SEND, where it comes to", PRM_WQE_OPCODE_SEND, true, PRM_PFAULT_SUBTYPE_WQE, TYPE_RESP,
     PRM_CQE_SYNDROME_REMOTE_OP_ERR, 4 * MTU, 0},
    {"WRITE, where it comes to", PRM_WQE_OPCODE_RDMA_WRITE, true, PRM_PFAULT_SUBTYPE_RDMA,
     TYPE_RDMA_WRITE, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR, 4 * MTU, LEN},
    {"READ, what is read", PRM_WQE_OPCODE_RDMA_READ, true, PRM_PFAULT_SUBTYPE_RDMA, TYPE_RDMA_READ,
     PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0, LEN - 4 * MTU},
};

static struct lab_side *faulting(const struct op *op)
{
    return op->remote ? right : left;
}

static struct qp *parked(const struct op *op)
{
    return op->remote ? b.qp : a.qp;
}

static void setup_pager(void)
{
    setup();
    faults_begin(lab);
}

/* The next page fault event of a side, or NULL. */
static const struct prm_eqe *next_fault(struct lab_side *side)
{
    return fault_next(lab, side == right);
}

/* Posts the operation with its second page missing. */
static void post(const struct op *op)
{
    bool reads = op->opcode == PRM_WQE_OPCODE_RDMA_READ;
    struct lab_wr wr;

    from = page_aligned(lab_mem(left, LEN + PAGE, reads ? 0 : 3));
    to = page_aligned(lab_mem(right, LEN + PAGE, reads ? 3 : 0));
    paged = lab_mr(faulting(op), op->remote ? to : from, LEN, 0x1f);
    missing = fault_take_out(faulting(op), paged, 1);
    wr = rdma_wr(op->opcode, from, LEN, to);
    *(op->remote ? &wr.rkey : &wr.sge[0].key) = paged;
    if (op->opcode == PRM_WQE_OPCODE_SEND) {
        lab_post_recv(&b, to, LEN);
        if (op->remote) {
            PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, paged);
        }
    }
    lab_post(&a, &wr);
    lab_run(lab);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_none(left);
}

static enum syn answer(const struct op *op, bool error)
{
    uint32_t qpn = parked(op)->obj.num;

    return paging_resume_transport(&faulting(op)->hca, op->type, qpn, qpn, error);
}

static void go_on(void)
{
    lab_run(lab);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
}

static void expect_done(const struct op *op)
{
    expect_sent(op->opcode, 0);
    same(from, to, LEN);
}

/* -- transport scheme -------------------------------------------------------------------------- */

static void expect_wqe_event(const struct op *op, const void *data)
{
    const struct prm_wqe_associated_page_fault_event *e = data;

    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, bytes_committed), op->done);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, wqe_index), 0);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, len), MTU);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, token), parked(op)->obj.num);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, qpn), parked(op)->obj.num);
}

static void expect_rdma_event(const struct op *op, const void *data)
{
    const struct prm_rdma_page_fault_event *e = data;

    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, bytes_committed), op->done);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, r_key), paged);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, packet_len), MTU);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_op_len), op->len);
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, rdma_va), to + (LEN - op->len));
    ck_assert_uint_eq(PRM_GET(rdma_page_fault_event, e, qp_number), parked(op)->obj.num);
}

static void expect_event(const struct op *op)
{
    const struct prm_eqe *eqe = next_fault(faulting(op));
    const uint8_t *data;

    ck_assert_ptr_nonnull(eqe);
    data = PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), op->sub_type);
    ck_assert_uint_eq(fault_type(eqe), op->type);
    if (op->sub_type == PRM_PFAULT_SUBTYPE_WQE) {
        expect_wqe_event(op, data);
    } else {
        expect_rdma_event(op, data);
    }
    ck_assert_ptr_null(next_fault(faulting(op)));
}

START_TEST(a_fault_is_an_event_and_its_answer_ends_it)
{
    const struct op *op = &ops[_i];
    struct lab_side *side = faulting(op);
    uint32_t qpn;

    post(op);
    expect_event(op);
    qpn = parked(op)->obj.num;
    /* answers that are for no fault */
    ck_assert_int_eq(paging_resume_transport(&side->hca, op->type, qpn, qpn + 1, false),
                     SYN_NO_FAULT);
    ck_assert_int_eq(paging_resume_transport(&side->hca, op->type, qpn + 1, qpn, false),
                     SYN_NO_FAULT);
    for (uint8_t type = 0; type < 8; type++) {
        if (type != op->type) {
            ck_assert_int_eq(paging_resume_transport(&side->hca, type, qpn, qpn, false),
                             SYN_NO_FAULT);
        }
    }
    ck_assert_int_eq(paging_resume_memory(&side->hca, qpn, false), SYN_NO_FAULT);
    fault_page_in(&missing);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    ck_assert_int_eq(answer(op, false), SYN_NO_FAULT); /* twice */
    go_on();
    expect_done(op);
    ck_assert_ptr_null(next_fault(side));
}
END_TEST

START_TEST(a_page_that_is_still_missing_is_a_new_fault)
{
    const struct op *op = &ops[_i];

    post(op);
    expect_event(op);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    go_on();
    expect_event(op);
    fault_page_in(&missing);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    go_on();
    expect_done(op);
}
END_TEST

START_TEST(an_answer_with_error_ends_the_operation)
{
    const struct op *op = &ops[_i];

    post(op);
    ck_assert_int_eq(answer(op, true), SYN_OK);
    go_on();
    expect_error(op->opcode, 0, op->never);
}
END_TEST

/* The page that will not come has come before the step is tried again, and another page is missing:
 * that is a new fault. */
START_TEST(the_refusal_of_a_page_is_no_refusal_of_another)
{
    const struct op *op = &ops[_i];

    post(op);
    ck_assert_ptr_nonnull(next_fault(faulting(op)));
    ck_assert_int_eq(answer(op, true), SYN_OK);
    fault_page_in(&missing);
    missing = fault_take_out(faulting(op), paged, 2);
    go_on();
    expect_none(left);
    ck_assert_ptr_nonnull(next_fault(faulting(op)));
    fault_page_in(&missing);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    go_on();
    expect_done(op);
}
END_TEST

START_TEST(an_event_names_the_wqe)
{
    const struct op *op = &ops[0];
    const struct prm_wqe_associated_page_fault_event *e;
    const struct prm_eqe *eqe;

    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    post(op);
    eqe = next_fault(left);
    ck_assert_ptr_nonnull(eqe);
    e = (const void *)PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(wqe_associated_page_fault_event, e, wqe_index), 1);
}
END_TEST

/* The RNR NAK asks for more time if the driver has many faults to answer, but for no less than the
 * QP's own timer. Code 0 is the longest time. */
START_TEST(many_faults_make_long_rnr_naks)
{
    struct fault_pager *paging = &right->hca.rdma->paging;

    b.qp->min_rnr_nak = 1;
    paging->num = 1;
    ck_assert_uint_eq(paging_rnr_timer(b.qp), 1);
    paging->num = 101;
    ck_assert_uint_ge(aeth_rnr_delay[paging_rnr_timer(b.qp)], 300);
    ck_assert_uint_lt(aeth_rnr_delay[paging_rnr_timer(b.qp)], 600);
    paging->num = 1000000;
    ck_assert_uint_eq(aeth_rnr_delay[paging_rnr_timer(b.qp)], 1024);
    b.qp->min_rnr_nak = 0;
    ck_assert_uint_eq(paging_rnr_timer(b.qp), 0);
    paging->num = 0;
}
END_TEST

/* -- memory scheme ----------------------------------------------------------------------------- */

static uint64_t expect_memory_event(const struct op *op)
{
    const struct prm_eqe *eqe = next_fault(faulting(op));
    const struct prm_memory_page_fault_event *e;
    uint64_t va = (op->remote ? to : from) + PAGE;

    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), PRM_PFAULT_SUBTYPE_MEMORY);
    e = (const void *)PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, last), 1);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, mkey), paged);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, va), va);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, demand_fault_pages), 1);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, pre_demand_fault_pages), 0);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, post_demand_fault_pages), 2);
    return (uint64_t)PRM_GET(memory_page_fault_event, e, token_47_32) << 32 |
           PRM_GET(memory_page_fault_event, e, token_31_0);
}

START_TEST(the_memory_scheme_names_key_and_address)
{
    const struct op *op = &ops[_i];
    struct hca *hca;
    uint64_t token;

    left->hca.memory_faults = right->hca.memory_faults = true;
    post(op);
    hca = &faulting(op)->hca;
    token = expect_memory_event(op);
    ck_assert_int_eq(paging_resume_memory(hca, token + (1ull << 32), false), SYN_NO_FAULT);
    ck_assert_int_eq(paging_resume_memory(hca, token ^ 1u << 24, false), SYN_NO_FAULT);
    ck_assert_int_eq(paging_resume_memory(hca, token + 1, false), SYN_NO_FAULT);
    ck_assert_int_eq(answer(op, false), SYN_NO_FAULT);
    /* too early: the new fault has another token */
    ck_assert_int_eq(paging_resume_memory(hca, token, false), SYN_OK);
    go_on();
    ck_assert_int_eq(paging_resume_memory(hca, token, false), SYN_NO_FAULT);
    token = expect_memory_event(op);
    fault_page_in(&missing);
    ck_assert_int_eq(paging_resume_memory(hca, token, false), SYN_OK);
    go_on();
    expect_done(op);
}
END_TEST

/* The access begins in the midst of a page. It ends at the page's end, or in the next page. */
START_TEST(the_memory_scheme_counts_the_pages_of_the_access)
{
    const uint32_t len = _i ? 500 : 100;
    const struct prm_memory_page_fault_event *e;
    const struct prm_eqe *eqe;
    struct lab_wr wr;

    left->hca.memory_faults = right->hca.memory_faults = true;
    from = page_aligned(lab_mem(left, 2 * PAGE, 3));
    to = page_aligned(lab_mem(right, 3 * PAGE, 0));
    paged = lab_mr(right, to, 2 * PAGE, 0x1f);
    fault_take_out(right, paged, 0);
    fault_take_out(right, paged, 1);
    wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, len, to + PAGE - 100);
    wr.rkey = paged;
    lab_post(&a, &wr);
    lab_run(lab);
    eqe = next_fault(right);
    ck_assert_ptr_nonnull(eqe);
    e = (const void *)PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, va), to);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, demand_fault_pages), _i ? 2 : 1);
    ck_assert_uint_eq(PRM_GET(memory_page_fault_event, e, post_demand_fault_pages), 0);
}
END_TEST

/* -- who may fault ----------------------------------------------------------------------------- */

/* Without the operation's bit, the access fails and the driver hears nothing. */
START_TEST(an_operation_without_its_capability_fails)
{
    static const uint8_t bits[] = {FAULT_SEND,    FAULT_WRITE, FAULT_READ,
                                   FAULT_RECEIVE, FAULT_WRITE, FAULT_READ};
    const struct op *op = &ops[_i];

    left->hca.may_fault[PAGING_RC] &= (uint8_t)~bits[_i];
    right->hca.may_fault[PAGING_RC] &= (uint8_t)~bits[_i];
    from = page_aligned(lab_mem(left, LEN + PAGE, 3));
    to = page_aligned(lab_mem(right, LEN + PAGE, 0));
    paged = lab_mr(faulting(op), op->remote ? to : from, LEN, 0x1f);
    missing = fault_take_out(faulting(op), paged, 1);
    {
        struct lab_wr wr = rdma_wr(op->opcode, from, LEN, to);

        *(op->remote ? &wr.rkey : &wr.sge[0].key) = paged;
        lab_post_recv(&b, to, LEN);
        if (op->opcode == PRM_WQE_OPCODE_SEND && op->remote) {
            PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, paged);
        }
        lab_post(&a, &wr);
    }
    lab_run(lab);
    expect_error(op->opcode, 0, op->never);
    ck_assert_ptr_null(next_fault(faulting(op)));
}
END_TEST

/* -- who ends a fault -------------------------------------------------------------------------- */

START_TEST(a_fault_ends_with_its_qp)
{
    const struct op *op = &ops[_i];
    struct hca *hca;
    uint32_t qpn;

    post(op);
    hca = &faulting(op)->hca;
    qpn = parked(op)->obj.num;
    ck_assert_ptr_nonnull(hca->rdma->paging.first);
    ck_assert_int_eq(qp_destroy(hca, 0, qpn), SYN_OK);
    ck_assert_ptr_null(hca->rdma->paging.first);
    ck_assert_ptr_null(hca->rdma->paging.last);
    ck_assert_int_eq(paging_resume_transport(hca, op->type, qpn, qpn, false), SYN_NO_FAULT);
    go_on();
}
END_TEST

/* The driver has read the event and answers; that harms nobody. */
START_TEST(a_flushed_qp_takes_the_answer)
{
    const struct op *op = &ops[_i];
    struct lab_qp *qp = op->remote ? &b : &a;

    post(op);
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(answer(op, _i & 1), SYN_OK);
    go_on();
    ck_assert_ptr_null(faulting(op)->hca.rdma->paging.first);
    ck_assert_uint_eq(qp->qp->state, PRM_QP_STATE_ERR);
}
END_TEST

/* The driver has not answered the fault of a QP that was reset; a fault of its new life is
 * reported, and its answer counts. */
START_TEST(a_fault_of_a_new_life_is_reported)
{
    const struct op *op = &ops[0];

    post(op);
    ck_assert_ptr_nonnull(next_fault(left));
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    lab_connect(lab, &a, &b, &lab_path);
    lab_run(lab);
    a.sq_pi = 0;
    b.rq_pi = 0;
    post(op);
    expect_event(op);
    fault_page_in(&missing);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    go_on();
    expect_done(op);
}
END_TEST

/* Without the EQ nobody would answer. */
START_TEST(a_fault_ends_with_the_eq)
{
    const struct op *op = &ops[_i];
    struct lab_side *side = faulting(op);
    struct eq *eq;

    post(op);
    eq = eq_for_page_faults(&side->hca);
    ck_assert_uint_eq(eq_obj(eq)->num, side->eqn);
    /* the CQ uses the lab's EQ, so the EQ stops taking page faults instead of ending */
    memset(side->hca.eqs_for[PRM_EVENT_TYPE_PAGE_FAULT], 0,
           sizeof(side->hca.eqs_for[PRM_EVENT_TYPE_PAGE_FAULT]));
    paging_follow_eqs(&side->hca);
    ck_assert_ptr_null(side->hca.pager);
    go_on();
    ck_assert_ptr_null(side->hca.rdma->paging.first);
    ck_assert_uint_eq(side->hca.rdma->paging.ending, 0);
    {
        struct lab_cqe cqe;

        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
    }
}
END_TEST

/* Another EQ that takes page faults changes nothing, until the first one is gone. Who reads the
 * second EQ does not know the faults of the first. */
START_TEST(a_fault_stays_with_its_eq_and_not_with_the_next)
{
    const struct op *op = &ops[_i];
    struct lab_side *side = faulting(op);
    const uint64_t faults[4] = {1ull << PRM_EVENT_TYPE_PAGE_FAULT};
    uint64_t page = GUINT64_TO_BE(fake_host_alloc(&side->host, PAGE, PAGE));
    struct prm_eqc eqc[1] = {0};
    struct lab_cqe cqe;
    uint32_t second;

    post(op);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, side->uarn);
    ck_assert_int_eq(eq_create(&side->hca, 0, eqc, &page, 1, faults, &second), SYN_OK);
    go_on();
    ck_assert_ptr_nonnull(side->hca.rdma->paging.first);
    expect_none(left);
    side->hca.eqs_for[PRM_EVENT_TYPE_PAGE_FAULT][side->eqn / 64] &= ~(1ull << side->eqn % 64);
    paging_follow_eqs(&side->hca);
    ck_assert_uint_eq(eq_obj(eq_for_page_faults(&side->hca))->num, second);
    ck_assert_ptr_nonnull(side->hca.pager);
    go_on();
    ck_assert_ptr_null(side->hca.rdma->paging.first);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
}
END_TEST

/* The event is not lost: it comes when the driver has taken events. */
START_TEST(a_fault_waits_for_room_in_the_eq)
{
    const struct op *op = &ops[_i];
    struct lab_side *side = faulting(op);
    uint8_t data[EQE_DATA_LEN] = {0};
    const struct prm_eqe *eqe;

    for (unsigned i = 0; i < 1u << LAB_EQ_LOG; i++) {
        eq_post(&side->hca, side->eqn, PRM_EVENT_TYPE_GPIO_EVENT, 0, data);
    }
    post(op);
    ck_assert_ptr_null(next_fault(side));
    eq_doorbell(&side->hca, side->uarn, side->eqn << 24 | 1u << LAB_EQ_LOG, true);
    lab_run(lab);
    eqe = next_fault(side);
    ck_assert_ptr_nonnull(eqe);
    fault_page_in(&missing);
    ck_assert_int_eq(answer(op, false), SYN_OK);
    go_on();
    expect_done(op);
}
END_TEST

/* A fault whose event waits for room ends with its QP, and leaves nothing in the EQ. */
START_TEST(a_waiting_fault_ends_with_its_qp)
{
    const struct op *op = &ops[_i];
    struct lab_side *side = faulting(op);
    uint8_t data[EQE_DATA_LEN] = {0};

    for (unsigned i = 0; i < 1u << LAB_EQ_LOG; i++) {
        eq_post(&side->hca, side->eqn, PRM_EVENT_TYPE_GPIO_EVENT, 0, data);
    }
    post(op);
    ck_assert_int_eq(qp_destroy(&side->hca, 0, parked(op)->obj.num), SYN_OK);
    eq_doorbell(&side->hca, side->uarn, side->eqn << 24 | 1u << LAB_EQ_LOG, true);
    go_on();
    ck_assert_ptr_null(next_fault(side));
}
END_TEST

/* A fault that cannot be kept is an error at once. */
START_TEST(without_memory_a_fault_is_an_error)
{
    const struct op *op = &ops[1];
    struct lab_wr wr;

    from = page_aligned(lab_mem(left, LEN + PAGE, 3));
    to = page_aligned(lab_mem(right, LEN + PAGE, 0));
    write_from(from, 16, to); /* the QP has what it needs to send */
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    paged = lab_mr(left, from, LEN, 0x1f);
    missing = fault_take_out(left, paged, 1);
    wr = rdma_wr(op->opcode, from, LEN, to);
    wr.sge[0].key = paged;
    lab_post(&a, &wr);
    left->hca.memory.limit = left->hca.memory.used;
    lab_run(lab);
    expect_error(op->opcode, 1, op->never);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("page faults");
    TCase *tc = tcase_create("all");
    int n = G_N_ELEMENTS(ops);

    tcase_add_checked_fixture(tc, setup_pager, teardown);
    tcase_add_loop_test(tc, a_fault_is_an_event_and_its_answer_ends_it, 0, n);
    tcase_add_loop_test(tc, a_page_that_is_still_missing_is_a_new_fault, 0, n);
    tcase_add_loop_test(tc, an_answer_with_error_ends_the_operation, 0, n);
    tcase_add_loop_test(tc, the_memory_scheme_names_key_and_address, 0, n);
    tcase_add_loop_test(tc, an_operation_without_its_capability_fails, 0, n);
    tcase_add_loop_test(tc, a_fault_ends_with_its_qp, 0, n);
    tcase_add_test(tc, an_event_names_the_wqe);
    tcase_add_test(tc, many_faults_make_long_rnr_naks);
    tcase_add_loop_test(tc, the_memory_scheme_counts_the_pages_of_the_access, 0, 2);
    tcase_add_test(tc, a_fault_of_a_new_life_is_reported);
    tcase_add_loop_test(tc, a_flushed_qp_takes_the_answer, 0, n);
    tcase_add_loop_test(tc, a_fault_ends_with_the_eq, 0, n);
    tcase_add_loop_test(tc, a_fault_stays_with_its_eq_and_not_with_the_next, 0, G_N_ELEMENTS(ops));
    tcase_add_loop_test(tc, a_fault_waits_for_room_in_the_eq, 0, n);
    tcase_add_loop_test(tc, the_refusal_of_a_page_is_no_refusal_of_another, 0, n);
    tcase_add_loop_test(tc, a_waiting_fault_ends_with_its_qp, 0, n);
    tcase_add_test(tc, without_memory_a_fault_is_an_error);
    suite_add_tcase(s, tc);
    return s;
}
