/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests tag matching (rdma-core: Documentation/tag_matching.md), message by message. */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/mkey_priv.h"
#include "tests/unit/suite.h"
#include "tests/unit/tags_bench.h"

/* -- matching ---------------------------------------------------------------------------------- */

/* "When a message is matched by HW, the payload is transferred directly to the application buffer,
 * while skipping any TM headers." */
START_TEST(a_message_of_one_packet_is_matched_and_there_at_once)
{
    uint16_t handle = append(0x1234, ALL, 2, 100, 0);
    struct told told;

    send_eager(0x1234, 60);
    told = EXPECT(CONSUMED_MSG, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.bytes, 60);
    ck_assert_uint_eq(told.tag, 0x1234);
    ck_assert_uint_eq(told.qpn, data_qp.qpn);
    expect_bytes(mem + 2 * ROOM, 16, 60);
    expect_nothing();
}
END_TEST

/* "When larger messages are involved, matching and data transfer completion are distinct events."
 */
START_TEST(a_message_of_several_packets_is_matched_and_later_there)
{
    uint16_t handle = append(7, ALL, 0, ROOM, 0);
    struct told told;

    put_header(PRM_TM_OP_EAGER, 7);
    rx(BTH_SEND_FIRST, 0, MTU);
    psn++;
    told = EXPECT(CONSUMED, NO_PACKET);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.tag, 7);
    expect_nothing();
    rx(BTH_SEND_MIDDLE, MTU, MTU);
    psn++;
    expect_nothing();
    rx(BTH_SEND_LAST, 2 * MTU, 10);
    told = EXPECT(EXPECTED, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.bytes, 2 * MTU + 10 - 16);
    ck_assert_uint_eq(told.tag, 0);
    expect_bytes(mem, 16, 2 * MTU + 10 - 16);
}
END_TEST

/* "Otherwise, the entire message, including any TM headers, is scattered to the SRQ buffer." */
START_TEST(a_message_without_a_match_is_unexpected)
{
    struct told told;

    append(1, ALL, 0, 100, 0);
    post_wqes(1);
    send_eager(2, 20);
    told = EXPECT(UNEXPECTED, RESP_SEND);
    ck_assert_uint_eq(told.index, 0);
    ck_assert_uint_eq(told.bytes, 36);
    ck_assert_uint_eq(told.tag, 0);
    expect_bytes(unexpected, 0, 36);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
}
END_TEST

/* Only byte 0 of a message without a tag belongs to a header. A message that ends within its
 * header, or has an unknown operation, has no tag that the device knows. None of these is
 * counted. */
START_TEST(a_message_without_a_tag_goes_to_a_receive_wqe)
{
    static const struct {
        uint8_t op;
        size_t len;
    } no_tags[] = {
        {PRM_TM_OP_NO_TAG, 1}, {PRM_TM_OP_NO_TAG, 200}, {PRM_TM_OP_FIN, 32},  {PRM_TM_OP_FIN, 16},
        {PRM_TM_OP_EAGER, 15}, {PRM_TM_OP_RNDV, 31},    {PRM_TM_OP_RNDV, 16}, {4, 64},
        {PRM_TM_OP_NO_TAG, 0},
    };

    append(0, 0, 0, 100, 0); /* which any tag matches */
    for (unsigned i = 0; i < G_N_ELEMENTS(no_tags); i++) {
        struct told told;

        post_wqes(1);
        send_one(no_tags[i].op, 0, no_tags[i].len);
        told = EXPECT(NO_TAG, RESP_SEND);
        ck_assert_uint_eq(told.index, i % (1 << LOG_SIZE));
        ck_assert_uint_eq(told.bytes, no_tags[i].len);
        expect_bytes(unexpected + i % (1 << LOG_SIZE) * ROOM, 0, no_tags[i].len);
    }
    ck_assert_uint_eq(xrq->tags->hw_phase, 0);
    send_eager(5, 1);
    EXPECT(CONSUMED_MSG, RESP_SEND);
}
END_TEST

/* "Receive operations are associated with the earliest send operation that matches, in the order in
 * which the Receives were posted." */
START_TEST(the_first_that_matches_is_taken)
{
    uint16_t exact = append(0x11, ALL, 0, 64, 0), any = append(0, 0, 1, 64, 0);
    uint16_t again = append(0x11, ALL, 2, 64, 0), low = append(0x22, 0xff, 3, 64, 0);

    send_eager(0x1122, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, any);
    send_eager(0x11, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, exact);
    send_eager(0x11, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, again);
    send_eager(0xabcd22, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, low);
    expect_nothing();
}
END_TEST

