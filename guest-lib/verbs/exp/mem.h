/* SPDX-License-Identifier: BSD-2-Clause */
/* Experimental verbs about memory: what their files share, and what other topics need of them. */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_MEM_H
#define HCASIM_GUEST_LIB_VERBS_EXP_MEM_H

#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/user/qp.h"

/* As the old library: the most keys of a UMR inside its WQE. */
#define HV_EXP_MAX_INLINE_KLMS 20u

/* Builds the WQE of IBV_EXP_WR_UMR_FILL or IBV_EXP_WR_UMR_INVALIDATE, between hv_wr_begin_list()
 * and hv_wr_end_list(). Errors are in qp->wr_err. Its completion has the opcode IBV_WC_DRIVER1, as
 * that of each UMR. */
void hv_exp_put_umr(struct user_qp *qp, const struct ibv_exp_send_wr *wr);

/* Device memory of a program with experimental verbs. */
struct hv_exp_dm {
    struct ibv_exp_dm exp;
    struct ibv_dm *dm;
};

static inline struct ibv_dm *hv_exp_dm(struct ibv_exp_dm *exp)
{
    return ((struct hv_exp_dm *)exp)->dm;
}

#endif
