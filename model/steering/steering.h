/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow steering: decides which TIRs get a received frame, and which frames are sent.
 *
 * A flow table holds groups. A group is a range of entry indices that share one mask. An entry has
 * a match value, an action and destinations. A frame starts at the root table of its domain. In a
 * table the groups are tried in the order of their indices, and the first entry that matches
 * decides. If no entry matches, the table's miss action decides. A destination table must have a
 * higher level than the table that leads to it, so a walk ends (PRM: flow table level). An entry
 * that is set with ignore_flow_level may lead anywhere; a walk that loops is cut off.
 *
 * A table, its groups and its entries belong to the user context that made the table. They may name
 * the objects that this context may use.
 *
 * Domains, each with tables and a root of its own:
 *   NIC receive   frames that are not RoCE. A frame that no rule leads to a TIR is dropped
 *   RDMA receive  RoCE frames, before their QP. A frame that no rule drops or leads to a TIR goes
 *                 on to its QP or, if its table says so, to the NIC receive domain
 *   NIC transmit  frames of send queues. A frame that no rule drops is sent
 *   RDMA transmit RoCE frames. A frame that no rule drops is sent
 *   sniffers      each frame that the function's vport takes, and each frame that it sends; the
 *                 TIRs of their rules get copies
 *
 * model/steering/match_fields.def lists what entries can match.
 */
#ifndef HCASIM_MODEL_STEERING_STEERING_H
#define HCASIM_MODEL_STEERING_STEERING_H

#include "model/core/hca.h"
#include "model/steering/key.h"
#include "prm/prm.h"
#include "wire/encap/eth.h"

#define STEERING_MAX_LEVEL        128 /* levels 0..127; Linux 6.12 uses more than 64 */
#define STEERING_LOG_FT_SIZE      16  /* log2 of the entries of one table */
#define STEERING_LOG_FT_NUM       10  /* log2 of the number of tables */
#define STEERING_MAX_DEST         32  /* destinations of one entry */
#define STEERING_MAX_COUNTERS     4   /* counters of one entry */
#define STEERING_MAX_DELIVERIES   128 /* queues that get a copy of one frame */
#define STEERING_LOG_COUNTER_BULK 10  /* log2 of the counters that one query reports */

/* The most tables and groups that one frame may visit. Levels bound only the depth of a walk, and
 * not if they are ignored. They do not bound how far a guest's rules fan out, or how many groups a
 * table has. With Linux a frame visits some tens of groups. */
#define STEERING_MAX_STEPS 4096

struct steering_scratch;

/* The steering part of a function. */
struct steering {
    struct obj_table tables;
    struct steering_scratch *scratch;           /* model/steering/change.c; NULL: not needed */
    struct flow_table *roots[STEERING_DOMAINS]; /* NULL: the domain has no tables */
    uint16_t ip_id;                             /* of the next IPv4 header that entries insert */
};

#define STEERING_BULK_UNIT 128 /* counters of the smallest bulk */
#define STEERING_BULK_MAX  7   /* units of the largest bulk */

/* The counters of a bulk have consecutive numbers, and are deallocated together. */
struct flow_counter {
    struct obj obj;
    uint32_t first, count; /* the bulk to which it belongs; a single counter is a bulk of one */
    uint64_t packets, bytes;
};

/* CREATE_FLOW_TABLE. type is a PRM_FLOW_TABLE_TYPE_, ctx a flow_table_context. */
enum syn flow_table_create(struct hca *hca, uint16_t uid, uint8_t type,
                           const struct prm_flow_table_context *ctx, uint32_t *table_id);
enum syn flow_table_query(struct hca *hca, uint8_t type, uint32_t table_id,
                          struct prm_flow_table_context *ctx);
enum syn flow_table_modify(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint16_t select, const struct prm_flow_table_context *ctx);
enum syn flow_table_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id);
/* Empties the tables of a user context (entries, groups, miss tables), as long as hca_has_room().
 * True: all are empty. */
bool flow_tables_empty_of(struct hca *hca, uint16_t uid);
/* For a reset: empties all tables from *num on. */
bool flow_tables_empty_from(struct hca *hca, uint32_t *num);
/* Destroys the tables of a user context, which must be empty. Returns how many were destroyed.
 * *left receives how many were not, because other tables lead to them. */
