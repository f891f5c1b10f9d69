/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program and demands that a process opens a device (hcasim run --require). */
#ifndef HCASIM_CLI_REQUIRE_H
#define HCASIM_CLI_REQUIRE_H

/* Runs argv as a child and waits for its end. Returns the exit status: that of the program, or
 * CLI_FAILED if the program succeeded and neither it nor a child of it opened a device. */
int require_run(char **argv);

#endif
