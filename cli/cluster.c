/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts a program on several hosts of one wire. The Python part (cluster.py) starts and ends the
 * hosts and labels what they print; it gets its options checked, as one JSON argument.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/json.h"
#include "cli/places.h"
#include "guest-lib/verbs/kernel/variables.h"

#define MOST_DEVICES 254 /* hosts that have an address 10.0.0.H of their own */

/* Refuses a variable or a key of the key file that would set for all hosts what each has of its
 * own. 0, or the exit status. */
static int cluster_check_own(const struct cli_line *line)
{
    const char *path = cli_run_said(line, "config");
    g_autoptr(GKeyFile) file = path ? hv_settings_load(path, NULL) : NULL;
    const struct hv_setting *setting;

    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        const char *name = setting->name;

        if (hv_setting_is_of_one_host(name) && cli_run_said(line, name)) {
            g_autofree char *variable = hv_variable_of(name);

            return cli_refuse("%s: each host has its own; unset the variable", variable);
        }
        if (hv_setting_is_of_one_host(name) && file &&
            g_key_file_has_key(file, HV_SETTINGS_GROUP, name, NULL)) {
            return cli_refuse("%s: %s: each host has its own; remove the key", path, name);
        }
    }
    return 0;
}

static char *cluster_json(const struct cli_line *line, unsigned hosts, unsigned devices)
{
    GString *json = cli_json_new();
    g_autofree char *wire = cli_run_setting(line, "wire");
    g_autofree char *capture = cli_run_setting(line, "capture");
    g_autofree char *trace_file = cli_run_setting(line, "trace_file");
    g_autofree char *own = g_strdup_printf("cluster-%d", (int)getpid());

    cli_json_text(json, "hcasim", cli_places()->program);
    cli_json_text(json, "wire", wire && *wire ? wire : own);
    cli_json_text(json, "capture", capture ? capture : "");
    cli_json_text(json, "trace_file", trace_file ? trace_file : "");
    cli_json_number(json, "hosts", hosts);
    cli_json_number(json, "devices", devices);
    cli_json_number(json, "require", cli_line_get(line, "require") != NULL);
    return cli_json_end(json);
}

int cli_cluster(const struct cli_line *line)
{
    g_autofree char *json = NULL;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    unsigned hosts, devices;
    int status;

    if (!cli_line_get(line, "hosts")) {
        return cli_refuse("how many hosts? Say -n N");
    }
    if (!line->rest[0]) {
        return cli_refuse("there is no PROGRAM to run");
    }
    status = cli_run_check(line);
    status = status ? status : cluster_check_own(line);
    status = status ? status : cli_run_count_devices(line, &devices);
    if (status) {
        return status;
    }
    hosts = (unsigned)strtoul(cli_line_get(line, "hosts"), NULL, 10);
    if (hosts * devices > MOST_DEVICES) {
        return cli_refuse("%u hosts with %u devices each are %u devices, but %u is the most", hosts,
                          devices, hosts * devices, MOST_DEVICES);
    }
    cli_run_export(line);
    json = cluster_json(line, hosts, devices);
    g_ptr_array_add(words, (gpointer) "python3");
    g_ptr_array_add(words, (gpointer) "-B");
    g_ptr_array_add(words, cli_places()->cluster);
    g_ptr_array_add(words, json);
    for (char **word = line->rest; *word; word++) {
        g_ptr_array_add(words, *word);
    }
    g_ptr_array_add(words, NULL);
    return cli_exec((char **)words->pdata);
}
