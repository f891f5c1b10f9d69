/* SPDX-License-Identifier: BSD-2-Clause */
/* The program behind `hcasim sim`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/fabric/runner.h"
#include "tests/sim/fabric/shrink.h"

/* For the help of hcasim sim, which the program hcasim prints. */
static void main_print_kinds(void)
{
    const struct kind *kind;

    printf("Kinds of jobs:\n");
    for (unsigned i = 0; (kind = kind_at(i)); i++) {
        printf("  %-10s %s%s\n", kind->name, kind->about, kind->usual ? "" : " (by name only)");
    }
}

static bool main_check_workload(const struct sim_options *o)
{
    g_auto(GStrv) names = g_strsplit(o->workload ? o->workload : "", ",", -1);

    for (unsigned i = 0; names[i]; i++) {
        if (!kind_find(names[i])) {
            fprintf(stderr, "there is no kind of jobs %s, see hcasim help sim\n", names[i]);
            return false;
        }
    }
    return true;
}

/* Takes one argument, and the next one if it is the value. Returns false if the option does not
 * exist. */
static bool main_take(struct sim_options *o, int *at, char **argv, GError **err)
{
    const char *name = argv[*at];
    g_auto(GStrv) parts = NULL;

    if (!g_str_has_prefix(name, "--")) {
        return sim_options_load(o, name, err);
    }
    parts = g_strsplit(name + 2, "=", 2);
    if (!parts[1] && sim_options_takes_value(parts[0])) {
        return sim_options_set(o, parts[0], argv[++*at], err);
    }
    return sim_options_set(o, parts[0], parts[1], err);
}

struct main_count {
    uint64_t passed, failed;
    bool shrinks, prints;
    struct sim_tally sum;
};

static void main_print_command(const struct sim_options *o)
{
    g_autofree char *command = sim_options_print(o);

    printf("  hcasim sim%s --trace\n", command);
    fflush(stdout);
}

static void main_print_smaller(const struct sim_options *o, const struct sim_options *smaller,
                               unsigned runs, const char *said)
{
    g_autofree char *command = sim_options_print(o), *shorter = sim_options_print(smaller);

    if (!strcmp(command, shorter)) {
        printf("  no smaller run fails (%u runs)\n", runs);
    } else {
        printf("  smaller, after %u runs: %s\n", runs, said);
        main_print_command(smaller);
    }
    fflush(stdout);
}

static void main_on_failure(const struct sim_options *o, const char *said, bool shrinks)
{
    struct sim_options smaller;
    char *smaller_said = g_strdup(said);
    unsigned runs;

    printf("seed %" PRIu64 " failed: %s\n", o->seed, said);
    main_print_command(o);
    if (shrinks) {
        smaller = shrink(o, &smaller_said, &runs);
        main_print_smaller(o, &smaller, runs, smaller_said);
        sim_options_clear(&smaller);
    }
    g_free(smaller_said);
}

/* Runs the seed again. The result must not depend on a clock or on addresses: the same frames at
 * the same times, and the same counts. */
static bool main_repeats(const struct sim_options *o, const struct sim_tally *tally)
{
    struct verdict again = runner_run(o);
    bool same = again.passed && !memcmp(&again.tally, tally, sizeof(*tally));

    g_free(again.said);
    return same;
}

static void main_on_verdict(void *opaque, const struct sim_options *o, const struct verdict *v)
{
    struct main_count *count = opaque;
    const struct sim_tally *t = &v->tally;

    if (v->passed && o->twice && !main_repeats(o, t)) {
        count->failed++;
        printf("seed %" PRIu64 " failed: it is another run when it is run again\n", o->seed);
        main_print_command(o);
        return;
    }
    if (!v->passed) {
        count->failed++;
        main_on_failure(o, v->said, count->shrinks);
        return;
    }
    count->passed++;
    count->sum.messages += t->messages;
    count->sum.errors += t->errors;
    count->sum.frames += t->frames;
    count->sum.faults += t->faults;
    if (count->prints) {
        printf("seed %" PRIu64 ": %" PRIu64 " messages of %" PRIu64 " bytes, %" PRIu64
               " checks, %" PRIu64 " connections, %" PRIu64 " errors that had to come, %" PRIu64
               " frames, %" PRIu64 " faults, %" PRIu64 " dropped, %" PRIu64
               " marked, %.3f ms of virtual time, fingerprint %016" PRIx64 "\n",
               o->seed, t->messages, t->bytes, t->checks, t->connections, t->errors, t->frames,
               t->faults, t->dropped, t->marked, (double)t->ns / SIM_MS, t->fingerprint);
    }
}

int main(int argc, char **argv)
{
    struct main_count count = {.shrinks = true};
    struct sim_options options;
    g_autoptr(GError) err = NULL;
    gint64 began = g_get_monotonic_time();
    double s;

    sim_options_init(&options);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--kinds")) {
            main_print_kinds();
            return EXIT_SUCCESS;
        }
        if (!strcmp(argv[i], "--no-shrink")) {
            count.shrinks = false;
        } else if (!main_take(&options, &i, argv, &err)) {
            fprintf(stderr, "%s\n", err->message);
            return 2;
        }
    }
    if (!main_check_workload(&options)) {
        return 2;
    }
    count.prints = options.seeds <= 20;
    runner_run_all(&options, main_on_verdict, &count);
    if (options.fresh) {
        options.seed = g_random_int();
        options.seeds = options.fresh;
        printf("new seeds: %" PRIu64 " of them from %" PRIu64 " on\n", options.seeds, options.seed);
        runner_run_all(&options, main_on_verdict, &count);
    }
    s = (double)(g_get_monotonic_time() - began) / G_USEC_PER_SEC;
    printf("%" PRIu64 " messages, %" PRIu64 " frames, %" PRIu64 " faults, %" PRIu64
           " errors that had to come, in %.1f s\n",
           count.sum.messages, count.sum.frames, count.sum.faults, count.sum.errors, s);
    printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", count.passed, count.failed);
    sim_options_clear(&options);
    return count.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
