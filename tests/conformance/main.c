/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays conformance scripts: each case in its own process, with several first PSNs, including the
 * last ones before PSNs wrap. The device is the verbs library's, or a foreign one.
 */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/conformance/case.h"
#include "tests/conformance/foreign.h"
#include "tests/report/file.h"
#include "tests/report/junit.h"
#include "tests/report/kind.h"
#include "tests/report/output.h"

#define SECONDS   120 /* the most seconds of a case */
#define WRONG_USE 2   /* exit status: nothing was played, or a script has a mistake */

static const struct {
    uint32_t rq_psn, sq_psn;
} starts[] = {{0, 0}, {0xffffff, 0x7fffff}, {0x7ffffe, 0xfffffe}};

static char *only, *peer_file, *report_file;
static gboolean list;

static const GOptionEntry options[] = {
    {"only", 0, 0, G_OPTION_ARG_STRING, &only,
     "Plays only cases with TEXT in their title or in a rule.", "TEXT"},
    {"list", 0, 0, G_OPTION_ARG_NONE, &list, "Prints the cases and their rules, and plays no case.",
     NULL},
    {"peer", 0, 0, G_OPTION_ARG_FILENAME, &peer_file,
     "Plays with the foreign device that the key file FILE describes.", "FILE"},
    {"report", 0, 0, G_OPTION_ARG_FILENAME, &report_file,
     "Writes to FILE the cases that do not hold or were not tried (Markdown); junit:FILE: all cases "
     "as JUnit XML.",
     "FILE"},
    {0},
};

static struct {
    const struct foreign_config *foreign;
    unsigned passed, failed, skipped;
    bool matched;                /* some case */
    bool mistaken;               /* a script has a mistake, which was seen when it was played */
    GString *deviations, *skips; /* rows of the report */
    struct junit *junit;         /* NULL: no such report */
} run;

static void run_signalled(const struct script_case *c, int number, GString *said)
{
    if (c) {
        g_string_append_printf(said, "%s:%u: ended by signal %d\n", c->file, c->line, number);
    } else if (number == SIGALRM) {
        g_string_append_printf(said, "the device was not reached within %d s\n", SECONDS);
    } else {
        g_string_append_printf(said, "ended by signal %d\n", number);
    }
}

/* Plays a case, or without a case tries whether the foreign device can be reached. Does so in its
 * own process, so that a crash affects only that case. Returns the exit status, and the output. */
static int run_case(const struct script_case *c, unsigned start, GString *said)
{
    char bytes[4096];
    int ends[2], status;
    ssize_t len;
    pid_t pid;

    fflush(NULL);
    if (pipe(ends) || (pid = fork()) < 0) {
        g_error("no process for a case: %s", g_strerror(errno));
    }
    if (!pid) {
        alarm(SECONDS);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (c) {
            case_play(c, run.foreign, starts[start].rq_psn, starts[start].sq_psn);
        } else {
            case_try_foreign(run.foreign);
        }
        exit(CASE_HOLDS);
    }
    close(ends[1]);
    g_string_truncate(said, 0);
    while ((len = read(ends[0], bytes, sizeof(bytes))) > 0) {
        g_string_append_len(said, bytes, len);
    }
    close(ends[0]);
    if (waitpid(pid, &status, 0) != pid) {
        g_error("no end of a case: %s", g_strerror(errno));
    }
    if (WIFSIGNALED(status)) {
        run_signalled(c, WTERMSIG(status), said);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : CASE_FAILS;
}

static int run_starts(const struct script_case *c, GString *said)
{
    /* a foreign device takes real time */
    unsigned n = run.foreign ? 1 : G_N_ELEMENTS(starts);
    int status = CASE_HOLDS;

    for (unsigned i = 0; i < n && status == CASE_HOLDS; i++) {
        status = run_case(c, i, said);
    }
    return status;
}

static void print_case(const struct script_case *c)
{
    printf("%s:%u: %s\n", c->file, c->line, c->title);
    for (unsigned i = 0; i < c->rules->len; i++) {
        printf("    %s\n", (const char *)g_ptr_array_index(c->rules, i));
    }
}

/* Adds a row: rules, case, and the first line of the output, without its place. */
static void report_row(GString *rows, const struct script_case *c, const char *said)
{
    g_autofree char *name = g_path_get_basename(c->file);
    g_auto(GStrv) lines = g_strsplit(said, "\n", 2);
    const char *what = lines[0];
    size_t file_len = strlen(c->file);

    if (!strncmp(what, c->file, file_len) && strchr(what + file_len, ' ')) {
        what = strchr(what + file_len, ' ') + 1;
    }
    g_string_append(rows, "| ");
    for (unsigned i = 0; i < c->rules->len; i++) {
        g_string_append_printf(rows, "%s%s", i ? " " : "",
                               (const char *)g_ptr_array_index(c->rules, i));
    }
    g_string_append_printf(rows, " | %s (`%s:%u`) | `%s` |\n", c->title, name, c->line, what);
}

static bool is_wanted(const struct script_case *c)
{
    bool wanted = !only || strstr(c->title, only);

    for (unsigned i = 0; i < c->rules->len; i++) {
        wanted = wanted || strstr(g_ptr_array_index(c->rules, i), only);
    }
    return wanted;
}

/* said: the output of the case; NULL: it holds. */
static void report_junit(const struct script_case *c, enum junit_outcome outcome, gint64 began,
                         const char *said)
{
    g_autofree char *file = g_path_get_basename(c->file);
    g_autoptr(GString) text = g_string_new(said);

    for (unsigned i = 0; i < c->rules->len; i++) {
        g_string_append_printf(text, "rule %s\n", (const char *)g_ptr_array_index(c->rules, i));
    }
    junit_add(run.junit,
              &(struct junit_case){.suite = file,
                                   .name = c->title,
                                   .outcome = outcome,
                                   .seconds = (double)(g_get_monotonic_time() - began) / 1e6,
                                   .text = text->str});
}

static void run_and_tell(const struct script_case *c)
{
    g_autoptr(GString) said = g_string_new(NULL);
    gint64 began = g_get_monotonic_time();

    int status = run_starts(c, said);

    switch (status) {
    case CASE_HOLDS:
        printf("ok   %s\n", c->title);
        report_junit(c, JUNIT_PASSED, began, NULL);
        run.passed++;
        break;
    case CASE_SKIPPED:
        printf("skip %s: %s", c->title, said->str);
        report_row(run.skips, c, said->str);
        report_junit(c, JUNIT_SKIPPED, began, said->str);
        run.skipped++;
        break;
    default:
        fputs(said->str, stderr);
        printf("FAIL %s (%s:%u)\n", c->title, c->file, c->line);
        report_row(run.deviations, c, said->str);
        report_junit(c, JUNIT_FAILED, began, said->str);
        run.failed++;
        run.mistaken = run.mistaken || status == CASE_MISTAKE;
    }
    fflush(stdout);
}

static void run_cases(const GPtrArray *cases)
{
    for (unsigned i = 0; i < cases->len; i++) {
        const struct script_case *c = g_ptr_array_index(cases, i);

        if (is_wanted(c)) {
            run.matched = true;
            (list ? print_case : run_and_tell)(c);
        }
    }
}

/* Reads and checks all scripts. Returns their cases, an array for each script; NULL with *err. */
static GPtrArray *read_scripts(char **paths, int num, GError **err)
{
    g_autoptr(GPtrArray) scripts =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);

    for (int k = 0; k < num; k++) {
        GPtrArray *cases = script_read(paths[k], err);

        if (!cases) {
            return NULL;
        }
        g_ptr_array_add(scripts, cases);
        for (unsigned i = 0; i < cases->len; i++) {
            if (!case_check(g_ptr_array_index(cases, i), err)) {
                return NULL;
            }
        }
    }
    return g_steal_pointer(&scripts);
}

