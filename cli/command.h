/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes the commands of hcasim: the purpose of each, its options, and the function that runs
 * it. */
#ifndef HCASIM_CLI_COMMAND_H
#define HCASIM_CLI_COMMAND_H

#include "cli/option.h"

/* Exit statuses of hcasim itself, beside those of the programs that it runs. */
#define CLI_WRONG_USE      2   /* an unknown option, a wrong value: nothing was run */
#define CLI_FAILED         125 /* hcasim itself could not do its work; --require did not hold */
#define CLI_NOT_EXECUTABLE 126
#define CLI_NOT_FOUND      127
#define CLI_SIGNAL         128 /* and the number of the signal that ended the program */

struct cli_status {
    const char *status, *means;
};

struct cli_command {
    const char *name;
    const char *arguments; /* behind the options */
    const char *summary;   /* what it does, in a line without a full stop */
    const char *about;     /* paragraphs */
    const struct cli_status *statuses;
    const char *const *examples; /* pairs of a command line and what it does; NULL at the end */
    bool runs_program;           /* what follows the options is a program and its arguments */
    void (*add_options)(GPtrArray *options);
    /* More for the help: a title and lines that the command makes itself; or NULL. */
    char *(*more)(void);
    /* Returns the exit status, or never. */
    int (*run)(const struct cli_line *line);
};

const struct cli_command *cli_command_at(unsigned i);
const struct cli_command *cli_command_find(const char *name);
/* The options that a command has here: without those that need the source tree if it is not here.
 */
GPtrArray *cli_command_options(const struct cli_command *command, bool in_tree);

/* Prints "hcasim: ..." on standard error. */
void cli_say(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* The same for wrong use; returns CLI_WRONG_USE. */
int cli_refuse(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* Writes what is left of standard output. Returns the status, or CLI_FAILED after a line that says
 * why the output cannot be written. */
int cli_flush(int status);
/* Replaces this process, or says why that is impossible; returns the exit status for that. */
int cli_exec(char **argv);

/* The commands, each in its file. */
int cli_run(const struct cli_line *line);
int cli_cluster(const struct cli_line *line);
int cli_ctl(const struct cli_line *line);
int cli_conformance(const struct cli_line *line);
int cli_explain(const struct cli_line *line);
int cli_sim(const struct cli_line *line);
int cli_switch(const struct cli_line *line);
void cli_switch_add_options(GPtrArray *options);
int cli_top(const struct cli_line *line);
int cli_vm(const struct cli_line *line);
void cli_vm_add_options(GPtrArray *options);
int cli_wires(const struct cli_line *line);
void cli_sim_add_options(GPtrArray *options);
char *cli_sim_more(void);

/* Checks the names of the variables HCASIM_* in the environment. Refuses a misspelt one; says that
 * another one has no effect. 0, or the exit status. */
int cli_variables_check(void);
/* Checks the settings of the command line, the environment and the key file. 0, or the exit
 * status. */
int cli_run_check(const struct cli_line *line);
/* How many devices a process gets. 0, or the exit status: there are more wires than devices, or
 * more devices than addresses. */
int cli_run_count_devices(const struct cli_line *line, unsigned *devices);
/* Sets the variable HCASIM_NAME for each option that is a setting. */
void cli_run_export(const struct cli_line *line);
/* The value of a setting that the command line or the environment has, or NULL. */
const char *cli_run_said(const struct cli_line *line, const char *name);
/* Whether a library of hcasim is there and whole; if not, a line says so. Without it, the program
 * would run without the library, or the loader would end the program with a status that looks like
 * the program's own. */
bool cli_run_find_library(const char *path);
/* A setting by priority: option, variable, key file; or NULL. The caller frees it. */
char *cli_run_setting(const struct cli_line *line, const char *name);

#endif
