/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the value of --report: the kind of the report, and a file that can be written. */
#ifndef HCASIM_CLI_REPORT_H
#define HCASIM_CLI_REPORT_H

#include "cli/option.h"

/* junit:FILE. False with *err. */
bool cli_report_check_junit(const struct cli_option *option, const char *text, GError **err);
/* FILE or junit:FILE. False with *err. */
bool cli_report_check(const struct cli_option *option, const char *text, GError **err);

#endif
