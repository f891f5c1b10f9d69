/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives both ends of a connection in one thread, each on its own device, to count what a message
 * costs: the result does not depend on the scheduling of another process (scripts/bench cost).
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/programs/other_side.h"

#define DEPTH 128 /* work requests of a queue */
#define BATCH 16  /* completions in a poll */
#define GID   1

static const char usage[] =
    "usage: one_thread OPERATION SIZE COUNT OUTSTANDING\n"
    "\n"
    "Does COUNT operations (write, read, send, add) of SIZE bytes from the first device to the second\n"
    "one, OUTSTANDING at a time, in measured(). Prints nothing if all is well.\n";

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    union ibv_gid gid;
    uint8_t *buf;
};

static struct end near, far;

static void end_open(struct end *end, struct ibv_device *device, size_t size)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_REMOTE_ATOMIC;

    need((end->context = ibv_open_device(device)), "ibv_open_device()");
    need((end->pd = ibv_alloc_pd(end->context)), "ibv_alloc_pd()");
    need((end->cq = ibv_create_cq(end->context, 2 * DEPTH, NULL, NULL, 0)), "ibv_create_cq()");
    init.send_cq = init.recv_cq = end->cq;
    need((end->qp = ibv_create_qp(end->pd, &init)), "ibv_create_qp()");
    need((end->buf = aligned_alloc(4096, (size + 4095) / 4096 * 4096)), "aligned_alloc()");
    memset(end->buf, 1, size);
    need((end->mr = ibv_reg_mr(end->pd, end->buf, size, access)), "ibv_reg_mr()");
    need(!ibv_query_gid(end->context, 1, GID, &end->gid), "ibv_query_gid()");
}

static void end_connect(struct end *end, const struct end *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};

    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "to INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer->qp->qp_num,
        .max_dest_rd_atomic = 16,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = GID, .hop_limit = 64}},
    };
    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 18,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 16};
    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
}

static enum ibv_wr_opcode opcode_of(const char *name)
{
    static const struct {
        const char *name;
        enum ibv_wr_opcode opcode;
    } operations[] = {
        {"write", IBV_WR_RDMA_WRITE},
        {"read", IBV_WR_RDMA_READ},
        {"send", IBV_WR_SEND},
        {"add", IBV_WR_ATOMIC_FETCH_AND_ADD},
    };

    for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (!strcmp(name, operations[i].name)) {
            return operations[i].opcode;
        }
    }
    fail("no operation is called %s", name);
}

static void post_send(enum ibv_wr_opcode opcode, uint32_t size)
{
    struct ibv_sge sge = {(uintptr_t)near.buf, size, near.mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)far.buf;
        wr.wr.atomic.rkey = far.mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)far.buf;
        wr.wr.rdma.rkey = far.mr->rkey;
    }
    need(!ibv_post_send(near.qp, &wr, &bad), "ibv_post_send()");
}

static void post_recv(uint32_t size)
{
    struct ibv_sge sge = {(uintptr_t)far.buf, size, far.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

    need(!ibv_post_recv(far.qp, &wr, &bad), "ibv_post_recv()");
}

static unsigned poll(struct ibv_cq *cq)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(cq, BATCH, wc);

    need(n >= 0, "ibv_poll_cq()");
    for (int i = 0; i < n; i++) {
        if (wc[i].status) {
            fail("%s", ibv_wc_status_str(wc[i].status));
        }
    }
    return (unsigned)n;
}

/* The function that a profiler measures. */
void measured(enum ibv_wr_opcode opcode, uint32_t size, unsigned count, unsigned outstanding);

__attribute__((noinline)) void measured(enum ibv_wr_opcode opcode, uint32_t size, unsigned count,
                                        unsigned outstanding)
{
    unsigned posted = 0, done = 0, offered = 0, taken = 0;

    while (done < count) {
        while (opcode == IBV_WR_SEND && offered < count && offered - taken < outstanding) {
            post_recv(size);
            offered++;
        }
        while (posted < count && posted - done < outstanding) {
            post_send(opcode, size);
            posted++;
        }
        taken += poll(far.cq);
        done += poll(near.cq);
    }
}

int main(int argc, char **argv)
{
    struct ibv_device **devices;
    unsigned outstanding;
    uint32_t size;
    int n;

    if (argc != 5) {
        fputs(usage, stderr);
        return 2;
    }
    size = (uint32_t)strtoul(argv[2], NULL, 0);
    outstanding = (unsigned)strtoul(argv[4], NULL, 0);
    need(size >= 8 && outstanding >= 1 && outstanding <= DEPTH,
         "at least 8 bytes, 1 to 128 outstanding");
    need((devices = ibv_get_device_list(&n)) && n >= 2, "two devices");
    end_open(&near, devices[0], size);
    end_open(&far, devices[1], size);
    ibv_free_device_list(devices);
    end_connect(&near, &far);
    end_connect(&far, &near);
    measured(opcode_of(argv[1]), size, (unsigned)strtoul(argv[3], NULL, 0), outstanding);
    return 0;
}
