/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds from the environment; see tests/sim/seeds.h. */
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include "tests/sim/seeds.h"

uint64_t seeds_number(const char *name, uint64_t usual, uint64_t least, uint64_t most)
{
    const char *text = g_getenv(name);
    guint64 value;

    if (!text) {
        return usual;
    }
    if (!g_ascii_string_to_unsigned(text, 10, least, most, &value, NULL)) {
        g_printerr("%s=%s: not a number from %" PRIu64 " to %" PRIu64 "\n", name, text, least,
                   most);
        exit(EXIT_FAILURE);
    }
    return value;
}

struct seeds seeds_of_run(uint32_t usual)
{
    struct seeds seeds = {
        .first = (uint32_t)seeds_number("HCASIM_SIM_SEED", 1, 0, UINT32_MAX),
    };
    uint64_t room = MIN(UINT32_MAX - (uint64_t)seeds.first + 1, INT32_MAX);

    seeds.num = (uint32_t)seeds_number("HCASIM_SIM_SEEDS", MIN(usual, room), 1, room);
    return seeds;
}
