/* SPDX-License-Identifier: BSD-2-Clause */
/* The program hcasim: finds the command, parses its options by its table, and runs it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/places.h"
#include "cli/text.h"

static void main_say(const char *fmt, va_list args)
{
    g_autofree char *text = g_strdup_vprintf(fmt, args);

    fprintf(stderr, "hcasim: %s\n", text);
}

void cli_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    main_say(fmt, args);
    va_end(args);
}

int cli_refuse(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    main_say(fmt, args);
    va_end(args);
    return CLI_WRONG_USE;
}

int cli_flush(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        cli_say("standard output: %s", g_strerror(errno));
        return CLI_FAILED;
    }
    return status;
}

/* Prints a text and frees it. The exit status. */
static int main_print(char *text)
{
    int status;

    fputs(text, stdout);
    status = cli_flush(EXIT_SUCCESS);
    g_free(text);
    return status;
}

static int main_no_command(const char *name)
{
    cli_say("there is no command '%s', see hcasim help", name);
    return CLI_WRONG_USE;
}

static int main_help(char **argv)
{
    const struct cli_command *command = argv[0] ? cli_command_find(argv[0]) : NULL;
    const struct cli_topic *topic = argv[0] ? cli_topic_find(argv[0]) : NULL;

    if (topic) {
        return main_print(cli_topic_help(topic));
    }
    return argv[0] && !command ? main_no_command(argv[0])
                               : main_print(cli_help(command, cli_places()->in_tree));
}

/* Whether a page would lack a list that another program has, because that is not built. */
static bool main_lacks_list(const char *what, const char *name)
{
    const struct cli_command *command;

    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        bool is_in = !strcmp(what, "--markdown") ? !g_strcmp0(name, "command-line")
                                                 : !g_strcmp0(name, command->name);
        g_autofree char *list = is_in && command->more ? command->more() : NULL;

        if (is_in && command->more && !list) {
            cli_say(
                "%s is not built or does not run, and without it the page of hcasim %s would not "
                "be whole: run ninja in the build folder",
                cli_places()->sim, command->name);
            return true;
        }
    }
    return false;
}

/* For the build: prints a text that is made from the tables. Users do not need it, so help does not
 * show it. */
static int main_make(const char *what, const char *name)
{
    bool is_whole = !main_lacks_list(what, name);
    char *page = !strcmp(what, "--markdown") ? cli_markdown(name) : NULL;
    const struct cli_command *command = name ? cli_command_find(name) : NULL;
    char *topic = name && !command && !page ? cli_man_topic(name) : NULL;

    if (!is_whole) {
        g_free(page);
        g_free(topic);
        return CLI_FAILED;
    }
    if (page || topic) {
        return main_print(page ? page : topic);
    }
    if ((name && !command) || !strcmp(what, "--markdown")) {
        return main_no_command(name ? name : what);
    }
    return main_print(!strcmp(what, "--man") ? cli_man(command) : cli_completion());
}

/* --build DIR: executes the hcasim of that build. If that is this program, it returns, so there is
 * no endless loop. */
static void main_use_build(const struct cli_line *line, char **argv)
{
    const char *build = cli_line_get(line, "build");
    g_autofree char *program = build ? g_build_filename(build, "cli", "hcasim", NULL) : NULL;
    char *real = program ? realpath(program, NULL) : NULL;

    if (real && strcmp(real, cli_places()->program) != 0) {
        execv(real, argv);
        cli_say("%s: %s", real, g_strerror(errno));
        exit(CLI_FAILED);
    } else if (build && !real) {
        cli_say("%s is not built: run ninja -C %s cli/hcasim", program, build);
        exit(CLI_FAILED);
    }
    free(real);
}

static int main_command(const struct cli_command *command, char **argv)
{
    bool in_tree = cli_places()->in_tree;
    struct cli_line line = {.options = cli_command_options(command, in_tree)};
    g_auto(GStrv) copy = g_strdupv(argv);
    g_autofree char **words = g_memdup2(argv, (g_strv_length(argv) + 1) * sizeof(*argv));
    g_autoptr(GError) err = NULL;
    int status;

    if (!cli_line_parse(&line, words + 1, command->runs_program, &err)) {
        const char *see = err->domain == G_OPTION_ERROR &&
                                  !g_error_matches(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE)
                              ? ", see hcasim help "
                              : NULL;

        cli_say("%s%s%s", err->message, see ? see : "", see ? command->name : "");
        status = CLI_WRONG_USE;
    } else if (line.wants_help) {
        status = main_print(cli_help(command, in_tree));
    } else {
        main_use_build(&line, copy);
        status = command->run(&line);
    }
    cli_line_clear(&line);
    return status;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct cli_command *command = cli_command_find(name);

    if (command) {
        return main_command(command, argv);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        return main_print(g_strdup("hcasim " HCASIM_VERSION "\n"));
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
        return main_help(argv + 2);
    }
    if (!strcmp(name, "--man") || !strcmp(name, "--completion") || !strcmp(name, "--markdown")) {
        return main_make(name, argv[2]);
    }
    if (!*name) {
        cli_say("there is no command, see hcasim help");
        return CLI_WRONG_USE;
    }
    return main_no_command(name);
}
