/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests lost packets, retries, peers that refuse or lie, and how a send queue ends. */
#include "model/rdma/rdma.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

/* -- responses made up ------------------------------------------------------------------------- */

static void fake_payload(uint8_t op, uint32_t psn, uint8_t syndrome, size_t len)
{
    static const uint8_t payload[4096];
    struct roce_packet pkt = {
        .opcode = BTH_RC | op, .psn = psn & PSN_MASK, .payload = payload, .payload_len = len};

    pkt.aeth.syndrome = syndrome;
    requester_rx(a.qp, &pkt);
    lab_run(lab);
}

static void fake_response(uint8_t op, uint32_t psn, uint8_t syndrome)
{
    fake_payload(op, psn, syndrome, 0);
}

/* -- loss -------------------------------------------------------------------------------------- */

/* A gap causes a NAK with the missing PSN, and the requester retransmits from there (IBTA
 * 9.7.6). */
START_TEST(lost_request_is_repeated_after_the_nak)
{
    uint64_t src = lab_mem(left, 10240, 3), dst = lab_mem(right, 10240, 0);

    lose_psn(0, 4, 1);
    write_from(src, 10240, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 10240);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    ck_assert_uint_eq(a.qp->hca->rdma->counts.messages, 1);
    ck_assert_uint_eq(a.qp->hca->rdma->counts.naks_received, 1);
    ck_assert_uint_eq(a.qp->hca->rdma->counts.retransmitted, 10 - 4); /* of 1,024 bytes each */
    ck_assert_uint_eq(a.qp->hca->rdma->counts.ack_timeouts, 0);
    ck_assert_uint_eq(b.qp->hca->rdma->counts.naks_sent, 1);
    ck_assert_uint_eq(b.qp->hca->rdma->counts.rnr_naks_sent, 0);
}
END_TEST

START_TEST(lost_last_packet_needs_the_timer)
{
    uint64_t src = lab_mem(left, 3000, 3), dst = lab_mem(right, 3000, 0);

    lose_psn(0, 2, 1);
    write_from(src, 3000, dst);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 3000);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 1);
    ck_assert_uint_eq(a.qp->hca->rdma->counts.ack_timeouts, 1);
}
END_TEST

/* The timer that an earlier request started must not make a later request repeat. */
START_TEST(progress_defers_the_timeout)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS * 9 / 10);
    fake_response(BTH_ACK, lab_path.psn, 0x1f);
    write_from(src, 64, dst);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS * 5 / 10);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    ck_assert_uint_eq(lab->num_packets, 2);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 1);
    ck_assert_uint_eq(lab->num_packets, 3);
}
END_TEST

/* Packets that an ACK covers are not sent again, even if an earlier NAK asked for them. */
START_TEST(an_ack_during_a_retransmission_shortens_it)
{
    uint64_t src = lab_mem(left, 10240, 3), dst = lab_mem(right, 10240, 0);
    struct roce_packet nak = {.opcode = BTH_RC | BTH_ACK, .psn = (lab_path.psn + 2) & PSN_MASK};
    struct roce_packet ack = {.opcode = BTH_RC | BTH_ACK, .psn = (lab_path.psn + 6) & PSN_MASK};

    nak.aeth.syndrome = 0x60;
    lab->tap = drop_all;
    write_from(src, 10240, dst);
    lab_run(lab);
    requester_rx(a.qp, &nak);
    requester_rx(a.qp, &ack);
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 13);
    ck_assert_uint_eq(lab->trace[10].pkt.psn, (lab_path.psn + 7) & PSN_MASK);

    nak.psn = (lab_path.psn + 8) & PSN_MASK;
    ack.psn = (lab_path.psn + 9) & PSN_MASK;
    requester_rx(a.qp, &nak);
    requester_rx(a.qp, &ack);
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 13);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    write_from(src, 64, dst);
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 14);
    ck_assert_uint_eq(lab->trace[13].pkt.psn, (lab_path.psn + 10) & PSN_MASK);
    ck_assert_uint_eq(lab->trace[13].pkt.opcode, BTH_RC | BTH_WRITE_ONLY);
}
END_TEST

START_TEST(lost_ack_is_made_up_for)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lose_psn(1, 0, 1);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

