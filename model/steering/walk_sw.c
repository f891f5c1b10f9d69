/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes a frame through a table that software lays out, and on from there. */
#include "model/core/pd.h"
#include "model/port/port.h"
#include "model/steering/change.h"
#include "model/steering/ste.h"

/* Software's tables that lead to tables of the device, which lead to software's tables. Each of
 * them has room for a frame that it changes. */
#define MAX_NESTING 8

/* Goes on with the frame as the entries have left it. */
static void walk_sw_end(struct walk *walk, const struct ste_walk *ste, enum ste_end end,
                        uint32_t num)
{
    const struct obj *obj;

    if (end == STE_TIR) {
        obj = obj_find(&walk->hca->tirs, num);
        if (obj && uid_may_use(obj, ste->uid)) {
            steering_deliver(walk, num, ste->flow_tag);
        }
    } else if (end == STE_TABLE) {
        struct flow_table *next = steering_find_table(walk->hca, PRM_FLOW_TABLE_TYPE_NIC_RX, num);

        if (next && uid_may_use(&next->obj, ste->uid)) {
            steering_walk_table(walk, next);
        }
    } else {
        walk->dropped = true;
    }
}

/* Goes on with the frame that the entries have made. False: it is none. */
static bool walk_sw_take(struct walk *walk, const struct ste_walk *ste, struct eth_info *info)
{
    steering_note_change(walk);
    walk->frame = ste->frame;
    walk->len = ste->len;
    walk->info = info;
    steering_changed(walk);
    return eth_parse(ste->frame, ste->len, info);
}

void steering_walk_software(struct walk *walk, const struct flow_table *table)
{
    uint8_t room[STE_ROOM];
    struct change_kept kept;
    struct eth_info info;
    struct ste_walk ste = {
        .hca = walk->hca,
        .uid = table->obj.uid,
        .is_own = walk->from_td != PORT_NO_TD,
        .sqn = walk->sqn,
        .frame = walk->frame,
        .len = walk->len,
        .room = room,
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
    steering_keep(walk, &kept);
    end = ste_run(&ste, table->sw_root[0], STEERING_MAX_STEPS, &num);
    walk->nesting++;
    walk->steps = ste.steps;
    if (ste.changed) {
        end = walk_sw_take(walk, &ste, &info) ? end : STE_DROP;
    }
    walk_sw_end(walk, &ste, end, num);
    walk->nesting--;
    /* other destinations of the entry that led here get the frame as it was */
    steering_go_back(walk, &kept);
}