/* Begins the report, if its file can be written: that is known before a case is played. */
static bool open_report(GError **err)
{
    const char *junit = report_file ? report_junit_file(report_file) : NULL;

    if (junit) {
        run.junit = junit_open(junit, err);
        return run.junit;
    }
    return !report_file ||
           (report_kind_check(report_file, err) && report_file_check(report_file, err));
}

/* Appends a table of the report, if it has rows. */
static void report_table(GString *text, const char *title, const char *last_column,
                         const GString *rows)
{
    if (rows->len) {
        g_string_append_printf(text, "\n## %s\n\n| rule | case | %s |\n|---|---|---|\n%s", title,
                               last_column, rows->str);
    }
}

static bool write_report(GError **err)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (run.junit || !report_file) {
        return junit_close(run.junit, err);
    }
    g_string_append_printf(text, "%u cases hold, %u do not, %u were not tried.\n", run.passed,
                           run.failed, run.skipped);
    report_table(text, "What does not hold", "step, and what came", run.deviations);
    report_table(text, "What was not tried", "step, and why", run.skips);
    return report_file_write(report_file, text->str, err);
}

/* Prints a message on standard error; returns the status. */
static int complain(const char *why, int status)
{
    fprintf(stderr, "hcasim: %s\n", why);
    return status;
}

/* Whether the foreign device can be reached: otherwise each case would fail, after a long wait. */
static bool try_foreign(GError **err)
{
    g_autoptr(GString) said = g_string_new(NULL);

    if (run_case(NULL, 0, said) == CASE_HOLDS) {
        return true;
    }
    g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s: %s", run.foreign->path,
                g_strchomp(said->str));
    return false;
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("SCRIPT...");
    g_autoptr(GPtrArray) scripts = NULL;
    g_autoptr(GError) err = NULL;

    g_option_context_set_summary(context, "Plays conformance scripts (docs/howto/conformance.md).");
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err) ||
        (peer_file && !(run.foreign = foreign_config_read(peer_file, &err))) ||
        !(scripts = read_scripts(argv + 1, argc - 1, &err)) || (!list && !open_report(&err)) ||
        (run.foreign && !list && !try_foreign(&err))) {
        return complain(err->message, WRONG_USE);
    }
    run.deviations = g_string_new(NULL);
    run.skips = g_string_new(NULL);
    for (unsigned i = 0; i < scripts->len; i++) {
        run_cases(g_ptr_array_index(scripts, i));
    }
    if (!run.matched && only) {
        fprintf(stderr, "hcasim: no case has '%s' in its title or in a rule\n", only);
    }
    if (!list) {
        printf("%u passed, %u failed, %u skipped\n", run.passed, run.failed, run.skipped);
    }
    if (!list && !write_report(&err)) {
        return complain(err->message, OUTPUT_FAILED);
    }
    if (!output_has_arrived()) {
        return OUTPUT_FAILED;
    }
    return run.mistaken ? WRONG_USE : run.failed || !(run.passed || list);
}
