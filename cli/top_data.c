/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements top_data.h. */
#include "cli/top_data.h"

#include <string.h>
#include "cli/sockets.h"
#include "wire/control/client.h"

/* A process with a control socket. */
struct top_process {
    char *path;
    struct control_client *client; /* NULL: it is to be connected again */
    bool is_switch, seen;
    json_t *status; /* query-status of a host */
};

struct top {
    char **paths;
    GHashTable *processes; /* by path */
    GHashTable *rows;      /* struct top_row by "PATH PORT" */
    GPtrArray *shown;
};

/* -- rows -------------------------------------------------------------------------------------- */

static void top_free_row(void *opaque)
{
    struct top_row *row = opaque;

    json_decref(row->now);
    json_decref(row->before);
    g_free(row->socket);
    g_free(row->host);
    g_free(row->device);
    g_free(row->about);
    g_free(row);
}

static const json_t *top_find(const json_t *stats, const char *name)
{
    const json_t *value = json_object_get(json_object_get(stats, "counters"), name);

    return value ? value : json_object_get(json_object_get(stats, "gauges"), name);
}

guint64 top_value(const struct top_row *row, const char *name)
{
    const json_t *value = top_find(row->now, name);

    return json_is_true(value) ? 1 : (guint64)json_integer_value(value);
}

double top_rate(const struct top_row *row, const char *name)
{
    const json_t *now = top_find(row->now, name), *before = top_find(row->before, name);
    double seconds = (double)(row->now_us - row->before_us) / G_USEC_PER_SEC;
    double step = (double)(json_integer_value(now) - json_integer_value(before));

    return now && before && seconds > 0 && !row->silent ? MAX(step, 0) / seconds : -1;
}

static struct top_row *top_row(struct top *top, const char *path, unsigned port)
{
    char *key = g_strdup_printf("%s %u", path, port);
    struct top_row *row = g_hash_table_lookup(top->rows, key);

    if (!row) {
        row = g_new0(struct top_row, 1);
        row->socket = g_path_get_basename(path);
        g_hash_table_insert(top->rows, key, row);
    } else {
        g_free(key);
    }
    g_ptr_array_add(top->shown, row);
    return row;
}

/* Takes the numbers of this look. */
static void top_update(struct top_row *row, json_t *stats)
{
    json_decref(row->before);
    row->before = row->now;
    row->before_us = row->now_us;
    row->now = stats;
    row->now_us = g_get_monotonic_time();
    row->silent = false;
}

/* -- processes --------------------------------------------------------------------------------- */

static void top_disconnect(struct top_process *process)
{
    if (process->client) {
        control_disconnect(process->client);
        process->client = NULL;
    }
}

static void top_free_process(void *opaque)
{
    struct top_process *process = opaque;

    top_disconnect(process);
    json_decref(process->status);
    g_free(process->path);
    g_free(process);
}

/* Connects, and asks what the process is. False: it has gone (*gone), or is silent. */
static bool top_connect(struct top_process *process, bool *gone)
{
    g_autoptr(GError) err = NULL;

    *gone = false;
    if (process->client) {
        return true;
    }
    process->client = control_connect(process->path, TOP_PATIENCE_MS, &err);
    if (!process->client) {
        *gone = g_error_matches(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND);
        return false;
    }
    if (!process->status && !process->is_switch) {
        process->status = control_call(process->client, "query-status", NULL, &err);
        process->is_switch = g_error_matches(err, CONTROL_ERROR, CONTROL_ERROR_COMMAND);
    }
    return process->status || process->is_switch;
}

static const char *top_text(const json_t *of, const char *name)
{
    const char *text = json_string_value(json_object_get(of, name));

    return text ? text : "-";
}

/* A host's IPv4 address if it has one, else its first address. */
static const char *top_address(const json_t *status)
{
    const json_t *list = json_object_get(status, "addresses"), *item;
    const char *found = NULL;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);

        if (text && (!found || (!strchr(text, ':') && strchr(found, ':')))) {
            found = text;
        }
    }
    return found ? found : top_text(status, "mac");
}

