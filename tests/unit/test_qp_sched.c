/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests QPs in scheduling elements: requests and READ data keep the limit of the group that the QP
 * is in (mlx5dv_modify_qp_sched_elem()), and a QP leaves its group whatever happens to it.
 */
#include "model/rdma/qp_sched.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define US    1000ull
#define BYTES (64u << 10)

static uint64_t from, to;

static void setup_data(void)
{
    setup();
    from = lab_mem(left, BYTES, 1);
    to = lab_mem(right, BYTES, 0);
}

/* A group in a tree of its own, with a limit. */
static uint32_t group(struct lab_side *side, uint32_t mbps)
{
    struct prm_scheduling_context ctx[1] = {0};
    uint32_t id;

    PRM_SET(scheduling_context, ctx, element_type, PRM_SCHEDULING_ELEMENT_TYPE_TSAR);
    ck_assert_int_eq(sched_create(&side->hca, 0, ctx, &id), SYN_OK);
    PRM_SET(scheduling_context, ctx, element_type, PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP);
    PRM_SET(scheduling_context, ctx, parent_element_id, id);
    PRM_SET(scheduling_context, ctx, max_average_bw, mbps);
    ck_assert_int_eq(sched_create(&side->hca, 0, ctx, &id), SYN_OK);
    return id;
}

static uint32_t refs(struct lab_side *side, uint32_t id)
{
    return obj_find(&side->hca.sched_elements, id)->refs;
}

static enum syn join(struct lab_qp *qp, uint32_t requests, uint32_t answers)
{
    struct prm_qp_context_extension ext[1] = {0};
    struct prm_qpc qpc[1] = {0};

    PRM_SET(qp_context_extension, ext, qos_queue_group_id_requester, requests);
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_responder, answers);
    return qp_modify(&qp->side->hca, 0, qp->qp->obj.num, PRM_CMD_OP_RTS2RTS_QP,
                     1ull << PRM_QP_OPTPAR_QOS_QUEUE_GROUP, qpc, ext);
}

static void post(uint8_t opcode)
{
    struct lab_wr wr = rdma_wr(opcode, from, BYTES, to);

    lab_post(&a, &wr);
}

static uint64_t time_of(uint8_t opcode)
{
    uint64_t start = left->host.now;
    struct lab_cqe cqe;

    post(opcode);
    lab_run(lab);
    while (!lab_poll(left, &cqe)) {
        ck_assert_uint_lt(left->host.now - start, 1000 * LAB_MS);
        lab_advance(lab, 10 * US);
    }
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_mem_eq(lab_ptr(left, from, BYTES), lab_ptr(right, to, BYTES), BYTES);
    return left->host.now - start;
}

/* 64 KiB, and their headers, take 5.2 ms and more at 100 Mb/s; 100 us of it may leave early. */
static void expect_time(uint64_t ns)
{
    ck_assert_uint_ge(ns, 5000 * US);
    ck_assert_uint_le(ns, 5900 * US);
}

