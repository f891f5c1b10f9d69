/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what can be registered of a GPU's memory, and what happens when the memory or the GPU is
 * gone, under the stand-in GPU: the card's error, and neither a hang nor a crash.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/gpu_areas.h"

#define PAGE    ((size_t)4096)
#define UNIT    ((size_t)2 << 20)
#define SECONDS 5 /* that an operation on a GPU that is gone may take */

static void setup(void)
{
    areas_begin(NULL);
}

static void teardown(void)
{
    areas_end();
}

static void ok(CUresult result)
{
    ck_assert_int_eq(result, CUDA_SUCCESS);
}

static void *at(CUdeviceptr addr)
{
    return (void *)(uintptr_t)addr;
}

/* A WRITE from each region to the other, to see that they work. */
static void check_region(const struct area *area, size_t len)
{
    struct area other = area_new(area_pd(0), AREA_PLAIN, len, 9);

    area_post(IBV_WR_RDMA_WRITE, area_part(&other, 0, len), area, 0, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect_bytes(area, 0, len, 9, 0);
    area_end(&other);
}

/* -- registration ------------------------------------------------------------------------------ */

static void expect_refused(CUdeviceptr addr, size_t len, int err)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_mr(area_pd(1), at(addr), len, AREA_RIGHTS));
    ck_assert_int_eq(errno, err);
}

START_TEST(only_what_is_allocated_can_be_registered)
{
    CUdeviceptr device = area_alloc(AREA_DEVICE, 10 * PAGE), mapped;
    struct ibv_mr *mr;

    expect_refused(device, 10 * PAGE + 1, EFAULT);
    expect_refused(device + 9 * PAGE, PAGE + 1, EFAULT);
    expect_refused(device - 1, PAGE, EFAULT);
    mr = ibv_reg_mr(area_pd(1), at(device + 5), 10 * PAGE - 5, AREA_RIGHTS);
    ck_assert_ptr_nonnull(mr);
    ck_assert(gpu_has(device + 5));
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert(!gpu_has(device + 5));
    area_free(AREA_DEVICE, device, 10 * PAGE);
    expect_refused(device, PAGE, EFAULT);
    /* A hole after two mappings */
    ok(cuMemAddressReserve(&mapped, UNIT, 0, 0, 0));
    expect_refused(mapped, PAGE, EFAULT);
    ok(cuMemAddressFree(mapped, UNIT));
}
END_TEST

/* ibv_exp_open_device(): a context for a GPU finds the memory of this GPU and the host's. */
START_TEST(a_context_for_a_gpu_finds_its_memory_alone)
{
    char name[] = "nv_mem";
    struct ibv_exp_open_device_attr attr = {.comp_mask = IBV_EXP_SET_ATTR_PEER_INFO,
                                            .peer_info = {.peer_id = 1, .peer_name = name}};
    CUdeviceptr device = area_alloc(AREA_DEVICE, PAGE);
    void *plain = aligned_alloc(PAGE, PAGE);
    struct ibv_context *context;
    struct ibv_pd *peer_pd;
    struct ibv_mr *mr;

    ck_assert_ptr_null(ibv_exp_open_device(areas.v->b->device, &attr));
    ck_assert_int_eq(errno, ENODEV); /* the stand-in is GPU 0 */
    attr.peer_info.peer_id = 0;
    context = ibv_exp_open_device(areas.v->b->device, &attr);
    ck_assert_ptr_nonnull(context);
    peer_pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(peer_pd, at(device), PAGE, AREA_RIGHTS);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    hv_context(context)->peer_gpu = 1; /* as if there were a second GPU */
    ck_assert_ptr_null(ibv_reg_mr(peer_pd, at(device), PAGE, AREA_RIGHTS));
    ck_assert_int_eq(errno, EFAULT);
    ck_assert(!gpu_has(device)); /* no claim is left */
    mr = ibv_reg_mr(peer_pd, plain, PAGE, AREA_RIGHTS);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(peer_pd), 0);
    ck_assert_int_eq(ibv_close_device(context), 0);
    area_free(AREA_DEVICE, device, PAGE);
    free(plain);
}
END_TEST

/* Regions may overlap, and the last of them ends the claim. */
START_TEST(regions_may_overlap)
{
    struct area area = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 1);
    struct ibv_mr *first = area.mr;
    struct ibv_mr *second = ibv_reg_mr(area_pd(1), at(area.addr), 4 * PAGE, AREA_RIGHTS);
    struct ibv_mr *third = ibv_reg_mr(area_pd(0), at(area.addr + PAGE), PAGE, AREA_RIGHTS);

    ck_assert(second && third);
    ck_assert_int_eq(ibv_dereg_mr(first), 0);
    ck_assert_int_eq(ibv_dereg_mr(third), 0);
    area.mr = second;
    check_region(&area, 4 * PAGE);
    area_end(&area);
}
END_TEST

