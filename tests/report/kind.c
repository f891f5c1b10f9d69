/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements kind.h. */
#include "tests/report/kind.h"
#include <string.h>

#define JUNIT "junit:"

const char *report_junit_file(const char *report)
{
    return g_str_has_prefix(report, JUNIT) ? report + strlen(JUNIT) : NULL;
}

bool report_kind_check(const char *report, GError **err)
{
    size_t len = strspn(report, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-");

    if (!len || report[len] != ':' || report_junit_file(report)) {
        return true;
    }
    g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "there is no kind of report '%.*s': say FILE for Markdown or junit:FILE for JUnit "
                "XML (a file of that name is ./%s)",
                (int)len, report, report);
    return false;
}
