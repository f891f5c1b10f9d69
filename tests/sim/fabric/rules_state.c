/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules_state.h. */
#include "tests/sim/fabric/rules_state.h"
#include <glib.h>
#include <string.h>

#define ADDRESSES 12u
#define TAG       4u
#define CVLAN     0x8100
#define SVLAN     0x88a8

struct rules_state rules_state_of(const struct rules_frame *frame)
{
    struct rules_state state = {.frame = frame,
                                .tags = frame->tags,
                                .smac_low = (uint16_t)frame->field[RULES_OUTER_SMAC_LOW]};

    for (unsigned i = 0; i < frame->tags; i++) {
        state.tag[i] = (struct rules_tag){frame->tpid[i], frame->tci[i]};
    }
    return state;
}

static void rules_pop(struct rules_state *state)
{
    if (state->tags) {
        state->tags--;
        memmove(state->tag, state->tag + 1, state->tags * sizeof(state->tag[0]));
    }
}

static void rules_push(struct rules_state *state, struct rules_tag tag)
{
    g_assert_cmpuint(state->tags, <, RULES_TAGS);
    memmove(state->tag + 1, state->tag, state->tags * sizeof(state->tag[0]));
    state->tag[0] = tag;
    state->tags++;
}

void rules_state_change(struct rules_state *state, const struct rules_change *change,
                        const struct rules_rewrite *rewrites)
{
    const struct rules_rewrite *rewrite = &rewrites[change->rewrite];

    for (unsigned i = 0; i < change->pops; i++) {
        rules_pop(state);
    }
    state->smac_low = rewrite->smac ? rewrite->smac_low : state->smac_low;
    state->reg = rewrite->reg ? rewrite->reg_value : state->reg;
    for (unsigned i = 0; i < change->pushes; i++) {
        rules_push(state, change->tag[i]);
    }
}

/* The fields of a tag, in their order in rules_fields.def. */
static uint32_t rules_tag_field(const struct rules_tag *tag, unsigned nth)
{
    const uint32_t fields[] = {tag->tci >> 13u, tag->tci >> 12 & 1u, tag->tci & 0xfffu,
                               tag->tpid == CVLAN, tag->tpid == SVLAN};

    return fields[nth];
}

uint32_t rules_state_field(const struct rules_state *state, enum rules_field field)
{
    static const struct rules_tag none;

    if (field >= RULES_OUTER_PRIO && field <= RULES_OUTER_SVLAN) {
        return rules_tag_field(state->tags > 0 ? &state->tag[0] : &none, field - RULES_OUTER_PRIO);
    }
    if (field >= RULES_OUTER_PRIO_2 && field <= RULES_OUTER_SVLAN_2) {
        return rules_tag_field(state->tags > 1 ? &state->tag[1] : &none,
                               field - RULES_OUTER_PRIO_2);
    }
    switch (field) {
    case RULES_OUTER_SMAC_LOW:
        return state->smac_low;
    case RULES_REG_C0:
        return state->reg;
    case RULES_OUTER_ETHERTYPE:
        return state->tags > 2 ? state->tag[2].tpid : state->frame->field[field];
    case RULES_OUTER_DMAC_HIGH:
    case RULES_OUTER_DMAC_LOW:
    case RULES_OUTER_SMAC_HIGH:
    case RULES_SOURCE_SQ:
        return state->frame->field[field];
    default:
        return state->tags > 2 ? 0 : state->frame->field[field];
    }
}

/* RoCE packets have one tag at most, a C-VLAN tag. */
bool rules_state_is_roce(const struct rules_state *state)
{
    return state->frame->is_roce &&
           (!state->tags || (state->tags == 1 && state->tag[0].tpid == CVLAN));
}

uint32_t rules_state_len(const struct rules_state *state)
{
    return state->frame->len + TAG * state->tags - TAG * state->frame->tags;
}

uint32_t rules_state_write(const struct rules_state *state, uint8_t bytes[RULES_FRAME_MOST])
{
    const struct rules_frame *frame = state->frame;
    uint32_t at = ADDRESSES, from = ADDRESSES + TAG * frame->tags;

    memcpy(bytes, frame->bytes, ADDRESSES);
    bytes[10] = (uint8_t)(state->smac_low >> 8);
    bytes[11] = (uint8_t)state->smac_low;
    for (unsigned i = 0; i < state->tags; i++, at += TAG) {
        bytes[at] = (uint8_t)(state->tag[i].tpid >> 8);
        bytes[at + 1] = (uint8_t)state->tag[i].tpid;
        bytes[at + 2] = (uint8_t)(state->tag[i].tci >> 8);
        bytes[at + 3] = (uint8_t)state->tag[i].tci;
    }
    g_assert_cmpuint(at + frame->len - from, <=, RULES_FRAME_MOST);
    memcpy(bytes + at, frame->bytes + from, frame->len - from);
    return at + frame->len - from;
}

uint32_t rules_state_print(const uint8_t *bytes, uint32_t len)
{
    uint32_t print = 2166136261u; /* FNV-1a */

    for (uint32_t i = 0; i < len; i++) {
        print = (print ^ bytes[i]) * 16777619u;
    }
    return print;
}
