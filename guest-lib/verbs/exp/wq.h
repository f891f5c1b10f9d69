/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues of experimental verbs (wq.c), for the files that use them. */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_WQ_H
#define HCASIM_GUEST_LIB_VERBS_EXP_WQ_H

#include "guest-lib/verbs/exp/exp.h"

struct hv_exp_wq {
    struct ibv_exp_wq ibv;
    struct ibv_wq *verbs;
};

static inline struct hv_exp_wq *hv_exp_wq(struct ibv_exp_wq *wq)
{
    return (struct hv_exp_wq *)wq;
}

/* The table of verbs; NULL for NULL. */
struct ibv_rwq_ind_table *hv_exp_ind_table(struct ibv_exp_rwq_ind_table *table);

#endif
