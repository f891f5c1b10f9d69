/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements option.h. Each value is checked when the parser meets it. */
#include "cli/option.h"
#include <string.h>
#include "guest-lib/verbs/kernel/spelling.h"

static void option_free(gpointer option)
{
    g_free(option);
}

static void option_list_free(gpointer list)
{
    g_ptr_array_unref(list);
}

GPtrArray *cli_options_new(void)
{
    return g_ptr_array_new_with_free_func(option_free);
}

void cli_option_add(GPtrArray *options, const struct cli_option *option)
{
    g_ptr_array_add(options, g_memdup2(option, sizeof(*option)));
}

char *cli_option_name(const struct cli_option *option)
{
    return g_strdelimit(g_strdup(option->row.name), "_", '-');
}

/* said: --NAME, or - and a letter. NULL: there is no such option. */
static const struct cli_option *option_find(const GPtrArray *options, const char *said)
{
    for (unsigned i = 0; i < options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(options, i);
        g_autofree char *name = cli_option_name(option);

        if (said[1] == '-' ? !strcmp(said + 2, name)
                           : option->letter && said[1] == option->letter) {
            return option;
        }
    }
    return NULL;
}

static bool option_is_help(const char *said)
{
    return !strcmp(said, "--help") || !strcmp(said, "-h");
}

/* said names no option: *err tells of an option that is similar, too. */
static void option_fail_unknown(const GPtrArray *options, const char *said, GError **err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *guess;

    for (unsigned i = 0; i < options->len; i++) {
        g_ptr_array_add(names, cli_option_name(g_ptr_array_index(options, i)));
    }
    g_ptr_array_add(names, NULL);
    guess = said[1] == '-' ? spelling_guess(said + 2, (const char *const *)names->pdata) : NULL;
    g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "unknown option %s%s%s%s", said,
                guess ? " (did you mean --" : "", guess ? guess : "", guess ? "?)" : "");
}

static void option_append(struct cli_line *line, const char *name, const char *text)
{
    GPtrArray *list = g_hash_table_lookup(line->lists, name);

    if (!list) {
        list = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(line->lists, g_strdup(name), list);
    }
    g_ptr_array_add(list, g_strdup(text));
}

static bool option_keep(struct cli_line *line, const struct cli_option *option, const char *text,
                        GError **err)
{
    if (option->row.kind != HV_SETTING_FLAG &&
        !(option->check ? option->check(option, text, err)
                        : hv_setting_check(&option->row, text, err))) {
        return false;
    }
    if (option->row.kind == HV_SETTING_WIRES && cli_line_get(line, option->row.name)) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--%s is given twice; for a device on each wire, say --%s %s,%s",
                    option->row.name, option->row.name, cli_line_get(line, option->row.name), text);
        return false;
    }
    g_hash_table_insert(line->values, g_strdup(option->row.name), g_strdup(text));
    if (option->repeats) {
        option_append(line, option->row.name, text);
    }
    return true;
}

/* Takes the option that the first word names: --NAME, --NAME=VALUE, -L or -LVALUE. Returns the
 * number of words that it takes with its value; 0 with *err. */
static unsigned option_take(struct cli_line *line, char **words, GError **err)
{
    const char *word = words[0];
    size_t len = word[1] == '-' ? strcspn(word, "=") : 2;
    g_autofree char *said = g_strndup(word, len);
    const char *value = !word[len] ? NULL : word[1] == '-' ? word + len + 1 : word + len;
    const struct cli_option *option = option_find(line->options, said);
    bool takes_value = option && option->row.kind != HV_SETTING_FLAG;
    unsigned taken = takes_value && !value ? 2 : 1;

    if (!option && !option_is_help(said)) {
        option_fail_unknown(line->options, word[1] == '-' ? said : word, err);
        return 0;
    }
    if (value && !takes_value) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s has no value", said);
        return 0;
    }
    value = taken == 2 ? words[1] : value;
    if (takes_value && !value) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s needs a value: %s %s", said,
                    said, option->row.metavar);
        return 0;
    }
    if (!option) {
        line->wants_help = true;
        return taken;
    }
    return option_keep(line, option, takes_value ? value : "1", err) ? taken : 0;
}

bool cli_line_parse(struct cli_line *line, char **argv, bool stops, GError **err)
{
    char **word = argv + 1, **rest = argv + 1;

    line->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    line->lists = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, option_list_free);
    while (*word && strcmp(*word, "--") != 0 && !(stops && **word != '-')) {
        /* A dash alone stands for a file. */
        if (**word == '-' && (*word)[1]) {
            unsigned taken = option_take(line, word, err);

            if (!taken) {
                return false;
            }
            word += taken;
        } else {
            *rest++ = *word++;
        }
    }
    if (*word && !strcmp(*word, "--")) {
        word++;
    }
    while (*word) {
        *rest++ = *word++;
    }
    *rest = NULL;
    line->rest = argv + 1;
    return true;
}

void cli_line_clear(struct cli_line *line)
{
    g_clear_pointer(&line->options, g_ptr_array_unref);
    g_clear_pointer(&line->values, g_hash_table_unref);
    g_clear_pointer(&line->lists, g_hash_table_unref);
}

const char *cli_line_get(const struct cli_line *line, const char *name)
{
    return g_hash_table_lookup(line->values, name);
}

const GPtrArray *cli_line_all(const struct cli_line *line, const char *name)
{
    return g_hash_table_lookup(line->lists, name);
}