/* UCX posts tag and mask as its user gave them: tag bits outside the mask have no meaning
 * (ucp_tag_is_match(): ((tag ^ expected) & mask) == 0). */
START_TEST(bits_outside_the_mask_do_not_count)
{
    uint16_t low = append(0xabcd22, 0xff, 0, 64, 0), any = append(0x1234, 0, 1, 64, 0);

    send_eager(0x5522, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, low);
    send_eager(0x5522, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, any);
    expect_nothing();
}
END_TEST

START_TEST(a_message_without_data_needs_no_buffer)
{
    append(9, ALL, 0, 0, 0);
    send_eager(9, 0);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).bytes, 0);
}
END_TEST

START_TEST(a_message_may_carry_an_immediate)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | BTH_SEND_ONLY_IMM, 0);
    const struct prm_cqe64 *cqe;

    append(9, ALL, 0, 100, 0);
    put_header(PRM_TM_OP_EAGER, 9);
    pkt.imm = 0x12345678;
    pkt.ackreq = true;
    bench_rx(&b, &pkt, message, 20);
    cqe = bench_poll(&b, &cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND_IMM);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app_op), PRM_CQE_TM_OP_CONSUMED_MSG);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, immediate), 0x12345678);
    ck_assert_uint_eq(PRM_GET(tmh, PRM_PTR(cqe64, cqe, tmh), app_ctx), 0xabcd);
}
END_TEST

/* A tag does not prevent a SEND with invalidate (IBTA 9.4.1.1.4). */
START_TEST(a_message_may_invalidate_a_key)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | BTH_SEND_ONLY_INV, 0);

    append(9, ALL, 0, 100, 0);
    put_header(PRM_TM_OP_EAGER, 9);
    pkt.imm = bench_mkey(&b, mem, ROOM, MEM_REMOTE_WRITE) ^ (_i ? 0x80 : 0);
    pkt.ackreq = true;
    bench_rx(&b, &pkt, message, 20);
    if (_i) { /* no such key: as without tags, and the matched receive ends */
        bench_expect_silence(&b);
        EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET);
        ck_assert_uint_eq(data_qp.qp->state, PRM_QP_STATE_ERR);
    } else {
        expect_answer(ACK);
        EXPECT(CONSUMED_MSG, RESP_SEND_INV);
        ck_assert_int_eq(mkey_check(&b.hca, pkt.imm, data_qp.qp->pdn, mem, 1, MEM_REMOTE_WRITE),
                         MEM_BAD_KEY);
    }
}
END_TEST

/* A WRITE with immediate takes a WQE of the XRQ and has no header. */
START_TEST(a_write_with_immediate_is_not_matched)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | BTH_WRITE_ONLY_IMM, 0);
    const struct prm_cqe64 *cqe;

    append(0, 0, 0, 100, 0);
    post_wqes(1);
    put_header(PRM_TM_OP_EAGER, 9);
    pkt.reth.va = mem + ROOM;
    pkt.reth.rkey = bench_mkey(&b, mem, ROOM * 16, MEM_REMOTE_WRITE);
    pkt.reth.len = 20;
    bench_rx(&b, &pkt, message, 20);
    cqe = bench_poll(&b, &cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app), PRM_CQE_APP_NONE);
}
END_TEST

/* -- a buffer whose page is missing ------------------------------------------------------------ */

static bool ignore_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                         const struct mem_fault *fault)
{
    return true;
}

/* Gives the first receive WQE a key with one page, which is missing. */
static void take_page_out(void)
{
    static struct pager pager = {.fault = ignore_fault};
    uint64_t pas[2] = {GUINT64_TO_BE(unexpected)};
    struct prm_mkc mkc[1] = {0};
    struct mkey *mkey;
    uint32_t index;

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, b.pdn);
    PRM_SET(mkc, mkc, start_addr, unexpected);
    PRM_SET(mkc, mkc, len, ROOM);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    ck_assert_int_eq(mkey_create(&b.hca, 0, mkc, pas, sizeof(pas), true, &index), SYN_OK);
    PRM_SET(wqe_data_seg,
            fake_host_ptr(&b.host, ring + PRM_SIZE(wqe_srq_next_seg), PRM_SIZE(wqe_data_seg)), lkey,
            index << 8);
    mkey = mkey_find(&b.hca, index);
    mkey->mtt[0] = 0;
    b.hca.pager = &pager;
}