/* IBTA 9.7.6.1, coalesced ACKs: one stands for all requests before it. */
START_TEST(later_ack_covers_earlier_requests)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lose_psn(1, 0, 1);
    write_from(src, 64, dst);
    lab_run(lab);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(read_goes_on_from_the_missing_response)
{
    uint64_t dst = lab_mem(left, 20480, 0), src = lab_mem(right, 20480, 3);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 20480, src);
    const struct roce_packet *again = NULL;

    lose_psn(1, 7, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(dst, src, 20480);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), 2);
    for (unsigned i = 1; i < lab->num_packets; i++) {
        if (lab->trace[i].pkt.opcode == (BTH_RC | BTH_READ_REQUEST)) {
            again = &lab->trace[i].pkt;
        }
    }
    ck_assert_uint_eq(again->psn, (lab_path.psn + 7) & PSN_MASK);
    ck_assert_uint_eq(again->reth.va, src + 7 * 1024);
    ck_assert_uint_eq(again->reth.len, 20480 - 7 * 1024);
    ck_assert_uint_eq(counters()->implied_nak_seq_err, 1);
}
END_TEST

START_TEST(lost_last_read_response_needs_the_timer)
{
    uint64_t dst = lab_mem(left, 4096, 0), src = lab_mem(right, 4096, 3);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 4096, src);

    lose_psn(1, 3, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(dst, src, 4096);
}
END_TEST

/* IBTA 9.4.5: an atomic that is repeated is not executed again. */
START_TEST(lost_atomic_response)
{
    uint64_t target = lab_mem(right, 8, 0), result = lab_mem(left, 8, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, target);

    wr.swap_add = 5;
    lose_psn(1, 0, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    write_from(result, 8, lab_mem(right, 8, 0));
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_ATOMIC_FA, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, target, 8), 5);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, result, 8), 0);
}
END_TEST

static GRand *rand_;
static unsigned loss_percent;

static bool drop_some(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return g_rand_int_range(rand_, 0, 100) >= (int)loss_percent;
}

/* Whatever is lost, everything arrives once and in order, as long as there are retries. */
START_TEST(random_loss)
{
    uint64_t local = lab_mem(left, 65536, 3), remote = lab_mem(right, 65536, 0);
    uint64_t sum = lab_mem(right, 8, 0), result = lab_mem(left, 8, 0);
    uint8_t *from = lab_ptr(left, local, 65536), *to = lab_ptr(right, remote, 65536);
    unsigned adds = 0;

    rand_ = g_rand_new_with_seed((guint32)_i);
    loss_percent = 5;
    lab->tap = drop_some;
    for (unsigned i = 0; i < 400; i++) {
        uint32_t len = (uint32_t)g_rand_int_range(rand_, 0, 20000);
        uint32_t at = (uint32_t)g_rand_int_range(rand_, 0, 20000);
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, local + at, len, remote + at);

        switch (g_rand_int_range(rand_, 0, 4)) {
        case 0:
            wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
            memcpy(to + at, from + at, len);
            memset(from + at, 0xee, len);
            break;
        case 1:
            wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, result, 8, sum);
            wr.swap_add = 1;
            adds++;
            break;
        case 2:
            wr = send_wr(local + at, len);
            memset(to + at, 0, len);
            lab_post_recv(&b, remote + at, MAX(len, 1));
            break;
        default:
            memset(to + at, 0, len);
            break;
        }
        lab_post(&a, &wr);
        if (g_rand_boolean(rand_)) {
            write_from(local, 8, remote);
            g_assert(sum && result);
        } else {
            struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};

            lab_post(&a, &nop);
        }
        for (unsigned wait = 0; requester_started(a.qp) || a.qp->sq.ci != a.sq_pi; wait++) {
            lab_advance(lab, LAB_ACK_TIMEOUT_NS);
            ck_assert_uint_lt(wait, 100);
        }
        ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
        expect_sent(wr.opcode, (uint16_t)(a.sq_pi - 2));
        left->cq_ci++;
        PRM_SET(cq_dbr, lab_ptr(left, left->cq_dbr, 8), ci, left->cq_ci);
        if (wr.opcode != PRM_WQE_OPCODE_ATOMIC_FA) {
            ck_assert_mem_eq(from + at, to + at, len);
        } else {
            ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, result, 8), adds - 1);
        }
        if (wr.opcode == PRM_WQE_OPCODE_SEND) {
            expect_received(len);
        }
        expect_none(right);
        lab->num_packets = 0;
    }
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, sum, 8), adds);
    g_rand_free(rand_);
}
END_TEST

