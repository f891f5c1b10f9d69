/* SPDX-License-Identifier: BSD-2-Clause */
/* PeerDirect sync: a context is opened only for a peer that is there. This one is not. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    char name[] = "a peer";
    struct ibv_exp_open_device_attr attr = {.comp_mask = IBV_EXP_SET_ATTR_PEER_INFO,
                                            .peer_info = {.peer_id = 7, .peer_name = name}};
    struct ibv_exp_open_device_attr empty = {0};
    struct ibv_context *ctx;

    NEED(list && list[0]);
    ctx = ibv_exp_open_device(list[0], &attr);
    printf("for a peer: %s\n", ctx ? "open" : strerror(errno));
    NEED(!ctx || !ibv_close_device(ctx));
    errno = 0;
    ctx = ibv_exp_open_device(list[0], &empty);
    printf("without an attribute: %s\n", ctx ? "open" : strerror(errno));
    ibv_free_device_list(list);
    return 0;
}
