/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of chains, made by DevX: a QP, and a CQ for each of its halves. WQEs are written as
 * the legacy library writes them (libmlx5, qp.c); their layouts are stated again here.
 */
#ifndef HCASIM_TESTS_CHAINS_RINGS_H
#define HCASIM_TESTS_CHAINS_RINGS_H

#include "guest-lib/verbs/dv.h"
#include "tests/sim/fabric/chains.h"
#include "tests/verbs/gpu_queues.h"

struct chains_ring {
    struct sim_host *host;
    struct mlx5dv_devx_uar *page;
    uint8_t *memory;
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_obj *cq_obj[CHAINS_HALVES], *qp_obj;
    struct gpu_cq cq[CHAINS_HALVES];
    bool managed[CHAINS_HALVES];
    uint16_t block, wqe, receive; /* written since the reset: basic blocks, WQEs, receives */
};

/* Memory of a ring. */
#define CHAINS_RING_BYTES (11u * 4096u)

void chains_ring_make(struct chains_ring *ring, const struct job *job);
/* Also destroys queues that wait. */
void chains_ring_destroy(struct chains_ring *ring, const struct job *job);
void chains_ring_connect(struct chains_ring *const rings[2], const struct job *job);
/* Forgets all WQEs. */
void chains_ring_reset(struct chains_ring *ring);

/* Where the bytes of a message are. */
struct chains_memory {
    uint64_t at;
    uint32_t key;
};

/* The objects that a step names. */
struct chains_names {
    const struct chains_ring *on; /* WAIT, ENABLE */
    uint32_t index;               /* WAIT: of the CQE; ENABLE: one past the last WQE */
    struct chains_memory near, far;
};

/* Writes the WQE of a step. Returns its index, as CQEs have it. */
uint16_t chains_ring_write(struct chains_ring *ring, const struct chains_step *step,
                           const struct chains_names *names);
void chains_ring_write_receive(struct chains_ring *ring, uint64_t at, uint32_t key);
/* Tells the device of all WQEs. A managed send queue needs that for none of its WQEs. */
void chains_ring_tell(struct chains_ring *ring);

#endif
