/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the GPU's memory share: gpu.c has the table of claimed ranges, gpu_driver.c
 * finds the CUDA driver, gpu_copy.c copies, gpu_atomic.c does atomic operations.
 */
#ifndef HCASIM_GUEST_LIB_HOST_GPU_INTERNAL_H
#define HCASIM_GUEST_LIB_HOST_GPU_INTERNAL_H

#include "guest-lib/cuda/cuda_api.h"
#include "guest-lib/host/gpu.h"

/* -- gpu_driver.c ------------------------------------------------------------------------------ */

/* X(member, symbol): the functions of the driver that are used. */
#define GPU_DRIVER(X)                                                                              \
    X(get_error_string, cuGetErrorString)                                                          \
    X(pointer_get_attribute, cuPointerGetAttribute)                                                \
    X(mem_get_address_range, cuMemGetAddressRange_v2)                                              \
    X(device_get_attribute, cuDeviceGetAttribute)                                                  \
    X(primary_get_state, cuDevicePrimaryCtxGetState)                                               \
    X(primary_retain, cuDevicePrimaryCtxRetain)                                                    \
    X(primary_release, cuDevicePrimaryCtxRelease_v2)                                               \
    X(ctx_get_current, cuCtxGetCurrent)                                                            \
    X(ctx_push, cuCtxPushCurrent_v2)                                                               \
    X(ctx_pop, cuCtxPopCurrent_v2)                                                                 \
    X(stream_create, cuStreamCreateWithPriority)                                                   \
    X(stream_destroy, cuStreamDestroy_v2)                                                          \
    X(stream_query, cuStreamQuery)                                                                 \
    X(mem_host_alloc, cuMemHostAlloc)                                                              \
    X(mem_free_host, cuMemFreeHost)                                                                \
    X(copy_from, cuMemcpyDtoHAsync_v2)                                                             \
    X(copy_to, cuMemcpyHtoDAsync_v2)                                                               \
    X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode)                                    \
    X(module_load, cuModuleLoadData)                                                               \
    X(module_unload, cuModuleUnload)                                                               \
    X(module_get_function, cuModuleGetFunction)                                                    \
    X(launch_kernel, cuLaunchKernel)

struct gpu_driver {
#define GPU_FUNCTION(member, symbol) __typeof__(symbol) *member;
    GPU_DRIVER(GPU_FUNCTION)
#undef GPU_FUNCTION
    /* of the front or the stand-in; NULL: the system's library is used without a front */
    __typeof__(hcasim_cuda_dmabuf) *find_dmabuf;
};

/* The driver of this process. NULL: the process has not loaded it, or it lacks a function. */
const struct gpu_driver *gpu_driver_find(void);

/* Notes a failure for gpu_why(). Returns whether the call succeeded. */
bool gpu_ok(CUresult result, const char *what);

/* -- gpu.c ------------------------------------------------------------------------------------- */

/* An allocation of the GPU's, of which a claim holds a part. */
struct gpu_memory {
    uint64_t start, len;
    unsigned long long id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID; 0: the driver gave none */
    struct gpu_device *device;
    unsigned claims;
    bool gone; /* it was freed under its claims */
};

/* -- gpu_copy.c: under the lock ---------------------------------------------------------------- */

struct gpu_atomics;

/* A GPU whose memory is claimed: how it is reached. */
struct gpu_device {
    const struct gpu_driver *driver;
    int ordinal;
    CUcontext ctx;
    bool retained;            /* ctx is the device's primary context, which is held here */
    CUstreamCaptureMode mode; /* of the calling thread, within gpu_enter() */
    bool broken; /* the driver failed in a way that does not end: no access is tried any more */
    CUstream stream;
    uint8_t *in, *out;   /* pinned memory that data passes through */
    size_t out_used;     /* bytes of out that may not be copied yet */
    size_t held;         /* the last of these bytes, which wait for more of their message */
    uint64_t held_for;   /* the address of the first of them */
    bool lost;           /* bytes that were held did not get into the stream */
    bool unsettled;      /* there are writes in the stream */
    uint64_t ahead, end; /* the range whose data is in `in`, copied in advance; equal: none */
    uint64_t part, message_end;  /* the last read of a known message, and where the message ends */
    struct gpu_atomics *atomics; /* NULL: by copies only */
    unsigned memories;
};

/* Makes the device of a context. NULL: the driver failed. */
struct gpu_device *gpu_device_new(const struct gpu_driver *driver, int ordinal, CUcontext ctx,
                                  bool retained);
void gpu_device_free(struct gpu_device *device);
/* Makes the device's context the calling thread's, and allows calls while another thread captures a
 * graph; gpu_leave() ends both. */
bool gpu_enter(struct gpu_device *device);
void gpu_leave(struct gpu_device *device);

/* The next functions are called within gpu_enter(). */
/* left: the bytes of the read's message from addr on; 0: unknown. */
bool gpu_device_read(struct gpu_device *device, uint64_t addr, void *buf, size_t len, size_t left);
bool gpu_device_write(struct gpu_device *device, uint64_t addr, const void *buf, size_t len);
/* Submits the bytes that are held. */
bool gpu_device_submit(struct gpu_device *device);
/* Waits until all writes have arrived. */
bool gpu_device_settle(struct gpu_device *device);

/* -- gpu_atomic.c: likewise -------------------------------------------------------------------- */

/* NULL: the GPU runs no kernel of ours. */
struct gpu_atomics *gpu_atomics_new(struct gpu_device *device);
void gpu_atomics_free(struct gpu_device *device);
bool gpu_device_atomic(struct gpu_device *device, uint64_t addr, size_t len,
                       struct host_atomic *op);

#endif
