/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of main() in programs whose tests use Check. */
#ifndef HCASIM_TESTS_PROGRAMS_OWN_WIRE_H
#define HCASIM_TESTS_PROGRAMS_OWN_WIRE_H

#include <check.h>

/* Runs the suite, and frees it. The program's devices are on a wire of its own with this name,
 * unless HCASIM_WIRE names another wire. Returns the program's exit status. */
int run_on_own_wire(Suite *suite, const char *name);

#endif
