/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays conformance scripts, each case in a process of its own and with several first PSNs, the
 * last ones before they wrap among them.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/conformance/play.h"

#define SECONDS 60 /* of a case at most */

static const struct {
    uint32_t rq_psn, sq_psn;
} starts[] = {{0, 0}, {0xffffff, 0x7fffff}, {0x7ffffe, 0xfffffe}};

static char *only;
static gboolean list;

static const GOptionEntry options[] = {
    {"only", 0, 0, G_OPTION_ARG_STRING, &only, "only cases with TEXT in their title", "TEXT"},
    {"list", 0, 0, G_OPTION_ARG_NONE, &list, "print rules and cases, and play none", NULL},
    {0},
};

/* In a process of its own, so that what one breaks is its own. */
static bool run_case(const struct script_case *c, unsigned start)
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        alarm(SECONDS);
        play_case(c, starts[start].rq_psn, starts[start].sq_psn);
        exit(EXIT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        g_error("no process for a case: %s", g_strerror(errno));
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s:%u: ended by signal %d\n", c->file, c->line, WTERMSIG(status));
    }
    return !status;
}

static bool run_starts(const struct script_case *c)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(starts); i++) {
        if (!run_case(c, i)) {
            return false;
        }
    }
    return true;
}

static void print_case(const struct script_case *c)
{
    printf("%s:%u: %s\n", c->file, c->line, c->title);
    for (unsigned i = 0; i < c->rules->len; i++) {
        printf("    %s\n", (const char *)g_ptr_array_index(c->rules, i));
    }
}

static void run_file(const char *path, unsigned *passed, unsigned *failed)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GPtrArray) cases = script_read(path, &err);

    if (!cases) {
        printf("FAIL %s\n", err->message);
        ++*failed;
        return;
    }
    for (unsigned i = 0; i < cases->len; i++) {
        const struct script_case *c = g_ptr_array_index(cases, i);

        if (only && !strstr(c->title, only)) {
            continue;
        }
        if (list) {
            print_case(c);
        } else if (run_starts(c)) {
            printf("ok   %s\n", c->title);
            ++*passed;
        } else {
            printf("FAIL %s (%s:%u)\n", c->title, c->file, c->line);
            ++*failed;
        }
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("SCRIPT...");
    g_autoptr(GError) err = NULL;
    unsigned passed = 0, failed = 0;

    g_option_context_set_summary(context, "Plays conformance scripts (docs/conformance.md).");
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        fprintf(stderr, "%s\n", err->message);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        run_file(argv[i], &passed, &failed);
    }
    if (!list) {
        printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    }
    return failed || !(passed || list);
}
