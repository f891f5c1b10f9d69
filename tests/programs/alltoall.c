/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alltoall: N processes, each of which sends a small message to each other process in every round.
 * They use RC with a queue pair for each pair of processes, or DC with a target and a few
 * initiators each. Prints what each costs in queue pairs, memory and time. Every byte is checked.
 *
 *     alltoall -g GID [-d DEVICE] [-n PROCESSES] [-r ROUNDS] [-s SIZE] [-i INITIATORS] rc|dc
 *
 * Prints one line. Exit status 0: every message came once and unchanged; 77: the device has no DC.
 */
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/dc_queues.h"
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define MAX_RANKS 256
#define MAX_DCIS  16
#define MAX_SIZE  4096
#define DCI_DEPTH 64
#define KEY       0xdc00dc00dc00dc00ull
#define NO_DC     77
#define TIMEOUT   20 /* 4 s: there are many processes on few processors */

/* Memory that all processes share. */
struct board {
    union ibv_gid gid[MAX_RANKS];
    uint32_t qpn[MAX_RANKS][MAX_RANKS]; /* RC: the QP of the first rank towards the second rank */
    uint32_t dctn[MAX_RANKS];
    unsigned arrived[4]; /* processes that have arrived at each meeting point */
    uint64_t resident_kb[MAX_RANKS];
    double seconds[MAX_RANKS];
    bool failed, no_dc;
};

struct header {
    uint32_t from, round;
};

static struct board *board;
static unsigned gid_index, ranks = 16, rounds = 20, size = 64, num_dcis = 4, rank;
static bool dc;
static const char *device_name;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static uint8_t *memory; /* the receives, then the bytes that are sent to each rank */
static struct ibv_qp *qps[MAX_RANKS], *dct, *dcis[MAX_DCIS];
static struct ibv_ah *ahs[MAX_RANKS];
static unsigned busy[MAX_DCIS], outstanding; /* outstanding sends: of each initiator, and in all */
static unsigned got[MAX_RANKS]; /* one more than the round of the last message from each rank */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned slots(void)
{
    return 2 * ranks; /* a rank is at most one round ahead of another */
}

static uint8_t byte_of(unsigned from, unsigned to, unsigned round, size_t at)
{
    return (uint8_t)(from * 31 + to * 17 + round * 5 + at);
}

/* Waits until all processes have called it. */
static void meet(unsigned where)
{
    __atomic_add_fetch(&board->arrived[where], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&board->arrived[where], __ATOMIC_SEQ_CST) < ranks) {
        if (board->failed) {
            exit(1);
        }
        usleep(1000);
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static void post_receive(uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)memory + slot * size, size, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    need(!ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv()");
}

static void make_common(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = slots(), .max_sge = 1}};
    size_t bytes = (size_t)(slots() + ranks) * size;

    ctx = endpoint_open(device_name, ibv_open_device);
    need((pd = ibv_alloc_pd(ctx)) &&
             (memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095)) &&
             (mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE)),
         "memory");
    need((send_cq = ibv_create_cq(ctx, (int)(ranks + MAX_DCIS * DCI_DEPTH), NULL, NULL, 0)) &&
             (recv_cq = ibv_create_cq(ctx, (int)slots(), NULL, NULL, 0)) &&
             (srq = ibv_create_srq(pd, &attr)),
         "queues");
    for (unsigned slot = 0; slot < slots(); slot++) {
        post_receive(slot);
    }
    board->gid[rank] = endpoint_gid(ctx, gid_index);
}

static void make_rc(void)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .send_cq = send_cq,
                                    .recv_cq = recv_cq,
                                    .srq = srq,
                                    .cap = {.max_send_wr = 2, .max_send_sge = 1}};

    for (unsigned i = 0; i < ranks; i++) {
        if (i != rank) {
            need((qps[i] = ibv_create_qp(pd, &attr)), "ibv_create_qp()");
            board->qpn[rank][i] = qps[i]->qp_num;
        }
    }
}