static void top_look_at_host(struct top *top, struct top_process *process, bool connected)
{
    struct top_row *row = top_row(top, process->path, 0);
    json_t *stats = connected ? control_call(process->client, "query-stats", NULL, NULL) : NULL;

    if (!row->host) {
        row->host = process->status ? g_strdup(top_address(process->status))
                                    : g_path_get_basename(process->path);
        row->device = g_strdup(top_text(process->status, "device"));
        row->about = g_strdup(top_text(process->status, "program"));
    }
    if (stats) {
        top_update(row, stats);
    } else {
        row->silent = true;
        top_disconnect(process);
    }
}

/* The statistics of a port as those of a host: counters, gauges. */
static json_t *top_stats_of_port(const json_t *port)
{
    static const char *const gauges[] = {"waiting", "queue_most", NULL};
    json_t *stats = json_pack("{s{} s{sb}}", "counters", "gauges", "link_up",
                              json_is_true(json_object_get(port, "link")));
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(port, "statistics"), name, value)
    {
        const char *kind = g_strv_contains(gauges, name) ? "gauges" : "counters";

        json_object_set(json_object_get(stats, kind), strcmp(name, "sent") ? name : "tx_frames",
                        value);
    }
    return stats;
}

static void top_look_at_port(struct top *top, const struct top_process *process, const json_t *port)
{
    unsigned number = (unsigned)json_integer_value(json_object_get(port, "port"));
    struct top_row *row = top_row(top, process->path, number);

    if (!row->host) {
        row->host = g_path_get_basename(process->path);
        row->device = g_strdup_printf("port %u", number);
        row->about = g_strdup(top_text(port, "about"));
        row->is_port = true;
    }
    top_update(row, top_stats_of_port(port));
}

static void top_look_at_switch(struct top *top, struct top_process *process)
{
    json_auto_t *ports = control_call(process->client, "query-ports", NULL, NULL);
    const json_t *port;
    size_t i;

    if (!ports) {
        top_disconnect(process);
    }
    json_array_foreach(ports, i, port)
    {
        top_look_at_port(top, process, port);
    }
}

static void top_look_at(struct top *top, const char *path)
{
    struct top_process *process = g_hash_table_lookup(top->processes, path);
    bool connected, gone;

    if (!process) {
        process = g_new0(struct top_process, 1);
        process->path = g_strdup(path);
        g_hash_table_insert(top->processes, process->path, process);
    }
    connected = top_connect(process, &gone);
    process->seen = !gone;
    if (gone) {
        return;
    }
    if (process->is_switch) {
        if (connected) {
            top_look_at_switch(top, process);
        }
    } else {
        top_look_at_host(top, process, connected);
    }
}

/* -- looks ------------------------------------------------------------------------------------- */

static gboolean top_is_unseen(gpointer key, gpointer value, gpointer unused)
{
    return !((struct top_process *)value)->seen;
}

static gboolean top_is_unshown(gpointer key, gpointer value, gpointer shown)
{
    return !g_ptr_array_find(shown, value, NULL);
}

bool top_look(struct top *top, GError **err)
{
    GHashTableIter iter;
    gpointer process;

    g_ptr_array_set_size(top->shown, 0);
    g_hash_table_iter_init(&iter, top->processes);
    while (g_hash_table_iter_next(&iter, NULL, &process)) {
        ((struct top_process *)process)->seen = false;
    }
    for (char **path = top->paths; *path; path++) {
        g_autoptr(GPtrArray) sockets = sockets_find(*path, err);

        if (!sockets) {
            return false;
        }
        for (unsigned i = 0; i < sockets->len; i++) {
            top_look_at(top, sockets->pdata[i]);
        }
    }
    g_hash_table_foreach_remove(top->processes, top_is_unseen, NULL);
    g_hash_table_foreach_remove(top->rows, top_is_unshown, top->shown);
    return true;
}

const GPtrArray *top_rows(const struct top *top)
{
    return top->shown;
}

struct top *top_new(char **paths)
{
    struct top *top = g_new0(struct top, 1);

    top->paths = g_strdupv(paths);
    top->processes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, top_free_process);
    top->rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, top_free_row);
    top->shown = g_ptr_array_new();
    return top;
}

void top_free(struct top *top)
{
    g_ptr_array_unref(top->shown);
    g_hash_table_unref(top->rows);
    g_hash_table_unref(top->processes);
    g_strfreev(top->paths);
    g_free(top);
}
