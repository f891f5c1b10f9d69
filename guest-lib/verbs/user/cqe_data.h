/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small data that comes in a CQE instead of the WQE's buffers (docs/adr/0013): who polls copies it
 * there. Each returns what the work completion's status is, and comes before the WQE is given back.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_CQE_DATA_H
#define HCASIM_GUEST_LIB_VERBS_USER_CQE_DATA_H

#include "guest-lib/verbs/user/cq.h"

/* To the WQE that it names: of a receive queue, of an SRQ, of a send queue. */
enum ibv_wc_status hv_cqe_data_to_rq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct hv_wq *rq);
enum ibv_wc_status hv_cqe_data_to_srq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                      const struct hv_srq *srq);
enum ibv_wc_status hv_cqe_data_to_sq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct user_qp *qp);

#endif
