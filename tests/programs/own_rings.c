/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own_rings [RUNS [SEED]]: gets its rings by mlx5dv_init_obj(). From then on it posts, rings
 * doorbells and looks for completions through memory alone, as a GPU does. Before and in between it
 * makes no call for 1 ms to 1 s. Each run opens the device again. The value that is stored to the
 * doorbell page, and the instructions that store it, change from message to message. If a doorbell
 * is not noticed, the program ends with an error.
 *
 * Written to libibverbs and libmlx5 alone.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/pair.h"

#define RUNS     6
#define MESSAGES 5 /* in a run; each way to ring gets a turn */
#define IDLE_MS  1000

/* The rings of one end. */
struct rings {
    struct mlx5dv_qp qp;
    struct mlx5dv_cq cq;
    unsigned toggle; /* 0, or the size of a BlueFlame buffer */
    unsigned arms;
    uint32_t pi, ci;
};

static double longest;

static void idle(void)
{
    /* as often between 1 and 10 ms as between 100 ms and 1 s */
    usleep((useconds_t)(1000 * pow(IDLE_MS, drand48())));
}

static void take_rings(struct pair *p, int end, struct rings *r)
{
    struct mlx5dv_obj obj = {.qp = {.in = p->qp[end], .out = &r->qp},
                             .cq = {.in = p->cq[end], .out = &r->cq}};

    memset(r, 0, sizeof(*r));
    must_be_0(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ));
    must(r->qp.bf.reg && r->cq.cq_uar, "no doorbell page");
}

/* -- doorbells --------------------------------------------------------------------------------- */

struct doorbell {
    volatile uint64_t *at;
    uint64_t words[8];
    unsigned num;
};

static void *store(void *opaque)
{
    const struct doorbell *d = opaque;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < d->num; i++) {
        d->at[i] = d->words[i];
    }
    return NULL;
}

static void store_in_a_thread(struct doorbell *d)
{
    pthread_t thread;

    must_be_0(pthread_create(&thread, NULL, store, d));
    must_be_0(pthread_join(thread, NULL));
}

static void store_in_a_process(struct doorbell *d)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        store(d);
        _exit(0);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0, "errno %d", errno);
}

/* Rings in one of the ways: stores 8 bytes, or with BlueFlame the whole WQE. */
static void ring(struct rings *r, const void *wqe, unsigned way)
{
    struct doorbell d = {.at = (volatile uint64_t *)((char *)r->qp.bf.reg + r->toggle),
                         .num = way == 1 ? 8 : 1};

    memcpy(d.words, wqe, sizeof(d.words));
    r->toggle ^= r->qp.bf.size;
    if (way == 2) {
        store_in_a_thread(&d);
    } else if (way == 3) {
        store_in_a_process(&d);
    } else {
        store(&d);
    }
}

static void send_by_hand(struct pair *p, struct rings *r, unsigned slot, unsigned way)
{
    void *wqe = (char *)r->qp.sq.buf + (size_t)(r->pi % r->qp.sq.wqe_cnt) * r->qp.sq.stride;
    struct mlx5_wqe_ctrl_seg *ctrl = wqe;

    memset(wqe, 0, 64);
    mlx5dv_set_ctrl_seg(ctrl, (uint16_t)r->pi, MLX5_OPCODE_SEND, 0, p->qp[0]->qp_num,
                        MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, 0);
    mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(ctrl + 1), MSG, p->mr[0]->lkey,
                        (uintptr_t)p->buf[0][slot]);
    r->pi++;
    __atomic_store_n(&r->qp.dbrec[MLX5_SND_DBR], htobe32(r->pi & 0xffff), __ATOMIC_RELEASE);
    ring(r, wqe, way);
}

/* -- completions ------------------------------------------------------------------------------- */

static const struct mlx5_cqe64 *cqe_of(const struct rings *r)
{
    uint32_t at = r->ci % r->cq.cqe_cnt;
    char *cqe = (char *)r->cq.buf + (size_t)at * r->cq.cqe_size;

    return (void *)(cqe + (r->cq.cqe_size == 128 ? 64 : 0));
}

static bool is_there(const struct rings *r)
{
    uint8_t op_own = __atomic_load_n(&cqe_of(r)->op_own, __ATOMIC_ACQUIRE);

    return op_own >> 4 != MLX5_CQE_INVALID && (op_own & 1) == !!(r->ci & r->cq.cqe_cnt);
}

static void take_completion(struct rings *r, unsigned opcode, const char *what)
{
    double start = now();

    while (!is_there(r)) {
        must(now() < start + SECONDS, "%s: no completion %u", what, r->ci);
        usleep(100);
    }
    longest = now() - start > longest ? now() - start : longest;
    must(cqe_of(r)->op_own >> 4 == opcode, "%s: opcode 0x%x", what, cqe_of(r)->op_own >> 4);
    r->ci++;
    __atomic_store_n(&r->cq.dbrec[0], htobe32(r->ci & 0xffffff), __ATOMIC_RELEASE);
}

/* Arms for any completion from the next on. The first time, the store to the record writes a 0
 * where a 0 was. */
static void arm_by_hand(struct rings *r)
{
    uint32_t word = (r->arms++ & 3) << 28 | (r->ci & 0xffffff);
    struct doorbell d = {.at = (volatile uint64_t *)((char *)r->cq.cq_uar + MLX5_CQ_DOORBELL),
                         .words = {htobe64((uint64_t)word << 32 | r->cq.cqn)},
                         .num = 1};

    __atomic_store_n(&r->cq.dbrec[1], htobe32(word), __ATOMIC_RELEASE);
    store(&d);
}

static void take_event(struct ibv_comp_channel *channel, const struct ibv_cq *wanted)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    must(poll(&fd, 1, SECONDS * 1000) == 1, "no event of CQ %p", (const void *)wanted);
    must_be_0(ibv_get_cq_event(channel, &cq, &context));
    must(cq == wanted, "an event of another CQ");
    ibv_ack_cq_events(cq, 1);
}

/* ---------------------------------------------------------------------------------------------- */

static void run(void)
{
    static struct rings r[2];
    struct pair *p;

    idle();
    device_open();
    p = pair_new(true, false);
    for (unsigned slot = 0; slot < MESSAGES; slot++) {
        post_recv(p, 1, slot);
        memset(p->buf[0][slot], (int)slot + 1, MSG);
    }
    idle();
    take_rings(p, 0, &r[0]);
    take_rings(p, 1, &r[1]);
    for (unsigned slot = 0; slot < MESSAGES; slot++) {
        bool events = slot != 1;

        idle();
        if (events) {
            arm_by_hand(&r[0]);
            arm_by_hand(&r[1]);
        }
        send_by_hand(p, &r[0], slot, slot);
        if (events) {
            take_event(p->channel[1], p->cq[1]);
            take_event(p->channel[0], p->cq[0]);
        }
        take_completion(&r[1], MLX5_CQE_RESP_SEND, "receiver");
        take_completion(&r[0], MLX5_CQE_REQ, "sender");
        must(!memcmp(p->buf[0][slot], p->buf[1][slot], MSG), "message %u", slot);
    }
    pair_free(p);
    device_close();
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : RUNS;

    srand48(argc > 2 ? atol(argv[2]) : (long)getpid());
    for (int i = 0; i < runs; i++) {
        run();
    }
    printf("%d runs; the longest wait for a completion: %.1f ms\n", runs, longest * 1e3);
    return 0;
}
