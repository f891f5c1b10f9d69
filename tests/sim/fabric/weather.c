/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements weather.h. Each fault is two events of the timeline: its beginning and its end. */
#include "tests/sim/fabric/weather.h"
#include "tests/sim/fabric/witness.h"

static void weather_part(void *opaque, void *what)
{
    struct sim *sim = opaque;
    struct chance chance = chance_of(sim->options.seed, "island", GPOINTER_TO_SIZE(what));

    sim_note(NULL, "%u: hosts are parted", GPOINTER_TO_UINT(what));
    for (unsigned i = 0; i < fabric_num_ports(sim->fabric); i++) {
        fabric_set_island(sim->fabric, i, (unsigned)chance_below(&chance, 2));
    }
}

static void weather_join(void *opaque, void *what)
{
    struct sim *sim = opaque;

    sim_note(NULL, "hosts hear each other");
    for (unsigned i = 0; i < fabric_num_ports(sim->fabric); i++) {
        fabric_set_island(sim->fabric, i, 0);
    }
}

static void weather_pull(void *opaque, void *what)
{
    const struct sim *sim = opaque;

    sim_note(NULL, "the cable of host %u is out", GPOINTER_TO_UINT(what));
    fabric_set_cable(sim->fabric, GPOINTER_TO_UINT(what), false);
    witness_cable(sim->witness, GPOINTER_TO_UINT(what));
}

static void weather_plug(void *opaque, void *what)
{
    const struct sim *sim = opaque;

    sim_note(NULL, "the cable of host %u is in", GPOINTER_TO_UINT(what));
    fabric_set_cable(sim->fabric, GPOINTER_TO_UINT(what), true);
    witness_cable(sim->witness, GPOINTER_TO_UINT(what));
}

static void weather_spell(struct sim *sim, struct chance *chance, timeline_fn *begin,
                          timeline_fn *end, void *what)
{
    uint64_t now = sim->world->now_ns, storm = sim->options.storm * SIM_MS;
    uint64_t first = chance_below(chance, storm + 1);
    uint64_t last = first + chance_below(chance, (storm - first) / 2 + 1);

    timeline_at(sim->timeline, now + first, begin, sim, what);
    timeline_at(sim->timeline, now + last, end, sim, what);
}

void weather_begin(struct sim *sim)
{
    struct chance chance = chance_of(sim->options.seed, "weather", 0);

    for (unsigned i = 0; i < sim->options.partitions; i++) {
        weather_spell(sim, &chance, weather_part, weather_join, GSIZE_TO_POINTER(i));
    }
    for (unsigned i = 0; i < sim->options.flaps; i++) {
        unsigned host = (unsigned)chance_below(&chance, sim->options.hosts);

        if (sim->hosts[host].up) {
            weather_spell(sim, &chance, weather_pull, weather_plug, GUINT_TO_POINTER(host));
        }
    }
}
