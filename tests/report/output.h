/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether all that a program printed has arrived. */
#ifndef HCASIM_TESTS_REPORT_OUTPUT_H
#define HCASIM_TESTS_REPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#define OUTPUT_FAILED 125 /* the exit status of hcasim if it could not do its work */

/* Flushes standard output. Says so if anything printed so far was lost, for example on a full disk.
 */
static inline bool output_has_arrived(void)
{
    bool ok = !fflush(stdout);

    if (!ok || ferror(stdout)) {
        fprintf(stderr, "hcasim: standard output cannot be written\n");
        return false;
    }
    return true;
}

#endif
