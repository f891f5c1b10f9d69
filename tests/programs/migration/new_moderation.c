/* SPDX-License-Identifier: BSD-2-Clause */
/* CQ moderation, new: ibv_modify_cq(). */
#include "tests/programs/migration/both.h"

#define COUNT 4

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(b.ctx);
    struct ibv_cq *cq = ibv_create_cq(b.ctx, 64, NULL, channel, 0), *of;
    struct ibv_qp *qp = both_rc(&b, cq);
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                      .moderate = {.cq_count = COUNT, .cq_period = 4000}};
    void *context;

    both_loop(qp);
    NEED(!ibv_modify_cq(cq, &attr));
    NEED(!ibv_req_notify_cq(cq, 0));
    for (unsigned i = 0; i < COUNT; i++) {
        both_write(qp, both_from(&b), 8, b.mr->lkey, (uintptr_t)both_to(&b), b.mr->rkey);
    }
    NEED(!ibv_get_cq_event(channel, &of, &context) && of == cq);
    ibv_ack_cq_events(cq, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        both_done(cq);
    }
    printf("one event, %d completions\n", COUNT);
    return 0;
}