/* -- giving up --------------------------------------------------------------------------------- */

/* C9-140 to C9-142: after retry_count repetitions without an answer the WQE fails. */
START_TEST(retries_are_used_up)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 8);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 7);
    ck_assert_uint_eq(a.qp->req.flight->timer.pos, 0);
}
END_TEST

static struct wire_port_ops pausing_ops;
static bool paused;
static unsigned asked;

/* A backend that supports pauses; it expects the value that it recorded. */
static bool say_paused(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause)
{
    ck_assert_int_eq(memcmp(dmac, right->mac, 6), 0);
    ck_assert_uint_eq(pause->tx, asked);
    pause->receiver = 1;
    pause->tx = ++asked;
    if (!paused) {
        asked = 0; /* the next question is a first one again */
    }
    return paused;
}

static void pause_wire(void)
{
    struct wire_port *wire = left->hca.vport->uplink->wire;

    pausing_ops = *wire->ops;
    pausing_ops.is_paused = say_paused;
    wire->ops = &pausing_ops;
    paused = true;
    asked = 0;
}

/* A receiver that lives and does not run is waited for: nothing is repeated, and no retry is used
 * up. Afterwards the timeout counts as usual. */
START_TEST(no_time_passes_on_a_paused_wire)
{
    struct lab_path path = lab_path;
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);

    path.retry_count = 1;
    lab_rc_pair(lab, &a, &b, &path);
    pause_wire();
    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_advance(lab, 1000 * LAB_ACK_TIMEOUT_NS);
    expect_none(left);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    ck_assert_uint_ge(asked, 900);
    paused = false;
    lab->tap = NULL;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 64);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 2);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 1);
}
END_TEST

/* The dead receiver is no longer paused: the remaining retries count. */
START_TEST(retries_are_used_up_after_a_pause)
{
    pause_wire();
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 100 * LAB_ACK_TIMEOUT_NS);
    expect_none(left);
    paused = false;
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 8);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 7);
}
END_TEST

/* An answer ends the question about a pause. */
START_TEST(an_answer_ends_a_pause)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    pause_wire();
    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_advance(lab, 10 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_gt(asked, 0);
    lab->tap = NULL;
    fake_response(BTH_ACK, lab_path.psn, 0x1f);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS); /* sees the progress */
    asked = 0;                            /* say_paused() must not get a recorded value */
    lab_advance(lab, 10 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_gt(asked, 0);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(progress_resets_the_retry_count)
{
    uint64_t src = lab_mem(left, 1024, 1), dst = lab_mem(right, 1024, 0);

    for (unsigned i = 0; i < 3; i++) {
        lab->tap = drop_all;
        write_from(src, 1024, dst);
        lab_advance(lab, 6 * LAB_ACK_TIMEOUT_NS);
        lab->tap = NULL;
        lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)i);
    }
}
END_TEST

START_TEST(timeout_0_waits_for_ever)
{
    struct lab_path path = lab_path;

    path.ack_timeout = 0;
    lab_rc_pair(lab, &a, &b, &path);
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 1000 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab->num_packets, 1);
    expect_none(left);
}
END_TEST

START_TEST(idle_qp_has_no_timer)
{
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_advance(lab, 3 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_uint_eq(left->host.deadline, UINT64_MAX);
}
END_TEST

/* 9.7.5.2.8, RNR NAK: wait as long as the responder says, then start over. */
START_TEST(receiver_not_ready)
{
    uint64_t src = lab_mem(left, 3000, 4), dst = lab_mem(right, 3000, 0);
    struct lab_wr wr = send_wr(src, 3000);

    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_ge(lab_count(lab, 1, BTH_ACK), 1);
    lab->num_packets = 0;
    lab_advance(lab, 600000); /* of 640 us */
    ck_assert_uint_eq(lab->num_packets, 0);
    lab_post_recv(&b, dst, 3000);
    lab_advance(lab, 100000);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(3000);
    same(src, dst, 3000);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 1);
    ck_assert_uint_eq(a.qp->hca->rdma->counts.rnr_naks_received, 1);
    ck_assert_uint_eq(b.qp->hca->rdma->counts.rnr_naks_sent, 1);
    ck_assert_uint_eq(b.qp->hca->rdma->counts.naks_sent, 0);
    ck_assert_uint_eq(b.qp->hca->rdma->counts.receives, 1);
}
END_TEST

