/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the reference of what memory keys allow: where each byte of a key leads, through lists of
 * other keys. It shares no code with the device.
 */
#ifndef HCASIM_TESTS_KEYMAP_H
#define HCASIM_TESTS_KEYMAP_H

#include <stdbool.h>
#include <stdint.h>

#define KEYMAP_KEYS   14u
#define KEYMAP_RANGES 16u
#define KEYMAP_DEPTH  4u /* lists from the first key to the memory: max_indirection */

enum keymap_form {
    KEYMAP_MEMORY, /* leads to memory */
    KEYMAP_LIST,   /* KLMs: ranges of other keys, one after the other */
    KEYMAP_ROUNDS, /* interleaved: some bytes of each range in turn, round by round */
    KEYMAP_BLOCKS, /* KSMs: ranges of equal length */
};

struct keymap_key {
    uint32_t key; /* 0: there is none */
    bool free;
    enum keymap_form form;
    unsigned rights; /* enum ibv_access_flags; local reads are always allowed */
    unsigned pd;
    uint64_t start, len;
    uint32_t at; /* of KEYMAP_MEMORY: position of its first byte */
    unsigned num, rounds, log_block;
    struct keymap_range {
        uint32_t key, len, stride;
        uint64_t va;
    } range[KEYMAP_RANGES];
};

struct keymap {
    struct keymap_key key[KEYMAP_KEYS];
    uint32_t null; /* the null key */
};

const struct keymap_key *keymap_key(const struct keymap *m, uint32_t key);
/* Returns the position that byte va of the key leads to for an access that needs a right (0: local
 * read), MIRROR_NOWHERE, or MIRROR_FAULT. Reduces *run to the bytes that follow each other there.
 * depth: 1. */
uint32_t keymap_find(const struct keymap *m, uint32_t key, unsigned pd, unsigned need, uint64_t va,
                     uint32_t *run, unsigned depth);

#endif