START_TEST(a_region_may_have_other_addresses)
{
    struct area area = area_new(area_pd(1), (enum area_kind)_i, 4 * PAGE, 1);
    struct ibv_mr *usual = area.mr;
    struct ibv_mr zero;

    area.mr = ibv_reg_mr_iova2(area_pd(1), at(area.addr), 4 * PAGE, area.addr % PAGE, AREA_RIGHTS);
    ck_assert_ptr_nonnull(area.mr);
    zero = *area.mr;
    zero.addr = at(area.addr % PAGE); /* what WRs name */
    check_region(&(struct area){.kind = area.kind,
                                .len = area.len,
                                .half = {area.half[0], area.half[1]},
                                .split = area.split,
                                .mr = &zero},
                 4 * PAGE);
    ck_assert_int_eq(ibv_dereg_mr(usual), 0);
    area_end(&area);
}
END_TEST

/* From the host's memory to the GPU's, and back. */
START_TEST(a_region_can_be_registered_anew)
{
    struct area area = area_new(area_pd(1), AREA_PLAIN, 2 * PAGE, 1);
    struct area device = area_new(area_pd(1), AREA_DEVICE, 2 * PAGE, 2);
    struct ibv_mr *own = device.mr;

    ck_assert_int_eq(
        ibv_rereg_mr(area.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at(device.addr), 2 * PAGE, 0),
        0);
    ck_assert_int_eq(ibv_dereg_mr(own), 0);
    device.mr = area.mr;
    check_region(&device, 2 * PAGE);
    ck_assert_int_eq(
        ibv_rereg_mr(area.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at(area.addr), 2 * PAGE, 0),
        0);
    ck_assert(!gpu_has(device.addr));
    check_region(&area, 2 * PAGE);
    area_drop(&device);
    area_end(&area);
}
END_TEST

START_TEST(a_devx_umem_may_be_of_a_gpu)
{
    CUdeviceptr addr = area_alloc((enum area_kind)_i, 2 * PAGE);
    struct mlx5dv_devx_umem *umem =
        mlx5dv_devx_umem_reg(areas.v->a, at(addr), 2 * PAGE, IBV_ACCESS_LOCAL_WRITE);

    ck_assert_ptr_nonnull(umem);
    ck_assert(gpu_has(addr) == (_i < AREA_BEHIND));
    ck_assert_int_eq(mlx5dv_devx_umem_dereg(umem), 0);
    ck_assert(!gpu_has(addr));
    area_free((enum area_kind)_i, addr, 2 * PAGE);
}
END_TEST

