/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a capture says of packets: the note of the sender (wire/note.h), the fate of the
 * frame, and that each stays with its frame when frames are delayed.
 */
#include "wire/capture.h"
#include "wire/fault/port.h"
#include "wire/note.h"
#include "wire/pair.h"
#include "tests/unit/capture_reader.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LEN = 60,
    REORDERED = 5
};

static char *path;
static struct wire_port *ends[2];

static void make_path(void)
{
    g_autofree char *folder = g_dir_make_tmp("hcasim-XXXXXX", NULL);

    path = g_build_filename(folder, "notes.pcapng", NULL);
    wire_pair_new(64, ends);
}

static void remove_path(void)
{
    g_autofree char *folder = g_path_get_dirname(path);

    g_remove(path);
    g_rmdir(folder);
    g_free(path);
}

static const struct {
    struct wire_note note;
    const char *process, *text;
} texts[] = {
    {{.qpn = 0x4b, .has_wqe = true, .wqe = 3, .first_psn = 100},
     "pingpong[7]",
     "qp=0x4b wqe=3 message=100 process=pingpong[7] why=first time"},
    {{.qpn = 0x4b, .has_wqe = true, .wqe = 3, .why = WIRE_NOTE_ACK_TIMEOUT, .retry = 2},
     NULL,
     "qp=0x4b wqe=3 message=0 retry=2 why=repeated: ACK timeout"},
    {{.qpn = 1, .is_response = true, .request_psn = 9, .why = WIRE_NOTE_DUPLICATE},
     NULL,
     "qp=0x1 request=9 why=repeated: the request came again"},
    {{.qpn = 1, .why = WIRE_NOTE_CONNECTS}, NULL, "qp=0x1 why=opens or closes a DC session"},
    {{.function = 2, .why = WIRE_NOTE_CONGESTION}, NULL, "function=2 why=congestion notification"},
};

START_TEST(a_note_has_the_words_that_apply)
{
    char text[WIRE_CAPTURE_NOTE];

    wire_capture_note_text(text, &texts[_i].note, texts[_i].process);
    ck_assert_str_eq(text, texts[_i].text);
}
END_TEST

START_TEST(the_longest_note_is_whole)
{
    struct wire_note note = {.function = UINT32_MAX,
                             .qpn = UINT32_MAX,
                             .has_wqe = true,
                             .wqe = UINT16_MAX,
                             .first_psn = UINT32_MAX,
                             .retry = UINT8_MAX};
    char text[WIRE_CAPTURE_NOTE], process[1000];

    memset(process, 'p', sizeof(process) - 1);
    process[sizeof(process) - 1] = '\0';
    for (unsigned why = 0; why < WIRE_NOTE_REASON_COUNT; why++) {
        note.why = (uint8_t)why;
        wire_capture_note_text(text, &note, process);
        ck_assert_msg(g_str_has_suffix(text, wire_note_words((enum wire_note_why)why)), "%s", text);
    }
}
END_TEST

static void send_one(struct wire_port *port, uint8_t fill, bool has_note)
{
    uint8_t *frame = wire_tx_reserve(port, LEN);

    ck_assert_ptr_nonnull(frame);
    memset(frame, fill, LEN);
    if (has_note && port->wants_notes) {
        wire_note(port, &(struct wire_note){.qpn = fill});
    }
    wire_tx_commit(port, LEN);
}

static void expect_comments(const char *const *expected, unsigned num)
{
    GPtrArray *comments = capture_read_comments(path, NULL);

    ck_assert_uint_eq(comments->len, num);
    for (unsigned i = 0; i < num; i++) {
        ck_assert_str_eq(comments->pdata[i], expected[i]);
    }
    g_ptr_array_unref(comments);
}

START_TEST(a_note_is_a_comment_of_its_frame_alone)
{
    static const char *const expected[] = {"qp=0x1 process=my_program why=first time", "",
                                           "qp=0x3 process=my_program why=first time | odd"};
    struct wire_capture_options options = {.comments = true, .process = "my program"};
    struct wire_port *port;

    make_path();
    port = wire_capture_new(ends[0], path, &options, NULL);
    ck_assert(port->wants_notes);
    send_one(port, 1, true);
    /* A frame that is not sent takes its note with it. */
    ck_assert_ptr_nonnull(wire_tx_reserve(port, LEN));
    wire_note(port, &(struct wire_note){.qpn = 77});
    wire_tx_commit(port, 0);
    send_one(port, 2, false);
    wire_capture_comment(port, "odd");
    send_one(port, 3, true);
    expect_comments(expected, G_N_ELEMENTS(expected));
    wire_close(port);
    wire_close(ends[1]);
    remove_path();
}
END_TEST

