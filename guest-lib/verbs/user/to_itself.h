/* SPDX-License-Identifier: BSD-2-Clause */
/* RC QPs of the library's own that are connected to themselves: the command QP of tag matching, the
 * queue of an erasure code. */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_TO_ITSELF_H
#define HCASIM_GUEST_LIB_VERBS_USER_TO_ITSELF_H

#include "guest-lib/verbs/verbs.h"

/*
 * Takes a new QP to RTS. Its path is the port's own address: a connected QP needs a path, although
 * nothing leaves the device. chosen: path_mtu, min_rnr_timer, timeout, retry_cnt, rnr_retry and
 * max_rd_atomic. Returns 0 or errno.
 */
int hv_connect_to_itself(struct ibv_qp *qp, const struct ibv_qp_attr *chosen);

#endif
