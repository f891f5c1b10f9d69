/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements command.h: the checks of requests, and query-commands. */
#include "wire/control/command.h"

#include <inttypes.h>
#include <string.h>

struct control_table {
    const struct control_command *commands;
    void *opaque;
};

struct control_commands {
    GArray *tables; /* of struct control_table */
};

static const struct {
    const char *name;
    const char *must_be;
} types[] = {
    [CONTROL_TEXT] = {"string", "a string"},   [CONTROL_INT] = {"int", "an integer"},
    [CONTROL_NUMBER] = {"number", "a number"}, [CONTROL_BOOL] = {"bool", "true or false"},
    [CONTROL_ANY] = {"any", "anything"},
};

/* -- the tables -------------------------------------------------------------------------------- */

static bool control_query_commands(void *opaque, const json_t *arguments, json_t **result,
                                   GError **err);

static const struct control_command own_commands[] = {
    {.name = "query-commands",
     .help = "lists the commands and their arguments",
     .handler = control_query_commands},
    {.name = NULL},
};

struct control_commands *control_commands_new(void)
{
    struct control_commands *commands = g_new0(struct control_commands, 1);

    commands->tables = g_array_new(FALSE, FALSE, sizeof(struct control_table));
    control_commands_add(commands, own_commands, commands);
    return commands;
}

void control_commands_free(struct control_commands *commands)
{
    g_array_unref(commands->tables);
    g_free(commands);
}

/* The command of this name and, in *opaque, the first argument of its handler; or NULL. */
static const struct control_command *control_find(const struct control_commands *commands,
                                                  const char *name, void **opaque)
{
    for (unsigned i = 0; i < commands->tables->len; i++) {
        const struct control_table *table =
            &g_array_index(commands->tables, struct control_table, i);

        for (const struct control_command *command = table->commands; command->name; command++) {
            if (!strcmp(command->name, name)) {
                *opaque = table->opaque;
                return command;
            }
        }
    }
    return NULL;
}

void control_commands_add(struct control_commands *commands, const struct control_command *table,
                          void *opaque)
{
    struct control_table row = {table, opaque};

    g_array_append_val(commands->tables, row);
}

static json_t *control_describe_args(const struct control_arg *arg)
{
    json_t *list = json_array();

    for (; arg && arg->name; arg++) {
        json_t *row = json_pack("{ss ss sb}", "name", arg->name, "type", types[arg->type].name,
                                "required", arg->required);

        if (arg->least != arg->most) {
            json_object_set_new(row, "least", json_integer(arg->least));
            json_object_set_new(row, "most", json_integer(arg->most));
        }
        json_object_set_new(row, "help", json_string(arg->help ? arg->help : ""));
        json_array_append_new(list, row);
    }
    return list;
}

static bool control_query_commands(void *opaque, const json_t *arguments, json_t **result,
                                   GError **err)
{
    const struct control_commands *commands = opaque;

    *result = json_array();
    for (unsigned i = 0; i < commands->tables->len; i++) {
        const struct control_table *table =
            &g_array_index(commands->tables, struct control_table, i);

        for (const struct control_command *command = table->commands; command->name; command++) {
            json_array_append_new(*result, json_pack("{ss ss so}", "name", command->name, "help",
                                                     command->help, "arguments",
                                                     control_describe_args(command->args)));
        }
    }
    return true;
}

/* -- requests ---------------------------------------------------------------------------------- */

static const struct control_arg *control_find_arg(const struct control_arg *arg, const char *name)
{
    for (; arg && arg->name; arg++) {
        if (!strcmp(arg->name, name)) {
            return arg;
        }
    }
    return NULL;
}

static bool control_has_type(const json_t *value, enum control_type type)
{
    switch (type) {
    case CONTROL_TEXT:
        return json_is_string(value);
    case CONTROL_INT:
        return json_is_integer(value);
    case CONTROL_NUMBER:
        return json_is_number(value);
    case CONTROL_BOOL:
        return json_is_boolean(value);
    case CONTROL_ANY:
        return true;
    }
    return false;
}

