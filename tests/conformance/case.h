/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a case on the device of this process or on a foreign device. */
#ifndef HCASIM_TESTS_CONFORMANCE_CASE_H
#define HCASIM_TESTS_CONFORMANCE_CASE_H

#include <stdint.h>
#include "tests/conformance/script.h"

struct foreign_config;

/* Exit statuses of a process that played a case. It prints the reason on stderr. */
enum {
    CASE_HOLDS = 0,
    CASE_FAILS = 1,
    CASE_SKIPPED = 77
};

/* Plays the case with these initial PSNs. foreign: the device under test, or NULL for the device of
 * this process. Returns if everything holds; otherwise the process ends. */
void case_play(const struct script_case *script, const struct foreign_config *foreign,
               uint32_t rq_psn, uint32_t sq_psn);

#endif
