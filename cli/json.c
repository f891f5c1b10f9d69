/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes one JSON object. Bytes that are not ASCII stay as they are: paths and arguments of a user
 * need not be UTF-8, and Python's argv brings each byte of them back. jansson takes UTF-8 alone. */
#include "cli/json.h"

static void json_string(GString *json, const char *text)
{
    g_string_append_c(json, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\') {
            g_string_append_printf(json, "\\u%04x", (unsigned char)*text);
        } else {
            g_string_append_c(json, *text);
        }
    }
    g_string_append_c(json, '"');
}

static void json_name(GString *json, const char *name)
{
    g_string_append_printf(json, "%s\"%s\": ", json->len > 1 ? ", " : "", name);
}

GString *cli_json_new(void)
{
    return g_string_new("{");
}

void cli_json_text(GString *json, const char *name, const char *text)
{
    json_name(json, name);
    json_string(json, text);
}

void cli_json_number(GString *json, const char *name, guint64 number)
{
    json_name(json, name);
    g_string_append_printf(json, "%" G_GUINT64_FORMAT, number);
}

void cli_json_bool(GString *json, const char *name, gboolean value)
{
    cli_json_value(json, name, value ? "true" : "false");
}

void cli_json_value(GString *json, const char *name, const char *value)
{
    json_name(json, name);
    g_string_append(json, value);
}

char *cli_json_list(const GPtrArray *values)
{
    GString *list = g_string_new("[");

    for (unsigned i = 0; i < values->len; i++) {
        g_string_append_printf(list, "%s%s", i ? ", " : "", (char *)values->pdata[i]);
    }
    g_string_append_c(list, ']');
    return g_string_free(list, FALSE);
}

void cli_json_texts(GString *json, const char *name, const GPtrArray *texts)
{
    json_name(json, name);
    g_string_append_c(json, '[');
    for (unsigned i = 0; texts && i < texts->len; i++) {
        g_string_append(json, i ? ", " : "");
        json_string(json, g_ptr_array_index(texts, i));
    }
    g_string_append_c(json, ']');
}

char *cli_json_end(GString *json)
{
    g_string_append_c(json, '}');
    return g_string_free(json, FALSE);
}