static void write_with_immediate(void)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | BTH_WRITE_ONLY_IMM, psn);

    pkt.ackreq = true;
    pkt.reth.va = mem + ROOM;
    pkt.reth.rkey = bench_mkey(&b, mem, ROOM * 16, MEM_REMOTE_WRITE);
    pkt.reth.len = 20;
    bench_rx(&b, &pkt, message, 20);
}

/* IBTA 9.7.5.2.8: after an RNR NAK the request comes again. If the peer sends a WRITE with
 * immediate instead, the WRITE gets the WQE that the SEND had taken. The next SEND begins a new
 * message: it takes a WQE, or may match, and its own header says what it is. */
START_TEST(the_send_after_a_lost_wqe_starts_a_new_message)
{
    bool had_tag = _i & 1, matches = _i & 2;
    struct told told;

    take_page_out();
    post_wqes(2);
    put_header(had_tag ? PRM_TM_OP_EAGER : PRM_TM_OP_NO_TAG, 3);
    rx(BTH_SEND_ONLY, 0, 20);
    expect_answer(0x20);
    ck_assert_uint_eq(xrq->tags->hw_phase, had_tag);
    qp_resume(data_qp.qp, FAULT_RESPONDER, false);

    write_with_immediate();
    expect_answer(ACK);
    ck_assert(poll_told(&told));
    ck_assert_uint_eq(told.opcode, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(told.index, 0);
    ck_assert_uint_eq(xrq->tags->hw_phase, 0); /* no unexpected message was delivered */
    psn++;

    append(4, ALL, 0, 100, 0);
    if (matches) {
        send_eager(4, 20);
        EXPECT(CONSUMED_MSG, RESP_SEND);
        expect_bytes(mem, 16, 20);
    } else { /* of the other kind than the first message */
        send_one(had_tag ? PRM_TM_OP_NO_TAG : PRM_TM_OP_EAGER, 3, 20);
        told = expect_told(had_tag ? PRM_CQE_TM_OP_NO_TAG : PRM_CQE_TM_OP_UNEXPECTED,
                           PRM_CQE_OPCODE_RESP_SEND);
        ck_assert_uint_eq(told.index, 1);
        expect_bytes(unexpected + ROOM, 0, 20);
        ck_assert_uint_eq(xrq->tags->hw_phase, !had_tag);
    }
    expect_nothing();
}
END_TEST

/* Without a WQE an unexpected message is not accepted: it is not counted, and may match when it
 * comes again. */
START_TEST(a_message_without_a_wqe_is_matched_again_when_it_is_repeated)
{
    put_header(PRM_TM_OP_EAGER, 3);
    rx(BTH_SEND_ONLY, 0, 20);
    expect_answer(0x20);
    ck_assert_uint_eq(xrq->tags->hw_phase, 0);
    append(3, ALL, 0, 100, 0);
    rx(BTH_SEND_ONLY, 0, 20);
    expect_answer(ACK);
    EXPECT(CONSUMED_MSG, RESP_SEND);
    expect_nothing();
}
END_TEST

/* IBTA 9.7.5.2.8: a message longer than its receive. It was matched, so that receive ends. */
START_TEST(a_message_longer_than_the_buffer_is_a_fault)
{
    uint16_t handle = append(3, ALL, 0, 19, 0);

    put_header(PRM_TM_OP_EAGER, 3);
    rx(BTH_SEND_ONLY, 0, 16 + 20);
    expect_answer(NAK_INVALID);
    ck_assert_uint_eq(EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET).handle, handle);
    ck_assert_uint_eq(data_qp.qp->state, PRM_QP_STATE_ERR);
    ck_assert_int_eq(bench_event(&b, data_qp.qpn), PRM_EVENT_TYPE_SRQ_LAST_WQE);
    ck_assert_int_eq(bench_event(&b, data_qp.qpn), PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR);
    append(3, ALL, 0, 19, 0);
    expect_nothing();
}
END_TEST

