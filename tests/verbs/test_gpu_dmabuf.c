/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests registrations of dma-bufs: what is checked, in the kernel's order, which memory the device
 * then reaches, and that nothing is left. The dma-bufs are the stand-in GPU's
 * (guest-lib/cuda/standin).
 */
#define _GNU_SOURCE
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/cuda/standin/standin.h"
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/devx.h"
#include "tests/unit/suite.h"
#include "tests/verbs/dmabuf_bench.h"

#define COPY_MS 20000

static struct verbs_table *v;
static struct ibv_pd *pd;
static CUdeviceptr memory;
static int fd;

static int export_range(CUdeviceptr at, size_t size)
{
    int made = -1;

    ck_assert_int_eq(
        cuMemGetHandleForAddressRange(&made, at, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
        CUDA_SUCCESS);
    ck_assert_int_ge(made, 0);
    return made;
}

static void setup(void)
{
    CUcontext context;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    ck_assert_int_eq(cuMemAlloc_v2(&memory, SIZE), CUDA_SUCCESS);
    memset(hcasim_standin_memory(memory, SIZE), 0, SIZE);
    fd = export_range(memory, SIZE);
}

static void teardown(void)
{
    ck_assert_uint_eq(gpu_end, 0); /* no claim is left */
    close(fd);
    ck_assert_int_eq(cuMemFree_v2(memory), CUDA_SUCCESS);
    verbs_table_free(v);
}

/* -- what is refused --------------------------------------------------------------------------- */

/* UVERBS_METHOD_REG_DMABUF_MR: first the places in the page, then the access, then the
 * descriptor. Libraries ask with descriptor -1 whether the kernel takes dma-bufs. */
START_TEST(arguments_are_checked_in_the_kernels_order)
{
    dmabuf_refused(pd, -1, 8, PAGE, 0, 1 << 9, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, PAGE + 8, LOCAL, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, 1 << 15, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, LOCAL | (int)IBV_ACCESS_ON_DEMAND, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, LOCAL | (int)IBV_ACCESS_MW_BIND, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, LOCAL | (int)IBV_ACCESS_ZERO_BASED, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    dmabuf_refused(pd, -1, 0, PAGE, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
    dmabuf_refused(pd, -1, 0, 0, 0, 0, EBADF);
    dmabuf_refused(pd, -1, 0, PAGE, 0, ALL, EBADF);
    dmabuf_refused(pd, 9999, 0, PAGE, 0, ALL, EBADF);
}
END_TEST

/* dma_buf_get() */
START_TEST(other_descriptors_are_no_dma_bufs)
{
    int file = memfd_create("no dma-buf", MFD_CLOEXEC), ends[2];

    ck_assert_int_eq(ftruncate(file, SIZE), 0);
    ck_assert_int_eq(pipe(ends), 0);
    dmabuf_refused(pd, file, 0, PAGE, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, ends[0], 0, PAGE, 0, LOCAL, EINVAL);
    close(file);
    close(ends[0]);
    close(ends[1]);
    dmabuf_refused(pd, file, 0, PAGE, 0, LOCAL, EBADF);
}
END_TEST

START_TEST(a_region_lies_in_the_dma_buf)
{
    dmabuf_bounds_are_checked(pd, fd);
}
END_TEST

/* -- what the device reaches ------------------------------------------------------------------- */

/* Sends a WRITE of host 1 to the region, and waits until it is there. */
static enum ibv_wc_status write_to(struct ibv_mr *mr, uint64_t raddr, size_t place, unsigned len)
{
    const struct dmabuf_peer peer = dmabuf_peer_new(v);
    enum ibv_wc_status status = dmabuf_peer_does(&peer, IBV_WR_RDMA_WRITE, mr, raddr, len);

    if (status == IBV_WC_SUCCESS) {
        const uint8_t *at = hcasim_standin_memory(memory + place, len);

        for (int i = 0; i < COPY_MS && memcmp(at, peer.page->addr, len); i++) {
            usleep(1000);
        }
        ck_assert_mem_eq(at, peer.page->addr, len);
        ck_assert_uint_eq(place ? at[-1] : 0, 0);
        ck_assert_uint_eq(at[len], 0);
    }
    dmabuf_peer_free(&peer);
    return status;
}

/* NCCL registers with iova 0. */
START_TEST(offset_and_iova_lead_to_the_memory)
{
    static const struct {
        uint64_t offset, iova;
        size_t length;
    } places[] = {{0, 0, SIZE},
                  {0, 0x7000000000, SIZE},
                  {PAGE, 0, PAGE},
                  {2 * PAGE + 24, 5 * PAGE + 24, 3 * PAGE},
                  {SIZE - PAGE, 0, PAGE}};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        struct ibv_mr *mr =
            ibv_reg_dmabuf_mr(pd, places[i].offset, places[i].length, places[i].iova, fd, ALL);

        ck_assert_ptr_nonnull(mr);
        ck_assert_uint_eq(mr->length, places[i].length);
        memset(hcasim_standin_memory(memory, SIZE), 0, SIZE);
        ck_assert_int_eq(write_to(mr, places[i].iova + 100, places[i].offset + 100, 200),
                         IBV_WC_SUCCESS);
        ck_assert_int_eq(write_to(mr, places[i].iova + places[i].length - 100, 0, 200),
                         IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    }
}
END_TEST

/* A dma-buf of a part of the memory begins at that part. The region does not need the descriptor
 * any more. */
START_TEST(a_region_keeps_the_memory_of_a_closed_dma_buf)
{
    int part = export_range(memory + 4 * PAGE, 8 * PAGE);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, PAGE, 7 * PAGE, 0, part, ALL);

    dmabuf_refused(pd, part, 0, 9 * PAGE, 0, LOCAL, EINVAL);
    close(part);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(write_to(mr, 64, 5 * PAGE + 64, 64), IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

START_TEST(a_region_has_the_rights_that_it_was_registered_with)
{
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, fd, LOCAL);

    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(write_to(mr, 0, 0, 64), IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* The memory is freed under the region: an error, and no hang. */
START_TEST(memory_that_was_freed_does_not_answer)
{
    CUdeviceptr other;
    struct ibv_mr *mr;
    int of;

    ck_assert_int_eq(cuMemAlloc_v2(&other, SIZE), CUDA_SUCCESS);
    of = export_range(other, SIZE);
    mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, of, ALL);
    ck_assert_ptr_nonnull(mr);
    close(of);
    ck_assert_int_eq(cuMemFree_v2(other), CUDA_SUCCESS);
    ck_assert_int_eq(write_to(mr, 0, 0, 64), IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* -- umems ------------------------------------------------------------------------------------- */

static struct mlx5dv_devx_umem *umem_of(int of, uint64_t offset, size_t size, uint64_t page_sizes,
                                        uint64_t comp_mask)
{
    struct mlx5dv_devx_umem_in in = {.addr = (void *)(uintptr_t)offset,
                                     .size = size,
                                     .access = IBV_ACCESS_LOCAL_WRITE,
                                     .pgsz_bitmap = page_sizes,
                                     .comp_mask = comp_mask,
                                     .dmabuf_fd = of};

    errno = 0;
    return hv_dv_devx_umem_reg_ex(v->a, &in);
}

START_TEST(umems_of_dma_bufs_are_checked)
{
    static const uint64_t whole = UINT64_MAX & ~(uint64_t)(PAGE - 1), is = MLX5DV_UMEM_MASK_DMABUF;
    const struct {
        int of;
        uint64_t offset;
        size_t size;
        uint64_t page_sizes, comp_mask;
        int err;
    } wrong[] = {{-1, 0, PAGE, whole, is, EBADF},
                 {v->a->cmd_fd, 0, PAGE, whole, is, EINVAL},
                 {fd, 0, SIZE + 1, whole, is, EINVAL},
                 {fd, SIZE, 1, whole, is, EINVAL},
                 {fd, 0, 0, whole, is, EINVAL},
                 {fd, 0, PAGE, 0, is, EINVAL},
                 {fd, 0, PAGE, whole, is << 1 | is, EOPNOTSUPP}};

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        ck_assert_ptr_null(umem_of(wrong[i].of, wrong[i].offset, wrong[i].size, wrong[i].page_sizes,
                                   wrong[i].comp_mask));
        ck_assert_int_eq(errno, wrong[i].err);
    }
}
END_TEST

/* The pages that UCX, gpunetio and NVSHMEM allow, and a umem of one byte. */
START_TEST(umems_of_dma_bufs_may_have_any_place)
{
    static const struct {
        uint64_t offset;
        size_t size;
        uint64_t page_sizes;
    } places[] = {{0, SIZE, PAGE},
                  {0, SIZE, UINT64_MAX & ~(uint64_t)(PAGE - 1)},
                  {0, 1, UINT64_MAX & ~(uint64_t)(PAGE - 1)},
                  {PAGE + 8, 100, 2 * PAGE - 1},
                  {SIZE - 1, 1, PAGE}};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        struct mlx5dv_devx_umem *umem = umem_of(fd, places[i].offset, places[i].size,
                                                places[i].page_sizes, MLX5DV_UMEM_MASK_DMABUF);

        ck_assert_ptr_nonnull(umem);
        ck_assert_ptr_eq(hv_dv_umem_at(v->a, umem->umem_id, 0, 1),
                         (void *)(uintptr_t)(memory + places[i].offset));
        ck_assert_int_eq(hv_dv_devx_umem_dereg(umem), 0);
    }
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("gpu-dmabuf");
    Suite *suite = suite_create("verbs-gpu-dmabuf");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, arguments_are_checked_in_the_kernels_order);
    tcase_add_test(tc, other_descriptors_are_no_dma_bufs);
    tcase_add_test(tc, a_region_lies_in_the_dma_buf);
    tcase_add_test(tc, offset_and_iova_lead_to_the_memory);
    tcase_add_test(tc, a_region_keeps_the_memory_of_a_closed_dma_buf);
    tcase_add_test(tc, a_region_has_the_rights_that_it_was_registered_with);
    tcase_add_test(tc, memory_that_was_freed_does_not_answer);
    tcase_add_test(tc, umems_of_dma_bufs_are_checked);
    tcase_add_test(tc, umems_of_dma_bufs_may_have_any_place);
    suite_add_tcase(suite, tc);
    return suite;
}
