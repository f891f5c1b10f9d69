/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of entries: what a frame must have to match one (model/steering/key.c).
 */
#ifndef HCASIM_MODEL_STEERING_KEY_H
#define HCASIM_MODEL_STEERING_KEY_H

#include <glib.h>
#include "model/core/syndrome.h"
#include "prm/prm.h"
#include "wire/encap/eth.h"

#define KEY_WORDS (PRM_SIZE(fte_match_set_lyr_2_4) / 4)

/* The outer headers of a frame, or a mask, or a masked value: fte_match_set_lyr_2_4 as memory
 * words. */
struct flow_key {
    uint32_t word[KEY_WORDS];
};

static inline void flow_key_mask(struct flow_key *out, const struct flow_key *key,
                                 const struct flow_key *mask)
{
    for (unsigned i = 0; i < KEY_WORDS; i++) {
        out->word[i] = key->word[i] & mask->word[i];
    }
}

/* An empty hash table whose keys are struct flow_key. */
GHashTable *flow_key_table_new(void);
/* Reads a group's mask. SYN_FG_CRITERIA: it has fields that cannot be matched. */
enum syn flow_key_read_mask(const struct prm_create_flow_group_in *in, struct flow_key *mask);
/* Reads an entry's values, of which the bits outside the mask do not count. */
void flow_key_read_value(const struct prm_flow_context *ctx, const struct flow_key *mask,
                         struct flow_key *key);
/* Fills in the key of a frame. */
void flow_key_from_frame(struct flow_key *out, const uint8_t *frame, const struct eth_info *info);

/* Chooses the factors of the hash, once in a process. */
void flow_key_init(void);

#endif
