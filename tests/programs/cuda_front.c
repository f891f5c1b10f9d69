/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks a CUDA driver (cuda_driver.c) for what the front before it changes, in the ways in which
 * programs come to its functions. Prints a line for each result: its name, and what the driver was
 * asked, or the answer.
 *
 * usage: cuda_front linked|loaded|reloaded|old-runtime|runtime registers|exports|threads
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <infiniband/mlx5dv.h>
#include "guest-lib/cuda/cuda_api.h"
#include "tests/programs/cuda_driver.h"

#define PAGE 4096u
#define ALL                                                                                        \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY)
#define EXPORTS 4096 /* of the front */
#define THREADS 4
#define ROUNDS  200

static struct {
    __typeof__(cuMemHostRegister_v2) *reg;
    __typeof__(cuMemGetHandleForAddressRange) *export;
    __typeof__(hcasim_cuda_dmabuf) *dmabuf;
    __typeof__(cuda_driver_asked) *asked;
} cuda;

static void need(const void *what, const char *name)
{
    if (!what) {
        printf("no %s\n", name);
        exit(1);
    }
}

/* -- the ways to the functions ----------------------------------------------------------------- */

static void *cuda_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    need(library, "libcuda.so.1");
    return library;
}

static void find_loaded(void)
{
    void *library = cuda_library();

    need(dlsym(library, "cuInit"), "cuInit");
    cuda.reg = dlsym(library, "cuMemHostRegister_v2");
    cuda.export = dlsym(library, "cuMemGetHandleForAddressRange");
}

#ifdef LINKED
static void find_linked(void)
{
    need(cuInit, "cuInit");
    cuda.reg = cuMemHostRegister_v2;
    cuda.export = cuMemGetHandleForAddressRange;
}
#else
#define find_linked find_loaded
#endif

/* As plugins do that look whether there is a driver. */
static void load_and_unload(void)
{
    for (unsigned i = 0; i < 3; i++) {
        void *library = cuda_library();

        cuda.reg = dlsym(library, "cuMemHostRegister_v2");
        need(cuda.reg, "cuMemHostRegister_v2");
        cuda.reg(&cuda, sizeof(cuda), ALL);
        dlclose(library);
    }
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
        puts("the library stays loaded");
    }
}

/* As the CUDA runtime 11.3 to 11.8 does. */
static void find_by_old_runtime(void)
{
    __typeof__(cuGetProcAddress) *get = dlsym(cuda_library(), "cuGetProcAddress");
    void *again;

    need(get, "cuGetProcAddress");
    get("cuGetProcAddress", &again, 11080, 0);
    get = again;
    get("cuMemHostRegister", &again, 4000, 0);
    cuda.reg = again;
    get("cuMemGetHandleForAddressRange", &again, 11080, 0);
    cuda.export = again;
}

/* As later ones do. */
static void find_by_runtime(void)
{
    __typeof__(cuGetProcAddress_v2) *get = dlsym(cuda_library(), "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult found;
    void *again;

    need(get, "cuGetProcAddress_v2");
    get("cuGetProcAddress", &again, 12080, 0, &found);
    get = again;
    get("cuMemHostRegister", &again, 12080, 0, &found);
    cuda.reg = again;
    get("cuMemGetHandleForAddressRange", &again, 12080, 0, &found);
    cuda.export = again;
    get("cuNoSuchFunction", &again, 12080, 0, &found);
    if (again || found != CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) {
        puts("cuNoSuchFunction was found");
    }
}

static void find_functions(const char *way)
{
    static const struct {
        const char *name;
        void (*find)(void);
    } ways[] = {{"linked", find_linked},
                {"loaded", find_loaded},
                {"reloaded", find_loaded},
                {"old-runtime", find_by_old_runtime},
                {"runtime", find_by_runtime}};
    void *library, *again;

    if (!strcmp(way, "reloaded")) {
        load_and_unload();
    }
    library = cuda_library();
    again = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    printf("the library that is there: %s\n", again == library ? "the same" : "another one");
    if (dlopen("libcuda.so", RTLD_LAZY) == library) {
        puts("libcuda.so: the same");
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (!strcmp(ways[i].name, way)) {
            ways[i].find();
        }
    }
    cuda.dmabuf = dlsym(library, "hcasim_cuda_dmabuf");
    cuda.asked = dlsym(library, "cuda_driver_asked");
    need(cuda.reg, "registration");
    need(cuda.export, "export");
    need(cuda.asked, "cuda_driver_asked");
}

/* -- registrations ----------------------------------------------------------------------------- */

static unsigned flags_of(void *ptr, size_t len, unsigned flags)
{
    CUresult result = cuda.reg(ptr, len, flags);
    struct cuda_asked asked = cuda.asked();

    if (result || asked.ptr != ptr || asked.len != len) {
        puts("the driver was asked for something else");
    }
    return asked.flags;
}

static void show_flags(const char *name, void *ptr, size_t len, unsigned flags)
{
    printf("%s: %u\n", name, flags_of(ptr, len, flags));
}

static struct mlx5dv_devx_uar *open_doorbells(struct ibv_context **ctx)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct mlx5dv_devx_uar *uar;

    *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    need(*ctx, "device");
    uar = mlx5dv_devx_alloc_uar(*ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    need(uar, "UAR");
    return uar;
}

static char *map(int fd, off_t offset, int flags, void *at, size_t len)
{
    return mmap(at, len, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0), fd, offset);
}

