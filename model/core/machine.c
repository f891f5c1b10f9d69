/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces the changes of state machines. */
#include "model/core/hca.h"
#include "model/core/machine.h"

void machine_trace(const struct machine *machine, struct hca *hca, uint32_t qpn, uint8_t from,
                   uint8_t event)
{
    hca_log(hca, HCA_LOG_TRACE, "qp 0x%x: %s: %s -> %s (%s)", qpn, machine->name,
            machine->states[from], machine->states[machine->next[from * machine->n_events + event]],
            machine->events[event]);
}
