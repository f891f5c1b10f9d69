/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the names of the variables HCASIM_* in the environment. A misspelt setting would be
 * without effect, and a test that needs it would succeed for nothing. But a user or a CI system may
 * have variables HCASIM_* for other purposes.
 */
#include "guest-lib/verbs/kernel/variables.h"
#include <string.h>
#include "cli/command.h"
#include "cli/places.h"

/* The variables of the source tree's scripts and tests. Empty where hcasim is installed. */
static char **variables_of_tree(void)
{
    const char *source = cli_places()->source;
    g_autofree char *path =
        source ? g_build_filename(source, "scripts/lib/variables.txt", NULL) : NULL;
    g_autofree char *text = NULL;

    if (path) {
        g_file_get_contents(path, &text, NULL, NULL);
    }
    return g_strsplit(text ? text : "", "\n", -1);
}

static bool variables_have(const char *name)
{
    const char *value = g_getenv(name);

    return value && *value;
}

int cli_variables_check(void)
{
    g_auto(GStrv) unknown = hv_variables_unknown(), of_tree = variables_of_tree();
    /* This process belongs to another run, or to a cluster, which has named the variables. */
    bool are_named = variables_have("HCASIM_RUN") || variables_have("HCASIM_HOSTS");

    for (char **name = unknown; *name; name++) {
        g_autofree char *slip = hv_variable_slip(*name), *guess = hv_variable_guess(*name);

        if (slip) {
            g_autofree char *text = hv_variable_slip_text(*name, slip);

            return cli_refuse("%s", text);
        }
        if (!are_named && !g_strv_contains((const char *const *)of_tree, *name)) {
            cli_say("%s is no variable of hcasim, and has no effect%s%s%s", *name,
                    guess ? "; did you mean " : ", see hcasim help run", guess ? guess : "",
                    guess ? "?" : "");
        }
    }
    return 0;
}
