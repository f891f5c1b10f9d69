/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives a command to a process through its control socket, and prints the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"
#include "cli/ctl_text.h"
#include "cli/sockets.h"
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

/* Reads text as a value of an argument's type. A text that is no value of the type stays a
 * string, and the process answers with the type that it expects. */
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

struct ctl_request {
    const char *name; /* NULL: the commands are listed */
    char **words;
    bool as_json;
};

/* Gives one command. The answer, or NULL with *err. */
static json_t *ctl_give(struct control_client *client, const struct ctl_request *request,
                        GError **err)
{
    json_auto_t *commands = control_call(client, "query-commands", NULL, err);
    json_auto_t *arguments = NULL;

    if (!commands || !request->name) {
        return json_incref(commands);
    }
    arguments = ctl_arguments(ctl_find(commands, request->name), request->words, err);
    return arguments ? control_call(client, request->name, arguments, err) : NULL;
}

/* *gone: no process listens there any more. */
static json_t *ctl_give_at(const char *path, const struct ctl_request *request, bool *gone,
                           GError **err)
{
    struct control_client *client = control_connect(path, CONTROL_TIMEOUT_MS, err);
    json_t *answer = client ? ctl_give(client, request, err) : NULL;

    *gone = !client && g_error_matches(*err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND);
    if (client) {
        control_disconnect(client);
    }
    return answer;
}

static void ctl_print_one(const json_t *answer, const struct ctl_request *request)
{
    if (request->name || request->as_json) {
        ctl_print(answer, request->as_json);
    } else {
        ctl_print_commands(answer);
    }
}

/* Gives the command to one process after another. Returns the answers by the names of the sockets;
 * processes that have ended have none. */
static json_t *ctl_give_all(const GPtrArray *paths, const struct ctl_request *request, GError **err)
{
    json_auto_t *answers = json_object();

    for (unsigned i = 0; i < paths->len; i++) {
        g_autofree char *name = g_path_get_basename(paths->pdata[i]);
        g_autoptr(GError) why = NULL;
        bool gone;
        json_t *answer = ctl_give_at(paths->pdata[i], request, &gone, &why);

        if (answer) {
            json_object_set_new(answers, name, answer);
        } else if (!gone) {
            g_propagate_prefixed_error(err, g_steal_pointer(&why), "%s: ", name);
            return NULL;
        }
    }
    return json_incref(answers);
}

/* The command for all processes of a folder. False: *err. */
static bool ctl_run_folder(const char *folder, const GPtrArray *paths,
                           const struct ctl_request *request, GError **err)
{
    json_auto_t *answers = ctl_give_all(paths, request, err);

    if (!answers) {
        return false;
    }
    if (!json_object_size(answers)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND,
                    "%s: no process has a control socket in this folder", folder);
        return false;
    }
    if (!request->name && !request->as_json) { /* those of hosts are the same */
        ctl_print_commands(json_object_iter_value(json_object_iter(answers)));
    } else {
        ctl_print(answers, request->as_json);
    }
    return true;
}

static bool ctl_run_socket(const char *path, const struct ctl_request *request, GError **err)
{
    bool gone;
    json_auto_t *answer = ctl_give_at(path, request, &gone, err);

    if (answer) {
        ctl_print_one(answer, request);
    }
    return answer != NULL;
}

int cli_ctl(const struct cli_line *line)
{
    const char *path = line->rest[0];
    struct ctl_request request = {.as_json = cli_line_get(line, "json") != NULL};
    g_autoptr(GPtrArray) paths = NULL;
    g_autoptr(GError) err = NULL;

    if (!path) {
        return cli_refuse("ctl needs the path of a control socket, see hcasim help ctl");
    }
    request.name = line->rest[1];
    request.words = request.name ? line->rest + 2 : NULL;
    paths = sockets_find(path, &err);
    if (paths &&
        (g_file_test(path, G_FILE_TEST_IS_DIR) ? ctl_run_folder(path, paths, &request, &err)
                                               : ctl_run_socket(path, &request, &err))) {
        return cli_flush(EXIT_SUCCESS);
    }
    {
        g_autofree char *plain = ctl_plain(err->message);

        cli_say("%s", plain);
    }
    return CTL_REFUSED;
}
