/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads whose data is memory of a GPU, in real time: each has queue pairs and memory of its own,
 * while another thread allocates, registers and frees memory all the time. The stand-in GPU is
 * linked with the program. Under ThreadSanitizer it shows that nothing is used without
 * synchronization.
 */
#include <check.h>
#include <pthread.h>
#include <string.h>
#include "guest-lib/cuda/standin/standin.h"
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define WORKERS 3
#define ROUNDS  40
#define LEN     ((size_t)48 << 10)
#define PART    5000u /* bytes of an operation: more than a CQE takes */
#define RIGHTS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static CUcontext primary;
static bool stop;

static void setup(void)
{
    must_be_0((int)cuInit(0));
    must_be_0((int)cuDevicePrimaryCtxRetain(&primary, 0));
    device_open();
}

static void teardown(void)
{
    device_close();
    must_be_0((int)cuDevicePrimaryCtxRelease_v2(0));
}

static struct ibv_mr *region_new(size_t len)
{
    CUdeviceptr addr;
    struct ibv_mr *mr;

    must_be_0((int)cuMemAlloc_v2(&addr, len));
    mr = ibv_reg_mr(pd[0], (void *)(uintptr_t)addr, len, RIGHTS);
    must(mr, "errno %d", errno);
    return mr;
}

static void region_free(struct ibv_mr *mr)
{
    CUdeviceptr addr = (uintptr_t)mr->addr;

    must_be_0(ibv_dereg_mr(mr));
    must_be_0((int)cuMemFree_v2(addr));
}

struct worker {
    unsigned index;
    struct pair *pair;
    struct ibv_mr *near, *far;
    uint8_t bytes[LEN], seen[LEN];
};

static void post(struct worker *w, enum ibv_wr_opcode opcode, uint32_t at)
{
    bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    struct ibv_sge sge = {.addr = atomic ? (uintptr_t)w->pair->buf[0][0]
                                         : (uintptr_t)w->near->addr + at,
                          .length = atomic ? 8 : PART,
                          .lkey = atomic ? w->pair->mr[0]->lkey : w->near->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *failed;

    if (atomic) {
        wr.wr.atomic.remote_addr = (uintptr_t)w->far->addr;
        wr.wr.atomic.rkey = w->far->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)w->far->addr + at;
        wr.wr.rdma.rkey = w->far->rkey;
    }
    must_be_0(ibv_post_send(w->pair->qp[0], &wr, &failed));
}

/* What a region has at a place must be these bytes. */
static void expect(struct worker *w, const struct ibv_mr *mr, uint32_t at)
{
    must_be_0((int)cuMemcpyDtoH_v2(w->seen, (uintptr_t)mr->addr + at, PART));
    must(!memcmp(w->seen, w->bytes + at, PART), "thread %u, at %u", w->index, at);
}

static void receive(struct worker *w, uint32_t at)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)w->far->addr + at, .length = PART, .lkey = w->far->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *failed;

    must_be_0(ibv_post_recv(w->pair->qp[1], &wr, &failed));
}

static void round_of(struct worker *w, unsigned round)
{
    uint32_t at = 8 + round * 37 % 1000, other = at + PART, third = other + PART;
    uint64_t before;

    for (size_t i = 0; i < LEN; i++) {
        w->bytes[i] = (uint8_t)(i * 31 + round * 7 + w->index);
    }
    must_be_0((int)cuMemcpyHtoD_v2((uintptr_t)w->near->addr, w->bytes, LEN));
    receive(w, other);
    post(w, IBV_WR_RDMA_WRITE, at);
    post(w, IBV_WR_SEND, other);
    success(w->pair->cq[1]);
    expect(w, w->far, at);
    expect(w, w->far, other);
    success(w->pair->cq[0]);
    success(w->pair->cq[0]);
    must_be_0((int)cuMemcpyHtoD_v2((uintptr_t)w->far->addr + third, w->bytes + third, PART));
    must_be_0((int)cuMemsetD8_v2((uintptr_t)w->near->addr + third, 0, PART));
    must_be_0((int)cuCtxSynchronize());
    post(w, IBV_WR_RDMA_READ, third);
    post(w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0);
    success(w->pair->cq[0]);
    success(w->pair->cq[0]);
    expect(w, w->near, third);
    memcpy(&before, w->pair->buf[0][0], sizeof(before));
    must(before == round, "%llu in round %u", (unsigned long long)before, round);
}

static void *work(void *opaque)
{
    struct worker *w = opaque;

    must_be_0((int)cuCtxPushCurrent_v2(primary));
    w->pair = pair_new(false, false);
    w->near = region_new(LEN);
    w->far = region_new(LEN);
    must_be_0((int)cuMemsetD8_v2((uintptr_t)w->far->addr, 0, LEN));
    must_be_0((int)cuCtxSynchronize());
    for (unsigned round = 0; round < ROUNDS; round++) {
        round_of(w, round);
    }
    region_free(w->near);
    region_free(w->far);
    pair_free(w->pair);
    must_be_0((int)cuCtxPopCurrent_v2(NULL));
    return NULL;
}

/* Regions whose memory is freed before them, and the other way round. */
static void *churn(void *unused)
{
    must_be_0((int)cuCtxPushCurrent_v2(primary));
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        struct ibv_mr *mr = region_new(4096 << i % 8);

        if (i % 2) {
            must_be_0((int)cuMemFree_v2((uintptr_t)mr->addr));
            must_be_0(ibv_dereg_mr(mr));
        } else {
            region_free(mr);
        }
    }
    must_be_0((int)cuCtxPopCurrent_v2(NULL));
    return NULL;
}

START_TEST(threads_have_memory_of_a_gpu)
{
    pthread_t threads[WORKERS + 1];
    struct worker *workers = calloc(WORKERS, sizeof(*workers));

    must_be_0(pthread_create(&threads[WORKERS], NULL, churn, NULL));
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].index = i;
        must_be_0(pthread_create(&threads[i], NULL, work, &workers[i]));
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(threads[WORKERS], NULL);
    free(workers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu-threads");
    TCase *tc = tcase_create("gpu-threads");

    /* The library would copy short answers out of CQEs by the CPU, and leaves the number of an
     * atomic in the order of packets (docs/adr/0013). Programs with memory of a GPU set this. */
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, threads_have_memory_of_a_gpu);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "gpu-threads");
}
