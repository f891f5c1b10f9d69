/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of options, and the functions that use it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/chance.h"
#include "tests/sim/fabric/options.h"

enum option_kind {
    OPTION_NUMBER,
    OPTION_PERCENT, /* stored per million */
    OPTION_FLAG,
    OPTION_TEXT,
};

struct option {
    const char *name;
    enum option_kind kind;
    size_t at;
    uint64_t usual, most; /* most: the largest value that may be set */
    /* In one run of so many the value is drawn, from least to most; otherwise it is the usual
     * value. 0: never drawn. */
    unsigned one_in;
    uint64_t drawn_least, drawn_most;
    const char *help;
};

#define AT(member) offsetof(struct sim_options, member)
#define MS         1000000ull

static const struct option options[] = {
    {"seed", OPTION_NUMBER, AT(seed), 1, UINT64_MAX, 0, 0, 0, "the first seed"},
    {"seeds", OPTION_NUMBER, AT(seeds), 1, UINT32_MAX, 0, 0, 0, "how many seeds"},
    {"new", OPTION_NUMBER, AT(fresh), 0, UINT32_MAX, 0, 0, 0,
     "so many seeds more, that are drawn now, and printed"},
    {"twice", OPTION_FLAG, AT(twice), 0, 1, 0, 0, 0, "each seed twice: both must be the same run"},
    {"workload", OPTION_TEXT, AT(workload), 0, 0, 0, 0, 0, "kinds of jobs, as rc,ud (see below)"},
    {"hosts", OPTION_NUMBER, AT(hosts), 2, 1000, 1, 2, 16, "hosts"},
    {"jobs", OPTION_NUMBER, AT(jobs), 4, 2000000, 1, 1, 12, "jobs, each of a kind, on some hosts"},
    {"ops", OPTION_NUMBER, AT(ops), 100, UINT64_MAX, 1, 20, 400, "operations of a job"},
    {"size", OPTION_NUMBER, AT(size), 4096, 65536, 1, 16, 9000, "longest message, bytes"},
    {"exact", OPTION_FLAG, AT(exact), 0, 1, 0, 0, 0,
     "messages of connections are all of that size (atomics are of 8 bytes)"},
    {"window", OPTION_NUMBER, AT(window), 16, 64, 1, 2, 64, "operations that are outstanding"},
    {"loss", OPTION_PERCENT, AT(loss), 0, 1000000, 2, 100, 50000, "frames that are lost, %"},
    {"duplication", OPTION_PERCENT, AT(duplication), 0, 1000000, 2, 100, 50000,
     "that come twice, %"},
    {"reorder", OPTION_PERCENT, AT(reorder), 0, 1000000, 2, 100, 50000, "that others overtake, %"},
    {"corruption", OPTION_PERCENT, AT(corruption), 0, 1000000, 2, 100, 20000,
     "with a bit that is wrong, %"},
    {"strays", OPTION_PERCENT, AT(strays), 0, 1000000, 2, 1000, 30000,
     "that a stranger sends another one like, which is to be dropped, %"},
    {"latency", OPTION_NUMBER, AT(latency), 1000, 1000 * MS, 1, 100, 20000,
     "from host to host, ns"},
    {"jitter", OPTION_NUMBER, AT(jitter), 0, 1000 * MS, 2, 1, 5000, "that is added at most, ns"},
    {"rate", OPTION_NUMBER, AT(rate), 100000, 400000, 2, 1000, 400000, "of each cable, Mbit/s"},
    {"queue", OPTION_NUMBER, AT(queue), 0, UINT32_MAX, 3, 30000, 300000,
     "of a switch's port, bytes (0: endless)"},
    {"ecn", OPTION_NUMBER, AT(ecn), 0, UINT32_MAX, 3, 5000, 100000,
     "bytes in a queue above which packets are marked (0: none are)"},
    {"partitions", OPTION_NUMBER, AT(partitions), 0, 1000, 4, 1, 3,
     "times that some hosts do not hear others"},
    {"flaps", OPTION_NUMBER, AT(flaps), 0, 1000, 4, 1, 3, "times that a cable is out"},
    {"storm", OPTION_NUMBER, AT(storm), 20, 1000000, 0, 0, 0,
     "for how long from the start on there are such, ms"},
    {"errors", OPTION_PERCENT, AT(errors), 0, 1000000, 1, 1000, 100000,
     "operations that must fail, after which a connection is made anew, %"},
    {"whims", OPTION_NUMBER, AT(whims), 2000, 1000 * MS, 4, 0, 20000,
     "how late a turn or an interrupt may be, ns; 0: hosts take turns in order"},
    {"cnp-rate", OPTION_NUMBER, AT(cnp_rate), 0, 400000, 2, 50, 2000,
     "Mbit/s that a sender falls to with its first CNP (0: half of what it was)"},
    {"late-reads", OPTION_NUMBER, AT(late_reads), 0, 1, 2, 1, 1,
     "1: READ data is taken as late as may be, behind later WRITEs; 0: at once where it is small"},
    {"only", OPTION_TEXT, AT(only), 0, 0, 0, 0, 0, "jobs with these numbers, as 0,3"},
    {"trace", OPTION_FLAG, AT(trace), 0, 1, 0, 0, 0, "tells what happens, on standard output"},
    {"capture", OPTION_TEXT, AT(capture), 0, 0, 0, 0, 0, "the frames of all hosts, to that file"},
    {"processes", OPTION_NUMBER, AT(processes), 0, 1024, 0, 0, 0,
     "seeds at a time (0: as there are processors)"},
    {"patience", OPTION_NUMBER, AT(patience), 600, 1000000, 0, 0, 0,
     "real seconds after which a seed is given up, and failed (0: never)"},
};

