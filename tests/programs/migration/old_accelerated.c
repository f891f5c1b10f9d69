/* SPDX-License-Identifier: BSD-2-Clause */
/* Accelerated verbs, old: messages by the functions of ibv_exp_query_intf(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static void *family(struct both *b, enum ibv_exp_intf_family which, void *obj)
{
    struct ibv_exp_query_intf_params params = {
        .intf_scope = IBV_EXP_INTF_GLOBAL, .intf = which, .obj = obj};
    enum ibv_exp_query_intf_status status;
    void *found = ibv_exp_query_intf(b->ctx, &params, &status);

    NEED(found && status == IBV_EXP_INTF_STAT_OK);
    return found;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *one = both_rc(&b, b.cq), *other = both_rc(&b, recvs);
    struct ibv_exp_qp_burst_family *burst;
    struct ibv_exp_cq_family *poll;
    struct ibv_exp_release_intf_params none = {0};
    struct ibv_sge sge[3];
    int done = 0;

    both_connect(one, other);
    for (unsigned i = 0; i < 3; i++) {
        both_recv(other, both_to(&b) + i * 100, 100, b.mr->lkey);
        sge[i] = (struct ibv_sge){(uintptr_t)both_from(&b) + i * 100, 100, b.mr->lkey};
    }
    burst = family(&b, IBV_EXP_INTF_QP_BURST, one);
    poll = family(&b, IBV_EXP_INTF_CQ, b.cq);
    NEED(!burst->send_burst(one, sge, 3, IBV_EXP_QP_BURST_SIGNALED));
    while (done < 3) {
        int n = poll->poll_cnt(b.cq, 3);

        NEED(n >= 0);
        done += n;
    }
    for (unsigned i = 0; i < 3; i++) {
        both_done(recvs);
    }
    printf("3 messages, %d completions, data %s\n", done, both_same(&b, 300) ? "right" : "wrong");
    NEED(!ibv_exp_release_intf(b.ctx, burst, &none) && !ibv_exp_release_intf(b.ctx, poll, &none));
    return 0;
}
