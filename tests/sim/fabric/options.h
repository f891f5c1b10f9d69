/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of a simulation. An unset option is drawn from the seed, so a seed alone names a run.
 * A set option holds for all seeds. A key file may set options, too.
 */
#ifndef HCASIM_TESTS_OPTIONS_H
#define HCASIM_TESTS_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_options {
    /* how to run */
    uint64_t seed, seeds, fresh, processes, patience;
    bool trace, twice;
    /* what a command that repeats the run contains */
    char *workload;   /* names of kinds, with commas; NULL: all usual kinds */
    char *only;       /* numbers of jobs, with commas; NULL: all */
    char *capture;    /* file for the frames of all hosts */
    char *fault;      /* rules about the frames of all hosts (wire/fault/fault.h), or NULL */
    char *trace_file; /* file for the events of all hosts */
    /* what happens in the run */
    uint64_t hosts, jobs, ops, size, window;
    bool exact, calm;
    uint64_t loss, duplication, reorder, corruption, strays; /* per million */
    uint64_t latency, jitter, rate, queue, ecn;
    uint64_t partitions, flaps, storm;
    uint64_t errors; /* per million operations */
    uint64_t whims;
    uint64_t cnp_rate;
    uint64_t late_reads;
    uint64_t set; /* a bit for each row of the table: it is set, so it is not drawn */
};

void sim_options_init(struct sim_options *o);
void sim_options_clear(struct sim_options *o);
/* Copies the options with their texts. */
struct sim_options sim_options_copy(const struct sim_options *o);
/* Tells what help says of an option: its name, its value (NULL: it has none), what holds without it
 * (NULL: nothing), and a sentence. Returns false if there are fewer options. */
struct sim_option_about {
    const char *name, *metavar, *usual, *help;
};
bool sim_option_describe(unsigned i, struct sim_option_about *about);
/* Sets an option by its name; value NULL: it has none. Returns false with *err. */
bool sim_options_set(struct sim_options *o, const char *name, const char *value, GError **err);
bool sim_options_takes_value(const char *name);
/* Reads the group [simulation] of a key file. */
bool sim_options_load(struct sim_options *o, const char *path, GError **err);
/* Returns a copy in which the seed has drawn all unset options. */
struct sim_options sim_options_draw(const struct sim_options *o);
/* Returns the set options as arguments. */
char *sim_options_print(const struct sim_options *o);

/* For the search of a smaller run: reads or sets a number of the options, by name. */
uint64_t sim_options_get(const struct sim_options *o, const char *name);
void sim_options_put(struct sim_options *o, const char *name, uint64_t value);

#endif