static void connect_rc(unsigned other)
{
    endpoint_init_rc(qps[other], 0);
    endpoint_connect_rc(qps[other], endpoint_towards(board->gid[other], gid_index),
                        board->qpn[other][rank], TIMEOUT);
}

static void make_dct(void)
{
    dct = dc_make_dct(srq, recv_cq, KEY, gid_index, 0);
    if (!dct) {
        board->no_dc = true;
        fail("making a DCT");
    }
    board->dctn[rank] = dct->qp_num;
}

static struct ibv_qp *make_dci(void)
{
    struct dci_attr with = {.cq = send_cq,
                            .cap = {.max_send_wr = DCI_DEPTH, .max_send_sge = 1},
                            .operations = IBV_QP_EX_WITH_SEND,
                            .timeout = TIMEOUT};
    struct ibv_qp *qp = dc_make_dci(pd, &with);

    need(qp, "making a DCI");
    return qp;
}

/* -- messages -----------------------------------------------------------------------------------
 */

/* Takes and checks the messages that have come. */
static unsigned take(void)
{
    struct ibv_wc wc[32];
    int n = ibv_poll_cq(recv_cq, 32, wc);

    need(n >= 0, "ibv_poll_cq()");
    for (int i = 0; i < n; i++) {
        const uint8_t *at = memory + wc[i].wr_id * size;
        const struct header *header = (const void *)at;

        if (wc[i].status || wc[i].byte_len != size || header->from >= ranks ||
            header->round != got[header->from]) {
            fail("rank %u: a message is %s, %u bytes, of rank %u, round %u", rank,
                 ibv_wc_status_str(wc[i].status), wc[i].byte_len, header->from, header->round);
        }
        for (size_t b = sizeof(*header); b < size; b++) {
            if (at[b] != byte_of(header->from, rank, header->round, b)) {
                fail("rank %u: byte %zu of round %u of rank %u differs", rank, b, header->round,
                     header->from);
            }
        }
        got[header->from]++;
        post_receive(wc[i].wr_id);
    }
    return (unsigned)n;
}

/* Takes completions of sends; wr_id is the initiator. */
static void retire(void)
{
    struct ibv_wc wc[32];
    int n = ibv_poll_cq(send_cq, 32, wc);

    need(n >= 0, "ibv_poll_cq()");
    for (int i = 0; i < n; i++) {
        if (wc[i].status) {
            fail("rank %u: a send is %s", rank, ibv_wc_status_str(wc[i].status));
        }
        outstanding--;
        busy[wc[i].wr_id]--;
    }
    if (!n) {
        sched_yield();
    }
}

static void send_rc(unsigned to, uint8_t *data)
{
    struct ibv_sge sge = {(uintptr_t)data, size, mr->lkey};
    struct ibv_send_wr *bad,
        wr = {
            .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

    need(!ibv_post_send(qps[to], &wr, &bad), "ibv_post_send()");
}

static void send_dc(unsigned to, uint8_t *data)
{
    unsigned which = to % num_dcis;
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(dcis[which]);

    while (busy[which] == DCI_DEPTH) {
        retire();
        take();
    }
    ibv_wr_start(ex);
    ex->wr_id = which;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(ex), ahs[to], board->dctn[to], KEY);
    ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)data, size);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
    busy[which]++;
}

static bool round_is_over(unsigned round)
{
    for (unsigned i = 0; i < ranks; i++) {
        if (i != rank && got[i] <= round) {
            return false;
        }
    }
    return !outstanding;
}

static void do_round(unsigned round)
{
    for (unsigned n = 1; n < ranks; n++) {
        unsigned to = (rank + n) % ranks;
        uint8_t *data = memory + (size_t)(slots() + to) * size;

        *(struct header *)data = (struct header){rank, round};
        for (size_t b = sizeof(struct header); b < size; b++) {
            data[b] = byte_of(rank, to, round, b);
        }
        outstanding++;
        if (dc) {
            send_dc(to, data);
        } else {
            busy[0]++;
            send_rc(to, data);
        }
        take();
    }
    while (!round_is_over(round)) {
        take();
        retire();
    }
}

