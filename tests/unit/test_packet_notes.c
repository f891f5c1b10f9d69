/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a device says of the packets that it sends (wire/note.h): which WQE or request they
 * belong to, and why a packet is repeated.
 */
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MOST 64

/* The notes of each side, in order. */
static struct wire_note notes[2][MOST];
static unsigned num_notes[2];
static struct wire_port_ops noting_ops[2];

static void keep_note(unsigned side, const struct wire_note *note)
{
    ck_assert_uint_lt(num_notes[side], MOST);
    notes[side][num_notes[side]++] = *note;
}

static void keep_left(struct wire_port *port, const struct wire_note *note)
{
    keep_note(0, note);
}

static void keep_right(struct wire_port *port, const struct wire_note *note)
{
    keep_note(1, note);
}

static void want_notes(bool wants)
{
    for (unsigned i = 0; i < 2; i++) {
        struct wire_port *wire = lab->side[i].hca.vport->uplink->wire;

        noting_ops[i] = *wire->ops;
        noting_ops[i].note = i ? keep_right : keep_left;
        wire->ops = &noting_ops[i];
        wire->wants_notes = wants;
        num_notes[i] = 0;
    }
}

static void setup_noting(void)
{
    setup();
    want_notes(true);
}

static void expect_request(unsigned n, uint16_t wqe, uint32_t first_psn, enum wire_note_why why)
{
    const struct wire_note *note = &notes[0][n];

    ck_assert_uint_lt(n, num_notes[0]);
    ck_assert(!note->is_response && note->has_wqe);
    ck_assert_uint_eq(note->qpn, a.qp->obj.num);
    ck_assert_uint_eq(note->wqe, wqe);
    ck_assert_uint_eq(note->first_psn, (lab_path.psn + first_psn) & PSN_MASK);
    ck_assert_str_eq(wire_note_words(note->why), wire_note_words(why));
    ck_assert_int_eq(wire_note_repeats(note), why != WIRE_NOTE_FIRST);
}

static void expect_response(unsigned n, uint32_t request_psn, enum wire_note_why why)
{
    const struct wire_note *note = &notes[1][n];

    ck_assert_uint_lt(n, num_notes[1]);
    ck_assert(note->is_response);
    ck_assert_uint_eq(note->qpn, b.qp->obj.num);
    ck_assert_uint_eq(note->request_psn, (lab_path.psn + request_psn) & PSN_MASK);
    ck_assert_str_eq(wire_note_words(note->why), wire_note_words(why));
}

START_TEST(a_packet_names_its_wqe_and_an_ack_its_request)
{
    uint64_t src = lab_mem(left, 3000, 3), dst = lab_mem(right, 3000, 0);

    write_from(src, 3000, dst);
    write_from(src, 8, dst);
    lab_run(lab);
    ck_assert_uint_eq(num_notes[0], 4);
    expect_request(0, 0, 0, WIRE_NOTE_FIRST);
    expect_request(2, 0, 0, WIRE_NOTE_FIRST);
    expect_request(3, 1, 3, WIRE_NOTE_FIRST);
    expect_response(num_notes[1] - 1, 3, WIRE_NOTE_FIRST);
}
END_TEST

START_TEST(a_repeated_packet_names_the_nak)
{
    uint64_t src = lab_mem(left, 3000, 3), dst = lab_mem(right, 3000, 0);

    lose_psn(0, 1, 1);
    write_from(src, 3000, dst);
    lab_run(lab);
    ck_assert_uint_eq(num_notes[0], 5);
    expect_request(3, 0, 0, WIRE_NOTE_NAK_SEQUENCE);
    expect_request(4, 0, 0, WIRE_NOTE_NAK_SEQUENCE);
    ck_assert_uint_eq(notes[0][3].retry, 1);
    expect_response(0, 1, WIRE_NOTE_GAP);
}
END_TEST

START_TEST(a_repeated_packet_names_the_timeout_and_its_ack_the_duplicate)
{
    uint64_t src = lab_mem(left, 64, 3), dst = lab_mem(right, 64, 0);

    lose_psn(1, 0, 1);
    write_from(src, 64, dst);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(num_notes[0], 2);
    expect_request(0, 0, 0, WIRE_NOTE_FIRST);
    expect_request(1, 0, 0, WIRE_NOTE_ACK_TIMEOUT);
    expect_response(0, 0, WIRE_NOTE_FIRST);
    expect_response(1, 0, WIRE_NOTE_DUPLICATE);
}
END_TEST

START_TEST(a_read_is_repeated_because_a_response_is_missing)
{
    uint64_t dst = lab_mem(left, 4096, 0), src = lab_mem(right, 4096, 3);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, dst, 4096, src);

    lose_psn(1, 1, 1);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(num_notes[0], 2);
    expect_request(1, 0, 0, WIRE_NOTE_IMPLIED_NAK);
    expect_response(0, 0, WIRE_NOTE_FIRST);
    expect_response(num_notes[1] - 1, 0, WIRE_NOTE_DUPLICATE);
}
END_TEST

START_TEST(a_send_is_repeated_because_of_an_rnr_nak)
{
    struct lab_wr wr = send_wr(lab_mem(left, 64, 3), 64);

    lab_post(&a, &wr);
    lab_run(lab);
    expect_response(0, 0, WIRE_NOTE_NOT_READY);
    lab_post_recv(&b, lab_mem(right, 64, 0), 64);
    lab_advance(lab, 1000 * LAB_MS);
    ck_assert_uint_eq(num_notes[0], 2);
    expect_request(1, 0, 0, WIRE_NOTE_RNR);
    expect_response(1, 0, WIRE_NOTE_FIRST);
}
END_TEST

START_TEST(a_refusal_is_no_repetition)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 8, 1), 8, 0);

    wr.rkey ^= 0x100;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_response(0, 0, WIRE_NOTE_REFUSES);
    ck_assert(!wire_note_repeats(&notes[1][0]));
}
END_TEST

START_TEST(nothing_is_noted_if_nobody_wants_it)
{
    setup();
    want_notes(false);
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    ck_assert_uint_eq(num_notes[0] + num_notes[1], 0);
    teardown();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("packet notes");
    TCase *tcase = tcase_create("noting"), *off = tcase_create("off");

    tcase_add_checked_fixture(tcase, setup_noting, teardown);
    tcase_add_test(tcase, a_packet_names_its_wqe_and_an_ack_its_request);
    tcase_add_test(tcase, a_repeated_packet_names_the_nak);
    tcase_add_test(tcase, a_repeated_packet_names_the_timeout_and_its_ack_the_duplicate);
    tcase_add_test(tcase, a_read_is_repeated_because_a_response_is_missing);
    tcase_add_test(tcase, a_send_is_repeated_because_of_an_rnr_nak);
    tcase_add_test(tcase, a_refusal_is_no_repetition);
    suite_add_tcase(s, tcase);
    tcase_add_test(off, nothing_is_noted_if_nobody_wants_it);
    suite_add_tcase(s, off);
    return s;
}