START_TEST(a_buffer_whose_key_does_not_allow_it_is_a_fault)
{
    uint32_t all = key;

    key = bench_mkey(&b, mem, 8, MEM_LOCAL_READ | MEM_LOCAL_WRITE);
    append(3, ALL, 0, 100, 0);
    key = all;
    put_header(PRM_TM_OP_EAGER, 3);
    rx(BTH_SEND_ONLY, 0, 16 + 20);
    expect_answer(0x63); /* remote operational error */
    EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET);
}
END_TEST

/* -- the list ---------------------------------------------------------------------------------- */

static struct told remove_entry(uint16_t handle, uint16_t count)
{
    post_change(&(struct change){.op = PRM_TM_OPCODE_REMOVE, .index = handle, .count = count});
    return EXPECT(REMOVE, NO_PACKET);
}

/* "The operation may fail if the associated tag was consumed by an incoming message." */
START_TEST(a_consumed_tag_cannot_be_removed)
{
    uint16_t one = append(1, ALL, 0, ROOM, 0), two = append(2, ALL, 1, ROOM, 0);

    ck_assert(remove_entry(two, 0).success);
    ck_assert(!remove_entry(two, 0).success);
    post_wqes(1);
    send_eager(2, 1);
    EXPECT(UNEXPECTED, RESP_SEND);

    put_header(PRM_TM_OP_EAGER, 1);
    rx(BTH_SEND_FIRST, 0, MTU);
    psn++;
    EXPECT(CONSUMED, NO_PACKET);
    ck_assert(!remove_entry(one, 1).success);
    rx(BTH_SEND_LAST, 0, 1);
    EXPECT(EXPECTED, RESP_SEND);
    ck_assert(!remove_entry(one, 1).success);
}
END_TEST

/* "ibv_post_srq_ops() operations are non-signaled by default." */
START_TEST(a_silent_change_has_no_completion)
{
    post_change(&(struct change){.op = PRM_TM_OPCODE_APPEND,
                                 .silent = true,
                                 .index = 1,
                                 .tag = 5,
                                 .mask = ALL,
                                 .addr = mem,
                                 .len = 64});
    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP, .silent = true});
    expect_nothing();
    send_eager(5, 3);
    EXPECT(CONSUMED_MSG, RESP_SEND);
    post_change(&(struct change){.op = PRM_TM_OPCODE_REMOVE, .silent = true, .index = 0});
    expect_nothing();
}
END_TEST

/* Software names in each append the entry that the next append takes. */
START_TEST(an_append_takes_the_entry_that_the_one_before_named)
{
    struct change change = {.op = PRM_TM_OPCODE_APPEND, .index = 5, .mask = ALL};

    post_change(&change);
    ck_assert_uint_eq(EXPECT(APPEND, NO_PACKET).handle, 0);
    change.index = 2;
    post_change(&change);
    ck_assert_uint_eq(EXPECT(APPEND, NO_PACKET).handle, 5);
    change.index = 7;
    post_change(&change);
    ck_assert_uint_eq(EXPECT(APPEND, NO_PACKET).handle, 2);
    ck_assert_uint_eq(xrq->tags->append_next, 7);
}
END_TEST

static void expect_refused(const struct change *change)
{
    struct told told;

    post_change(change);
    ck_assert(poll_told(&told));
    ck_assert(told.failed);
    ck_assert_uint_eq(told.syndrome, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(cmd_qp.qp->state, PRM_QP_STATE_ERR);
}

START_TEST(a_change_that_makes_no_sense_fails)
{
    static const struct change bad[] = {
        {.op = 3},
        {.op = 15},
        {.op = PRM_TM_OPCODE_APPEND, .index = TAGS}, /* the next one is none */
        {.op = PRM_TM_OPCODE_APPEND, .index = 0xffff},
        {.op = PRM_TM_OPCODE_APPEND, .index = 1, .len = 8, .segs = 1}, /* two buffers */
    };

    ck_assert_uint_lt((unsigned)_i, G_N_ELEMENTS(bad));
    expect_refused(&bad[_i]);
}
END_TEST

START_TEST(an_entry_that_is_taken_cannot_be_appended)
{
    struct change change = {.op = PRM_TM_OPCODE_APPEND, .index = 0, .mask = ALL};

    post_change(&change);
    EXPECT(APPEND, NO_PACKET);
    expect_refused(&change);
}
END_TEST

START_TEST(no_entry_is_no_entry_to_remove)
{
    ck_assert(!remove_entry(0, 0).success);
    ck_assert(!remove_entry(TAGS, 0).success);
    ck_assert(!remove_entry(0xffff, 0).success);
}
END_TEST

/* A list is changed by its own QP; other QPs, whoever has their WQEs, do not change it. */
START_TEST(another_qp_does_not_change_the_list)
{
    struct bench_qp_attr attr = {.is_to_self = true};
    struct told told;

    attr.cqn = cq.cqn;
    attr.srqn = _i == 0 ? 0 : xrq->obj.num;
    attr.is_to_self = _i != 1;
    if (_i == 2) {
        attr.cqn = 0; /* the bench's */
    }
    bench_qp_rts(&b, &attr, &cmd_qp);
    cmd_posted = 0;
    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP});
    if (_i == 2) {
        const struct prm_err_cqe *cqe = bench_poll(&b, &b.cq);

        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    } else {
        ck_assert(poll_told(&told));
        ck_assert(told.failed);
        ck_assert_uint_eq(told.syndrome, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    }
}
END_TEST

