/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow meters: general objects to which software's entries lead frames (model/steering/ste.h,
 * STE_METER). A meter gives each frame a colour, writes it into a metadata register, and sends the
 * frame on to a table, whose rules do something about it. (ConnectX-6 Dx and later have meters of
 * another kind, ASO.)
 *
 * A meter has two token buckets, which are full at first: that of committed traffic, whose tokens
 * make frames green, and that of excess traffic, whose tokens make them yellow. Other frames are
 * red. A frame may take more tokens than there are, so that a bucket of size 0 holds a flow to its
 * rate; then the bucket gives none until it has made up for it.
 *
 * RFC 2697 and 2698 are special cases: with bucket_overflow, tokens for which the committed bucket
 * has no room go to the other; with both_buckets_on_green, a green frame takes tokens of both.
 *
 * A meter references its table, which cannot be destroyed before it.
 */
#ifndef HCASIM_MODEL_STEERING_METER_H
#define HCASIM_MODEL_STEERING_METER_H

#include "model/core/bucket.h"
#include "model/core/hca.h"
#include "prm/prm.h"

#define METER_LOG_MAX   12   /* log_max_flow_meter */
#define METER_REGISTERS 0x3f /* flow_meter_reg_id: registers C0 to C5 */

struct flow_table;

struct meter_bucket {
    uint32_t kbps; /* 0: it gets no tokens of its own */
    int64_t size;  /* the most credit, as in struct bucket */
    struct bucket tokens;
};

struct flow_meter {
    struct obj obj;
    struct prm_flow_meter ctx[1]; /* as commands gave it, with its addresses */
    struct flow_table *next;
    struct meter_bucket committed, excess;
    uint8_t colour; /* PRM_FLOW_METER_COLOR_ of the last frame */
};

/* CREATE_GENERAL_OBJECT and MODIFY_GENERAL_OBJECT; object is a flow_meter. */
enum syn flow_meter_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
enum syn flow_meter_modify(struct hca *hca, struct obj *obj, const void *object);
void flow_meter_free(struct hca *hca, struct obj *obj);

static inline struct flow_meter *flow_meter_find(struct hca *hca, uint32_t num)
{
    return obj_find_kind(&hca->flow_meters, num, OBJ_FLOW_METER);
}

/* The colour of a frame of len bytes, of which l2 are before layer 3; PRM_FLOW_METER_COLOR_. */
uint8_t flow_meter_colour(struct hca *hca, struct flow_meter *meter, size_t len, size_t l2);

#endif
