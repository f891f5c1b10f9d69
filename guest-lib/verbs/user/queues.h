/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQs and queue pairs of the user half: first the part that both halves know, then the state of
 * posting and polling, which the kernel half does not know.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_QUEUES_H
#define HCASIM_GUEST_LIB_VERBS_USER_QUEUES_H

#include "guest-lib/verbs/verbs.h"

/* Cross channel: the number of completions or requests from which requests count (exp/task.c), and
 * the largest count since. */
struct user_task_index {
    uint32_t from, most;
};

struct user_cq {
    union {
        struct hv_cq; /* its members are members of struct user_cq */
        struct hv_cq hv;
    };
    uint32_t ci;
    enum hv_from ring_from, dbrec_from;
    uint64_t arm_sn;      /* ibv_get_cq_event() increments it */
    bool single_threaded; /* the lock is not taken */
    bool on_gpu;          /* only a GPU polls: the ring or its record is the GPU's */
    struct user_task_index waited;
    bool exp_timestamps; /* of ibv_exp_create_cq(): completions have time stamps */
    pthread_spinlock_t lock;
    struct hv_pd *parent_domain;  /* or NULL */
    struct exp_peer_cq *peer_cq;  /* of a peer that waits for completions, or NULL (exp/peer.h) */
    const struct hv_rsc *cur_rsc; /* queue of the CQE polled last */
    uint32_t cur_uidx;            /* its user index */
    /* Extended polling: the cqe64 that the reader functions read, and what is not in it. */
    const struct prm_cqe64 *cur_cqe;
    enum ibv_wc_opcode cur_opcode;
    bool cur_csum_valid, cur_tm_sync;
    uint64_t wc_flags;                                    /* enum ibv_create_cq_wc_flags */
    uint32_t comp_events_reported, async_events_reported; /* events handed out; under ibv.mutex */
};

/* Why a QP is in ERR, for explain.c. */
struct user_qp_error {
    enum ibv_wc_status status; /* of the first WR that failed; 0: none did, or is not polled */
    uint64_t wr_id;
    bool send, by_program, told;
};

struct user_qp {
    union {
        struct hv_qp;
        struct hv_qp hv;
    };
    uint32_t *sq_wqe_head; /* WQEBB index -> head at posting time, for completions */
    uint32_t max_inline;
    bool can_send;           /* has been in RTS since RESET */
    uint32_t max_atomic_arg; /* of ibv_exp_create_qp(): bytes of an operand of masked atomics */
    bool swaps_answers;      /* an atomic's answer in a CQE is copied in the host's order */
    bool enables_drain;      /* the change to INIT lets signature errors drain the send queue */
    bool enables_mmo;        /* the change to INIT enables memory to memory operations */
    /* raw packet QPs: bytes of headers and of the whole large send */
    uint32_t max_tso_header, max_tso;
    bool inline_l2; /* raw packet QPs: the device wants layer 2 in the WQE */
    /* experimental verbs: the most keys in the WQE of a UMR; 0: the QP takes no UMRs */
    uint32_t max_inl_klms;
    /* the Ethernet segment is still to be written, with the data; its checksum flag */
    bool l2_due, l2_csum;
    /* Send builders (ibv_wr_*), see qp_wr.c: */
    struct prm_wqe_ctrl_seg *cur_ctrl;
    uint8_t *cur_data;
    uint32_t sq_post; /* WQEBBs posted since RESET */
    bool small_fence; /* the next WQE must wait for the UMR before it */
    uint32_t cur_size;
    uint32_t cur_post_rb; /* values of sq_post and small_fence at ibv_wr_start(), for an abort */
    bool small_fence_rb;
    int wr_err, nreq;
    unsigned wr_setters_left;
    uint32_t events_reported;
    /* ECE options: of ibv_set_ece(), until ibv_modify_qp() asks for them; of ibv_query_ece(). */
    uint32_t ece_wanted, ece_enabled;
    struct user_qp_error first_error; /* under hv_said_lock() */
    struct exp_peer_sq *peer_sq; /* of a peer that starts the send queue, or NULL (exp/peer.h) */
    void *dv;                    /* state of direct verbs, freed with free() */
    struct user_task_index sends_enabled, receives_enabled; /* if the queue is managed */
    enum hv_from sq_ring_from;                              /* if hv_qp_has_two_rings() */
};

/* Creates an SRQ of any kind (srq.c). The sizes in *ex become those of the queue. */
struct ibv_srq *hv_srq_create(struct ibv_srq_init_attr_ex *ex, enum ibv_srq_type type);

static inline struct user_cq *user_cq(struct ibv_cq *cq)
{
    return (struct user_cq *)cq;
}

static inline struct user_qp *user_qp(struct ibv_qp *qp)
{
    return (struct user_qp *)qp;
}

#endif