/* -- counts ------------------------------------------------------------------------------------ */

/* "Whenever HW deems a message unexpected, tag matching must be disabled for new tags until SW and
 * HW synchronize." */
START_TEST(after_an_unexpected_message_new_entries_wait_for_software)
{
    uint16_t older = append(1, ALL, 0, 64, 0), newer, newest;

    post_wqes(4);
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);

    newer = append(2, ALL, 1, 64, 0); /* software has not seen it */
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    send_eager(1, 8); /* older entries are matched */
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, older);

    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP, .count = 1}); /* not the second one */
    ck_assert_uint_eq(EXPECT(NOOP, NO_PACKET).phase, 2);
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    newest = append(3, ALL, 2, 64, 3); /* says that software has seen all */
    send_eager(2, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, newer);
    send_eager(3, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, newest);
}
END_TEST

START_TEST(a_count_that_is_not_given_is_not_taken)
{
    post_wqes(2);
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP, .count = 1, .no_count = true});
    EXPECT(NOOP, NO_PACKET);
    append(2, ALL, 0, 64, 0);
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
}
END_TEST

START_TEST(an_entry_that_waits_can_be_removed)
{
    uint16_t first, second;

    post_wqes(2);
    send_eager(9, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    first = append(1, ALL, 0, 64, 0);
    second = append(1, ALL, 1, 64, 0);
    ck_assert(remove_entry(first, 0).success);
    send_eager(1, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP, .count = 2});
    EXPECT(NOOP, NO_PACKET);
    send_eager(1, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, second);
}
END_TEST

/* Software cannot count a message that it never gets. */
START_TEST(an_unexpected_message_that_breaks_off_is_not_counted)
{
    uint16_t handle;
    struct told told;

    post_wqes(2);
    put_header(PRM_TM_OP_EAGER, 2);
    rx(BTH_SEND_FIRST, 0, MTU);
    handle = append(2, ALL, 0, 64, 0);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_2ERR_QP, &(struct bench_qp_attr){0}),
                     SYN_OK);
    ck_assert(poll_told(&told));
    ck_assert_uint_eq(told.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(xrq->tags->hw_phase, 0);
    make_data_qp(true);
    b.read = b.got;
    send_eager(2, 8);
    ck_assert_uint_eq(EXPECT(CONSUMED_MSG, RESP_SEND).handle, handle);
}
END_TEST

START_TEST(a_count_comes_round)
{
    xrq->tags->hw_phase = xrq->tags->sw_phase = 0xffff;
    post_wqes(1);
    send_eager(2, 8);
    EXPECT(UNEXPECTED, RESP_SEND);
    append(2, ALL, 0, 64, 0xffff);
    post_change(&(struct change){.op = PRM_TM_OPCODE_NOP, .count = 0});
    ck_assert_uint_eq(EXPECT(NOOP, NO_PACKET).phase, 0);
    send_eager(2, 8);
    EXPECT(CONSUMED_MSG, RESP_SEND);
}
END_TEST

/* -- ends -------------------------------------------------------------------------------------- */

