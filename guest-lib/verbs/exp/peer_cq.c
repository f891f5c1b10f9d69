/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues for whose completions a peer waits.
 *
 * A list has two operations. The first waits until the entry is written: its last word has the
 * owner bit of this round. The second stores 0 to the wait's word, which unblocks the program's
 * polls.
 *
 * In rounds whose owner bit is 1, POLL_AND sees it. In the others, POLL_NOR sees a bit that is 0;
 * an entry that was never written has a 1 there. A peer that has only POLL_GEQ sees that the word
 * is not negative: an entry is made invalid (its opcode is 15) before its first completion and
 * after each poll. To such a peer, a completion with an error is invisible in these rounds, because
 * its opcode is 13 or 14. (mlx5_exp_peer_peek_cq(); the owner bit of unwritten entries is a later
 * fix of libmlx5.)
 */
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"

#define PEEK_OPS   2u
#define BUSY       1u
#define FLAG_BYTES 8u /* from the word of one wait to the next */
#define FLAG_WORDS (FLAG_BYTES / sizeof(uint32_t))

int exp_peer_check_cq(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *attr)
{
    return exp_peer_check(hca, "create_cq", attr,
                          IBV_EXP_PEER_OP_STORE_DWORD_CAP | IBV_EXP_PEER_OP_POLL_AND_DWORD_CAP,
                          IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP | IBV_EXP_PEER_OP_POLL_GEQ_DWORD_CAP);
}

/* Allocates memory: the peer's, or the library's. Returns 0 or errno. */
static int exp_peer_get_memory(struct user_cq *cq, size_t size, uint32_t dir,
                               struct exp_peer_memory *memory)
{
    int err;

    if (!exp_peer_alloc(cq->hca, &cq->peer_cq->peer, size, PCI_PAGE, dir, memory, &err) && !err) {
        memory->at = hv_ring_alloc(hv_whole_pages(size));
        memory->size = size;
        err = memory->at ? 0 : ENOMEM;
    }
    return err ? err : exp_peer_register(cq->hca, &cq->peer_cq->peer, memory, memory->buf);
}

int exp_peer_new_cq(struct user_cq *cq, const struct ibv_exp_peer_direct_attr *attr)
{
    struct exp_peer_cq *peer = g_new0(struct exp_peer_cq, 1);
    uint32_t num = 1u << cq->log_size;
    int err;

    cq->peer_cq = peer;
    peer->peer = *attr;
    peer->by_owner = attr->caps & IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP;
    peer->waits = g_new0(struct exp_peer_wait, num);
    peer->first = g_new0(uint32_t, num);
    for (uint32_t i = 0; i < num; i++) {
        peer->waits[i].next = i + 1 < num ? i + 2 : 0;
    }
    peer->free = 1;
    err = exp_peer_get_memory(cq, cq->ring_size,
                              IBV_EXP_PEER_DIRECTION_FROM_HCA | IBV_EXP_PEER_DIRECTION_TO_PEER |
                                  IBV_EXP_PEER_DIRECTION_TO_CPU,
                              &peer->ring);
    cq->ring = peer->ring.at;
    cq->ring_from = peer->ring.buf ? HV_FROM_PEER : HV_FROM_HELD;
    if (err) {
        return err;
    }
    memset(cq->ring, 0, cq->ring_size);
    err = exp_peer_get_memory(cq, (size_t)num * FLAG_BYTES,
                              IBV_EXP_PEER_DIRECTION_FROM_PEER | IBV_EXP_PEER_DIRECTION_TO_CPU,
                              &peer->flags);
    if (!err) {
        memset(peer->flags.at, 0, peer->flags.size);
    }
    return err;
}

