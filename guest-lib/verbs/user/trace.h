/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds what the program does to the trace file (setting `trace_file`): which work requests it
 * posts, and which completions it polls. Callers check hv_traces first.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_TRACE_H
#define HCASIM_GUEST_LIB_VERBS_USER_TRACE_H

#include "guest-lib/verbs/user/cq.h"

/* The WQE that is complete in the ring, before the queue counts it. */
HV_COLD void hv_trace_post(struct user_qp *qp);
/* A CQE that was taken off its CQ. */
HV_COLD void hv_trace_poll(struct user_cq *cq, const struct prm_cqe64 *cqe,
                           const struct completion *done);

#endif
