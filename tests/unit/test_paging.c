/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests memory that is missing at the moment, and memory that does not belong to the host. Steps
 * that meet a missing page are parked and resumed (model/core/fault.h); keys may lead to the
 * device's own memory (model/memory/place.h).
 */
#include "model/memory/mkey_priv.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LEN  10000 /* bytes of a message: three pages of memory, ten packets */
#define PAGE 4096

/* A pager that records its calls. */
static struct {
    struct pager pager;
    unsigned told;
    struct qp *qp;
    enum fault_side side;
    struct mem_fault fault;
} os;

static bool note_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                       const struct mem_fault *fault)
{
    os.told++;
    os.qp = qp;
    os.side = side;
    os.fault = *fault;
    return true;
}

/* The page that is removed and brought in. */
static uint64_t *page_entry, page_address;

static uint32_t paged_key(struct lab_side *side, uint64_t addr, unsigned page)
{
    uint32_t key = lab_mr(side, addr, LEN, 0x1f);
    struct mkey *mkey = mkey_find(&side->hca, key >> 8);

    page_entry = &mkey->mtt[page];
    page_address = *page_entry;
    *page_entry = 0;
    side->hca.pager = &os.pager;
    return key;
}

static void page_in(void)
{
    *page_entry = page_address;
}

static void setup_paging(void)
{
    memset(&os, 0, sizeof(os));
    os.pager.fault = note_fault;
    setup();
}

/* Expects the pager's fault: of the second page, once, however often it is met. */
static void expect_fault(struct lab_qp *qp, enum fault_side side, uint32_t key, uint64_t addr,
                         bool is_write)
{
    lab_run(lab);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(os.told, 1);
    ck_assert_ptr_eq(os.qp, qp->qp);
    ck_assert_int_eq(os.side, side);
    ck_assert_uint_eq(os.fault.key, key);
    ck_assert_uint_eq(os.fault.va, addr + PAGE);
    ck_assert(os.fault.is_write == is_write);
    expect_none(left);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_RTS);
}

static void resume(struct lab_qp *qp, enum fault_side side, bool error)
{
    qp_resume(qp->qp, side, error);
    lab_run(lab);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
}

/* An operation of a, and the side and half of a QP that misses a page in it. */
static const struct op {
    const char *name;
    uint8_t opcode;
    bool remote; /* the page is the right side's */
    enum fault_side side;
    bool is_write;
    uint8_t never; /* the syndrome if it never comes */
} ops[] = {
    {"SEND, what is sent", PRM_WQE_OPCODE_SEND, false, FAULT_REQUESTER, false,
     PRM_CQE_SYNDROME_LOCAL_PROT_ERR},
    {"WRITE, what is sent", PRM_WQE_OPCODE_RDMA_WRITE, false, FAULT_REQUESTER, false,
     PRM_CQE_SYNDROME_LOCAL_PROT_ERR},
    {"READ, where it comes to", PRM_WQE_OPCODE_RDMA_READ, false, FAULT_REQUESTER, true,
     PRM_CQE_SYNDROME_LOCAL_PROT_ERR},
    {"SEND, where it comes to", PRM_WQE_OPCODE_SEND, true, FAULT_RESPONDER, true,
     PRM_CQE_SYNDROME_REMOTE_OP_ERR},
    {"WRITE, where it comes to", PRM_WQE_OPCODE_RDMA_WRITE, true, FAULT_RESPONDER, true,
     PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR},
    {"READ, what is read", PRM_WQE_OPCODE_RDMA_READ, true, FAULT_RESPONDER, false,
     PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR},
};

static uint64_t from, to; /* on left and right */

