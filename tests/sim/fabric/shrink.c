/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements shrink.h. First it leaves out jobs, halves of them, then single ones: each job draws
 * from its own stream, so the others do not change. Then it makes numbers smaller, down to zero if
 * zero is allowed. Any failure counts: a smaller run with another failure is a result, too.
 */
#include "tests/sim/fabric/shrink.h"
#include "tests/sim/fabric/runner.h"

#define RUNS_MOST 150

struct shrinker {
    struct sim_options best;
    char *said;
    unsigned runs;
};

/* Keeps the options if the run still fails. Consumes `only`, which may be NULL. */
static bool shrink_try(struct shrinker *s, const struct sim_options *smaller)
{
    struct verdict verdict;

    if (s->runs >= RUNS_MOST) {
        return false;
    }
    s->runs++;
    verdict = runner_run(smaller);
    if (verdict.passed) {
        g_free(verdict.said);
        return false;
    }
    if (smaller->only != s->best.only) {
        g_free(s->best.only);
    }
    s->best = *smaller;
    g_free(s->said);
    s->said = verdict.said;
    return true;
}

static char *shrink_list(const GArray *jobs, unsigned from, unsigned to)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < jobs->len; i++) {
        if (i < from || i >= to) {
            g_string_append_printf(text, "%s%u", text->len ? "," : "",
                                   g_array_index(jobs, unsigned, i));
        }
    }
    return g_string_free(text, FALSE);
}

static bool shrink_without(struct shrinker *s, GArray *jobs, unsigned from, unsigned to)
{
    struct sim_options smaller = s->best;
    char *only = shrink_list(jobs, from, to);

    smaller.only = NULL;
    if (*only && sim_options_set(&smaller, "only", only, NULL) && shrink_try(s, &smaller)) {
        g_array_remove_range(jobs, from, to - from);
        g_free(only);
        return true;
    }
    g_free(smaller.only);
    g_free(only);
    return false;
}

static void shrink_jobs(struct shrinker *s)
{
    struct sim_options drawn = sim_options_draw(&s->best);
    g_autoptr(GArray) jobs = g_array_new(FALSE, FALSE, sizeof(unsigned));
    unsigned step;

    sim_options_put(&s->best, "jobs", drawn.jobs);
    for (unsigned i = 0; i < drawn.jobs; i++) {
        g_array_append_val(jobs, i);
    }
    sim_options_clear(&drawn);
    if (s->best.only) {
        return; /* it is done already */
    }
    for (step = (jobs->len + 1) / 2; step && jobs->len > 1; step = step > 1 ? (step + 1) / 2 : 0) {
        unsigned at = 0;

        while (at < jobs->len && jobs->len > 1) {
            if (!shrink_without(s, jobs, at, MIN(at + step, jobs->len))) {
                at += step;
            }
        }
    }
}

static bool shrink_to(struct shrinker *s, const char *name, uint64_t value)
{
    struct sim_options smaller = s->best;

    sim_options_put(&smaller, name, value);
    return shrink_try(s, &smaller);
}

/* Tries the least value; if that does not fail, halves the value as long as it fails. */
static void shrink_number(struct shrinker *s, const char *name, uint64_t least)
{
    struct sim_options drawn = sim_options_draw(&s->best);
    uint64_t fails = sim_options_get(&drawn, name), passes = least;

    sim_options_clear(&drawn);
    if (fails <= least || shrink_to(s, name, least)) {
        return;
    }
    while (fails - passes > 1 + fails / 16) {
        uint64_t middle = passes + (fails - passes) / 2;

        *(shrink_to(s, name, middle) ? &fails : &passes) = middle;
    }
}

struct sim_options shrink(const struct sim_options *failed, char **said, unsigned *runs)
{
    static const struct {
        const char *name;
        uint64_t least;
    } numbers[] = {
        {"partitions", 0}, {"flaps", 0},  {"corruption", 0}, {"duplication", 0},
        {"reorder", 0},    {"loss", 0},   {"queue", 0},      {"ecn", 0},
        {"errors", 0},     {"jitter", 0}, {"rate", 0},       {"whims", 0},
        {"ops", 1},        {"window", 2}, {"size", 16},      {"hosts", 2},
    };
    struct shrinker s = {.best = sim_options_copy(failed), .said = *said};

    s.best.trace = false;
    shrink_jobs(&s);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        shrink_number(&s, numbers[i].name, numbers[i].least);
    }
    *said = s.said;
    *runs = s.runs;
    return s.best;
}
