/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte order of an atomic's answer. This device answers in the host's order, so it refuses the
 * flag by which a program accepts answers in the other order, as MLNX_OFED's kernel did.
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = b.cq,
        .recv_cq = b.cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS,
        .pd = b.pd,
        .exp_create_flags = IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY,
    };
    struct ibv_exp_device_attr device = {0};

    NEED(!ibv_exp_query_device(b.ctx, &device));
    printf("answers in the other order: %s\n",
           device.exp_atomic_cap == IBV_EXP_ATOMIC_HCA_REPLY_BE ? "yes" : "no");
    errno = 0;
    printf("a queue pair for them: %s\n",
           ibv_exp_create_qp(b.ctx, &attr) ? "made" : strerror(errno));
    return 0;
}