static uint64_t page_aligned(uint64_t addr)
{
    return (addr + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Posts the operation with a page missing. Returns the key. */
static uint32_t post(const struct op *op)
{
    bool reads = op->opcode == PRM_WQE_OPCODE_RDMA_READ;
    struct lab_wr wr;
    uint32_t key;

    from = page_aligned(lab_mem(left, LEN + PAGE, reads ? 0 : 3));
    to = page_aligned(lab_mem(right, LEN + PAGE, reads ? 3 : 0));
    key = paged_key(op->remote ? right : left, op->remote ? to : from, 1);
    wr = rdma_wr(op->opcode, from, LEN, to);
    if (op->remote) {
        wr.rkey = key;
    } else {
        wr.sge[0].key = key;
    }
    if (op->opcode == PRM_WQE_OPCODE_SEND) {
        lab_post_recv(&b, to, LEN);
        if (op->remote) {
            PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, key);
        }
    }
    lab_post(&a, &wr);
    return key;
}

START_TEST(a_step_that_misses_a_page_goes_on_when_it_is_there)
{
    const struct op *op = &ops[_i];
    uint32_t key = post(op);

    expect_fault(op->remote ? &b : &a, op->side, key, op->remote ? to : from, op->is_write);
    page_in();
    resume(op->remote ? &b : &a, op->side, false);
    expect_sent(op->opcode, 0);
    same(from, to, LEN);
    ck_assert_uint_eq(os.told, 1);
    if (op->opcode == PRM_WQE_OPCODE_SEND) {
        expect_received(LEN);
    }
}
END_TEST

/* A message has begun when its first packet is stored. Until then the packet is requested again,
 * and is not a message within another (IBTA 9.7.4). */
START_TEST(a_first_packet_may_miss_its_page)
{
    struct lab_wr wr;
    uint32_t key;

    from = page_aligned(lab_mem(left, LEN + PAGE, 3));
    to = page_aligned(lab_mem(right, LEN + PAGE, 0));
    key = paged_key(right, to, 0);
    lab_post_recv(&b, to, LEN);
    PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, key);
    wr = rdma_wr(PRM_WQE_OPCODE_SEND, from, _i ? LEN : 100, to);
    lab_post(&a, &wr);
    lab_run(lab);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(os.told, 1);
    expect_none(left);
    page_in();
    resume(&b, FAULT_RESPONDER, false);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(_i ? LEN : 100);
    same(from, to, _i ? LEN : 100);
}
END_TEST

/* If the pager resumes it too early, the pager is called again. */
START_TEST(a_page_that_is_still_missing_is_asked_for_again)
{
    const struct op *op = &ops[_i];
    struct lab_qp *qp = op->remote ? &b : &a;

    post(op);
    lab_run(lab);
    resume(qp, op->side, false);
    ck_assert_uint_eq(os.told, 2);
    expect_none(left);
    page_in();
    resume(qp, op->side, false);
    expect_sent(op->opcode, 0);
    same(from, to, LEN);
}
END_TEST

START_TEST(a_page_that_never_comes_is_an_error)
{
    const struct op *op = &ops[_i];

    post(op);
    lab_run(lab);
    ck_assert_uint_eq(os.told, 1);
    resume(op->remote ? &b : &a, op->side, true);
    expect_error(op->opcode, 0, op->never);
    ck_assert_uint_eq(os.told, 1);
    ck_assert_ptr_nonnull(strstr((op->remote ? right : left)->host.last_line,
                                 " has a page that is missing and will not come"));
}
END_TEST

