/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle: opens the first device, exchanges messages over two connected QPs, then sleeps until an
 * event comes, which never happens. Prints "idle" when there is nothing more to do.
 *
 * Written to libibverbs alone. Other programs measure its use of resources from outside.
 */
#include "tests/programs/pair.h"

int main(void)
{
    struct ibv_cq *cq;
    struct pair *p;
    void *context;

    device_open();
    p = pair_new(true, false);
    for (unsigned n = 0; n < 1000; n++) {
        message(p, n & 1, n);
    }
    must_be_0(ibv_req_notify_cq(p->cq[0], 0));
    puts("idle");
    fflush(stdout);
    must_be_0(ibv_get_cq_event(p->channel[0], &cq, &context));
    return 1;
}
