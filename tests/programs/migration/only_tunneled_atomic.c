/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunneled atomics: a region in which a WRITE stands for an atomic operation. No public source has
 * the form of the payload; this is the form that hcasim chose (docs/adr/0032).
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define ADD 0

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC};
    struct ibv_exp_reg_mr_in in = {.pd = b.pd,
                                   .addr = both_to(&b),
                                   .length = 4096,
                                   .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE |
                                                 IBV_EXP_ACCESS_REMOTE_WRITE |
                                                 IBV_EXP_ACCESS_TUNNELED_ATOMIC};
    uint64_t *word = (void *)both_to(&b);
    uint8_t *payload = both_from(&b);
    struct ibv_mr *mr;

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    printf("tunneled atomics: %s\n",
           attr.tunneled_atomic_caps & IBV_EXP_TUNNELED_ATOMIC_SUPPORTED ? "yes" : "no");
    NEED(mr = ibv_exp_reg_mr(&in));
    memset(payload, 0, 16);
    payload[0] = ADD;
    payload[1] = 3; /* log2 of the bytes of the word */
    payload[15] = 2;
    *word = 40;
    both_loop(qp);
    both_write(qp, payload, 16, b.mr->lkey, (uintptr_t)word, mr->rkey);
    both_done(b.cq);
    printf("a WRITE that adds 2 to 40: %" PRIu64 "\n", *word);
    in.exp_access |= IBV_EXP_ACCESS_ON_DEMAND;
    printf("with pages on demand: %s\n", ibv_exp_reg_mr(&in) ? "registered" : "refused");
    return 0;
}
