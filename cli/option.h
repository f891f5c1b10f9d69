/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes the options of hcasim, and parses them.
 *
 * A row describes an option once. The parser, the help, the man pages and the shell completion all
 * read the row.
 */
#ifndef HCASIM_CLI_OPTION_H
#define HCASIM_CLI_OPTION_H

#include <glib.h>
#include <stdbool.h>
#include "guest-lib/verbs/kernel/settings.h"

struct cli_option {
    /* The name as in a key file, the kind of value with its range, and what help says. */
    struct hv_setting row;
    char letter;       /* 0: none */
    bool only_in_tree; /* it needs the source tree: hidden and unknown where hcasim is installed */
    bool repeats;      /* it may be given several times, and each value counts */
    /* Whether a value is right; NULL: as hv_setting_check() says. */
    bool (*check)(const struct cli_option *option, const char *text, GError **err);
};

/* A parsed command line. */
struct cli_line {
    GPtrArray *options; /* of struct cli_option: those that the command has */
    GHashTable *values; /* text by name, of the options that were given */
    GHashTable *lists;  /* GPtrArray of texts by name, of the options that repeat */
    char **rest;        /* behind the options; in the caller's argv */
    bool wants_help;
};

/* An option's name as a user writes it, without the dashes. The caller frees it. */
char *cli_option_name(const struct cli_option *option);

void cli_option_add(GPtrArray *options, const struct cli_option *option);
GPtrArray *cli_options_new(void);

/*
 * Parses argv, which begins with the name of the command, for line->options. stops: the first word
 * that is no option ends the options; all that follows belongs to a program. If an option that does
 * not repeat is given twice, the last one holds, as in most programs that use getopt. But --wire
 * may be given once only: a user who gives it twice may mean two wires. False with *err.
 */
bool cli_line_parse(struct cli_line *line, char **argv, bool stops, GError **err);
void cli_line_clear(struct cli_line *line);

/* The value of an option, or NULL. A flag has the value "1". */
const char *cli_line_get(const struct cli_line *line, const char *name);
/* The values of an option that repeats, in the order of the command line; NULL if it was not given.
 */
const GPtrArray *cli_line_all(const struct cli_line *line, const char *name);

#endif
