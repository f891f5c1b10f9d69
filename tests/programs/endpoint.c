/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements endpoint.h: options, devices and QPs of programs with two sides. */
#include "tests/programs/endpoint.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/other_side.h"

#define RD_ATOMIC 8 /* outstanding READs and atomics in each direction */

void endpoint_options(int argc, char **argv, struct endpoint_options *options)
{
    int option;

    while ((option = getopt(argc, argv, "d:g:p:")) != -1) {
        switch (option) {
        case 'd':
            options->device = optarg;
            break;
        case 'g':
            options->gid_index = (unsigned)atoi(optarg);
            break;
        case 'p':
            options->port = optarg;
            break;
        default:
            exit(2);
        }
    }
    options->host = argv[optind];
}

struct ibv_context *endpoint_open(const char *name,
                                  struct ibv_context *(*open)(struct ibv_device *device))
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list && list[i] && !ctx; i++) {
        if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
            ctx = open(list[i]);
        }
    }
    need(ctx, "opening the device");
    ibv_free_device_list(list);
    return ctx;
}

union ibv_gid endpoint_gid(struct ibv_context *ctx, unsigned gid_index)
{
    union ibv_gid gid;

    need(!ibv_query_gid(ctx, ENDPOINT_PORT, (int)gid_index, &gid), "ibv_query_gid()");
    return gid;
}

struct ibv_ah_attr endpoint_towards(union ibv_gid gid, unsigned gid_index)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = ENDPOINT_PORT,
        .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}};
}

void endpoint_init_rc(struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = ENDPOINT_PORT, .qp_access_flags = access};

    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "a QP to INIT");
}

void endpoint_connect_rc(struct ibv_qp *qp, struct ibv_ah_attr to, uint32_t qpn, uint8_t timeout)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = qpn,
                               .max_dest_rd_atomic = RD_ATOMIC,
                               .min_rnr_timer = 12,
                               .ah_attr = to};

    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "a QP to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = timeout,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = RD_ATOMIC};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "a QP to RTS");
}

struct ibv_wc endpoint_completion(struct ibv_cq *cq)
{
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        need(time(NULL) < end, "waiting for a completion");
    }
    need(n == 1, "ibv_poll_cq()");
    return wc;
}
