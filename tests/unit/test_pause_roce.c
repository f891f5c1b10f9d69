/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests pauses of the link partner: which RoCE packets they hold. */
#include <string.h>
#include "model/port/pause.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define BYTES    4096
#define DSCP     26
#define PRIORITY 5
#define XOFF     0xffff

static uint64_t from, to;

static struct uplink *uplink_of(struct lab_side *side)
{
    return side->hca.vport->uplink;
}

static void setup_data(void)
{
    setup();
    from = lab_mem(left, BYTES, 1);
    to = lab_mem(right, BYTES, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct lab_side *side = i ? right : left;

        uplink_of(side)->phy.pfc_rx = 1u << PRIORITY;
        uplink_of(side)->phy.trusts_dscp = true;
        uplink_of(side)->phy.dscp_priority[DSCP] = PRIORITY;
    }
}

static void set_dscp(struct lab_qp *qp, unsigned dscp)
{
    qp->qp->peer.path.tclass = (uint8_t)(dscp << 2);
}

/* The link partner holds priority 5 of a side's port. */
static void pfc(struct lab_side *side, uint16_t quanta)
{
    static const uint8_t to_port[14] = {0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08};
    uint8_t frame[60] = {0};

    memcpy(frame, to_port, sizeof(to_port));
    prm_store16(frame + 14, 0x0101);
    frame[17] = 1u << PRIORITY;
    prm_store16(frame + 18 + 2 * PRIORITY, quanta);
    pause_rx(side->hca.vport->sw, frame, sizeof(frame));
    lab_run(lab);
}

static void post(uint8_t opcode)
{
    struct lab_wr wr = rdma_wr(opcode, from, BYTES, to);

    lab_post(&a, &wr);
    lab_run(lab);
}

static bool completes(void)
{
    struct lab_cqe cqe;
    bool is_there = lab_poll(left, &cqe);

    ck_assert(!is_there || cqe.opcode == PRM_CQE_OPCODE_REQ);
    return is_there;
}

START_TEST(requests_of_a_held_priority_wait)
{
    set_dscp(&a, DSCP);
    pfc(left, XOFF);
    post(PRM_WQE_OPCODE_RDMA_WRITE);
    ck_assert(!completes());
    ck_assert_uint_eq(lab->num_packets, 0);
    lab_advance(lab, LAB_MS);
    ck_assert(completes());
    ck_assert_mem_eq(lab_ptr(left, from, BYTES), lab_ptr(right, to, BYTES), BYTES);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(requests_of_other_priorities_pass)
{
    set_dscp(&a, DSCP + 1);
    pfc(left, XOFF);
    post(PRM_WQE_OPCODE_RDMA_WRITE);
    ck_assert(completes());
}
END_TEST

/* The responder's answers have its own path's priority. */
START_TEST(answers_of_a_held_priority_wait)
{
    set_dscp(&b, DSCP);
    pfc(right, XOFF);
    post(PRM_WQE_OPCODE_RDMA_READ);
    ck_assert(!completes());
    pfc(right, 0);
    ck_assert(completes());
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("pause-roce");
    TCase *tcase = tcase_create("pause-roce");

    tcase_add_checked_fixture(tcase, setup_data, teardown);
    tcase_add_test(tcase, requests_of_a_held_priority_wait);
    tcase_add_test(tcase, requests_of_other_priorities_pass);
    tcase_add_test(tcase, answers_of_a_held_priority_wait);
    suite_add_tcase(suite, tcase);
    return suite;
}
