/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests congestion control of dynamic connections (docs/explanation/congestion.md): READ data of a
 * target may be marked, its initiator answers marks, and only that session slows down. The link has
 * 1 Gb/s.
 */
#include "model/port/cong.h"
#include "model/rdma/reaction_point.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

#define MBPS  1000u
#define US    1000ull
#define BYTES 32768u

static struct lab_qp second; /* an initiator that waits long for READs: a second each time */

static struct cong *cong_of(struct lab_side *side)
{
    return &side->hca.vport->uplink->cong;
}

static void setup_slow_link(void)
{
    struct lab_path path = lab_path;

    setup();
    near->hca.vport->uplink->line_mbps = far->hca.vport->uplink->line_mbps = MBPS;
    cong_of(far)->rp.rpg_time_reset = 131071; /* rates stay as they are */
    cong_of(far)->rp.rpg_byte_reset = 0;
    path.ack_timeout = 18;
    lab_dci_new(near, &lab_dci, &path, &second);
}

static void read_by(struct lab_qp *qp, uint32_t len)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                        .sge = {{src, len, 0}},
                        .num_sge = 1,
                        .raddr = dst,
                        .rkey = far->key};

    lab_post(qp, lab_to(&wr, &dct));
}

/* Returns the time until it is complete, in nanoseconds. */
static uint64_t time_of_read(struct lab_qp *qp)
{
    uint64_t start = near->host.now;
    struct lab_cqe cqe;

    read_by(qp, BYTES);
    lab_run(lab);
    while (!lab_poll(near, &cqe)) {
        ck_assert_uint_lt(near->host.now - start, 10000 * LAB_MS);
        lab_advance(lab, 10 * US);
    }
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    return near->host.now - start;
}

/* Returns the target's end of the initiator's session. */
static struct peer *peer_of(const struct lab_qp *qp)
{
    for (GList *at = lab_dct_of(&dct)->responders.head; at; at = at->next) {
        struct dc_responder *responder = at->data;

        if (responder->peer.qpn == qp->qp->obj.num) {
            return &responder->peer;
        }
    }
    return NULL;
}

static const struct roce_packet *last_packet(unsigned from, uint8_t opcode)
{
    const struct roce_packet *found = NULL;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        if (lab->trace[i].from == from && lab->trace[i].pkt.opcode == opcode) {
            found = &lab->trace[i].pkt;
        }
    }
    return found;
}

/* Returns what the initiator sends after a mark. */
static struct roce_packet cnp_of(const struct lab_qp *qp)
{
    struct roce_packet pkt = {
        .addr = qp->qp->peer.path,
        .opcode = BTH_CNP_OPCODE,
        .becn = true,
        .pkey = 0xffff,
        .dest_qp = dct.dctn,
    };

    dc_address(&qp->qp->peer, &pkt);
    return pkt;
}

static void put(unsigned side, const struct roce_packet *pkt)
{
    struct wire_port *wire = lab->mid[side];
    uint8_t *frame = wire_tx_reserve(wire, roce_frame_len(pkt, 0));

    ck_assert_ptr_nonnull(frame);
    roce_build(frame, pkt, 0);
    wire_tx_commit(wire, roce_finish(frame, pkt, 0));
    lab_run(lab);
}

static void tell(const struct lab_qp *qp)
{
    struct roce_packet pkt = cnp_of(qp);

    put(1, &pkt);
}

START_TEST(read_data_says_that_it_may_be_marked)
{
    read_by(&dci, LEN);
    lab_run(lab);
    ck_assert_uint_eq(last_packet(1, BTH_DC | BTH_READ_RESP_ONLY)->addr.tclass & ECN_MASK,
                      ECN_ECT0);
    cong_of(far)->rp_side.tagged = 0;
    lab_advance(lab, LOOK);
    read_by(&dci, LEN);
    lab_run(lab);
    ck_assert_uint_eq(last_packet(1, BTH_DC | BTH_READ_RESP_ONLY)->addr.tclass & ECN_MASK, 0);
}
END_TEST