START_TEST(rnr_retries_are_used_up)
{
    struct lab_path path = lab_path;
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    path.rnr_retry = 2;
    lab_rc_pair(lab, &a, &b, &path);
    lab_post(&a, &wr);
    lab_advance(lab, 10 * LAB_MS);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_SEND_ONLY), 3);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 2);
}
END_TEST

/* Copies of one RNR NAK count as one. */
START_TEST(rnr_nak_twice)
{
    struct lab_path path = lab_path;
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    path.rnr_retry = 1;
    lab_rc_pair(lab, &a, &b, &path);
    lab->tap = drop_all;
    lab_post(&a, &wr);
    lab_run(lab);
    fake_response(BTH_ACK, lab_path.psn, 0x2c);
    fake_response(BTH_ACK, lab_path.psn, 0x2c);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 1);
    lab_advance(lab, LAB_MS);
    fake_response(BTH_ACK, lab_path.psn, 0x2c);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}
END_TEST

/* The ACK for all outstanding requests comes late, or from a peer that lies: the wait ends with its
 * timer anyway. */
START_TEST(requests_posted_in_an_rnr_wait_are_sent_after_it)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_run(lab);
    fake_response(BTH_ACK, lab_path.psn, 0x20 | 12); /* 0.64 ms */
    fake_response(BTH_ACK, lab_path.psn, 0x1f);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    responder_reset(&b.qp->peer, lab_path.psn + 1); /* as if it had arrived there */
    lab->tap = NULL;
    write_from(src, 64, dst);
    lab_run(lab);
    expect_none(left);
    lab_advance(lab, LAB_MS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    same(src, dst, 64);
}
END_TEST

START_TEST(rnr_retry_7_never_ends)
{
    uint64_t dst = lab_mem(right, 64, 0);
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    lab_post(&a, &wr);
    lab_advance(lab, 50 * LAB_MS);
    ck_assert_uint_gt(lab_count(lab, 0, BTH_SEND_ONLY), 20);
    lab_post_recv(&b, dst, 64);
    lab_advance(lab, LAB_MS);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
}
END_TEST

START_TEST(remote_access_refused)
{
    uint64_t dst = lab_mem(right, 64, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64, dst);

    wr.rkey = lab_mr(right, dst, 64, MEM_LOCAL_WRITE | MEM_REMOTE_READ);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(counters()->req_remote_access_errors, 1);
}
END_TEST

START_TEST(receive_buffer_too_short)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 1), 64);

    lab_post_recv(&b, lab_mem(right, 10, 0), 10);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    ck_assert_uint_eq(counters()->req_remote_invalid_request, 1);
}
END_TEST

START_TEST(bad_local_key_fails_the_wqe)
{
    uint64_t src = lab_mem(left, 5000, 1), dst = lab_mem(right, 5000, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 2000, dst);

    write_from(src, 64, dst);
    wr.num_sge = 2;
    wr.sge[1] = (struct lab_sge){src + 2000, 3000, 0x123400};
    lab_post(&a, &wr);
    write_from(src, 64, dst);
    lab_run(lab);
    /* IBTA 10.8.6: those before it complete as they should */
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(counters()->req_cqe_error, 2);
    ck_assert_uint_eq(counters()->req_cqe_flush_error, 1);
}
END_TEST

/* The key of a READ's or atomic's destination is checked when the response arrives (IBTA
 * 9.7.6.2.1): the request has been executed by then. */
START_TEST(read_into_a_key_without_write_access)
{
    uint64_t mem = lab_mem(left, 64, 1);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, mem, 64, lab_mem(right, 64, 1));

    wr.sge[0].key = lab_mr(left, mem, 64, MEM_LOCAL_READ);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_READ_REQUEST), 1);
    ck_assert_uint_eq(lab_count(lab, 1, BTH_READ_RESP_ONLY), 1);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

START_TEST(atomic_with_a_bad_local_key_is_carried_out)
{
    uint64_t mem = lab_mem(left, 8, 1), before = *(uint64_t *)lab_ptr(left, mem, 8);
    uint64_t far = lab_mem(right, 8, 0);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, mem, 8, far);

    wr.swap_add = 7;
    wr.sge[0].key = 0xbad00;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_ATOMIC_FA, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, far, 8), 7);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, mem, 8), before);
}
END_TEST

