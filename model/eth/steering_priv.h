/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines tables, groups and entries, for steering.c and steering_rx.c. */
#ifndef HCASIM_MODEL_STEERING_PRIV_H
#define HCASIM_MODEL_STEERING_PRIV_H

#include "model/eth/steering.h"

#define KEY_WORDS (PRM_SIZE(fte_match_set_lyr_2_4) / 4)

/* The outer headers of a frame, or a mask, or a masked value: fte_match_set_lyr_2_4 as memory
 * words. */
struct flow_key {
    uint32_t word[KEY_WORDS];
};

struct flow_dest {
    uint8_t type; /* PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE or _TIR */
    uint32_t id;
};

struct flow_group;

struct flow_entry {
    struct flow_key key; /* first: it is the key in group->by_key */
    uint32_t index;
    struct flow_group *group;
    uint16_t action; /* PRM_FLOW_ACTION_ */
    uint32_t flow_tag;
    unsigned num_dests, num_counters;
    struct flow_dest dests[STEERING_MAX_DEST];
    uint32_t counters[STEERING_MAX_COUNTERS];
};

struct flow_group {
    uint32_t id, start, end; /* entry indices start..end */
    uint8_t criteria_enable;
    struct flow_key mask;
    GHashTable *by_key; /* flow_entry by its masked key */
};

struct flow_table {
    struct obj obj; /* refs: entries and tables that lead to it */
    uint8_t type, level, log_size, miss_action;
    uint32_t miss_id;
    GPtrArray *groups;   /* by start index */
    GHashTable *entries; /* flow_entry by index */
    uint32_t next_group_id;
};

/* The domains; each has a root table of its own. */
enum steering_domain {
    STEERING_NIC_RX,
    STEERING_RDMA_RX,
    STEERING_SNIFFER_RX,
    STEERING_SNIFFER_TX,
    STEERING_DOMAINS
};

struct steering {
    struct obj_table tables;
    struct flow_table *roots[STEERING_DOMAINS];
};

static inline struct flow_table *flow_table_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->steering->tables, id, OBJ_FLOW_TABLE);
}

static inline void flow_key_mask(struct flow_key *out, const struct flow_key *key,
                                 const struct flow_key *mask)
{
    for (unsigned i = 0; i < KEY_WORDS; i++) {
        out->word[i] = key->word[i] & mask->word[i];
    }
}

#endif
