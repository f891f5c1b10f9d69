/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements report.h. The program that writes the report checks the same before it runs anything.
 */
#include "cli/report.h"
#include "tests/report/kind.h"

/* Whether the file can be written. */
static bool report_check_file(const char *path, GError **err)
{
    static const struct hv_setting file = {.name = "report", .kind = HV_SETTING_NEW_FILE};

    return hv_setting_check(&file, path, err);
}

bool cli_report_check_junit(const struct cli_option *option, const char *text, GError **err)
{
    const char *file = report_junit_file(text);

    if (!file) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "report must be junit:FILE, but it is %s", *text ? text : "empty");
        return false;
    }
    return report_check_file(file, err);
}

bool cli_report_check(const struct cli_option *option, const char *text, GError **err)
{
    const char *file = report_junit_file(text);

    return report_kind_check(text, err) && report_check_file(file ? file : text, err);
}
