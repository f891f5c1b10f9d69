/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds to the trace how a frame goes through the flow tables: what each table does with it.
 *
 *     NIC_RX table 0x2: entry 3 of group 1: FWD_DEST COUNT to table 0x4
 *     NIC_RX table 0x4: no entry matches: to table 0x6
 *     NIC_RX table 0x6: entries of software, 12 steps: to TIR 0x8
 *
 * Callers check hca->tracing first. The functions use some KiB of the stack and return before the
 * walk goes on.
 */
#ifndef HCASIM_MODEL_STEERING_TRACE_FLOW_H
#define HCASIM_MODEL_STEERING_TRACE_FLOW_H

#include "model/steering/ste.h"
#include "model/steering/walk.h"

/* The entry takes the frame. */
void steering_trace_entry(const struct walk *walk, const struct flow_table *table,
                          const struct flow_entry *entry);
/* No entry matches. next: the table that follows, or NULL. */
void steering_trace_miss(const struct walk *walk, const struct flow_table *table,
                         const struct flow_table *next);
/* The entries that software has laid out in the table led the frame to end, which is number num of
 * its kind, in so many steps. */
void steering_trace_software(const struct walk *walk, const struct flow_table *table,
                             unsigned steps, enum ste_end end, uint32_t num);

#endif