START_TEST(a_dma_buf_can_be_registered)
{
    struct area area = area_new(area_pd(1), AREA_DEVICE, 8 * PAGE, 1);
    int fd, none = open("/dev/null", O_RDWR);

    ck_assert_int_eq(ibv_dereg_mr(area.mr), 0);
    ok(cuMemGetHandleForAddressRange(&fd, area.addr + PAGE, 4 * PAGE,
                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    errno = 0;
    ck_assert_ptr_null(ibv_reg_dmabuf_mr(area_pd(1), 0, 5 * PAGE, 0, fd, AREA_RIGHTS));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_reg_dmabuf_mr(area_pd(1), 5 * PAGE, PAGE, 0, fd, AREA_RIGHTS));
    ck_assert_ptr_null(ibv_reg_dmabuf_mr(area_pd(1), 0, PAGE, 0, none, AREA_RIGHTS));
    area.mr = ibv_reg_dmabuf_mr(area_pd(1), PAGE, 3 * PAGE, 0x7000, fd, AREA_RIGHTS);
    ck_assert_ptr_nonnull(area.mr);
    close(fd);
    close(none);
    {
        struct ibv_mr names = *area.mr;

        names.addr = at(0x7000);
        check_region(&(struct area){.len = 3 * PAGE,
                                    .half = {area.half[0] + 2 * PAGE},
                                    .split = 3 * PAGE,
                                    .mr = &names},
                     3 * PAGE);
    }
    area_expect_rest(&area, 2 * PAGE, 3 * PAGE, 1);
    area_end(&area);
}
END_TEST

/* -- memory and GPUs that are gone ------------------------------------------------------------- */

/* Ways in which a region of a GPU's memory ends. Some need memory of a context of its own. */
enum loss {
    LOST_FREED,
    LOST_UNMAPPED,
    LOST_CONTEXT, /* the memory's own context was destroyed */
    LOST_RESET,   /* the primary context was reset */
    LOST_TRAP,    /* a kernel trapped: all calls of the context fail */
    LOST_KINDS,
};

static const char *const losses[] = {"freed", "unmapped", "context", "reset", "trap"};

static CUcontext own;

static struct area new_to_lose(int side, enum loss loss, unsigned seed)
{
    if (loss == LOST_CONTEXT) {
        if (!own) {
            ok(cuCtxCreate_v2(&own, 0, 0));
        } else {
            ok(cuCtxPushCurrent_v2(own));
        }
    }
    struct area area =
        area_new(area_pd(side), loss == LOST_UNMAPPED ? AREA_MAPPED : AREA_DEVICE, 4 * PAGE, seed);

    if (loss == LOST_CONTEXT) {
        ok(cuCtxPopCurrent_v2(NULL));
    }
    return area;
}

static void lose(struct area *area, enum loss loss)
{
    CUdeviceptr other;

    switch (loss) {
    case LOST_FREED:
    case LOST_UNMAPPED:
        area_drop(area);
        return;
    case LOST_CONTEXT:
        if (own) {
            ok(cuCtxDestroy_v2(own));
        }
        own = NULL;
        break;
    case LOST_RESET:
        ok(cuDevicePrimaryCtxReset_v2(0));
        break;
    default:
        other = area_alloc(AREA_DEVICE, PAGE);
        hcasim_standin_fail(STANDIN_COPIES, CUDA_ERROR_LAUNCH_FAILED);
        ok(cuMemsetD8_v2(other, 0, 1));
        ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
        break;
    }
    area->addr = 0;
}

/* Replaces the queue pairs, which are in the error state. */
static void connect_anew(void)
{
    table_qp_free(areas.a);
    table_qp_free(areas.b);
    areas.a = table_qp_new(areas.v, 0, areas.cq[0], NULL);
    areas.b = table_qp_new(areas.v, 1, areas.cq[1], NULL);
    table_connect(areas.v, areas.a, areas.b);
}

/* After the reset of a context that trapped, new memory can be registered and works. */
static void check_new_memory(enum loss loss)
{
    CUcontext primary;
    struct area area;

    if (loss == LOST_TRAP) {
        ok(cuDevicePrimaryCtxReset_v2(0));
    }
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    connect_anew();
    area = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 5);
    check_region(&area, 4 * PAGE);
    area_end(&area);
    ok(cuDevicePrimaryCtxRelease_v2(0));
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum lost_op {
    OP_WRITE_FROM,
    OP_WRITE_TO,
    OP_READ_FROM,
    OP_READ_TO,
    OP_SEND_FROM,
    OP_SEND_TO,
    OP_ATOMIC_ON,
    OP_ATOMIC_TO,
    OP_KINDS,
};

/* Whether the lost memory is the requester's. */
static bool is_near(enum lost_op op)
{
    return op == OP_WRITE_FROM || op == OP_READ_TO || op == OP_SEND_FROM || op == OP_ATOMIC_TO;
}

static void post_lost(enum lost_op op, const struct area *near, const struct area *far)
{
    enum ibv_wr_opcode opcode = op == OP_WRITE_FROM || op == OP_WRITE_TO ? IBV_WR_RDMA_WRITE
                                : op == OP_READ_FROM || op == OP_READ_TO ? IBV_WR_RDMA_READ
                                : op == OP_SEND_FROM || op == OP_SEND_TO
                                    ? IBV_WR_SEND
                                    : IBV_WR_ATOMIC_FETCH_AND_ADD;
    size_t len = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3000;
    struct ibv_sge sge = area_part(near, 0, len);
    struct ibv_send_wr *failed;
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)far->mr->addr;
        wr.wr.atomic.rkey = far->mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)far->mr->addr;
        wr.wr.rdma.rkey = far->mr->rkey;
    }
    ck_assert_int_eq(ibv_post_send(areas.a, &wr, &failed), 0);
}

