/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests copies from memory to memory by the DMA engine: WQEs of opcode MMO, as libmlx5's
 * mlx5_wr_memcpy() and DPDK's mlx5_compress post them.
 */
#include "model/memory/mkey_priv.h"
#include "model/queue/mmo.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MOST (1u << MMO_LOG_MAX)
#define PAGE 4096

static const uint8_t metadata[16]; /* the buffer of other variants: no key, no address */

static void setup_enabled(void)
{
    setup();
    a.qp->mmo = true;
}

static struct lab_wr copy_wr(uint64_t from, uint64_t to, uint32_t len)
{
    return (struct lab_wr){
        .opcode = PRM_WQE_OPCODE_MMO,
        .opmod = PRM_MMO_OPMOD_DMA,
        .operands = metadata,
        .operands_len = sizeof(metadata),
        .sge = {{from, len, 0}, {to, len, 0}},
        .num_sge = 2,
    };
}

static void run_copy(const struct lab_wr *wr)
{
    lab_post(&a, wr);
    lab_run(lab);
}

/* Whether the copy has written exactly its destination, which lies in memory of zeros between two
 * pages. */
static void expect_copied(uint64_t from, uint64_t area, size_t at, size_t len)
{
    static const uint8_t zeros[PAGE];
    const uint8_t *to = lab_ptr(left, area, at + len + PAGE);

    ck_assert_mem_eq(to + at, lab_ptr(left, from, len), len);
    ck_assert_mem_eq(to, zeros, MIN(at, PAGE));
    ck_assert_mem_eq(to + at + len, zeros, PAGE);
}

START_TEST(a_copy_is_made_and_nothing_is_sent)
{
    static const uint32_t lengths[] = {1, 64, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 77, MOST};
    uint32_t len = lengths[_i];
    uint64_t from = lab_mem(left, len, 1), area = lab_mem(left, len + 2 * PAGE, 0);
    struct lab_wr wr = copy_wr(from, area + 100, len);

    run_copy(&wr);
    expect_sent(PRM_WQE_OPCODE_MMO, 0);
    expect_copied(from, area, 100, len);
    ck_assert_uint_eq(lab->num_packets, 0);
    /* the next WQE does not go on where this one ended */
    wr.unsignaled = true;
    memset(lab_ptr(left, area, len + PAGE), 0, len + PAGE);
    run_copy(&wr);
    expect_copied(from, area, 100, len);
    expect_none(left);
}
END_TEST

