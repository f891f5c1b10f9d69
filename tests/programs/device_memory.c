/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device_memory: two processes whose messages go from the memory of one device to the memory of the
 * other, over libibverbs. All data is compared, and the bytes beside it.
 *
 *     device_memory -g GID [-d DEVICE] [-p PORT]          the side that waits
 *     device_memory -g GID [-d DEVICE] [-p PORT] HOST     the side that sends
 *
 * For each length there is a WRITE, a READ, a SEND and an atomic operation. Then both sides measure
 * WRITEs. Exit status 0: everything is right. 77: the device has no memory.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define NO_MEMORY 77
#define TIMEOUT   18 /* 1 s */
#define MOST      8192u
#define WORD      (4 * MOST) /* where the atomic operations' word lies */
#define SIZE      (WORD + 64)
#define WRITES    2000u
#define DEPTH     64u

/* Areas of a device's memory: what this side sends, and what came by WRITE, SEND and READ. */
enum area {
    MINE,
    WRITTEN,
    SENT,
    READ_BACK,
    AREAS
};

struct hello {
    union ibv_gid gid;
    uint32_t qpn, rkey;
};

static struct endpoint_options options = {.port = "18519"};
static struct ibv_dm *dm;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct hello mine, theirs;
static int peer;

static uint8_t byte_of(unsigned sender, uint32_t len, size_t at)
{
    return (uint8_t)(sender * 101 + len * 13 + at * 7 + 1);
}

static void fill(enum area area, unsigned sender, uint32_t len)
{
    uint8_t data[MOST];

    for (uint32_t i = 0; i < MOST; i++) {
        data[i] = i < len ? byte_of(sender, len, i) : 0xee;
    }
    need(!ibv_memcpy_to_dm(dm, area * MOST, data, MOST), "ibv_memcpy_to_dm()");
}

/* The area has the data of a message, and behind it what was there before. */
static void compare(enum area area, unsigned sender, uint32_t len)
{
    uint8_t data[MOST];

    need(!ibv_memcpy_from_dm(data, dm, area * MOST, MOST), "ibv_memcpy_from_dm()");
    for (uint32_t i = 0; i < MOST; i++) {
        uint8_t want = i < len ? byte_of(sender, len, i) : 0xee;

        if (data[i] != want) {
            fail("area %d, %u bytes: byte %u is %02x, not %02x", area, len, i, data[i], want);
        }
    }
}

static void post(enum ibv_wr_opcode opcode, uint64_t at, uint32_t len, uint64_t remote)
{
    struct ibv_sge sge = {at, len, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = theirs.rkey;
        wr.wr.atomic.compare_add = 3;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = theirs.rkey;
    }
    need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send()");
}

static void completed(const char *what)
{
    struct ibv_wc wc = endpoint_completion(cq);

    if (wc.status) {
        fail("%s: %s", what, ibv_wc_status_str(wc.status));
    }
}

static void open_all(void)
{
    struct ibv_context *ctx = endpoint_open(options.device, ibv_open_device);
    struct ibv_qp_init_attr init = {.cap = {2 * DEPTH, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_alloc_dm_attr attr = {.length = SIZE};
    struct ibv_device_attr_ex device;
    struct ibv_pd *pd = ibv_alloc_pd(ctx);

    need(!ibv_query_device_ex(ctx, NULL, &device), "ibv_query_device_ex()");
    if (device.max_dm_size < SIZE) {
        puts("the device has no memory");
        exit(NO_MEMORY);
    }
    dm = ibv_alloc_dm(ctx, &attr);
    need(pd && dm, "ibv_alloc_dm()");
    mr = ibv_reg_dm_mr(pd, dm, 0, SIZE,
                       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    need(mr, "ibv_reg_dm_mr()");
    init.send_cq = init.recv_cq = cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
    need(cq, "ibv_create_cq()");
    qp = ibv_create_qp(pd, &init);
    need(qp, "ibv_create_qp()");
    endpoint_init_rc(qp,
                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    mine = (struct hello){endpoint_gid(ctx, options.gid_index), qp->qp_num, mr->rkey};
    peer = other_side_connect(options.host, options.port);
    tell(peer, &mine, &theirs, sizeof(mine));
    endpoint_connect_rc(qp, endpoint_towards(theirs.gid, options.gid_index), theirs.qpn, TIMEOUT);
}

/* Both sides send at the same time. */
static void exchange(unsigned me, uint32_t len, unsigned round)
{
    struct ibv_sge sge = {SENT * MOST, MOST, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    uint64_t words[2];

    fill(MINE, me, len);
    for (enum area area = WRITTEN; area < AREAS; area++) {
        fill(area, me, 0);
    }
    need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv()");
    together(peer);
    post(IBV_WR_RDMA_WRITE, MINE * MOST, len, WRITTEN * MOST);
    completed("WRITE");
    post(IBV_WR_RDMA_READ, READ_BACK * MOST, len, MINE * MOST);
    completed("READ");
    post(IBV_WR_ATOMIC_FETCH_AND_ADD, WORD + 8, 8, WORD);
    completed("fetch and add");
    post(IBV_WR_SEND, MINE * MOST, len, 0);
    completed("SEND or receive");
    completed("SEND or receive");
    together(peer);
    compare(WRITTEN, !me, len);
    compare(SENT, !me, len);
    compare(READ_BACK, !me, len);
    need(!ibv_memcpy_from_dm(words, dm, WORD, 16), "ibv_memcpy_from_dm()");
    if (words[0] != 3 * (round + 1) || words[1] != 3 * round) {
        fail("the word is %lu and was %lu in round %u", (unsigned long)words[0],
             (unsigned long)words[1], round);
    }
    together(peer);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Writes the largest message again and again. Returns bytes per second. */
static double bandwidth(unsigned me)
{
    double began;
    unsigned posted = 0;

    fill(MINE, me, MOST);
    fill(WRITTEN, me, 0);
    together(peer);
    began = now();
    for (unsigned done = 0; done < WRITES; done++) {
        while (posted < WRITES && posted < done + DEPTH) {
            post(IBV_WR_RDMA_WRITE, MINE * MOST, MOST, WRITTEN * MOST);
            posted++;
        }
        completed("WRITE");
    }
    began = now() - began;
    together(peer);
    compare(WRITTEN, !me, MOST);
    return (double)WRITES * MOST / began;
}

int main(int argc, char **argv)
{
    unsigned rounds = 0;
    uint8_t zero[SIZE - WORD] = {0};

    /* The keys are zero-based. From a CQE, libmlx5 would copy small data to an offset as if it were
     * an address. */
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    endpoint_options(argc, argv, &options);
    open_all();
    need(!ibv_memcpy_to_dm(dm, WORD, zero, sizeof(zero)), "ibv_memcpy_to_dm()");
    for (uint32_t len = 1; len <= MOST; len = len < 8   ? len + 1
                                              : len % 2 ? len + len / 3
                                                        : len + 1) {
        exchange(!!options.host, len, rounds++);
    }
    printf("%u lengths by WRITE, READ, SEND and fetch and add, all data right; WRITE %.1f MB/s\n",
           rounds, bandwidth(!!options.host) / 1e6);
    return 0;
}
