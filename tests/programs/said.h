/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares what a test's process says on standard error, word for word. */
#ifndef HCASIM_TESTS_PROGRAMS_SAID_H
#define HCASIM_TESTS_PROGRAMS_SAID_H

#include <stddef.h>

/* Catches standard error from now on, until said() or said_text(). */
void said_catch(void);
/* Since said_catch(), this was said, and nothing else. A '#' stands for a hexadecimal number that
 * the test does not know. */
void said(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Copies what was said since said_catch(). */
void said_text(char *text, size_t size);

#endif