/* If more than the local key is wrong, the responder reports its error first. */
static const struct {
    uint8_t opcode;
    bool bad_rkey;
    unsigned offset; /* of the remote address */
    uint8_t syndrome;
} refused_first[] = {
    {PRM_WQE_OPCODE_RDMA_READ, true, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR},
    {PRM_WQE_OPCODE_ATOMIC_FA, true, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR},
    {PRM_WQE_OPCODE_ATOMIC_CS, true, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR},
    {PRM_WQE_OPCODE_ATOMIC_FA, false, 1, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR},
    {PRM_WQE_OPCODE_ATOMIC_CS, true, 1, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR},
};

START_TEST(the_responder_refuses_before_a_bad_local_key_is_found)
{
    uint64_t far = lab_mem(right, 16, 0);
    struct lab_wr wr =
        rdma_wr(refused_first[_i].opcode, lab_mem(left, 8, 1), 8, far + refused_first[_i].offset);

    wr.sge[0].key = 0xbad00;
    wr.swap_add = 7;
    if (refused_first[_i].bad_rkey) {
        wr.rkey = 0xbad00;
    }
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(refused_first[_i].opcode, 0, refused_first[_i].syndrome);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, far, 8), 0);
}
END_TEST

START_TEST(wqe_of_no_known_opcode)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SET_PSV};

    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SET_PSV, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(doorbell_record_beyond_the_ring)
{
    uint8_t type;
    uint32_t num;

    a.sq_pi = 129;
    lab_ring(&a);
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    ck_assert_uint_eq(num, a.qp->obj.num);
}
END_TEST

/* A WQE that changes while it is in flight is no longer trusted. */
START_TEST(wqe_changed_in_flight)
{
    uint64_t src = lab_mem(left, 64, 1);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, 64, lab_mem(right, 64, 0));
    void *wqe;

    lab->tap = drop_all;
    wqe = lab_write_wqe(&a, &wr);
    lab_ring(&a);
    lab_run(lab);
    write_from(src, 64, lab_mem(right, 64, 0)); /* the cache is now of this one */
    lab_run(lab);
    PRM_SET(wqe_data_seg, wqe + 32, byte_count, 1u << 29);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
}
END_TEST

/* C10-96: what is posted to a QP in error completes with a flush error, signaled or not. */
START_TEST(error_flushes_everything)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));

    lab->tap = drop_all;
    wr.unsignaled = true;
    for (unsigned i = 0; i < 100; i++) {
        lab_post(&a, &wr);
    }
    lab_run(lab);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_post(&a, &wr);
    lab_run(lab);
    for (uint16_t i = 0; i < 101; i++) {
        expect_error(PRM_WQE_OPCODE_RDMA_WRITE, i, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 101, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

/* Behind a WQE without a length nobody knows where the next WQE begins. */
START_TEST(flush_ends_at_nonsense)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};

    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    write_from(src, 64, dst);
    PRM_SET(wqe_ctrl_seg, lab_write_wqe(&a, &nop), ds, 0);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_error(PRM_WQE_OPCODE_NOP, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
    ck_assert_uint_eq(a.qp->sq.ci, 3);
}
END_TEST

START_TEST(reset_forgets_everything)
{
    uint64_t src = lab_mem(left, 64, 7), dst = lab_mem(right, 64, 0);

    lab->tap = drop_all;
    write_from(src, 64, dst);
    lab_run(lab);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    lab_advance(lab, 10 * LAB_ACK_TIMEOUT_NS);
    expect_none(left);
    a.sq_pi = 0;
    lab->tap = NULL;
    lab_connect(lab, &a, &b, &lab_path);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 64);
}
END_TEST

/* IBTA 10.3.1, SQD state: started work is finished, and no new work is started. */
START_TEST(send_queue_drains)
{
    uint64_t src = lab_mem(left, 100000, 7), dst = lab_mem(right, 100000, 0);
    unsigned budget = 1;
    uint8_t type;
    uint32_t num;

    write_from(src, 100000, dst);
    hca_run(&left->hca, budget); /* only a first packet leaves */
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTS2SQD_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQ_DRAINING);
    ck_assert(!lab_event(left, &type, &num));
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    expect_none(left);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQD);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_SQ_DRAINED);
    ck_assert_uint_eq(num, a.qp->obj.num);

    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQD_RTS_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
}
END_TEST

/* -- ghosts ------------------------------------------------------------------------------------ */

