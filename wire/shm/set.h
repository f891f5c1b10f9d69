/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of members, in shared memory: who adds one and who takes them do not wait for each other,
 * and to see that there is nothing new costs one look, however many members there may be.
 *
 * A member's bit is in a word, and the word's bit in `some`, set after it: the word may have
 * something that nobody has looked at. Who looks clears the word's bit first. (Who dies between the
 * two leaves a bit that counts when another one of its word is set.)
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

/* Whether there may be something that nobody has looked at. */
static inline bool shm_set_any(struct shm_set *set)
{
    return atomic_load_explicit(&set->some, memory_order_relaxed);
}

/* Words to look at now; of those nobody needs to be told again. */
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