static bool control_check_arg(const struct control_command *command, const struct control_arg *arg,
                              const json_t *value, GError **err)
{
    if (!control_has_type(value, arg->type)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS, "the argument %s of %s must be %s",
                    arg->name, command->name, types[arg->type].must_be);
        return false;
    }
    if (arg->least != arg->most &&
        (json_integer_value(value) < arg->least || json_integer_value(value) > arg->most)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS,
                    "the argument %s of %s must be from %" PRIi64 " to %" PRIi64, arg->name,
                    command->name, arg->least, arg->most);
        return false;
    }
    return true;
}

static bool control_check_args(const struct control_command *command, json_t *arguments,
                               GError **err)
{
    const char *name;
    json_t *value;

    json_object_foreach(arguments, name, value)
    {
        const struct control_arg *arg = control_find_arg(command->args, name);

        if (!arg) {
            g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS,
                        "%s has no argument '%.64s', see query-commands", command->name, name);
            return false;
        }
        if (!control_check_arg(command, arg, value, err)) {
            return false;
        }
    }
    for (const struct control_arg *arg = command->args; arg && arg->name; arg++) {
        if (arg->required && !json_object_get(arguments, arg->name)) {
            g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS, "%s needs the argument %s",
                        command->name, arg->name);
            return false;
        }
    }
    return true;
}

/* Whether a value is a request; what it executes is in *name. */
static bool control_check_request(json_t *request, const char **name, GError **err)
{
    static const char *const members[] = {"execute", "arguments", "id", NULL};
    const json_t *execute = json_object_get(request, "execute");
    const json_t *arguments = json_object_get(request, "arguments");
    const char *member;
    json_t *value;

    if (!json_is_string(execute) || (arguments && !json_is_object(arguments))) {
        g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_SYNTAX,
                            "a request is an object {\"execute\": NAME, \"arguments\": {...}, "
                            "\"id\": ...}; arguments and id may be missing");
        return false;
    }
    json_object_foreach(request, member, value)
    {
        if (!g_strv_contains(members, member)) {
            g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_SYNTAX,
                        "a request has no member '%.64s', but execute, arguments and id", member);
            return false;
        }
    }
    *name = json_string_value(execute);
    return true;
}

/* The result of a request; NULL: *err. */
static json_t *control_execute(const struct control_commands *commands, json_t *request,
                               GError **err)
{
    json_auto_t *no_arguments = json_object();
    json_t *arguments = json_object_get(request, "arguments"), *result = NULL;
    const struct control_command *command;
    const char *name;
    void *opaque;

    if (!control_check_request(request, &name, err)) {
        return NULL;
    }
    command = control_find(commands, name, &opaque);
    if (!command) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_COMMAND,
                    "there is no command '%.64s', see query-commands", name);
        return NULL;
    }
    if (!arguments) {
        arguments = no_arguments;
    }
    if (!control_check_args(command, arguments, err)) {
        return NULL;
    }
    if (!command->handler(opaque, arguments, &result, err)) {
        json_decref(result);
        return NULL;
    }
    return result ? result : json_object();
}

static GString *control_say_error(const GError *err, json_t *id)
{
    /* What a message quotes may be cut within a character. */
    g_autofree char *text = g_utf8_make_valid(err->message, -1);
    json_auto_t *answer = json_pack("{s{ss ss} sO*}", "error", "class", control_error_class(err),
                                    "desc", text, "id", id);

    return control_line(answer);
}

GString *control_answer_error(const GError *err)
{
    return control_say_error(err, NULL);
}

GString *control_answer(const struct control_commands *commands, const char *line, size_t len)
{
    g_autoptr(GError) err = NULL;
    json_auto_t *request = control_parse(line, len, &err);
    json_t *result = request ? control_execute(commands, request, &err) : NULL;
    json_t *id = json_object_get(request, "id");
    json_auto_t *answer = result ? json_pack("{so sO*}", "return", result, "id", id) : NULL;
    GString *said = answer ? control_line(answer) : NULL;

    if (said && said->len <= CONTROL_ANSWER_MAX) {
        return said;
    }
    if (!err) {
        g_set_error(&err, CONTROL_ERROR, CONTROL_ERROR_TOO_LONG,
                    "the answer has more than %u bytes: ask for less at a time",
                    CONTROL_ANSWER_MAX);
    }
    if (said) {
        g_string_free(said, TRUE);
    }
    return control_say_error(err, id);
}
