/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines tables, groups and entries, for the files of model/steering only. */
#ifndef HCASIM_MODEL_STEERING_TABLES_H
#define HCASIM_MODEL_STEERING_TABLES_H

#include "model/steering/contexts.h"
#include "model/steering/key.h"
#include "model/steering/steering.h"

struct flow_dest {
    uint8_t type; /* PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE or _TIR */
    uint32_t id;
    uint32_t reformat; /* number of the reformat on the way to it; 0: none */
};

/* A tag that an entry inserts. */
struct flow_vlan {
    uint16_t tpid, tci;
};

struct flow_group;

struct flow_entry {
    struct flow_dest dests[STEERING_MAX_DEST];
    /* What a frame needs of most entries, and its key, are neighbours in memory. */
    uint32_t index;
    struct flow_group *group;
    uint16_t action; /* PRM_FLOW_ACTION_ */
    bool extended;   /* destinations may have reformats */
    uint32_t flow_tag;
    struct flow_vlan vlans[2];        /* of VLAN_PUSH, VLAN_PUSH_2 */
    struct packet_reformat *reformat; /* of PACKET_REFORMAT, else NULL; referenced */
    struct modify_header *modify;     /* of MOD_HDR, else NULL; referenced */
    unsigned num_dests, num_counters;
    uint32_t counters[STEERING_MAX_COUNTERS];
    struct flow_entry *next, *prev; /* a ring of the group's entries with this key, oldest first */
    struct flow_key key;            /* the key in group->by_key; its words follow, so it is last */
};

struct flow_group {
    uint32_t id, start, end; /* entry indices start..end */
    GHashTable *by_key;      /* flow_entry by &entry->key: the oldest with this key */
    struct flow_mask mask;
};

struct flow_table {
    struct obj obj; /* refs: entries and tables that lead to it */
    enum steering_domain domain;
    uint8_t type, level, log_size, miss_action;
    bool reformats, decaps; /* entries may; software says so when it makes the table */
    uint32_t miss_id;
    bool is_last;        /* termination_table: its entries lead to no table */
    bool sw_owner;       /* software lays out its entries: no groups here */
    uint64_t sw_root[2]; /* sw_owner_icm_root: address of the first (model/steering/ste.h) */
    GPtrArray *groups;   /* by start index */
    GHashTable *entries; /* flow_entry by index */
    uint32_t next_group_id;
};

static inline bool steering_is_tx(enum steering_domain domain)
{
    return domain == STEERING_NIC_TX || domain == STEERING_RDMA_TX;
}

static inline struct flow_table *flow_table_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->steering->tables, id, OBJ_FLOW_TABLE);
}

struct flow_table *steering_find_table(struct hca *hca, uint8_t type, uint32_t id);
/* As steering_find_table(), for a command that changes the table: only the table's owner may. */
enum syn steering_find_own_table(struct hca *hca, uint16_t uid, uint8_t type, uint32_t id,
                                 struct flow_table **table);
/* Finds a table of the same type that this table may lead to. It must have a higher level, unless
 * any_level. none: the syndrome if there is no such table. */
enum syn steering_find_next_table(struct hca *hca, const struct flow_table *table, uint32_t id,
                                  bool any_level, enum syn none, struct flow_table **next);
/* Sets the table's miss action. If it leads to another table, that table must have a higher level,
 * and is then referenced. */
enum syn steering_set_miss(struct hca *hca, struct flow_table *table, uint8_t action, uint32_t id);
/* Frees a table, whatever references it. */
void steering_table_free(struct hca *hca, struct flow_table *table);

struct flow_group *steering_find_group(struct hca *hca, struct flow_table *table, uint32_t id);
/* Frees a group and its entries, without giving their references back. */
void steering_group_free(struct hca *hca, struct flow_group *group);
void steering_groups_free(struct hca *hca, struct flow_table *table);

/* Gives back the references of an entry that is no longer in its table, and frees it. */
void steering_entry_free(struct hca *hca, struct flow_table *table, struct flow_entry *entry);
/* The bytes of an entry whose group's mask has that many words. */
static inline size_t steering_entry_size(unsigned num_words)
{
    return sizeof(struct flow_entry) + num_words * sizeof(uint32_t);
}
/* What an entry does to frames (model/steering/actions.c). Reads it from the command; action and
 * destinations must have been read. */
enum syn steering_read_changes(struct hca *hca, const struct flow_table *table,
                               const struct prm_flow_context *ctx, struct flow_entry *entry);
/* Whether a reformat of that number can be used here; it is then in *reformat. */
enum syn steering_find_reformat(struct hca *hca, const struct flow_table *table, uint32_t id,
                                struct packet_reformat **reformat);
void steering_write_changes(const struct flow_entry *entry, struct prm_flow_context *ctx);
/* Whether the entry's table may have these actions, and they go together. */
bool steering_changes_ok(const struct flow_table *table, const struct flow_entry *entry);
/* Enters an entry that has its key. Of entries with equal keys, the oldest takes the frames. */
void steering_group_enter(struct flow_group *group, struct flow_entry *entry);
/* Removes an entry; the next oldest with its key then takes the frames. */
void steering_group_leave(struct flow_group *group, struct flow_entry *entry);
/* Frees an entry that was in no table. */
void steering_entry_release(struct hca *hca, struct flow_entry *entry);

#endif
