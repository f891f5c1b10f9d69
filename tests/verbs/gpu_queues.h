/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's half of a stand-in GPU (gpu_poster.h): makes and connects the queues whose addresses
 * the GPU gets, and their targets. The queues are made by DevX, as NVSHMEM, gpunetio and UCX do, or
 * by verbs and mlx5dv_init_obj(), as rocSHMEM does. A failure here stops the program.
 */
#ifndef HCASIM_TESTS_GPU_QUEUES_H
#define HCASIM_TESTS_GPU_QUEUES_H

#include "guest-lib/verbs/dv.h"
#include "tests/verbs/gpu_poster.h"

#define GPU_LOG_BLOCKS 6 /* of a send queue made here */

struct gpu_queue_attr {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    bool devx;      /* else by verbs */
    bool dc;        /* a DC initiator, else RC */
    bool collapsed; /* DevX: the CQ is collapsed */
    bool srq;       /* DevX, RC: it names an SRQ, else it has no receive queue */
    bool master;    /* DevX: cd_master is set */
    enum gpu_order order;
    struct mlx5dv_devx_uar *uar; /* DevX: the doorbell page */
    /* DevX: GPU_QUEUE_MEMORY bytes for CQ, ring and records, as the device reaches them, and as the
     * stand-in GPU does. NULL: memory of the host, which child processes share. */
    void *memory, *alias;
};
#define GPU_QUEUE_MEMORY (4u * PCI_PAGE)

/* A queue of the GPU, with its own CQ. */
struct gpu_queue {
    struct gpu_queue_attr attr;
    struct gpu_sq sq;
    struct gpu_cq cq;
    uint8_t *memory; /* DevX: CQ, ring and records, where the GPU reaches them */
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_obj *cq_obj, *qp_obj;
    struct ibv_cq *ibv_cq;
    struct ibv_qp *ibv_qp;
    struct ibv_srq *ibv_srq;
};

/* The target of a queue: a QP that is connected to it, or a DC target. */
struct gpu_target {
    struct ibv_context *ctx;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    uint8_t av[GPU_AV]; /* DC: the address vector of its WQEs */
    struct ibv_ah *ah;
    size_t av_len; /* DC; 16: the short one */
};

struct gpu_terms {
    enum ibv_mtu mtu;
    uint8_t timeout; /* as in struct ibv_qp_attr */
    uint32_t psn;
};

/* The queue's stores are made by store(opaque, ...). */
void gpu_queue_new(struct gpu_queue *q, const struct gpu_queue_attr *attr, gpu_store_fn *store,
                   void *opaque);
void gpu_queue_free(struct gpu_queue *q);
/* The same in two steps: the GPU may still store to a queue by DevX that is destroyed, until its
 * memory is freed. */
void gpu_queue_destroy(struct gpu_queue *q);
void gpu_queue_free_memory(struct gpu_queue *q);
void gpu_target_new(struct gpu_target *t, struct ibv_context *ctx, struct ibv_pd *pd, bool dc);
void gpu_target_free(struct gpu_target *t);

/* Connects a queue with its target, both from RESET on, unless that is a DC target that is ready.
 */
void gpu_connect(struct gpu_queue *q, struct gpu_target *t, const struct gpu_terms *terms);
/* Takes an RC QP made by DevX from RESET to RTS, towards the QP of that number at the other
 * context. It may answer READs and WRITEs. And moves a QP made by DevX by that command; qpc may be
 * NULL. */
void gpu_devx_connect(struct mlx5dv_devx_obj *qp, struct ibv_pd *pd, struct ibv_context *to,
                      uint32_t qpn, const struct gpu_terms *terms);
void gpu_devx_move(struct mlx5dv_devx_obj *qp, uint16_t opcode, const struct prm_qpc *qpc);
/* Moves the queue to the error state: its WQEs are flushed. */
void gpu_queue_fail(struct gpu_queue *q);
/* Moves the queue to RESET, and its target if that is connected; forgets what was posted. The GPU
 * must have stopped. */
void gpu_reset(struct gpu_queue *q, struct gpu_target *t);
/* Moves the target alone, when its queue was destroyed. A DC target stays as it is. */
void gpu_target_reset(struct gpu_target *t);

#endif
