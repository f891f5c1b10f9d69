/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AS notify: a CQ whose events would wake a thread of a POWER machine directly. Elsewhere the card
 * falls back to interrupts, so the program sees ordinary events, or the flag is refused.
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(b.ctx);
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_AS_NOTIFY};
    struct ibv_cq *cq, *of;
    struct ibv_qp *qp;
    void *context;

    NEED(channel);
    errno = 0;
    if (!(cq = ibv_exp_create_cq(b.ctx, 16, NULL, channel, 0, &attr))) {
        printf("a CQ with AS notify: %s\n", strerror(errno));
        return ABSENT;
    }
    qp = both_rc(&b, cq);
    both_loop(qp);
    NEED(!ibv_req_notify_cq(cq, 0));
    both_write(qp, both_from(&b), 8, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    NEED(!ibv_get_cq_event(channel, &of, &context) && of == cq);
    ibv_ack_cq_events(cq, 1);
    both_done(cq);
    printf("a CQ with AS notify: one event\n");
    return 0;
}
