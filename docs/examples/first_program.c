/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A first verbs program: two queue pairs of one process are connected to each other, and the first
 * one sends a message that the second one receives. docs/start/first-program.md explains each step.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GID_INDEX 1 /* the GID made from the device's IPv4 address; packets are RoCE v2 */

/* Ends the program if `error`, an errno, is not 0. */
static void check(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "cannot %s: %s\n", what, strerror(error));
        exit(1);
    }
}

/* Takes a queue pair from RESET to RTS, connected to queue pair number `dest` at address `gid`. */
static void connect_to(struct ibv_qp *qp, uint32_t dest, union ibv_gid gid)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "modify to INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .min_rnr_timer = 12,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = gid, .sgid_index = GID_INDEX, .hop_limit = 64}}};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "modify to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 3, .max_rd_atomic = 1};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
          "modify to RTS");
}

int main(void)
{
    static char from[64] = "hello from queue pair 0", to[64];
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list && list[0] ? 0 : ENODEV, "find an RDMA device");
    struct ibv_context *ctx = ibv_open_device(list[0]);
    check(ctx ? 0 : errno, "open the device");
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    check(pd ? 0 : errno, "allocate a protection domain");
    struct ibv_mr *mr_from = ibv_reg_mr(pd, from, sizeof(from), 0);
    struct ibv_mr *mr_to = ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE);
    check(mr_from && mr_to ? 0 : errno, "register memory");
    struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    check(cq ? 0 : errno, "create a completion queue");
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp[2] = {ibv_create_qp(pd, &init), ibv_create_qp(pd, &init)};
    check(qp[0] && qp[1] ? 0 : errno, "create queue pairs");
    union ibv_gid gid;
    check(ibv_query_gid(ctx, 1, GID_INDEX, &gid) ? errno : 0, "query the GID");
    connect_to(qp[0], qp[1]->qp_num, gid);
    connect_to(qp[1], qp[0]->qp_num, gid);

    struct ibv_sge sge_to = {.addr = (uintptr_t)to, .length = sizeof(to), .lkey = mr_to->lkey};
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &sge_to, .num_sge = 1}, *bad_recv;
    check(ibv_post_recv(qp[1], &recv, &bad_recv), "post a receive");
    struct ibv_sge sge_from = {
        .addr = (uintptr_t)from, .length = sizeof(from), .lkey = mr_from->lkey};
    struct ibv_send_wr send = {.wr_id = 2,
                               .sg_list = &sge_from,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    check(ibv_post_send(qp[0], &send, &bad_send), "post a send");

    for (int completed = 0; completed < 2;) { /* one completion of each queue pair */
        struct ibv_wc wc;
        if (ibv_poll_cq(cq, 1, &wc) == 1) {
            printf("work request %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
            if (wc.status != IBV_WC_SUCCESS) {
                return 1;
            }
            completed++;
        }
    }
    printf("received: %s\n", to);
    return strcmp(from, to) != 0;
}
