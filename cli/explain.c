/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a page of traces and captures. The Python part (explain/explain.py) reads and joins them;
 * it gets its options checked, as one JSON argument. */
#include "cli/command.h"
#include "cli/json.h"
#include "cli/places.h"

#define PAGE "explain.html"

int cli_explain(const struct cli_line *line)
{
    const char *output = cli_line_get(line, "output"), *perfetto = cli_line_get(line, "perfetto");
    g_autofree char *json = NULL, *script = NULL;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    GString *object;

    if (!line->rest[0]) {
        return cli_refuse("what is to be explained? Name a file of --trace-file or --capture");
    }
    object = cli_json_new();
    cli_json_text(object, "output", output ? output : perfetto ? "" : PAGE);
    cli_json_text(object, "perfetto", perfetto ? perfetto : "");
    json = cli_json_end(object);
    script = g_build_filename(cli_places()->explain, "explain.py", NULL);
    g_ptr_array_add(words, (gpointer) "python3");
    g_ptr_array_add(words, (gpointer) "-B");
    g_ptr_array_add(words, script);
    g_ptr_array_add(words, json);
    for (char **word = line->rest; *word; word++) {
        g_ptr_array_add(words, *word);
    }
    g_ptr_array_add(words, NULL);
    return cli_exec((char **)words->pdata);
}
