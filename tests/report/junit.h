/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes test results as JUnit XML, which CI services read: suites, and in each suite its cases
 * with their times, failures and skips. There is no standard; the elements and attributes are those
 * that Jenkins, GitLab and GitHub's actions have in common.
 */
#ifndef HCASIM_TESTS_REPORT_JUNIT_H
#define HCASIM_TESTS_REPORT_JUNIT_H

#include <glib.h>
#include <stdbool.h>

enum junit_outcome {
    JUNIT_PASSED,
    JUNIT_FAILED,
    JUNIT_SKIPPED,
};

struct junit_case {
    const char *suite, *name;
    enum junit_outcome outcome;
    double seconds;
    const char *text; /* why it failed or was skipped, in any bytes; NULL: nothing */
};

struct junit;

/* Begins a report, if its file can be written (file.h): that is known before anything runs. NULL
 * with *err. */
struct junit *junit_open(const char *path, GError **err);

/* Adds a case. The suites keep the order in which they come first. junit NULL: does nothing. */
void junit_add(struct junit *junit, const struct junit_case *c);

/* Writes the report and frees it. junit NULL: does nothing. False with *err. */
bool junit_close(struct junit *junit, GError **err);

/* Frees a report that is not written, or NULL. */
void junit_free(struct junit *junit);

#endif
