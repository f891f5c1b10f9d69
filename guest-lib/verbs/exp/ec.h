/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding on the device (ibv_exp_ec_*()), as libmlx5 of MLNX_OFED does it.
 *
 * A calculation has an RC QP of its own that is connected to itself. For each step, up to four
 * blocks that are computed from up to 255 blocks, the library posts a receive WQE for the computed
 * blocks, UMRs for keys that join blocks, and a SEND whose data the device computes. The step ends
 * when both WQEs have completed. A call of the program is a job of one or more steps.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_EC_H
#define HCASIM_GUEST_LIB_VERBS_EXP_EC_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/exp/exp.h"

#define EXP_EC_RESULTS 4  /* the most blocks that a step computes */
#define EXP_EC_CHUNK   64 /* bytes of a block that follow one another in the message */
/* Steps that encode_send may have left unpolled, besides those that the program asked for. */
#define EXP_EC_BATCH 4

struct exp_ec_job {
    struct exp_ec_job *next;      /* of the free ones */
    struct ibv_exp_ec_comp *comp; /* the program's; NULL: the program is not told of the end */
    unsigned left;                /* steps that have not ended */
    bool has_failed;
};

struct exp_ec_step {
    struct exp_ec_step *next; /* of the free ones, or of those that a job has taken */
    struct exp_ec_job *job;
    unsigned left; /* completions to come */
    /* The keys that join the blocks that are read and written, and their lists. */
    struct mlx5dv_mkey *in, *out;
    struct prm_wqe_klm_seg *in_list;
    struct prm_wqe_repeat_block_seg *out_list;
    /* of a decoding or an update: k rows, EXP_EC_RESULTS columns at most */
    uint8_t *matrix;
};

struct exp_ec_calc {
    struct ibv_exp_ec_calc ibv;
    struct hv_hca *hca;
    unsigned k, m, w;
    bool polling;
    unsigned groups; /* steps of an encoding */
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    /* The memory that the device reads: the matrix of each group; what belongs to each step. */
    uint8_t *memory;
    size_t memory_size;
    struct ibv_mr *mr;
    uint8_t *code; /* the program's matrix */
    unsigned num_steps, num_jobs;
    struct exp_ec_step *steps;
    struct exp_ec_job *jobs;
    /* The program, the poller, and each call that calls back have the calculation. The last of them
     * frees its memory. */
    gint users;
    bool is_over;         /* the program has ended it, perhaps in a callback */
    pthread_mutex_t lock; /* of what follows, and around the posts of a job */
    struct exp_ec_step *free_steps;
    unsigned num_free;
    struct exp_ec_job *free_jobs;
    unsigned cqes;    /* of all steps that were ever posted */
    bool is_gone;     /* completions are not handled any more: the poller's channel was closed */
    pthread_t poller; /* handles completions; only without polling */
    bool has_poller;
    int stop[2]; /* a pipe: a byte in it ends the poller */
};

static inline struct exp_ec_calc *exp_ec_calc(struct ibv_exp_ec_calc *ibv)
{
    return (struct exp_ec_calc *)((char *)ibv - offsetof(struct exp_ec_calc, ibv));
}

/* -- ec.c -------------------------------------------------------------------------------------- */

/* Keeps the memory of the calculation until exp_ec_put(). */
void exp_ec_hold(struct exp_ec_calc *calc);
void exp_ec_put(struct exp_ec_calc *calc);
/* Takes the lock for a call that posts. EIO: in a child of fork(), or the device was removed or the
 * context closed; the lock is not taken. */
int exp_ec_begin(struct exp_ec_calc *calc);
/* Whether this thread is the poller: the program's code runs in a callback. */
bool exp_ec_is_poller(const struct exp_ec_calc *calc);
/* Takes a job of num steps, with the lock held; *steps receives a list of the steps. NULL: too many
 * calculations are in flight. */
struct exp_ec_job *exp_ec_take(struct exp_ec_calc *calc, unsigned num, struct ibv_exp_ec_comp *comp,
                               struct exp_ec_step **steps);
/* Handles up to n completions. Returns how many, or -1 in a child of fork(). If the device was
 * removed, all calculations that are in flight fail. */
int exp_ec_poll(struct exp_ec_calc *calc, int n);
/* Ends one step of a job that was not posted, with the lock held: the job fails. */
void exp_ec_drop_step(struct exp_ec_calc *calc, struct exp_ec_step *step);
/* The matrix of a group of an encoding. */
uint8_t *exp_ec_group_matrix(struct exp_ec_calc *calc, unsigned group);
/* An entry of a matrix as the device takes it. */
uint8_t exp_ec_entry(const struct exp_ec_calc *calc, uint8_t entry);

/* -- ec_post.c --------------------------------------------------------------------------------- */

/* The operation of a step: it computes blocks of a length from blocks of the same length. */
struct exp_ec_plan {
    const struct ibv_sge *in, *out;
    unsigned num_in, num_out;
    uint32_t block;        /* bytes */
    const uint8_t *matrix; /* in the calculation's memory */
};

/* Posts a step, with the lock held. Returns 0 or errno; then nothing is posted. */
int exp_ec_post(struct exp_ec_calc *calc, struct exp_ec_step *step, const struct exp_ec_plan *plan);

/* -- ec_calls.c -------------------------------------------------------------------------------- */

/* Returns 0 or the error of an encoding. */
int exp_ec_check_encode(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem);
/* Posts an encoding, with the lock held. comp may be NULL. Returns 0 or an error. */
int exp_ec_encode(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem,
                  struct ibv_exp_ec_comp *comp);
void exp_ec_calls(struct verbs_context_exp *ops);

/* -- ec_send.c --------------------------------------------------------------------------------- */

int exp_ec_encode_send(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                       struct ibv_exp_ec_stripe *data, struct ibv_exp_ec_stripe *code);

#endif
