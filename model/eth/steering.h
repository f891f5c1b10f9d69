/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering: which TIRs get a received frame.
 *
 * A flow table holds groups; a group is a range of entry indices that share one mask; an entry has
 * a match value, an action and destinations. A frame starts at the root table of its domain. In a
 * table the groups are tried in the order of their indices, and the first entry that matches
 * decides; without one the table's miss action does. A destination table must have a higher level
 * than the one it is reached from, so a walk ends (PRM: flow table level); an entry that is set
 * with ignore_flow_level may lead anywhere, and a walk that comes round in a loop is cut off.
 *
 * A table belongs to the user context that made it, its groups and entries with it; they may name
 * what that context may use.
 *
 * Domains, each with tables and a root of its own:
 *   NIC receive   frames that are not RoCE; what no rule leads to a TIR is dropped
 *   RDMA receive  RoCE frames, before their QP; what no rule drops or leads to a TIR goes on to it,
 *                 or where a table says so goes on in the NIC receive domain
 *   sniffers      every frame that the function's vport takes, and every one that it sends; their
 *                 TIRs get copies
 * Match criteria: outer headers of layers 2 to 4.
 */
#ifndef HCASIM_MODEL_STEERING_H
#define HCASIM_MODEL_STEERING_H

#include "model/core/hca.h"
#include "prm/prm.h"
#include "wire/encap/eth.h"

#define STEERING_MAX_LEVEL        128 /* levels 0..127; Linux 6.12 uses more than 64 */
#define STEERING_LOG_FT_SIZE      16  /* entries of one table */
#define STEERING_LOG_FT_NUM       10  /* tables */
#define STEERING_MAX_DEST         32  /* destinations of one entry */
#define STEERING_MAX_COUNTERS     4   /* counters of one entry */
#define STEERING_MAX_DELIVERIES   128 /* queues that get a copy of one frame */
#define STEERING_LOG_COUNTER_BULK 10  /* counters that one query tells */

/* Tables and groups that one frame may visit: levels bound the depth only, and not where they are
 * ignored, nor how wide a guest's rules fan out, nor how many groups a table has. Linux has some
 * tens of groups on a frame's way.
 */
#define STEERING_MAX_STEPS 4096

struct flow_counter {
    struct obj obj;
    uint64_t packets, bytes;
};

/* CREATE_FLOW_TABLE; type is PRM_FLOW_TABLE_TYPE_, ctx flow_table_context. */
enum syn flow_table_create(struct hca *hca, uint16_t uid, uint8_t type,
                           const struct prm_flow_table_context *ctx, uint32_t *table_id);
enum syn flow_table_query(struct hca *hca, uint8_t type, uint32_t table_id,
                          struct prm_flow_table_context *ctx);
enum syn flow_table_modify(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint16_t select, const struct prm_flow_table_context *ctx);
enum syn flow_table_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id);
/* Empties the tables of a user context: entries, groups, and where a miss leads, as long as
 * hca_has_room(). True: all are empty. */
bool flow_tables_empty_of(struct hca *hca, uint16_t uid);
/* The same of all tables from a number on, for a reset. */
bool flow_tables_empty_from(struct hca *hca, uint32_t *num);
/* Destroys those tables, which are empty; returns how many went, and in *left how many stayed
 * because others lead to them. */
unsigned flow_tables_destroy_of(struct hca *hca, uint16_t uid, unsigned *left);
/* SET_FLOW_TABLE_ROOT; set false: back to no root, frames are dropped. */
enum syn flow_table_set_root(struct hca *hca, uint8_t type, uint32_t table_id, bool set);

/* CREATE_FLOW_GROUP; in is create_flow_group_in. */
enum syn flow_group_create(struct hca *hca, uint16_t uid, const struct prm_create_flow_group_in *in,
                           uint32_t *group_id);
/* Fills the group's part of query_flow_group_out. */
enum syn flow_group_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t group_id,
                          struct prm_query_flow_group_out *out);
enum syn flow_group_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                            uint32_t group_id);

/* SET_FLOW_TABLE_ENTRY, new or modify; in is set_fte_in with in_len bytes (destinations and
 * counters follow the flow context). */
enum syn flow_entry_set(struct hca *hca, uint16_t uid, const struct prm_set_fte_in *in,
                        size_t in_len, bool modify);
/* Fills flow_context with its destination list; out_len bytes are there. */
enum syn flow_entry_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t index,
                          struct prm_flow_context *ctx, size_t ctx_len);
enum syn flow_entry_delete(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint32_t index);

enum syn flow_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id);
enum syn flow_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id);
struct flow_counter *flow_counter_find(struct hca *hca, uint32_t id);

/* Walks the NIC receive domain and hands the frame to tir_rx() for every TIR it leads to. Returns
 * how many; 0: the frame was dropped. */
unsigned steering_rx(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info,
                     uint32_t from_td);

/* Walks the RDMA receive domain with a RoCE frame, and the NIC receive domain if that is where it
 * leads. False: it goes to no QP. */
bool steering_rx_rdma(struct hca *hca, const uint8_t *frame, size_t len,
                      const struct eth_info *info);
/* Copies of a frame that is received, or sent, for the TIRs of the sniffer domain. */
void steering_sniff(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info);
void steering_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len,
                       const struct eth_info *info);

/* For hca_init() and hca_reset(). */
void steering_init(struct hca *hca);
void steering_clear(struct hca *hca);

#endif
