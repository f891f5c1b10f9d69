/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching (tm.c): an SRQ of type IBV_SRQT_TM has a list of tags, whose entries the program
 * adds and removes by work requests of their own. They go through a QP of the library's, which is
 * in RTS and sends nothing.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_TM_H
#define HCASIM_GUEST_LIB_VERBS_USER_TM_H

#include "guest-lib/verbs/user/cq.h"

/* CQEs of tag matching: app is APP_TAG_MATCHING, app_op one of these. */
#define APP_TAG_MATCHING 1
enum hv_tm_op {
    TM_OP_CONSUMED = 0x1,             /* matched; its data is still to come */
    TM_OP_EXPECTED = 0x2,             /* its data is there */
    TM_OP_UNEXPECTED = 0x3,           /* nothing matched: a receive WQE has the whole message */
    TM_OP_NO_TAG = 0x4,               /* it has no tag: likewise */
    TM_OP_APPEND = 0x5,               /* the list was changed */
    TM_OP_REMOVE = 0x6,               /* likewise, if TM_SUCCESS says so */
    TM_OP_NOOP = 0x7,                 /* the count was told */
    TM_OP_CONSUMED_SW_RNDV = 0x9,     /* matched, but software must fetch the data */
    TM_OP_CONSUMED_MSG = 0xa,         /* matched, and its data is there */
    TM_OP_CONSUMED_MSG_SW_RNDV = 0xb, /* the last two in one */
    TM_OP_CANCELED = 0xc              /* its rendezvous was given up */
};

static inline bool hv_tm_is_cqe(const struct prm_cqe64 *cqe)
{
    return PRM_GET(cqe64, cqe, app) == APP_TAG_MATCHING;
}

/* Makes what an SRQ has for tag matching: 0 or errno. max_ops: work requests outstanding. */
int hv_tm_create(struct hv_srq *srq, uint32_t max_ops);
/* Destroys the command QP: 0 or errno. From then on nothing can be posted. */
int hv_tm_stop(struct hv_srq *srq);
void hv_tm_free(struct hv_srq *srq);
/* What a CQE of the SRQ completes; its CQ's lock is held. */
void hv_tm_complete(struct user_cq *cq, struct hv_srq *srq, const struct prm_cqe64 *cqe,
                    struct completion *done);
/* ibv_wc_read_opcode() and _read_wc_flags() of such a CQE. */
enum ibv_wc_opcode hv_tm_wc_opcode(const struct prm_cqe64 *cqe);
unsigned hv_tm_wc_flags(const struct prm_cqe64 *cqe);
void hv_tm_ops(struct verbs_context *ops);

#endif
