/* SPDX-License-Identifier: BSD-2-Clause */
/* A case, on the device of this process or on a foreign one. */
#ifndef HCASIM_TESTS_CONFORMANCE_CASE_H
#define HCASIM_TESTS_CONFORMANCE_CASE_H

#include <stdint.h>
#include "tests/conformance/script.h"

struct foreign_config;

/* Exit statuses of a process that played a case; why is said on stderr. */
enum {
    CASE_HOLDS = 0,
    CASE_FAILS = 1,
    CASE_SKIPPED = 77
};

/* Plays it with these PSNs to begin with. foreign: the device that it is about, or NULL. Returns if
 * all of it holds; else the process ends. */
void case_play(const struct script_case *script, const struct foreign_config *foreign,
               uint32_t rq_psn, uint32_t sq_psn);

#endif
