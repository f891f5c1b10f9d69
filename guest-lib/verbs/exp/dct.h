/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC targets of the experimental verbs. Such a DCT is a DCT of direct verbs (kernel/dct.c) that its
 * creation takes to RTR at once, and that has asynchronous events of its own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_DCT_H
#define HCASIM_GUEST_LIB_VERBS_EXP_DCT_H

#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "guest-lib/verbs/user/queues.h"

struct hv_exp_dct {
    struct ibv_exp_dct ibv; /* begins with its context, as all objects that have events */
    struct user_qp *qp;
    uint32_t events_reported;
};

static inline struct hv_exp_dct *hv_exp_dct(struct ibv_exp_dct *dct)
{
    return (struct hv_exp_dct *)((char *)dct - offsetof(struct hv_exp_dct, ibv));
}

/* Creates a DC initiator for a program that gives the type of the experimental verbs to
 * ibv_create_qp_ex(). NULL with errno. */
struct ibv_qp *hv_exp_create_dci(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* The part of ibv_exp_modify_qp() for QPs whose data may come out of order, and for DCIs. Both are
 * to be called before ibv_modify_qp(), which gets *attr and *mask. Each returns 0 or errno.
 *
 * hv_exp_take_ooo(): IBV_EXP_QP_OOO_RW_DATA_PLACEMENT is in the mask of a change to this state.
 * hv_exp_take_dci(): checks the mask of a DCI, and fills in what ibv_modify_qp() needs besides. */
int hv_exp_take_ooo(struct hv_qp *qp, enum ibv_qp_state to);
int hv_exp_take_dci(struct hv_qp *qp, uint64_t exp_mask, struct ibv_qp_attr *attr, int *mask);

#endif
