/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a device's trace as events: one JSON object for each, by the names of prm/.
 *
 *     "e":"wqe","qpn":75,"wqe":0,"psn":100,"opcode":"SEND","len":64,"fields":{"data":{...}}
 *     "e":"sent","n":12,"qpn":75,"dqpn":76,"opcode":"RC_SEND_ONLY","psn":100,"wqe":0,...
 *     "e":"cqe","cqn":1,"qpn":75,"wqe":0,"opcode":"REQ",...
 *
 * The keys that join events have the same name in all of them: qpn, wqe, psn, cqn. The owner adds
 * the time and the host (struct hca_host_ops, trace). docs/reference/trace.md describes the events.
 * Callers check hca->tracing first.
 */
#ifndef HCASIM_MODEL_TRACE_EVENT_H
#define HCASIM_MODEL_TRACE_EVENT_H

#include "model/core/trace.h"
#include "wire/fault/fault.h"

/* An event whose fields need more is written without them. */
#define TRACE_EVENT 16000

/* An event while it is written. */
struct trace_event {
    struct prm_line line;
    char text[TRACE_EVENT + 1];
};
void trace_event_begin(struct trace_event *event, const char *kind);
/* Adds a constant by its name; without a name, by its number. */
void trace_event_add_name(struct trace_event *event, const char *key, const char *enum_name,
                          uint64_t value);
void trace_event_end(struct hca *hca, struct trace_event *event);

struct trace_frame {
    bool is_sent, has_icrc;
    const uint8_t *bytes;
    size_t len;
    const struct wire_note *note; /* or NULL */
    const char *lost;             /* or NULL */
};

void trace_event_command(struct hca *hca, const struct trace_command *what);
void trace_event_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe);
void trace_event_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe);
void trace_event_irq(struct hca *hca, uint32_t eqn, unsigned vector);
void trace_event_qp_state(struct hca *hca, uint32_t qpn, uint8_t from, uint8_t to);
void trace_event_frame(struct hca *hca, const struct trace_frame *frame);
/* ctrl: the first 8 bytes of the control segment of the last WQE. */
void trace_event_doorbell(struct hca *hca, uint32_t qpn, uint64_t ctrl);

/* The effects of fault rules. A frame that is lost is an event of its own kind, "lost". */
void trace_event_fault(struct hca *hca, const struct fault_deed *deed);
/* The device reads the doorbell record of a receive queue and finds new WQEs: the counter was
 * before, and is now. is_srq: number is that of an SRQ; else of a QP. */
void trace_event_posted(struct hca *hca, bool is_srq, uint32_t number, uint16_t before,
                        uint16_t now);

#endif
