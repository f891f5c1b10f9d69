/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte order of an atomic's answer. This device answers in the host's order, so it refuses the
 * flag by which a program accepts answers in the other order, as MLNX_OFED's kernel did.
 */
#include "tests/programs/migration/old.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_qp_init_attr attr = old_rc(&b, b.cq);
    struct ibv_exp_device_attr device = {0};

    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
    attr.exp_create_flags = IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY;
    NEED(!ibv_exp_query_device(b.ctx, &device));
    printf("answers in the other order: %s\n",
           device.exp_atomic_cap == IBV_EXP_ATOMIC_HCA_REPLY_BE ? "yes" : "no");
    errno = 0;
    printf("a queue pair for them: %s\n",
           ibv_exp_create_qp(b.ctx, &attr) ? "made" : strerror(errno));
    return 0;
}
