/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys by which entries are found: what a frame must have to match one.
 *
 * A group's mask says which words of fte_match_param count. Its entries are stored and found under
 * these words only, so that a group costs what its mask has, however large match parameters are and
 * however many entries it has.
 */
#ifndef HCASIM_MODEL_STEERING_KEY_H
#define HCASIM_MODEL_STEERING_KEY_H

#include <glib.h>
#include "model/core/syndrome.h"
#include "prm/prm.h"

/* Sections of fte_match_param (PRM_MATCH_CRITERIA_), which all have the same size. */
#define MATCH_SECTIONS      7
#define MATCH_SECTION_WORDS (PRM_SIZE(fte_match_set_lyr_2_4) / 4)
#define MATCH_WORDS         (MATCH_SECTIONS * MATCH_SECTION_WORDS)

/* The domains; each has a root table of its own. */
enum steering_domain {
    STEERING_NIC_RX,
    STEERING_NIC_TX,
    STEERING_RDMA_RX,
    STEERING_RDMA_TX,
    STEERING_SNIFFER_RX,
    STEERING_SNIFFER_TX,
    STEERING_DOMAINS
};

/* Domains, in model/steering/match_fields.def. */
#define IN(domain) (1u << STEERING_##domain)
#define IN_ALL     ((1u << STEERING_DOMAINS) - 1)

/* A group's mask. */
struct flow_mask {
    uint8_t enable;   /* bits 1 << PRM_MATCH_CRITERIA_, as in the command */
    uint8_t sections; /* bits of the sections in which words count */
    uint8_t num_words;
    uint8_t at[MATCH_WORDS];    /* which words count, ascending */
    uint32_t word[MATCH_WORDS]; /* the bits that count in the word at[i]: a word of memory */
};

/* Values under a mask: the words that count, in the mask's order. */
struct flow_key {
    uint32_t num_words;
    uint32_t word[];
};

/* Takes the words that count from match parameters, or from a frame's key; key has room for
 * mask->num_words. */
static inline void flow_key_take(struct flow_key *key, const uint32_t *words,
                                 const struct flow_mask *mask)
{
    key->num_words = mask->num_words;
    for (unsigned i = 0; i < mask->num_words; i++) {
        key->word[i] = words[mask->at[i]] & mask->word[i];
    }
}

/* An empty hash table whose keys are struct flow_key under the same mask. */
GHashTable *flow_key_table_new(void);
/* Reads a group's mask. SYN_FG_CRITERIA: it has fields that tables of this domain cannot match, or
 * a section that is not enabled. */
enum syn flow_mask_read(enum steering_domain domain, const struct prm_create_flow_group_in *in,
                        struct flow_mask *mask);
/* Writes match parameters. */
void flow_mask_write(const struct flow_mask *mask, struct prm_fte_match_param *param);
void flow_key_write(const struct flow_key *key, const struct flow_mask *mask,
                    struct prm_fte_match_param *param);

/* Chooses the factors of the hash and collects what can be matched, once in a process. */
void flow_key_init(void);

#endif
