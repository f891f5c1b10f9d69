/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: stamps [-d DEVICE] [-g GID] [CLOCK]
 *
 * Reads the wall clock time stamps of completions of a QP that is connected to itself, and compares
 * them with the time before and after: with the PTP clock of that name (/dev/ptp0), to which they
 * must fit exactly (100 ns if they were converted), or with the host's clock, to a second.
 *
 * If the device has a real-time clock (MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS), stamps are seconds and
 * nanoseconds of that clock; else libmlx5 has converted those of the free-running timer.
 */
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define MESSAGES 100
#define SECOND   1000000000ull
#define BYTES    64

static uint64_t now(clockid_t clock)
{
    struct timespec t;

    need(!clock_gettime(clock, &t), "clock_gettime()");
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* The id of a clock of a device file (man 2 clock_gettime). */
static clockid_t clock_of(const char *path)
{
    int fd = open(path, O_RDWR);

    need(fd >= 0, path);
    return (clockid_t)(~(unsigned)fd << 3 | 3);
}

static struct ibv_cq_ex *cq_open(struct ibv_context *ctx)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 16,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

    need(cq, "ibv_create_cq_ex()");
    return cq;
}

/* Polls two completions, and returns the stamp of the earlier one and of the later one. */
static void poll_two(struct ibv_cq_ex *cq, bool real_time, uint64_t stamp[2])
{
    for (int i = 0; i < 2; i++) {
        struct ibv_poll_cq_attr attr = {0};
        int err;

        while ((err = ibv_start_poll(cq, &attr)) == ENOENT) {
        }
        need(!err && cq->status == IBV_WC_SUCCESS, "a completion");
        stamp[i] = ibv_wc_read_completion_wallclock_ns(cq);
        if (real_time) {
            need((uint32_t)stamp[i] < SECOND, "the nanoseconds of a stamp");
            stamp[i] = (stamp[i] >> 32) * SECOND + (uint32_t)stamp[i];
        }
        ibv_end_poll(cq);
    }
}

static void send_one(struct ibv_qp *qp, struct ibv_mr *mr)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    need(!ibv_post_recv(qp, &recv, &bad_recv), "ibv_post_recv()");
    need(!ibv_post_send(qp, &send, &bad), "ibv_post_send()");
}

int main(int argc, char **argv)
{
    static uint8_t memory[BYTES];
    struct endpoint_options options = {.gid_index = 1};
    struct mlx5dv_context caps = {0};
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    clockid_t clock = CLOCK_REALTIME;
    uint64_t slack, worst = 0;
    struct ibv_context *ctx;
    struct ibv_cq_ex *cq;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    bool real_time;

    endpoint_options(argc, argv, &options);
    if (options.host) {
        clock = clock_of(options.host);
    }
    ctx = endpoint_open(options.device, ibv_open_device);
    need(!mlx5dv_query_device(ctx, &caps), "mlx5dv_query_device()");
    real_time = caps.flags & MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS;
    slack = !options.host ? SECOND : real_time ? 0 : 100;
    cq = cq_open(ctx);
    need((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd()");
    need((mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr()");
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
    need((qp = ibv_create_qp(pd, &attr)), "ibv_create_qp()");
    endpoint_init_rc(qp, IBV_ACCESS_LOCAL_WRITE);
    endpoint_connect_rc(qp,
                        endpoint_towards(endpoint_gid(ctx, options.gid_index), options.gid_index),
                        qp->qp_num, 14);
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint64_t before = now(clock), after, stamp[2];

        send_one(qp, mr);
        poll_two(cq, real_time, stamp);
        after = now(clock);
        for (unsigned s = 0; s < 2; s++) {
            if (stamp[s] + slack < before || stamp[s] > after + slack) {
                fail("a stamp is %llu ns, but the clock was %llu to %llu ns",
                     (unsigned long long)stamp[s], (unsigned long long)before,
                     (unsigned long long)after);
            }
        }
        worst = after - before > worst ? after - before : worst;
    }
    printf("%s: %u stamps fit to the clock, within %llu ns\n",
           real_time ? "real time" : "free running", 2 * MESSAGES,
           (unsigned long long)(worst + slack));
    need(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_dereg_mr(mr) &&
             !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
         "the end");
    return 0;
}