static void show_registrations(void)
{
    struct ibv_context *ctx;
    struct mlx5dv_devx_uar *uar = open_doorbells(&ctx);
    char *three = map(-1, 0, MAP_PRIVATE | MAP_ANONYMOUS, NULL, 3 * (size_t)PAGE);
    int file = memfd_create("mlx5_0", MFD_CLOEXEC);

    if (ftruncate(file, PAGE)) {
        puts("ftruncate failed");
    }
    map(ctx->cmd_fd, uar->mmap_off, MAP_SHARED, three, PAGE);
    map(ctx->cmd_fd, uar->mmap_off, MAP_SHARED, three + PAGE, PAGE);
    show_flags("page", uar->base_addr, PAGE, ALL);
    show_flags("register", uar->reg_addr, sizeof(uint64_t), ALL);
    show_flags("page without IOMEMORY", uar->base_addr, PAGE, CU_MEMHOSTREGISTER_PORTABLE);
    show_flags("IOMEMORY alone", uar->base_addr, PAGE, CU_MEMHOSTREGISTER_IOMEMORY);
    show_flags("two pages", three, 2 * (size_t)PAGE, ALL);
    show_flags("two pages and a byte", three, 2 * (size_t)PAGE + 1, ALL);
    show_flags("memory", three + 2 * (size_t)PAGE, PAGE, ALL);
    show_flags("a byte before", three + 2 * (size_t)PAGE - 1, 2, ALL);
    show_flags("no bytes", uar->base_addr, 0, ALL);
    show_flags("all bytes", uar->base_addr, SIZE_MAX, ALL);
    show_flags("private", map(ctx->cmd_fd, uar->mmap_off, MAP_PRIVATE, NULL, PAGE), PAGE, ALL);
    show_flags("other file", map(file, 0, MAP_SHARED, NULL, PAGE), PAGE, ALL);
    munmap(three + PAGE, PAGE);
    show_flags("hole", three, 2 * (size_t)PAGE, ALL);
}

/* -- exports ----------------------------------------------------------------------------------- */

static int export_range(CUdeviceptr addr, size_t len)
{
    int fd = -1;

    return cuda.export(&fd, addr, len, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) ? -1 : fd;
}

static void show_export(const char *name, int fd)
{
    unsigned long long addr = 0;
    size_t len = 0;

    if (cuda.dmabuf(fd, &addr, &len)) {
        printf("%s: unknown\n", name);
    } else {
        printf("%s: %llx %zx\n", name, addr, len);
    }
}

static void show_exports(void)
{
    int first = export_range(0x1000, 0x2000), second = export_range(0x3000, 0x4000), same = first;

    need(cuda.dmabuf, "hcasim_cuda_dmabuf");
    show_export("first", first);
    show_export("second", second);
    show_export("duplicate", dup(first));
    show_export("other file", memfd_create("other", MFD_CLOEXEC));
    show_export("no file", -1);
    printf("a range that the driver refuses: %d\n",
           cuda.export(&same, 0x1001, 0x2000, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    show_export("first after that", first);
    for (int i = 0; i < EXPORTS - 3; i++) {
        close(export_range(0x10000, 0x1000));
    }
    show_export("first of the last 4095", first);
    close(export_range(0x10000, 0x1000));
    close(export_range(0x10000, 0x1000));
    show_export("older", first);
    show_export("newest", export_range(0x5000, 0x6000));
}

/* -- threads ----------------------------------------------------------------------------------- */

static void *thread_run(void *opaque)
{
    struct mlx5dv_devx_uar *uar = opaque;
    char memory[16];

    for (unsigned i = 0; i < ROUNDS; i++) {
        CUdeviceptr addr = (uintptr_t)memory & ~1ull, found = 0;
        int fd = export_range(addr, i + 1);
        size_t len = 0;

        if (flags_of(uar->base_addr, PAGE, ALL) != (ALL & ~CU_MEMHOSTREGISTER_IOMEMORY) ||
            flags_of(memory, sizeof(memory), ALL) != ALL || cuda.dmabuf(fd, &found, &len) ||
            found != addr || len != i + 1) {
            return NULL;
        }
        close(fd);
    }
    return opaque;
}

static void show_threads(void)
{
    pthread_t threads[THREADS];
    struct ibv_context *ctx;
    struct mlx5dv_devx_uar *uar = open_doorbells(&ctx);

    need(cuda.dmabuf, "hcasim_cuda_dmabuf");
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, thread_run, uar);
    }
    for (int i = 0; i < THREADS; i++) {
        void *said;

        pthread_join(threads[i], &said);
        printf("thread %d: %s\n", i, said ? "right" : "wrong");
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3) {
        return 2;
    }
    find_functions(argv[1]);
    if (!strcmp(argv[2], "registers")) {
        show_registrations();
    } else if (!strcmp(argv[2], "exports")) {
        show_exports();
    } else if (!strcmp(argv[2], "threads")) {
        show_threads();
    }
    return 0;
}
