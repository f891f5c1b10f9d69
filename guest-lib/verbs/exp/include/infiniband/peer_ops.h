/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PeerDirect: a peer device (a GPU) commits work to a QP and waits for CQEs.
 */
#ifndef PEER_OPS_H
#define PEER_OPS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "verbs_exp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- The operations of a peer, and the capability of the same number for each */

enum ibv_exp_peer_op {
    IBV_EXP_PEER_OP_RESERVED1 = 1,
    IBV_EXP_PEER_OP_FENCE = 0,
    IBV_EXP_PEER_OP_STORE_DWORD = 4,
    IBV_EXP_PEER_OP_STORE_QWORD = 2,
    IBV_EXP_PEER_OP_COPY_BLOCK = 3,
    IBV_EXP_PEER_OP_POLL_AND_DWORD = 12,
    IBV_EXP_PEER_OP_POLL_NOR_DWORD = 13,
    IBV_EXP_PEER_OP_POLL_GEQ_DWORD = 14
};

enum ibv_exp_peer_op_caps {
    IBV_EXP_PEER_OP_FENCE_CAP = 1 << IBV_EXP_PEER_OP_FENCE,
    IBV_EXP_PEER_OP_STORE_DWORD_CAP = 1 << IBV_EXP_PEER_OP_STORE_DWORD,
    IBV_EXP_PEER_OP_STORE_QWORD_CAP = 1 << IBV_EXP_PEER_OP_STORE_QWORD,
    IBV_EXP_PEER_OP_COPY_BLOCK_CAP = 1 << IBV_EXP_PEER_OP_COPY_BLOCK,
    IBV_EXP_PEER_OP_POLL_AND_DWORD_CAP = 1 << IBV_EXP_PEER_OP_POLL_AND_DWORD,
    IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP = 1 << IBV_EXP_PEER_OP_POLL_NOR_DWORD,
    IBV_EXP_PEER_OP_POLL_GEQ_DWORD_CAP = 1 << IBV_EXP_PEER_OP_POLL_GEQ_DWORD
};

enum ibv_exp_peer_fence {
    IBV_EXP_PEER_FENCE_OP_READ = 1 << 0,
    IBV_EXP_PEER_FENCE_OP_WRITE = 1 << 1,
    IBV_EXP_PEER_FENCE_FROM_CPU = 1 << 2,
    IBV_EXP_PEER_FENCE_FROM_HCA = 1 << 3,
    IBV_EXP_PEER_FENCE_MEM_SYS = 1 << 4,
    IBV_EXP_PEER_FENCE_MEM_PEER = 1 << 5
};

/* -- Memory of queues that the peer allocates */

enum ibv_exp_peer_direction {
    IBV_EXP_PEER_DIRECTION_FROM_CPU = 1 << 0,
    IBV_EXP_PEER_DIRECTION_FROM_HCA = 1 << 1,
    IBV_EXP_PEER_DIRECTION_FROM_PEER = 1 << 2,
    IBV_EXP_PEER_DIRECTION_TO_CPU = 1 << 3,
    IBV_EXP_PEER_DIRECTION_TO_HCA = 1 << 4,
    IBV_EXP_PEER_DIRECTION_TO_PEER = 1 << 5
};

struct ibv_exp_peer_buf_alloc_attr {
    size_t length;
    uint32_t dir;
    uint64_t peer_id;
    uint32_t alignment;
    uint32_t comp_mask;
};

struct ibv_exp_peer_buf {
    void *addr;
    size_t length;
    uint32_t comp_mask;
};

enum ibv_exp_peer_direct_attr_mask {
    IBV_EXP_PEER_DIRECT_VERSION = 1 << 0
};

