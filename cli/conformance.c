/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays conformance scripts: with the device of this build, or with a foreign device. */
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/places.h"

static gint conformance_compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends all scripts, in order of their names. */
static bool conformance_add_scripts(GPtrArray *words)
{
    const char *folder = cli_places()->scripts;
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_autoptr(GError) err = NULL;
    GDir *dir = g_dir_open(folder, 0, &err);
    const char *name;

    if (!dir) {
        cli_say("%s", err->message);
        return false;
    }
    while ((name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".txt")) {
            g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
        }
    }
    g_dir_close(dir);
    g_ptr_array_sort(paths, conformance_compare);
    for (unsigned i = 0; i < paths->len; i++) {
        g_ptr_array_add(words, g_ptr_array_index(paths, i));
    }
    return true;
}

static void conformance_add_option(GPtrArray *words, const struct cli_line *line, const char *name)
{
    if (cli_line_get(line, name)) {
        g_ptr_array_add(words, g_strdup_printf("--%s=%s", name, cli_line_get(line, name)));
    }
}

int cli_conformance(const struct cli_line *line)
{
    const struct cli_places *places = cli_places();
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    bool lists = cli_line_get(line, "list"), in_guest = cli_line_get(line, "soft_roce");

    if (in_guest && cli_line_get(line, "peer")) {
        return cli_refuse("--peer and --soft-roce exclude each other");
    }
    if (access(places->conformance, X_OK)) {
        cli_say("%s is not built: run ninja in the build folder", places->conformance);
        return CLI_FAILED;
    }
    if (in_guest && !lists) {
        g_ptr_array_add(words, g_build_filename(places->source, "tests", "vm", "soft-roce", NULL));
        g_ptr_array_add(words, g_strdup_printf("--build=%s", places->build));
    } else {
        g_ptr_array_add(words, g_strdup(places->conformance));
    }
    if (lists) {
        g_ptr_array_add(words, g_strdup("--list"));
    }
    conformance_add_option(words, line, "only");
    conformance_add_option(words, line, "report");
    conformance_add_option(words, line, "peer");
    for (char **word = line->rest; *word; word++) {
        g_ptr_array_add(words, g_strdup(*word));
    }
    if (!*line->rest && !conformance_add_scripts(words)) {
        return CLI_FAILED;
    }
    g_ptr_array_add(words, NULL);
    return cli_exec((char **)words->pdata);
}
