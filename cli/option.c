/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes glib's option entries from the rows, and checks each value as it comes. */
#include "cli/option.h"
#include <string.h>

static void option_free(gpointer option)
{
    g_free(option);
}

GPtrArray *cli_options_new(void)
{
    return g_ptr_array_new_with_free_func(option_free);
}

void cli_option_add(GPtrArray *options, const struct cli_option *option)
{
    g_ptr_array_add(options, g_memdup2(option, sizeof(*option)));
}

void cli_option_add_setting(GPtrArray *options, const struct hv_setting *setting)
{
    struct cli_option option = {.row = *setting};

    cli_option_add(options, &option);
}

char *cli_option_name(const struct cli_option *option)
{
    return g_strdelimit(g_strdup(option->row.name), "_", '-');
}

static const struct cli_option *option_find(const GPtrArray *options, const char *said)
{
    for (unsigned i = 0; i < options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(options, i);
        g_autofree char *name = cli_option_name(option);

        if (g_str_has_prefix(said, "--") ? !strcmp(said + 2, name) : said[1] == option->letter) {
            return option;
        }
    }
    g_assert_not_reached();
}

static gboolean option_take(const char *said, const char *text, gpointer data, GError **err)
{
    struct cli_line *line = data;
    const struct cli_option *option;

    if (!strcmp(said, "--help") || !strcmp(said, "-h")) {
        line->wants_help = true;
        return TRUE;
    }
    option = option_find(line->options, said);
    if (option->row.kind == HV_SETTING_FLAG) {
        text = "1";
    } else if (!(option->check ? option->check(option, text, err)
                               : hv_setting_check(&option->row, text, err))) {
        return FALSE;
    }
    g_hash_table_insert(line->values, g_strdup(option->row.name), g_strdup(text));
    return TRUE;
}

/* glib's sentences begin with a capital and may end with a full stop; ours do not. */
static void option_reword(GError *err)
{
    size_t len = strlen(err->message);

    if (err->domain != G_OPTION_ERROR) {
        return;
    }
    err->message[0] = g_ascii_tolower(err->message[0]);
    if (len && err->message[len - 1] == '.') {
        err->message[len - 1] = 0;
    }
}

/* glib ignores the value of a flag: "--memlock=0" would set it. */
static bool option_check_flags(const GPtrArray *options, char **words, bool stops, GError **err)
{
    for (; *words && strcmp(*words, "--") != 0; words++) {
        const char *word = *words;

        if (word[0] != '-' && stops) {
            return true;
        }
        for (unsigned i = 0; word[0] == '-' && i < options->len; i++) {
            const struct cli_option *option = g_ptr_array_index(options, i);
            bool is_flag = option->row.kind == HV_SETTING_FLAG;
            g_autofree char *name = cli_option_name(option);
            const char *rest = g_str_has_prefix(word + 1, "-") && g_str_has_prefix(word + 2, name)
                                   ? word + 2 + strlen(name)
                                   : NULL;

            if (rest && *rest == '=' && is_flag) {
                g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "--%s has no value", name);
                return false;
            }
            if (!is_flag && words[1] &&
                ((rest && !*rest) || (option->letter && word[1] == option->letter && !word[2]))) {
                words++;
                break;
            }
        }
    }
    return true;
}

bool cli_line_parse(struct cli_line *line, char **argv, bool stops, GError **err)
{
    GOptionContext *context = g_option_context_new(NULL);
    GOptionGroup *group = g_option_group_new("", "", "", line, NULL);
    g_autofree GOptionEntry *entries = g_new0(GOptionEntry, line->options->len + 2);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    int argc = (int)g_strv_length(argv);
    bool ok;

    line->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (!option_check_flags(line->options, argv + 1, stops, err)) {
        g_option_group_unref(group);
        g_option_context_free(context);
        return false;
    }
    entries[0] = (GOptionEntry){.long_name = "help",
                                .short_name = 'h',
                                .flags = G_OPTION_FLAG_NO_ARG,
                                .arg = G_OPTION_ARG_CALLBACK,
                                .arg_data = (gpointer)option_take};
    for (unsigned i = 0; i < line->options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(line->options, i);
        char *name = cli_option_name(option);

        g_ptr_array_add(names, name);
        entries[i + 1] =
            (GOptionEntry){.long_name = name,
                           .short_name = option->letter,
                           .flags = option->row.kind == HV_SETTING_FLAG ? G_OPTION_FLAG_NO_ARG
                                                                        : G_OPTION_FLAG_FILENAME,
                           .arg = G_OPTION_ARG_CALLBACK,
                           .arg_data = (gpointer)option_take};
    }
    g_option_group_add_entries(group, entries);
    g_option_context_set_main_group(context, group);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_strict_posix(context, stops);
    ok = g_option_context_parse(context, &argc, &argv, err);
    g_option_context_free(context);
    if (!ok) {
        if (err && *err) {
            option_reword(*err);
        }
        return false;
    }
    line->rest = argv + 1;
    if (line->rest[0] && !strcmp(line->rest[0], "--")) {
        line->rest++;
    }
    return true;
}

void cli_line_clear(struct cli_line *line)
{
    g_clear_pointer(&line->options, g_ptr_array_unref);
    g_clear_pointer(&line->values, g_hash_table_unref);
}

const char *cli_line_get(const struct cli_line *line, const char *name)
{
    return g_hash_table_lookup(line->values, name);
}
