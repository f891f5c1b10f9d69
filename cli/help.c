/* SPDX-License-Identifier: BSD-2-Clause */
/* Help as plain text, in lines of 80 columns. */
#include <string.h>
#include "cli/text.h"

#define WIDTH  80
#define COLUMN 24 /* where explanations begin */

void cli_text_wrap(GString *to, const char *text, unsigned width, unsigned indent, unsigned at)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    for (unsigned i = 0; words[i]; i++) {
        unsigned len = (unsigned)strlen(words[i]);

        if (i && at + 1 + len >= width) {
            g_string_append_printf(to, "\n%*s", (int)indent, "");
            at = indent;
        } else if (i) {
            g_string_append_c(to, ' ');
            at++;
        }
        g_string_append(to, words[i]);
        at += len;
    }
    g_string_append_c(to, '\n');
}

static void help_wrap(GString *to, const char *text, unsigned indent, unsigned at)
{
    cli_text_wrap(to, text, WIDTH, indent, at);
}

/* A term, and its explanation beside it or below. */
static void help_item(GString *to, const char *term, const char *text)
{
    unsigned len = (unsigned)strlen(term) + 2;

    g_string_append_printf(to, "  %s", term);
    if (len + 1 >= COLUMN) {
        g_string_append_c(to, '\n');
        len = 0;
    }
    g_string_append_printf(to, "%*s", (int)(COLUMN - len), "");
    help_wrap(to, text, COLUMN, COLUMN);
}

static void help_paragraphs(GString *to, const char *text)
{
    g_auto(GStrv) paragraphs = g_strsplit(text, "\n", -1);

    for (char **paragraph = paragraphs; *paragraph; paragraph++) {
        g_string_append_c(to, '\n');
        help_wrap(to, *paragraph, 0, 0);
    }
}

char *cli_option_note(const struct cli_option *option)
{
    const struct hv_setting *row = &option->row;
    GString *note = g_string_new(NULL);

    if (row->kind == HV_SETTING_NUMBER) {
        g_string_append_printf(note, "%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, row->least,
                               row->most);
    } else if (row->kind == HV_SETTING_CHOICE) {
        g_autofree char *names = g_strjoinv(", ", (char **)row->choices());

        g_string_append(note, names);
    }
    if (row->usual && row->kind != HV_SETTING_FLAG) {
        g_string_append_printf(note, "%sdefault: %s", note->len ? "; " : "", row->usual);
    }
    if (note->len) {
        g_string_prepend(note, " (");
        g_string_append_c(note, ')');
    }
    return g_string_free(note, FALSE);
}

static void help_option(GString *to, const struct cli_option *option)
{
    g_autofree char *name = cli_option_name(option), *note = cli_option_note(option);
    g_autofree char *text = g_strconcat(option->row.help, note, NULL);
    g_autoptr(GString) term = g_string_new(NULL);

    if (option->letter) {
        g_string_append_printf(term, "-%c, ", option->letter);
    }
    g_string_append_printf(term, "--%s", name);
    if (option->row.metavar) {
        g_string_append_printf(term, " %s", option->row.metavar);
    }
    help_item(to, term->str, text);
}

static void help_of_all(GString *to)
{
    const struct cli_command *command;
    const struct cli_topic *topic;

    g_string_append(to, "usage: hcasim COMMAND [OPTION...] [ARGUMENT...]\n"
                        "       hcasim help [COMMAND]\n"
                        "       hcasim --version\n");
    help_paragraphs(to, CLI_ABOUT);
    g_string_append(to, "\nCommands:\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        help_item(to, command->name, command->summary);
    }
    g_string_append(to, "\nSubjects of help:\n");
    for (unsigned i = 0; (topic = cli_topic_at(i)); i++) {
        help_item(to, topic->name, topic->summary);
    }
}

static void help_of_command(GString *to, const struct cli_command *command, bool in_tree)
{
    g_autoptr(GPtrArray) options = cli_command_options(command, in_tree);
    g_autofree char *more = command->more ? command->more() : NULL;

    g_string_append_printf(to, "usage: hcasim %s [OPTION...] %s\n", command->name,
                           command->arguments);
    help_paragraphs(to, command->about);
    g_string_append(to, "\nOptions:\n");
    for (unsigned i = 0; i < options->len; i++) {
        help_option(to, g_ptr_array_index(options, i));
    }
    help_item(to, "-h, --help", "Prints this help.");
    if (more) {
        g_string_append_printf(to, "\n%s", more);
    }
    g_string_append(to, "\nExit status:\n");
    for (const struct cli_status *s = command->statuses; s->status; s++) {
        help_item(to, s->status, s->means);
    }
    g_string_append(to, "\nExamples:\n");
    for (const char *const *pair = command->examples; *pair; pair += 2) {
        g_string_append_printf(to, "  %s\n      ", pair[0]);
        help_wrap(to, pair[1], 6, 6);
    }
}

char *cli_help(const struct cli_command *command, bool in_tree)
{
    GString *to = g_string_new(NULL);

    if (command) {
        help_of_command(to, command, in_tree);
    } else {
        help_of_all(to);
    }
    return g_string_free(to, FALSE);
}

char *cli_topic_help(const struct cli_topic *topic)
{
    GString *to = g_string_new(NULL);
    g_autoptr(GPtrArray) sections = topic->sections();

    g_string_append_printf(to, "%s: %s\n", topic->name, topic->summary);
    for (unsigned i = 0; i < sections->len; i++) {
        const struct cli_section *section = g_ptr_array_index(sections, i);

        g_string_append_printf(to, "\n%s\n", section->title);
        if (section->text) {
            help_paragraphs(to, section->text);
        }
        for (unsigned k = 0; k < section->items->len; k += 2) {
            help_item(to, section->items->pdata[k], section->items->pdata[k + 1]);
        }
    }
    return g_string_free(to, FALSE);
}
