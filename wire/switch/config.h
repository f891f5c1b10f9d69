/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a port of a switch, and their texts. switch.h says what each setting means.
 */
#ifndef HCASIM_WIRE_SWITCH_CONFIG_H
#define HCASIM_WIRE_SWITCH_CONFIG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SWITCH_PRIORITIES = 8,
    SWITCH_VIDS = 4096,
    SWITCH_NO_VID = 0xffff,
};

/* Who pauses whom. */
enum switch_flow {
    SWITCH_FLOW_DROPS, /* nobody: a frame that does not fit is dropped */
    SWITCH_FLOW_PFC,
    SWITCH_FLOW_PAUSE,
};

struct switch_vlans {
    uint16_t native; /* of untagged frames; SWITCH_NO_VID: they are refused. 0: a network of their
                      * own, which no tag names */
    uint64_t tagged[SWITCH_VIDS / 64];
};

struct switch_port_config {
    uint64_t rate; /* bits/s; 0: frames leave in no time */
    uint64_t latency_ns;
    uint64_t queue;            /* bytes that may wait, for each priority */
    uint64_t ecn_min, ecn_max; /* ecn_max 0: none is marked */
    unsigned ecn_most;         /* per million */
    enum switch_flow flow;
    uint8_t flow_priorities; /* a bit each; all of them with SWITCH_FLOW_PAUSE */
    uint64_t xoff, xon;
    bool down;
    unsigned island;
    unsigned priority;
    unsigned stations, groups; /* that the port may have in the tables */
    struct switch_vlans vlans;
};

void switch_config_init(struct switch_port_config *config);
/* Returns the names of the settings, NULL at the end. */
const char *const *switch_config_keys(void);
/* False with *err; then nothing has changed. */
bool switch_config_set(struct switch_port_config *config, const char *key, const char *value,
                       GError **err);
/* The caller frees the text. NULL: there is no such setting. */
char *switch_config_get(const struct switch_port_config *config, const char *key);

static inline bool switch_vlans_has_tagged(const struct switch_vlans *v, unsigned vid)
{
    return v->tagged[vid / 64] >> (vid % 64) & 1;
}

#endif
