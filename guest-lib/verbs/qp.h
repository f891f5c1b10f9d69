/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files about queue pairs share. */
#ifndef HCASIM_GUEST_LIB_VERBS_QP_H
#define HCASIM_GUEST_LIB_VERBS_QP_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/verbs.h"

void hv_qp_modify_ops(struct verbs_context *ops);
void hv_qp_send_ops(struct verbs_context *ops);
/* Fills in ibv_wr_*(): 0, or EOPNOTSUPP if an operation is not the service type's. */
int hv_qp_init_builders(struct hv_qp *qp, uint64_t send_ops_flags);

#endif
