/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PeerDirect: queues that a peer starts, such as a GPU, by operations that the library describes.
 *
 * The program posts to the send queue, and no doorbell rings. It then asks for a list of operations
 * (ibv_exp_peer_commit_qp()). When the peer executes the list, it stores the send counter to the
 * doorbell record and rings. For a CQ, the peer gets a list that waits for a completion
 * (ibv_exp_peer_peek_cq()); until the list is executed, the program's polls stop before this
 * completion.
 *
 * The doorbell page is memory that the HCA looks at (guest-lib/verbs/kernel/watch.h), so it does
 * not matter who stores there. The library reads two things that a peer writes: the doorbell
 * record, and a word for each wait. It believes neither: a wrong value ends in an error, or in a
 * poll that stays blocked. (docs/adr/0031-peers-that-ring-and-wait.md)
 */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_PEER_H
#define HCASIM_GUEST_LIB_VERBS_EXP_PEER_H

#include "guest-lib/verbs/exp/include/infiniband/peer_ops.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/qp.h"

/* Memory that a peer accesses. */
struct exp_peer_memory {
    void *at;
    size_t size;
    struct ibv_exp_peer_buf *buf; /* of the peer's allocator; NULL: the library's memory */
    uint64_t id;                  /* the peer's name for it; 0: none */
};

/* -- send queues (peer_sq.c) ------------------------------------------------------------------- */

/* The part of a queue pair whose send queue a peer starts. All is under the send queue's lock, or
 * constant. */
struct exp_peer_sq {
    struct ibv_exp_peer_direct_attr peer;
    struct exp_peer_memory record, page;
    uint32_t committed; /* the send counter (sq_post) behind the last WQE that a list has */
    /* The control segment of the last WQE that was posted and is in no list; NULL: there is none.
     * And how many of them there are. */
    const uint8_t *last;
    unsigned uncommitted;
    /* By WQEBB where a list begins: the send counter where it ends. */
    uint32_t *list_end;
};

/* Checks the attributes for a queue pair. Returns 0 or errno. */
int exp_peer_check_qp(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *attr);
/* Makes the part of a QP whose queues have their sizes and no memory yet. Its doorbell record comes
 * from the peer, if the peer has an allocator, or is the library's. Returns 0 or errno. */
int exp_peer_new_sq(struct user_qp *qp, const struct ibv_exp_peer_direct_attr *attr);
/* To be called when the device has the QP: tells the peer of the doorbell page. Returns 0 or
 * errno. */
int exp_peer_open_page(struct user_qp *qp);
/* Ends the part of a QP that the device does not have (any more). */
void exp_peer_free_sq(struct user_qp *qp);
/* The queue begins again at 0: all lists are void. */
void exp_peer_reset_sq(struct user_qp *qp);
/* To be called instead of a doorbell, under the send queue's lock, when WQEs were posted. */
void exp_peer_posted(struct user_qp *qp);

int exp_peer_commit(struct ibv_qp *ibqp, struct ibv_exp_peer_commit *commit);
int exp_peer_roll_back(struct ibv_qp *ibqp, struct ibv_exp_rollback_ctx *rollback);

/* -- completion queues (peer_cq.c) ------------------------------------------------------------- */

/* A wait: the poll of an entry is blocked while its word in `flags` is not 0. */
struct exp_peer_wait {
    uint32_t next;       /* another wait for this entry, or the next free one; number plus 1 */
    uint32_t generation; /* of its identifiers: a wait is used again after its end */
};

/* The part of a CQ whose completions a peer waits for. Under the CQ's lock, or constant. */
struct exp_peer_cq {
    struct ibv_exp_peer_direct_attr peer;
    struct exp_peer_memory ring, flags;
    bool by_owner; /* the peer has POLL_NOR: it sees the owner bit in each round */
    struct exp_peer_wait *waits;
    uint32_t *first; /* by entry of the ring: its waits; number plus 1 of the first, 0: none */
    uint32_t free;   /* number plus 1; 0: none */
};

/* As the functions for QPs. exp_peer_new_cq(): the ring is allocated, too. */
int exp_peer_check_cq(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *attr);
int exp_peer_new_cq(struct user_cq *cq, const struct ibv_exp_peer_direct_attr *attr);
void exp_peer_free_cq(struct user_cq *cq);

/* The op_own byte of an entry before its first completion. */
static inline unsigned exp_peer_unwritten(const struct user_cq *cq)
{
    return PRM_CQE_OPCODE_INVALID << 4 | (cq->peer_cq && cq->peer_cq->by_owner);
}

/* Whether the next entry may be polled: no list that waits for it is to be executed still. False
 * with errno EBUSY. Under the CQ's lock. */
bool exp_peer_may_poll(struct user_cq *cq);
/* To be called when an entry was polled, or removed. Under the CQ's lock. */
void exp_peer_polled(const struct user_cq *cq, struct prm_cqe64 *cqe);

int exp_peer_peek(struct ibv_cq *ibcq, struct ibv_exp_peer_peek *peek);
int exp_peer_abort_peek(struct ibv_cq *ibcq, struct ibv_exp_peer_abort_peek *abort_peek);

/* -- both (peer.c) ----------------------------------------------------------------------------- */

/* Checks what both have: hooks in pairs, version, capabilities: all of `all`, one of `one`. */
int exp_peer_check(struct hv_hca *hca, const char *verb,
                   const struct ibv_exp_peer_direct_attr *attr, uint64_t all, uint64_t one);
/* Gets memory from the peer, zeroed or not. False with *err 0: the library is to allocate it. */
bool exp_peer_alloc(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *peer, size_t size,
                    size_t alignment, uint32_t dir, struct exp_peer_memory *memory, int *err);
/* Tells the peer of memory. buf: what its allocator returned, NULL or IBV_EXP_PEER_IOMEMORY.
 * Returns 0 or errno. */
int exp_peer_register(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *peer,
                      struct exp_peer_memory *memory, struct ibv_exp_peer_buf *buf);
/* The peer forgets memory, and takes back what is its own. Memory that is not there is left
 * alone. */
void exp_peer_release(const struct ibv_exp_peer_direct_attr *peer, struct exp_peer_memory *memory);
/* Finds the first n descriptors of a list. False: the list is shorter. */
bool exp_peer_take_list(struct peer_op_wr *storage, struct peer_op_wr **op, unsigned n);

#endif
