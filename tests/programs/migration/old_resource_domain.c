/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource domains, old: ibv_exp_create_res_domain(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_res_domain_init_attr attr = {.comp_mask = IBV_EXP_RES_DOMAIN_THREAD_MODEL,
                                                .thread_model = IBV_EXP_THREAD_SINGLE};
    struct ibv_exp_res_domain *domain = ibv_exp_create_res_domain(b.ctx, &attr);
    struct ibv_exp_cq_init_attr cq_attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN,
                                           .res_domain = domain};
    struct ibv_exp_qp_init_attr qp_attr = {
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_RES_DOMAIN,
        .pd = b.pd,
        .res_domain = domain,
    };
    struct ibv_qp *qp;

    NEED(domain);
    NEED(qp_attr.send_cq = ibv_exp_create_cq(b.ctx, 16, NULL, NULL, 0, &cq_attr));
    qp_attr.recv_cq = qp_attr.send_cq;
    NEED(qp = ibv_exp_create_qp(b.ctx, &qp_attr));
    both_loop(qp);
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    both_done(qp_attr.send_cq);
    printf("queues of a domain: data %s\n", both_same(&b, 4096) ? "right" : "wrong");
    NEED(!ibv_destroy_qp(qp) && !ibv_destroy_cq(qp_attr.send_cq));
    printf("the domain ends: %d\n", ibv_exp_destroy_res_domain(b.ctx, domain, NULL));
    return 0;
}
