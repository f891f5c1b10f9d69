/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of one frame through the tables of a domain, for the files of model/steering only. */
#ifndef HCASIM_MODEL_STEERING_WALK_H
#define HCASIM_MODEL_STEERING_WALK_H

#include "model/steering/tables.h"

struct walk {
    struct hca *hca;
    const uint8_t *frame;
    size_t len;
    const struct eth_info *info;
    uint32_t from_td;
    struct flow_key key;
    unsigned offered, delivered; /* copies offered to TIRs; copies that they took */
    unsigned steps;
    bool dropped;  /* by the action of an entry */
    bool switched; /* to the other domain, by the miss action of a table */
};

/* Goes on with the frame in this table (model/steering/walk.c). NULL: no further. */
void steering_walk_table(struct walk *walk, struct flow_table *table);
/* Does with the frame what the entry says (model/steering/apply.c). */
void steering_apply(struct walk *walk, const struct flow_entry *entry);

#endif
