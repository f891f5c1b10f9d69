/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements runner.h. A child leaves its tally in memory that it shares with its parent, and its
 * output in a file. */
#define _GNU_SOURCE
#include "tests/sim/fabric/runner.h"
#include "tests/report/output.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    struct sim_options options; /* the caller owns its texts */
    struct sim_tally *tally;    /* memory shared with the child */
    int said;
    gint64 began;
};

#define SAID_MOST 4000

static void runner_on_alarm(int signal)
{
    static const char text[] = "it has not ended in the real time that --patience gives\n";

    _exit(write(STDERR_FILENO, text, sizeof(text) - 1) > 0 ? EXIT_FAILURE : EXIT_FAILURE);
}

static void runner_child(const struct child *child)
{
    struct rlimit files;

    dup2(child->said, STDERR_FILENO);
    getrlimit(RLIMIT_NOFILE, &files); /* each host needs some descriptors */
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGALRM, runner_on_alarm);
    alarm((unsigned)child->options.patience);
    sim_run(&child->options, child->tally);
    fflush(NULL);
    /* The trace must have arrived. By exit(), where a sanitizer checks for leaks. */
    exit(output_has_arrived() ? EXIT_SUCCESS : EXIT_FAILURE);
}

static struct child runner_begin(const struct sim_options *options)
{
    struct child child = {.options = *options,
                          .said = memfd_create("said", MFD_CLOEXEC),
                          .began = g_get_monotonic_time()};

    child.tally =
        mmap(NULL, sizeof(*child.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    child.pid = fork();
    if (child.pid == 0) {
        runner_child(&child);
    }
    if (child.pid < 0 || child.said < 0 || child.tally == MAP_FAILED) {
        g_error("no process: errno %d", errno);
    }
    return child;
}

static struct verdict runner_end(const struct child *child, int status)
{
    struct verdict verdict = {.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0,
                              .seconds =
                                  (double)(g_get_monotonic_time() - child->began) / G_USEC_PER_SEC,
                              .tally = *child->tally};
    g_autofree char *text = g_malloc0(SAID_MOST + 1);
    const char *how = "";
    ssize_t len = pread(child->said, text, SAID_MOST, 0);

    text[MAX(len, 0)] = 0;
    if (WIFSIGNALED(status)) {
        how = strsignal(WTERMSIG(status));
    }
    verdict.said = g_strstrip(g_strconcat(text, how, NULL));
    munmap(child->tally, sizeof(*child->tally));
    close(child->said);
    return verdict;
}

struct verdict runner_run(const struct sim_options *options)
{
    struct child child = runner_begin(options);
    int status;

    waitpid(child.pid, &status, 0);
    return runner_end(&child, status);
}

/* -- many seeds -------------------------------------------------------------------------------- */

struct runner {
    const struct sim_options *options;
    runner_told_fn *told;
    void *opaque;
    struct child *children;
    unsigned num, most;
    uint64_t begun, ended, failed, messages;
    gint64 since, last;
};

#define PROGRESS (2 * G_USEC_PER_SEC)

static void runner_progress(struct runner *r)
{
    gint64 now = g_get_monotonic_time();

    if (now - r->last < PROGRESS) {
        return;
    }
    r->last = now;
    fprintf(stderr,
            "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " seeds, %" G_GUINT64_FORMAT
            " failed, %" G_GUINT64_FORMAT " messages, %.0f s\n",
            r->ended, r->options->seeds, r->failed, r->messages,
            (double)(now - r->since) / G_USEC_PER_SEC);
}

static void runner_reap(struct runner *r)
{
    struct verdict verdict;
    int status;
    pid_t pid = wait(&status);

    for (unsigned i = 0; i < r->num; i++) {
        if (r->children[i].pid == pid) {
            verdict = runner_end(&r->children[i], status);
            r->ended++;
            r->failed += !verdict.passed;
            r->messages += verdict.tally.messages;
            r->told(r->opaque, &r->children[i].options, &verdict);
            g_free(verdict.said);
            r->children[i] = r->children[--r->num];
            break;
        }
    }
}

void runner_run_all(const struct sim_options *options, runner_told_fn *told, void *opaque)
{
    struct runner r = {.options = options, .told = told, .opaque = opaque};

    r.most = options->processes ? (unsigned)options->processes : g_get_num_processors();
    r.children = g_new0(struct child, r.most);
    r.since = r.last = g_get_monotonic_time();
    while (r.ended < options->seeds) {
        if (r.begun < options->seeds && r.num < r.most) {
            struct sim_options one = *options;

            one.seed += r.begun++;
            r.children[r.num++] = runner_begin(&one);
        } else {
            runner_reap(&r);
            runner_progress(&r);
        }
    }
    g_free(r.children);
}
