/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations, old: ibv_exp_query_device(), ibv_exp_reg_mr(), ibv_exp_post_send(). */
#include "tests/programs/migration/old.h"

static uint64_t word, before;

static uint64_t atomic(struct both *b, struct ibv_qp *qp, enum ibv_exp_wr_opcode opcode,
                       uint64_t compare_add, uint64_t swap, struct ibv_mr *to, struct ibv_mr *from)
{
    struct ibv_sge sge = {(uintptr_t)&before, 8, from->lkey};
    struct ibv_exp_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .exp_opcode = opcode,
        .exp_send_flags = IBV_EXP_SEND_SIGNALED,
        .wr.atomic = {(uintptr_t)&word, compare_add, swap, to->rkey},
    };
    struct ibv_exp_send_wr *bad;

    NEED(!ibv_exp_post_send(qp, &wr, &bad));
    old_done(b->cq);
    return before;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_COMP_MASK_2,
                                       .comp_mask_2 = IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS};
    struct ibv_exp_reg_mr_in to = {.pd = b.pd,
                                   .addr = &word,
                                   .length = 8,
                                   .exp_access =
                                       IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_ATOMIC};
    struct ibv_exp_reg_mr_in from = {
        .pd = b.pd, .addr = &before, .length = 8, .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE};
    struct ibv_mr *mr, *result;

    both_loop(qp);
    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("atomics: %s; PCI atomics: %x %x %x\n",
           attr.exp_atomic_cap == IBV_EXP_ATOMIC_NONE  ? "none"
           : attr.exp_atomic_cap == IBV_EXP_ATOMIC_HCA ? "between HCAs"
                                                       : "global",
           attr.pci_atomic_caps.fetch_add, attr.pci_atomic_caps.swap,
           attr.pci_atomic_caps.compare_swap);
    NEED((mr = ibv_exp_reg_mr(&to)) && (result = ibv_exp_reg_mr(&from)));
    word = 5;
    printf("fetch and add: was %" PRIu64,
           atomic(&b, qp, IBV_EXP_WR_ATOMIC_FETCH_AND_ADD, 7, 0, mr, result));
    printf(", is %" PRIu64 "\n", word);
    printf("compare and swap: was %" PRIu64,
           atomic(&b, qp, IBV_EXP_WR_ATOMIC_CMP_AND_SWP, 12, 99, mr, result));
    printf(", is %" PRIu64 "\n", word);
    return 0;
}
