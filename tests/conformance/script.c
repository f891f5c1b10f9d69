/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements script.h: turns lines into cases. */
#include "tests/conformance/script.h"
#include <stdbool.h>
#include <string.h>

static void script_line_free(void *opaque)
{
    struct script_line *line = opaque;

    g_free(line->text);
    g_free(line);
}

static void script_case_free(void *opaque)
{
    struct script_case *c = opaque;

    g_free(c->file);
    g_free(c->title);
    g_ptr_array_unref(c->rules);
    g_ptr_array_unref(c->steps);
    g_free(c);
}

static struct script_case *script_case_new(const char *file, unsigned line, const char *title)
{
    struct script_case *c = g_new(struct script_case, 1);

    *c = (struct script_case){
        .file = g_strdup(file),
        .line = line,
        .title = g_strdup(title),
        .rules = g_ptr_array_new_with_free_func(g_free),
        .steps = g_ptr_array_new_with_free_func(script_line_free),
    };
    return c;
}

/* Returns what follows a word in a line; NULL: the line begins with another word. */
static const char *script_after(const char *text, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(text, word, len) || (text[len] && !g_ascii_isspace(text[len]))) {
        return NULL;
    }
    text += len;
    while (g_ascii_isspace(*text)) {
        text++;
    }
    return text;
}

/* Returns false if the line may not be there; *why is the reason. */
static bool script_take_line(GPtrArray *cases, const char *file, unsigned number, const char *text,
                             const char **why)
{
    struct script_case *c = cases->len ? g_ptr_array_index(cases, cases->len - 1) : NULL;
    const char *rest;

    if ((rest = script_after(text, "case"))) {
        *why = "a case has no title";
        if (c && !(c->rules->len && c->steps->len)) {
            *why = "the case before has no rule, or no step";
            return false;
        }
        g_ptr_array_add(cases, script_case_new(file, number, rest));
        return *rest;
    }
    *why = "there is no case yet";
    if (!c) {
        return false;
    }
    if ((rest = script_after(text, "rule"))) {
        *why = "a rule is empty, or follows a step";
        g_ptr_array_add(c->rules, g_strdup(rest));
        return *rest && !c->steps->len;
    }
    struct script_line *line = g_new(struct script_line, 1);

    *line = (struct script_line){number, g_strdup(text)};
    g_ptr_array_add(c->steps, line);
    *why = "a step comes before the case's rules";
    return c->rules->len;
}

GPtrArray *script_read(const char *path, GError **err)
{
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func(script_case_free);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    const char *why = NULL;
    unsigned number = 0;
    bool good = true;

    if (!g_file_get_contents(path, &text, NULL, err)) {
        return NULL;
    }
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line && good; line++) {
        char *comment = strchr(*line, '#');

        number++;
        if (comment) {
            *comment = 0;
        }
        if (*g_strstrip(*line)) {
            good = script_take_line(cases, path, number, *line, &why);
        }
    }
    if (good) {
        const struct script_case *last =
            cases->len ? g_ptr_array_index(cases, cases->len - 1) : NULL;

        why = "the last case has no step, or there is none at all";
        good = last && last->steps->len;
    }
    if (!good) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s:%u: %s", path, number, why);
        return NULL;
    }
    return g_steal_pointer(&cases);
}
