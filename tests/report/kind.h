/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of reports that a conformance player writes: FILE (Markdown) and junit:FILE (JUnit
 * XML). */
#ifndef HCASIM_TESTS_REPORT_KIND_H
#define HCASIM_TESTS_REPORT_KIND_H

#include <glib.h>
#include <stdbool.h>

/* The file of junit:FILE; NULL: the text does not begin with "junit:". */
const char *report_junit_file(const char *report);

/* False with *err: a word before a colon at the start, such as xml:FILE, is no kind of report. */
bool report_kind_check(const char *report, GError **err);

#endif
