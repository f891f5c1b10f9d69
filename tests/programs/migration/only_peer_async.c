/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PeerDirect async: the CPU posts, and a peer rings the doorbell. The peer here is this program,
 * which does the stores that commit asks for.
 */
#include <infiniband/peer_ops.h>
#include "tests/programs/migration/old.h"

static uint64_t register_va(void *start, size_t length, uint64_t peer_id,
                            struct ibv_exp_peer_buf *pb)
{
    (void)length, (void)peer_id, (void)pb;
    return (uintptr_t)start;
}

static int unregister_va(uint64_t target_id, uint64_t peer_id)
{
    (void)target_id, (void)peer_id;
    return 0;
}

static void run_as_the_peer(const struct peer_op_wr *op, uint32_t entries)
{
    for (; entries--; op = op->next) {
        if (op->type == IBV_EXP_PEER_OP_STORE_DWORD) {
            *(volatile uint32_t *)(op->wr.dword_va.target_id + op->wr.dword_va.offset) =
                op->wr.dword_va.data;
        } else if (op->type == IBV_EXP_PEER_OP_STORE_QWORD) {
            *(volatile uint64_t *)(op->wr.qword_va.target_id + op->wr.qword_va.offset) =
                op->wr.qword_va.data;
        } else {
            NEED(op->type == IBV_EXP_PEER_OP_FENCE);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
        }
    }
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_peer_direct_attr peer = {
        .peer_id = 1,
        .register_va = register_va,
        .unregister_va = unregister_va,
        .caps = IBV_EXP_PEER_OP_FENCE_CAP | IBV_EXP_PEER_OP_STORE_DWORD_CAP |
                IBV_EXP_PEER_OP_STORE_QWORD_CAP | IBV_EXP_PEER_OP_POLL_AND_DWORD_CAP |
                IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP,
        .comp_mask = IBV_EXP_PEER_DIRECT_VERSION,
        .version = 1};
    struct ibv_exp_qp_init_attr attr = old_rc(&b, b.cq);
    struct peer_op_wr ops[3] = {{.next = &ops[1]}, {.next = &ops[2]}};
    struct ibv_exp_peer_commit commit = {.storage = ops, .entries = 3};
    struct ibv_wc wc;
    struct ibv_qp *qp;

    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_PEER_DIRECT;
    attr.peer_direct_attrs = &peer;
    NEED(qp = ibv_exp_create_qp(b.ctx, &attr));
    both_loop(qp);
    both_write(qp, both_from(&b), 100, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    for (unsigned i = 0; i < 10000; i++) {
        NEED(!ibv_poll_cq(b.cq, 1, &wc));
    }
    printf("posted: %s\n", both_to(&b)[1] ? "written" : "nothing");
    NEED(!ibv_exp_peer_commit_qp(qp, &commit));
    run_as_the_peer(commit.storage, commit.entries);
    both_done(b.cq);
    printf("committed: %s\n", both_same(&b, 100) ? "written" : "nothing");
    NEED(!ibv_destroy_qp(qp));
    return 0;
}
