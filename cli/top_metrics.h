/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the numbers of `hcasim top` in the text format of Prometheus. */
#ifndef HCASIM_CLI_TOP_METRICS_H
#define HCASIM_CLI_TOP_METRICS_H

#include <glib.h>

/* rows: of struct top_row. */
GString *top_metrics(const GPtrArray *rows);

#endif
