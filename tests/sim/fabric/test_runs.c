/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a simulation promises its users: a seed repeats bit for bit, another seed gives
 * another run, a failure is reported and shrunk, and leaks are found (kinds_faulty.c).
 */
#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/sim/fabric/runner.h"
#include "tests/sim/fabric/shrink.h"
#include "tests/unit/suite.h"

/* -- runs -------------------------------------------------------------------------------------- */

static struct sim_options options;

static void setup(void)
{
    sim_options_init(&options);
}

static void teardown(void)
{
    sim_options_clear(&options);
}

static void set(const char *name, const char *value)
{
    ck_assert(sim_options_set(&options, name, value, NULL));
}

START_TEST(the_same_seed_is_the_same_run_bit_by_bit)
{
    struct verdict first, again, other;

    set("seed", "3");
    set("loss", "1");
    first = runner_run(&options);
    again = runner_run(&options);
    set("seed", "4");
    other = runner_run(&options);
    ck_assert_msg(first.passed && again.passed && other.passed, "%s %s %s", first.said, again.said,
                  other.said);
    ck_assert_mem_eq(&first.tally, &again.tally, sizeof(first.tally));
    ck_assert_uint_gt(first.tally.frames, 0);
    ck_assert_uint_ne(first.tally.fingerprint, other.tally.fingerprint);
    g_free(first.said);
    g_free(again.said);
    g_free(other.said);
}
END_TEST

/* Rules are about each host's own frames, and its virtual time. */
START_TEST(fault_rules_repeat_with_the_seed)
{
    struct verdict first, again, other;
    g_autofree char *printed = NULL;

    set("seed", "3");
    set("workload", "rc");
    set("fault", "drop 2%; delay 1us jitter 3us both; link down 50us after 100");
    first = runner_run(&options);
    again = runner_run(&options);
    printed = sim_options_print(&options);
    set("fault", "drop 2%; delay 1us jitter 4us both; link down 50us after 100");
    other = runner_run(&options);
    ck_assert_msg(first.passed && again.passed && other.passed, "%s %s %s", first.said, again.said,
                  other.said);
    ck_assert_mem_eq(&first.tally, &again.tally, sizeof(first.tally));
    ck_assert_uint_ne(first.tally.fingerprint, other.tally.fingerprint);
    ck_assert_ptr_nonnull(strstr(printed, " --fault 'drop 2%; delay 1us jitter 3us both; "));
    g_free(first.said);
    g_free(again.said);
    g_free(other.said);
}
END_TEST

START_TEST(rules_about_devices_are_refused)
{
    g_autoptr(GError) err = NULL;

    ck_assert(!sim_options_set(&options, "fault", "health 1", &err));
    ck_assert_str_eq(err->message, "fault rule 'health 1': there is no device here; rules can be "
                                   "about frames and the link");
}
END_TEST

START_TEST(a_job_that_is_left_out_changes_no_other_draw)
{
    struct sim_options drawn, again;

    set("seed", "5");
    drawn = sim_options_draw(&options);
    set("only", "0");
    again = sim_options_draw(&options);
    ck_assert_uint_eq(drawn.hosts, again.hosts);
    ck_assert_uint_eq(drawn.loss, again.loss);
    sim_options_clear(&drawn);
    sim_options_clear(&again);
}
END_TEST

START_TEST(a_failure_names_its_job)
{
    struct verdict verdict;

    set("workload", "liar");
    set("ops", "100");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "(liar, hosts"));
    ck_assert_ptr_nonnull(strstr(verdict.said, "is a liar"));
    g_free(verdict.said);
}
END_TEST

START_TEST(a_failing_seed_is_made_smaller)
{
    struct sim_options smaller;
    char *said = g_strdup("");
    unsigned runs;

    set("workload", "liar,rc");
    set("seed", "1");
    set("jobs", "8");
    set("hosts", "6");
    set("ops", "100");
    set("loss", "1");
    smaller = shrink(&options, &said, &runs);
    ck_assert_ptr_nonnull(strstr(said, "is a liar"));
    ck_assert_uint_eq(strlen(smaller.only), 1); /* one job */
    ck_assert_uint_le(smaller.ops, 20);
    ck_assert_uint_eq(smaller.loss, 0);
    ck_assert_uint_eq(smaller.hosts, 2);
    sim_options_clear(&smaller);
    g_free(said);
}
END_TEST

