/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements said.h. */
#define _GNU_SOURCE
#include "tests/programs/said.h"
#include <check.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int caught, usual; /* descriptors: what is said, and standard error as it was */

void said_catch(void)
{
    fflush(stderr);
    caught = memfd_create("said", MFD_CLOEXEC);
    usual = dup(STDERR_FILENO);
    ck_assert(caught >= 0 && usual >= 0);
    ck_assert_int_ge(dup2(caught, STDERR_FILENO), 0);
}

void said_text(char *text, size_t size)
{
    ssize_t len;

    fflush(stderr);
    ck_assert_int_ge(dup2(usual, STDERR_FILENO), 0);
    len = pread(caught, text, size - 1, 0);
    ck_assert_int_ge(len, 0);
    text[len] = 0;
    close(caught);
    close(usual);
}

static bool said_matches(const char *text, const char *expected)
{
    for (; *expected; expected++) {
        if (*expected != '#') {
            if (*text++ != *expected) {
                return false;
            }
            continue;
        }
        if (!isxdigit((unsigned char)*text)) {
            return false;
        }
        while (isxdigit((unsigned char)*text)) {
            text++;
        }
    }
    return !*text;
}

void said(const char *fmt, ...)
{
    char text[4096], expected[4096];
    va_list ap;

    said_text(text, sizeof(text));
    va_start(ap, fmt);
    vsnprintf(expected, sizeof(expected), fmt, ap);
    va_end(ap);
    if (!said_matches(text, expected)) {
        ck_assert_str_eq(text, expected);
    }
}
