/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow samplers: general objects to which software's entries lead received frames
 * (model/steering/ste.h, STE_SAMPLER). All frames go on to one table; a copy of one frame in
 * sample_ratio goes to another table first.
 *
 * Each sample_ratio consecutive frames have one that is sampled, at a random place among them. So
 * the rate is exact, and frames that come in a rhythm are not always or never sampled. The places
 * follow from the number of the sampler, so that a run repeats.
 *
 * A sampler references its two tables, which cannot be destroyed before it.
 */
#ifndef HCASIM_MODEL_STEERING_SAMPLER_H
#define HCASIM_MODEL_STEERING_SAMPLER_H

#include "model/core/hca.h"
#include "prm/prm.h"

#define SAMPLER_LOG_MAX 10 /* log2 of the numbers of samplers */

struct flow_table;

struct flow_sampler {
    struct obj obj;
    struct prm_flow_sampler ctx[1]; /* as CREATE_GENERAL_OBJECT gave it, with its address */
    struct flow_table *copies, *all;
    uint32_t ratio;
    uint32_t at, chosen; /* place of the next frame, and of the one that is sampled */
    uint64_t random;
};

/* CREATE_GENERAL_OBJECT; object is a flow_sampler. */
enum syn flow_sampler_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
void flow_sampler_free(struct hca *hca, struct obj *obj);

static inline struct flow_sampler *flow_sampler_find(struct hca *hca, uint32_t num)
{
    return obj_find_kind(&hca->flow_samplers, num, OBJ_SAMPLER);
}

/* Called for each frame. Whether it is sampled. */
bool flow_sampler_takes(struct flow_sampler *sampler);

#endif
