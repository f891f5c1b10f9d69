/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame that rules change: its VLAN tags, its source address, and a register that goes with it.
 * Nothing is parsed: a frame is the tags that it has now, and the rest as it was drawn.
 */
#ifndef HCASIM_TESTS_RULES_STATE_H
#define HCASIM_TESTS_RULES_STATE_H

#include "tests/sim/fabric/rules_frame.h"

#define RULES_TAGS 20u /* of a frame; random rules push fewer */

struct rules_tag {
    uint16_t tpid, tci;
};

/* What an entry changes. It removes tags, rewrites, and adds tags, in this order. */
struct rules_change {
    unsigned pops, pushes;
    struct rules_tag tag[2]; /* the first one is pushed first */
    unsigned rewrite;        /* 0: nothing; otherwise a list of rewrites, from 1 on */
};

/* A list of rewrites: the low bits of the source address, or register C0, or both. */
struct rules_rewrite {
    bool smac, reg;
    uint16_t smac_low;
    uint32_t reg_value;
};

struct rules_state {
    const struct rules_frame *frame;
    unsigned tags;
    struct rules_tag tag[RULES_TAGS]; /* the outer one first */
    uint16_t smac_low;
    uint32_t reg;
};

struct rules_state rules_state_of(const struct rules_frame *frame);
void rules_state_change(struct rules_state *state, const struct rules_change *change,
                        const struct rules_rewrite *rewrites);
/* Returns the value of a field. A frame with more than two tags is nothing but its addresses and
 * these tags. */
uint32_t rules_state_field(const struct rules_state *state, enum rules_field field);
bool rules_state_is_roce(const struct rules_state *state);
uint32_t rules_state_len(const struct rules_state *state);
/* Writes the frame as it is now, and returns its length. */
uint32_t rules_state_write(const struct rules_state *state, uint8_t bytes[RULES_FRAME_MOST]);
/* Returns a number that equal frames share. */
uint32_t rules_state_print(const uint8_t *bytes, uint32_t len);

#endif
