/* SPDX-License-Identifier: BSD-2-Clause */
/* Calculations with the data of a request (IBV_EXP_SEND_WITH_CALC), as the legacy library posts and
 * reports them (libmlx5: qp.c, verbs.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_CALC_H
#define HCASIM_GUEST_LIB_VERBS_EXP_CALC_H

#include <stdbool.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"

/*
 * The opmod of a request's control segment: 0 if the request asks for no calculation, or if it is
 * of an opcode whose flag the legacy library ignores. Returns 0, or EINVAL: there is no such
 * calculation, or the QP was not created for cross channel.
 */
int hv_exp_calc_opmod(const struct ibv_exp_send_wr *wr, bool is_cross_channel, uint8_t *opmod);

/* The capabilities of a device with cross channel. MAXLOC works, too, but is not among the reported
 * operations. */
void hv_exp_calc_caps(struct ibv_exp_device_calc_cap *caps);

#endif
