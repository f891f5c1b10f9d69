/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the streams of an initiator (model/rdma/dci.h): a failure in one stream does not affect the
 * others. */
#include <stdlib.h>
#include "model/memory/mkey_priv.h"
#include "model/rdma/dci.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

static const struct lab_qp_attr streams = {
    .st = PRM_QP_ST_DCI, .log_sq = 7, .no_rq = true, .log_streams = 3, .log_errored = 2};

static enum syn reset_stream(uint16_t id)
{
    struct prm_qp_context_extension ext[1] = {0};
    struct prm_qpc qpc[1] = {0};

    PRM_SET(qp_context_extension, ext, dci_stream_channel_id, id);
    return qp_modify(&near->hca, 0, dci.qp->obj.num, PRM_CMD_OP_RTS2RTS_QP,
                     1ull << PRM_QP_OPTPAR_DCI_STREAM_CHANNEL, qpc, ext);
}

/* A failed stream flushes its own WRs, in the order of the queue; the other streams continue. */
START_TEST(a_failed_stream)
{
    lab_dci_new(near, &streams, NULL, &dci);
    for (unsigned i = 0; i < 6; i++) {
        lab_dct_post_recv(i == 5 ? &other : &dct, dst, LEN);
    }
    send_from(&dci, &dct, LEN, 1);
    write_to(&dct, far->key ^ 0x100, LEN, 2);
    send_from(&dci, &dct, LEN, 1);
    send_from(&dci, &dct, LEN, 2);
    send_from(&dci, &dct, 3000, 10); /* 2 modulo 8 */
    send_from(&dci, &dct, LEN, 3);
    send_from(&dci, &other, LEN, 4);
    lab_run(lab);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_sent(0);
    expect_sent(0);
    for (unsigned i = 0; i < 3; i++) {
        expect_received(&dct, LEN);
    }
    expect_received(&other, LEN);
    expect_nothing(far);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_RTS);

    send_from(&dci, &dct, LEN, 2);
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(reset_stream(1), SYN_QP_STREAM); /* it has not failed */
    ck_assert_int_eq(reset_stream(2), SYN_OK);
    ck_assert_int_eq(reset_stream(2), SYN_QP_STREAM);
    send_from(&dci, &dct, LEN, 2);
    lab_run(lab);
    expect_sent(0);
    expect_received(&dct, LEN);
}
END_TEST

/* A failure on this side, while an answer is available, also affects only its stream. */
START_TEST(a_stream_fails_here)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src, 5000, 0x4200}},
                          .num_sge = 1,
                          .raddr = dst,
                          .rkey = far->key,
                          .stream = 1};
    struct lab_wr bad = {
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, LEN, 0x4200}}, .num_sge = 1, .stream = 2};

    lab_dci_new(near, &streams, NULL, &dci);
    for (unsigned i = 0; i < 3; i++) {
        lab_dct_post_recv(&dct, dst, LEN);
    }
    send_from(&dci, &dct, LEN, 0);
    lab_post(&dci, lab_to(&read, &dct));
    send_from(&dci, &dct, LEN, 0);
    lab_post(&dci, lab_to(&bad, &dct));
    send_from(&dci, &dct, LEN, 0);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_sent(0);
    for (unsigned i = 0; i < 3; i++) {
        expect_received(&dct, LEN);
    }
    expect_nothing(far);
    expect_no_sequence_errors();
}
END_TEST

/* With this number of failed streams the QP fails, too. */
START_TEST(too_many_failed_streams)
{
    lab_dci_new(near, &streams, NULL, &dci);
    for (unsigned i = 0; i < 4; i++) {
        write_to(&dct, far->key ^ 0x100, LEN, (uint16_t)i);
        lab_run(lab);
        expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
        ck_assert_uint_eq(dci.qp->state, i < 3 ? PRM_QP_STATE_RTS : PRM_QP_STATE_ERR);
    }
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_RTR2RTS_QP, &lab_path, 77, NULL), SYN_OK);
    dci.sq_pi = 0;
    lab_dct_post_recv(&dct, dst, LEN);
    send_from(&dci, &dct, LEN, 3);
    lab_run(lab);
    expect_sent(0);
    expect_received(&dct, LEN);
}
END_TEST

