/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a case on the device of this process or on a foreign device. */
#ifndef HCASIM_TESTS_CONFORMANCE_CASE_H
#define HCASIM_TESTS_CONFORMANCE_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/conformance/script.h"

struct foreign_config;

/* Exit statuses of a process that played a case. It prints the reason on stderr. */
enum {
    CASE_HOLDS = 0,
    CASE_FAILS = 1,
    CASE_MISTAKE = 2, /* the script has a mistake */
    CASE_SKIPPED = 77
};

/* Checks what is known of a case without playing it: that there are such steps. False with *err. */
bool case_check(const struct script_case *script, GError **err);

/* Plays the case with these initial PSNs. foreign: the device under test, or NULL for the device of
 * this process. Returns if everything holds; otherwise the process ends. */
void case_play(const struct script_case *script, const struct foreign_config *foreign,
               uint32_t rq_psn, uint32_t sq_psn);

/* Joins the wire of a foreign device, calls its helper and finds the device on the wire. Returns if
 * all of that works; otherwise the process ends with CASE_FAILS and prints the reason. */
void case_try_foreign(const struct foreign_config *foreign);

#endif
