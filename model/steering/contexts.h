/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet reformat contexts and modify header contexts: what flow entries do to frames, as objects
 * that entries name. Each keeps the list or the headers that software gave
 * (model/steering/reformat.h, rewrite.h). It does not change after it was made.
 */
#ifndef HCASIM_MODEL_STEERING_CONTEXTS_H
#define HCASIM_MODEL_STEERING_CONTEXTS_H

#include "model/core/hca.h"
#include "model/steering/reformat.h"
#include "model/steering/rewrite.h"

#define REFORMAT_LOG_MAX 14 /* log2 of the numbers of contexts */
#define REWRITE_LOG_MAX  14

struct packet_reformat {
    struct obj obj; /* refs: flow tables, for their entries */
    uint8_t type;   /* PRM_REFORMAT_TYPE_ */
    uint16_t len;   /* bytes of headers */
    uint8_t headers[REFORMAT_MAX];
};

struct modify_header {
    struct obj obj;     /* refs: flow tables, for their entries */
    uint8_t table_type; /* PRM_FLOW_TABLE_TYPE_: of the tables whose entries may use it */
    uint8_t count;
    bool writes_frame; /* and not only registers */
    struct rewrite_action actions[];
};

/* ALLOC_PACKET_REFORMAT_CONTEXT; room bytes of headers are in the command. */
enum syn packet_reformat_create(struct hca *hca, uint16_t uid,
                                const struct prm_packet_reformat_context_in *in, size_t room,
                                uint32_t *id);
/* Fills in the context; room is the number of bytes of headers that out has room for. */
enum syn packet_reformat_query(struct hca *hca, uint16_t uid, uint32_t id,
                               struct prm_packet_reformat_context_in *out, size_t room);

/* ALLOC_MODIFY_HEADER_CONTEXT, with a list of n actions. */
enum syn modify_header_create(struct hca *hca, uint16_t uid, uint8_t table_type,
                              const struct prm_set_action_in *list, unsigned n, uint32_t *id);

/* Whether a reformat of that type removes a tunnel (and does not insert one). */
static inline bool packet_reformat_is_decap(uint8_t type)
{
    return type == PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2;
}

static inline struct packet_reformat *packet_reformat_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->packet_reformats, id, OBJ_PACKET_REFORMAT);
}

static inline struct modify_header *modify_header_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->modify_headers, id, OBJ_MODIFY_HEADER);
}

#endif