/* -- a process ----------------------------------------------------------------------------------
 */

static uint64_t resident_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kb = 0;
    char line[256];

    while (file && fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %lu kB", &kb) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return kb;
}

static void end(void)
{
    for (unsigned i = 0; i < ranks; i++) {
        need((!qps[i] || !ibv_destroy_qp(qps[i])) && (!ahs[i] || !ibv_destroy_ah(ahs[i])),
             "destroying");
    }
    for (unsigned i = 0; i < num_dcis; i++) {
        need(!dcis[i] || !ibv_destroy_qp(dcis[i]), "destroying a DCI");
    }
    need(!dct || !ibv_destroy_qp(dct), "destroying a DCT");
    need(!ibv_destroy_srq(srq) && !ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq) &&
             !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
         "the end");
}

static void run(void)
{
    double started;

    make_common();
    if (dc) {
        make_dct();
        for (unsigned i = 0; i < num_dcis; i++) {
            dcis[i] = make_dci();
        }
    } else {
        make_rc();
    }
    meet(0);
    for (unsigned i = 0; i < ranks; i++) {
        struct ibv_ah_attr attr = endpoint_towards(board->gid[i], gid_index);

        if (i == rank) {
            continue;
        }
        if (dc) {
            need((ahs[i] = ibv_create_ah(pd, &attr)), "ibv_create_ah()");
        } else {
            connect_rc(i);
        }
    }
    meet(1);
    started = now();
    for (unsigned round = 0; round < rounds; round++) {
        do_round(round);
    }
    board->seconds[rank] = now() - started;
    board->resident_kb[rank] = resident_kb();
    meet(2);
    end();
    meet(3);
}

/* -- all of them --------------------------------------------------------------------------------
 */

static int report(double seconds)
{
    unsigned each = dc ? num_dcis + 1 : ranks - 1;
    uint64_t kb = 0;
    double slowest = 0;

    for (unsigned i = 0; i < ranks; i++) {
        kb += board->resident_kb[i];
        slowest = board->seconds[i] > slowest ? board->seconds[i] : slowest;
    }
    printf(
        "%s: %u processes, %u QPs each, %u in all, %.1f MB each, %u rounds of %u bytes in %.3f s "
        "(%.0f messages/s), %.2f s from start to end\n",
        dc ? "dc" : "rc", ranks, each, each * ranks, (double)kb / ranks / 1024, rounds, size,
        slowest, (double)ranks * (ranks - 1) * rounds / slowest, seconds);
    return 0;
}

static int wait_for_all(double started)
{
    bool good = true;

    for (unsigned i = 0; i < ranks; i++) {
        int status;

        wait(&status);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            /* the other processes stop at their next meeting, or when their sends fail */
            board->failed = true;
            good = false;
        }
    }
    return board->no_dc ? NO_DC : good ? report(now() - started) : 1;
}

int main(int argc, char **argv)
{
    double started = now();
    int option;

    while ((option = getopt(argc, argv, "d:g:i:n:r:s:")) != -1) {
        switch (option) {
        case 'd':
            device_name = optarg;
            break;
        case 'g':
            gid_index = (unsigned)atoi(optarg);
            break;
        case 'i':
            num_dcis = (unsigned)atoi(optarg);
            break;
        case 'n':
            ranks = (unsigned)atoi(optarg);
            break;
        case 'r':
            rounds = (unsigned)atoi(optarg);
            break;
        case 's':
            size = (unsigned)atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (optind + 1 != argc || ranks < 2 || ranks > MAX_RANKS || num_dcis < 1 ||
        num_dcis > MAX_DCIS || size < sizeof(struct header) || size > MAX_SIZE || size % 8) {
        return 2;
    }
    dc = !strcmp(argv[optind], "dc");
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(board != MAP_FAILED, "mmap()");
    for (rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();

        need(pid >= 0, "fork()");
        if (!pid) {
            run();
            return 0;
        }
    }
    return wait_for_all(started);
}