/* The CNP goes to the target and names its session. */
START_TEST(the_initiator_answers_marks)
{
    const struct roce_packet *cnp;

    read_by(&dci, LEN);
    lab_run(lab);
    peer_of(&dci)->path.tclass |= ECN_CE;
    read_by(&dci, LEN);
    lab_run(lab);
    cnp = last_packet(0, BTH_CNP_OPCODE);
    ck_assert_ptr_nonnull(cnp);
    ck_assert(cnp->becn);
    ck_assert_uint_eq(cnp->dest_qp, dct.dctn);
    ck_assert_uint_eq(cnp->dceth.session, dci.qp->peer.session);
    ck_assert_uint_eq(cnp->dceth.number, dci.qp->obj.num);
    ck_assert_uint_eq(cnp->dceth.version, near->hca.limits.dc_version);
    ck_assert_uint_eq(cong_of(near)->counters.cnps_sent, 1);
    ck_assert_uint_eq(cong_of(far)->counters.cnps_handled, 1);
    ck_assert_ptr_nonnull(peer_of(&dci)->limiter);
}
END_TEST

/* An initiator has one limiter, so no session need be named. */
START_TEST(a_target_answers_marks)
{
    const struct roce_packet *cnp;

    write_to(&dct, far->key, LEN, 0);
    lab_run(lab);
    dci.qp->peer.path.tclass |= ECN_CE;
    write_to(&dct, far->key, LEN, 0);
    lab_run(lab);
    cnp = last_packet(1, BTH_CNP_OPCODE);
    ck_assert_ptr_nonnull(cnp);
    ck_assert_uint_eq(cnp->dest_qp, dci.qp->obj.num);
    ck_assert_uint_eq(cnp->dceth.session | cnp->dceth.number | cnp->dceth.version, 0);
    ck_assert_uint_eq(cong_of(near)->counters.cnps_handled, 1);
    ck_assert_ptr_nonnull(dci.qp->peer.limiter);
    ck_assert_ptr_null(peer_of(&dci)->limiter);
}
END_TEST

/* A mark that does not name the present session belongs to the last one, or is forged. */
START_TEST(marks_of_another_session_are_not_answered)
{
    struct roce_packet pkt;

    read_by(&dci, LEN);
    lab_run(lab);
    pkt = *last_packet(1, BTH_DC | BTH_READ_RESP_ONLY);
    pkt.addr.tclass |= ECN_CE;
    pkt.dceth.session--;
    put(0, &pkt);
    ck_assert_uint_eq(cong_of(near)->counters.marked, 1);
    ck_assert_ptr_null(last_packet(0, BTH_CNP_OPCODE));
}
END_TEST

/* 32 KiB at 500 Mb/s take 537 us with headers. */
START_TEST(a_session_that_got_a_cnp_reads_at_its_rate)
{
    uint64_t ns;

    read_by(&dci, LEN);
    lab_run(lab);
    expect_sent(0);
    tell(&dci);
    ck_assert_uint_eq(peer_of(&dci)->limiter->current / 1000, MBPS / 2);
    ck_assert_uint_eq(cong_of(far)->flows, 1);
    ns = time_of_read(&dci);
    ck_assert_uint_ge(ns, 520 * US);
    ck_assert_uint_le(ns, 620 * US);
    ck_assert_mem_eq(lab_ptr(near, src, BYTES), lab_ptr(far, dst, BYTES), BYTES);
    expect_no_sequence_errors();
}
END_TEST

START_TEST(others_of_the_target_read_at_full_speed)
{
    read_by(&dci, LEN);
    read_by(&second, LEN);
    lab_run(lab);
    expect_sent(0);
    expect_sent(0);
    tell(&dci);
    ck_assert_ptr_null(peer_of(&second)->limiter);
    ck_assert_uint_lt(time_of_read(&second), 20 * US);
}
END_TEST

/* Only a member of a session can slow it down. */
START_TEST(a_cnp_of_no_session_is_ignored)
{
    struct roce_packet pkt;

    read_by(&dci, LEN);
    lab_run(lab);
    pkt = cnp_of(&dci);
    pkt.dceth.session++;
    put(1, &pkt);
    pkt = cnp_of(&dci);
    pkt.dceth.number++;
    put(1, &pkt);
    pkt = cnp_of(&dci);
    pkt.dceth.version ^= 1;
    put(1, &pkt);
    pkt = cnp_of(&dci);
    pkt.addr.sgid[15] ^= 1;
    put(1, &pkt);
    pkt = cnp_of(&dci);
    pkt.dest_qp = other.dctn;
    put(1, &pkt);
    pkt = cnp_of(&dci);
    memset(&pkt.dceth, 0, sizeof(pkt.dceth)); /* as annex A17.9 has it */
    put(1, &pkt);
    ck_assert_uint_eq(cong_of(far)->counters.cnps_ignored, 6);
    ck_assert_uint_eq(cong_of(far)->counters.cnps_handled, 0);
    ck_assert_ptr_null(peer_of(&dci)->limiter);
}
END_TEST