unsigned flow_tables_destroy_of(struct hca *hca, uint16_t uid, unsigned *left);
/* SET_FLOW_TABLE_ROOT. set false: the domain has no root any more, and frames are dropped. */
enum syn flow_table_set_root(struct hca *hca, uint8_t type, uint32_t table_id, bool set);

/* CREATE_FLOW_GROUP; in is a create_flow_group_in. */
enum syn flow_group_create(struct hca *hca, uint16_t uid, const struct prm_create_flow_group_in *in,
                           uint32_t *group_id);
/* Fills in the group's part of query_flow_group_out. */
enum syn flow_group_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t group_id,
                          struct prm_query_flow_group_out *out);
enum syn flow_group_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                            uint32_t group_id);

/* SET_FLOW_TABLE_ENTRY, new or modify. in is a set_fte_in of in_len bytes (destinations and
 * counters follow the flow context). */
enum syn flow_entry_set(struct hca *hca, uint16_t uid, const struct prm_set_fte_in *in,
                        size_t in_len, bool modify);
/* Fills in the flow_context with its destination list; ctx_len bytes are available. */
enum syn flow_entry_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t index,
                          struct prm_flow_context *ctx, size_t ctx_len);
enum syn flow_entry_delete(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint32_t index);

/* *id receives the number of the first of count counters: 1, or STEERING_BULK_UNIT for each bit of
 * flow_counter_bulk's value. A bulk begins at a multiple of STEERING_BULK_UNIT. */
enum syn flow_counter_alloc(struct hca *hca, uint16_t uid, uint32_t count, uint32_t *id);
/* Deallocates the bulk that begins with this counter. SYN_IN_USE: an entry uses one of them. */
enum syn flow_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id);
struct flow_counter *flow_counter_find(struct hca *hca, uint32_t id);

/*
 * The function of a higher folder that takes frames from steering (model/card/hca.c fills it in): a
 * rule leads a frame to a TIR. flow_tag goes into the CQE. metadata: register B as rules have left
 * it. from_td: the transport domain of the queue that sent the frame, or PORT_NO_TD. False: the TIR
 * does not take the frame.
 */
struct steering_receivers {
    bool (*tir)(struct hca *hca, uint32_t tirn, const uint8_t *frame, size_t len,
                const struct eth_info *info, uint32_t flow_tag, uint32_t metadata,
                uint32_t from_td);
};
extern const struct steering_receivers steering_receivers;

/* Walks the NIC receive domain, and passes the frame to every TIR that it leads to.
 * Returns how many TIRs took it; 0: the frame was dropped. */
unsigned steering_rx(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info,
                     uint32_t from_td);

/* Walks the RDMA receive domain with a RoCE frame, and then the NIC receive domain if a table leads
 * there. False: the frame goes to no QP. */
bool steering_rx_rdma(struct hca *hca, const uint8_t *frame, size_t len,
                      const struct eth_info *info);
/* What rules can know of a sent frame, besides its bytes. */
struct steering_sent {
    uint32_t sqn;
    uint32_t metadata; /* of the WQE; rules match it as register A */
    bool counted;      /* counters have counted this frame: it comes again after it has waited */
};

/* Whether frames of send queues walk the NIC transmit domain: it has a root. */
static inline bool steering_has_tx(const struct hca *hca)
{
    return hca->steering->roots[STEERING_NIC_TX] != NULL;
}
/* Walks the NIC transmit domain. False: a rule drops the frame. A frame that no rule takes is sent.
 * If rules change the frame, *frame and *len become those of the changed frame, which is valid
 * until the next walk. */
bool steering_tx(struct hca *hca, const struct steering_sent *sent, const uint8_t **frame,
                 size_t *len);
/* Walks the RDMA transmit domain with a RoCE frame. False: a rule drops it. */
bool steering_tx_rdma(struct hca *hca, const uint8_t *frame, size_t len);
/* Copies a received frame, or a sent frame, to the TIRs of the sniffer domain. */
void steering_sniff(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info);
void steering_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len,
                       const struct eth_info *info);

/* For hca_init() and hca_reset(). */
void steering_init(struct hca *hca);
void steering_clear(struct hca *hca);

#endif
