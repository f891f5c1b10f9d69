/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements top_metrics.h. All samples of a metric must stand together, so they are collected by
 * the metric's name first.
 */
#include "cli/top_metrics.h"
#include "cli/top_data.h"

struct metrics {
    GPtrArray *names;    /* in the order in which they appear */
    GHashTable *samples; /* GString by name */
    GHashTable *types;   /* "counter" or "gauge" by name */
};

/* Appends a label's value, with what the format wants escaped. */
static void metrics_quote(GString *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            g_string_append(to, "\\n");
        } else if (*text == '"' || *text == '\\') {
            g_string_append_printf(to, "\\%c", *text);
        } else {
            g_string_append_c(to, *text);
        }
    }
}

static void metrics_label(GString *to, const char *name, const char *value)
{
    g_string_append_printf(to, "%s%s=\"", to->len ? "," : "", name);
    metrics_quote(to, value);
    g_string_append_c(to, '"');
}

static GString *metrics_labels(const struct top_row *row)
{
    GString *labels = g_string_new(NULL);

    metrics_label(labels, "socket", row->socket);
    metrics_label(labels, "host", row->host);
    metrics_label(labels, "device", row->device);
    metrics_label(labels, row->is_port ? "wire" : "program", row->about);
    return labels;
}

/* name: a text of another process. Other characters than those of metrics become "_". */
static char *metrics_name(const struct top_row *row, const char *name, const char *suffix)
{
    char *made = g_strdup_printf("hcasim_%s%s%s", row->is_port ? "switch_" : "", name, suffix);

    return g_strcanon(made, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", '_');
}

static void metrics_add(struct metrics *m, const char *name, const char *type, const char *labels,
                        json_int_t value)
{
    GString *samples = g_hash_table_lookup(m->samples, name);

    if (!samples) {
        char *key = g_strdup(name);

        samples = g_string_new(NULL);
        g_ptr_array_add(m->names, key);
        g_hash_table_insert(m->samples, key, samples);
        g_hash_table_insert(m->types, key, (gpointer)type);
    }
    g_string_append_printf(samples, "%s{%s} %" JSON_INTEGER_FORMAT "\n", name, labels, value);
}

static void metrics_add_all(struct metrics *m, const struct top_row *row, const char *kind,
                            const char *type, const char *suffix, const char *labels)
{
    json_t *values = json_object_get(row->now, kind), *value;
    const char *name;

    json_object_foreach(values, name, value)
    {
        g_autofree char *metric = metrics_name(row, name, suffix);

        metrics_add(m, metric, type, labels, json_is_true(value) ? 1 : json_integer_value(value));
    }
}

/* The numbers of QPs of each type and state. */
static void metrics_add_qps(struct metrics *m, const struct top_row *row, const GString *labels)
{
    const json_t *list = json_object_get(row->now, "qps"), *qps;
    size_t i;

    json_array_foreach(list, i, qps)
    {
        const char *type = json_string_value(json_object_get(qps, "type"));
        const char *state = json_string_value(json_object_get(qps, "state"));
        GString *all = g_string_new(labels->str);

        metrics_label(all, "type", type ? type : "");
        metrics_label(all, "state", state ? state : "");
        metrics_add(m, "hcasim_qps_in_state", "gauge", all->str,
                    json_integer_value(json_object_get(qps, "count")));
        g_string_free(all, TRUE);
    }
}

static void metrics_add_row(struct metrics *m, const struct top_row *row)
{
    GString *labels = metrics_labels(row);

    metrics_add(m, "hcasim_answers", "gauge", labels->str, !row->silent);
    if (!row->silent) {
        metrics_add_all(m, row, "counters", "counter", "_total", labels->str);
        metrics_add_all(m, row, "gauges", "gauge", "", labels->str);
        metrics_add_qps(m, row, labels);
    }
    g_string_free(labels, TRUE);
}

static void metrics_free_samples(void *samples)
{
    g_string_free(samples, TRUE);
}

GString *top_metrics(const GPtrArray *rows)
{
    struct metrics m = {g_ptr_array_new_with_free_func(g_free),
                        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, metrics_free_samples),
                        g_hash_table_new(g_str_hash, g_str_equal)};
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < rows->len; i++) {
        metrics_add_row(&m, rows->pdata[i]);
    }
    for (unsigned i = 0; i < m.names->len; i++) {
        const char *name = m.names->pdata[i];
        const GString *samples = g_hash_table_lookup(m.samples, name);

        g_string_append_printf(text, "# TYPE %s %s\n%s", name,
                               (const char *)g_hash_table_lookup(m.types, name), samples->str);
    }
    g_hash_table_unref(m.types);
    g_hash_table_unref(m.samples);
    g_ptr_array_unref(m.names);
    return text;
}
