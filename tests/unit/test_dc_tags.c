/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A DC target on an XRQ: its responders match what their initiators send. Initiators are on side 0,
 * the target on side 1; path MTU is 1024 bytes.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/unit/dc_lab.h"
#include "tests/unit/suite.h"

#define TAGS   8
#define HEADER PRM_SIZE(tmh)
#define ROOM   4096

static struct lab *lab;
static struct lab_side *near, *far;
static struct lab_qp one, two;
static struct lab_dct dct;
static struct srq *xrq;
static uint64_t src, dst, wqes;

static void make_xrq(void)
{
    struct prm_tag_matching_topology_context tags[1] = {0};
    struct srq_attr attr = {
        .kind = OBJ_XRQ,
        .pdn = far->pdn,
        .cqn = far->cqn,
        .user_index = USER_INDEX_CQE_V0,
        .log_size = DC_LAB_LOG,
        .log_stride = 6,
        .tags = tags,
        .fetches = true,
    };

    PRM_SET(tag_matching_topology_context, tags, log_matching_list_sz, 3);
    dct.ring = lab_mem(far, 64 << DC_LAB_LOG, 0);
    dct.dbr = attr.dbr = lab_mem(far, 8, 0);
    attr.buf = lab_buf(dct.ring, 64 << DC_LAB_LOG);
    ck_assert_int_eq(srq_create(&far->hca, &attr, &xrq), SYN_OK);
    for (unsigned i = 0; i < 1 << DC_LAB_LOG; i++) {
        PRM_SET(wqe_srq_next_seg, lab_ptr(far, dct.ring + i * 64ull, 64), next_wqe_index,
                (i + 1) % (1 << DC_LAB_LOG));
    }
}

static void setup(void)
{
    struct prm_dctc dctc[1];

    lab = lab_new();
    near = &lab->side[0];
    far = &lab->side[1];
    dct = (struct lab_dct){.side = far};
    make_xrq();
    dct.srq = xrq;
    lab_dctc(far, dctc);
    ck_assert_int_eq(lab_dct_create(far, dctc, &dct), SYN_OK);
    lab_dci_new(near, &lab_dci, NULL, &one);
    lab_dci_new(near, &lab_dci, NULL, &two);
    src = lab_mem(near, 2 * ROOM, 1);
    dst = lab_mem(far, TAGS * ROOM, 0);
    wqes = lab_mem(far, TAGS * ROOM, 0);
}

static void teardown(void)
{
    lab_free(lab);
}

static uint16_t append(uint64_t tag, uint32_t len)
{
    uint16_t handle = xrq->tags->append_next;
    struct sge buffer = {.va = dst + handle * ROOM, .len = len, .lkey = far->key};

    ck_assert_uint_eq(
        tag_list_append(xrq->tags, (uint16_t)((handle + 1) % TAGS), tag, UINT64_MAX, &buffer),
        handle);
    return handle;
}

/* Each initiator sends from memory of its own. */
static uint64_t memory_of(const struct lab_qp *dci)
{
    return src + (dci == &two ? ROOM : 0);
}

static void send_tagged(struct lab_qp *dci, uint8_t op, uint64_t tag, uint32_t len)
{
    struct prm_tmh *tmh = lab_ptr(near, memory_of(dci), sizeof(*tmh));
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .unsignaled = true,
                        .sge = {{memory_of(dci), (uint32_t)HEADER + len, 0}},
                        .num_sge = 1};

    PRM_SET(tmh, tmh, op, op);
    PRM_SET(tmh, tmh, tag, tag);
    lab_post(dci, lab_to(&wr, &dct));
}

static const struct prm_cqe64 *next_cqe(void)
{
    uint32_t slot = far->cq_ci & ((1u << LAB_CQ_LOG) - 1);
    const struct prm_cqe64 *cqe = lab_ptr(far, far->cq_ring + 64 * slot, 64);
    struct lab_cqe taken;

    ck_assert(lab_poll(far, &taken));
    return cqe;
}

