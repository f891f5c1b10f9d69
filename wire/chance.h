/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws the random choices of a seed. Each subject (a link, a job, the order of the jobs) has its
 * own stream, made of the seed, the subject's name and its number. So leaving out one subject
 * changes nothing for the others. The generator is SplitMix64 (Steele, Lea, Flood, 2014): integers
 * only, the same on every machine.
 */
#ifndef HCASIM_WIRE_CHANCE_H
#define HCASIM_WIRE_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct chance {
    uint64_t state;
};

#define CHANCE_MILLION 1000000u

static inline uint64_t chance_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline uint64_t chance_next(struct chance *c)
{
    c->state += 0x9e3779b97f4a7c15ull;
    return chance_mix(c->state);
}

static inline struct chance chance_of(uint64_t seed, const char *subject, uint64_t number)
{
    struct chance c = {chance_mix(seed + 0x9e3779b97f4a7c15ull)};

    for (; *subject; subject++) {
        c.state = chance_mix(c.state ^ (uint8_t)*subject) + 1;
    }
    c.state = chance_mix(c.state ^ number);
    return c;
}

/* A number below n; n is not 0. */
static inline uint64_t chance_below(struct chance *c, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)chance_next(c) * n) >> 64);
}

/* From least to most. */
static inline uint64_t chance_from(struct chance *c, uint64_t least, uint64_t most)
{
    return least + chance_below(c, most - least + 1);
}

/* True with a probability of per_million / 1,000,000. If per_million is 0, draws nothing. */
static inline bool chance_happens(struct chance *c, unsigned per_million)
{
    return per_million && chance_below(c, CHANCE_MILLION) < per_million;
}

/* True once in n. */
static inline bool chance_one_in(struct chance *c, unsigned n)
{
    return chance_below(c, n) == 0;
}

static inline void chance_fill(struct chance *c, void *to, size_t len)
{
    uint8_t *at = to;

    while (len) {
        uint64_t word = chance_next(c);
        size_t now = len < sizeof(word) ? len : sizeof(word);

        memcpy(at, &word, now);
        at += now;
        len -= now;
    }
}

#endif
