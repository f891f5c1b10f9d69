/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a simulation is made of. An option that nobody sets is drawn from the seed, so a seed alone
 * names a run; one that is set holds for all seeds. A key file may set them, too.
 */
#ifndef HCASIM_TESTS_OPTIONS_H
#define HCASIM_TESTS_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_options {
    /* the run */
    uint64_t seed, seeds, fresh, processes, patience;
    bool trace, twice;
    /* what a command that repeats it has */
    char *workload; /* names of kinds, with commas; NULL: all that are usual */
    char *only;     /* numbers of jobs, with commas; NULL: all */
    char *capture;  /* file for the frames of the first host */
    /* what happens */
    uint64_t hosts, jobs, ops, size, window;
    bool exact;
    uint64_t loss, duplication, reorder, corruption, strays; /* per million */
    uint64_t latency, jitter, rate, queue, ecn;
    uint64_t partitions, flaps, storm;
    uint64_t errors; /* per million operations */
    uint64_t whims;
    uint64_t cnp_rate;
    uint64_t late_reads;
    uint64_t set; /* a bit for each row of the table: not to be drawn */
};

void sim_options_init(struct sim_options *o);
void sim_options_clear(struct sim_options *o);
/* With texts of its own. */
struct sim_options sim_options_copy(const struct sim_options *o);
/* Text at the end of --help. */
char *sim_options_help(void);
/* An option by its name; value NULL: it has none. False with *err. */
bool sim_options_set(struct sim_options *o, const char *name, const char *value, GError **err);
bool sim_options_takes_value(const char *name);
/* Group [simulation] of a key file. */
bool sim_options_load(struct sim_options *o, const char *path, GError **err);
/* A copy in which the seed has drawn what was not set. */
struct sim_options sim_options_draw(const struct sim_options *o);
/* What is set, as arguments that set it again. */
char *sim_options_print(const struct sim_options *o);

/* For those who look for a smaller run: a number of the options, by name. */
uint64_t sim_options_get(const struct sim_options *o, const char *name);
void sim_options_put(struct sim_options *o, const char *name, uint64_t value);

#endif
