/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource domains, new: ibv_alloc_td(), ibv_alloc_parent_domain(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(b.ctx, &td_attr);
    struct ibv_parent_domain_init_attr attr = {.pd = b.pd, .td = td};
    struct ibv_pd *domain = ibv_alloc_parent_domain(b.ctx, &attr);
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16,
                                          .wc_flags = IBV_WC_STANDARD_FLAGS,
                                          .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
                                          .parent_domain = domain};
    struct ibv_qp_init_attr qp_attr = {
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp;

    NEED(domain);
    NEED(cq = ibv_create_cq_ex(b.ctx, &cq_attr));
    qp_attr.send_cq = qp_attr.recv_cq = ibv_cq_ex_to_cq(cq);
    NEED(qp = ibv_create_qp(domain, &qp_attr));
    both_loop(qp);
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    both_done(qp_attr.send_cq);
    printf("queues of a domain: data %s\n", both_same(&b, 4096) ? "right" : "wrong");
    NEED(!ibv_destroy_qp(qp) && !ibv_destroy_cq(qp_attr.send_cq));
    printf("the domain ends: %d\n", ibv_dealloc_pd(domain) || ibv_dealloc_td(td));
    return 0;
}
