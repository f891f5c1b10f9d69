/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds what the program does to the trace file (setting `trace_file`): which work requests it
 * posts to send and receive queues, and which completions it polls. Callers check hv_traces first.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_TRACE_H
#define HCASIM_GUEST_LIB_VERBS_USER_TRACE_H

#include "guest-lib/verbs/user/cq.h"

/* The WQE that is complete in the ring, before the queue counts it. */
HV_COLD void hv_trace_post(struct user_qp *qp);
/* A receive WQE that is complete in the ring of a QP, or of an SRQ, and that the doorbell record
 * does not count yet. wqe: its index, as in the device's events. */
HV_COLD void hv_trace_receive(struct hv_hca *hca, bool is_srq, uint32_t number, uint32_t wqe,
                              uint64_t wr_id);
/* A CQE that was taken off its CQ. */
HV_COLD void hv_trace_poll(struct user_cq *cq, const struct prm_cqe64 *cqe,
                           const struct completion *done);

#endif