/* A QP that fails, is reset or destroyed in the middle of a message. */
START_TEST(a_matched_message_that_breaks_off_is_canceled)
{
    uint16_t handle = append(2, ALL, 0, ROOM, 0);

    put_header(PRM_TM_OP_EAGER, 2);
    rx(BTH_SEND_FIRST, 0, MTU);
    EXPECT(CONSUMED, NO_PACKET);
    if (_i == 2) {
        ck_assert_int_eq(qp_destroy(&b.hca, 0, data_qp.qpn), SYN_OK);
    } else {
        ck_assert_int_eq(bench_modify(&b, &data_qp, _i ? PRM_CMD_OP_2RST_QP : PRM_CMD_OP_2ERR_QP,
                                      &(struct bench_qp_attr){0}),
                         SYN_OK);
    }
    bench_run(&b);
    ck_assert_uint_eq(EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET).handle, handle);
    expect_nothing();
    ck_assert_uint_eq(xrq->tags->entries[handle].state, TAG_FREE);
}
END_TEST

static void expect_xrq_error(void)
{
    bool found = false;

    for (uint32_t i = b.eq_ci; i < 256; i++) {
        const struct prm_eqe *eqe = fake_host_ptr(&b.host, b.eq_ring + 64 * i, 64);

        if (!PRM_GET(eqe, eqe, owner) &&
            PRM_GET(eqe, eqe, event_type) == PRM_EVENT_TYPE_XRQ_ERROR) {
            ck_assert_uint_eq(PRM_GET(xrq_error_event, PRM_PTR(eqe, eqe, event_data), xrqn),
                              xrq->obj.num);
            found = true;
        }
    }
    ck_assert(found);
    ck_assert(xrq->error);
}

/* Then nothing is taken from it, and nothing is matched. */
START_TEST(an_xrq_whose_wqes_make_no_sense_is_in_error)
{
    append(1, ALL, 0, 64, 0);
    post_wqes(1000);
    put_header(PRM_TM_OP_EAGER, 2);
    rx(BTH_SEND_ONLY, 0, 20);
    expect_answer(0x63);
    expect_xrq_error();
    make_data_qp(true);
    b.read = b.got;
    put_header(PRM_TM_OP_EAGER, 1);
    rx(BTH_SEND_ONLY, 0, 20);
    expect_answer(0x63);
    expect_refused(&(struct change){.op = PRM_TM_OPCODE_NOP});
}
END_TEST

START_TEST(an_xrq_whose_cq_has_no_room_is_in_error)
{
    post_wqes(8);
    while (!xrq->error) {
        post_change(&(struct change){.op = PRM_TM_OPCODE_NOP});
    }
    expect_xrq_error();
    ck_assert_uint_eq(cmd_qp.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(an_xrq_in_use_stays)
{
    ck_assert_int_eq(srq_destroy(&b.hca, 0, xrq->obj.num, OBJ_XRQ), SYN_IN_USE);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, data_qp.qpn), SYN_OK);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, cmd_qp.qpn), SYN_OK);
    ck_assert_int_eq(srq_destroy(&b.hca, 0, xrq->obj.num, OBJ_XRQ), SYN_OK);
}
END_TEST

static enum syn create_qp(const struct bench_qp_attr *attr)
{
    struct prm_qpc qpc[1];
    struct mem_buf buf;
    uint32_t qpn;
    enum syn syn;

    bench_qpc(&b, attr, qpc);
    buf = bench_buf(fake_host_alloc(&b.host, 8192, 4096), 8192);
    syn = qp_create(&b.hca, 0, qpc, &buf, fake_host_alloc(&b.host, 8, 8), &qpn);
    if (syn != SYN_OK) {
        mem_buf_clear(&buf);
    }
    return syn;
}

/* Tag matching is of reliable connections, and so is the offload, which needs an XRQ. */
START_TEST(only_a_reliable_connection_may_name_an_xrq)
{
    uint32_t num = xrq->obj.num;

    ck_assert_int_eq(create_qp(&(struct bench_qp_attr){.srqn = num}), SYN_OK);
    ck_assert_int_eq(create_qp(&(struct bench_qp_attr){.srqn = num, .fetches = true}), SYN_OK);
    ck_assert_int_eq(create_qp(&(struct bench_qp_attr){.fetches = true}), SYN_QP_FEATURE);
    ck_assert_int_eq(create_qp(&(struct bench_qp_attr){.st = PRM_QP_ST_UC, .srqn = num}),
                     SYN_QP_FEATURE);
    ck_assert_int_eq(create_qp(&(struct bench_qp_attr){.st = PRM_QP_ST_UD, .srqn = num}),
                     SYN_QP_FEATURE);
}
END_TEST

