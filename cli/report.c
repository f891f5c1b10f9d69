/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements report.h. The program that writes the report opens the file before it runs anything.
 */
#include "cli/report.h"
#include <string.h>

#define JUNIT "junit:"

static bool report_is_file(const char *text)
{
    static const struct hv_setting file = {.name = "report", .kind = HV_SETTING_NEW_FILE};

    return hv_setting_check(&file, text, NULL);
}

static bool report_refuse(const char *forms, const char *text, GError **err)
{
    g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "report must be %s, a file that can be written, but it is %s", forms,
                *text ? text : "empty");
    return false;
}

bool cli_report_check_junit(const struct cli_option *option, const char *text, GError **err)
{
    return (g_str_has_prefix(text, JUNIT) && report_is_file(text + strlen(JUNIT))) ||
           report_refuse(JUNIT "FILE", text, err);
}

bool cli_report_check(const struct cli_option *option, const char *text, GError **err)
{
    return report_is_file(g_str_has_prefix(text, JUNIT) ? text + strlen(JUNIT) : text) ||
           report_refuse("FILE or " JUNIT "FILE", text, err);
}