START_TEST(a_job_without_progress_fails)
{
    struct verdict verdict;

    set("workload", "idler");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "has not got on"));
    g_free(verdict.said);
}
END_TEST

/* The failure names what the queue waited for, and what would end the wait. */
START_TEST(a_queue_without_a_waker_fails)
{
    struct verdict verdict;

    set("workload", "robber");
    set("only", _i ? "1" : "0");
    set("hosts", "2");
    set("latency", "10000000");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_msg(strstr(verdict.said, "is idle with work in it"), "%s", verdict.said);
    ck_assert_msg(
        strstr(verdict.said, _i ? "an answer, which a response or the ACK timer ends" : " ends"),
        "%s", verdict.said);
    g_free(verdict.said);
}
END_TEST

START_TEST(an_object_that_is_left_fails)
{
    struct verdict verdict;

    set("workload", "leaker");
    set("ops", "0");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "after all jobs"));
    g_free(verdict.said);
}
END_TEST

START_TEST(a_command_says_what_is_set)
{
    g_autofree char *text = NULL;

    set("seed", "9");
    set("seeds", "100");
    set("loss", "0.25");
    set("workload", "rc");
    text = sim_options_print(&options);
    ck_assert_str_eq(text, " --seed 9 --workload rc --loss 0.25");
    ck_assert(!sim_options_set(&options, "loss", "101", NULL));
    ck_assert(!sim_options_set(&options, "hosts", "1001", NULL));
    ck_assert(!sim_options_set(&options, "colour", "red", NULL));
}
END_TEST

/* Blocks of a pcapng file, in this machine's byte order: type, length, then what follows. */
#define INTERFACE  1
#define PACKET     6
#define FRAME_AT   28 /* bytes of a packet block before the frame */
#define INTERFACES 16

static uint32_t word_at(const char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Each host has an interface, with frames on it; and frames have come from each host. A host that
 * is reset, and comes again, is one more interface. */
START_TEST(a_capture_has_all_hosts)
{
    g_autofree char *path = g_strdup_printf("%s/hcasim-runs-%d.pcapng", g_get_tmp_dir(), getpid());
    g_autoptr(GHashTable) sources = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct verdict verdict;
    g_autofree char *bytes = NULL;
    unsigned interfaces = 0, frames[INTERFACES] = {0};
    gsize len;

    set("hosts", "3");
    set("workload", "rc");
    set("capture", path);
    verdict = runner_run(&options);
    ck_assert_msg(verdict.passed, "%s", verdict.said);
    ck_assert(g_file_get_contents(path, &bytes, &len, NULL));
    for (gsize at = 0; at < len; at += word_at(bytes + at + 4)) {
        const uint8_t *mac = (const uint8_t *)bytes + at + FRAME_AT + 6; /* of the source */

        if (word_at(bytes + at) == INTERFACE) {
            interfaces++;
        } else if (word_at(bytes + at) == PACKET) {
            ck_assert_uint_lt(word_at(bytes + at + 8), MIN(interfaces, INTERFACES));
            frames[word_at(bytes + at + 8)]++;
            g_hash_table_add(sources, g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
                                                      mac[1], mac[2], mac[3], mac[4], mac[5]));
        }
    }
    ck_assert_uint_ge(interfaces, 3);
    for (unsigned i = 0; i < interfaces; i++) {
        ck_assert_msg(frames[i], "interface %u has no frame", i);
    }
    ck_assert_uint_eq(g_hash_table_size(sources), 3);
    ck_assert_int_eq(g_remove(path), 0);
    g_free(verdict.said);
}
END_TEST