START_TEST(a_limiter_ends_with_its_session)
{
    read_by(&dci, LEN);
    lab_run(lab);
    tell(&dci);
    ck_assert_uint_eq(cong_of(far)->flows, 1);
    lab_advance(lab, LOOK);
    ck_assert_ptr_null(peer_of(&dci));
    ck_assert_uint_eq(cong_of(far)->flows, 0);
}
END_TEST

/* Waiting data does not outlive the target. */
START_TEST(a_target_is_destroyed_while_read_data_waits)
{
    cong_of(far)->rp.rate_to_set_on_first_cnp = 1;
    read_by(&dci, LEN);
    lab_run(lab);
    tell(&dci);
    read_by(&dci, BYTES);
    lab_run(lab);
    ck_assert_uint_ne(peer_of(&dci)->limiter->timer.pos, 0);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    ck_assert_uint_eq(cong_of(far)->flows, 0);
    lab_advance(lab, 100 * LAB_MS);
}
END_TEST

/* A target whose READ data waits still owes it when it is told to drain. It is drained at the first
 * of its checks, 250 ms apart, that finds all data sent, and at the last check in any case. */
static void drain_within(uint32_t bytes, uint64_t ns)
{
    uint8_t type;
    uint32_t num;

    cong_of(far)->rp.rate_to_set_on_first_cnp = 1;
    cong_of(far)->rp.rpg_threshold = 31; /* it stays so */
    read_by(&second, LEN);
    lab_run(lab);
    expect_sent(0);
    tell(&second);
    read_by(&second, bytes);
    lab_run(lab);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_OK);
    lab_advance(lab, ns - LAB_MS);
    ck_assert(!lab_event(far, &type, &num));
    lab_advance(lab, 2 * LAB_MS);
    ck_assert(lab_event(far, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_DCT_DRAINED);
    ck_assert_uint_eq(num, dct.dctn);
    ck_assert_ptr_null(peer_of(&second));
    ck_assert_uint_eq(cong_of(far)->flows, 0);
}

/* 32 KiB at 1 Mb/s take 275 ms. */
START_TEST(a_target_drains_when_its_read_data_is_sent)
{
    drain_within(BYTES, 500 * LAB_MS);
    expect_sent(0);
    ck_assert_mem_eq(lab_ptr(near, src, BYTES), lab_ptr(far, dst, BYTES), BYTES);
}
END_TEST

/* 256 KiB would take two. */
START_TEST(a_target_drains_within_a_second)
{
    src = lab_mem(near, 8 * BYTES, 1);
    dst = lab_mem(far, 8 * BYTES, 0);
    drain_within(8 * BYTES, 1000 * LAB_MS);
    expect_nothing(near);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("dc congestion");
    TCase *tc = tcase_create("dc congestion");

    tcase_add_checked_fixture(tc, setup_slow_link, teardown);
    tcase_add_test(tc, read_data_says_that_it_may_be_marked);
    tcase_add_test(tc, the_initiator_answers_marks);
    tcase_add_test(tc, a_target_answers_marks);
    tcase_add_test(tc, marks_of_another_session_are_not_answered);
    tcase_add_test(tc, a_session_that_got_a_cnp_reads_at_its_rate);
    tcase_add_test(tc, others_of_the_target_read_at_full_speed);
    tcase_add_test(tc, a_cnp_of_no_session_is_ignored);
    tcase_add_test(tc, a_limiter_ends_with_its_session);
    tcase_add_test(tc, a_target_is_destroyed_while_read_data_waits);
    tcase_add_test(tc, a_target_drains_when_its_read_data_is_sent);
    tcase_add_test(tc, a_target_drains_within_a_second);
    suite_add_tcase(suite, tc);
    return suite;
}