static const struct prm_cqe64 *expect(uint8_t op, uint16_t handle)
{
    const struct prm_cqe64 *cqe = next_cqe();

    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app), PRM_CQE_APP_TAG_MATCHING);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app_op), op);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), dct.dctn);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), xrq->obj.num);
    if (op != PRM_CQE_TM_OP_UNEXPECTED) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, app_info), handle);
    }
    return cqe;
}

#define EXPECT(op, handle) expect(PRM_CQE_TM_OP_##op, handle)

static void expect_none(void)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(far, &cqe));
}

static void expect_data(const struct lab_qp *dci, uint16_t handle, uint32_t len)
{
    ck_assert_mem_eq(lab_ptr(far, dst + handle * ROOM, len),
                     lab_ptr(near, memory_of(dci) + HEADER, len), len);
}

START_TEST(messages_of_all_initiators_are_matched)
{
    uint16_t first = append(1, ROOM), second = append(2, ROOM);

    lab_dct_post_recv(&dct, wqes, ROOM);
    send_tagged(&one, PRM_TM_OP_EAGER, 2, 50);
    lab_run(lab);
    EXPECT(CONSUMED_MSG, second);
    expect_data(&one, second, 50);
    send_tagged(&two, PRM_TM_OP_EAGER, 1, 3000);
    lab_run(lab);
    EXPECT(CONSUMED, first);
    EXPECT(EXPECTED, first);
    expect_data(&two, first, 3000);
    send_tagged(&two, PRM_TM_OP_EAGER, 1, 10);
    lab_run(lab);
    EXPECT(UNEXPECTED, 0);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    expect_none();
}
END_TEST

/* A target has no send queue that could fetch, and rndv_offload_dc is not advertised. */
START_TEST(a_rendezvous_is_left_to_software)
{
    uint16_t handle = append(1, ROOM);

    send_tagged(&one, PRM_TM_OP_RNDV, 1, 40);
    lab_run(lab);
    ck_assert_uint_eq(PRM_GET(cqe64, EXPECT(CONSUMED_MSG_SW_RNDV, handle), byte_cnt), HEADER + 40);
    expect_none();
}
END_TEST

/* The responder of one initiator ends; that of the other goes on. */
START_TEST(a_fault_cancels_one_initiators_message)
{
    uint16_t narrow = append(1, 20), wide = append(2, ROOM);

    send_tagged(&one, PRM_TM_OP_EAGER, 1, 21);
    lab_run(lab);
    EXPECT(MSG_COMPLETION_CANCELED, narrow);
    ck_assert_uint_eq(xrq->tags->entries[narrow].state, TAG_FREE);
    ck_assert_uint_eq(one.qp->state, PRM_QP_STATE_ERR);
    send_tagged(&two, PRM_TM_OP_EAGER, 2, 21);
    lab_run(lab);
    EXPECT(CONSUMED_MSG, wide);
    expect_none();
}
END_TEST

/* The second packet of a message, and whatever is sent instead, is lost. */
static bool only_first(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    uint8_t op = pkt->opcode & 0x1f;

    return from == 1 || (op != BTH_SEND_MIDDLE && op != BTH_SEND_LAST);
}

START_TEST(a_message_ends_with_its_target)
{
    uint16_t handle = append(1, ROOM);

    lab_dct_post_recv(&dct, wqes, ROOM);
    lab->tap = only_first;
    send_tagged(&one, PRM_TM_OP_EAGER, 1, 2000);
    send_tagged(&two, PRM_TM_OP_EAGER, 2, 2000);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, next_cqe(), app_op), PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    ck_assert_uint_eq(xrq->tags->hw_phase, 0);
    expect_none();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tag matching over DC");
    TCase *tc = tcase_create("target");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, messages_of_all_initiators_are_matched);
    tcase_add_test(tc, a_rendezvous_is_left_to_software);
    tcase_add_test(tc, a_fault_cancels_one_initiators_message);
    tcase_add_test(tc, a_message_ends_with_its_target);
    suite_add_tcase(suite, tc);
    return suite;
}
