/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements json.h, by jansson. */
#include "wire/control/json.h"

#include <stdlib.h>

G_DEFINE_QUARK(hcasim - control - error, control_error)

static const char *const classes[] = {
    [CONTROL_ERROR_GENERIC] = "GenericError",    [CONTROL_ERROR_SYNTAX] = "SyntaxError",
    [CONTROL_ERROR_COMMAND] = "CommandNotFound", [CONTROL_ERROR_ARGUMENTS] = "InvalidArguments",
    [CONTROL_ERROR_NOT_FOUND] = "NotFound",      [CONTROL_ERROR_BUSY] = "Busy",
    [CONTROL_ERROR_TOO_LONG] = "TooLong",
};

const char *control_error_class(const GError *err)
{
    bool is_own =
        err->domain == CONTROL_ERROR && err->code >= 0 && err->code < (int)G_N_ELEMENTS(classes);

    return classes[is_own ? err->code : CONTROL_ERROR_GENERIC];
}

enum control_error control_error_code(const char *class_name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(classes); i++) {
        if (!g_strcmp0(classes[i], class_name)) {
            return (enum control_error)i;
        }
    }
    return CONTROL_ERROR_GENERIC;
}

/* jansson calls itself for each level, and allows 2,048 of them. */
static bool control_is_too_deep(const char *line, size_t len)
{
    bool is_text = false;
    unsigned depth = 0;

    for (size_t i = 0; i < len; i++) {
        if (is_text && line[i] == '\\') {
            i++;
        } else if (line[i] == '"') {
            is_text = !is_text;
        } else if (!is_text && (line[i] == '{' || line[i] == '[')) {
            depth++;
        } else if (!is_text && (line[i] == '}' || line[i] == ']') && depth) {
            depth--;
        }
        if (depth > CONTROL_DEPTH_MAX) {
            return true;
        }
    }
    return false;
}

json_t *control_parse(const char *line, size_t len, GError **err)
{
    json_error_t what;
    json_t *value;

    if (control_is_too_deep(line, len)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_SYNTAX,
                    "the JSON has more than %d objects and lists within each other",
                    CONTROL_DEPTH_MAX);
        return NULL;
    }
    value = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &what);
    if (!value) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_SYNTAX, "the line is not JSON: %s",
                    what.text);
    }
    return value;
}

GString *control_line(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    GString *line = text ? g_string_new(text) : NULL;

    free(text);
    return line ? g_string_append_c(line, '\n') : NULL;
}
