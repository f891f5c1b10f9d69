/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements sampler.h. */
#include "model/steering/sampler.h"
#include "model/core/pd.h"
#include "model/steering/ste.h"
#include "model/steering/tables.h"

/* xorshift64* */
static void sampler_choose(struct flow_sampler *sampler)
{
    uint64_t x = sampler->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    sampler->random = x;
    sampler->chosen = (uint32_t)((x * 0x2545f4914f6cdd1dull) >> 32) % sampler->ratio;
}

bool flow_sampler_takes(struct flow_sampler *sampler)
{
    bool takes = sampler->at == sampler->chosen;

    if (++sampler->at == sampler->ratio) {
        sampler->at = 0;
        sampler_choose(sampler);
    }
    return takes;
}

/* Finds a table to which the sampler leads. It must have a higher level, unless levels are ignored;
 * if that makes a loop, the walk of a frame is cut off. */
static enum syn sampler_find_table(struct hca *hca, uint16_t uid,
                                   const struct prm_flow_sampler *object, uint32_t id,
                                   struct flow_table **table)
{
    enum syn syn;

    *table = steering_find_table(hca, (uint8_t)PRM_GET(flow_sampler, object, table_type), id);
    syn = uid_check((const struct obj *)*table, uid, SYN_FT_NOT_FOUND);
    return syn == SYN_OK && !PRM_GET(flow_sampler, object, ignore_flow_level) &&
                   (*table)->level <= PRM_GET(flow_sampler, object, level)
               ? SYN_FT_LEVEL
               : syn;
}

enum syn flow_sampler_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num)
{
    const struct prm_flow_sampler *in = object;
    struct flow_table *copies, *all;
    struct flow_sampler *sampler;
    enum syn syn;

    if (PRM_GET(flow_sampler, in, table_type) != PRM_FLOW_TABLE_TYPE_NIC_RX) {
        return SYN_FT_TYPE;
    }
    if (!PRM_GET(flow_sampler, in, sample_ratio)) {
        return SYN_SAMPLER_RATIO;
    }
    syn = sampler_find_table(hca, uid, in, PRM_GET(flow_sampler, in, sample_table_id), &copies);
    if (syn == SYN_OK) {
        syn = sampler_find_table(hca, uid, in, PRM_GET(flow_sampler, in, default_table_id), &all);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    sampler = obj_make(hca, OBJ_SAMPLER, uid, sizeof(*sampler));
    if (!sampler) {
        return SYN_NO_MEMORY;
    }
    *sampler->ctx = *in;
    PRM_SET(flow_sampler, sampler->ctx, sw_steering_icm_address_rx,
            ste_end_address(STE_SAMPLER, sampler->obj.num));
    sampler->copies = copies;
    sampler->all = all;
    obj_ref(&sampler->obj, &copies->obj);
    obj_ref(&sampler->obj, &all->obj);
    sampler->ratio = PRM_GET(flow_sampler, in, sample_ratio);
    sampler->random = (uint64_t)sampler->obj.num * 0x9e3779b97f4a7c15ull;
    sampler_choose(sampler);
    *num = sampler->obj.num;
    return SYN_OK;
}

void flow_sampler_free(struct hca *hca, struct obj *obj)
{
    struct flow_sampler *sampler = (struct flow_sampler *)obj;

    obj_unref(obj, &sampler->copies->obj);
    obj_unref(obj, &sampler->all->obj);
    obj_end(hca, obj);
}
