/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in GPU: a libcuda.so.1 of hcasim's own, for machines without a GPU. Programs that use the
 * CUDA driver API get one device, whose memory is memory of the host (`hcasim run --fake-gpu`).
 *
 * It does these things as the driver does them:
 *   - Memory that the CPU cannot reach: cuMemAlloc(), cuMemCreate() and cuMemMap(). The program's
 *     addresses are mapped without any access, so a load by the CPU is a SIGSEGV. Managed, pinned
 *     and registered memory, which the CPU reaches.
 *   - Copies, memsets and single stores in streams, which are asynchronous: one thread works on all
 *     streams. It keeps the order in a stream and, for streams that are not CU_STREAM_NON_BLOCKING,
 *     the order with the default stream. There is no other order: the thread takes streams at
 *     random. Nor is there an order of the bytes in one copy, which arrive from the last to the
 *     first. Events.
 *   - Attributes of addresses, dma-buf descriptors, which cannot be mapped, and errors: those that
 *     a call returns, and those that stay in a context until the context is reset.
 *
 * Programs that use the driver API alone run as they are, among them perftest with --use_cuda and
 * --use_cuda_dmabuf.
 *
 * It does not do these things:
 *   - It runs no kernels. Modules can be loaded and functions found, but cuLaunchKernel() returns
 *     CUDA_ERROR_NOT_SUPPORTED and writes one line to stderr. The one exception is the kernel with
 *     which hcasim itself does atomic operations (CUDA_ATOMIC_KERNEL).
 *   - Programs that use the CUDA runtime (libcudart, also linked statically) do not run: it asks
 *     the driver for tables of functions that are not documented (cuGetExportTable()). Their first
 *     call returns cudaErrorCallRequiresNewerDriver.
 *   - Functions that are not in cuda_functions.def are not exported, and cuGetProcAddress() does
 *     not find them. Among them are graphs, arrays, textures, memory pools and memory that
 *     processes share. There is no default stream for each thread.
 *   - CU_MEMHOSTREGISTER_IOMEMORY is refused, because there is no memory of another device here.
 *     The driver refuses the flag for memory in the same way.
 *   - Calls for one context may come from any thread, but not from a child of fork(). All calls in
 *     a child return CUDA_ERROR_NOT_INITIALIZED, as those of the driver do.
 *
 * The functions below are for tests, which find them with dlsym().
 */
#ifndef HCASIM_GUEST_LIB_CUDA_STANDIN_H
#define HCASIM_GUEST_LIB_CUDA_STANDIN_H

#include <stdbool.h>
#include "guest-lib/cuda/cuda_api.h"

/* Kinds of work of the device, as bits. */
enum standin_work {
    STANDIN_COPIES = 1, /* copies, memsets and stores */
    STANDIN_KERNELS = 2,
};

/* Each copy starts no earlier than us microseconds after it came to the head of its stream. If us
 * is not 0, each copy of more than 256 bytes also pauses when its last bytes have arrived. */
CUDA_EXPORT void hcasim_standin_delay(unsigned us);

/* Work of these kinds does not start until it is taken from the mask: the device is busy with
 * kernels that do not end. */
CUDA_EXPORT void hcasim_standin_hold(unsigned work);

/* The next work of these kinds fails with an error that stays in its context, as if a kernel had
 * trapped. CUDA_SUCCESS: nothing fails. */
CUDA_EXPORT void hcasim_standin_fail(unsigned work, CUresult error);

/* Where the host reaches len bytes of the device's memory, for threads that do what kernels would
 * do. NULL: not all of it is mapped, or not contiguously. Valid until the memory is freed. */
CUDA_EXPORT void *hcasim_standin_memory(CUdeviceptr addr, size_t len);

struct standin_counts {
    unsigned long long copies, kernels; /* done */
    size_t memory;                      /* bytes of the device's memory in use */
    unsigned streams, contexts;
};

CUDA_EXPORT void hcasim_standin_count(struct standin_counts *counts);

#endif
