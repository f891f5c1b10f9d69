/* SPDX-License-Identifier: BSD-2-Clause */
/* Multi-packet RQ, old: mp_rq_caps of ibv_exp_query_device(), mp_rq of ibv_exp_create_wq(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_MP_RQ,
                                       .mp_rq_caps.supported_qps = ~0u};
    struct ibv_exp_wq_init_attr wq = {.wq_type = IBV_EXP_WQT_RQ,
                                      .max_recv_wr = 8,
                                      .max_recv_sge = 1,
                                      .pd = b.pd,
                                      .cq = b.cq,
                                      .comp_mask = IBV_EXP_CREATE_WQ_MP_RQ,
                                      .mp_rq = {.use_shift = IBV_EXP_MP_RQ_NO_SHIFT,
                                                .single_wqe_log_num_of_strides = 9,
                                                .single_stride_log_num_of_bytes = 6}};
    struct ibv_exp_wq *made;

    NEED(!ibv_exp_query_device(b.ctx, &attr) && attr.comp_mask & IBV_EXP_DEVICE_ATTR_MP_RQ);
    printf("the device has strides: %s\n", attr.mp_rq_caps.supported_qps ? "yes" : "no");
    errno = 0;
    made = ibv_exp_create_wq(b.ctx, &wq);
    printf("a queue with strides: %s\n", made ? "made" : strerror(errno));
    NEED(!made || !ibv_exp_destroy_wq(made));
    return 0;
}
