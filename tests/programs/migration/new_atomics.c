/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations, new: ibv_query_device_ex(), ibv_reg_mr(), ibv_post_send(). */
#include "tests/programs/migration/both.h"

static uint64_t word, before;

static uint64_t atomic(struct both *b, struct ibv_qp *qp, enum ibv_wr_opcode opcode,
                       uint64_t compare_add, uint64_t swap, struct ibv_mr *to, struct ibv_mr *from)
{
    struct ibv_sge sge = {(uintptr_t)&before, 8, from->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic = {(uintptr_t)&word, compare_add, swap, to->rkey},
    };
    struct ibv_send_wr *bad;

    NEED(!ibv_post_send(qp, &wr, &bad));
    both_done(b->cq);
    return before;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_device_attr_ex attr;
    struct ibv_mr *mr, *result;

    both_loop(qp);
    NEED(!ibv_query_device_ex(b.ctx, NULL, &attr));
    printf("atomics: %s; PCI atomics: %x %x %x\n",
           attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE  ? "none"
           : attr.orig_attr.atomic_cap == IBV_ATOMIC_HCA ? "between HCAs"
                                                         : "global",
           attr.pci_atomic_caps.fetch_add, attr.pci_atomic_caps.swap,
           attr.pci_atomic_caps.compare_swap);
    NEED(mr = ibv_reg_mr(b.pd, &word, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
    NEED(result = ibv_reg_mr(b.pd, &before, 8, IBV_ACCESS_LOCAL_WRITE));
    word = 5;
    printf("fetch and add: was %" PRIu64,
           atomic(&b, qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, mr, result));
    printf(", is %" PRIu64 "\n", word);
    printf("compare and swap: was %" PRIu64,
           atomic(&b, qp, IBV_WR_ATOMIC_CMP_AND_SWP, 12, 99, mr, result));
    printf(", is %" PRIu64 "\n", word);
    return 0;
}
