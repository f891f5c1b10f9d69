/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests packets that overtake earlier packets (qpc.dp_ordering, docs/adr/0012). */
#include "model/rdma/early.h"
#include "model/rdma/rdma.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MTU    1024u
#define WINDOW 8 /* packets of one direction that are reordered */

/* -- a cable that changes the order ------------------------------------------------------------ */

static struct waiting {
    struct roce_packet pkt;
    uint8_t payload[4096];
} waiting[2][WINDOW];
static unsigned num_waiting[2];
static bool shuffled[2];  /* directions that are reordered */
static unsigned captured; /* number of packets in all */

static void let_go(unsigned from, unsigned i)
{
    struct waiting *w = &waiting[from][i];
    size_t len = roce_frame_len(&w->pkt, w->pkt.payload_len);
    uint8_t *frame = wire_tx_reserve(lab->mid[!from], len);

    ck_assert_ptr_nonnull(frame);
    memcpy(roce_build(frame, &w->pkt, w->pkt.payload_len), w->payload, w->pkt.payload_len);
    wire_tx_commit(lab->mid[!from], roce_finish(frame, &w->pkt, w->pkt.payload_len));
}

/* Releases the packets in reverse order. */
static void let_all_go(unsigned from)
{
    while (num_waiting[from]) {
        let_go(from, --num_waiting[from]);
    }
}

static bool shuffle(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    struct waiting *w = &waiting[from][num_waiting[from]];

    if (!shuffled[from]) {
        return true;
    }
    captured++;
    w->pkt = *pkt;
    memcpy(w->payload, pkt->payload, pkt->payload_len);
    if (++num_waiting[from] == WINDOW) {
        let_all_go(from);
    }
    return false;
}

static void run_shuffled(void)
{
    do {
        let_all_go(0);
        let_all_go(1);
        lab_run(lab);
    } while (num_waiting[0] || num_waiting[1]);
}

static void connect_as(uint8_t order, bool requests, bool responses)
{
    struct lab_path path = lab_path;

    path.order = order;
    lab_rc_pair(lab, &a, &b, &path);
    lab->num_packets = 0;
    lab->tap = shuffle;
    shuffled[0] = requests;
    shuffled[1] = responses;
    num_waiting[0] = num_waiting[1] = 0;
}

static uint64_t repairs(void)
{
    const struct q_counter *req = qp_counters(a.qp), *resp = qp_counters(b.qp);

    return req->packet_seq_err + req->implied_nak_seq_err + req->local_ack_timeout_err +
           resp->out_of_sequence + resp->duplicate_request;
}

static unsigned kept(const struct lab_qp *qp)
{
    return qp->qp->peer.early->num;
}

static unsigned free_packets(struct lab_side *side)
{
    unsigned n = 0;

    for (const struct early_packet *e = side->hca.rdma->early.free; e; e = e->next) {
        n++;
    }
    return n;
}

/* -- order ------------------------------------------------------------------------------------- */

/* Whatever the order of the packets, messages arrive unchanged and complete in order, and nothing
 * is sent twice (mlx5dv_create_qp: the order of completions remains unchanged). */
static void everything_arrives(uint8_t order, bool requests, bool responses)
{
    const uint32_t len = 5 * MTU + 100;
    uint64_t src = lab_mem(left, 8 * len, 3), dst = lab_mem(right, 8 * len, 0);
    uint64_t word = lab_mem(right, 8, 0), back = lab_mem(left, len, 0), old = lab_mem(left, 8, 1);
    struct lab_wr read, add;

    connect_as(order, requests, responses);
    for (uint32_t i = 0; i < 4; i++) {
        struct lab_wr wr = send_wr(src + i * len, len - i);

        lab_post_recv(&b, dst + i * len, len);
        lab_post(&a, &wr);
        write_from(src + (4 + i) * len, len, dst + (4 + i) * len);
    }
    read = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, back, len, dst + 5 * len);
    add = rdma_wr(PRM_WQE_OPCODE_ATOMIC_FA, old, 8, word);
    add.swap_add = 7;
    lab_post(&a, &read);
    lab_post(&a, &add);
    lab_post(&a, &read);
    run_shuffled();

    for (uint32_t i = 0; i < 4; i++) {
        expect_received(len - i);
        same(src + i * len, dst + i * len, len - i);
        same(src + (4 + i) * len, dst + (4 + i) * len, len);
    }
    for (unsigned i = 0; i < 8; i++) {
        struct lab_cqe cqe;

        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct lab_cqe cqe;

        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.send_opcode, (i == 1 ? add : read).opcode);
    }
    same(back, dst + 5 * len, len);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(right, word, 8), 7);
}

