/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a report. It is written when the report is complete: a program that runs nothing
 * leaves no file behind, and an earlier report stays as it was.
 */
#ifndef HCASIM_TESTS_REPORT_FILE_H
#define HCASIM_TESTS_REPORT_FILE_H

#include <glib.h>
#include <stdbool.h>

/* Whether the file can be written, as far as that is known before it is written. Makes nothing.
 * False with *err. */
bool report_file_check(const char *path, GError **err);

/* Writes the whole file. If that fails, no part of a file stays. False with *err. */
bool report_file_write(const char *path, const char *text, GError **err);

#endif
