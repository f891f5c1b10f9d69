/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives a command to a process through its control socket, and prints the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"
#include "cli/ctl_text.h"
#include "wire/control/client.h"

/* The exit status if the process refuses the command, or cannot be reached. */
#define CTL_REFUSED 1

/* -- arguments --------------------------------------------------------------------------------- */

/* The row of query-commands about a command, or about an argument. */
static const json_t *ctl_find(const json_t *list, const char *name)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (!g_strcmp0(json_string_value(json_object_get(row, "name")), name)) {
            return row;
        }
    }
    return NULL;
}

/* Reads text as a value of an argument's type. What is no value of the type stays a string, and the
 * process says what it must be. */
static json_t *ctl_value(const char *type, const char *text)
{
    json_t *value = NULL;

    if (g_strcmp0(type, "string") != 0) {
        g_autoptr(GError) err = NULL;

        value = control_parse(text, strlen(text), &err);
    }
    return value ? value : json_string(text);
}

/* Reads the words NAME=VALUE. NULL: *err. */
static json_t *ctl_arguments(const json_t *command, char **words, GError **err)
{
    const json_t *rows = json_object_get(command, "arguments");
    json_auto_t *arguments = json_object();

    for (; *words; words++) {
        const char *equals = strchr(*words, '=');
        g_autofree char *name = equals ? g_strndup(*words, (gsize)(equals - *words)) : NULL;
        const json_t *row = name ? ctl_find(rows, name) : NULL;
        const char *type = json_string_value(json_object_get(row, "type"));
        json_t *value;

        if (!name || !*name) {
            g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS,
                        "an argument must be NAME=VALUE, but it is '%s'", *words);
            return NULL;
        }
        value = ctl_value(row ? type : "string", equals + 1);
        if (json_object_get(arguments, name) || json_object_set_new(arguments, name, value)) {
            g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS,
                        "the argument %s is given twice, or is not UTF-8", name);
            return NULL;
        }
    }
    return json_incref(arguments);
}

/* -- output ------------------------------------------------------------------------------------ */

/* "add a=INT [b=INT]", and what it does in the next line. */
static void ctl_add_command(GString *to, const json_t *command)
{
    const char *name = json_string_value(json_object_get(command, "name"));
    const char *help = json_string_value(json_object_get(command, "help"));
    const json_t *arg;
    size_t i;

    g_string_append(to, name ? name : "?");
    json_array_foreach(json_object_get(command, "arguments"), i, arg)
    {
        const char *type = json_string_value(json_object_get(arg, "type"));
        g_autofree char *upper = g_ascii_strup(type ? type : "any", -1);
        bool required = json_is_true(json_object_get(arg, "required"));
        const char *arg_name = json_string_value(json_object_get(arg, "name"));

        g_string_append_printf(to, required ? " %s=%s" : " [%s=%s]", arg_name ? arg_name : "?",
                               upper);
    }
    g_string_append_printf(to, "\n    %s\n", help ? help : "");
    json_array_foreach(json_object_get(command, "arguments"), i, arg)
    {
        const char *arg_name = json_string_value(json_object_get(arg, "name"));
        const char *about = json_string_value(json_object_get(arg, "help"));

        if (arg_name && about && *about) {
            g_string_append_printf(to, "    %s: %s\n", arg_name, about);
        }
    }
}

static void ctl_print_commands(const json_t *commands)
{
    GString *text = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;
    const json_t *command;
    size_t i;

    json_array_foreach(commands, i, command)
    {
        ctl_add_command(text, command);
    }
    lines = g_strsplit(text->str, "\n", -1);
    for (char **line = lines; *line && line[1]; line++) {
        g_autofree char *plain = ctl_plain(*line);

        puts(plain);
    }
    g_string_free(text, TRUE);
}

static void ctl_print(const json_t *value, bool as_json)
{
    if (as_json) {
        char *json = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

        puts(json ? json : "null");
        free(json);
    } else {
        GString *text = g_string_new(NULL);

        ctl_text(text, value, 0);
        fputs(text->str, stdout);
        g_string_free(text, TRUE);
    }
}

/* -- the command ------------------------------------------------------------------------------- */

/* Gives one command. The exit status, or -1 with *err. */
static int ctl_give(struct control_client *client, const char *name, char **words, bool as_json,
                    GError **err)
{
    json_auto_t *commands = control_call(client, "query-commands", NULL, err);
    json_auto_t *arguments = NULL, *result = NULL;

    if (!commands) {
        return -1;
    }
    if (!name) {
        if (as_json) {
            ctl_print(commands, true);
        } else {
            ctl_print_commands(commands);
        }
        return EXIT_SUCCESS;
    }
    arguments = ctl_arguments(ctl_find(commands, name), words, err);
    result = arguments ? control_call(client, name, arguments, err) : NULL;
    if (!result) {
        return -1;
    }
    ctl_print(result, as_json);
    return EXIT_SUCCESS;
}

int cli_ctl(const struct cli_line *line)
{
    const char *path = line->rest[0], *name = path ? line->rest[1] : NULL;
    struct control_client *client;
    g_autoptr(GError) err = NULL;
    int status = -1;

    if (!path) {
        return cli_refuse("ctl needs the path of a control socket, see hcasim help ctl");
    }
    client = control_connect(path, CONTROL_TIMEOUT_MS, &err);
    if (client) {
        status = ctl_give(client, name, name ? line->rest + 2 : NULL,
                          cli_line_get(line, "json") != NULL, &err);
        control_disconnect(client);
    }
    if (status < 0) {
        g_autofree char *plain = ctl_plain(err->message);

        cli_say("%s", plain);
        return CTL_REFUSED;
    }
    return cli_flush(status);
}
