/* SPDX-License-Identifier: BSD-2-Clause */
/* The main() of all test programs here: runs the program's suite. */
#include <check.h>
#include <stdlib.h>
#include "tests/unit/suite.h"

int main(void)
{
    SRunner *runner = srunner_create(unit_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
