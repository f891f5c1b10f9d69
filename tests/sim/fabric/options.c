/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of options, and the functions that use it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/kernel/settings.h"
#include "guest-lib/verbs/kernel/spelling.h"
#include "wire/chance.h"
#include "wire/fault/fault.h"
#include "tests/sim/fabric/options.h"

enum option_kind {
    OPTION_NUMBER,
    OPTION_PERCENT, /* stored per million */
    OPTION_FLAG,
    OPTION_LIST, /* words with commas between them */
    OPTION_FILE,
    OPTION_RULES, /* fault rules about frames and the link */
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
    {"seed", OPTION_NUMBER, AT(seed), 1, UINT64_MAX, 0, 0, 0, "The first seed."},
    {"seeds", OPTION_NUMBER, AT(seeds), 1, UINT32_MAX, 0, 0, 0, "The number of seeds."},
    {"new", OPTION_NUMBER, AT(fresh), 0, UINT32_MAX, 0, 0, 0,
     "Runs so many further seeds, which are drawn now, and prints them."},
    {"twice", OPTION_FLAG, AT(twice), 0, 1, 0, 0, 0,
     "Runs each seed twice. Both must be the same run."},
    {"workload", OPTION_LIST, AT(workload), 0, 0, 0, 0, 0,
     "The kinds of jobs, such as rc,ud. The list of kinds is below. Without this option, a run has all kinds except those that are marked: by name only."},
    {"hosts", OPTION_NUMBER, AT(hosts), 2, 1000, 1, 2, 16, "The number of hosts."},
    {"jobs", OPTION_NUMBER, AT(jobs), 4, 2000000, 1, 1, 12,
     "The number of jobs. Each job has one kind and runs on some of the hosts."},
    {"ops", OPTION_NUMBER, AT(ops), 100, UINT64_MAX, 1, 20, 400,
     "The number of operations of a job."},
    {"size", OPTION_NUMBER, AT(size), 4096, 65536, 1, 16, 9000,
     "The length of the longest message, in bytes."},
    {"exact", OPTION_FLAG, AT(exact), 0, 1, 0, 0, 0,
     "All messages of connections have the length that --size gives. Atomics have 8 bytes."},
    {"window", OPTION_NUMBER, AT(window), 16, 64, 1, 2, 64,
     "The number of operations that may be outstanding at a time."},
    {"calm", OPTION_FLAG, AT(calm), 0, 1, 0, 0, 0,
     "The seed draws no faults, strays, jitter and operations that fail. There are only those that other options ask for, such as --fault."},
    {"loss", OPTION_PERCENT, AT(loss), 0, 1000000, 2, 100, 50000,
     "The share of frames that are lost, in percent."},
    {"duplication", OPTION_PERCENT, AT(duplication), 0, 1000000, 2, 100, 50000,
     "The share of frames that arrive twice, in percent."},
    {"reorder", OPTION_PERCENT, AT(reorder), 0, 1000000, 2, 100, 50000,
     "The share of frames that later frames overtake, in percent."},
    {"corruption", OPTION_PERCENT, AT(corruption), 0, 1000000, 2, 100, 20000,
     "The share of frames that arrive with a wrong bit, in percent."},
    {"strays", OPTION_PERCENT, AT(strays), 0, 1000000, 2, 1000, 30000,
     "The share of frames before which a copy arrives that the receiver must drop, because its partition, sender or transport is wrong; in percent."},
    {"latency", OPTION_NUMBER, AT(latency), 1000, 1000 * MS, 1, 100, 20000,
     "The time that a frame takes from host to host, in ns."},
    {"jitter", OPTION_NUMBER, AT(jitter), 0, 1000 * MS, 2, 1, 5000,
     "The most time that is added to the latency, in ns."},
    {"rate", OPTION_NUMBER, AT(rate), 100000, 400000, 2, 1000, 400000,
     "The rate of each cable, in Mbit/s."},
    {"queue", OPTION_NUMBER, AT(queue), 0, UINT32_MAX, 3, 30000, 300000,
     "The room of the queue of a switch's port, in bytes. 0: no limit."},
    {"ecn", OPTION_NUMBER, AT(ecn), 0, UINT32_MAX, 3, 5000, 100000,
     "Packets are marked (ECN) if a queue holds more than so many bytes. 0: no packet is marked."},
    {"fault", OPTION_RULES, AT(fault), 0, 0, 0, 0, 0,
     "Fault rules about the frames and the link of each host, such as 'drop READ_RESPONSE every 9; delay 1us jitter 2us' (docs/reference/faults.md). Each host draws for itself."},
    {"partitions", OPTION_NUMBER, AT(partitions), 0, 1000, 4, 1, 3,
     "How many times some hosts receive nothing from some others for a while."},
    {"flaps", OPTION_NUMBER, AT(flaps), 0, 1000, 4, 1, 3,
     "How many times a cable fails for a while."},
    {"storm", OPTION_NUMBER, AT(storm), 20, 1000000, 0, 0, 0,
     "Partitions and link failures happen in the first so many ms."},
    {"errors", OPTION_PERCENT, AT(errors), 0, 1000000, 1, 1000, 100000,
     "The share of operations that must fail, in percent. After such an operation the connection is made again."},
    {"whims", OPTION_NUMBER, AT(whims), 2000, 1000 * MS, 4, 0, 20000,
     "The most time by which a turn or an interrupt is late, in ns. 0: hosts take turns in order."},
    {"cnp-rate", OPTION_NUMBER, AT(cnp_rate), 0, 400000, 2, 50, 2000,
     "The rate to which the first CNP reduces a sender, in Mbit/s. 0: half of its rate."},
    {"late-reads", OPTION_NUMBER, AT(late_reads), 0, 1, 2, 1, 1,
     "1: the memory of a READ is read as late as possible, after later WRITEs. 0: small READs are read at once."},
    {"only", OPTION_LIST, AT(only), 0, 0, 0, 0, 0,
     "Runs only the jobs with these numbers, such as 0,3."},
    {"trace", OPTION_FLAG, AT(trace), 0, 1, 0, 0, 0, "Prints on standard output what happens."},
    {"capture", OPTION_FILE, AT(capture), 0, 0, 0, 0, 0,
     "Writes the frames of all hosts to FILE (pcapng). Each host is an interface of it."},
    {"trace-file", OPTION_FILE, AT(trace_file), 0, 0, 0, 0, 0,
     "Writes what the hosts' devices do to FILE, as JSON lines. `hcasim explain FILE` makes a page of it."},
    {"processes", OPTION_NUMBER, AT(processes), 0, 1024, 0, 0, 0,
     "The number of seeds that run at a time. 0: one for each processor."},
    {"patience", OPTION_NUMBER, AT(patience), 600, 1000000, 0, 0, 0,
     "After so many seconds of real time a seed ends and counts as failed. 0: no limit."},
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

static bool option_is_text(const struct option *opt)
{
    return opt->kind == OPTION_LIST || opt->kind == OPTION_FILE || opt->kind == OPTION_RULES;
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
        if (option_is_text(&options[i])) {
            g_clear_pointer(option_text(&options[i], o), g_free);
        }
    }
}