/* "capture_comments=off" */
START_TEST(no_note_is_wanted_without_comments)
{
    static const char *const expected[] = {""};
    struct wire_port *port;

    make_path();
    port = wire_capture_new(ends[0], path, NULL, NULL);
    ck_assert(!port->wants_notes);
    send_one(port, 1, true);
    expect_comments(expected, 1);
    wire_close(port);
    wire_close(ends[1]);
    remove_path();
}
END_TEST

static const struct {
    const char *rule;
    const char *fate;
} fates[] = {
    {"loss 100%", "lost: never sent"},
    {"delay 1us", "delayed by 1.0 us"},
    {"duplicate", "duplicate"},
    {"reorder", "reordered: held back"},
};

/* Frames that are delayed leave when the sender has noted others. */
START_TEST(a_note_stays_with_a_frame_that_has_a_fault)
{
    struct wire_capture_options options = {.comments = true};
    struct wire_fault_options faults = {0};
    struct fault_set *set = fault_set_new(&(struct fault_options){.seed = 1});
    struct wire_port *port;
    GByteArray *first = g_byte_array_new();
    GPtrArray *comments;
    bool seen[REORDERED + 1] = {false};
    unsigned with_fate = 0;

    make_path();
    ck_assert(fault_set_add(set, fates[_i].rule, NULL));
    faults.capture = wire_capture_new(ends[0], path, &options, NULL);
    port = wire_fault_new(faults.capture, set, &faults, NULL);
    ck_assert(port->wants_notes);
    for (uint8_t i = 1; i <= REORDERED; i++) {
        send_one(port, i, true);
    }
    wire_fault_settle(port);
    comments = capture_read_comments(path, first);
    ck_assert_uint_ge(comments->len, REORDERED);
    for (unsigned i = 0; i < comments->len; i++) {
        unsigned qpn;

        ck_assert_msg(sscanf(comments->pdata[i], "qp=%x why=first time", &qpn) == 1, "%s",
                      (const char *)comments->pdata[i]);
        ck_assert_uint_eq(qpn, first->data[i]);
        seen[qpn] = true;
        with_fate += strstr(comments->pdata[i], fates[_i].fate) != NULL;
    }
    for (unsigned i = 1; i <= REORDERED; i++) {
        ck_assert(seen[i]);
    }
    ck_assert_uint_eq(with_fate, REORDERED);
    g_ptr_array_unref(comments);
    g_byte_array_unref(first);
    wire_close(port);
    wire_close(ends[1]);
    fault_set_free(set);
    remove_path();
}
END_TEST

/* -- received frames --------------------------------------------------------------------------- */

static unsigned arrived;

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    arrived++;
}

static const struct wire_client receiver = {.rx = on_rx};

/* The clock of the rules. */
static uint64_t rule_ns;

static uint64_t rule_clock(void *opaque)
{
    return rule_ns;
}

static void wake_never(void *opaque, uint64_t time_ns)
{
}

static const struct {
    const char *rule;
    unsigned arrive;     /* of REORDERED frames */
    const char *fate[2]; /* of each frame, and of its copy; "": nothing is said */
} fates_in[] = {
    {"none", REORDERED, {""}},
    {"loss 100% in", 0, {"lost: never received"}},
    {"part for 1s", 0, {"lost: never received"}},
    {"link down 1s", 0, {"lost: the link is down"}},
    {"delay 1us in", REORDERED, {"delayed by 1.0 us"}},
    {"corrupt byte 20 in", REORDERED, {"corrupted: bit "}},
    {"duplicate in", 2 * REORDERED, {"", "duplicate"}},
    {"duplicate in; delay 1us in",
     2 * REORDERED,
     {"delayed by 1.0 us", "duplicate, delayed by 1.0 us"}},
};

