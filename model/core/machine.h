/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small state machines as tables: what each event makes of each state.
 *
 * The state is a byte that its owner keeps; a table names the states and the events, and gives the
 * next state of each pair. An event that a state ignores changes nothing, and says so to the owner.
 * Each change is a line of the trace.
 */
#ifndef HCASIM_MODEL_MACHINE_H
#define HCASIM_MODEL_MACHINE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct hca;

#define MACHINE_IGNORES 0xff

struct machine {
    const char *name;
    const char *const *states, *const *events; /* their names */
    const uint8_t *next; /* [state * n_events + event]: the next state, or MACHINE_IGNORES */
    unsigned n_events;
};

/* A machine of the tables PREFIX_states, PREFIX_events and PREFIX_next. */
#define MACHINE(title, prefix)                                                                     \
    {                                                                                              \
        .name = title, .states = prefix##_states, .events = prefix##_events,                       \
        .next = prefix##_next, .n_events = G_N_ELEMENTS(prefix##_events),                          \
    }

/* Traces a change; qpn says whose machine it is. */
void machine_trace(const struct machine *machine, struct hca *hca, uint32_t qpn, uint8_t from,
                   uint8_t event);

/* False: the state ignores the event. */
static inline bool machine_step(const struct machine *machine, struct hca *hca, uint32_t qpn,
                                uint8_t *state, uint8_t event)
{
    uint8_t from = *state, to = machine->next[from * machine->n_events + event];

    if (to == MACHINE_IGNORES) {
        return false;
    }
    if (to != from) {
        *state = to;
        machine_trace(machine, hca, qpn, from, event);
    }
    return true;
}

#endif
