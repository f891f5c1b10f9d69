/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of the course share: the two ends of a connection, in one program.
 *
 * Each end is a device of its own, so packets between the ends cross a wire, where they can be
 * captured and lost. `hcasim run --devices 2` gives a program two devices. On a machine with one
 * card, both ends are on this card.
 *
 * A failed call ends the program with a line that says which call failed.
 */
#ifndef HCASIM_COURSE_LAB_H
#define HCASIM_COURSE_LAB_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GID_INDEX   1 /* the GID that is made from the device's IPv4 address: RoCE v2 */
#define LAB_BYTES   65536
#define LAB_SECONDS 5 /* after which a completion that does not come is a failure */

struct end {
    const char *name;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr; /* all of buf, for every kind of access */
    struct ibv_qp *qp; /* the last one that lab_make_qp() made */
    union ibv_gid gid;
    uint8_t buf[LAB_BYTES];
};

/* Ends the program if `error`, an errno, is not 0. */
static void lab_check(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "cannot %s: %s\n", what, strerror(error));
        exit(1);
    }
}

/* Opens a device and registers the memory of the end. index: which of the devices. */
static __attribute__((unused)) struct end *lab_open(const char *name, int index)
{
    struct end *end = calloc(1, sizeof(*end));
    int devices = 0;
    struct ibv_device **list = ibv_get_device_list(&devices);

    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what goes to standard error */
    lab_check(end ? 0 : ENOMEM, "allocate the end");
    lab_check(list && devices ? 0 : ENODEV, "find an RDMA device");
    end->name = name;
    end->ctx = ibv_open_device(list[index < devices ? index : 0]);
    lab_check(end->ctx ? 0 : errno, "open the device");
    ibv_free_device_list(list);
    end->pd = ibv_alloc_pd(end->ctx);
    lab_check(end->pd ? 0 : errno, "allocate a protection domain");
    end->mr = ibv_reg_mr(end->pd, end->buf, sizeof(end->buf),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    lab_check(end->mr ? 0 : errno, "register memory");
    end->cq = ibv_create_cq(end->ctx, 256, NULL, NULL, 0);
    lab_check(end->cq ? 0 : errno, "create a completion queue");
    lab_check(ibv_query_gid(end->ctx, 1, GID_INDEX, &end->gid) ? EIO : 0, "query the GID");
    return end;
}

/* Creates a queue pair of type RC. srq: its shared receive queue, or NULL. */
static __attribute__((unused)) struct ibv_qp *lab_make_qp(struct end *end, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .srq = srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};

    end->qp = ibv_create_qp(end->pd, &init);
    lab_check(end->qp ? 0 : errno, "create a queue pair");
    return end->qp;
}

/* The times of a connection: docs/course/4-reliable-delivery.md explains them. */
struct lab_retries {
    uint8_t timeout, retry_cnt, min_rnr_timer, rnr_retry;
};

#define LAB_RETRIES                                                                                \
    {                                                                                              \
        .timeout = 14, .retry_cnt = 7, .min_rnr_timer = 12, .rnr_retry = 3                         \
    }

/* Takes a queue pair from RESET to RTS, connected to number `dest` at the address of `peer`. */
static __attribute__((unused)) void
lab_connect_qp(struct ibv_qp *qp, uint32_t dest, const struct end *peer, struct lab_retries retries)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};

    lab_check(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              "modify to INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .min_rnr_timer = retries.min_rnr_timer,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = GID_INDEX, .hop_limit = 64}}};
    lab_check(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              "modify to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = retries.timeout,
                                .retry_cnt = retries.retry_cnt,
                                .rnr_retry = retries.rnr_retry,
                                .max_rd_atomic = 1};
    lab_check(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              "modify to RTS");
}

/* Gives each of two ends a queue pair, and connects them. */
static __attribute__((unused)) void lab_connect(struct end *a, struct end *b,
                                                struct lab_retries retries)
{
    lab_make_qp(a, NULL);
    lab_make_qp(b, NULL);
    lab_connect_qp(a->qp, b->qp->qp_num, b, retries);
    lab_connect_qp(b->qp, a->qp->qp_num, a, retries);
}

/* Posts a receive for `len` bytes at `at` in the buffer of the end. */
static __attribute__((unused)) void lab_post_recv(struct end *end, uint64_t wr_id, size_t at,
                                                  uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)end->buf + at, .length = len, .lkey = end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    lab_check(ibv_post_recv(end->qp, &wr, &bad), "post a receive");
}

/* Posts a SEND, WRITE or READ of `len` bytes at `at` in the buffer of the end. remote, rkey: the
 * memory of the peer that a WRITE or READ accesses. */
static __attribute__((unused)) void lab_post(struct end *end, enum ibv_wr_opcode opcode,
                                             uint64_t wr_id, size_t at, uint32_t len,
                                             const void *remote, uint32_t rkey)
{
    struct ibv_sge sge = {.addr = (uintptr_t)end->buf + at, .length = len, .lkey = end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)remote, .rkey = rkey}},
                       *bad;

    lab_check(ibv_post_send(end->qp, &wr, &bad), "post a send");
}

/* The time of a clock that never goes back, in milliseconds. */
static double lab_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Waits for the next completion of the end, and prints it. */
static __attribute__((unused)) struct ibv_wc lab_wait(struct end *end)
{
    double give_up = lab_ms() + LAB_SECONDS * 1e3;
    struct ibv_wc wc;
    int found;

    while (!(found = ibv_poll_cq(end->cq, 1, &wc))) {
        lab_check(lab_ms() > give_up ? ETIMEDOUT : 0, "get a completion");
    }
    lab_check(found < 0 ? EIO : 0, "poll the completion queue");
    printf("%s: work request %d: %s\n", end->name, (int)wc.wr_id, ibv_wc_status_str(wc.status));
    return wc;
}

#endif