/* A fault of the GPU is an address that does not answer (docs/adr/0005, 0021). */
START_TEST(lost_memory_is_the_cards_error)
{
    enum loss loss = (enum loss)(_i / OP_KINDS);
    enum lost_op op = (enum lost_op)(_i % OP_KINDS);
    bool near_is_lost = is_near(op);
    struct area lost = new_to_lose(near_is_lost ? 0 : 1, loss, 1);
    struct area other = area_new(area_pd(near_is_lost ? 1 : 0), AREA_PLAIN, 4 * PAGE, 2);
    double start;

    if (op == OP_SEND_TO) {
        area_receive(areas.b, area_part(&lost, 0, 3000));
    } else if (op == OP_SEND_FROM) {
        area_receive(areas.b, area_part(&other, 0, 3000));
    }
    lose(&lost, loss);
    start = now();
    post_lost(op, near_is_lost ? &lost : &other, near_is_lost ? &other : &lost);
    ck_assert_msg(table_wc(areas.v, areas.cq[0]).status ==
                      (near_is_lost ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR),
                  "%s, operation %d", losses[loss], op);
    if (op == OP_SEND_TO) {
        area_expect(areas.cq[1], IBV_WC_LOC_QP_OP_ERR);
    }
    ck_assert(now() - start < SECONDS);
    area_end(&other);
    area_end(&lost);
    check_new_memory(loss);
}
END_TEST

/* The GPU fails with a copy that was submitted and not waited for. Writes that PCIe has taken are
 * lost; what comes after that is an error. */
START_TEST(a_trap_during_writes_ends)
{
    struct area lost = new_to_lose(1, LOST_TRAP, 1);
    struct area other = area_new(area_pd(0), AREA_PLAIN, 4 * PAGE, 2);
    double start = now();
    bool failed;

    hcasim_standin_fail(STANDIN_COPIES, CUDA_ERROR_LAUNCH_FAILED);
    post_lost(OP_WRITE_TO, &other, &lost);
    post_lost(OP_WRITE_TO, &other, &lost);
    failed = table_wc(areas.v, areas.cq[0]).status || table_wc(areas.v, areas.cq[0]).status;
    if (!failed) {
        post_lost(OP_WRITE_TO, &other, &lost);
        area_expect(areas.cq[0], IBV_WC_REM_OP_ERR);
    }
    ck_assert(now() - start < SECONDS);
    lost.addr = 0;
    area_end(&other);
    area_end(&lost);
    check_new_memory(LOST_TRAP);
}
END_TEST

/* The kernel of an atomic operation traps. */
START_TEST(a_trap_in_an_atomic_ends)
{
    struct area lost = new_to_lose(1, LOST_TRAP, 1);
    struct area other = area_new(area_pd(0), AREA_PLAIN, 4 * PAGE, 2);
    double start = now();

    hcasim_standin_fail(STANDIN_KERNELS, CUDA_ERROR_LAUNCH_FAILED);
    post_lost(OP_ATOMIC_ON, &other, &lost);
    area_expect(areas.cq[0], IBV_WC_REM_OP_ERR);
    ck_assert(now() - start < SECONDS);
    lost.addr = 0;
    area_end(&other);
    area_end(&lost);
    check_new_memory(LOST_TRAP);
}
END_TEST

/* Other memory at the addresses of a region is not the region's. */
START_TEST(new_memory_at_old_addresses_is_not_the_regions)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    struct area other = area_new(area_pd(0), AREA_PLAIN, 4 * PAGE, 2);
    struct area area = {.len = 4 * PAGE, .split = 4 * PAGE};
    CUmemGenericAllocationHandle handle;

    ok(cuMemAddressReserve(&area.addr, UNIT, 0, 0, 0));
    for (unsigned i = 0; i < 2; i++) {
        ok(cuMemCreate(&handle, UNIT, &prop, 0));
        ok(cuMemMap(area.addr, UNIT, 0, handle, 0));
        ok(cuMemSetAccess(area.addr, UNIT, &access, 1));
        ok(cuMemRelease(handle));
        area.half[0] = hcasim_standin_memory(area.addr, area.len);
        area_fill(&area, 3);
        if (i) { /* the first region is still there */
            post_lost(OP_WRITE_TO, &other, &area);
            area_expect(areas.cq[0], IBV_WC_REM_OP_ERR);
            area_expect_rest(&area, 0, 0, 3);
            ck_assert_int_eq(ibv_dereg_mr(area.mr), 0);
        }
        area.mr = ibv_reg_mr(area_pd(1), at(area.addr), area.len, AREA_RIGHTS);
        ck_assert_ptr_nonnull(area.mr);
        if (i) {
            connect_anew();
        }
        check_region(&area, area.len);
        if (!i) {
            ok(cuMemUnmap(area.addr, UNIT));
        }
    }
    ok(cuMemUnmap(area.addr, UNIT));
    ok(cuMemAddressFree(area.addr, UNIT));
    ck_assert_int_eq(ibv_dereg_mr(area.mr), 0);
    area_end(&other);
}
END_TEST

