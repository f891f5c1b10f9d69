/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR whose list is in memory of the library, and what a key says of itself. */
#include "tests/programs/migration/old.h"

#define ENTRIES 8

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_qp_init_attr attr = old_rc(&b, b.cq);
    struct ibv_exp_create_mr_in in = {
        .pd = b.pd,
        .attr = {.max_klm_list_size = ENTRIES,
                 .create_flags = IBV_EXP_MR_INDIRECT_KLMS,
                 .exp_access_flags = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE}};
    struct ibv_exp_mkey_list_container_attr memory = {.pd = b.pd,
                                                      .mkey_list_type =
                                                          IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR,
                                                      .max_klm_list_size = ENTRIES};
    struct ibv_mr *key = ibv_exp_create_mr(&in);
    struct ibv_exp_mkey_list_container *list = ibv_exp_alloc_mkey_list_memory(&memory);
    struct ibv_exp_mkey_attr said = {0};
    struct ibv_exp_mem_region ranges[ENTRIES];
    uint64_t to = (uintptr_t)both_to(&b);
    struct ibv_exp_send_wr *bad,
        wr = {.exp_opcode = IBV_EXP_WR_UMR_FILL, .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    unsigned wrong = 0;
    struct ibv_qp *qp;

    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS | IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS;
    attr.exp_create_flags = IBV_EXP_QP_CREATE_UMR;
    attr.max_inl_send_klms = 4;
    NEED(qp = ibv_exp_create_qp(b.ctx, &attr));
    NEED(key && list);
    both_loop(qp);
    NEED(!ibv_exp_query_mkey(key, &said));
    printf("room for %u ranges\n", said.max_klm_list_size);
    for (unsigned i = 0; i < ENTRIES; i++) {
        ranges[i] = (struct ibv_exp_mem_region){to + i * 1000, b.mr, 100};
    }
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST;
    wr.ext_op.umr.memory_objects = list;
    wr.ext_op.umr.exp_access = in.attr.exp_access_flags;
    wr.ext_op.umr.modified_mr = key;
    wr.ext_op.umr.base_addr = to;
    wr.ext_op.umr.num_mrs = ENTRIES;
    wr.ext_op.umr.mem_list.mem_reg_list = ranges;
    NEED(!ibv_exp_post_send(qp, &wr, &bad));
    both_done(b.cq);
    both_write(qp, both_from(&b), ENTRIES * 100, b.mr->lkey, to, key->rkey);
    both_done(b.cq);
    for (unsigned i = 0; i < ENTRIES; i++) {
        wrong += memcmp(both_to(&b) + i * 1000, both_from(&b) + i * 100, 100) != 0;
    }
    printf("%d ranges by a list in memory: %s\n", ENTRIES, wrong ? "wrong" : "right");
    NEED(!ibv_exp_dealloc_mkey_list_memory(list));
    return 0;
}