/* A target that does not answer fails the streams that waited for it; a stream for another target
 * continues. */
START_TEST(streams_and_a_silent_target)
{
    lab_dci_new(near, &streams, NULL, &dci);
    lab_dct_post_recv(&other, dst, LEN);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_OK);
    send_from(&dci, &dct, LEN, 0);
    send_from(&dci, &dct, LEN, 0);
    send_from(&dci, &dct, LEN, 1);
    send_from(&dci, &other, LEN, 2);
    lab_advance(lab, 60 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_sent(0);
    expect_received(&other, LEN);
}
END_TEST

static bool drop_answers(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from == 0;
}

/* The WRs of a failed stream are flushed at their place in the queue, which may be after the stream
 * was reset. That is not a new failure of the stream. */
START_TEST(a_stream_is_reset_before_its_flush)
{
    lab_dci_new(near, &streams, NULL, &dci);
    write_to(&dct, far->key ^ 0x100, LEN, 1);
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    lab->tap = drop_answers;
    write_to(&dct, far->key, LEN, 2);
    write_to(&dct, far->key, LEN, 1);
    lab_run(lab);
    expect_nothing(near);
    ck_assert_int_eq(reset_stream(1), SYN_OK);
    lab->tap = NULL;
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(dci.qp->dci->num_failed, 0);
    write_to(&dct, far->key, LEN, 1);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

/* -- executed once ----------------------------------------------------------------------------- */

/* A READ is accepted, the SEND and the atomic behind it are executed, and then the READ's data
 * cannot be read: its NAK does not say that they were refused. */
START_TEST(a_read_that_fails_after_what_is_behind_it)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src, 8192, 0}},
                          .num_sge = 1,
                          .raddr = dst,
                          .stream = 1};
    struct mkey *mkey;

    lab_dci_new(near, &streams, NULL, &dci);
    read.rkey = lab_mr(far, dst, 8192, MEM_REMOTE_READ);
    mkey = mkey_find(&far->hca, read.rkey >> 8);
    mkey->mtt[1] = 0; /* nobody pages it in */
    lab_dct_post_recv(&dct, dst, LEN);
    lab_dct_post_recv(&dct, dst, LEN);
    lab_post(&dci, lab_to(&read, &dct));
    send_from(&dci, &dct, LEN, 2);
    add_to(&dci, &dct);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(sum(), 1);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_OP_ERR);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_OP_ERR);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_OP_ERR);
    expect_received(&dct, LEN);
    expect_nothing(far);
}
END_TEST

/* The same with a READ that is refused at once: then they were not executed, and are sent again. */
START_TEST(a_read_that_is_refused)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src, LEN, 0}},
                          .num_sge = 1,
                          .raddr = dst,
                          .rkey = far->key ^ 0x100,
                          .stream = 1};

    lab_dci_new(near, &streams, NULL, &dci);
    lab_dct_post_recv(&dct, dst, LEN);
    lab_dct_post_recv(&dct, dst, LEN);
    send_from(&dci, &dct, LEN, 2);
    lab_post(&dci, lab_to(&read, &dct));
    send_from(&dci, &dct, LEN, 2);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    expect_sent(0);
    expect_sent(0);
    expect_received(&dct, LEN);
    expect_received(&dct, LEN);
    ck_assert_uint_eq(sum(), 1);
}
END_TEST

static uint32_t victim;

/* Loses answers, and destroys the key of the answered request. */
static bool lose_answers(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (from == 1) {
        mkey_trim(&near->hca, &mkey_find(&near->hca, victim >> 8)->obj);
    }
    return from == 0;
}

/* A SEND was sent completely, and its data cannot be read for a retransmission. It may have been
 * executed, and so may the requests behind it. */
