/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulates hosts on a fabric: checks the options by the simulator's own table, and runs it. */
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/places.h"
#include "cli/report.h"
#include "tests/sim/fabric/options.h"

/* Options of the command line only. */
static const struct cli_option no_shrink = {
    .row = {.name = "no-shrink",
            .kind = HV_SETTING_FLAG,
            .help = "Does not search for a smaller run when a seed fails."}};
static const struct cli_option report = {
    .row = {.name = "report",
            .kind = HV_SETTING_NEW_FILE,
            .metavar = "junit:FILE",
            .help = "Writes the result of each seed to FILE, as JUnit XML."},
    .check = cli_report_check_junit};

static bool sim_check(const struct cli_option *option, const char *text, GError **err)
{
    struct sim_options options;
    bool ok;

    if (option->row.kind == HV_SETTING_NEW_FILE && !hv_setting_check(&option->row, text, err)) {
        return false;
    }
    sim_options_init(&options);
    ok = sim_options_set(&options, option->row.name, text, err);
    sim_options_clear(&options);
    return ok;
}

static enum hv_setting_kind sim_kind(const struct sim_option_about *about)
{
    if (!about->metavar) {
        return HV_SETTING_FLAG;
    }
    return strcmp(about->metavar, "FILE") ? HV_SETTING_TEXT : HV_SETTING_NEW_FILE;
}

void cli_sim_add_options(GPtrArray *options)
{
    struct sim_option_about about;

    for (unsigned i = 0; sim_option_describe(i, &about); i++) {
        cli_option_add(options, &(struct cli_option){.row = {.name = about.name,
                                                             .kind = sim_kind(&about),
                                                             .metavar = about.metavar,
                                                             .usual = about.usual,
                                                             .help = about.help},
                                                     .check = sim_check});
    }
    cli_option_add(options, &no_shrink);
    cli_option_add(options, &report);
}

/* The kinds of jobs: the simulator has the list. */
char *cli_sim_more(void)
{
    char *words[] = {cli_places()->sim, (char *)"--kinds", NULL}, *said = NULL;
    int status = 0;

    if (g_spawn_sync(NULL, words, NULL, G_SPAWN_DEFAULT, NULL, NULL, &said, NULL, &status, NULL) &&
        !status && said && *said) {
        return said;
    }
    g_free(said);
    return NULL;
}

int cli_sim(const struct cli_line *line)
{
    const struct cli_places *places = cli_places();
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);

    if (access(places->sim, X_OK)) {
        cli_say("%s is not built: run ninja in the build folder", places->sim);
        return CLI_FAILED;
    }
    g_ptr_array_add(words, g_strdup(places->sim));
    for (char **word = line->rest; *word; word++) {
        g_ptr_array_add(words, g_strdup(*word));
    }
    /* Behind the key file: an option has priority. */
    for (unsigned i = 0; i < line->options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(line->options, i);
        const char *name = option->row.name, *value = cli_line_get(line, name);

        if (value && !option->only_in_tree) {
            g_ptr_array_add(words, option->row.kind == HV_SETTING_FLAG
                                       ? g_strdup_printf("--%s", name)
                                       : g_strdup_printf("--%s=%s", name, value));
        }
    }
    g_ptr_array_add(words, NULL);
    return cli_exec((char **)words->pdata);
}
