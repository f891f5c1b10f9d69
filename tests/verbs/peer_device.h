/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer in the process (ibv_exp_peer_direct_attr): it gives and registers memory, and executes
 * lists of operations. It accesses registered memory alone, and counts what it was given.
 */
#ifndef HCASIM_TESTS_PEER_DEVICE_H
#define HCASIM_TESTS_PEER_DEVICE_H

#include <stdbool.h>
#include "guest-lib/verbs/exp/include/infiniband/peer_ops.h"

#define PEER_AREAS 256u
#define PEER_OPS   8u /* of a list */
#define PEER_CAPS_NOR                                                                              \
    (IBV_EXP_PEER_OP_FENCE_CAP | IBV_EXP_PEER_OP_STORE_DWORD_CAP |                                 \
     IBV_EXP_PEER_OP_STORE_QWORD_CAP | IBV_EXP_PEER_OP_POLL_AND_DWORD_CAP |                        \
     IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP)
#define PEER_CAPS_GEQ                                                                              \
    ((PEER_CAPS_NOR & ~IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP) | IBV_EXP_PEER_OP_POLL_GEQ_DWORD_CAP)

struct peer_area {
    uint8_t *at; /* NULL: the entry is free */
    size_t len;
    bool is_page; /* a doorbell page */
    struct ibv_exp_peer_buf *buf;
};

struct peer_device {
    struct ibv_exp_peer_direct_attr attr; /* for the program's queues */
    struct peer_area area[PEER_AREAS];
    unsigned areas, buffers; /* registered and allocated now */
    unsigned calls;          /* of all four functions */
    unsigned fails_at;       /* the call with this number fails, counted from 1; 0: none */
    unsigned bad_buffer;     /* the allocator returns 1: too little, 2: a wrong alignment */
    uint32_t dirs[8];        /* of the allocations, in order */
    unsigned num_dirs;
};

/* A list of operations, with room for PEER_OPS. */
struct peer_list {
    struct peer_op_wr op[PEER_OPS];
    unsigned num, done;
};

/* allocates: it has an allocator. */
void peer_device_init(struct peer_device *peer, uint64_t caps, bool allocates);

/* Links the operations, for a call that fills them in. */
void peer_list_init(struct peer_list *list);
/* Calls that fill in a list. They return what the library returns. */
int peer_list_commit(struct peer_list *list, struct ibv_qp *qp, uint64_t *rollback_id);
int peer_list_peek(struct peer_list *list, struct ibv_cq *cq, uint32_t whence, uint32_t offset,
                   uint64_t *peek_id);
/* Where an operation accesses memory. NULL: it has no target. */
void *peer_op_target(const struct peer_op_wr *op);
/* Executes operations, up to a wait that is not over. True: all are done. */
bool peer_list_run(struct peer_list *list);

#endif
