/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies small data that arrives in a CQE to the buffers of its WQE (docs/adr/0013). The thread
 * that polls calls these functions, before the WQE is given back. Each returns the status of the
 * work completion.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_CQE_DATA_H
#define HCASIM_GUEST_LIB_VERBS_USER_CQE_DATA_H

#include "guest-lib/verbs/user/cq.h"

/* The WQE that the CQE names is in a receive queue, in an SRQ, or in a send queue. */
enum ibv_wc_status hv_cqe_data_to_rq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct hv_wq *rq);
enum ibv_wc_status hv_cqe_data_to_srq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                      const struct hv_srq *srq);
enum ibv_wc_status hv_cqe_data_to_sq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct user_qp *qp);

#endif
