/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests queues that a GPU drives, with a stand-in for the GPU: a thread, or a process, that has
 * addresses, numbers and keys, and calls nothing (gpu_poster.h). In real time, with the helper
 * thread of the library as the only thread that lets the HCA work: the others sleep.
 *
 * Queues and data are in memory of the host, or of the stand-in GPU (guest-lib/cuda/standin), which
 * the library cannot load from and the GPU's thread reaches elsewhere.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/cuda/standin/standin.h"
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/programs/own_wire.h"
#include "tests/verbs/gpu_queues.h"

#define SECONDS    60   /* only a failing test waits that long */
#define SIDE       8192 /* bytes of each side */
#define POSTERS    5    /* one of each order */
#define MEMORY_LEN (2 * SIDE * POSTERS)
#define WINDOW     12 /* operations that are posted at a time */
#define RIGHTS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

/* Ends the program: any thread and process may find out. */
#define must(holds, ...)                                                                           \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __func__, __LINE__, #holds);                            \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct ibv_device **list;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint8_t *memory; /* of all GPUs, shared with their processes */
static struct ibv_mr *mr;

static CUcontext context;

static void setup(void)
{
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
    ctx = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(ctx);
    pd = ibv_alloc_pd(ctx);
    ck_assert_ptr_nonnull(pd);
    memory = mmap(NULL, MEMORY_LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    mr = ibv_reg_mr(pd, memory, MEMORY_LEN, RIGHTS);
    ck_assert_ptr_nonnull(mr);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(munmap(memory, MEMORY_LEN), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
    ck_assert_uint_eq(gpu_end, 0); /* nothing is claimed */
    ck_assert_int_eq(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -- a GPU ------------------------------------------------------------------------------------- */

struct gpu {
    struct gpu_queue q;
    struct gpu_target t;
    uint8_t *near, *far;      /* where the GPU reaches its data */
    uint64_t near_va, far_va; /* where the device does */
    uint32_t key;
    CUdeviceptr queue, data; /* memory of the GPU, if it is not the host's */
    struct ibv_mr *mr;       /* of that */
    pthread_t thread;
    struct gpu *gpus; /* of a test with several: all of them */
    bool stop;
    unsigned posted;
};

/* The ways to make a queue. */
static const struct way {
    const char *name;
    struct gpu_queue_attr attr;
    bool on_gpu; /* CQ, ring, records and data are in memory of the GPU */
} ways[] = {
    {"DevX, RC without a receive queue, collapsed CQ", {.devx = true, .collapsed = true}, false},
    {"DevX, RC with an SRQ, collapsed CQ", {.devx = true, .collapsed = true, .srq = true}, false},
    {"DevX, RC, ordinary CQ", {.devx = true}, false},
    {"DevX, DC, collapsed CQ", {.devx = true, .dc = true, .collapsed = true}, false},
    {"DevX, DC, ordinary CQ", {.devx = true, .dc = true}, false},
    {"DevX, RC, collapsed CQ, on the GPU", {.devx = true, .collapsed = true}, true},
    {"DevX, RC, ordinary CQ, on the GPU", {.devx = true}, true},
    {"DevX, DC, collapsed CQ, on the GPU", {.devx = true, .dc = true, .collapsed = true}, true},
    {"verbs, RC", {.devx = false}, false},
    {"verbs, DC", {.dc = true}, false},
};
#define WAYS      (int)G_N_ELEMENTS(ways)
#define DEVX_WAYS 8 /* the first so many */
#define HOST_WAYS 5 /* the first so many */

/* The orders of stores of a queue that is made this way: only by DevX it has no record. */
static unsigned num_orders(int way)
{
    return way < DEVX_WAYS ? GPU_NO_RECORD + 1 : GPU_ORDERS;
}

static struct mlx5dv_devx_uar *uar_new(void)
{
    struct mlx5dv_devx_uar *uar = hv_dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);

    ck_assert_ptr_nonnull(uar);
    return uar;
}

static CUdeviceptr gpu_alloc(size_t len, void **alias)
{
    CUdeviceptr addr;

    ck_assert_int_eq(cuMemAlloc_v2(&addr, len), CUDA_SUCCESS);
    *alias = hcasim_standin_memory(addr, len);
    ck_assert_ptr_nonnull(*alias);
    return addr;
}

/* Gives the queue and the data memory of the GPU. */
static void gpu_move_to_gpu(struct gpu *gpu, struct gpu_queue_attr *attr)
{
    void *data;

    gpu->queue = gpu_alloc(GPU_QUEUE_MEMORY, &attr->alias);
    attr->memory = (void *)(uintptr_t)gpu->queue;
    gpu->data = gpu_alloc((size_t)2 * SIDE, &data);
    gpu->mr = ibv_reg_mr(pd, (void *)(uintptr_t)gpu->data, (size_t)2 * SIDE, RIGHTS);
    ck_assert_ptr_nonnull(gpu->mr);
    gpu->near = memset(data, 0, (size_t)2 * SIDE);
    gpu->near_va = gpu->data;
    gpu->key = gpu->mr->lkey;
}

/* Makes GPU n. uar: its doorbell page, if it is made by DevX. */
static void gpu_new(struct gpu *gpu, unsigned n, const struct way *way, enum gpu_order order,
                    struct mlx5dv_devx_uar *uar)
{
    static const struct gpu_terms terms = {.mtu = IBV_MTU_1024, .timeout = 14};
    struct gpu_queue_attr attr = way->attr;

    attr.ctx = ctx;
    attr.pd = pd;
    attr.order = order;
    attr.uar = uar;
    *gpu = (struct gpu){.near = memory + (size_t)2 * n * SIDE, .key = mr->lkey};
    gpu->near_va = (uintptr_t)gpu->near;
    if (way->on_gpu) {
        gpu_move_to_gpu(gpu, &attr);
    }
    gpu->far = gpu->near + SIDE;
    gpu->far_va = gpu->near_va + SIDE;
    gpu_queue_new(&gpu->q, &attr, gpu_store_now, NULL);
    gpu_target_new(&gpu->t, ctx, pd, attr.dc);
    gpu_connect(&gpu->q, &gpu->t, &terms);
}

static void gpu_free_memory(struct gpu *gpu)
{
    gpu_queue_free_memory(&gpu->q);
    gpu_target_free(&gpu->t);
    if (gpu->mr) {
        ck_assert_int_eq(ibv_dereg_mr(gpu->mr), 0);
        ck_assert_int_eq(cuMemFree_v2(gpu->data), CUDA_SUCCESS);
        ck_assert_int_eq(cuMemFree_v2(gpu->queue), CUDA_SUCCESS);
    }
}

static void gpu_free(struct gpu *gpu)
{
    gpu_queue_destroy(&gpu->q);
    gpu_free_memory(gpu);
}

static void gpu_start(struct gpu *gpu, void *(*run)(void *gpu))
{
    ck_assert_int_eq(pthread_create(&gpu->thread, NULL, run, gpu), 0);
}

static void gpu_join(struct gpu *gpu)
{
    ck_assert_int_eq(pthread_join(gpu->thread, NULL), 0);
}

/* Lets the GPU do its work, while this thread sleeps. */
static void gpu_run(struct gpu *gpu, void *(*run)(void *gpu))
{
    gpu_start(gpu, run);
    gpu_join(gpu);
}

/* -- what the GPU does ------------------------------------------------------------------------- */

static struct gpu_op op_of(const struct gpu *gpu, enum gpu_what what, size_t at, uint32_t len)
{
    return (struct gpu_op){.what = what,
                           .av = gpu->t.av,
                           .av_len = gpu->t.av_len,
                           .raddr = gpu->far_va + at,
                           .rkey = gpu->key,
                           .laddr = gpu->near_va + at,
                           .lkey = gpu->key,
                           .len = len};
}

/* Waits for the WQE, and returns its CQE, or a later one of a collapsed CQ. The CQEs before it must
 * be those of earlier WQEs, in order. */
static struct gpu_cqe gpu_wait(struct gpu *gpu, uint16_t index)
{
    double limit = now() + SECONDS;
    struct gpu_cqe cqe = {.index = (uint16_t)(index - 1)};
    int16_t before = INT16_MIN, ahead;

    do {
        while (!gpu_poll(&gpu->q.cq, &cqe)) {
            must(now() < limit, "QP 0x%x: no completion of WQE %u", gpu->q.sq.qpn, index);
            usleep(20);
        }
        ahead = (int16_t)(cqe.index - index);
        must(ahead > before, "a completion of WQE %u after that of %d", cqe.index, index + before);
        must(cqe.qpn == gpu->q.sq.qpn, "a completion of QP 0x%x", cqe.qpn);
        before = ahead;
    } while (ahead < 0);
    must(ahead == 0 || gpu->q.cq.collapsed, "no completion of WQE %u", index);
    return cqe;
}

static void gpu_do(struct gpu *gpu, const struct gpu_op *op)
{
    struct gpu_cqe cqe = gpu_wait(gpu, gpu_post_and_ring(&gpu->q.sq, op));

    must(cqe.opcode == 0, "operation %d fails with syndrome 0x%x", op->what, cqe.syndrome);
}

static void check_writes(struct gpu *gpu, unsigned round)
{
    uint8_t data[GPU_INLINE];
    struct gpu_op op = op_of(gpu, GPU_WRITE, 64, 3000);

    memset(gpu->far, 0xee, SIDE);
    for (unsigned i = 0; i < SIDE; i++) {
        gpu->near[i] = (uint8_t)(7 * i + round);
    }
    gpu_do(gpu, &op);
    must(!memcmp(gpu->near + 64, gpu->far + 64, 3000), "a WRITE brings other bytes");
    must(gpu->far[63] == 0xee && gpu->far[3064] == 0xee, "a WRITE writes too much");
    memset(data, (int)round + 1, sizeof(data));
    op = op_of(gpu, GPU_WRITE, 5000, 1 + round % GPU_INLINE);
    op.data = data;
    gpu_do(gpu, &op);
    must(!memcmp(data, gpu->far + 5000, op.len), "an inline WRITE brings other bytes");
    must(gpu->far[5000 + op.len] == 0xee, "an inline WRITE writes too much");
}

/* As NVSHMEM posts it behind a READ. */
static void check_dump(struct gpu *gpu)
{
    struct gpu_op op = {
        .what = GPU_DUMP, .fence = true, .laddr = gpu->near_va, .lkey = gpu->key, .len = 8};

    gpu_do(gpu, &op);
}

static void check_read(struct gpu *gpu, unsigned round)
{
    struct gpu_op op = op_of(gpu, GPU_READ, 128, 4000);

    memset(gpu->near, 0, SIDE);
    for (unsigned i = 0; i < SIDE; i++) {
        gpu->far[i] = (uint8_t)(3 * i + round);
    }
    gpu_do(gpu, &op);
    must(!memcmp(gpu->near + 128, gpu->far + 128, 4000), "a READ brings other bytes");
    must(!gpu->near[127] && !gpu->near[4128], "a READ writes too much");
}

static uint64_t load(const uint8_t *at, unsigned len)
{
    uint32_t half;
    uint64_t whole;

    memcpy(&half, at, sizeof(half));
    memcpy(&whole, at, sizeof(whole));
    return len == 4 ? half : whole;
}

static void check_atomic(struct gpu *gpu, enum gpu_what what, unsigned len, const uint64_t *operand,
                         uint64_t before, uint64_t after)
{
    struct gpu_op op = op_of(gpu, what, 256, len);
    uint64_t found;

    memset(gpu->near + 248, 0xee, 24);
    memset(gpu->far + 248, 0xee, 24);
    memcpy(gpu->far + 256, &before, len);
    memcpy(op.operand, operand, sizeof(op.operand));
    gpu_do(gpu, &op);
    must(load(gpu->far + 256, len) == after, "operation %d of %u bytes: 0x%lx", what, len,
         (unsigned long)load(gpu->far + 256, len));
    /* a result of 4 bytes has its most significant byte first */
    found = len == 4 ? be32toh((uint32_t)load(gpu->near + 256, 4)) : load(gpu->near + 256, 8);
    must(found == before, "operation %d of %u bytes finds 0x%lx", what, len, (unsigned long)found);
    must(gpu->far[256 + len] == 0xee && gpu->near[256 + len] == 0xee, "more than %u bytes", len);
}

static void check_atomics(struct gpu *gpu)
{
    const uint64_t add[4] = {5}, swap[4] = {77, 42}, miss[4] = {77, 41};
    const uint64_t fields[4] = {0xff, 0x80}, all = 0xffffffffu;

    check_atomic(gpu, GPU_FA, 8, add, 0xffffffff, 0x100000004);
    check_atomic(gpu, GPU_CS, 8, swap, 42, 77);
    check_atomic(gpu, GPU_CS, 8, miss, 42, 42);
    for (unsigned len = 4; len <= 8; len += 4) {
        const uint64_t set[4] = {0x1234, 0, all, 0}, hit[4] = {0xab, 0x0042, 0xff, 0xff},
                       no[4] = {0xab, 0x0043, 0xff, 0xff};

        check_atomic(gpu, GPU_MASKED_FA, len, add, 10, 15);
        check_atomic(gpu, GPU_MASKED_FA, len, fields, 0x101, 0x100); /* no carry */
        check_atomic(gpu, GPU_MASKED_CS, len, set, 99, 0x1234);
        check_atomic(gpu, GPU_MASKED_CS, len, hit, 0x7742, 0x77ab);
        check_atomic(gpu, GPU_MASKED_CS, len, no, 0x7742, 0x7742);
    }
}

static void *do_everything(void *opaque)
{
    struct gpu *gpu = opaque;

    for (unsigned round = 0; round < 8; round++) {
        struct gpu_op nop = {.what = GPU_NOP};

        check_writes(gpu, round);
        check_read(gpu, round);
        check_dump(gpu);
        check_atomics(gpu);
        gpu_do(gpu, &nop);
    }
    return NULL;
}

/* Adds 1 to its own word and to the word of all GPUs, again and again, in batches. */
#define ADDS 600

static void *add_ones(void *opaque)
{
    struct gpu *gpu = opaque;

    for (unsigned posted = 0; posted < ADDS;) {
        unsigned batch = 1 + (posted * 7 + gpu->q.sq.qpn) % WINDOW;

        for (unsigned i = 0; i < batch && posted < ADDS; i++, posted++) {
            struct gpu_op op = op_of(gpu, GPU_FA, 0, 8);

            op.operand[0] = 1;
            op.raddr = posted % 2 ? gpu->gpus[0].far_va : gpu->far_va + 8;
            op.rkey = posted % 2 ? gpu->gpus[0].key : gpu->key;
            op.unsignaled = i + 1 < batch && posted + 1 < ADDS;
            gpu_post(&gpu->q.sq, &op);
        }
        gpu_ring(&gpu->q.sq);
        must(gpu_wait(gpu, gpu->q.sq.last).opcode == 0, "an atomic fails");
    }
    return NULL;
}

/* -- orders of stores -------------------------------------------------------------------------- */

START_TEST(every_operation_is_done_for_each_order_of_stores)
{
    for (unsigned order = 0; order < num_orders(_i); order++) {
        struct mlx5dv_devx_uar *uar = uar_new();
        struct gpu gpu;

        gpu_new(&gpu, 0, &ways[_i], order, uar);
        gpu_run(&gpu, do_everything);
        gpu_free(&gpu);
        hv_dv_devx_free_uar(uar);
    }
}
END_TEST

static void *post_nops(void *opaque)
{
    struct gpu *gpu = opaque;
    unsigned batch = gpu->q.sq.blocks - 1;

    for (unsigned i = 0; i < 65536 / batch + 20; i++) {
        const struct gpu_op nop = {.what = GPU_NOP}, silent = {.what = GPU_NOP, .unsignaled = true};

        for (unsigned n = 1; n < batch; n++) {
            gpu_post(&gpu->q.sq, &silent);
        }
        gpu_do(gpu, &nop);
    }
    return NULL;
}

/* The record and the index of a CQE have 16 bits. */
START_TEST(counters_wrap_around)
{
    struct mlx5dv_devx_uar *uar = uar_new();
    struct gpu gpu;

    gpu_new(&gpu, 0, &ways[_i], num_orders(_i) - 1, uar);
    gpu_run(&gpu, post_nops);
    gpu_free(&gpu);
    hv_dv_devx_free_uar(uar);
}
END_TEST

/* Doorbells of all queues fall on one register, and hide each other. */
START_TEST(posters_that_share_a_page_lose_nothing)
{
    struct mlx5dv_devx_uar *uar = uar_new();
    struct gpu gpus[POSTERS];
    uint64_t word;

    memset(memory, 0, MEMORY_LEN);
    for (unsigned n = 0; n < POSTERS; n++) {
        gpu_new(&gpus[n], n, &ways[_i], n % num_orders(_i), uar);
        gpus[n].gpus = gpus;
    }
    for (unsigned n = 0; n < POSTERS; n++) {
        gpu_start(&gpus[n], add_ones);
    }
    for (unsigned n = 0; n < POSTERS; n++) {
        gpu_join(&gpus[n]);
    }
    for (unsigned n = 0; n < POSTERS; n++) {
        memcpy(&word, gpus[n].far + 8, sizeof(word));
        ck_assert_uint_eq(word, ADDS / 2);
    }
    memcpy(&word, gpus[0].far, sizeof(word));
    ck_assert_uint_eq(word, POSTERS * (ADDS / 2));
    for (unsigned n = 0; n < POSTERS; n++) {
        gpu_free(&gpus[n]);
    }
    hv_dv_devx_free_uar(uar);
}
END_TEST

/* -- time -------------------------------------------------------------------------------------- */

static void *wait_and_write(void *opaque)
{
    usleep(500000);
    check_writes(opaque, 1);
    return NULL;
}

START_TEST(a_doorbell_after_half_a_second_of_idleness_is_noticed)
{
    for (unsigned order = 0; order < num_orders(_i); order++) {
        struct mlx5dv_devx_uar *uar = uar_new();
        struct gpu gpu;

        gpu_new(&gpu, 0, &ways[_i], order, uar);
        gpu_run(&gpu, wait_and_write);
        if (order == GPU_RECORD_DOORBELL) {
            gpu_run(&gpu, wait_and_write); /* after work, too */
        }
        gpu_free(&gpu);
        hv_dv_devx_free_uar(uar);
    }
}
END_TEST

/* -- errors ------------------------------------------------------------------------------------ */

static void *use_a_bad_key(void *opaque)
{
    struct gpu *gpu = opaque;
    struct gpu_op good = op_of(gpu, GPU_WRITE, 64, 8), bad = op_of(gpu, GPU_WRITE, 128, 8);
    struct gpu_cqe cqe;
    uint16_t index;

    memset(gpu->far, 0, SIDE);
    memset(gpu->near, 1, SIDE);
    bad.rkey ^= 0x5500;
    gpu_post(&gpu->q.sq, &good);
    index = gpu_post_and_ring(&gpu->q.sq, &bad);
    cqe = gpu_wait(gpu, index);
    must(cqe.opcode == GPU_CQE_ERROR && cqe.syndrome == 0x13, "opcode 0x%x, syndrome 0x%x",
         cqe.opcode, cqe.syndrome);
    must(load(gpu->far + 64, 8) && !load(gpu->far + 128, 8), "the wrong WRITE was executed");
    good = op_of(gpu, GPU_WRITE, 256, 8);
    cqe = gpu_wait(gpu, gpu_post_and_ring(&gpu->q.sq, &good));
    must(cqe.opcode == GPU_CQE_ERROR && cqe.syndrome == GPU_CQE_FLUSHED,
         "opcode 0x%x, syndrome 0x%x", cqe.opcode, cqe.syndrome);
    must(!load(gpu->far + 256, 8), "a WRITE behind an error was executed");
    return NULL;
}

/* After a reset the GPU posts with the same counters again. */
START_TEST(a_bad_key_gives_an_error_cqe_and_a_reset_ends_that)
{
    static const struct gpu_terms terms = {.mtu = IBV_MTU_1024, .timeout = 14};
    struct mlx5dv_devx_uar *uar = uar_new();
    struct gpu gpu;

    gpu_new(&gpu, 0, &ways[_i], (unsigned)_i % num_orders(_i), uar);
    for (unsigned i = 0; i < 3; i++) {
        gpu_run(&gpu, use_a_bad_key);
        gpu_reset(&gpu.q, &gpu.t);
        gpu_connect(&gpu.q, &gpu.t, &terms);
    }
    gpu_run(&gpu, do_everything);
    gpu_free(&gpu);
    hv_dv_devx_free_uar(uar);
}
END_TEST

/* Posts and does not look at the CQ. */
static void *post_blindly(void *opaque)
{
    struct gpu *gpu = opaque;
    struct gpu_op op = op_of(gpu, GPU_WRITE, 0, 64);

    while (!__atomic_load_n(&gpu->stop, __ATOMIC_ACQUIRE)) {
        gpu_post_and_ring(&gpu->q.sq, &op);
        __atomic_add_fetch(&gpu->posted, 1, __ATOMIC_RELEASE);
        if (gpu->posted % 16 == 0) {
            usleep(50);
        }
    }
    return NULL;
}

/* The memory stays, and so do the stores. Other queues of the page are served. */
START_TEST(a_queue_that_is_destroyed_while_the_gpu_posts_ends_nobody)
{
    for (unsigned i = 0; i < 12; i++) {
        struct mlx5dv_devx_uar *uar = uar_new();
        struct gpu gpus[2];

        gpu_new(&gpus[0], 0, &ways[i % 2 ? HOST_WAYS : 0], i % num_orders(0), uar);
        gpu_new(&gpus[1], 1, &ways[1], GPU_RECORD_DOORBELL, uar);
        gpu_start(&gpus[0], post_blindly);
        while (__atomic_load_n(&gpus[0].posted, __ATOMIC_ACQUIRE) < 100) {
            usleep(50);
        }
        gpu_queue_destroy(&gpus[0].q);
        gpu_run(&gpus[1], wait_and_write);
        __atomic_store_n(&gpus[0].stop, true, __ATOMIC_RELEASE);
        gpu_join(&gpus[0]);
        gpu_free_memory(&gpus[0]);
        gpu_free(&gpus[1]);
        hv_dv_devx_free_uar(uar);
    }
}
END_TEST

/* -- processes --------------------------------------------------------------------------------- */

/* The poster has the page by fork(), or maps it by the offset that programs are told. */
START_TEST(another_process_may_be_the_gpu)
{
    for (unsigned by_descriptor = 0; by_descriptor < 2; by_descriptor++) {
        struct mlx5dv_devx_uar *uar = uar_new();
        struct gpu gpu;
        pid_t child;
        int status;

        gpu_new(&gpu, 0, &ways[_i], (unsigned)_i % num_orders(_i), uar);
        child = fork();
        if (child == 0) {
            if (by_descriptor) {
                munmap(uar->base_addr, PCI_PAGE);
                gpu.q.sq.page = mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                                     ctx->cmd_fd, uar->mmap_off);
                must(gpu.q.sq.page != MAP_FAILED, "no page");
            }
            do_everything(&gpu);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        gpu_free(&gpu);
        hv_dv_devx_free_uar(uar);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu-thread");
    TCase *orders = tcase_create("orders of stores"), *time = tcase_create("time"),
          *errors = tcase_create("errors"), *processes = tcase_create("processes");
    TCase *all[] = {orders, time, errors, processes};

    tcase_add_loop_test(orders, every_operation_is_done_for_each_order_of_stores, 0, WAYS);
    tcase_add_loop_test(orders, counters_wrap_around, 0, WAYS);
    tcase_add_loop_test(orders, posters_that_share_a_page_lose_nothing, 0, WAYS);
    tcase_add_loop_test(time, a_doorbell_after_half_a_second_of_idleness_is_noticed, 0, WAYS);
    tcase_add_loop_test(errors, a_bad_key_gives_an_error_cqe_and_a_reset_ends_that, 0, WAYS);
    tcase_add_test(errors, a_queue_that_is_destroyed_while_the_gpu_posts_ends_nobody);
    tcase_add_loop_test(processes, another_process_may_be_the_gpu, 0, HOST_WAYS);
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        tcase_add_checked_fixture(all[i], setup, teardown);
        tcase_set_timeout(all[i], 300);
        suite_add_tcase(suite, all[i]);
    }
    setenv("HCASIM_PROFILE", "cx8", 0); /* it has queues without a record */
    return run_on_own_wire(suite, "gpu-thread");
}
