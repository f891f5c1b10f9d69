/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements ctl_text.h. */
#include "cli/ctl_text.h"

#include <stdbool.h>
#include <stdlib.h>

#define GAP 2 /* blanks between columns */

char *ctl_plain(const char *text)
{
    GString *plain = g_string_new(NULL);

    for (const char *at = text; *at; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        g_string_append_unichar(plain, g_unichar_isprint(c) ? c : '?');
    }
    return g_string_free(plain, FALSE);
}

static bool ctl_is_nested(const json_t *value)
{
    return json_is_object(value) ||
           (json_is_array(value) && json_array_size(value) > 0 &&
            !json_is_string(json_array_get(value, 0)) && !json_is_number(json_array_get(value, 0)));
}

/* A value in a line or in a cell. The caller frees it. */
static char *ctl_word(const json_t *value)
{
    g_autofree char *text = NULL;
    char *json;

    if (!value || json_is_null(value)) {
        return g_strdup("-");
    }
    if (json_is_string(value)) {
        return ctl_plain(json_string_value(value));
    }
    if (json_is_array(value) && !ctl_is_nested(value)) {
        GString *words = g_string_new(json_array_size(value) ? NULL : "-");
        const json_t *item;
        size_t i;

        json_array_foreach(value, i, item)
        {
            g_autofree char *word = ctl_word(item);

            g_string_append_printf(words, "%s%s", i ? ", " : "", word);
        }
        return g_string_free(words, FALSE);
    }
    json = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    text = g_strdup(json ? json : "-");
    free(json);
    return ctl_plain(text);
}

static glong ctl_width(const char *text)
{
    return g_utf8_strlen(text, -1);
}

static void ctl_pad(GString *to, glong blanks)
{
    for (glong i = 0; i < blanks; i++) {
        g_string_append_c(to, ' ');
    }
}

/* -- tables ------------------------------------------------------------------------------------ */

struct ctl_column {
    const char *name;
    glong width;
    bool is_number; /* in each row: stands at the right */
};

static struct ctl_column *ctl_find_column(GArray *columns, const char *name)
{
    for (unsigned i = 0; i < columns->len; i++) {
        struct ctl_column *column = &g_array_index(columns, struct ctl_column, i);

        if (!g_strcmp0(column->name, name)) {
            return column;
        }
    }
    return NULL;
}

/* The members of all rows, in the order in which they appear. */
static GArray *ctl_columns(const json_t *rows)
{
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(struct ctl_column));
    json_t *row, *value;
    const char *name;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_object_foreach(row, name, value)
        {
            g_autofree char *word = ctl_word(value);
            struct ctl_column *column = ctl_find_column(columns, name);

            if (!column) {
                struct ctl_column made = {name, ctl_width(name), true};

                g_array_append_val(columns, made);
                column = &g_array_index(columns, struct ctl_column, columns->len - 1);
            }
            column->width = MAX(column->width, ctl_width(word));
            column->is_number &= json_is_number(value);
        }
    }
    return columns;
}

static void ctl_cell(GString *to, const struct ctl_column *column, const char *word, bool is_last)
{
    g_autofree char *plain = ctl_plain(word);
    glong blanks = column->width - ctl_width(plain);

    ctl_pad(to, column->is_number ? blanks : 0);
    g_string_append(to, plain);
    ctl_pad(to, is_last ? 0 : (column->is_number ? 0 : blanks) + GAP);
}

static void ctl_table(GString *to, const json_t *rows, unsigned indent)
{
    g_autoptr(GArray) columns = ctl_columns(rows);
    const json_t *row;
    size_t i;

    ctl_pad(to, indent);
    for (unsigned c = 0; c < columns->len; c++) {
        const struct ctl_column *column = &g_array_index(columns, struct ctl_column, c);

        ctl_cell(to, column, column->name, c == columns->len - 1);
    }
    g_string_append_c(to, '\n');
    json_array_foreach(rows, i, row)
    {
        ctl_pad(to, indent);
        for (unsigned c = 0; c < columns->len; c++) {
            const struct ctl_column *column = &g_array_index(columns, struct ctl_column, c);
            g_autofree char *word = ctl_word(json_object_get(row, column->name));

            ctl_cell(to, column, word, c == columns->len - 1);
        }
        g_string_append_c(to, '\n');
    }
}

static bool ctl_is_table(const json_t *value)
{
    const json_t *row;
    size_t i;

    json_array_foreach(value, i, row)
    {
        if (!json_is_object(row) || !json_object_size(row)) {
            return false;
        }
    }
    return json_array_size(value) > 0;
}

/* -- other values ------------------------------------------------------------------------------ */

static void ctl_members(GString *to, const json_t *object, unsigned indent)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
    {
        g_autofree char *plain = ctl_plain(name);

        ctl_pad(to, indent);
        if (ctl_is_nested(value)) {
            g_string_append_printf(to, "%s:\n", plain);
            ctl_text(to, value, indent + GAP);
        } else {
            g_autofree char *word = ctl_word(value);

            g_string_append_printf(to, "%s: %s\n", plain, word);
        }
    }
}

void ctl_text(GString *to, const json_t *value, unsigned indent)
{
    const json_t *item;
    size_t i;

    if (json_is_object(value)) {
        ctl_members(to, value, indent);
    } else if (json_is_array(value) && ctl_is_table(value)) {
        ctl_table(to, value, indent);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, item)
        {
            ctl_text(to, item, indent);
        }
    } else {
        g_autofree char *word = ctl_word(value);

        ctl_pad(to, indent);
        g_string_append_printf(to, "%s\n", word);
    }
}
