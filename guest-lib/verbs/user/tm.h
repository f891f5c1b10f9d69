/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching (tm.c). An SRQ of type IBV_SRQT_TM has a list of tags, whose entries the program
 * adds and removes with separate work requests. They go through a QP that the library owns; this QP
 * is in RTS and sends nothing.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_TM_H
#define HCASIM_GUEST_LIB_VERBS_USER_TM_H

#include "guest-lib/verbs/user/cq.h"

/* CQEs of tag matching: app is APP_TAG_MATCHING, app_op one of these. */
#define APP_TAG_MATCHING 1
enum hv_tm_op {
    TM_OP_CONSUMED = 0x1,             /* a tag matched; the data is still to come */
    TM_OP_EXPECTED = 0x2,             /* the data of a matched message has arrived */
    TM_OP_UNEXPECTED = 0x3,           /* no tag matched: a receive WQE has the whole message */
    TM_OP_NO_TAG = 0x4,               /* the message has no tag: a receive WQE has it */
    TM_OP_APPEND = 0x5,               /* an entry was added */
    TM_OP_REMOVE = 0x6,               /* an entry was removed, if TM_SUCCESS says so */
    TM_OP_NOOP = 0x7,                 /* the count was reported to the device */
    TM_OP_CONSUMED_SW_RNDV = 0x9,     /* a tag matched, but software must fetch the data */
    TM_OP_CONSUMED_MSG = 0xa,         /* a tag matched, and the data has arrived */
    TM_OP_CONSUMED_MSG_SW_RNDV = 0xb, /* both of the above */
    TM_OP_CANCELED = 0xc              /* its rendezvous was cancelled */
};

static inline bool hv_tm_is_cqe(const struct prm_cqe64 *cqe)
{
    return PRM_GET(cqe64, cqe, app) == APP_TAG_MATCHING;
}

/* Says that neither ring nor record of the SRQ or its QP may be memory of a GPU. Returns
 * EOPNOTSUPP. */
int hv_tm_refuse_gpu(struct hv_srq *srq);
/* Makes an SRQ's state for tag matching. max_ops: the number of work requests that may be
 * outstanding. Returns 0 or errno. */
int hv_tm_create(struct hv_srq *srq, uint32_t max_ops);
/* Destroys the command QP. Returns 0 or errno. After that no work request can be posted. */
int hv_tm_stop(struct hv_srq *srq);
void hv_tm_free(struct hv_srq *srq);
/* Finds what a CQE of the SRQ completes. The lock of its CQ is held. */
void hv_tm_complete(struct user_cq *cq, struct hv_srq *srq, const struct prm_cqe64 *cqe,
                    struct completion *done);
/* Implement ibv_wc_read_opcode() and ibv_wc_read_wc_flags() for such a CQE. */
enum ibv_wc_opcode hv_tm_wc_opcode(const struct prm_cqe64 *cqe);
unsigned hv_tm_wc_flags(const struct prm_cqe64 *cqe);
void hv_tm_ops(struct verbs_context *ops);

#endif