START_TEST(requests_may_come_in_any_order)
{
    everything_arrives(_i, true, false);
    ck_assert_uint_eq(repairs(), 0);
    ck_assert_uint_eq(kept(&b), 0);
}
END_TEST

START_TEST(responses_may_come_in_any_order)
{
    everything_arrives(_i, false, true);
    ck_assert_uint_eq(repairs(), 0);
    ck_assert_uint_eq(kept(&a), 0);
}
END_TEST

START_TEST(both_may_come_in_any_order)
{
    everything_arrives(_i, true, true);
    ck_assert_uint_eq(repairs(), 0);
    ck_assert_uint_eq(free_packets(left), EARLY_PACKETS);
    ck_assert_uint_eq(free_packets(right), EARLY_PACKETS);
}
END_TEST

/* Without dp_ordering a request out of order is dropped, and a NAK reports it (IBTA 9.7.5). */
START_TEST(without_dp_ordering_packets_are_sent_again)
{
    struct lab_wr wr;
    uint64_t src = lab_mem(left, 6 * MTU, 3), dst = lab_mem(right, 6 * MTU, 0);

    connect_as(PRM_DP_ORDERING_IBTA, true, false);
    lab_post_recv(&b, dst, 6 * MTU);
    wr = send_wr(src, 6 * MTU);
    lab_post(&a, &wr);
    run_shuffled();
    ck_assert_uint_gt(qp_counters(b.qp)->out_of_sequence, 0);
    shuffled[0] = false;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_received(6 * MTU);
    ck_assert_uint_gt(lab_count(lab, 0, BTH_SEND_LAST), 1);
}
END_TEST

/* Small data is in its message's CQE (docs/adr/0013), also in order, and also when its packets were
 * kept. */
START_TEST(early_messages_are_in_their_cqes_in_order)
{
    const uint32_t len = 20, num = 3 * WINDOW;
    uint64_t src = lab_mem(left, num * len, 3), dst = lab_mem(right, len, 0);
    struct lab_qp_attr attr = lab_rc;
    struct lab_path path = lab_path;

    attr.cs_res = PRM_CS_RES_UP_TO_32B;
    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(right, &attr, &b);
    path.order = PRM_DP_ORDERING_OOO_ALL;
    lab_connect(lab, &a, &b, &path);
    lab->tap = shuffle;
    shuffled[0] = true;
    shuffled[1] = false;
    num_waiting[0] = num_waiting[1] = captured = 0;
    for (uint32_t i = 0; i < num; i++) {
        struct lab_wr wr = send_wr(src + i * len, len);

        lab_post_recv(&b, dst, len);
        lab_post(&a, &wr);
    }
    run_shuffled();
    ck_assert_uint_ge(captured, num);
    ck_assert_uint_eq(qp_counters(b.qp)->out_of_sequence, 0);
    ck_assert_uint_eq(repairs(), 0);
    for (uint32_t i = 0; i < num; i++) {
        const void *cqe = lab_ptr(right, right->cq_ring + i * 64, 64);

        ck_assert_uint_eq(PRM_GET(cqe64, cqe, format), PRM_CQE_FORMAT_INLINE_32);
        ck_assert_mem_eq(cqe, lab_ptr(left, src + i * len, len), len);
        expect_received(len);
    }
}
END_TEST

/* -- bounds ------------------------------------------------------------------------------------ */

static unsigned tap_from;

static bool drop_first(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != tap_from || l->tap_count++ != 0;
}

static void lose_first(unsigned from)
{
    lab->tap = drop_first;
    lab->tap_count = 0;
    tap_from = from;
}

/* A connection keeps a limited number of packets. A packet without room counts as a loss, and from
 * there everything is sent again. The kept packets are not dropped. */
START_TEST(the_number_of_early_packets_is_limited)
{
    const uint32_t len = (EARLY_MOST + 8) * MTU;
    uint64_t src = lab_mem(left, len, 3), dst = lab_mem(right, len, 0);

    connect_as(PRM_DP_ORDERING_OOO_ALL, false, false);
    lose_first(0);
    write_from(src, len, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, len);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
    ck_assert_uint_eq(free_packets(right), EARLY_PACKETS);
}
END_TEST

