/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what the tables say: as help, as man pages, as shell completion, as pages of
 * docs/reference. */
#ifndef HCASIM_CLI_TEXT_H
#define HCASIM_CLI_TEXT_H

#include "cli/command.h"
#include "cli/topic.h"

/* The help of a command, or, for NULL, of hcasim. The caller frees the text. */
char *cli_help(const struct cli_command *command, bool in_tree);
/* Likewise, the source of the man page. */
char *cli_man(const struct cli_command *command);
/* The man page of section 7 about a subject that is no command, such as "device". NULL: there is no
 * such page. */
char *cli_man_topic(const char *name);
/* The help about a topic. */
char *cli_topic_help(const struct cli_topic *topic);
/* Completion for bash. */
char *cli_completion(void);
/* A page of docs/reference, by its name; NULL: there is no such page. */
char *cli_markdown(const char *page);
char *cli_markdown_faults(void);

/* Appends the words of a line, and begins new lines so that none is longer than width - 1 columns.
 * indent: the columns before each new line. at: the column where the first word stands. */
void cli_text_wrap(GString *to, const char *text, unsigned width, unsigned indent, unsigned at);

/* " (default: ...)", with the range or the choices; the caller frees it. */
char *cli_option_note(const struct cli_option *option);

#define CLI_SUMMARY "RDMA programs on a model of a ConnectX HCA, without the hardware"
#define CLI_ABOUT                                                                                  \
    "hcasim models a ConnectX (mlx5) HCA. Verbs programs that are not modified run on it: no VM, " \
    "no root, no device."

#endif
