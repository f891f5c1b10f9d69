/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests sessions of dynamic connections whose packets arrive out of order (dctc.dp_ordering). */
#include "model/memory/mkey_priv.h"
#include "model/rdma/early.h"
#include "model/rdma/rdma.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

#define WINDOW 6

static struct lab_dct ordered;
static struct waiting {
    struct roce_packet pkt;
    uint8_t payload[4096];
} waiting[2][WINDOW];
static unsigned num_waiting[2];

static void let_go(unsigned from)
{
    while (num_waiting[from]) {
        struct waiting *w = &waiting[from][--num_waiting[from]];
        size_t len = w->pkt.payload_len;
        uint8_t *frame = wire_tx_reserve(lab->mid[!from], roce_frame_len(&w->pkt, len));

        ck_assert_ptr_nonnull(frame);
        memcpy(roce_build(frame, &w->pkt, len), w->payload, len);
        wire_tx_commit(lab->mid[!from], roce_finish(frame, &w->pkt, len));
    }
}

/* Reverses the packets, except CONNECT and DISCONNECT: before CONNECT and after DISCONNECT there is
 * no session to which packets could belong. */
static bool shuffle(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    struct waiting *w = &waiting[from][num_waiting[from]];

    if (pkt->opcode == (BTH_DC | BTH_CONNECT)) {
        let_go(from);
        return true;
    }
    w->pkt = *pkt;
    memcpy(w->payload, pkt->payload, pkt->payload_len);
    if (++num_waiting[from] == WINDOW) {
        let_go(from);
    }
    return false;
}

static void run_shuffled(void)
{
    lab->tap = shuffle;
    do {
        let_go(0);
        let_go(1);
        lab_run(lab);
    } while (num_waiting[0] || num_waiting[1]);
    lab->tap = NULL;
}

static enum syn make_target(unsigned order, bool force, unsigned atomic_mode, struct lab_dct *out)
{
    struct prm_dctc dctc[1];

    lab_dctc(far, dctc);
    PRM_SET(dctc, dctc, dp_ordering_0, order & 1);
    PRM_SET(dctc, dctc, dp_ordering_1, order >> 1);
    PRM_SET(dctc, dctc, dp_ordering_force, force);
    PRM_SET(dctc, dctc, atomic_mode, atomic_mode);
    *out = dct; /* its SRQ */
    return lab_dct_create(far, dctc, out);
}

static void setup_ordered(void)
{
    struct lab_path path = lab_path;

    setup();
    path.order = PRM_DP_ORDERING_OOO_ALL;
    lab_dci_new(near, &lab_dci, &path, &dci);
    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_ALL, true, PRM_ATOMIC_MODE_UP_TO_8B, &ordered),
                     SYN_OK);
}

/* Messages to two targets, one after the other: nothing is sent twice, and nothing is lost. */
START_TEST(a_session_takes_packets_in_any_order)
{
    struct lab_dct second;
    const struct q_counter *req = qp_counters(dci.qp);
    const struct q_counter *resp = far->hca.scratch_q_counter;

    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_RW, true, PRM_ATOMIC_MODE_UP_TO_8B, &second),
                     SYN_OK);
    for (unsigned i = 0; i < 12; i++) {
        lab_dct_post_recv(&dct, dst + 4096 * i, 4096);
        second.posted = ordered.posted = dct.posted;
    }
    for (unsigned i = 0; i < 12; i++) {
        send_from(&dci, i < 6 ? &ordered : &second, 4000, 0);
        add_to(&dci, i < 6 ? &ordered : &second);
    }
    run_shuffled();
    for (unsigned i = 0; i < 12; i++) {
        expect_received(i < 6 ? &ordered : &second, 4000);
        expect_sent(0);
        expect_sent(0);
        /* except the first word, which the atomics return */
        ck_assert_mem_eq(lab_ptr(far, dst + 4096 * i + 8, 3992), lab_ptr(near, src + 8, 3992),
                         3992);
    }
    ck_assert_uint_eq(sum(), 12);
    ck_assert_uint_eq(req->packet_seq_err + req->implied_nak_seq_err + req->local_ack_timeout_err,
                      0);
    ck_assert_uint_eq(resp->out_of_sequence + resp->duplicate_request, 0);
}
END_TEST

/* Early packets of a session are freed with it, and so is their memory. */
START_TEST(a_session_that_ends_forgets_it)
{
    uint64_t used;

    send_from(&dci, &ordered, LEN, 0);
    lab_run(lab);
    used = far->hca.icm.used;
    ck_assert_int_eq(dct_destroy(&far->hca, 0, ordered.dctn), SYN_OK);
    ck_assert_uint_lt(far->hca.icm.used, used);
    used = 0;
    for (const struct early_packet *e = far->hca.rdma->early.free; e; e = e->next) {
        used++;
    }
    ck_assert_uint_eq(used, EARLY_PACKETS);
}
END_TEST

START_TEST(a_target_is_refused_as_a_qp_is)
{
    struct lab_dct out;

    ck_assert_int_eq(make_target(3, true, PRM_ATOMIC_MODE_UP_TO_8B, &out), SYN_QP_FEATURE);
    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_ALL, true, PRM_ATOMIC_MODE_UP_TO_16B, &out),
                     SYN_QP_FEATURE);
    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_ALL, false, PRM_ATOMIC_MODE_UP_TO_16B, &out),
                     SYN_OK);
    far->hca.limits.early_packets = false;
    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_RW, false, PRM_ATOMIC_MODE_UP_TO_8B, &out),
                     SYN_QP_FEATURE);
}
END_TEST

static const struct lab_qp_attr with_streams = {
    .st = PRM_QP_ST_DCI, .log_sq = 7, .no_rq = true, .log_streams = 3, .log_errored = 2};