/* The function's packets serve all of its connections: if none is free, it is as if there were no
 * room. */
START_TEST(a_function_has_a_bounded_number_of_packets)
{
    struct early_packet *all;
    uint64_t src = lab_mem(left, 4 * MTU, 3), dst = lab_mem(right, 4 * MTU, 0);

    connect_as(PRM_DP_ORDERING_OOO_ALL, false, false);
    all = right->hca.rdma->early.free;
    right->hca.rdma->early.free = NULL;
    lose_first(0);
    write_from(src, 4 * MTU, dst);
    lab_run(lab);
    right->hca.rdma->early.free = all;
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
}
END_TEST

/* The responder does not wait for a lost packet without end, even if the requester has no timer. */
START_TEST(a_lost_request_is_asked_for)
{
    struct lab_path path = lab_path;
    uint64_t src = lab_mem(left, 4 * MTU, 3), dst = lab_mem(right, 4 * MTU, 0);

    path.order = PRM_DP_ORDERING_OOO_ALL;
    path.ack_timeout = 0;
    lab_rc_pair(lab, &a, &b, &path);
    lose_first(0);
    write_from(src, 4 * MTU, dst);
    lab_run(lab);
    expect_none(left);
    ck_assert_uint_eq(kept(&b), 3);
    lab_advance(lab, 1000 * LAB_MS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 4 * MTU);
    ck_assert_uint_eq(qp_counters(b.qp)->out_of_sequence, 1);
    ck_assert_uint_eq(counters()->packet_seq_err, 1);
}
END_TEST

START_TEST(a_lost_response_is_asked_for)
{
    struct lab_path path = lab_path;
    uint64_t dst = lab_mem(left, 4 * MTU, 0), src = lab_mem(right, 4 * MTU, 5);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 4 * MTU, src);

    path.order = PRM_DP_ORDERING_OOO_RW;
    path.ack_timeout = 0;
    lab_rc_pair(lab, &a, &b, &path);
    lose_first(1);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_none(left);
    ck_assert_uint_eq(kept(&a), 3);
    lab_advance(lab, 1000 * LAB_MS);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(dst, src, 4 * MTU);
    ck_assert_uint_eq(counters()->implied_nak_seq_err, 1);
    ck_assert_uint_eq(kept(&a), 0);
}
END_TEST

static bool lose_requests_but_the_second(struct lab *l, unsigned from,
                                         const struct roce_packet *pkt)
{
    (void)pkt;
    return from == 1 || l->tap_count++ == 1;
}

/* A packet whose turn never comes may belong to an earlier connection: it is dropped before other
 * packets reach its PSN, and does not occupy the function's memory for ever. */
START_TEST(an_early_packet_that_waits_too_long_is_dropped)
{
    struct lab_path path = lab_path;
    uint64_t src = lab_mem(left, 2 * MTU, 3), dst = lab_mem(right, 2 * MTU, 0);

    path.order = PRM_DP_ORDERING_OOO_ALL;
    path.ack_timeout = 0;
    lab_rc_pair(lab, &a, &b, &path);
    lab->tap = lose_requests_but_the_second;
    lab->tap_count = 0;
    write_from(src, 2 * MTU, dst);
    lab_run(lab);
    lab_advance(lab, (EARLY_LOOKS - 1) * 250 * LAB_MS);
    ck_assert_uint_eq(kept(&b), 1);
    lab_advance(lab, 500 * LAB_MS);
    ck_assert_uint_eq(kept(&b), 0);
    ck_assert_uint_eq(free_packets(right), EARLY_PACKETS);
}
END_TEST

enum {
    WRITES = 40,
    LEN = 64
};

/* The first request is lost. Of the requests that are sent again, only the first one arrives. */
static bool each_arrives_once(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    unsigned nth = from == 0 ? l->tap_count++ : WRITES;

    return nth != 0 && nth <= WRITES;
}

/* Requests whose turn has come wait for the next turn of the function if this turn is used up. No
 * further packet has to come for that. */
