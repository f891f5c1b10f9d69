/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements words.h: a step's words. */
#include "tests/conformance/words.h"
#include <string.h>
#include "guest-lib/verbs/kernel/spelling.h"

#define LONGEST_NS 1e11 /* of a time: a device may have a timer that expires each millisecond */

void words_split(struct words *w, const char *text)
{
    g_auto(GStrv) all = g_strsplit_set(text, " \t", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();

    for (char **word = all; *word; word++) {
        if (**word) {
            g_ptr_array_add(kept, g_strdup(*word));
        }
    }
    g_ptr_array_add(kept, NULL);
    w->word = (char **)g_ptr_array_free(g_steal_pointer(&kept), false);
    g_clear_pointer(&w->known, g_ptr_array_unref);
    w->known = g_ptr_array_new();
}

void words_clear(struct words *w)
{
    for (char **word = w->word; *word; word++) {
        g_free(*word);
    }
    g_free(w->word);
    w->word = NULL;
    g_clear_pointer(&w->known, g_ptr_array_unref);
}

void words_fail(const struct words *w, const char *why, ...)
{
    va_list args;

    va_start(args, why);
    w->fail(w->opaque, false, g_strdup_vprintf(why, args));
}

void words_mistake(const struct words *w, const char *why, ...)
{
    va_list args;

    va_start(args, why);
    w->fail(w->opaque, true, g_strdup_vprintf(why, args));
}

/* A taken word begins with this byte; scripts are text. */
#define TAKEN '\x01'

static bool words_is_taken(const char *word)
{
    return *word == TAKEN;
}

/* The word stays readable behind the mark. */
static const char *words_take(char **word, size_t from)
{
    const char *text = g_intern_string(*word + from);

    **word = TAKEN;
    return text;
}

/* Notes what the step looks for, for the message about a word that it does not know. */
static void words_note(struct words *w, const char *name)
{
    if (!g_ptr_array_find(w->known, name, NULL)) {
        g_ptr_array_add(w->known, (gpointer)name);
    }
}

const char *words_next(struct words *w)
{
    for (char **word = w->word; *word; word++) {
        if (!words_is_taken(*word)) {
            return words_take(word, 0);
        }
    }
    return NULL;
}

const char *words_need(struct words *w, const char *what)
{
    const char *word = words_next(w);

    if (!word) {
        words_mistake(w, "%s is missing", what);
    }
    return word;
}

bool words_flag(struct words *w, const char *flag)
{
    words_note(w, g_intern_string(flag));
    for (char **word = w->word; *word; word++) {
        if (!strcmp(*word, flag)) {
            words_take(word, 0);
            return true;
        }
    }
    return false;
}

const char *words_value(struct words *w, const char *key)
{
    g_autofree char *with_sign = g_strconcat(key, "=", NULL);
    size_t len = strlen(key);

    words_note(w, g_intern_string(with_sign));
    for (char **word = w->word; *word; word++) {
        if (!strncmp(*word, key, len) && (*word)[len] == '=') {
            return words_take(word, len + 1);
        }
    }
    return NULL;
}

const char *words_need_value(struct words *w, const char *key, const char *what)
{
    const char *value = words_value(w, key);

    if (!value) {
        words_mistake(w, "%s= is missing: %s", key, what);
    }
    return value;
}

uint64_t words_number(struct words *w, const char *key, uint64_t usual)
{
    const char *value = words_value(w, key);

    return value ? words_to_number(w, value) : usual;
}

unsigned long words_choice(struct words *w, const char *key, const struct words_name *table,
                           unsigned long usual)
{
    const char *value = words_value(w, key);

    return value ? words_to_choice(w, value, table) : usual;
}

char *words_without(const struct words *w, const char *key)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t len = strlen(key);

    for (char **word = w->word; *word; word++) {
        if (!words_is_taken(*word) && (strncmp(*word, key, len) || (*word)[len] != '=')) {
            g_string_append_printf(text, "%s%s", text->len ? " " : "", *word);
        }
    }
    return g_string_free(g_steal_pointer(&text), false);
}

char *words_suggest(const char *word, const char *const *all, const char *many)
{
    g_autofree char *names = g_strjoinv(" ", (char **)all);
    const char *guess = spelling_guess(word, all);

    return guess ? g_strdup_printf("did you mean %s?", guess)
                 : g_strdup_printf("%s: %s", many, *names ? names : "none");
}

void words_end(const struct words *w)
{
    for (char **word = w->word; *word; word++) {
        g_autofree char *key = NULL, *known = NULL;

        if (words_is_taken(*word)) {
            continue;
        }
        key = g_strndup(*word, strcspn(*word, "=") + (strchr(*word, '=') != NULL));
        g_ptr_array_add(w->known, NULL);
        known = words_suggest(key, (const char *const *)w->known->pdata, "this step knows");
        words_mistake(w, "'%s' is not known here; %s", *word, known);
    }
}

uint64_t words_to_number(const struct words *w, const char *word)
{
    char *end;
    uint64_t value = g_ascii_strtoull(word, &end, 0);

    if (end == word || *end || *word == '-') {
        words_mistake(w, "'%s' is no number", word);
    }
    return value;
}

unsigned long words_to_choice(const struct words *w, const char *word,
                              const struct words_name *table)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (const struct words_name *row = table; row->name; row++) {
        if (!strcmp(row->name, word)) {
            return row->value;
        }
        g_string_append_printf(names, " %s", row->name);
    }
    words_mistake(w, "'%s' is none of:%s", word, names->str);
}

uint64_t words_to_ns(const struct words *w, const char *word)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = g_ascii_strtod(word, &end);

    for (unsigned i = 0; end != word && i < G_N_ELEMENTS(units); i++) {
        if (!strcmp(end, units[i].name) && value >= 0 && value * units[i].ns <= LONGEST_NS) {
            return (uint64_t)(value * units[i].ns + 0.5);
        }
    }
    words_mistake(w, "'%s' is no time, such as 4.2us, 67ms, 2s; 100s is the longest", word);
}

const char *words_name_of(const struct words_name *table, unsigned long value)
{
    for (; table->name; table++) {
        if (table->value == value) {
            return table->name;
        }
    }
    return "?";
}