/* How many packets of the capture have that comment. */
static unsigned packets_with_comment(const char *bytes, gsize len, const char *text)
{
    unsigned found = 0;

    for (gsize at = 0; at < len; at += *(uint32_t *)(bytes + at + 4)) {
        if (*(uint32_t *)(bytes + at) == 6) { /* an enhanced packet block */
            const char *option = bytes + at + 28 + ((*(uint32_t *)(bytes + at + 20) + 3) & ~3u);

            found += *(uint16_t *)option == 1 && *(uint16_t *)(option + 2) == strlen(text) &&
                     !memcmp(option + 4, text, strlen(text));
        }
    }
    return found;
}

/* Each line is looked at alone: under a sanitizer, strstr() reads all of the rest. */
static unsigned lines_with(const char *trace, const char *text)
{
    const char *end = trace + strlen(trace);
    unsigned found = 0;

    while (trace < end) {
        const char *newline = memchr(trace, '\n', (size_t)(end - trace));
        size_t len = newline ? (size_t)(newline - trace) : (size_t)(end - trace);

        found += g_strstr_len(trace, (gssize)len, text) != NULL;
        trace += len + 1;
    }
    return found;
}

/* The trace goes to standard output: this runs the simulation with a file in its place. */
static char *run_traced(const char *path)
{
    int out = dup(STDOUT_FILENO), to = g_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct verdict verdict;
    char *trace;

    fflush(stdout);
    ck_assert(to >= 0 && dup2(to, STDOUT_FILENO) >= 0);
    verdict = runner_run(&options);
    dup2(out, STDOUT_FILENO);
    close(to);
    close(out);
    ck_assert_msg(verdict.passed, "%s", verdict.said);
    g_free(verdict.said);
    ck_assert(g_file_get_contents(path, &trace, NULL, NULL));
    g_remove(path);
    return trace;
}

START_TEST(trace_and_capture_show_the_fate_of_frames)
{
    static const char *const fates[] = {"lost", "corrupted", "duplicate", "late"};
    g_autofree char *folder = g_dir_make_tmp("hcasim-XXXXXX", NULL);
    g_autofree char *capture = g_build_filename(folder, "fates.pcapng", NULL);
    g_autofree char *file = g_build_filename(folder, "trace", NULL), *trace = NULL, *bytes = NULL;
    gsize len;

    set("hosts", "2");
    set("workload", "rc");
    set("loss", "5");
    set("corruption", "5");
    set("duplication", "5");
    set("reorder", "5");
    set("partitions", "0");
    set("flaps", "0");
    set("capture", capture);
    set("trace", NULL);
    trace = run_traced(file);
    ck_assert(g_file_get_contents(capture, &bytes, &len, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(fates); i++) {
        g_autofree char *mark = g_strdup_printf(" [%s]", fates[i]);

        ck_assert_uint_gt(lines_with(trace, mark), 0);
        ck_assert_uint_eq(lines_with(trace, mark), packets_with_comment(bytes, len, fates[i]));
    }
    ck_assert_uint_gt(lines_with(trace, " x- RC_"), 0);
    ck_assert_uint_gt(lines_with(trace, ", wrong ICRC [corrupted"), 0);
    ck_assert_uint_gt(lines_with(trace, " NAK PSN sequence error msn "), 0);
    g_remove(capture);
    g_rmdir(folder);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("simulations");
    TCase *tcase = tcase_create("runs");

    tcase_set_timeout(tcase, 240);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_same_seed_is_the_same_run_bit_by_bit);
    tcase_add_test(tcase, fault_rules_repeat_with_the_seed);
    tcase_add_test(tcase, rules_about_devices_are_refused);
    tcase_add_test(tcase, a_job_that_is_left_out_changes_no_other_draw);
    tcase_add_test(tcase, a_failure_names_its_job);
    tcase_add_test(tcase, a_failing_seed_is_made_smaller);
    tcase_add_test(tcase, a_job_without_progress_fails);
    tcase_add_loop_test(tcase, a_queue_without_a_waker_fails, 0, 2);
    tcase_add_test(tcase, an_object_that_is_left_fails);
    tcase_add_test(tcase, a_command_says_what_is_set);
    tcase_add_test(tcase, a_capture_has_all_hosts);
    tcase_add_test(tcase, trace_and_capture_show_the_fate_of_frames);
    suite_add_tcase(suite, tcase);
    return suite;
}
