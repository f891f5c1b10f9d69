/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the pages docs/reference/command-line.md and docs/reference/settings.md from the tables.
 * cli/markdown_faults.c writes docs/reference/faults.md. */
#include <string.h>
#include "cli/text.h"
#include "guest-lib/verbs/kernel/variables.h"

#define WIDTH 100

#define MADE                                                                                       \
    "<!-- Made by `hcasim --markdown %s` from the tables of cli/ and of\n"                         \
    "     guest-lib/verbs/kernel/settings.c. To change this page, change the tables, then run\n"   \
    "     scripts/lib/reference_pages.py build/cli/hcasim --write. -->\n"

static void markdown_paragraphs(GString *to, const char *text)
{
    g_auto(GStrv) paragraphs = g_strsplit(text, "\n", -1);

    for (char **paragraph = paragraphs; *paragraph; paragraph++) {
        g_string_append_c(to, '\n');
        cli_text_wrap(to, *paragraph, WIDTH, 0, 0);
    }
}

/* A cell of a table, and the bar behind it. */
static void markdown_cell(GString *to, const char *text)
{
    g_string_append_c(to, ' ');
    for (; *text; text++) {
        if (*text == '|') {
            g_string_append(to, "\\|");
        } else if (*text == '<') {
            g_string_append(to, "&lt;");
        } else {
            g_string_append_c(to, *text);
        }
    }
    g_string_append(to, " |");
}

static void markdown_row(GString *to, const char *first, const char *second)
{
    g_string_append_c(to, '|');
    markdown_cell(to, first);
    markdown_cell(to, second);
    g_string_append_c(to, '\n');
}

/* Appends text as a block of code. */
static void markdown_code(GString *to, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    g_string_append_c(to, '\n');
    for (char **line = lines; *line; line++) {
        g_string_append_printf(to, "%s%s\n", **line ? "    " : "", *line);
    }
}

/* -- command-line.md --------------------------------------------------------------------------- */

static void markdown_option(GString *to, const struct cli_option *option)
{
    g_autofree char *name = cli_option_name(option), *note = cli_option_note(option);
    g_autofree char *text = g_strconcat(
        option->row.help, note, option->only_in_tree ? " Only in the source tree." : "", NULL);
    g_autoptr(GString) term = g_string_new("`");

    if (option->letter) {
        g_string_append_printf(term, "-%c`, `", option->letter);
    }
    g_string_append_printf(term, "--%s%s%s`", name, option->row.metavar ? " " : "",
                           option->row.metavar ? option->row.metavar : "");
    markdown_row(to, term->str, text);
}

static void markdown_command(GString *to, const struct cli_command *command)
{
    g_autoptr(GPtrArray) options = cli_command_options(command, true);
    g_autofree char *more = command->more ? command->more() : NULL;
    g_autofree char *usage =
        g_strdup_printf("hcasim %s [OPTION...] %s", command->name, command->arguments);

    g_string_append_printf(to, "\n## hcasim %s\n", command->name);
    markdown_code(to, g_strchomp(usage));
    markdown_paragraphs(to, command->about);
    g_string_append(to, "\n| option | meaning |\n|---|---|\n");
    for (unsigned i = 0; i < options->len; i++) {
        markdown_option(to, g_ptr_array_index(options, i));
    }
    markdown_row(to, "`-h`, `--help`", "Prints the help.");
    if (more) {
        markdown_code(to, g_strchomp(more));
    }
    g_string_append(to, "\n| example | what it does |\n|---|---|\n");
    for (const char *const *pair = command->examples; *pair; pair += 2) {
        g_autofree char *example = g_strdup_printf("`%s`", pair[0]);

        markdown_row(to, example, pair[1]);
    }
}

static void markdown_statuses(GString *to)
{
    const struct cli_command *command;

    g_string_append(to, "\n## Exit statuses\n");
    markdown_paragraphs(to,
                        "`hcasim help` and `hcasim --version` end with status 0, or with 125 if "
                        "their output cannot be written. An unknown command ends with 2.");
    g_string_append(to, "\n| command | status | meaning |\n|---|---|---|\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        for (const struct cli_status *s = command->statuses; s->status; s++) {
            g_string_append_printf(to, "| `%s` |", command->name);
            markdown_cell(to, s->status);
            markdown_cell(to, s->means);
            g_string_append_c(to, '\n');
        }
    }
}

