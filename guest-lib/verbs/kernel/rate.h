/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates of packet pacing: who uses which index of the device's table (rate.c).
 *
 * Equal rates share an index, except dedicated ones. An index ends with its last user, who tells by
 * hv_rate_remove(): a raw packet QP when its SQ leaves the state RDY, gets another rate or is
 * destroyed; an object of mlx5dv_pp_alloc() when it is freed or its file closes.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_RATE_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_RATE_H

#include "guest-lib/verbs/dv.h"

/* The user whose rates every queue may name (MLX5_SHARED_RESOURCE_UID). */
#define HV_UID_SHARED 0xffff

/* EINVAL if the rate has a burst or a usual size that the device does not take, or that has no rate
 * to belong to; else 0. */
int hv_rate_check(struct hv_hca *hca, const struct hv_rate *rate);

/* Adds a user of the rate, and stores its index: 0 or errno. EOPNOTSUPP: the device paces no
 * packets; EINVAL: the rate is 0 or outside the device's limits; ENOSPC: the table is full. uid:
 * whose queues may name the index. */
int hv_rate_add(struct hv_hca *hca, const struct prm_set_pp_rate_limit_context *ctx, uint16_t uid,
                bool dedicated, uint16_t *index);
/* Removes a user of the index. Index 0, no rate, has none. */
void hv_rate_remove(struct hv_hca *hca, uint16_t index);

/* Ends an object of mlx5dv_pp_alloc(): 0 or errno. The structure stays. */
int uverbs_free_pp(struct hv_dv_pp *pp);

#endif