static const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (!strcmp(options[i].name, name)) {
            return &options[i];
        }
    }
    return NULL;
}

static uint64_t option_bit(const struct option *opt)
{
    return 1ull << (opt - options);
}

static uint64_t *option_number(const struct option *opt, struct sim_options *o)
{
    return (uint64_t *)((char *)o + opt->at);
}

static char **option_text(const struct option *opt, struct sim_options *o)
{
    return (char **)((char *)o + opt->at);
}

static bool option_is_number(const struct option *opt)
{
    return opt->kind == OPTION_NUMBER || opt->kind == OPTION_PERCENT;
}

void sim_options_init(struct sim_options *o)
{
    memset(o, 0, sizeof(*o));
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (option_is_number(&options[i])) {
            *option_number(&options[i], o) = options[i].usual;
        }
    }
}

void sim_options_clear(struct sim_options *o)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (options[i].kind == OPTION_TEXT) {
            g_clear_pointer(option_text(&options[i], o), g_free);
        }
    }
}

/* "2, or 2 to 16 by the seed"; NULL: an option without a value. */
static char *option_usual(const struct option *opt)
{
    if (opt->kind == OPTION_NUMBER && opt->one_in) {
        return g_strdup_printf("%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " by the seed",
                               opt->drawn_least, opt->drawn_most);
    }
    if (opt->kind == OPTION_NUMBER) {
        return g_strdup_printf("%" G_GUINT64_FORMAT, opt->usual);
    }
    return opt->one_in ? g_strdup_printf("0 to %g by the seed",
                                         (double)opt->drawn_most * 100 / CHANCE_MILLION)
                       : NULL;
}

bool sim_option_describe(unsigned i, struct sim_option_about *about)
{
    static const char *const metavars[] = {
        [OPTION_NUMBER] = "N", [OPTION_PERCENT] = "PERCENT", [OPTION_TEXT] = "TEXT"};
    g_autofree char *usual = NULL;

    if (i >= G_N_ELEMENTS(options)) {
        return false;
    }
    usual = option_usual(&options[i]);
    *about = (struct sim_option_about){.name = options[i].name,
                                       .help = options[i].help,
                                       .metavar = metavars[options[i].kind],
                                       .usual = usual ? g_intern_string(usual) : NULL};
    return true;
}

static bool option_parse(const struct option *opt, const char *value, uint64_t *number)
{
    char *end;
    double percent;

    if (opt->kind == OPTION_NUMBER) {
        return g_ascii_string_to_unsigned(value, 10, 0, opt->most, number, NULL);
    }
    percent = g_ascii_strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%") != 0) || !(percent >= 0) || percent > 100) {
        return false;
    }
    *number = (uint64_t)(percent * CHANCE_MILLION / 100 + 0.5);
    return true;
}

bool sim_options_takes_value(const char *name)
{
    const struct option *opt = option_find(name);

    return opt && opt->kind != OPTION_FLAG;
}

