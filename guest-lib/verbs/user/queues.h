/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQs and queue pairs as the user half has them: what both halves know of one comes first, then
 * what posting and polling keep, of which the kernel half knows nothing.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_QUEUES_H
#define HCASIM_GUEST_LIB_VERBS_USER_QUEUES_H

#include "guest-lib/verbs/verbs.h"

struct user_cq {
    union {
        struct hv_cq; /* its members are this structure's */
        struct hv_cq hv;
    };
    uint32_t ci;
    enum hv_from ring_from, dbrec_from;
    uint64_t arm_sn;      /* ibv_get_cq_event() adds one */
    bool single_threaded; /* the lock is not taken */
    pthread_spinlock_t lock;
    struct hv_pd *parent_domain;  /* or NULL */
    const struct hv_rsc *cur_rsc; /* of the CQE polled last */
    uint32_t cur_uidx;            /* its user index */
    /* extended polling: the cqe64 that readers look at, and what it does not tell */
    const struct prm_cqe64 *cur_cqe;
    enum ibv_wc_opcode cur_opcode;
    bool cur_csum_valid, cur_tm_sync;
    uint64_t wc_flags;                                    /* enum ibv_create_cq_wc_flags */
    uint32_t comp_events_reported, async_events_reported; /* handed out, under ibv.mutex */
};

struct user_qp {
    union {
        struct hv_qp;
        struct hv_qp hv;
    };
    enum hv_from ring_from, dbrec_from;
    uint32_t *sq_wqe_head; /* WQEBB index -> head when it was posted, for completions */
    uint32_t max_inline;
    bool can_send;                    /* has been in RTS since RESET */
    uint32_t max_tso_header, max_tso; /* raw packet QPs: bytes of a large send */
    bool inline_l2;                   /* of those: the device wants layer 2 in the WQE */
    bool l2_due, l2_csum; /* its Ethernet segment comes with the data, and what it says */
    /* send builder (ibv_wr_*): see qp_wr.c */
    struct prm_wqe_ctrl_seg *cur_ctrl;
    uint8_t *cur_data;
    uint32_t sq_post; /* WQEBBs posted since RESET */
    bool small_fence; /* the next WQE waits for a UMR before it */
    uint32_t cur_size;
    uint32_t cur_post_rb; /* sq_post and small_fence at ibv_wr_start(), for who gives up */
    bool small_fence_rb;
    int wr_err, nreq;
    unsigned wr_setters_left;
    uint32_t events_reported;
    void *dv; /* mlx5dv's own, freed with free() */
};

static inline struct user_cq *user_cq(struct ibv_cq *cq)
{
    return (struct user_cq *)cq;
}

static inline struct user_qp *user_qp(struct ibv_qp *qp)
{
    return (struct user_qp *)qp;
}

#endif