/* Nothing of the operation remains if the QP is flushed or destroyed. */
START_TEST(a_parked_qp_can_be_flushed_and_destroyed)
{
    const struct op *op = &ops[_i];
    struct lab_qp *qp = op->remote ? &b : &a;

    post(op);
    lab_run(lab);
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    resume(qp, op->side, false);
    if (!op->remote) {
        expect_error(op->opcode, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    ck_assert_int_eq(qp_destroy(&qp->side->hca, 0, qp->qp->obj.num), SYN_OK);
    lab_run(lab);
}
END_TEST

/* Without a pager nobody would bring the page in. */
START_TEST(without_a_pager_a_missing_page_does_not_answer)
{
    post(&ops[1]);
    left->hca.pager = NULL;
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* -- a memory of the device's own -------------------------------------------------------------- */

static _Alignas(8) uint8_t device_memory[4 * PAGE];

static bool device_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    if (addr > sizeof(device_memory) || len > sizeof(device_memory) - addr) {
        return false;
    }
    memcpy(buf, device_memory + addr, len);
    return true;
}

static bool device_write(struct hca *hca, uint64_t addr, const void *buf, size_t len)
{
    if (addr > sizeof(device_memory) || len > sizeof(device_memory) - addr) {
        return false;
    }
    memcpy(device_memory + addr, buf, len);
    return true;
}

static bool device_atomic(struct hca *hca, uint64_t addr, size_t len, struct host_atomic *op)
{
    host_atomic_do(device_memory + addr, len, op);
    return true;
}

static const struct mem_space device_space = {device_read, device_write, device_atomic};

/* Makes a key of the device's memory, for addresses from va on. */
static uint32_t device_key(uint64_t va)
{
    uint32_t key = lab_mr(right, va, LEN, 0x1f);
    struct mkey *mkey = mkey_find(&right->hca, key >> 8);

    for (unsigned i = 0; i < 3; i++) {
        mkey->mtt[i] = (i * PAGE) | MTT_RIGHTS;
    }
    mkey->space = MEM_SPACE_DEVICE;
    mem_space_set(&right->hca, MEM_SPACE_DEVICE, &device_space);
    return key;
}

START_TEST(a_key_may_lead_to_the_devices_own_memory)
{
    uint64_t addr = lab_mem(left, LEN, 5), back = lab_mem(left, LEN, 0), word = lab_mem(left, 8, 0);
    uint64_t va = 16 * PAGE, was;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, addr, LEN, va);

    wr.rkey = device_key(va);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_mem_eq(device_memory, lab_ptr(left, addr, LEN), LEN);

    wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
    wr.sge[0].addr = back;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 1);
    ck_assert_mem_eq(lab_ptr(left, back, LEN), device_memory, LEN);

    memcpy(&was, device_memory + 8, 8);
    wr.opcode = PRM_WQE_OPCODE_ATOMIC_FA;
    wr.sge[0] = (struct lab_sge){word, 8, 0};
    wr.raddr = va + 8;
    wr.swap_add = 3;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 2);
    ck_assert_mem_eq(lab_ptr(left, word, 8), &was, 8);
    was += 3;
    ck_assert_mem_eq(device_memory + 8, &was, 8);
}
END_TEST

START_TEST(a_space_that_is_gone_does_not_answer)
{
    uint64_t addr = lab_mem(left, LEN, 5), va = 16 * PAGE;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, addr, LEN, va);

    wr.rkey = device_key(va);
    mem_space_set(&right->hca, MEM_SPACE_DEVICE, NULL);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_REMOTE_OP_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("paging");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup_paging, teardown);
    tcase_add_loop_test(tc, a_step_that_misses_a_page_goes_on_when_it_is_there, 0,
                        G_N_ELEMENTS(ops));
    tcase_add_loop_test(tc, a_first_packet_may_miss_its_page, 0, 2);
    tcase_add_loop_test(tc, a_page_that_is_still_missing_is_asked_for_again, 0, G_N_ELEMENTS(ops));
    tcase_add_loop_test(tc, a_page_that_never_comes_is_an_error, 0, G_N_ELEMENTS(ops));
    tcase_add_loop_test(tc, a_parked_qp_can_be_flushed_and_destroyed, 0, G_N_ELEMENTS(ops));
    tcase_add_test(tc, without_a_pager_a_missing_page_does_not_answer);
    tcase_add_test(tc, a_key_may_lead_to_the_devices_own_memory);
    tcase_add_test(tc, a_space_that_is_gone_does_not_answer);
    suite_add_tcase(s, tc);
    return s;
}
