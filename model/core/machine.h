/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small state machines as tables: the next state for each state and event.
 *
 * The state is a byte that its owner keeps. A table names the states and the events, and gives the
 * next state of each pair. An event that a state ignores changes nothing, and machine_step()
 * returns false. The trace has a line for each change.
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

/* Defines a machine from the tables PREFIX_states, PREFIX_events and PREFIX_next. */
#define MACHINE(title, prefix)                                                                     \
    {                                                                                              \
        .name = title, .states = prefix##_states, .events = prefix##_events,                       \
        .next = prefix##_next, .n_events = G_N_ELEMENTS(prefix##_events),                          \
    }

/* Traces a change; qpn names the QP whose machine changes. */
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
