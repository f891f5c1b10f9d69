/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the stand-in GPU (guest-lib/cuda/standin): its kinds of memory, the order in streams and
 * between them, its errors, and that it leaves nothing behind.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/cuda/standin/standin.h"
#include "tests/unit/suite.h"

#define PAGE ((size_t)4096)
#define MB   ((size_t)1 << 20)

static CUcontext primary;
static struct standin_counts before;

static void ok(CUresult result)
{
    const char *name = "?";

    cuGetErrorName(result, &name);
    ck_assert_msg(result == CUDA_SUCCESS, "%s", name);
}

static void fails(CUresult result, CUresult expected)
{
    ck_assert_int_eq(result, expected);
}

static void setup(void)
{
    ok(cuInit(0));
    hcasim_standin_count(&before);
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    ok(cuCtxPushCurrent_v2(primary));
}

/* Whatever a test leaves is freed with the context, and nothing is left after that. */
static void teardown(void)
{
    struct standin_counts counts;

    hcasim_standin_delay(0);
    hcasim_standin_hold(0);
    hcasim_standin_fail(0, CUDA_SUCCESS);
    ok(cuCtxPopCurrent_v2(NULL));
    ok(cuDevicePrimaryCtxRelease_v2(0));
    hcasim_standin_count(&counts);
    ck_assert_uint_eq(counts.contexts, before.contexts);
    ck_assert_uint_eq(counts.streams, before.streams);
    ck_assert_uint_eq(counts.memory, before.memory);
}

static CUdeviceptr alloc(size_t len)
{
    CUdeviceptr addr;

    ok(cuMemAlloc_v2(&addr, len));
    return addr;
}

static void *pinned(size_t len)
{
    void *ptr;

    ok(cuMemHostAlloc(&ptr, len, CU_MEMHOSTALLOC_PORTABLE));
    return ptr;
}

static CUstream new_stream(unsigned flags)
{
    CUstream stream;

    ok(cuStreamCreate(&stream, flags));
    return stream;
}

static unsigned attribute(CUdeviceptr addr, CUpointer_attribute which)
{
    unsigned long long value = 0;

    ok(cuPointerGetAttribute(&value, which, addr));
    return (unsigned)value;
}

/* -- the device -------------------------------------------------------------------------------- */

