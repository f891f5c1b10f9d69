/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how many messages a second many RC QPs of one device have together. Each QP is connected
 * to itself. One thread handles all QPs, or several threads share them (scripts/bench verbs). Every
 * message contains its number and its QP, and both are checked.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define MSG     64
#define DEPTH   16 /* outstanding messages of a QP */
#define BATCH   16 /* completions in a poll, WQEs for a doorbell */
#define MOST    64 /* the most QPs and threads */
#define TIMEOUT 18
#define IS_SEND                                                                                    \
    (1ull << 32) /* in wr_id, beside the slot and the number of the QP in its thread               \
                  */

static const char usage[] =
    "usage: many_qps [GID [QPS [THREADS [MESSAGES]]]]\n"
    "\n"
    "Has each of QPS (8) RC QPs send itself MESSAGES (100000) of 64 bytes; THREADS (1) threads have as\n"
    "many of them each, and a CQ. Prints the rate of all together, in millions a second.\n";

struct queue {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t out[DEPTH][MSG / 8], in[DEPTH][MSG / 8];
    uint64_t name, sent, got;
};

struct worker {
    pthread_t thread;
    struct ibv_cq *cq;
    struct queue *queues;
    unsigned count;
    uint64_t left; /* messages that have not arrived */
};

static uint64_t messages = 100000;
static pthread_barrier_t all_there;

static void queue_open(struct queue *queue, struct ibv_pd *pd, struct ibv_cq *cq, unsigned gid)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};

    need((queue->qp = ibv_create_qp(pd, &init)), "ibv_create_qp()");
    need((queue->mr = ibv_reg_mr(pd, queue, sizeof(*queue), IBV_ACCESS_LOCAL_WRITE)),
         "ibv_reg_mr()");
    queue->name = (uint64_t)queue->qp->qp_num << 40;
    endpoint_init_rc(queue->qp, 0);
    endpoint_connect_rc(queue->qp, endpoint_towards(endpoint_gid(pd->context, gid), gid),
                        queue->qp->qp_num, TIMEOUT);
}

static void queue_receive(struct queue *queue, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)queue->in[wr_id % DEPTH], MSG, queue->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    need(!ibv_post_recv(queue->qp, &wr, &bad), "ibv_post_recv()");
}

static void queue_send(struct queue *queue, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)queue->out[wr_id % DEPTH], MSG, queue->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.wr_id = IS_SEND | wr_id, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

    for (unsigned i = 0; i < MSG / 8; i++) {
        queue->out[wr_id % DEPTH][i] = queue->name + queue->sent * (MSG / 8) + i;
    }
    queue->sent++;
    need(!ibv_post_send(queue->qp, &wr, &bad), "ibv_post_send()");
}

static void queue_check(struct queue *queue, uint64_t wr_id)
{
    for (unsigned i = 0; i < MSG / 8; i++) {
        if (queue->in[wr_id % DEPTH][i] != queue->name + queue->got * (MSG / 8) + i) {
            fail("message %llu of QP 0x%x is wrong", (unsigned long long)queue->got,
                 queue->qp->qp_num);
        }
    }
    queue->got++;
}

static void worker_complete(struct worker *worker, const struct ibv_wc *wc)
{
    struct queue *queue = &worker->queues[(wc->wr_id & ~IS_SEND) / DEPTH];

    if (wc->status) {
        fail("%s", ibv_wc_status_str(wc->status));
    }
    if (!(wc->wr_id & IS_SEND)) {
        queue_check(queue, wc->wr_id);
        worker->left--;
        queue_receive(queue, wc->wr_id);
    } else if (queue->sent < messages) {
        queue_send(queue, wc->wr_id & ~IS_SEND);
    }
}

static void *worker_main(void *opaque)
{
    struct worker *worker = opaque;
    struct ibv_wc wc[BATCH];

    for (unsigned i = 0; i < worker->count * DEPTH; i++) {
        queue_receive(&worker->queues[i / DEPTH], i);
    }
    pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < worker->count * DEPTH; i++) {
        if (worker->queues[i / DEPTH].sent < messages) {
            queue_send(&worker->queues[i / DEPTH], i);
        }
    }
    worker->left = worker->count * messages;
    while (worker->left) {
        int n = ibv_poll_cq(worker->cq, BATCH, wc);

        need(n >= 0, "ibv_poll_cq()");
        for (int i = 0; i < n; i++) {
            worker_complete(worker, &wc[i]);
        }
    }
    return NULL;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static unsigned argument(int argc, char **argv, int n, unsigned otherwise)
{
    return n < argc ? (unsigned)strtoul(argv[n], NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
    unsigned gid = argument(argc, argv, 1, 1), num_qps = argument(argc, argv, 2, 8);
    unsigned num_threads = argument(argc, argv, 3, 1);
    static struct worker workers[MOST];
    static struct queue queues[MOST];
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    double begin;

    messages = argument(argc, argv, 4, (unsigned)messages);
    if (!num_threads || !messages || num_qps > MOST || num_qps % num_threads) {
        fputs(usage, stderr);
        return 2;
    }
    ctx = endpoint_open(NULL, ibv_open_device);
    need((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd()");
    need(!pthread_barrier_init(&all_there, NULL, num_threads + 1), "pthread_barrier_init()");
    for (unsigned i = 0; i < num_threads; i++) {
        struct worker *worker = &workers[i];

        worker->count = num_qps / num_threads;
        worker->queues = &queues[i * worker->count];
        worker->cq = ibv_create_cq(ctx, (int)(2 * DEPTH * worker->count), NULL, NULL, 0);
        need(worker->cq, "ibv_create_cq()");
        for (unsigned q = 0; q < worker->count; q++) {
            queue_open(&worker->queues[q], pd, worker->cq, gid);
        }
        need(!pthread_create(&worker->thread, NULL, worker_main, worker), "pthread_create()");
    }
    pthread_barrier_wait(&all_there);
    begin = seconds();
    for (unsigned i = 0; i < num_threads; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    printf("%u QPs, %u threads: %.3f Mmsg/s\n", num_qps, num_threads,
           (double)(num_qps * messages) / (seconds() - begin) * 1e-6);
    return 0;
}