void exp_peer_free_cq(struct user_cq *cq)
{
    struct exp_peer_cq *peer = cq->peer_cq;
    bool own_flags = peer->flags.at && !peer->flags.buf;

    exp_peer_release(&peer->peer, &peer->flags);
    if (own_flags) {
        hv_ring_free(peer->flags.at, hv_whole_pages(peer->flags.size));
    }
    exp_peer_release(&peer->peer, &peer->ring);
    g_free(peer->waits);
    g_free(peer->first);
    g_free(peer);
    cq->peer_cq = NULL;
}

/* -- polls ------------------------------------------------------------------------------------- */

static uint32_t *exp_peer_flag(const struct exp_peer_cq *peer, uint32_t wait)
{
    return (uint32_t *)peer->flags.at + (size_t)wait * FLAG_WORDS;
}

bool exp_peer_may_poll(struct user_cq *cq)
{
    struct exp_peer_cq *peer = cq->peer_cq;
    uint32_t *first = &peer->first[cq->ci & ((1u << cq->log_size) - 1)];

    while (*first) {
        uint32_t wait = *first - 1;

        if (__atomic_load_n(exp_peer_flag(peer, wait), __ATOMIC_ACQUIRE)) {
            errno = EBUSY;
            return false;
        }
        *first = peer->waits[wait].next;
        peer->waits[wait].generation++;
        peer->waits[wait].next = peer->free;
        peer->free = wait + 1;
    }
    return true;
}

void exp_peer_polled(const struct user_cq *cq, struct prm_cqe64 *cqe)
{
    if (!cq->peer_cq->by_owner) {
        cqe_set_op_own(cqe, PRM_CQE_OPCODE_INVALID << 4);
    }
}

/* -- waits ------------------------------------------------------------------------------------- */

/* The number of the entry that is meant. Returns 0 or errno. */
static int exp_peer_find_entry(const struct user_cq *cq, const struct ibv_exp_peer_peek *peek,
                               uint32_t *n)
{
    uint32_t last = (1u << cq->log_size) - 1; /* ibv_cq.cqe */

    switch (peek->whence) {
    case IBV_EXP_PEER_PEEK_ABSOLUTE:
        *n = peek->offset;
        return (int32_t)(peek->offset - cq->ci) > (int32_t)last ? E2BIG : 0;
    case IBV_EXP_PEER_PEEK_RELATIVE:
        *n = cq->ci + peek->offset - 1;
        return peek->offset > last ? E2BIG : 0;
    default:
        return EINVAL;
    }
}

/* The completion of a polled entry may be overwritten. It was there, so the peer waits for a word
 * that is set: the wait's own. */
static void exp_peer_fill_no_wait(const struct exp_peer_cq *peer, uint32_t wait,
                                  struct peer_op_wr *op)
{
    op->type = IBV_EXP_PEER_OP_POLL_AND_DWORD;
    op->wr.dword_va.data = BUSY;
    op->wr.dword_va.target_id = peer->flags.id;
    op->wr.dword_va.offset = (size_t)wait * FLAG_BYTES;
}

static void exp_peer_fill_poll(const struct user_cq *cq, uint32_t n, struct peer_op_wr *op)
{
    const struct exp_peer_cq *peer = cq->peer_cq;
    const uint8_t *cqe = cq_cqe64(cq, n)->bytes;

    if (n >> cq->log_size & 1) {
        op->type = IBV_EXP_PEER_OP_POLL_AND_DWORD;
        op->wr.dword_va.data = GUINT32_TO_BE(DRV_OWNER);
    } else if (peer->by_owner) {
        op->type = IBV_EXP_PEER_OP_POLL_NOR_DWORD;
        op->wr.dword_va.data = ~GUINT32_TO_BE(DRV_OWNER);
    } else {
        op->type = IBV_EXP_PEER_OP_POLL_GEQ_DWORD;
        op->wr.dword_va.data = 0;
    }
    op->wr.dword_va.target_id = peer->ring.id;
    op->wr.dword_va.offset = (size_t)(cqe + PRM_OFFSET(cqe64, wqe_counter) - cq->ring);
}

