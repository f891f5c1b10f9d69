/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes a frame through a table that software lays out, and on from there. */
#include "model/core/pd.h"
#include "model/port/port.h"
#include "model/steering/change.h"
#include "model/steering/meter.h"
#include "model/steering/sampler.h"
#include "model/steering/ste.h"
#include "model/steering/trace_flow.h"

/* Software's tables that lead to tables of the device, which lead to software's tables. */
#define MAX_NESTING 8

static void walk_sw_to_tir(struct walk *walk, const struct ste_walk *ste, uint32_t num)
{
    const struct obj *obj = obj_find(&walk->hca->tirs, num);

    if (obj && uid_may_use(obj, ste->uid)) {
        steering_deliver(walk, num, ste->flow_tag);
    }
}

static void walk_sw_to_table(struct walk *walk, const struct flow_table *from, uint32_t num)
{
    struct flow_table *next = steering_find_table(walk->hca, from->type, num);

    if (next && uid_may_use(&next->obj, from->obj.uid)) {
        steering_walk_table(walk, next);
    } else {
        walk->dropped = true;
    }
}

/* A copy may go through the sampler's first table; the frame goes on in the other. Only received
 * frames have samplers. */
static void walk_sw_to_sampler(struct walk *walk, const struct flow_table *from, uint32_t num)
{
    struct flow_sampler *sampler = flow_sampler_find(walk->hca, num);
    struct change_kept kept;

    if (!sampler || !uid_may_use(&sampler->obj, from->obj.uid) || steering_is_tx(from->domain)) {
        walk->dropped = true;
        return;
    }
    if (flow_sampler_takes(sampler)) {
        steering_keep(walk, &kept);
        steering_walk_table(walk, sampler->copies);
        steering_go_back(walk, &kept);
    }
    steering_walk_table(walk, sampler->all);
}

static void walk_sw_to_meter(struct walk *walk, const struct flow_table *from, uint32_t num)
{
    struct flow_meter *meter = flow_meter_find(walk->hca, num);

    if (!meter || !uid_may_use(&meter->obj, from->obj.uid) || meter->next->type != from->type) {
        walk->dropped = true;
        return;
    }
    steering_note_change(walk);
    walk->regs.c[PRM_GET(flow_meter, meter->ctx, return_reg_id)] =
        walk->counted ? meter->colour
                      : flow_meter_colour(walk->hca, meter, walk->len, walk->info->l3_off);
    steering_changed(walk);
    steering_walk_table(walk, meter->next);
}

/* Goes on with the frame as the entries have left it. */
static void walk_sw_end(struct walk *walk, const struct flow_table *table,
                        const struct ste_walk *ste, enum ste_end end, uint32_t num)
{
    if (end == STE_TIR && !ste->is_tx) {
        walk_sw_to_tir(walk, ste, num);
    } else if (end == STE_TABLE) {
        walk_sw_to_table(walk, table, num);
    } else if (end == STE_SAMPLER) {
        walk_sw_to_sampler(walk, table, num);
    } else if (end == STE_METER) {
        walk_sw_to_meter(walk, table, num);
    } else if (end != STE_ALLOW || !ste->is_tx) {
        walk->dropped = true;
    }
}

void steering_walk_software(struct walk *walk, const struct flow_table *table)
{
    struct ste_walk ste = {
        .hca = walk->hca,
        .uid = table->obj.uid,
        .is_tx = steering_is_tx(table->domain),
        .is_own = walk->from_td != PORT_NO_TD,
        .counted = walk->counted,
        .sqn = walk->sqn,
        .frame = walk->frame,
        .len = walk->len,
        .room = steering_free_place(walk),
        .regs = &walk->regs,
        .ip_id = &walk->hca->steering->ip_id,
        .steps = walk->steps,
    };
    enum ste_end end;
    uint32_t num;

    if (walk->nesting == MAX_NESTING) {
        walk->dropped = true;
        return;
    }
    end = ste_run(&ste, table->sw_root[0], STEERING_MAX_STEPS, &num);
    if (ste.changed) {
        end = steering_take_place(walk, &ste.packet) ? end : STE_DROP;
    }
    if (G_UNLIKELY(walk->hca->tracing)) {
        steering_trace_software(walk, table, ste.steps - walk->steps, end, num);
    }
    walk->nesting++;
    walk->steps = ste.steps;
    walk_sw_end(walk, table, &ste, end, num);
    walk->nesting--;
}
