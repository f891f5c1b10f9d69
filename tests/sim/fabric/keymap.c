/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements keymap.h. */
#include "tests/sim/fabric/keymap.h"
#include <glib.h>
#include "tests/sim/fabric/mirror.h"

#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

const struct keymap_key *keymap_key(const struct keymap *m, uint32_t key)
{
    for (unsigned i = 0; i < KEYMAP_KEYS; i++) {
        if (key && m->key[i].key == key) {
            return &m->key[i];
        }
    }
    return NULL;
}

/* Finds the range of a list or of a round that has byte *at, which becomes the address in that
 * range's key. *left receives how many bytes of the range there are from there on. */
static const struct keymap_range *keymap_range_of(const struct keymap_key *k, uint64_t *at,
                                                  uint64_t *left)
{
    const struct keymap_range *range = k->range;
    uint64_t round_len = 0, round = 0;

    for (unsigned i = 0; i < k->num; i++) {
        round_len += k->range[i].len;
    }
    if (round_len) {
        round = *at / round_len;
        *at %= round_len;
    }
    if (!round_len || round >= k->rounds) {
        return NULL;
    }
    while (*at >= range->len) {
        *at -= range++->len;
    }
    *left = range->len - *at;
    *at += range->va + round * range->stride;
    return range;
}

/* The same of a list whose ranges have equal lengths. */
static const struct keymap_range *keymap_block_of(const struct keymap_key *k, uint64_t *at,
                                                  uint64_t *left)
{
    uint64_t block = 1ull << k->log_block, nth = *at / block;

    *left = block - *at % block;
    *at = nth < k->num ? k->range[nth].va + *at % block : 0;
    return nth < k->num ? &k->range[nth] : NULL;
}

uint32_t keymap_find(const struct keymap *m, uint32_t key, unsigned pd, unsigned need, uint64_t va,
                     uint32_t *run, unsigned depth)
{
    const struct keymap_key *k = keymap_key(m, key);
    const struct keymap_range *range;
    uint64_t at, left;

    if (key == m->null) {
        return need & ~(unsigned)IBV_ACCESS_LOCAL_WRITE ? MIRROR_FAULT : MIRROR_NOWHERE;
    }
    if (!k || k->free || k->pd != pd || need & ~k->rights ||
        (depth > KEYMAP_DEPTH && k->form != KEYMAP_MEMORY)) {
        return MIRROR_FAULT;
    }
    if (va < k->start || va - k->start >= k->len) {
        *run = va < k->start ? (uint32_t)MIN(*run, k->start - va) : *run;
        return MIRROR_FAULT;
    }
    at = va - k->start;
    *run = (uint32_t)MIN(*run, k->len - at);
    if (k->form == KEYMAP_MEMORY) {
        return k->at + (uint32_t)at;
    }
    range =
        k->form == KEYMAP_BLOCKS ? keymap_block_of(k, &at, &left) : keymap_range_of(k, &at, &left);
    if (!range) {
        return MIRROR_FAULT;
    }
    *run = (uint32_t)MIN(*run, left);
    return keymap_find(m, range->key, pd, need & WRITES ? IBV_ACCESS_LOCAL_WRITE : 0, at, run,
                       depth + 1);
}