/* The key is what fails, not the memory. */
START_TEST(a_deregistered_region_is_a_wrong_key)
{
    struct area area = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 1);
    struct area other = area_new(area_pd(0), AREA_PLAIN, 4 * PAGE, 2);
    struct ibv_mr gone = *area.mr;

    ck_assert_int_eq(ibv_dereg_mr(area.mr), 0);
    area.mr = &gone;
    post_lost(OP_WRITE_TO, &other, &area);
    area_expect(areas.cq[0], IBV_WC_REM_ACCESS_ERR);
    area_expect_rest(&area, 0, 0, 1);
    area_drop(&area);
    area_end(&other);
}
END_TEST

/* The bytes of a message wait for more of it until the turn ends. If the memory is freed meanwhile,
 * the driver refuses their copy. The next wait for writes reports that, once. */
START_TEST(a_loss_at_the_end_of_a_turn_is_reported_once)
{
    bool turn_ends = _i;
    struct area lost = new_to_lose(1, LOST_FREED, 1);
    struct area other = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 2);
    uint8_t bytes[1000];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = area_byte(3, i);
    }
    ck_assert(gpu_write(lost.addr, bytes, sizeof(bytes)));
    lose(&lost, LOST_FREED);
    if (turn_ends) {
        gpu_end_turn();
    }
    ck_assert(!gpu_settle());
    ck_assert_str_ne(gpu_why(), "");
    ck_assert(gpu_settle());
    ck_assert(gpu_write(other.addr, bytes, sizeof(bytes)));
    gpu_end_turn();
    ck_assert(gpu_settle());
    area_expect_bytes(&other, 0, sizeof(bytes), 3, 0);
    area_expect_rest(&other, 0, sizeof(bytes), 2);
    area_end(&lost);
    area_end(&other);
}
END_TEST

/* Another write, which makes room for itself, may be the first that learns of the loss. Whoever
 * waits for the lost bytes learns of it as well. */
START_TEST(a_loss_that_another_write_meets_is_reported)
{
    struct area lost = new_to_lose(1, LOST_FREED, 1);
    struct area other = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 2);
    uint8_t bytes[1000] = {0};

    ck_assert(gpu_write(lost.addr, bytes, sizeof(bytes)));
    lose(&lost, LOST_FREED);
    ck_assert(!gpu_write(other.addr, bytes, sizeof(bytes)));
    ck_assert(!gpu_settle());
    ck_assert(gpu_settle());
    area_expect_rest(&other, 0, 0, 2);
    area_end(&lost);
    area_end(&other);
}
END_TEST

/* A child of fork() has no GPU, and does not disturb the parent's. */
START_TEST(a_child_leaves_the_gpu_to_its_parent)
{
    struct area area = area_new(area_pd(1), AREA_DEVICE, 4 * PAGE, 1);
    int status;
    pid_t child;

    hcasim_standin_hold(STANDIN_COPIES); /* a copy is under way */
    ok(cuMemsetD8Async(area.addr, 0, 8, NULL));
    child = fork();
    if (!child) {
        struct gpu_claim *claim;
        uint8_t byte = 0;
        bool bad = gpu_write(area.addr, &byte, 1) || gpu_claim_range(at(area.addr), 1, &claim) ||
                   claim || gpu_has(area.addr);

        _exit(bad);
    }
    hcasim_standin_hold(0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ok(cuCtxSynchronize());
    check_region(&area, 4 * PAGE);
    area_end(&area);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("gpu-errors");
    TCase *tc = tcase_create("gpu-errors");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, only_what_is_allocated_can_be_registered);
    tcase_add_test(tc, a_context_for_a_gpu_finds_its_memory_alone);
    tcase_add_test(tc, regions_may_overlap);
    tcase_add_loop_test(tc, a_region_may_have_other_addresses, 0, AREA_KINDS);
    tcase_add_test(tc, a_region_can_be_registered_anew);
    tcase_add_loop_test(tc, a_devx_umem_may_be_of_a_gpu, 0, AREA_KINDS);
    tcase_add_test(tc, a_dma_buf_can_be_registered);
    tcase_add_loop_test(tc, lost_memory_is_the_cards_error, 0, LOST_KINDS * OP_KINDS);
    tcase_add_test(tc, a_trap_during_writes_ends);
    tcase_add_test(tc, a_trap_in_an_atomic_ends);
    tcase_add_test(tc, new_memory_at_old_addresses_is_not_the_regions);
    tcase_add_test(tc, a_deregistered_region_is_a_wrong_key);
    tcase_add_loop_test(tc, a_loss_at_the_end_of_a_turn_is_reported_once, 0, 2);
    tcase_add_test(tc, a_loss_that_another_write_meets_is_reported);
    tcase_add_test(tc, a_child_leaves_the_gpu_to_its_parent);
    suite_add_tcase(suite, tc);
    return suite;
}
