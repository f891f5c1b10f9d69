/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of members, in shared memory. A process that adds a member and a process that takes members
 * do not wait for each other. One load tells that there is nothing new, however many members there
 * are.
 *
 * A member has a bit in a word. The word has a bit in `some`, which is set after the member's bit
 * and means that the word may have something that no reader has seen. A reader clears the bit in
 * `some` first and then reads the word. (If a process dies between its two writes, its bit is seen
 * when another member of the same word is added.)
 */
#ifndef HCASIM_WIRE_SHM_SET_H
#define HCASIM_WIRE_SHM_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SHM_MEMBERS = 1024,
    SHM_WORDS = SHM_MEMBERS / 64,
    SHM_LINE = 64,
};

struct shm_set {
    _Alignas(SHM_LINE) _Atomic uint64_t some; /* bit w: word[w] */
    _Atomic uint64_t word[SHM_WORDS];
};

static inline void shm_set_add(struct shm_set *set, unsigned id)
{
    atomic_fetch_or(&set->word[id / 64], 1ull << id % 64);
    atomic_fetch_or(&set->some, 1ull << id / 64);
}

static inline void shm_set_remove(struct shm_set *set, unsigned id)
{
    atomic_fetch_and(&set->word[id / 64], ~(1ull << id % 64));
}

static inline bool shm_set_has(struct shm_set *set, unsigned id)
{
    return atomic_load_explicit(&set->word[id / 64], memory_order_relaxed) >> id % 64 & 1;
}

/* Whether there may be something that no reader has seen. */
static inline bool shm_set_any(struct shm_set *set)
{
    return atomic_load_explicit(&set->some, memory_order_relaxed);
}

/* Returns a bit for each word to look at now, and clears `some`: these words are not reported
 * again. */
static inline uint64_t shm_set_take_some(struct shm_set *set)
{
    return atomic_exchange(&set->some, 0) & ((1ull << SHM_WORDS) - 1);
}

static inline void shm_set_clear(struct shm_set *set)
{
    atomic_store(&set->some, 0);
    for (unsigned w = 0; w < SHM_WORDS; w++) {
        atomic_store(&set->word[w], 0);
    }
}

#endif