static void initiator_with_streams(uint8_t retry_count)
{
    struct lab_path path = lab_path;

    path.order = PRM_DP_ORDERING_OOO_ALL;
    path.retry_count = retry_count;
    lab_dci_new(near, &with_streams, &path, &dci);
}

static void read_in_stream(uint32_t len, uint32_t rkey, uint16_t stream)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src, len, 0}},
                          .num_sge = 1,
                          .raddr = dst,
                          .rkey = rkey,
                          .stream = stream};

    lab_post(&dci, lab_to(&read, &ordered));
}

static bool lose_first_response(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    (void)pkt;
    return from == 0 || l->tap_count++ > 0;
}

/* A response is kept, the response before it never comes, and both requests fail by their streams
 * alone. The initiator continues without them, and without what it has kept. */
START_TEST(an_early_response_of_a_failed_request_is_dropped)
{
    initiator_with_streams(0);
    lab->tap = lose_first_response;
    lab->tap_count = 0;
    read_in_stream(512, far->key, 1);
    read_in_stream(512, far->key, 2);
    lab_run(lab);
    ck_assert_uint_eq(dci.qp->peer.early->num, 1);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(dci.qp->peer.early->num, 0);
    lab_advance(lab, 1000 * LAB_MS);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_RTS);
    read_in_stream(512, far->key, 3);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

static bool keep_responses(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    struct waiting *w = &waiting[1][num_waiting[1]];

    (void)l;
    if (from == 0) {
        return true;
    }
    ck_assert_uint_lt(num_waiting[1]++, WINDOW);
    w->pkt = *pkt;
    memcpy(w->payload, pkt->payload, pkt->payload_len);
    return false;
}

/* SEND, READ, a failing READ, an atomic: the NAK arrives first, then the earlier answers, in either
 * order. The NAK's own MSN says what was executed, whatever an older ACK says meanwhile: the atomic
 * was executed or not, but never twice (docs/adr/0009). */
START_TEST(a_nak_that_came_early_is_judged_by_its_own_msn)
{
    uint32_t rkey = lab_mr(far, dst, 8192, MEM_REMOTE_READ);
    struct mkey *mkey = mkey_find(&far->hca, rkey >> 8);
    struct waiting first[2];

    initiator_with_streams(7);
    mkey->mtt[1] = 0; /* the READ fails at its second page, after others are done */
    lab->tap = keep_responses;
    lab_dct_post_recv(&dct, dst, LEN);
    ordered.posted = dct.posted;
    send_from(&dci, &ordered, LEN, 0);
    lab_run(lab);
    read_in_stream(512, far->key, 1);
    lab_run(lab);
    read_in_stream(8192, rkey, 2);
    add_to(&dci, &ordered);
    lab_run(lab);
    ck_assert_uint_eq(sum(), 1);
    ck_assert_uint_ge(num_waiting[1], 3);
    lab->tap = NULL;
    memcpy(first, waiting[1], sizeof(first));
    memmove(waiting[1], waiting[1] + 2, (num_waiting[1] - 2) * sizeof(waiting[1][0]));
    num_waiting[1] -= 2;
    let_go(1);
    lab_run(lab);
    for (unsigned i = 0; i < 2; i++) {
        waiting[1][num_waiting[1]++] = first[i ^ (unsigned)_i];
        let_go(1);
        lab_run(lab);
    }
    lab_advance(lab, 8 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(sum(), 1);
}
END_TEST

/* A target's connections begin with their first packets, so the memory for early packets exists
 * before. */
START_TEST(a_target_has_the_memory_before_its_connections)
{
    struct lab_dct out;

    ck_assert_uint_eq(far->hca.rdma->early.made, EARLY_PACKETS);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, ordered.dctn), SYN_OK);
    early_pool_empty(&far->hca);
    far->hca.memory.limit = far->hca.memory.used + 300000;
    ck_assert_int_eq(make_target(PRM_DP_ORDERING_OOO_ALL, true, PRM_ATOMIC_MODE_UP_TO_8B, &out),
                     SYN_NO_MEMORY);
    ck_assert_uint_eq(far->hca.rdma->early.made, 0);
    ck_assert_int_eq(make_target(0, false, PRM_ATOMIC_MODE_UP_TO_8B, &out), SYN_OK);
}
END_TEST

static bool lose_second_request(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    (void)pkt;
    return from == 1 || l->tap_count++ != 1;
}

START_TEST(a_target_in_error_sends_nothing)
{
    for (unsigned i = 0; i < 2; i++) {
        lab_dct_post_recv(&dct, dst, LEN);
        ordered.posted = dct.posted;
    }
    lab->tap = lose_second_request;
    lab->tap_count = 0;
    send_from(&dci, &ordered, LEN, 0);
    send_from(&dci, &ordered, LEN, 0);
    lab_run(lab);
    lab->tap = keep_responses;
    qp_fatal(&lab_dct_of(&ordered)->qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR); /* as if its CQ failed */
    lab_advance(lab, 900 * LAB_MS);
    ck_assert_uint_eq(num_waiting[1], 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("dc, early packets");
    TCase *tc = tcase_create("dc early");

    tcase_add_checked_fixture(tc, setup_ordered, teardown);
    tcase_add_test(tc, a_session_takes_packets_in_any_order);
    tcase_add_test(tc, a_session_that_ends_forgets_it);
    tcase_add_test(tc, a_target_is_refused_as_a_qp_is);
    tcase_add_test(tc, an_early_response_of_a_failed_request_is_dropped);
    tcase_add_loop_test(tc, a_nak_that_came_early_is_judged_by_its_own_msn, 0, 2);
    tcase_add_test(tc, a_target_has_the_memory_before_its_connections);
    tcase_add_test(tc, a_target_in_error_sends_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