/* QPs of other services have no XRQ whose messages they could fetch; an XRC QP names an SRQ from
 * which it takes nothing. */
START_TEST(only_a_qp_that_can_fetch_may_have_the_offload)
{
    static const uint8_t other[] = {PRM_QP_ST_UC, PRM_QP_ST_UD, PRM_QP_ST_XRC, PRM_QP_ST_DCI};
    uint32_t xrcd;

    ck_assert_int_eq(xrcd_alloc(&b.hca, 0, &xrcd), SYN_OK);
    for (size_t i = 0; i < G_N_ELEMENTS(other); i++) {
        struct bench_qp_attr attr = {.st = other[i],
                                     .srqn = other[i] == PRM_QP_ST_XRC ? xrq->obj.num : 0,
                                     .no_rq = true,
                                     .xrcd = xrcd};

        ck_assert_int_eq(create_qp(&attr), SYN_OK);
        attr.fetches = true;
        ck_assert_int_eq(create_qp(&attr), SYN_QP_FEATURE);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tags");
    TCase *tc = tcase_create("matching");

    tcase_add_checked_fixture(tc, tags_setup, tags_teardown);
    tcase_add_test(tc, a_message_of_one_packet_is_matched_and_there_at_once);
    tcase_add_test(tc, a_message_of_several_packets_is_matched_and_later_there);
    tcase_add_test(tc, a_message_without_a_match_is_unexpected);
    tcase_add_test(tc, a_message_without_a_tag_goes_to_a_receive_wqe);
    tcase_add_test(tc, the_first_that_matches_is_taken);
    tcase_add_test(tc, bits_outside_the_mask_do_not_count);
    tcase_add_test(tc, a_message_without_data_needs_no_buffer);
    tcase_add_test(tc, a_message_may_carry_an_immediate);
    tcase_add_loop_test(tc, a_message_may_invalidate_a_key, 0, 2);
    tcase_add_test(tc, a_write_with_immediate_is_not_matched);
    tcase_add_loop_test(tc, the_send_after_a_lost_wqe_starts_a_new_message, 0, 4);
    tcase_add_test(tc, a_message_without_a_wqe_is_matched_again_when_it_is_repeated);
    tcase_add_test(tc, a_message_longer_than_the_buffer_is_a_fault);
    tcase_add_test(tc, a_buffer_whose_key_does_not_allow_it_is_a_fault);
    suite_add_tcase(suite, tc);

    tc = tcase_create("list");
    tcase_add_checked_fixture(tc, tags_setup, tags_teardown);
    tcase_add_test(tc, a_consumed_tag_cannot_be_removed);
    tcase_add_test(tc, a_silent_change_has_no_completion);
    tcase_add_test(tc, an_append_takes_the_entry_that_the_one_before_named);
    tcase_add_loop_test(tc, a_change_that_makes_no_sense_fails, 0, 5);
    tcase_add_test(tc, an_entry_that_is_taken_cannot_be_appended);
    tcase_add_test(tc, no_entry_is_no_entry_to_remove);
    tcase_add_loop_test(tc, another_qp_does_not_change_the_list, 0, 3);
    suite_add_tcase(suite, tc);

    tc = tcase_create("counts");
    tcase_add_checked_fixture(tc, tags_setup, tags_teardown);
    tcase_add_test(tc, after_an_unexpected_message_new_entries_wait_for_software);
    tcase_add_test(tc, a_count_that_is_not_given_is_not_taken);
    tcase_add_test(tc, an_entry_that_waits_can_be_removed);
    tcase_add_test(tc, an_unexpected_message_that_breaks_off_is_not_counted);
    tcase_add_test(tc, a_count_comes_round);
    suite_add_tcase(suite, tc);

    tc = tcase_create("ends");
    tcase_add_checked_fixture(tc, tags_setup, tags_teardown);
    tcase_add_loop_test(tc, a_matched_message_that_breaks_off_is_canceled, 0, 3);
    tcase_add_test(tc, an_xrq_whose_wqes_make_no_sense_is_in_error);
    tcase_add_test(tc, an_xrq_whose_cq_has_no_room_is_in_error);
    tcase_add_test(tc, an_xrq_in_use_stays);
    tcase_add_test(tc, only_a_reliable_connection_may_name_an_xrq);
    tcase_add_test(tc, only_a_qp_that_can_fetch_may_have_the_offload);
    suite_add_tcase(suite, tc);
    return suite;
}
