/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQE compression, old: IBV_EXP_CQ_COMPRESSED_CQE of ibv_exp_create_cq() permits the device to
 * compress, and ibv_exp_poll_cq() returns each completion as without the flag.
 */
#include "tests/programs/migration/old.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_COMPRESSED_CQE};
    struct ibv_cq *cq = ibv_exp_create_cq(b.ctx, 2 * BOTH_MESSAGES - 1, NULL, NULL, 0, &attr);
    unsigned right = 0;

    NEED(cq);
    both_messages(&b, cq);
    for (unsigned i = 0; i < BOTH_MESSAGES; i++) {
        right += old_done(cq).byte_len == both_length(i);
    }
    printf("%d messages, the lengths of %u right\n", BOTH_MESSAGES, right);
    return 0;
}