/* Each frame that comes is there once, as the device got it, with what happened to it. */
START_TEST(a_received_frame_has_its_fate)
{
    struct wire_fault_options faults = {.wake_at = wake_never};
    struct fault_set *set =
        fault_set_new(&(struct fault_options){.seed = 1, .clock_ns = rule_clock});
    struct wire_port *port;
    GPtrArray *comments;
    unsigned copies = fates_in[_i].fate[1] ? 2 : 1, said[2] = {0};

    make_path();
    arrived = 0;
    rule_ns = 1000;
    ck_assert(fault_set_add(set, fates_in[_i].rule, NULL));
    faults.capture = wire_capture_new(ends[0], path, NULL, NULL);
    port = wire_fault_new(faults.capture, set, &faults, NULL);
    wire_set_client(port, &receiver, NULL);
    for (uint8_t i = 1; i <= REORDERED; i++) {
        send_one(ends[1], i, false);
    }
    wire_poll(port, 4 * REORDERED);
    rule_ns += 1000;
    wire_poll(port, 4 * REORDERED);
    ck_assert_uint_eq(arrived, fates_in[_i].arrive);
    comments = capture_read_comments(path, NULL);
    ck_assert_uint_eq(comments->len, copies * REORDERED);
    for (unsigned i = 0; i < comments->len; i++) {
        const char *text = comments->pdata[i];
        bool is_copy = copies == 2 && g_str_has_prefix(text, "duplicate");

        ck_assert_msg(*fates_in[_i].fate[is_copy]
                          ? g_str_has_prefix(text, fates_in[_i].fate[is_copy])
                          : !*text,
                      "%s", text);
        said[is_copy]++;
    }
    ck_assert_uint_eq(said[0], REORDERED);
    g_ptr_array_unref(comments);
    wire_close(port);
    wire_close(ends[1]);
    fault_set_free(set);
    remove_path();
}
END_TEST

/* What a simulation says of a frame stays with it, while a rule delays it. */
START_TEST(a_comment_stays_with_a_received_frame)
{
    static const char *const expected[] = {"late, delayed by 1.0 us", "delayed by 1.0 us"};
    struct wire_fault_options faults = {.wake_at = wake_never};
    struct fault_set *set = fault_set_new(&(struct fault_options){.clock_ns = rule_clock});
    struct wire_port *port;

    make_path();
    rule_ns = 1000;
    ck_assert(fault_set_add(set, "delay 1us in", NULL));
    faults.capture = wire_capture_new(ends[0], path, NULL, NULL);
    port = wire_fault_new(faults.capture, set, &faults, NULL);
    wire_set_client(port, &receiver, NULL);
    wire_capture_comment(faults.capture, "late");
    send_one(ends[1], 1, false);
    wire_poll(port, 1);
    send_one(ends[1], 2, false);
    wire_poll(port, 1);
    rule_ns += 1000;
    wire_poll(port, 4);
    expect_comments(expected, G_N_ELEMENTS(expected));
    wire_close(port);
    wire_close(ends[1]);
    fault_set_free(set);
    remove_path();
}
END_TEST

/* A device that ends does not take what waits for it. */
START_TEST(a_frame_that_nobody_took_is_lost)
{
    static const char *const expected[] = {"lost: its receiver ended before it took it"};
    struct wire_fault_options faults = {.wake_at = wake_never};
    struct fault_set *set = fault_set_new(&(struct fault_options){.clock_ns = rule_clock});
    struct wire_port *port;

    make_path();
    rule_ns = 1000;
    ck_assert(fault_set_add(set, "delay 1us in", NULL));
    faults.capture = wire_capture_new(ends[0], path, NULL, NULL);
    port = wire_fault_new(faults.capture, set, &faults, NULL);
    wire_set_client(port, &receiver, NULL);
    send_one(ends[1], 1, false);
    wire_poll(port, 1);
    wire_fault_settle(port);
    expect_comments(expected, G_N_ELEMENTS(expected));
    wire_close(port);
    wire_close(ends[1]);
    fault_set_free(set);
    remove_path();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("capture notes");
    TCase *tc = tcase_create("notes");

    tcase_add_loop_test(tc, a_note_has_the_words_that_apply, 0, G_N_ELEMENTS(texts));
    tcase_add_test(tc, the_longest_note_is_whole);
    tcase_add_test(tc, a_note_is_a_comment_of_its_frame_alone);
    tcase_add_test(tc, no_note_is_wanted_without_comments);
    tcase_add_loop_test(tc, a_note_stays_with_a_frame_that_has_a_fault, 0, G_N_ELEMENTS(fates));
    tcase_add_loop_test(tc, a_received_frame_has_its_fate, 0, G_N_ELEMENTS(fates_in));
    tcase_add_test(tc, a_comment_stays_with_a_received_frame);
    tcase_add_test(tc, a_frame_that_nobody_took_is_lost);
    suite_add_tcase(s, tc);
    return s;
}
