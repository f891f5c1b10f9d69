/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements stats.h. */
#include "wire/switch/stats.h"

#include <glib.h>
#include <stddef.h>

static const struct {
    struct switch_stats_row row;
    size_t at;
} switch_stats_rows[] = {
#define SWITCH_STATS_ROW(name, group, meaning)                                                     \
    {{#name, SWITCH_STATS_##group, meaning}, offsetof(struct switch_stats, name)},
    SWITCH_STATS(SWITCH_STATS_ROW)
#undef SWITCH_STATS_ROW
};

const struct switch_stats_row *switch_stats_row(unsigned i)
{
    return i < G_N_ELEMENTS(switch_stats_rows) ? &switch_stats_rows[i].row : NULL;
}

uint64_t switch_stats_value(const struct switch_stats *stats, unsigned i)
{
    return *(const uint64_t *)((const char *)stats + switch_stats_rows[i].at);
}

void switch_stats_add(struct switch_stats *to, const struct switch_stats *stats)
{
    uint64_t most = MAX(to->queue_most, stats->queue_most);

    for (unsigned i = 0; i < G_N_ELEMENTS(switch_stats_rows); i++) {
        *(uint64_t *)((char *)to + switch_stats_rows[i].at) += switch_stats_value(stats, i);
    }
    to->queue_most = most;
}

bool switch_stats_add_up(const struct switch_stats *stats)
{
    uint64_t in = 0, out = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(switch_stats_rows); i++) {
        in += switch_stats_rows[i].row.group == SWITCH_STATS_IN ? switch_stats_value(stats, i) : 0;
        out +=
            switch_stats_rows[i].row.group == SWITCH_STATS_OUT ? switch_stats_value(stats, i) : 0;
    }
    return in == stats->rx_frames && out == stats->offered;
}
