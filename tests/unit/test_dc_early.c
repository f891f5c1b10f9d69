/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of dynamic connections whose packets come out of order (dctc.dp_ordering). */
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

/* The last first, but for CONNECT and DISCONNECT: before the one and behind the other there is
 * nobody whose packets they would be. */
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

/* Messages to two targets, one after the other: nothing is sent twice, nothing is lost. */
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
        /* but for the first word, which the atomics bring */
        ck_assert_mem_eq(lab_ptr(far, dst + 4096 * i + 8, 3992), lab_ptr(near, src + 8, 3992),
                         3992);
    }
    ck_assert_uint_eq(sum(), 12);
    ck_assert_uint_eq(req->packet_seq_err + req->implied_nak_seq_err + req->local_ack_timeout_err,
                      0);
    ck_assert_uint_eq(resp->out_of_sequence + resp->duplicate_request, 0);
}
END_TEST

/* What a session has kept goes with it; so does what it kept it in. */
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

Suite *unit_suite(void)
{
    Suite *suite = suite_create("dc, early packets");
    TCase *tc = tcase_create("dc early");

    tcase_add_checked_fixture(tc, setup_ordered, teardown);
    tcase_add_test(tc, a_session_takes_packets_in_any_order);
    tcase_add_test(tc, a_session_that_ends_forgets_it);
    tcase_add_test(tc, a_target_is_refused_as_a_qp_is);
    suite_add_tcase(suite, tc);
    return suite;
}
