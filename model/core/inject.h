/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the device that its owner wants (wire/fault/fault.h): interrupts that come late,
 * doorbells that the device does not see, and receives that it returns. fw/inject.c has those of
 * the firmware.
 *
 * A function without such faults has no struct inject. A late interrupt waits for a timer of the
 * function. It ends with the interrupt, or with a reset or the end of the function, after which
 * nobody waits for it. If the owner takes the faults away, it is sent at once.
 */
#ifndef HCASIM_MODEL_INJECT_H
#define HCASIM_MODEL_INJECT_H

#include "model/core/hca.h"
#include "wire/fault/fault.h"

struct inject {
    struct fault_set *set;
    struct hca_timer timer; /* for the first late interrupt */
    unsigned vectors;
    uint64_t due_ns[]; /* by vector; UINT64_MAX: no interrupt waits */
};

/* From now on the function asks set. NULL: it has no faults. */
void inject_set(struct hca *hca, struct fault_set *set);
/* Forgets late interrupts; called after the timers are gone. */
void inject_reset(struct hca *hca);

/* These need a function with faults. inject_interrupt(), which hca.h declares: whether the
 * interrupt comes later. inject_doorbell(): whether the device does not see this doorbell.
 * inject_receive(): whether the device returns the receive of an SRQ whose page is missing. */
bool inject_doorbell(struct hca *hca, uint32_t qpn);
bool inject_receive(struct hca *hca, uint32_t qpn);

#endif