/* A value as a user writes it. */
static double option_shown(const struct option *opt, uint64_t value)
{
    return opt->kind == OPTION_PERCENT ? (double)value * 100 / CHANCE_MILLION : (double)value;
}

/* The value without the option: its usual value, and what the seed may draw instead. NULL: an
 * option that is no number. */
static char *option_usual(const struct option *opt)
{
    double usual = option_shown(opt, opt->usual), least = option_shown(opt, opt->drawn_least),
           most = option_shown(opt, opt->drawn_most);

    if (!option_is_number(opt)) {
        return NULL;
    }
    if (!opt->one_in) {
        return g_strdup_printf("%.10g", usual);
    }
    if (opt->one_in == 1) {
        return g_strdup_printf("the seed draws %.10g to %.10g", least, most);
    }
    return opt->drawn_least == opt->drawn_most
               ? g_strdup_printf("%.10g, and %.10g in some runs", usual, least)
               : g_strdup_printf("%.10g, and in some runs the seed draws %.10g to %.10g", usual,
                                 least, most);
}

bool sim_option_describe(unsigned i, struct sim_option_about *about)
{
    static const char *const metavars[] = {[OPTION_NUMBER] = "N",
                                           [OPTION_PERCENT] = "PERCENT",
                                           [OPTION_LIST] = "LIST",
                                           [OPTION_FILE] = "FILE",
                                           [OPTION_RULES] = "RULES"};
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

/* An option that is similar to this name, which is none; or NULL. */
static const char *option_guess(const char *name)
{
    const char *names[G_N_ELEMENTS(options) + 1] = {NULL};

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        names[i] = options[i].name;
    }
    return spelling_guess(name, names);
}

bool sim_options_set(struct sim_options *o, const char *name, const char *value, GError **err)
{
    const struct option *opt = option_find(name);

    if (!opt) {
        const char *guess = option_guess(name);

        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
                    "there is no option %s%s%s%s", name, guess ? "; did you mean " : "",
                    guess ? guess : "", guess ? "?" : "");
        return false;
    }
    if (opt->kind == OPTION_FLAG) {
        *(bool *)((char *)o + opt->at) = !value || strcmp(value, "false") != 0;
    } else if (opt->kind == OPTION_RULES && !fault_check(value ? value : "", NULL, err)) {
        return false;
    } else if (option_is_text(opt)) {
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
    if (!hv_settings_check_groups(file, HV_SIMULATION_GROUP, err)) {
        g_prefix_error(err, "%s: ", path);
        return false;
    }
    keys = g_key_file_get_keys(file, HV_SIMULATION_GROUP, NULL, err);
    for (unsigned i = 0; keys && keys[i]; i++) {
        g_autofree char *value = g_key_file_get_string(file, HV_SIMULATION_GROUP, keys[i], err);

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
        if (option_is_text(&options[i])) {
            *option_text(&options[i], &copy) =
                g_strdup(*option_text(&options[i], (struct sim_options *)o));
        }
    }
    return copy;
}

/* Returns whether --calm keeps the seed from drawing the option, besides faults of frames. */
static bool option_is_unrest(const struct option *opt)
{
    return opt->at == AT(strays) || opt->at == AT(jitter) || opt->at == AT(errors);
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
    bool calm = chance_one_in(&weather, CALM) || o->calm;

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        const struct option *opt = &options[i];
        struct chance chance = chance_of(o->seed, opt->name, 0);

        if (opt->one_in && !(o->set & option_bit(opt)) && chance_one_in(&chance, opt->one_in) &&
            !(calm && option_is_fault(opt)) && !(o->calm && option_is_unrest(opt))) {
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
        if (opt->kind == OPTION_RULES) {
            g_autofree char *quoted = g_shell_quote(*option_text(opt, from));

            g_string_append_printf(text, " %s", quoted);
        } else if (option_is_text(opt)) {
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
