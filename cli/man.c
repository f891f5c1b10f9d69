/* SPDX-License-Identifier: BSD-2-Clause */
/* Man pages: the source that groff and mandoc read. */
#include <string.h>
#include "cli/text.h"

/* Appends text in which nothing is a command of roff: a dash stays a dash, a full stop or a quote
 * at the beginning of a line is text. */
static void man_text(GString *to, const char *text)
{
    bool begins = true;

    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) {
            g_string_append(to, "\\&");
        }
        begins = *text == '\n';
        if (*text == '\\') {
            g_string_append(to, "\\e");
        } else if (*text == '-') {
            g_string_append(to, "\\-");
        } else if (*text == '\'') {
            g_string_append(to, "\\(aq");
        } else {
            g_string_append_c(to, *text);
        }
    }
}

static void man_line(GString *to, const char *text)
{
    man_text(to, text);
    g_string_append_c(to, '\n');
}

static void man_paragraphs(GString *to, const char *text)
{
    g_auto(GStrv) paragraphs = g_strsplit(text, "\n", -1);

    for (unsigned i = 0; paragraphs[i]; i++) {
        g_string_append(to, i ? ".PP\n" : "");
        man_line(to, paragraphs[i]);
    }
}

static void man_bold(GString *to, const char *text)
{
    g_string_append(to, "\\fB");
    man_text(to, text);
    g_string_append(to, "\\fR");
}

static void man_italic(GString *to, const char *text)
{
    g_string_append(to, "\\fI");
    man_text(to, text);
    g_string_append(to, "\\fR");
}

static void man_item(GString *to, const char *term, const char *text)
{
    g_string_append(to, ".TP\n");
    man_bold(to, term);
    g_string_append_c(to, '\n');
    man_line(to, text);
}

static void man_option(GString *to, const struct cli_option *option)
{
    g_autofree char *name = cli_option_name(option), *note = cli_option_note(option);
    g_autofree char *dashed = g_strconcat("--", name, NULL);
    g_autofree char *text = g_strconcat(option->row.help, note, NULL);

    g_string_append(to, ".TP\n");
    if (option->letter) {
        g_string_append_printf(to, "\\fB\\-%c\\fR, ", option->letter);
    }
    man_bold(to, dashed);
    if (option->row.metavar) {
        g_string_append_c(to, ' ');
        man_italic(to, option->row.metavar);
    }
    g_string_append_c(to, '\n');
    man_line(to, text);
}

static void man_see_also(GString *to, const struct cli_command *but)
{
    const struct cli_command *command;
    const char *comma = "";

    g_string_append(to, ".SH SEE ALSO\n");
    if (but) {
        g_string_append(to, "\\fBhcasim\\fR(1)");
        comma = ",\n";
    }
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        if (command != but) {
            g_string_append_printf(to, "%s\\fBhcasim\\-%s\\fR(1)", comma, command->name);
            comma = ",\n";
        }
    }
    g_string_append_c(to, '\n');
}

static void man_of_all(GString *to)
{
    const struct cli_command *command;

    g_string_append(to, ".TH HCASIM 1 \"\" \"hcasim " HCASIM_VERSION "\" \"hcasim\"\n.SH NAME\n"
                        "hcasim \\- ");
    man_line(to, CLI_SUMMARY);
    g_string_append(to, ".SH SYNOPSIS\n\\fBhcasim\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] "
                        "[\\fIARGUMENT\\fR...]\n.br\n\\fBhcasim help\\fR [\\fICOMMAND\\fR]\n.br\n"
                        "\\fBhcasim \\-\\-version\\fR\n.SH DESCRIPTION\n");
    man_paragraphs(to, CLI_ABOUT);
    g_string_append(to, ".SH COMMANDS\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        man_item(to, command->name, command->summary);
    }
    man_see_also(to, NULL);
}

static void man_of_command(GString *to, const struct cli_command *command)
{
    g_autoptr(GPtrArray) options = cli_command_options(command, false);
    g_autofree char *upper = g_ascii_strup(command->name, -1);
    g_autofree char *more = command->more ? command->more() : NULL;

    g_string_append_printf(to,
                           ".TH HCASIM\\-%s 1 \"\" \"hcasim " HCASIM_VERSION "\" \"hcasim\"\n"
                           ".SH NAME\nhcasim\\-%s \\- ",
                           upper, command->name);
    man_line(to, command->summary);
    g_string_append_printf(to, ".SH SYNOPSIS\n\\fBhcasim %s\\fR [\\fIOPTION\\fR...] ",
                           command->name);
    man_line(to, command->arguments);
    g_string_append(to, ".SH DESCRIPTION\n");
    man_paragraphs(to, command->about);
    g_string_append(to, ".SH OPTIONS\n");
    for (unsigned i = 0; i < options->len; i++) {
        man_option(to, g_ptr_array_index(options, i));
    }
    man_item(to, "-h, --help", "Prints the help.");
    if (more) {
        g_string_append(to, ".SH NOTES\n.nf\n");
        man_text(to, more);
        g_string_append(to, ".fi\n");
    }
    g_string_append(to, ".SH EXIT STATUS\n");
    for (const struct cli_status *s = command->statuses; s->status; s++) {
        man_item(to, s->status, s->means);
    }
    g_string_append(to, ".SH EXAMPLES\n");
    for (const char *const *pair = command->examples; *pair; pair += 2) {
        man_item(to, pair[0], pair[1]);
    }
    man_see_also(to, command);
}

char *cli_man(const struct cli_command *command)
{
    GString *to = g_string_new(".\\\" SPDX-License-Identifier: BSD-2-Clause\n"
                               ".\\\" Made by hcasim itself from the tables of its options.\n");

    if (command) {
        man_of_command(to, command);
    } else {
        man_of_all(to);
    }
    return g_string_free(to, FALSE);
}