START_TEST(a_turn_carries_out_what_it_has_room_for)
{
    const uint64_t start = 1ull << 40;
    uint64_t src = lab_mem(left, WRITES * LEN, 3), dst = lab_mem(right, LEN, 0);
    uint32_t key;

    connect_as(PRM_DP_ORDERING_OOO_ALL, false, false);
    key = lab_crumbs(right, dst, LEN, start); /* a piece for each byte */
    lab->tap = each_arrives_once;
    lab->tap_count = 0;
    for (unsigned i = 0; i < WRITES; i++) {
        struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src + i * LEN, LEN, start);

        wr.rkey = key;
        lab_post(&a, &wr);
    }
    lab_run(lab);
    ck_assert_uint_eq(kept(&b), WRITES - 1);
    right->hca.most_pieces = 0;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    for (unsigned i = 0; i < WRITES; i++) {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)i);
    }
    ck_assert_mem_eq(lab_ptr(right, dst, LEN), lab_ptr(left, src + (WRITES - 1) * LEN, LEN), LEN);
    ck_assert_uint_eq(kept(&b), 0);
    /* plus what arrived with it in one look at the wire */
    ck_assert_uint_le(right->hca.most_pieces, LAB_BUDGET + 8 * (LEN + 32));
}
END_TEST

/* -- refusals ---------------------------------------------------------------------------------- */

/* An RNR NAK stops its message; the messages behind it are kept until it was sent again (IBTA
 * 9.7.5.2.8). */
START_TEST(early_packets_outlast_an_rnr_nak)
{
    uint64_t src = lab_mem(left, 8 * MTU, 3), dst = lab_mem(right, 8 * MTU, 0);

    connect_as(PRM_DP_ORDERING_OOO_ALL, true, false);
    for (unsigned i = 0; i < 4; i++) {
        struct lab_wr wr = send_wr(src + i * MTU, MTU);

        lab_post(&a, &wr);
    }
    run_shuffled();
    expect_none(right);
    for (unsigned i = 0; i < 4; i++) {
        lab_post_recv(&b, dst + i * MTU, MTU);
    }
    lab_advance(lab, LAB_MS);
    run_shuffled();
    for (unsigned i = 0; i < 4; i++) {
        expect_received(MTU);
        expect_sent(PRM_WQE_OPCODE_SEND, (uint16_t)i);
    }
    same(src, dst, 4 * MTU);
    ck_assert_uint_eq(counters()->rnr_nak_retry_err, 1);
}
END_TEST

/* A request that fails ends the QP: packets that came early are treated as if they had not come. */
START_TEST(an_error_forgets_what_is_kept)
{
    uint64_t src = lab_mem(left, 2 * MTU, 3), dst = lab_mem(right, MTU, 0);
    struct lab_wr bad = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, src, MTU, dst);

    connect_as(PRM_DP_ORDERING_OOO_ALL, true, false);
    bad.rkey ^= 1;
    lab_post(&a, &bad);
    write_from(src + MTU, MTU, dst);
    run_shuffled();
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(right, dst, 1), 0);
    ck_assert_uint_eq(free_packets(right), EARLY_PACKETS);
}
END_TEST

/* RST: the setting of the next INIT2RTR_QP counts. */
START_TEST(a_reset_forgets_it)
{
    uint64_t used = right->hca.memory.used;
    uint64_t src = lab_mem(left, 2 * MTU, 3), dst = lab_mem(right, 2 * MTU, 0);

    connect_as(PRM_DP_ORDERING_OOO_ALL, false, false);
    ck_assert_uint_gt(right->hca.memory.used, used + EARLY_PACKETS * EARLY_PAYLOAD);
    lose_first(0);
    write_from(src, 2 * MTU, dst);
    lab_run(lab);
    ck_assert_uint_eq(kept(&b), 1);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_ptr_null(b.qp->peer.early);
    ck_assert_uint_eq(free_packets(right), EARLY_PACKETS);
}
END_TEST

