/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements junit.h. The cases wait in memory, because the counts of a suite come before them. */
#include "tests/report/junit.h"
#include <string.h>
#include "tests/report/file.h"

struct junit_suite {
    char *name;
    GString *cases;
    unsigned tests, failures, skipped;
    double seconds;
};

struct junit {
    char *path;
    GPtrArray *suites; /* of struct junit_suite */
};

static void junit_suite_free(gpointer data)
{
    struct junit_suite *suite = data;

    g_free(suite->name);
    g_string_free(suite->cases, TRUE);
    g_free(suite);
}

void junit_free(struct junit *junit)
{
    if (!junit) {
        return;
    }
    g_free(junit->path);
    g_ptr_array_unref(junit->suites);
    g_free(junit);
}

struct junit *junit_open(const char *path, GError **err)
{
    struct junit *junit;

    if (!report_file_check(path, err)) {
        return NULL;
    }
    junit = g_new0(struct junit, 1);
    junit->path = g_strdup(path);
    junit->suites = g_ptr_array_new_with_free_func(junit_suite_free);
    return junit;
}

/* The characters that XML 1.0 allows (section 2.2). */
static bool junit_is_char(gunichar c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0xd7ff) ||
           (c >= 0xe000 && c <= 0xfffd) || c >= 0x10000;
}

/* Appends text as the value of an attribute or as content. A character that XML does not allow
 * becomes U+FFFD. A line end is written as a number, because a parser changes the line ends of an
 * attribute into spaces. */
static void junit_append(GString *to, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        if (strchr("<>&\"'\t\n\r", *at)) {
            g_string_append_printf(to, "&#%u;", c);
        } else {
            g_string_append_unichar(to, junit_is_char(c) ? c : 0xfffd);
        }
    }
}

static struct junit_suite *junit_suite(struct junit *junit, const char *name)
{
    struct junit_suite *suite;

    for (unsigned i = 0; i < junit->suites->len; i++) {
        suite = g_ptr_array_index(junit->suites, i);
        if (!strcmp(suite->name, name)) {
            return suite;
        }
    }
    suite = g_new0(struct junit_suite, 1);
    suite->name = g_strdup(name);
    suite->cases = g_string_new(NULL);
    g_ptr_array_add(junit->suites, suite);
    return suite;
}

/* The attribute message has the first line, and the content the whole text. */
static void junit_append_why(GString *to, const char *element, const char *text)
{
    g_autofree char *first = g_strndup(text, strcspn(text, "\n"));

    g_string_append_printf(to, "      <%s message=\"", element);
    junit_append(to, first);
    g_string_append(to, "\">");
    junit_append(to, text);
    g_string_append_printf(to, "</%s>\n", element);
}

void junit_add(struct junit *junit, const struct junit_case *c)
{
    struct junit_suite *suite = junit ? junit_suite(junit, c->suite) : NULL;
    GString *to;

    if (!suite) {
        return;
    }
    to = suite->cases;
    suite->tests++;
    suite->failures += c->outcome == JUNIT_FAILED;
    suite->skipped += c->outcome == JUNIT_SKIPPED;
    suite->seconds += c->seconds;
    g_string_append(to, "    <testcase classname=\"");
    junit_append(to, c->suite);
    g_string_append(to, "\" name=\"");
    junit_append(to, c->name);
    g_string_append_printf(to, "\" time=\"%.3f\"%s\n", c->seconds,
                           c->outcome == JUNIT_PASSED ? "/>" : ">");
    if (c->outcome != JUNIT_PASSED) {
        junit_append_why(to, c->outcome == JUNIT_FAILED ? "failure" : "skipped",
                         c->text ? c->text : "");
        g_string_append(to, "    </testcase>\n");
    }
}

static void junit_append_counts(GString *to, const struct junit_suite *suite)
{
    g_string_append_printf(
        to, " tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" time=\"%.3f\">\n",
        suite->tests, suite->failures, suite->skipped, suite->seconds);
}

bool junit_close(struct junit *junit, GError **err)
{
    g_autoptr(GString) suites = g_string_new(NULL), text = g_string_new(NULL);
    struct junit_suite sum = {0};
    bool ok;

    if (!junit) {
        return true;
    }
    for (unsigned i = 0; i < junit->suites->len; i++) {
        const struct junit_suite *suite = g_ptr_array_index(junit->suites, i);

        g_string_append(suites, "  <testsuite name=\"");
        junit_append(suites, suite->name);
        g_string_append(suites, "\"");
        junit_append_counts(suites, suite);
        g_string_append_len(suites, suite->cases->str, (gssize)suite->cases->len);
        g_string_append(suites, "  </testsuite>\n");
        sum.tests += suite->tests;
        sum.failures += suite->failures;
        sum.skipped += suite->skipped;
        sum.seconds += suite->seconds;
    }
    g_string_append(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    junit_append_counts(text, &sum);
    g_string_append_len(text, suites->str, (gssize)suites->len);
    g_string_append(text, "</testsuites>\n");
    ok = report_file_write(junit->path, text->str, err);
    junit_free(junit);
    return ok;
}
