/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of running hosts and switches, asked of their control socket again and again, for
 * `hcasim top`.
 *
 * A row is a host, or a port of a switch. Processes come and go between two looks: a new one has no
 * rates before the second look at it. A process that does not answer within TOP_PATIENCE_MS keeps
 * its row, marked as silent, and is asked again with the next look.
 */
#ifndef HCASIM_CLI_TOP_DATA_H
#define HCASIM_CLI_TOP_DATA_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define TOP_PATIENCE_MS 300

struct top;

struct top_row {
    char *socket; /* the name of its control socket */
    char *host;   /* its address; of a switch, the name of the socket */
    char *device; /* mlx5_0; of a switch, "port 3" */
    char *about;  /* the program; of a port, what it is */
    bool is_port, silent;
    json_t *now, *before; /* query-stats, or the same of a port: counters, gauges; NULL: none yet */
    gint64 now_us, before_us;
};

/* paths: control sockets, and folders of them, which are looked through again at each look. */
struct top *top_new(char **paths);
void top_free(struct top *top);
/* Asks all. False: *err, if a path cannot be read. */
bool top_look(struct top *top, GError **err);
/* The rows of the last look, of struct top_row; valid until the next. */
const GPtrArray *top_rows(const struct top *top);

/* A counter or gauge; 0 if there is none of this name. */
guint64 top_value(const struct top_row *row, const char *name);
/* The rate of a counter between the last two looks, per second; less than 0: not known yet. */
double top_rate(const struct top_row *row, const char *name);

#endif
