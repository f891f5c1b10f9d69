/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a suite on its own wire (own_wire.h). */
#include "tests/programs/own_wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int run_on_own_wire(Suite *suite, const char *name)
{
    SRunner *runner = srunner_create(suite);
    char wire[64];
    int failed;

    snprintf(wire, sizeof(wire), "%s-%d", name, (int)getpid());
    setenv("HCASIM_WIRE", wire, 0);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