/* IBTA 9.7.6.1, ghost responses: answers to nothing that was requested have no effect. */
START_TEST(ghost_responses_are_ignored)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    for (uint32_t distance = 1; distance < 0x800000; distance = distance * 3 + 1) {
        fake_response(BTH_ACK, lab_path.psn + distance, 0x1f);
        fake_response(BTH_ACK, lab_path.psn - distance, 0x60);
        fake_response(BTH_ACK, lab_path.psn + distance, 0x62);
        fake_response(BTH_ACK, lab_path.psn - distance, 0x20);
        fake_response(BTH_READ_RESP_ONLY, lab_path.psn + distance, 0);
        fake_response(BTH_ATOMIC_ACK, lab_path.psn - distance, 0);
    }
    fake_response(BTH_ACK, lab_path.psn, 0x40); /* reserved class */
    fake_response(BTH_ACK, lab_path.psn, 0xff);
    fake_response(BTH_ACK, lab_path.psn, 0x7f); /* reserved NAK code */
    expect_none(left);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(lab->num_packets, 1);
    fake_response(BTH_ACK, lab_path.psn, 0x1f);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    fake_response(BTH_ACK, lab_path.psn, 0x62); /* answered already */
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

START_TEST(a_response_of_the_wrong_kind_is_an_error)
{
    lab->tap = drop_all;
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    fake_response(BTH_READ_RESP_ONLY, lab_path.psn, 0);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

START_TEST(read_response_of_the_wrong_length)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64, lab_mem(right, 64, 1));

    lab->tap = drop_all;
    lab_post(&a, &wr);
    lab_run(lab);
    fake_response(BTH_READ_RESP_ONLY, lab_path.psn, 0); /* without payload */
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

/* A READ's responses end with LAST, and not earlier. */
START_TEST(read_response_of_the_wrong_place)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 2048, 0), 2048, lab_mem(right, 2048, 1));

    lab->tap = drop_all;
    lab_post(&a, &wr);
    lab_run(lab);
    if (_i == 0) {
        fake_payload(BTH_READ_RESP_LAST, lab_path.psn, 0, 1024);
    } else {
        fake_payload(BTH_READ_RESP_FIRST, lab_path.psn, 0, 1024);
        ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
        fake_payload(BTH_READ_RESP_MIDDLE, lab_path.psn + 1, 0, 1024);
    }
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_BAD_RESP_ERR);
}
END_TEST

/* An ACK cannot replace the answer to a READ before it: that counts as a NAK (implied NAK). */
START_TEST(ack_behind_an_unanswered_read)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 64, 0), 64, lab_mem(right, 64, 1));

    lose_psn(1, 0, 1);
    lab_post(&a, &wr);
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(counters()->implied_nak_seq_err, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

/* One lost packet causes one retransmission, however many NAKs follow from it. */
START_TEST(naks_are_answered_once)
{
    lab->tap = drop_requests;
    write_from(lab_mem(left, 50000, 1), 50000, lab_mem(right, 50000, 0));
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 49);
    for (unsigned i = 0; i < 100; i++) {
        fake_response(BTH_ACK, lab_path.psn, 0x60);
    }
    ck_assert_uint_eq(lab->num_packets, 2 * 49);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
}
END_TEST

