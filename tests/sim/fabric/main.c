/* SPDX-License-Identifier: BSD-2-Clause */
/* The program behind `hcasim sim`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/report/junit.h"
#include "tests/report/output.h"
#include "tests/sim/fabric/runner.h"
#include "tests/sim/fabric/shrink.h"

#define SUITE  "hcasim sim" /* of the report */
#define REPORT "--report=junit:"

/* The command that the user gave. */
static const char *main_command = "hcasim sim";

/* For the help of hcasim sim, which the program hcasim prints. */
static void main_print_kinds(void)
{
    const struct kind *kind;

    printf("Kinds of jobs:\n");
    for (unsigned i = 0; (kind = kind_at(i)); i++) {
        printf("  %-13s %s%s\n", kind->name, kind->about, kind->usual ? "" : " (by name only)");
    }
}

static bool main_check_workload(const struct sim_options *o, GError **err)
{
    g_auto(GStrv) names = g_strsplit(o->workload ? o->workload : "", ",", -1);

    for (unsigned i = 0; names[i]; i++) {
        if (!kind_find(names[i])) {
            g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "there is no kind of jobs %s, see hcasim help sim", names[i]);
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
    struct junit *junit; /* NULL: no report */
    struct sim_tally sum;
};

/* Appends the command that repeats the run. */
static void main_append_command(GString *to, const struct sim_options *o)
{
    g_autofree char *command = sim_options_print(o);

    g_string_append_printf(to, "  %s%s --trace\n", main_command, command);
}

static void main_append_smaller(GString *to, const struct sim_options *o,
                                const struct sim_options *smaller, unsigned runs, const char *said)
{
    g_autofree char *command = sim_options_print(o), *shorter = sim_options_print(smaller);

    if (!strcmp(command, shorter)) {
        g_string_append_printf(to, "  no smaller run fails (%u runs)\n", runs);
    } else {
        g_string_append_printf(to, "  smaller, after %u runs: %s\n", runs, said);
        main_append_command(to, smaller);
    }
}

static void main_shrink(GString *to, const struct sim_options *o, const char *said)
{
    char *smaller_said = g_strdup(said);
    unsigned runs;
    struct sim_options smaller = shrink(o, &smaller_said, &runs);

    main_append_smaller(to, o, &smaller, runs, smaller_said);
    sim_options_clear(&smaller);
    g_free(smaller_said);
}

/* Prints why the seed failed and the commands that repeat it, and reports them. */
static void main_on_failure(struct main_count *count, const struct sim_options *o, double seconds,
                            const char *said, bool shrinks)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *name = g_strdup_printf("seed %" PRIu64, o->seed);
    gsize printed;

    count->failed++;
    g_string_append_printf(text, "%s\n", said);
    main_append_command(text, o);
    printf("%s failed: %s", name, text->str);
    fflush(stdout);
    printed = text->len;
    if (shrinks) {
        main_shrink(text, o, said);
    }
    fputs(text->str + printed, stdout);
    fflush(stdout);
    junit_add(count->junit, &(struct junit_case){.suite = SUITE,
                                                 .name = name,
                                                 .outcome = JUNIT_FAILED,
                                                 .seconds = seconds,
                                                 .text = text->str});
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

    g_autofree char *name = g_strdup_printf("seed %" PRIu64, o->seed);

    if (v->passed && o->twice && !main_repeats(o, t)) {
        main_on_failure(count, o, v->seconds, "it is another run when it is run again", false);
        return;
    }
    if (!v->passed) {
        main_on_failure(count, o, v->seconds, v->said, count->shrinks);
        return;
    }
    junit_add(count->junit,
              &(struct junit_case){.suite = SUITE, .name = name, .seconds = v->seconds});
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

/* Takes all arguments. False with *err. */
static bool main_take_all(struct sim_options *o, struct main_count *count, char **argv,
                          GError **err)
{
    for (int i = 1; argv[i]; i++) {
        const char *report = g_str_has_prefix(argv[i], REPORT) ? argv[i] + strlen(REPORT) : NULL;

        if (report) {
            junit_free(count->junit); /* the last one holds */
            count->junit = junit_open(report, err);
            if (!count->junit) {
                return false;
            }
        } else if (!strcmp(argv[i], "--no-shrink")) {
            count->shrinks = false;
        } else if (!main_take(o, &i, argv, err)) {
            return false;
        }
    }
    return true;
}

/* Ends the report and the output. The exit status. */
static int main_end(struct main_count *count)
{
    g_autoptr(GError) err = NULL;

    if (!junit_close(count->junit, &err)) {
        fprintf(stderr, "hcasim: %s\n", err->message);
        return OUTPUT_FAILED;
    }
    if (!output_has_arrived()) {
        return OUTPUT_FAILED;
    }
    return count->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct main_count count = {.shrinks = true};
    struct sim_options options;
    g_autoptr(GError) err = NULL;
    gint64 began = g_get_monotonic_time();
    double s;

    if (argc == 2 && !strcmp(argv[1], "--kinds")) {
        main_print_kinds();
        return EXIT_SUCCESS;
    }
    /* A program outside of this tree, with kinds of jobs of its own. */
    if (sim_own_kinds[0]) {
        main_command = argv[0];
    }
    sim_options_init(&options);
    if (!main_take_all(&options, &count, argv, &err) || !main_check_workload(&options, &err)) {
        fprintf(stderr, "hcasim: %s\n", err->message);
        junit_free(count.junit);
        sim_options_clear(&options);
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
    return main_end(&count);
}
