/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "tests/sim/storm.h"

void storm_init(struct storm *s, uint32_t seed)
{
    memset(s, 0, sizeof(*s));
    s->rand = g_rand_new_with_seed(seed);
}

void storm_clear(struct storm *s)
{
    g_rand_free(s->rand);
}

void storm_num(struct storm *s, uint32_t num)
{
    if (s->num_nums < STORM_MAX) {
        s->nums[s->num_nums++] = num;
    }
}

void storm_addr(struct storm *s, uint64_t addr)
{
    if (s->num_addrs < STORM_MAX) {
        s->addrs[s->num_addrs++] = addr;
    }
}

uint32_t storm_upto(struct storm *s, uint32_t max)
{
    return max == UINT32_MAX ? g_rand_int(s->rand) : g_rand_int(s->rand) % (max + 1);
}

uint32_t storm_word(struct storm *s)
{
    uint32_t num = s->num_nums ? s->nums[storm_upto(s, s->num_nums - 1)] : 1;

    switch (storm_upto(s, 9)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return storm_upto(s, 64);
    case 3:
        return 1u << storm_upto(s, 31);
    case 4:
        return num << 8;
    case 5:
        return g_rand_int(s->rand) & g_rand_int(s->rand) & g_rand_int(s->rand);
    case 6:
        return g_rand_int(s->rand);
    default:
        return num;
    }
}

uint64_t storm_address(struct storm *s)
{
    uint64_t addr = s->num_addrs ? s->addrs[storm_upto(s, s->num_addrs - 1)] : 0;

    switch (storm_upto(s, 7)) {
    case 0:
        return (uint64_t)g_rand_int(s->rand) << 32 | g_rand_int(s->rand);
    case 1:
        return UINT64_MAX - storm_upto(s, 8192);
    case 2:
        return storm_upto(s, 8192);
    case 3:
        return addr + storm_upto(s, 1 << 20);
    default:
        return addr;
    }
}

void storm_bend(struct storm *s, uint8_t *p, size_t len)
{
    unsigned n = 1 + storm_upto(s, storm_upto(s, 3) ? 4 : 40);

    while (n-- && len >= 4) {
        size_t at = storm_upto(s, (uint32_t)(len / 4 - 1)) * 4;

        if (storm_upto(s, 4) == 0 && at + 8 <= len) {
            prm_store64(p + at, storm_address(s));
        } else if (storm_upto(s, 3) == 0) {
            p[at + storm_upto(s, 3)] = (uint8_t)storm_word(s);
        } else {
            prm_store32(p + at, storm_word(s));
        }
    }
}