START_TEST(requests_keep_the_limit_of_their_group)
{
    ck_assert_int_eq(join(&a, group(left, 100), 0), SYN_OK);
    expect_time(time_of(PRM_WQE_OPCODE_RDMA_WRITE));
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(read_data_keeps_the_limit_of_the_responders_group)
{
    uint64_t ns;

    ck_assert_int_eq(join(&b, 0, group(right, 100)), SYN_OK);
    ns = time_of(PRM_WQE_OPCODE_RDMA_READ);
    expect_time(ns);
    /* requests are in no group */
    ck_assert_uint_lt(time_of(PRM_WQE_OPCODE_RDMA_WRITE), 100 * US);
}
END_TEST

START_TEST(a_qp_that_leaves_its_group_goes_on_at_once)
{
    uint32_t id = group(left, 1);
    struct lab_cqe cqe;

    ck_assert_int_eq(join(&a, id, 0), SYN_OK);
    ck_assert_uint_eq(refs(left, id), 1);
    post(PRM_WQE_OPCODE_RDMA_WRITE);
    lab_run(lab);
    ck_assert(!lab_poll(left, &cqe));
    ck_assert_int_eq(join(&a, 0, 0), SYN_OK);
    ck_assert_uint_eq(refs(left, id), 0);
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* Traffic classes (QETCR): those of priority 3, which the DSCP of the path stands for. */
static void limit_class(struct lab_side *side, struct lab_qp *qp)
{
    struct vport *vport = side->hca.vport;
    struct uplink_phy *phy = &vport->uplink->phy;

    phy->trusts_dscp = true;
    phy->dscp_priority[10] = 3;
    phy->priority_tc[3] = 2;
    phy->tc[2].max = (struct tc_limit){TC_100_MBPS, 1};
    qp->qp->peer.path.tclass = 10 << 2;
    ets_changed(vport->sw);
}

START_TEST(packets_keep_the_limit_of_their_class)
{
    limit_class(left, &a);
    limit_class(right, &b);
    expect_time(time_of(PRM_WQE_OPCODE_RDMA_WRITE));
    expect_time(time_of(PRM_WQE_OPCODE_RDMA_READ));
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    a.qp->peer.path.tclass = 0; /* a class without a limit */
    ck_assert_uint_lt(time_of(PRM_WQE_OPCODE_RDMA_WRITE), 100 * US);
}
END_TEST

/* The QP is in a class since its first packet, and leaves it with its end. */
START_TEST(a_qp_of_a_class_may_end_while_it_waits)
{
    limit_class(left, &a);
    post(PRM_WQE_OPCODE_RDMA_WRITE);
    lab_run(lab);
    ck_assert_int_eq(qp_destroy(&left->hca, 0, a.qp->obj.num), SYN_OK);
    lab_advance(lab, 100 * LAB_MS);
    hca_reset(&left->hca);
    ck_assert_ptr_nonnull(left->hca.ets);
}
END_TEST

/* RST, ERR, and the end of a QP whose request or answer waits. */
START_TEST(a_qp_may_end_while_it_waits)
{
    static const uint16_t moves[] = {PRM_CMD_OP_2RST_QP, PRM_CMD_OP_2ERR_QP};
    bool reads = _i / 3;
    struct lab_qp *qp = reads ? &b : &a;
    uint32_t id = group(qp->side, 1);

    ck_assert_int_eq(reads ? join(qp, 0, id) : join(qp, id, 0), SYN_OK);
    post(reads ? PRM_WQE_OPCODE_RDMA_READ : PRM_WQE_OPCODE_RDMA_WRITE);
    lab_run(lab);
    if (_i % 3 < 2) {
        ck_assert_int_eq(lab_modify(qp, moves[_i % 3], NULL, 0, NULL), SYN_OK);
        ck_assert_uint_eq(refs(qp->side, id), 1);
        lab_advance(lab, 20 * LAB_MS);
    }
    ck_assert_int_eq(qp_destroy(&qp->side->hca, 0, qp->qp->obj.num), SYN_OK);
    ck_assert_uint_eq(refs(qp->side, id), 0);
    sched_free(&qp->side->hca, obj_find(&qp->side->hca.sched_elements, id));
    lab_advance(lab, 100 * LAB_MS);
}
END_TEST

START_TEST(a_query_tells_the_groups)
{
    struct prm_qp_context_extension ext[1] = {0};
    uint32_t requests = group(left, 0), answers = group(left, 0);

    ck_assert_int_eq(join(&a, requests, answers), SYN_OK);
    qp_query_extension(&left->hca, a.qp->obj.num, ext);
    ck_assert_uint_eq(PRM_GET(qp_context_extension, ext, qos_queue_group_id_requester), requests);
    ck_assert_uint_eq(PRM_GET(qp_context_extension, ext, qos_queue_group_id_responder), answers);
}
END_TEST

START_TEST(groups_that_do_not_exist_are_refused)
{
    uint32_t id = group(left, 0);
    struct prm_qp_context_extension ext[1] = {0};

    ck_assert_int_eq(join(&a, 99, 0), SYN_NO_SCHEDULING_ELEMENT);
    ck_assert_int_eq(join(&a, id, 99), SYN_NO_SCHEDULING_ELEMENT);
    ck_assert_int_eq(join(&a, id - 1, 0), SYN_SCHED_KIND); /* the root */
    ck_assert_uint_eq(refs(left, id), 0);
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_requester, id);
    ck_assert_int_eq(qp_check_extension(&left->hca, a.qp->qpc, ext), SYN_QP_FEATURE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("qp_sched");
    TCase *tc = tcase_create("qp_sched");

    tcase_add_checked_fixture(tc, setup_data, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, requests_keep_the_limit_of_their_group);
    tcase_add_test(tc, packets_keep_the_limit_of_their_class);
    tcase_add_test(tc, a_qp_of_a_class_may_end_while_it_waits);
    tcase_add_test(tc, read_data_keeps_the_limit_of_the_responders_group);
    tcase_add_test(tc, a_qp_that_leaves_its_group_goes_on_at_once);
    tcase_add_loop_test(tc, a_qp_may_end_while_it_waits, 0, 6);
    tcase_add_test(tc, a_query_tells_the_groups);
    tcase_add_test(tc, groups_that_do_not_exist_are_refused);
    suite_add_tcase(s, tc);
    return s;
}