/* A destination may be longer than its source (DPDK passes the room that there is). */
START_TEST(lengths_that_the_engine_does_not_take_are_errors)
{
    static const struct {
        uint32_t from, to;
        uint8_t syndrome;
    } lengths[] = {
        {64, 65, 0},
        {64, 63, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
        {MOST, 0, 0}, /* 0 stands for 2^31 bytes */
        {MOST + 1, MOST + 1, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
        {0, 0, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
    };
    uint64_t from = lab_mem(left, MOST + 1, 1), to = lab_mem(left, MOST + 1, 0);
    struct lab_wr wr = copy_wr(from, to, 0);

    wr.sge[0].len = lengths[_i].from;
    wr.sge[1].len = lengths[_i].to;
    run_copy(&wr);
    if (lengths[_i].syndrome) {
        expect_error(PRM_WQE_OPCODE_MMO, 0, lengths[_i].syndrome);
        ck_assert_uint_eq(*(uint8_t *)lab_ptr(left, to, 1), 0);
    } else {
        expect_sent(PRM_WQE_OPCODE_MMO, 0);
        ck_assert_mem_eq(lab_ptr(left, from, 64), lab_ptr(left, to, 64), 64);
    }
}
END_TEST

START_TEST(a_wqe_that_is_no_copy_fails)
{
    struct lab_wr wr = copy_wr(lab_mem(left, 64, 1), lab_mem(left, 64, 0), 64);

    void *wqe;

    switch (_i) {
    case 0: /* another variant: compression */
        wr.opmod = 2;
        break;
    case 1:
        wr.num_sge = 1;
        break;
    case 2:
        wr.num_sge = 3;
        break;
    case 3: /* the QP is not enabled for it */
        a.qp->mmo = false;
        break;
    default: /* an inline source, or an inline destination */
        break;
    }
    wqe = lab_write_wqe(&a, &wr);
    if (_i > 3) {
        PRM_SET(wqe_data_seg, wqe + (_i == 4 ? 32 : 48), inl, 1);
    }
    lab_ring(&a);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_MMO, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(other_services_have_no_copies)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UC);
    a.qp->mmo = true;
    wr = copy_wr(lab_mem(left, 64, 1), lab_mem(left, 64, 0), 64);
    run_copy(&wr);
    expect_error(PRM_WQE_OPCODE_MMO, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* pyverbs, test_mlx5_dma_memcpy: a destination of another PD, and one without local write, are
 * local protection errors. */
START_TEST(keys_are_checked_as_for_any_local_access)
{
    uint64_t mem = lab_mem(left, 2 * PAGE, 1);
    struct lab_wr wr = copy_wr(mem, lab_mem(left, 64, 0), 64);
    unsigned side = (unsigned)_i % 2;
    uint32_t rights = side ? MEM_LOCAL_READ | MEM_REMOTE_READ : MEM_LOCAL_WRITE;

    wr.sge[side] = (struct lab_sge){mem, 64, lab_mr(left, mem, PAGE, 0x1f)};
    switch (_i / 2) {
    case 0:
        wr.sge[side].key += 0x100000;
        break;
    case 1:
        wr.sge[side].addr = mem + PAGE - 63;
        break;
    case 2:
        left->host.hole = mem + 32;
        break;
    case 3: /* rights that do not suffice; a key of this device can always be read */
        wr.sge[side].key = lab_mr(left, mem, PAGE, rights & 0x1eu);
        break;
    default:
        a.qp->pdn++;
        break;
    }
    run_copy(&wr);
    expect_error(PRM_WQE_OPCODE_MMO, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(counters()->req_local_protection, 1);
}
END_TEST

START_TEST(the_reserved_lkey_is_not_every_queues)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_wr wr;

    attr.programs = true;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    a.qp->mmo = true;
    wr = copy_wr(lab_mem(left, 64, 1), lab_mem(left, 64, 0), 64);
    wr.sge[_i].key = left->hca.resd_lkey;
    run_copy(&wr);
    expect_error(PRM_WQE_OPCODE_MMO, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* The null key is for local access: reads return zeros, writes have no effect. */
START_TEST(the_null_key_gives_zeros_and_takes_anything)
{
    static const uint8_t zeros[64];
    uint64_t mem = lab_mem(left, 64, 1);
    struct lab_wr wr = copy_wr(mem, mem, 64);

    left->hca.null_mkey = 0x200;
    wr.sge[1].key = left->hca.null_mkey;
    run_copy(&wr);
    expect_sent(PRM_WQE_OPCODE_MMO, 0);
    ck_assert_mem_ne(lab_ptr(left, mem, 64), zeros, 64);
    wr = copy_wr(mem, mem, 64);
    wr.sge[0].key = left->hca.null_mkey;
    run_copy(&wr);
    expect_sent(PRM_WQE_OPCODE_MMO, 1);
    ck_assert_mem_eq(lab_ptr(left, mem, 64), zeros, 64);
}
END_TEST

static void post_long_copy(void)
{
    struct lab_wr wr = copy_wr(lab_mem(left, MOST, 1), lab_mem(left, MOST, 0), MOST);

    lab_post(&a, &wr);
}

/* A long copy is made a part at a time. Other queues have their turns in between. */
START_TEST(a_long_copy_keeps_nobody_waiting)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_qp other, target;
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, dst);
    struct lab_cqe cqe;

    lab_rc_pair(lab, &other, &target, &lab_path);
    post_long_copy();
    lab_post(&other, &wr);
    lab_run(lab);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + 8);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_RDMA_WRITE);
    expect_sent(PRM_WQE_OPCODE_MMO, 0);
}
END_TEST

static void begin_long_copy(void)
{
    post_long_copy();
    hca_run(&left->hca, 1);
    ck_assert_uint_gt(a.qp->req.flight->local.have, 0);
    ck_assert_uint_lt(a.qp->req.flight->local.have, MOST);
}

START_TEST(a_copy_that_is_flushed_is_not_continued)
{
    begin_long_copy();
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_MMO, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

/* The program changes a WQE that it has posted, and the device reads the WQE again. */
START_TEST(a_copy_that_has_changed_begins_again)
{
    uint64_t from = lab_mem(left, 64, 1), to = lab_mem(left, 64, 0);
    struct lab_wr wr = copy_wr(from, to, 64);

    begin_long_copy();
    a.sq_pi = 0;
    lab_write_wqe(&a, &wr);
    requester_forget_lines(a.qp);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_MMO, 0);
    ck_assert_mem_eq(lab_ptr(left, to, 64), lab_ptr(left, from, 64), 64);
}
END_TEST

/* -- a page that is missing -------------------------------------------------------------------- */

static unsigned told;

static bool note_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                       const struct mem_fault *fault)
{
    ck_assert_int_eq(side, FAULT_REQUESTER);
    told++;
    return true;
}

/* The part whose page is missing, on either side, is copied when the page is there. */
START_TEST(a_missing_page_parks_the_copy)
{
    struct pager pager = {.fault = note_fault};
    uint64_t from = lab_mem(left, 3 * PAGE, 1), to = lab_mem(left, 3 * PAGE, 0);
    uint64_t paged = _i ? to : from;
    struct lab_wr wr = copy_wr(from, to, 3 * PAGE);
    uint64_t *entry, address;
    struct mkey *mkey;

    wr.sge[_i].key = lab_mr(left, paged, 3 * PAGE, 0x1f);
    mkey = mkey_find(&left->hca, wr.sge[_i].key >> 8);
    entry = &mkey->mtt[1];
    address = *entry;
    *entry = 0;
    left->hca.pager = &pager;
    told = 0;
    run_copy(&wr);
    ck_assert_uint_eq(told, 1);
    expect_none(left);
    *entry = address;
    qp_resume(a.qp, FAULT_REQUESTER, false);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_MMO, 0);
    ck_assert_mem_eq(lab_ptr(left, to, 3 * PAGE), lab_ptr(left, from, 3 * PAGE), 3 * PAGE);
    left->hca.pager = NULL;
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("mmo");
    TCase *tc = tcase_create("mmo");

    tcase_add_checked_fixture(tc, setup_enabled, teardown);
    tcase_add_loop_test(tc, a_copy_is_made_and_nothing_is_sent, 0, 7);
    tcase_add_loop_test(tc, lengths_that_the_engine_does_not_take_are_errors, 0, 5);
    tcase_add_loop_test(tc, a_wqe_that_is_no_copy_fails, 0, 6);
    tcase_add_test(tc, other_services_have_no_copies);
    tcase_add_loop_test(tc, keys_are_checked_as_for_any_local_access, 0, 10);
    tcase_add_loop_test(tc, the_reserved_lkey_is_not_every_queues, 0, 2);
    tcase_add_test(tc, the_null_key_gives_zeros_and_takes_anything);
    tcase_add_test(tc, a_long_copy_keeps_nobody_waiting);
    tcase_add_test(tc, a_copy_that_is_flushed_is_not_continued);
    tcase_add_test(tc, a_copy_that_has_changed_begins_again);
    tcase_add_loop_test(tc, a_missing_page_parks_the_copy, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
