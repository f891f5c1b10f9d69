/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the JUnit report: counts, escapes, and files that cannot be written. */
#include <check.h>
#include <glib/gstdio.h>
#include <unistd.h>
#include "tests/report/file.h"
#include "tests/report/junit.h"
#include "tests/report/kind.h"
#include "tests/unit/suite.h"

static char *path;

static void setup(void)
{
    path = g_strdup_printf("%s/hcasim-junit-%d.xml", g_get_tmp_dir(), (int)getpid());
}

static void teardown(void)
{
    g_remove(path);
    g_free(path);
}

START_TEST(suites_have_their_cases_and_counts)
{
    struct junit *junit = junit_open(path, NULL);
    g_autofree char *text = NULL;

    ck_assert_ptr_nonnull(junit);
    junit_add(junit, &(struct junit_case){.suite = "a", .name = "1", .seconds = 0.25});
    junit_add(junit, &(struct junit_case){.suite = "b",
                                          .name = "2",
                                          .outcome = JUNIT_FAILED,
                                          .seconds = 1,
                                          .text = "first\nsecond"});
    junit_add(junit, &(struct junit_case){
                         .suite = "a", .name = "3", .outcome = JUNIT_SKIPPED, .text = "why"});
    ck_assert(junit_close(junit, NULL));
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(
        text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<testsuites tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"1.250\">\n"
              "  <testsuite name=\"a\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\" "
              "time=\"0.250\">\n"
              "    <testcase classname=\"a\" name=\"1\" time=\"0.250\"/>\n"
              "    <testcase classname=\"a\" name=\"3\" time=\"0.000\">\n"
              "      <skipped message=\"why\">why</skipped>\n"
              "    </testcase>\n"
              "  </testsuite>\n"
              "  <testsuite name=\"b\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" "
              "time=\"1.000\">\n"
              "    <testcase classname=\"b\" name=\"2\" time=\"1.000\">\n"
              "      <failure message=\"first\">first&#10;second</failure>\n"
              "    </testcase>\n"
              "  </testsuite>\n"
              "</testsuites>\n");
}
END_TEST

/* Markup, control characters, a noncharacter, and bytes that are not UTF-8. */
START_TEST(any_bytes_become_text)
{
    struct junit *junit = junit_open(path, NULL);
    g_autofree char *text = NULL;

    junit_add(junit, &(struct junit_case){.suite = "s",
                                          .name = "<&>\"'\t\001\xff\xef\xbf\xbf\xc3\xa4",
                                          .outcome = JUNIT_FAILED});
    ck_assert(junit_close(junit, NULL));
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_ptr_nonnull(strstr(text,
                                 "name=\"&#60;&#38;&#62;&#34;&#39;&#9;\xef\xbf\xbd\xef\xbf\xbd"
                                 "\xef\xbf\xbd\xc3\xa4\""));
    ck_assert_ptr_nonnull(strstr(text, "<failure message=\"\"></failure>"));
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_named)
{
    g_autoptr(GError) err = NULL;
    struct junit *junit;

    ck_assert_ptr_null(junit_open("/nonexistent/x", &err));
    ck_assert_str_eq(err->message, "report /nonexistent/x: No such file or directory");
    g_clear_error(&err);
    junit = junit_open("/dev/full", &err);
    ck_assert_ptr_nonnull(junit);
    ck_assert(!junit_close(junit, &err));
    ck_assert_str_eq(err->message, "report /dev/full: No space left on device");
}
END_TEST

START_TEST(no_report_is_no_error)
{
    junit_add(NULL, &(struct junit_case){.suite = "s", .name = "n"});
    ck_assert(junit_close(NULL, NULL));
    junit_free(NULL);
}
END_TEST

/* A program that refuses its arguments leaves no file, and does not lose an older report. */
START_TEST(a_report_that_is_not_closed_changes_no_file)
{
    g_autofree char *text = NULL;

    junit_free(junit_open(path, NULL));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(g_file_set_contents(path, "older", -1, NULL));
    junit_free(junit_open(path, NULL));
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_str_eq(text, "older");
}
END_TEST

START_TEST(what_cannot_be_a_file_is_refused)
{
    static const char *const rows[][2] = {
        {"", "report : No such file or directory"},
        {"/", "report /: Is a directory"},
        {"/dev/null/x", "report /dev/null/x: Not a directory"},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) err = NULL;

        ck_assert(!report_file_check(rows[i][0], &err));
        ck_assert_str_eq(err->message, rows[i][1]);
    }
}
END_TEST

START_TEST(a_word_before_a_colon_is_a_kind)
{
    static const char *const files[] = {"report.md", "junit:a:b", "./xml:a", "a b:c", ":", ""};
    g_autoptr(GError) err = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        ck_assert_msg(report_kind_check(files[i], NULL), "%s", files[i]);
    }
    ck_assert_ptr_null(report_junit_file("report.md"));
    ck_assert_str_eq(report_junit_file("junit:a:b"), "a:b");
    ck_assert(!report_kind_check("xml:r.xml", &err));
    ck_assert_str_eq(err->message,
                     "there is no kind of report 'xml': say FILE for Markdown or junit:FILE for "
                     "JUnit XML (a file of that name is ./xml:r.xml)");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("JUnit report");
    TCase *tcase = tcase_create("files");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, suites_have_their_cases_and_counts);
    tcase_add_test(tcase, any_bytes_become_text);
    tcase_add_test(tcase, a_file_that_cannot_be_written_is_named);
    tcase_add_test(tcase, no_report_is_no_error);
    tcase_add_test(tcase, a_report_that_is_not_closed_changes_no_file);
    tcase_add_test(tcase, what_cannot_be_a_file_is_refused);
    tcase_add_test(tcase, a_word_before_a_colon_is_a_kind);
    suite_add_tcase(suite, tcase);
    return suite;
}