bool sim_options_set(struct sim_options *o, const char *name, const char *value, GError **err)
{
    const struct option *opt = option_find(name);

    if (!opt) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "there is no option %s",
                    name);
        return false;
    }
    if (opt->kind == OPTION_FLAG) {
        *(bool *)((char *)o + opt->at) = !value || strcmp(value, "false") != 0;
    } else if (opt->kind == OPTION_TEXT) {
        g_free(*option_text(opt, o));
        *option_text(opt, o) = g_strdup(value);
    } else if (!value || !option_parse(opt, value, option_number(opt, o))) {
        g_autofree char *most = opt->kind == OPTION_PERCENT
                                    ? g_strdup("100 %")
                                    : g_strdup_printf("%" G_GUINT64_FORMAT, opt->most);

        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s must be 0 to %s, but it is %s", name, most, value ? value : "empty");
        return false;
    }
    o->set |= option_bit(opt);
    return true;
}

bool sim_options_load(struct sim_options *o, const char *path, GError **err)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_auto(GStrv) keys = NULL;

    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, err)) {
        g_prefix_error(err, "%s: ", path);
        return false;
    }
    keys = g_key_file_get_keys(file, "simulation", NULL, err);
    for (unsigned i = 0; keys && keys[i]; i++) {
        g_autofree char *value = g_key_file_get_string(file, "simulation", keys[i], err);

        if (!value || !sim_options_set(o, keys[i], value, err)) {
            g_prefix_error(err, "%s: ", path);
            return false;
        }
    }
    if (!keys) {
        g_prefix_error(err, "%s: ", path);
    }
    return keys != NULL;
}

struct sim_options sim_options_copy(const struct sim_options *o)
{
    struct sim_options copy = *o;

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (options[i].kind == OPTION_TEXT) {
            *option_text(&options[i], &copy) =
                g_strdup(*option_text(&options[i], (struct sim_options *)o));
        }
    }
    return copy;
}

/* Returns whether the option is a fault of frames. */
static bool option_is_fault(const struct option *opt)
{
    static const size_t faults[] = {AT(loss),  AT(duplication), AT(reorder), AT(corruption),
                                    AT(queue), AT(partitions),  AT(flaps)};

    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        if (opt->at == faults[i]) {
            return true;
        }
    }
    return false;
}

/* One run in three has no faults: there the checks of what then may not happen at all apply. */
#define CALM 3

struct sim_options sim_options_draw(const struct sim_options *o)
{
    struct sim_options drawn = sim_options_copy(o);
    struct chance weather = chance_of(o->seed, "calm", 0);
    bool calm = chance_one_in(&weather, CALM);

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        const struct option *opt = &options[i];
        struct chance chance = chance_of(o->seed, opt->name, 0);

        if (opt->one_in && !(o->set & option_bit(opt)) && chance_one_in(&chance, opt->one_in) &&
            !(calm && option_is_fault(opt))) {
            *option_number(opt, &drawn) = chance_from(&chance, opt->drawn_least, opt->drawn_most);
        }
    }
    return drawn;
}

char *sim_options_print(const struct sim_options *o)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        const struct option *opt = &options[i];
        struct sim_options *from = (struct sim_options *)o;

        if (opt->at != AT(seed) && (opt->at < AT(workload) || !(o->set & option_bit(opt)))) {
            continue;
        }
        g_string_append_printf(text, " --%s", opt->name);
        if (opt->kind == OPTION_TEXT) {
            g_string_append_printf(text, " %s", *option_text(opt, from));
        } else if (opt->kind == OPTION_NUMBER) {
            g_string_append_printf(text, " %" G_GUINT64_FORMAT, *option_number(opt, from));
        } else if (opt->kind == OPTION_PERCENT) {
            g_string_append_printf(text, " %g",
                                   (double)*option_number(opt, from) * 100 / CHANCE_MILLION);
        }
    }
    return g_string_free(text, FALSE);
}

uint64_t sim_options_get(const struct sim_options *o, const char *name)
{
    return *option_number(option_find(name), (struct sim_options *)o);
}

void sim_options_put(struct sim_options *o, const char *name, uint64_t value)
{
    const struct option *opt = option_find(name);

    *option_number(opt, o) = value;
    o->set |= option_bit(opt);
}
