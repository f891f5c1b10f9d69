/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended atomics: only the bits of the masks are compared, swapped and added. */
#include "tests/programs/migration/old.h"

static uint64_t post(struct both *b, struct ibv_qp *qp, struct ibv_exp_send_wr *wr)
{
    uint64_t *before = (void *)both_from(b);
    struct ibv_sge sge = {(uintptr_t)before, 8, b->mr->lkey};
    struct ibv_exp_send_wr *bad;

    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_EXT_ATOMIC_INLINE;
    wr->ext_op.masked_atomics.log_arg_sz = 3;
    wr->ext_op.masked_atomics.remote_addr = (uintptr_t)both_to(b);
    wr->ext_op.masked_atomics.rkey = b->mr->rkey;
    NEED(!ibv_exp_post_send(qp, wr, &bad));
    both_done(b->cq);
    return *before;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_qp_init_attr attr = old_rc(&b, b.cq);
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXT_ATOMIC_ARGS |
                                                      IBV_EXP_DEVICE_ATTR_MASKED_ATOMICS |
                                                      IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};
    struct ibv_exp_send_wr swap = {.exp_opcode = IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP};
    struct ibv_exp_send_wr add = {.exp_opcode = IBV_EXP_WR_EXT_MASKED_ATOMIC_FETCH_AND_ADD};
    uint64_t *word = (void *)both_to(&b), before;
    struct ibv_qp *qp;

    NEED(!ibv_exp_query_device(b.ctx, &device));
    if (!(device.exp_device_cap_flags & IBV_EXP_DEVICE_EXT_MASKED_ATOMICS)) {
        return ABSENT;
    }
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG;
    attr.max_atomic_arg = 8;
    NEED(qp = ibv_exp_create_qp(b.ctx, &attr));
    both_loop(qp);
    *word = 0x1122334455667788;
    swap.ext_op.masked_atomics.wr_data.inline_data.op.cmp_swap = (struct ibv_exp_cmp_swap){
        .compare_mask = 0xff, .compare_val = 0x88, .swap_val = ~0ull, .swap_mask = 0xff00};
    before = post(&b, qp, &swap);
    printf("masked swap: was %" PRIx64 ", is %" PRIx64 "\n", before, *word);
    add.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add =
        (struct ibv_exp_fetch_add){.add_val = 0x100000100, .field_boundary = 0x80008000};
    before = post(&b, qp, &add);
    printf("fields added: was %" PRIx64 ", is %" PRIx64 "\n", before, *word);
    return 0;
}
