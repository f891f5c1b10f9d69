/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses the GPU of a CUDA driver, and an HCA beside it: memory of the GPU that is copied there and
 * back, exported, and registered with the HCA; and a doorbell page that the GPU may store to.
 * Prints a line for each result: 0, or an error of CUDA or errno.
 *
 * usage: cuda_gpu
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/mlx5dv.h>
#include "guest-lib/cuda/cuda_api.h"

#define PAGE 4096u
#define FIND(function)                                                                             \
    __typeof__(function) *function##_found = (__typeof__(function) *)gpu_find(#function)
#define SHOW(name, call) printf("%s: %d\n", name, (int)(call))

static void *gpu_find(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *function;

    function = library ? dlsym(library, name) : NULL;
    if (!function) {
        printf("no %s\n", library ? name : "libcuda.so.1");
        exit(1);
    }
    return function;
}

static void show_context(void)
{
    FIND(cuInit);
    FIND(cuDeviceGet);
    FIND(cuDevicePrimaryCtxRetain);
    FIND(cuCtxSetCurrent);
    CUcontext ctx = NULL;
    CUdevice device = -1;

    SHOW("init", cuInit_found(0));
    SHOW("get device", cuDeviceGet_found(&device, 0));
    SHOW("context", cuDevicePrimaryCtxRetain_found(&ctx, device));
    SHOW("current", cuCtxSetCurrent_found(ctx));
}

static CUdeviceptr show_memory(void)
{
    FIND(cuMemAlloc_v2);
    FIND(cuMemcpyHtoD_v2);
    FIND(cuMemcpyDtoH_v2);
    char sent[64] = "to the GPU", got[64] = "";
    CUdeviceptr memory = 0;

    SHOW("allocate", cuMemAlloc_v2_found(&memory, PAGE));
    SHOW("copy to it", cuMemcpyHtoD_v2_found(memory, sent, sizeof(sent)));
    SHOW("copy from it", cuMemcpyDtoH_v2_found(got, memory, sizeof(got)));
    printf("data: %s\n", got);
    return memory;
}

/* Returns the descriptor. */
static int show_export(CUdeviceptr memory)
{
    FIND(cuMemGetHandleForAddressRange);
    FIND(hcasim_cuda_dmabuf);
    unsigned long long addr = 0;
    size_t len = 0;
    int fd = -1;

    SHOW("export", cuMemGetHandleForAddressRange_found(&fd, memory, PAGE,
                                                       CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    SHOW("export is known", hcasim_cuda_dmabuf_found(fd, &addr, &len));
    printf("its range: %s\n", addr == memory && len == PAGE ? "right" : "wrong");
    return fd;
}

/* The HCA takes the memory by its address, and by its descriptor. */
static void show_registrations(struct ibv_context *hca, CUdeviceptr memory, int dmabuf)
{
    struct ibv_pd *pd = ibv_alloc_pd(hca);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)memory, PAGE, IBV_ACCESS_LOCAL_WRITE);

    SHOW("register memory", mr ? ibv_dereg_mr(mr) : errno);
    mr = ibv_reg_dmabuf_mr(pd, 0, PAGE, memory, dmabuf, IBV_ACCESS_LOCAL_WRITE);
    SHOW("register dma-buf", mr ? ibv_dereg_mr(mr) : errno);
    SHOW("end of the PD", ibv_dealloc_pd(pd));
}

static void show_doorbells(struct ibv_context *hca)
{
    FIND(cuMemHostRegister_v2);
    FIND(cuMemHostUnregister);
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(hca, MLX5DV_UAR_ALLOC_TYPE_BF);
    unsigned mapped = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

    if (uar) {
        SHOW("doorbell page as memory", cuMemHostRegister_v2_found(uar->base_addr, PAGE, mapped));
        SHOW("its end", cuMemHostUnregister_found(uar->base_addr));
        SHOW("doorbell page", cuMemHostRegister_v2_found(uar->base_addr, PAGE,
                                                         mapped | CU_MEMHOSTREGISTER_IOMEMORY));
    }
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *hca = list && list[0] ? ibv_open_device(list[0]) : NULL;
    CUdeviceptr memory;

    printf("device: %s\n", hca ? ibv_get_device_name(hca->device) : "none");
    if (hca) {
        show_context();
        memory = show_memory();
        show_registrations(hca, memory, show_export(memory));
        show_doorbells(hca);
    }
    return 0;
}
