/* SPDX-License-Identifier: BSD-2-Clause */
/* A test program defines a suite, which main.c runs. */
#ifndef HCASIM_TESTS_SUITE_H
#define HCASIM_TESTS_SUITE_H

#include <check.h>

Suite *unit_suite(void);

#endif
