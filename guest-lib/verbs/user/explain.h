/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains error completions when they are polled (setting `explain`): which work request, which
 * rule, what to look at. One line each, in the log (kernel/refuse.h).
 *
 * What is said is what the requester or receiver can know: its own WQE, the regions of its context
 * and what the peer answered. The peer's log has the other half.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_EXPLAIN_H
#define HCASIM_GUEST_LIB_VERBS_USER_EXPLAIN_H

#include "guest-lib/verbs/user/cq.h"

/* Of a CQE that says REQ_ERR or RESP_ERR, before its WQE is taken off its queue. The CQ's lock is
 * held. */
HV_COLD void hv_explain(const struct user_cq *cq, const struct hv_rsc *rsc,
                        const struct prm_cqe64 *cqe, enum ibv_wc_status status);
/* Notes that the program moved the QP to a state: RESET and RTS forget errors. */
void hv_explain_moved(struct user_qp *qp, enum ibv_qp_state to);
/* Notes that the program moves the QP to ERR, which flushes WRs: before the command, because
 * another thread may poll a flushed WR before the command returns. With will false, the command has
 * failed. Returns whether that is new. */
bool hv_explain_moves(struct user_qp *qp, enum ibv_qp_state to, bool will);

#endif