static enum syn to_rtr(uint8_t st, unsigned order, bool force, unsigned atomic_mode)
{
    struct lab_qp_attr attr = lab_rc;
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);
    const uint8_t *mac = right->mac;
    struct lab_qp qp;

    attr.st = st;
    lab_qp_new(left, &attr, &qp);
    ck_assert_int_eq(lab_modify(&qp, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
    PRM_SET(qpc, qpc, dp_ordering_0, order & 1);
    PRM_SET(qpc, qpc, dp_ordering_1, order >> 1);
    PRM_SET(qpc, qpc, dp_ordering_force, force);
    PRM_SET(qpc, qpc, mtu, lab_path.mtu);
    PRM_SET(qpc, qpc, rae, 1);
    PRM_SET(qpc, qpc, atomic_mode, atomic_mode);
    PRM_SET(ads, ads, src_addr_index, 3);
    PRM_SET(ads, ads, rmac_47_32, mac[0] << 8 | mac[1]);
    memcpy(PRM_PTR(ads, ads, rgid_rip), right->hca.vport->gids[3].gid, 16);
    return qp_modify(&left->hca, 0, qp.qp->obj.num, PRM_CMD_OP_INIT2RTR_QP,
                     st == PRM_QP_ST_RC ? 1u << PRM_QP_OPTPAR_RAE : 0, qpc, NULL);
}

/* Settings that the capabilities do not name are refused: an order that does not exist, an order
 * other than the standard's on an unreliable service, atomics of more than 8 bytes with it (mlx5_ib
 * then requests no longer ones). */
START_TEST(an_unsupported_order_is_refused)
{
    const unsigned short_ones = PRM_ATOMIC_MODE_UP_TO_8B, long_ones = PRM_ATOMIC_MODE_UP_TO_16B;

    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_OOO_ALL, true, short_ones), SYN_OK);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_OOO_RW, true, short_ones), SYN_OK);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_IBTA, true, long_ones), SYN_OK);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, 3, false, short_ones), SYN_QP_FEATURE);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_OOO_ALL, true, long_ones),
                     SYN_QP_FEATURE);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_UC, PRM_DP_ORDERING_OOO_ALL, true, 0), SYN_QP_FEATURE);
    ck_assert_int_eq(to_rtr(PRM_QP_ST_UD, PRM_DP_ORDERING_OOO_ALL, true, 0), SYN_QP_FEATURE);
    left->hca.limits.early_packets = false;
    ck_assert_int_eq(to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_OOO_RW, false, short_ones),
                     SYN_QP_FEATURE);
}
END_TEST

/* Without dp_ordering_force the port's setting counts: the standard's order. */
START_TEST(without_force_the_order_of_the_port_counts)
{
    struct lab_path path = lab_path;

    path.order = PRM_DP_ORDERING_OOO_ALL;
    lab_rc_pair(lab, &a, &b, &path);
    ck_assert_ptr_nonnull(b.qp->peer.early);
    ck_assert_int_eq(
        to_rtr(PRM_QP_ST_RC, PRM_DP_ORDERING_OOO_ALL, false, PRM_ATOMIC_MODE_UP_TO_128B), SYN_OK);
    ck_assert_uint_eq(free_packets(left), EARLY_PACKETS);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("early");
    TCase *tc = tcase_create("early");

    tcase_add_checked_fixture(tc, setup_bare, teardown);
    tcase_add_loop_test(tc, requests_may_come_in_any_order, PRM_DP_ORDERING_OOO_RW,
                        PRM_DP_ORDERING_OOO_ALL + 1);
    tcase_add_loop_test(tc, responses_may_come_in_any_order, PRM_DP_ORDERING_OOO_RW,
                        PRM_DP_ORDERING_OOO_ALL + 1);
    tcase_add_loop_test(tc, both_may_come_in_any_order, PRM_DP_ORDERING_OOO_RW,
                        PRM_DP_ORDERING_OOO_ALL + 1);
    tcase_add_test(tc, without_dp_ordering_packets_are_sent_again);
    tcase_add_test(tc, early_messages_are_in_their_cqes_in_order);
    tcase_add_test(tc, the_number_of_early_packets_is_limited);
    tcase_add_test(tc, a_function_has_a_bounded_number_of_packets);
    tcase_add_test(tc, a_lost_request_is_asked_for);
    tcase_add_test(tc, a_lost_response_is_asked_for);
    tcase_add_test(tc, an_early_packet_that_waits_too_long_is_dropped);
    tcase_add_test(tc, a_turn_carries_out_what_it_has_room_for);
    tcase_add_test(tc, early_packets_outlast_an_rnr_nak);
    tcase_add_test(tc, an_error_forgets_what_is_kept);
    tcase_add_test(tc, a_reset_forgets_it);
    tcase_add_test(tc, an_unsupported_order_is_refused);
    tcase_add_test(tc, without_force_the_order_of_the_port_counts);
    suite_add_tcase(suite, tc);
    return suite;
}