START_TEST(random_responses)
{
    static const uint8_t ops[] = {BTH_ACK,
                                  BTH_ACK,
                                  BTH_ACK,
                                  BTH_READ_RESP_FIRST,
                                  BTH_READ_RESP_MIDDLE,
                                  BTH_READ_RESP_LAST,
                                  BTH_READ_RESP_ONLY,
                                  BTH_ATOMIC_ACK,
                                  BTH_SEND_ONLY};
    uint64_t mem = lab_mem(left, 8192, 0);
    struct lab_cqe cqe;

    rand_ = g_rand_new_with_seed(7);
    lab->tap = drop_all;
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = 0; i < 12; i++) {
            struct lab_wr wr = rdma_wr(g_rand_boolean(rand_) ? PRM_WQE_OPCODE_RDMA_READ
                                                             : PRM_WQE_OPCODE_RDMA_WRITE,
                                       mem, (uint32_t)g_rand_int_range(rand_, 0, 8192), mem);

            lab_post(&a, &wr);
        }
        lab_run(lab);
        for (unsigned i = 0; i < 60; i++) {
            static const uint8_t payload[1024];
            struct roce_packet pkt = {
                .opcode = BTH_RC | ops[g_rand_int_range(rand_, 0, G_N_ELEMENTS(ops))],
                .psn =
                    (a.qp->req.unacked_psn + (uint32_t)g_rand_int_range(rand_, -2, 12)) & PSN_MASK,
                .payload = payload,
                .payload_len = g_rand_boolean(rand_) ? 1024 : 3,
            };

            pkt.aeth.syndrome = (uint8_t)(g_rand_int_range(rand_, 0, 6) ? 0 : g_rand_int(rand_));
            requester_rx(a.qp, &pkt);
            lab_run(lab);
            ck_assert_uint_le(requester_started(a.qp), 128);
        }
        lab_advance(lab, LAB_ACK_TIMEOUT_NS);
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
        lab_run(lab);
        ck_assert_uint_eq(a.qp->sq.ci, a.sq_pi);
        /* every WQE completed exactly once, in order */
        for (uint16_t i = 0; i < a.sq_pi; i++) {
            ck_assert(lab_poll(left, &cqe));
            ck_assert_uint_eq(cqe.counter, i);
        }
        expect_none(left);
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        a.sq_pi = 0;
        ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        lab_connect(lab, &a, &b, &lab_path);
        lab->num_packets = 0;
    }
    g_rand_free(rand_);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("requester-loss");
    TCase *rc = tcase_create("connected"), *bare = tcase_create("unconnected");

    tcase_add_checked_fixture(rc, setup, teardown);
    tcase_add_test(rc, lost_request_is_repeated_after_the_nak);
    tcase_add_test(rc, lost_last_packet_needs_the_timer);
    tcase_add_test(rc, lost_ack_is_made_up_for);
    tcase_add_test(rc, progress_defers_the_timeout);
    tcase_add_test(rc, an_ack_during_a_retransmission_shortens_it);
    tcase_add_test(rc, later_ack_covers_earlier_requests);
    tcase_add_test(rc, read_goes_on_from_the_missing_response);
    tcase_add_test(rc, lost_last_read_response_needs_the_timer);
    tcase_add_test(rc, lost_atomic_response);
    tcase_add_loop_test(rc, random_loss, 1, 6);
    tcase_add_test(rc, retries_are_used_up);
    tcase_add_test(rc, no_time_passes_on_a_paused_wire);
    tcase_add_test(rc, retries_are_used_up_after_a_pause);
    tcase_add_test(rc, an_answer_ends_a_pause);
    tcase_add_test(rc, progress_resets_the_retry_count);
    tcase_add_test(rc, idle_qp_has_no_timer);
    tcase_add_test(rc, receiver_not_ready);
    tcase_add_test(rc, requests_posted_in_an_rnr_wait_are_sent_after_it);
    tcase_add_test(rc, rnr_retry_7_never_ends);
    tcase_add_test(rc, remote_access_refused);
    tcase_add_test(rc, receive_buffer_too_short);
    tcase_add_test(rc, bad_local_key_fails_the_wqe);
    tcase_add_test(rc, read_into_a_key_without_write_access);
    tcase_add_test(rc, atomic_with_a_bad_local_key_is_carried_out);
    tcase_add_loop_test(rc, the_responder_refuses_before_a_bad_local_key_is_found, 0,
                        (int)G_N_ELEMENTS(refused_first));
    tcase_add_test(rc, wqe_of_no_known_opcode);
    tcase_add_test(rc, doorbell_record_beyond_the_ring);
    tcase_add_test(rc, wqe_changed_in_flight);
    tcase_add_test(rc, error_flushes_everything);
    tcase_add_test(rc, flush_ends_at_nonsense);
    tcase_add_test(rc, reset_forgets_everything);
    tcase_add_test(rc, send_queue_drains);
    tcase_add_test(rc, ghost_responses_are_ignored);
    tcase_add_test(rc, a_response_of_the_wrong_kind_is_an_error);
    tcase_add_test(rc, read_response_of_the_wrong_length);
    tcase_add_loop_test(rc, read_response_of_the_wrong_place, 0, 2);
    tcase_add_test(rc, ack_behind_an_unanswered_read);
    tcase_add_test(rc, naks_are_answered_once);
    tcase_add_test(rc, random_responses);
    suite_add_tcase(suite, rc);

    tcase_add_checked_fixture(bare, setup_bare, teardown);
    tcase_add_test(bare, timeout_0_waits_for_ever);
    tcase_add_test(bare, rnr_retries_are_used_up);
    tcase_add_test(bare, rnr_nak_twice);
    suite_add_tcase(suite, bare);
    return suite;
}