START_TEST(a_send_that_cannot_be_sent_again)
{
    struct lab_wr send = {
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, LEN, 0}}, .num_sge = 1, .stream = 1};

    lab_dci_new(near, &streams, NULL, &dci);
    send.sge[0].key = victim = lab_mr(near, src, LEN, 0x1f);
    lab->tap = lose_answers;
    lab_dct_post_recv(&dct, dst, LEN);
    lab_dct_post_recv(&dct, dst, LEN);
    lab_post(&dci, lab_to(&send, &dct));
    add_to(&dci, &dct);
    lab_run(lab);
    lab->tap = NULL;
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(sum(), 1);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_received(&dct, LEN);
    expect_nothing(far);
}
END_TEST

static bool drop_requests(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from == 1;
}

/* A READ never arrived, and its WQE has changed when it is to be sent again. It has not been
 * answered, so the session does not continue behind it: the next request begins another session. */
START_TEST(a_read_that_cannot_be_sent_again)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src, LEN, 0}},
                          .num_sge = 1,
                          .raddr = dst,
                          .rkey = far->key,
                          .stream = 1};
    struct prm_wqe_ctrl_seg *ctrl;

    lab_dci_new(near, &streams, NULL, &dci);
    lab->tap = drop_requests;
    ctrl = lab_write_wqe(&dci, lab_to(&read, &dct));
    lab_ring(&dci);
    add_to(&dci, &dct);
    lab_run(lab);
    lab->tap = NULL;
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, PRM_WQE_OPCODE_RDMA_WRITE);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(sum(), 0);
    write_to(&dct, far->key, LEN, 2);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

static struct roce_packet refusal;

static bool keep_refusal_lose_answers(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (from == 1 && pkt->opcode == (BTH_DC | BTH_ACK) &&
        aeth_class(pkt->aeth.syndrome) == AETH_CLASS_RNR_NAK) {
        refusal = *pkt;
        return true;
    }
    return from == 0;
}

static void refuse_late(void)
{
    uint8_t *frame = wire_tx_reserve(lab->mid[0], roce_frame_len(&refusal, 0));

    ck_assert_ptr_nonnull(frame);
    roce_build(frame, &refusal, 0);
    wire_tx_commit(lab->mid[0], roce_finish(frame, &refusal, 0));
    lab_run(lab);
}

/* An RNR NAK is duplicated on the way and comes late. Meanwhile the refused request was sent again
 * and executed, and so were the requests behind it (IBTA 9.7.5.2.8: the requester cannot tell its
 * age). Therefore it is not certain that the target has refused anything, and nothing is sent
 * again. */
START_TEST(a_late_rnr_nak_refuses_nothing_for_certain)
{
    struct lab_path path = lab_path;

    path.rnr_retry = 1;
    lab_dci_new(near, &streams, &path, &dci);
    lab->tap = keep_refusal_lose_answers;
    send_from(&dci, &dct, LEN, 1);
    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_uint_eq(refusal.opcode, BTH_DC | BTH_ACK);
    lab_dct_post_recv(&dct, dst, LEN);
    lab_dct_post_recv(&dct, dst, LEN);
    lab_advance(lab, LAB_MS); /* longer than min_rnr_nak requires, shorter than the ACK timeout */
    expect_received(&dct, LEN);
    ck_assert_uint_eq(sum(), 1);
    expect_nothing(near);

    lab->tap = NULL;
    refuse_late();
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    expect_sent(PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    ck_assert_uint_eq(sum(), 1);
    expect_nothing(far);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_RTS);
    send_from(&dci, &dct, LEN, 2);
    lab_run(lab);
    expect_sent(0);
    expect_received(&dct, LEN);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dc streams");
    TCase *tc = tcase_create("streams");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_failed_stream);
    tcase_add_test(tc, a_stream_fails_here);
    tcase_add_test(tc, too_many_failed_streams);
    tcase_add_test(tc, streams_and_a_silent_target);
    tcase_add_test(tc, a_stream_is_reset_before_its_flush);
    tcase_add_test(tc, a_read_that_fails_after_what_is_behind_it);
    tcase_add_test(tc, a_read_that_is_refused);
    tcase_add_test(tc, a_send_that_cannot_be_sent_again);
    tcase_add_test(tc, a_read_that_cannot_be_sent_again);
    tcase_add_test(tc, a_late_rnr_nak_refuses_nothing_for_certain);
    suite_add_tcase(s, tc);
    return s;
}