static char *markdown_command_line(void)
{
    GString *to = g_string_new(NULL);
    const struct cli_command *command;

    g_string_append_printf(to, MADE, "command-line");
    g_string_append(to, "# The command line\n");
    markdown_code(to, "hcasim COMMAND [OPTION...] [ARGUMENT...]\nhcasim help [COMMAND]\n"
                      "hcasim --version");
    markdown_paragraphs(
        to, CLI_ABOUT
        "\nIn the source tree, `scripts/hcasim` is this program. `--option=VALUE` is the same as "
        "`--option VALUE`, and `-n4` is the same as `-n 4`. `--` ends the options.");
    g_string_append(to, "\n| command | what it does |\n|---|---|\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        g_autofree char *link =
            g_strdup_printf("[`hcasim %s`](#hcasim-%s)", command->name, command->name);

        markdown_row(to, link, command->summary);
    }
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        markdown_command(to, command);
    }
    markdown_statuses(to);
    return g_string_free(to, FALSE);
}

/* -- settings.md ------------------------------------------------------------------------------- */

static void markdown_setting(GString *to, const struct hv_setting *setting)
{
    const struct cli_option option = {.row = *setting};
    g_autofree char *name = cli_option_name(&option), *variable = hv_variable_of(setting->name);
    g_autofree char *values = hv_setting_values(setting);
    g_autofree char *names = g_strdup_printf(
        "| %s%s%s | `%s` | `--%s%s%s` |", setting->kind == HV_SETTING_KEY_FILE ? "" : "`",
        setting->kind == HV_SETTING_KEY_FILE ? "none" : setting->name,
        setting->kind == HV_SETTING_KEY_FILE ? "" : "`", variable, name,
        setting->metavar ? " " : "", setting->metavar ? setting->metavar : "");

    g_string_append(to, names);
    markdown_cell(to, values);
    markdown_cell(to, setting->usual);
    markdown_cell(to, setting->help);
    g_string_append_c(to, '\n');
}

static char *markdown_settings(void)
{
    GString *to = g_string_new(NULL);
    const struct hv_setting *setting;
    const struct hv_variable *other;

    g_string_append_printf(to, MADE, "settings");
    g_string_append(to, "# Settings\n");
    markdown_paragraphs(
        to, "The settings of a program's devices come from options of `hcasim run` and `hcasim "
            "cluster`, from environment variables, and from the group `[" HV_SETTINGS_GROUP
            "]` of a key file. An option has priority over a variable, and a variable has priority "
            "over the key file. An empty variable or key is the same as none.\n`hcasim` checks all "
            "three before it runs anything. If a value, a key or a group is wrong, it prints one "
            "line and ends with status 2. The verbs library checks the variables and the key file "
            "again when the program lists its devices.\nA key file:");
    markdown_code(to, "[" HV_SETTINGS_GROUP "]\nwire=lab\nmtu=1500\nprofile=cx6dx");
    g_string_append(to, "\n| key | variable | option | value | default | meaning |\n"
                        "|---|---|---|---|---|---|\n");
    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        markdown_setting(to, setting);
    }
    markdown_paragraphs(to, "Each host of `hcasim cluster` has its own value of these settings, so "
                            "`hcasim cluster` refuses them:");
    g_string_append_c(to, '\n');
    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        if (hv_setting_is_of_one_host(setting->name)) {
            g_string_append_printf(to, "- `%s`\n", setting->name);
        }
    }
    g_string_append(to, "\n## Other variables\n\n| variable | meaning |\n|---|---|\n");
    for (unsigned i = 0; (other = hv_variable_at(i)); i++) {
        g_autofree char *name = g_strdup_printf("`%s`", other->name);

        markdown_row(to, name, other->means);
    }
    g_string_append(to, "\n## Unknown variables\n");
    markdown_paragraphs(
        to,
        "If `hcasim run` or `hcasim cluster` finds a variable `" HV_VARIABLE_PREFIX "*` that is "
        "not on this page, a line on standard error names it. If its name differs from a "
        "variable of this page by a slip of typing, such as `HCASIM_LOS`, nothing is run, and "
        "the status is 2. Other names, such as `HCASIM_VERSION`, have no effect, and the "
        "program runs.\nWithout these commands, the verbs library names misspelt variables on "
        "standard error, and the program runs.\nThe scripts and tests of the source tree have "
        "variables of their own, which `scripts/lib/variables.txt` lists.");
    g_string_append(to, "\n## Other key files\n");
    markdown_paragraphs(
        to,
        "The key file of `hcasim sim` has the group `[simulation]`. Its keys are the options of "
        "[`hcasim sim`](command-line.md#hcasim-sim), except `no-shrink` and `report`.\n"
        "The key file of `hcasim conformance --peer` has the group `[peer]` "
        "([conformance.md](../howto/conformance.md#against-a-foreign-device)).\n"
        "One file can have all three groups: each command reads its own.");
    return g_string_free(to, FALSE);
}

/* -- pages ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    char *(*make)(void);
} pages[] = {
    {"command-line", markdown_command_line},
    {"settings", markdown_settings},
    {"faults", cli_markdown_faults},
};

char *cli_markdown(const char *page)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(pages); i++) {
        if (!g_strcmp0(pages[i].name, page)) {
            return pages[i].make();
        }
    }
    return NULL;
}