START_TEST(there_is_one_device)
{
    int count, value;
    CUdevice device;
    char text[64];
    size_t total;
    CUuuid uuid;

    ok(cuDeviceGetCount(&count));
    ck_assert_int_eq(count, 1);
    ok(cuDeviceGet(&device, 0));
    fails(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
    ok(cuDeviceGetName(text, sizeof(text), 0));
    ck_assert_ptr_nonnull(strstr(text, "stand-in"));
    ok(cuDeviceGetPCIBusId(text, sizeof(text), 0));
    ok(cuDeviceGetByPCIBusId(&device, text));
    ok(cuDeviceGetUuid_v2(&uuid, 0));
    ok(cuDeviceTotalMem_v2(&total, 0));
    ck_assert_uint_ge(total, 1u << 30);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    ck_assert_int_eq(value, 1);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    ck_assert_int_eq(value, 0);
    ok(cuDriverGetVersion(&value));
    ck_assert_int_ge(value, 12000);
}
END_TEST

/* The newest version of a function that the caller knows; only what is exported is found. */
START_TEST(functions_are_found_by_name)
{
    CUdriverProcAddressQueryResult found;
    void *function;

    ok(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &found));
    ck_assert(function == (void *)cuMemAlloc_v2);
    ck_assert_int_eq(found, CU_GET_PROC_ADDRESS_SUCCESS);
    ok(cuGetProcAddress_v2("cuMemHostRegister", &function, 6000, 0, NULL));
    ck_assert(function == (void *)cuMemHostRegister);
    ok(cuGetProcAddress_v2("cuMemHostRegister", &function, 6050, 0, NULL));
    ck_assert(function == (void *)cuMemHostRegister_v2);
    ok(cuGetProcAddress_v2("cuCtxGetId", &function, 11000, 0, &found));
    ck_assert_ptr_null(function);
    ck_assert_int_eq(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    function = &found;
    ok(cuGetProcAddress_v2("cuGraphCreate", &function, 13000, 0, &found));
    ck_assert_ptr_null(function);
    ck_assert_int_eq(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ok(cuGetProcAddress("cuMemAlloc", &function, 13000, 0));
    ck_assert(function == (void *)cuMemAlloc_v2);
    fails(cuGetProcAddress("cuGraphCreate", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
    ck_assert_msg(function == (void *)cuMemAlloc_v2, "the driver leaves it as it is");
    fails(cuGetProcAddress("cuMemAlloc", NULL, 13000, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* -- contexts ---------------------------------------------------------------------------------- */

START_TEST(each_thread_has_a_stack_of_contexts)
{
    CUcontext made, current;
    CUdevice device;

    ok(cuCtxCreate_v2(&made, 0, 0));
    ok(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, made);
    ok(cuCtxPopCurrent_v2(&current));
    ck_assert_ptr_eq(current, made);
    ok(cuCtxGetCurrent(&current));
    ck_assert_ptr_eq(current, primary);
    ok(cuCtxSetCurrent(made));
    ok(cuCtxGetDevice(&device));
    ok(cuCtxSetCurrent(NULL));
    fails(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    fails(cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxDestroy_v2(made));
    fails(cuCtxPushCurrent_v2(made), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxPushCurrent_v2(primary));
}
END_TEST

START_TEST(a_context_takes_with_it_what_it_has)
{
    CUcontext made;
    CUdeviceptr addr;
    CUstream stream;
    unsigned type;

    ok(cuCtxCreate_v2(&made, 0, 0));
    addr = alloc(PAGE);
    stream = new_stream(CU_STREAM_NON_BLOCKING);
    hcasim_standin_hold(STANDIN_COPIES);
    ok(cuMemsetD8Async(addr, 1, PAGE, stream)); /* is dropped */
    ok(cuCtxPushCurrent_v2(made));
    ok(cuCtxDestroy_v2(made));
    fails(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED); /* it is on the stack still */
    ok(cuCtxPopCurrent_v2(NULL));
    fails(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr),
          CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* The handle of the primary context is always the same. */
START_TEST(a_reset_of_the_primary_context_ends_it)
{
    CUcontext again;
    CUdeviceptr addr = alloc(PAGE);
    int active;
    unsigned flags;

    ok(cuDevicePrimaryCtxReset_v2(0));
    ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
    fails(cuMemFree_v2(addr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(cuDevicePrimaryCtxRetain(&again, 0));
    ck_assert_ptr_eq(again, primary);
    fails(cuMemFree_v2(addr), CUDA_ERROR_INVALID_VALUE);
    ok(cuDevicePrimaryCtxRelease_v2(0));
}
END_TEST

/* -- memory ------------------------------------------------------------------------------------ */

static sigjmp_buf back;

static void jump_back(int number)
{
    siglongjmp(back, 1);
}

/* Whether a load by the CPU faults. */
static bool faults(CUdeviceptr addr)
{
    struct sigaction action = {.sa_handler = jump_back}, old;
    bool volatile faulted = true;

    sigaction(SIGSEGV, &action, &old);
    if (!sigsetjmp(back, 1)) {
        *(volatile const char *)(uintptr_t)addr;
        faulted = false;
    }
    sigaction(SIGSEGV, &old, NULL);
    return faulted;
}

static CUdeviceptr map_pages(CUdeviceptr wish, size_t len, unsigned access)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc desc = {prop.location, access};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr addr = wish;

    if (!wish) {
        ok(cuMemAddressReserve(&addr, len, 0, 0, 0));
    }
    ok(cuMemCreate(&handle, len, &prop, 0));
    ok(cuMemMap(addr, len, 0, handle, 0));
    ok(cuMemSetAccess(addr, len, &desc, 1));
    ok(cuMemRelease(handle)); /* the mapping holds it */
    return addr;
}

START_TEST(the_cpu_reaches_only_memory_of_the_host)
{
    size_t len = 2 * MB;
    CUdeviceptr device = alloc(PAGE), managed;
    CUdeviceptr mapped = map_pages(0, len, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

    ok(cuMemAllocManaged(&managed, PAGE, CU_MEM_ATTACH_GLOBAL));
    ck_assert(faults(device));
    ck_assert(faults(mapped));
    ck_assert(!faults(managed));
    ck_assert(!faults((uintptr_t)pinned(PAGE)));
    ok(cuMemUnmap(mapped, len));
    ck_assert(faults(mapped));
    ok(cuMemAddressFree(mapped, len));
}
END_TEST

START_TEST(an_address_tells_what_is_there)
{
    static char plain[64];
    char *registered = aligned_alloc(PAGE, PAGE);
    CUdeviceptr device = alloc(100), managed, base;
    CUdeviceptr mapped = map_pages(0, 2 * MB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUcontext context;
    unsigned sync = 1, type;
    size_t len;
    void *ptr;
    unsigned long long id;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &id, &ptr};

    ok(cuMemAllocManaged(&managed, PAGE, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemHostRegister_v2(registered, PAGE, 0));
    ck_assert_uint_eq(attribute(device, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_eq(attribute(mapped, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_eq(attribute(managed, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_eq(attribute((uintptr_t)registered + 5, CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
                      CU_MEMORYTYPE_HOST);
    ck_assert_uint_eq(attribute(device, CU_POINTER_ATTRIBUTE_IS_MANAGED), 0);
    ck_assert_uint_eq(attribute(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED), 1);
    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device));
    ck_assert_ptr_eq(context, primary);
    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, mapped));
    ck_assert_ptr_null(context);
    fails(cuPointerGetAttribute(&ptr, CU_POINTER_ATTRIBUTE_HOST_POINTER, device),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)plain),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 100),
          CUDA_ERROR_INVALID_VALUE);
    ok(cuMemGetAddressRange_v2(&base, &len, device + 99));
    ck_assert_uint_eq(base, device);
    ck_assert_uint_eq(len, 100);
    ck_assert_uint_eq(attribute(device, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), 0);
    ok(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    ck_assert_uint_eq(attribute(device, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), 1);
    ok(cuPointerGetAttributes(3, which, values, device));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_ne(id, 0);
    ck_assert_ptr_null(ptr);
    ok(cuPointerGetAttributes(3, which, values, (uintptr_t)plain));
    ck_assert_uint_eq(type, 0);
    ck_assert_uint_eq(id, 0);
    ok(cuMemHostUnregister(registered));
    ok(cuMemUnmap(mapped, 2 * MB));
    ok(cuMemAddressFree(mapped, 2 * MB));
    free(registered);
}
END_TEST

/* Memory that takes the addresses of freed memory is other memory. */
START_TEST(a_buffer_id_is_not_used_again)
{
    unsigned last = 0;

    for (unsigned i = 0; i < 3; i++) {
        CUdeviceptr addr = alloc(MB);
        unsigned id = attribute(addr, CU_POINTER_ATTRIBUTE_BUFFER_ID);

        ck_assert_uint_gt(id, last);
        last = id;
        ok(cuMemFree_v2(addr));
    }
}
END_TEST

START_TEST(memory_ends)
{
    CUdeviceptr addr;
    size_t left, total, pitch;

    ok(cuMemGetInfo_v2(&left, &total));
    fails(cuMemAlloc_v2(&addr, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    fails(cuMemAlloc_v2(&addr, SIZE_MAX - 5), CUDA_ERROR_OUT_OF_MEMORY);
    fails(cuMemAlloc_v2(&addr, 0), CUDA_ERROR_INVALID_VALUE);
    addr = alloc(left); /* it costs nothing until it is written */
    fails(cuMemAlloc_v2(&addr, 1), CUDA_ERROR_OUT_OF_MEMORY);
    ok(cuMemGetInfo_v2(&left, NULL));
    ck_assert_uint_eq(left, 0);
    ok(cuMemFree_v2(addr));
    fails(cuMemFree_v2(addr), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemAllocPitch_v2(&addr, &pitch, 100, 3, 4));
    ck_assert_uint_ge(pitch, 100);
    fails(cuMemFree_v2(addr + 1), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFree_v2(addr));
}
END_TEST

START_TEST(memory_of_the_host_is_registered_once)
{
    char *ptr = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr addr;
    unsigned flags;

    fails(cuMemHostRegister_v2(ptr, PAGE, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemHostRegister_v2(ptr, PAGE, 16), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemHostRegister_v2((void *)(uintptr_t)alloc(PAGE), PAGE, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemHostRegister_v2(ptr, 2 * PAGE, CU_MEMHOSTREGISTER_PORTABLE));
    fails(cuMemHostRegister_v2(ptr + PAGE, PAGE, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    ok(cuMemHostGetDevicePointer_v2(&addr, ptr + 7, 0));
    ck_assert_uint_eq(addr, (uintptr_t)ptr + 7);
    ok(cuMemHostGetFlags(&flags, ptr));
    ck_assert_uint_eq(flags & CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
    ok(cuMemHostUnregister(ptr));
    fails(cuMemHostUnregister(ptr), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    fails(cuMemHostGetDevicePointer_v2(&addr, ptr, 0), CUDA_ERROR_INVALID_VALUE);
    munmap(ptr + PAGE, PAGE);
    fails(cuMemHostRegister_v2(ptr, 4 * PAGE, 0), CUDA_ERROR_INVALID_VALUE);
    munmap(ptr, 4 * PAGE);
}
END_TEST

/* A dma-buf has a length, and no CPU can map it. It stands for its range until that is freed. */
START_TEST(a_dma_buf_stands_for_its_range)
{
    CUdeviceptr device = alloc(4 * PAGE);
    unsigned long long addr;
    size_t len;
    int fd, copy, other;

    fails(cuMemGetHandleForAddressRange(&fd, device + 1, PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                        0),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuMemGetHandleForAddressRange(&fd, device, 5 * PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                        0),
          CUDA_ERROR_INVALID_VALUE);
    fails(cuMemGetHandleForAddressRange(&fd, (uintptr_t)pinned(PAGE), PAGE,
                                        CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
          CUDA_ERROR_INVALID_VALUE);
    ok(cuMemGetHandleForAddressRange(&fd, device + PAGE, 2 * PAGE,
                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ok(cuMemGetHandleForAddressRange(&other, device, PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 2 * PAGE);
    ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_ptr_eq(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    copy = dup(fd);
    close(fd);
    ck_assert_int_eq(hcasim_cuda_dmabuf(copy, &addr, &len), 0);
    ck_assert_uint_eq(addr, device + PAGE);
    ck_assert_uint_eq(len, 2 * PAGE);
    ck_assert_int_eq(hcasim_cuda_dmabuf(other, &addr, &len), 0);
    ck_assert_uint_eq(addr, device);
    ck_assert_int_eq(hcasim_cuda_dmabuf(STDIN_FILENO, &addr, &len), -1);
    ck_assert_int_eq(hcasim_cuda_dmabuf(-1, &addr, &len), -1);
    ok(cuMemFree_v2(device));
    ck_assert_int_eq(hcasim_cuda_dmabuf(copy, &addr, &len), -1);
    close(copy);
    close(other);
}
END_TEST

START_TEST(virtual_memory_is_reserved_mapped_and_allowed)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc none = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr addr;
    size_t unit;
    uint32_t word = 7;
    unsigned long long access;

    ok(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    fails(cuMemCreate(&handle, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressReserve(&addr, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemAddressReserve(&addr, 3 * unit, 0, 0, 0));
    ok(cuMemCreate(&handle, unit, &prop, 0));
    fails(cuMemMap(addr, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemMap(addr + 3 * unit, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemMap(addr + unit, unit, 0, handle, 0));
    fails(cuMemMap(addr + unit, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyHtoD_v2(addr + unit, &word, sizeof(word)), CUDA_ERROR_INVALID_VALUE);
    map_pages(addr + 2 * unit, unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    fails(cuMemSetAccess(addr, 3 * unit, &none, 1), CUDA_ERROR_INVALID_VALUE); /* with the hole */
    none.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ok(cuMemSetAccess(addr + unit, 2 * unit, &none, 1));
    ok(cuMemGetAccess(&access, &none.location, addr + unit));
    ck_assert_uint_eq(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    /* A copy may cross from one mapping to the next. */
    ok(cuMemsetD8_v2(addr + unit, 5, 2 * unit));
    ok(cuMemcpyDtoH_v2(&word, addr + 2 * unit - 2, sizeof(word)));
    ck_assert_uint_eq(word, 0x05050505);
    ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(addr + unit)));
    ck_assert_uint_eq(again, handle);
    ok(cuMemRelease(handle));
    ok(cuMemRelease(handle));
    fails(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemAddressFree(addr, 3 * unit), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemUnmap(addr + unit, unit / 2), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemUnmap(addr + unit, 2 * unit));
    ok(cuMemAddressFree(addr, 3 * unit));
}
END_TEST

/* -- copies and streams ------------------------------------------------------------------------ */

START_TEST(copies_move_bytes)
{
    size_t len = 3 * MB + 5;
    uint8_t *out = pinned(len), *in = pinned(len);
    CUdeviceptr a = alloc(len), b = alloc(len);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    uint32_t plain[3] = {1, 2, 3}, back_again[3] = {0};

    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    ok(cuMemcpyHtoDAsync_v2(a, out, len, stream));
    ok(cuMemcpyDtoDAsync_v2(b, a, len, stream));
    ok(cuMemcpyDtoHAsync_v2(in, b, len, stream));
    ok(cuStreamSynchronize(stream));
    ck_assert_mem_eq(in, out, len);
    ck_assert_mem_eq(hcasim_standin_memory(b, len), out, len);
    ok(cuMemcpyHtoD_v2(a + 1, plain, sizeof(plain)));
    ok(cuMemcpy((uintptr_t)back_again, a + 1, sizeof(plain)));
    ck_assert_mem_eq(back_again, plain, sizeof(plain));
    ok(cuMemsetD32Async(a, 0x01020304, 3, stream));
    ok(cuStreamWriteValue64_v2(stream, a + 16, 0x1122334455667788, 0));
    ok(cuStreamSynchronize(stream));
    ck_assert_uint_eq(((uint32_t *)hcasim_standin_memory(a, 16))[2], 0x01020304);
    ck_assert_uint_eq(*(uint64_t *)hcasim_standin_memory(a + 16, 8), 0x1122334455667788);
    ok(cuStreamDestroy_v2(stream));
}
END_TEST

START_TEST(addresses_are_checked_by_the_call)
{
    uint8_t *host = pinned(PAGE);
    CUdeviceptr device = alloc(PAGE), gone = alloc(PAGE);
    char plain[8];

    ok(cuMemFree_v2(gone));
    fails(cuMemcpyHtoDAsync_v2(gone, host, 8, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyDtoHAsync_v2(host, device + PAGE - 7, 8, NULL), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyDtoH_v2(plain, (uintptr_t)plain, 8), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyHtoD_v2(device, (void *)(uintptr_t)device, 8), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyHtoD_v2(device, (void *)(uintptr_t)gone, 8), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyDtoD_v2(device, (uintptr_t)plain, 8), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemsetD32_v2(device + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemsetD32_v2(device, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
    fails(cuMemcpyHtoDAsync_v2(device, host, 8, (CUstream)(uintptr_t)0x1234),
          CUDA_ERROR_INVALID_HANDLE);
    ok(cuMemcpyHtoD_v2(device, host, 0));
}
END_TEST

/* A copy is done later, and reads its source then. */
START_TEST(copies_are_asynchronous)
{
    uint32_t *host = pinned(PAGE);
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);

    hcasim_standin_hold(STANDIN_COPIES);
    host[0] = 1;
    ok(cuMemcpyHtoDAsync_v2(device, host, 4, stream));
    fails(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    host[0] = 2;
    hcasim_standin_hold(0);
    ok(cuStreamSynchronize(stream));
    ok(cuStreamQuery(stream));
    ck_assert_uint_eq(*(uint32_t *)hcasim_standin_memory(device, 4), 2);
}
END_TEST

/* Pageable memory may be changed as soon as the call returns. */
START_TEST(copies_of_pageable_memory_are_done_when_the_call_returns)
{
    uint32_t word = 1;
    CUdeviceptr device = alloc(PAGE);

    hcasim_standin_delay(1000);
    ok(cuMemcpyHtoDAsync_v2(device, &word, sizeof(word), NULL));
    word = 2;
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoHAsync_v2(&word, device, sizeof(word), NULL));
    ck_assert_uint_eq(word, 1);
}
END_TEST

START_TEST(a_stream_keeps_its_order)
{
    enum {
        COPIES = 3000
    }; /* more than there is room for */
    uint32_t *numbers = pinned(COPIES * sizeof(uint32_t)), *result = pinned(PAGE);
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);

    for (uint32_t i = 0; i < COPIES; i++) {
        numbers[i] = i;
        ok(cuMemcpyHtoDAsync_v2(device, &numbers[i], 4, stream));
    }
    ok(cuMemcpyDtoHAsync_v2(result, device, 4, stream));
    ok(cuStreamSynchronize(stream));
    ck_assert_uint_eq(*result, COPIES - 1);
}
END_TEST

/* Whether the store of a stream of these flags, which was put in first, is there before that of the
 * default stream, in each of many rounds. */
static bool is_before_the_default_stream(unsigned flags)
{
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(flags);
    uint32_t *word = hcasim_standin_memory(device, 4);
    bool always = true;

    for (unsigned i = 0; i < 200 && always; i++) {
        hcasim_standin_hold(STANDIN_COPIES);
        ok(cuMemsetD32Async(device, 1, 1, stream));
        ok(cuMemsetD32Async(device, 2, 1, NULL));
        hcasim_standin_hold(0);
        ok(cuCtxSynchronize());
        always = __atomic_load_n(word, __ATOMIC_ACQUIRE) == 2;
    }
    ok(cuStreamDestroy_v2(stream));
    ok(cuMemFree_v2(device));
    return always;
}

START_TEST(the_default_stream_waits_for_blocking_streams_only)
{
    ck_assert(is_before_the_default_stream(CU_STREAM_DEFAULT));
    ck_assert(!is_before_the_default_stream(CU_STREAM_NON_BLOCKING));
}
END_TEST

START_TEST(events_order_streams)
{
    CUdeviceptr device = alloc(PAGE);
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event, start;
    uint32_t *result = pinned(PAGE);
    float ms;

    ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
    ok(cuEventCreate(&start, CU_EVENT_DEFAULT));
    ok(cuEventQuery(event)); /* never recorded */
    for (uint32_t i = 1; i < 100; i++) {
        hcasim_standin_hold(STANDIN_COPIES);
        ok(cuEventRecord(start, a));
        ok(cuMemsetD32Async(device, i, 1, a));
        ok(cuEventRecord(event, a));
        ok(cuStreamWaitEvent(b, event, 0));
        ok(cuMemcpyDtoHAsync_v2(result, device, 4, b));
        fails(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        hcasim_standin_hold(0);
        ok(cuEventSynchronize(event));
        ok(cuStreamSynchronize(b));
        ck_assert_uint_eq(*result, i);
    }
    ok(cuEventElapsedTime(&ms, start, event));
    ck_assert(ms >= 0);
    ok(cuEventDestroy_v2(event));
    fails(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    ok(cuEventDestroy_v2(start));
}
END_TEST

static void call_back(void *opaque)
{
    CUdevice device;

    /* No call of the driver is allowed there. */
    if (cuCtxGetDevice(&device) == CUDA_ERROR_NOT_PERMITTED) {
        __atomic_add_fetch((unsigned *)opaque, 1, __ATOMIC_RELEASE);
    }
}

START_TEST(functions_of_the_program_are_called_in_order)
{
    unsigned called = 0;
    CUstream stream = new_stream(0);

    ok(cuLaunchHostFunc(stream, call_back, &called));
    ok(cuLaunchHostFunc(stream, call_back, &called));
    ok(cuStreamSynchronize(stream));
    ck_assert_uint_eq(called, 2);
}
END_TEST

/* A destroyed stream ends what it has. */
START_TEST(a_destroyed_stream_is_emptied)
{
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);

    hcasim_standin_hold(STANDIN_COPIES);
    ok(cuMemsetD32Async(device, 9, 1, stream));
    ok(cuStreamDestroy_v2(stream));
    fails(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    hcasim_standin_hold(0);
    ok(cuCtxSynchronize());
    ck_assert_uint_eq(*(uint32_t *)hcasim_standin_memory(device, 4), 9);
}
END_TEST

/* Memory is freed after the copies that use it. */
START_TEST(freeing_waits_for_copies)
{
    uint8_t *host = pinned(MB);
    CUdeviceptr device = alloc(MB);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);

    hcasim_standin_delay(2000);
    for (unsigned i = 0; i < 5; i++) {
        ok(cuMemcpyHtoDAsync_v2(device, host, MB, stream));
    }
    ok(cuMemFree_v2(device));
    ok(cuStreamQuery(stream));
    ok(cuMemcpyHtoDAsync_v2(alloc(MB), host, MB, stream));
    ok(cuMemFreeHost(host));
    ok(cuStreamQuery(stream));
}
END_TEST

/* -- errors ------------------------------------------------------------------------------------ */

static void expect_sticky(CUstream stream, CUdeviceptr device, void *host, CUresult error)
{
    CUdeviceptr addr;

    fails(cuStreamSynchronize(stream), error);
    fails(cuStreamQuery(stream), error);
    fails(cuMemcpyDtoH_v2(host, device, 4), error);
    fails(cuMemAlloc_v2(&addr, 4), error);
    fails(cuCtxSynchronize(), error);
}

/* A kernel that traps: all later calls of its context fail, until the context is reset. */
START_TEST(an_error_stays_until_the_context_is_reset)
{
    void *host = pinned(PAGE);
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUcontext other;

    hcasim_standin_fail(STANDIN_COPIES, CUDA_ERROR_LAUNCH_FAILED);
    ok(cuMemcpyHtoDAsync_v2(device, host, 4, stream));
    expect_sticky(stream, device, host, CUDA_ERROR_LAUNCH_FAILED);
    /* Another context is as it was. */
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuMemFree_v2(alloc(PAGE)));
    ok(cuCtxDestroy_v2(other));
    ok(cuDevicePrimaryCtxReset_v2(0));
    ok(cuDevicePrimaryCtxRetain(&other, 0));
    ok(cuMemFree_v2(alloc(PAGE)));
    ok(cuDevicePrimaryCtxRelease_v2(0));
}
END_TEST

/* Memory that is unmapped before its copy. */
START_TEST(a_copy_of_memory_that_is_gone_is_a_fault)
{
    void *host = pinned(PAGE);
    CUdeviceptr mapped = map_pages(0, 2 * MB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);

    hcasim_standin_hold(STANDIN_COPIES);
    ok(cuMemcpyHtoDAsync_v2(mapped, host, 4, stream));
    ok(cuMemUnmap(mapped, 2 * MB));
    hcasim_standin_hold(0);
    expect_sticky(stream, mapped, host, CUDA_ERROR_ILLEGAL_ADDRESS);
    ok(cuMemAddressFree(mapped, 2 * MB));
}
END_TEST

static void *synchronize(void *stream)
{
    CUresult result;

    ok(cuCtxSetCurrent(primary));
    result = cuStreamSynchronize(stream);
    ok(cuCtxSetCurrent(NULL));
    return (void *)(uintptr_t)result;
}

/* A thread that waits for a stream gets the error of its context. */
START_TEST(a_thread_that_waits_is_told_of_the_end)
{
    CUdeviceptr device = alloc(PAGE);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    pthread_t thread;
    void *result;

    hcasim_standin_hold(STANDIN_COPIES);
    ok(cuMemsetD8Async(device, 1, 1, stream));
    ck_assert_int_eq(pthread_create(&thread, NULL, synchronize, stream), 0);
    usleep(20000);
    ok(cuDevicePrimaryCtxReset_v2(0));
    pthread_join(thread, &result);
    ck_assert_int_eq((int)(uintptr_t)result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}
END_TEST

/* In a child of fork() the driver does not work, and the memory is not there. */
START_TEST(nothing_works_in_a_child)
{
    CUdeviceptr device = alloc(PAGE);
    int status;
    pid_t child = fork();

    if (!child) {
        CUcontext context;
        int bad = cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
                  cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED ||
                  cuMemFree_v2(device) != CUDA_ERROR_NOT_INITIALIZED;

        _exit(bad);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ok(cuMemFree_v2(device));
}
END_TEST

/* -- kernels ----------------------------------------------------------------------------------- */

static CUfunction find_kernel(CUmodule *module, const char *name)
{
    char text[256];
    CUfunction function;

    snprintf(text, sizeof(text), ".version 6.0\n.target sm_60\n.visible .entry %s(.param .u64 a)\n",
             name);
    ok(cuModuleLoadData(module, text));
    fails(cuModuleGetFunction(&function, *module, "absent"), CUDA_ERROR_NOT_FOUND);
    ok(cuModuleGetFunction(&function, *module, name));
    return function;
}

START_TEST(no_kernel_runs)
{
    CUmodule module;
    CUfunction function = find_kernel(&module, "anything");
    uint64_t argument = 0;
    void *params[] = {&argument};

    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
          CUDA_ERROR_NOT_SUPPORTED);
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
    fails(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
          CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* Runs hcasim's kernel with one order. Returns its verdict. */
static uint32_t order(CUfunction function, struct cuda_atomic *at, struct cuda_atomic what)
{
    CUdeviceptr addr = (uintptr_t)at;
    void *params[] = {&addr};

    *at = what;
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxSynchronize());
    return at->verdict;
}

START_TEST(the_kernel_of_atomic_operations_runs)
{
    CUmodule module;
    CUfunction function = find_kernel(&module, CUDA_ATOMIC_KERNEL);
    struct cuda_atomic *at = pinned(sizeof(*at));
    CUdeviceptr device = alloc(PAGE);
    uint64_t *word = hcasim_standin_memory(device, 8);
    struct cuda_atomic add = {.word = device, .operand = 5, .kind = CUDA_ATOMIC_ADD, .len = 8};
    struct cuda_atomic swap = {.word = device,
                               .operand = 0xffffffff00000001,
                               .compare = 15,
                               .kind = CUDA_ATOMIC_CMP_SWAP,
                               .len = 4};

    *word = 10;
    ck_assert_uint_eq(order(function, at, add), CUDA_ATOMIC_DONE);
    ck_assert_uint_eq(at->result, 10);
    ck_assert_uint_eq(at->started, 1);
    ck_assert_uint_eq(*word, 15);
    ck_assert_uint_eq(order(function, at, swap), CUDA_ATOMIC_DONE);
    ck_assert_uint_eq(at->result, 15);
    ck_assert_uint_eq(*word, 1);
    ck_assert_uint_eq(order(function, at, swap), CUDA_ATOMIC_DONE);
    ck_assert_uint_eq(at->result, 1);
    ck_assert_uint_eq(*word, 1);
    add.cancelled = 1;
    ck_assert_uint_eq(order(function, at, add), CUDA_ATOMIC_GIVEN_UP);
    ck_assert_uint_eq(*word, 1);
    /* A word that is not there */
    add = (struct cuda_atomic){.word = device + PAGE, .kind = CUDA_ATOMIC_ADD, .len = 8};
    *at = add;
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL,
                      (void *[]){&(CUdeviceptr){(uintptr_t)at}}, NULL));
    fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* -- many threads ------------------------------------------------------------------------------ */

static void *copy_much(void *opaque)
{
    unsigned seed = (unsigned)(uintptr_t)opaque;

    ok(cuCtxPushCurrent_v2(primary));
    for (unsigned i = 0; i < 30; i++) {
        CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
        CUdeviceptr device = alloc(64 * PAGE);
        uint32_t *host = pinned(PAGE);

        for (uint32_t at = 0; at < 64 * PAGE; at += PAGE) {
            ok(cuMemsetD32Async(device + at, seed + i + at, PAGE / 4, stream));
        }
        ok(cuMemcpyDtoHAsync_v2(host, device + 63 * PAGE, PAGE, stream));
        ok(cuStreamSynchronize(stream));
        ck_assert_uint_eq(host[PAGE / 4 - 1], seed + i + 63 * (uint32_t)PAGE);
        ok(cuMemFreeHost(host));
        ok(cuStreamDestroy_v2(stream));
        ok(cuMemFree_v2(device));
    }
    ok(cuCtxPopCurrent_v2(NULL));
    return NULL;
}

START_TEST(many_threads_may_call)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, copy_much, (void *)(i << 24)), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cuda-standin");
    TCase *tc = tcase_create("cuda-standin");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, there_is_one_device);
    tcase_add_test(tc, functions_are_found_by_name);
    tcase_add_test(tc, each_thread_has_a_stack_of_contexts);
    tcase_add_test(tc, a_context_takes_with_it_what_it_has);
    tcase_add_test(tc, a_reset_of_the_primary_context_ends_it);
    tcase_add_test(tc, the_cpu_reaches_only_memory_of_the_host);
    tcase_add_test(tc, an_address_tells_what_is_there);
    tcase_add_test(tc, a_buffer_id_is_not_used_again);
    tcase_add_test(tc, memory_ends);
    tcase_add_test(tc, memory_of_the_host_is_registered_once);
    tcase_add_test(tc, a_dma_buf_stands_for_its_range);
    tcase_add_test(tc, virtual_memory_is_reserved_mapped_and_allowed);
    tcase_add_test(tc, copies_move_bytes);
    tcase_add_test(tc, addresses_are_checked_by_the_call);
    tcase_add_test(tc, copies_are_asynchronous);
    tcase_add_test(tc, copies_of_pageable_memory_are_done_when_the_call_returns);
    tcase_add_test(tc, a_stream_keeps_its_order);
    tcase_add_test(tc, the_default_stream_waits_for_blocking_streams_only);
    tcase_add_test(tc, events_order_streams);
    tcase_add_test(tc, functions_of_the_program_are_called_in_order);
    tcase_add_test(tc, a_destroyed_stream_is_emptied);
    tcase_add_test(tc, freeing_waits_for_copies);
    tcase_add_test(tc, an_error_stays_until_the_context_is_reset);
    tcase_add_test(tc, a_copy_of_memory_that_is_gone_is_a_fault);
    tcase_add_test(tc, a_thread_that_waits_is_told_of_the_end);
    tcase_add_test(tc, nothing_works_in_a_child);
    tcase_add_test(tc, no_kernel_runs);
    tcase_add_test(tc, the_kernel_of_atomic_operations_runs);
    tcase_add_test(tc, many_threads_may_call);
    suite_add_tcase(suite, tc);
    return suite;
}