/* Takes a free wait and blocks the entry. */
static uint32_t exp_peer_block(const struct user_cq *cq, uint32_t n)
{
    struct exp_peer_cq *peer = cq->peer_cq;
    uint32_t wait = peer->free - 1, *first = &peer->first[n & ((1u << cq->log_size) - 1)];

    peer->free = peer->waits[wait].next;
    peer->waits[wait].next = *first;
    *first = wait + 1;
    __atomic_store_n(exp_peer_flag(peer, wait), BUSY, __ATOMIC_RELEASE);
    return wait;
}

static int exp_peer_peek_locked(struct user_cq *cq, struct ibv_exp_peer_peek *peek)
{
    struct exp_peer_cq *peer = cq->peer_cq;
    struct peer_op_wr *op[PEEK_OPS];
    uint32_t n, wait;
    int err;

    if (peek->entries < PEEK_OPS || !exp_peer_take_list(peek->storage, op, PEEK_OPS)) {
        return hv_refuse(cq->hca, ENOSPC,
                         "exp_peer_peek_cq: storage has %u entries at most; %u are needed",
                         peek->entries, PEEK_OPS);
    }
    err = exp_peer_find_entry(cq, peek, &n);
    if (err) {
        return hv_refuse(cq->hca, err,
                         "exp_peer_peek_cq: whence is %u and offset %u; the next entry is %u, and "
                         "the CQ has %u",
                         peek->whence, peek->offset, cq->ci, 1u << cq->log_size);
    }
    if (!peer->free) {
        return hv_refuse(cq->hca, ENOMEM,
                         "exp_peer_peek_cq: %u lists wait for completions that are not polled yet; "
                         "poll the CQ first",
                         1u << cq->log_size);
    }
    wait = exp_peer_block(cq, n);
    if ((int32_t)(n - cq->ci) < 0) {
        exp_peer_fill_no_wait(peer, wait, op[0]);
    } else {
        exp_peer_fill_poll(cq, n, op[0]);
    }
    op[1]->type = IBV_EXP_PEER_OP_STORE_DWORD;
    op[1]->wr.dword_va.data = 0;
    op[1]->wr.dword_va.target_id = peer->flags.id;
    op[1]->wr.dword_va.offset = (size_t)wait * FLAG_BYTES;
    peek->entries = PEEK_OPS;
    peek->peek_id = (uint64_t)peer->waits[wait].generation << 32 | (wait + 1);
    return 0;
}

/* Its errors are positive (mlx5_exp_peer_peek_cq()). */
int exp_peer_peek(struct ibv_cq *ibcq, struct ibv_exp_peer_peek *peek)
{
    struct user_cq *cq = user_cq(ibcq);
    int err;

    if (!cq->peer_cq) {
        return hv_refuse(cq->hca, EINVAL,
                         "exp_peer_peek_cq: CQ 0x%x has no peer (peer_direct_attrs)", cq->cqn);
    }
    cq_lock(cq);
    err = exp_peer_peek_locked(cq, peek);
    cq_unlock(cq);
    return err;
}

/* A wait that has ended is left alone: its number may be another's by now. */
int exp_peer_abort_peek(struct ibv_cq *ibcq, struct ibv_exp_peer_abort_peek *abort_peek)
{
    struct user_cq *cq = user_cq(ibcq);
    uint32_t number = (uint32_t)abort_peek->peek_id;

    if (!cq->peer_cq || !number || number > 1u << cq->log_size) {
        return hv_refuse(cq->hca, EINVAL,
                         "exp_peer_abort_peek_cq: CQ 0x%x has no peer, or never had this peek_id",
                         cq->cqn);
    }
    cq_lock(cq);
    if (cq->peer_cq->waits[number - 1].generation == (uint32_t)(abort_peek->peek_id >> 32)) {
        __atomic_store_n(exp_peer_flag(cq->peer_cq, number - 1), 0, __ATOMIC_RELEASE);
    }
    cq_unlock(cq);
    return 0;
}