struct ibv_exp_peer_direct_attr {
    uint64_t peer_id;
    struct ibv_exp_peer_buf *(*buf_alloc)(struct ibv_exp_peer_buf_alloc_attr *attr);
    int (*buf_release)(struct ibv_exp_peer_buf *pb);
    uint64_t (*register_va)(void *start, size_t length, uint64_t peer_id,
                            struct ibv_exp_peer_buf *pb);
    int (*unregister_va)(uint64_t target_id, uint64_t peer_id);
    uint64_t caps;
    size_t peer_dma_op_map_len;
    uint32_t comp_mask;
    uint32_t version;
};

/* -- A list of operations that the peer shall execute */

struct peer_op_wr {
    struct peer_op_wr *next;
    enum ibv_exp_peer_op type;
    union {
        struct {
            uint64_t fence_flags;
        } fence;
        struct {
            uint32_t data;
            uint64_t target_id;
            size_t offset;
        } dword_va;
        struct {
            uint64_t data;
            uint64_t target_id;
            size_t offset;
        } qword_va;
        struct {
            void *src;
            uint64_t target_id;
            size_t offset;
            size_t len;
        } copy_op;
    } wr;
    uint32_t comp_mask;
};

/* -- ibv_exp_peer_commit_qp(), ibv_exp_rollback_qp() */

struct ibv_exp_peer_commit {
    struct peer_op_wr *storage;
    uint32_t entries;
    uint64_t rollback_id;
    uint32_t comp_mask;
};

enum ibv_exp_rollback_flags {
    IBV_EXP_ROLLBACK_ABORT_UNCOMMITED = 1 << 0,
    IBV_EXP_ROLLBACK_ABORT_LATE = 1 << 1
};

struct ibv_exp_rollback_ctx {
    uint64_t rollback_id;
    uint32_t flags;
    uint32_t comp_mask;
};

/* -- ibv_exp_peer_peek_cq(), ibv_exp_peer_abort_peek_cq() */

enum {
    IBV_EXP_PEER_PEEK_ABSOLUTE,
    IBV_EXP_PEER_PEEK_RELATIVE
};

struct ibv_exp_peer_peek {
    struct peer_op_wr *storage;
    uint32_t entries;
    uint32_t whence;
    uint32_t offset;
    uint64_t peek_id;
    uint32_t comp_mask;
};

struct ibv_exp_peer_abort_peek {
    uint64_t peek_id;
    uint32_t comp_mask;
};

/* The pb of register_va() for a doorbell page of the card */
#define IBV_EXP_PEER_IOMEMORY ((struct ibv_exp_peer_buf *)-1UL)

/*
 * Writes into peer->storage how the peer hands the posted, uncommitted requests of a QP to the
 * card, and into peer->entries how many operations that takes.
 */
static inline int ibv_exp_peer_commit_qp(struct ibv_qp *qp, struct ibv_exp_peer_commit *peer)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(qp->context, exp_peer_commit_qp);

    return exp ? exp->exp_peer_commit_qp(qp, peer) : ENOSYS;
}

/* Takes back requests of a QP: those of a commit that the peer did not execute, or uncommitted. */
static inline int ibv_exp_rollback_qp(struct ibv_qp *qp, struct ibv_exp_rollback_ctx *rollback)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(qp->context, exp_rollback_send);

    return exp ? exp->exp_rollback_send(qp, rollback) : ENOSYS;
}

/* Writes into peek->storage how the peer waits for a CQE. Polls of that CQE are blocked. */
static inline int ibv_exp_peer_peek_cq(struct ibv_cq *cq, struct ibv_exp_peer_peek *peek)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(cq->context, exp_peer_peek_cq);

    return exp ? exp->exp_peer_peek_cq(cq, peek) : ENOSYS;
}

/* Ends the block of a peek whose operations the peer did not execute. */
static inline int ibv_exp_peer_abort_peek_cq(struct ibv_cq *cq,
                                             struct ibv_exp_peer_abort_peek *abort_peek)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(cq->context, exp_peer_abort_peek_cq);

    return exp ? exp->exp_peer_abort_peek_cq(cq, abort_peek) : ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
