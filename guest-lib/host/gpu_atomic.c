/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations on a GPU's memory.
 *
 * A kernel of one thread does the operation on the GPU, so that kernels of the program that change
 * the same word lose nothing. The kernel may find no room, if kernels that do not end fill the GPU.
 * If it has not started after some time, the operation is taken back from it and done by a read and
 * a write, as by a card without PCIe atomics: then it is atomic only among the operations of this
 * process's HCAs. Until the kernel has ended after that, all operations are done so.
 *
 * Host and kernel agree who does the operation through two words in pinned memory: each writes its
 * own word and then reads the other's. If the host finds that the kernel has not started, the
 * kernel will find that it was cancelled.
 */
#include <limits.h>
#include <string.h>
#include <time.h>
#include <glib.h>
#include "guest-lib/host/gpu_internal.h"
#include "model/memory/masked.h"

#define ROOM_NS  5000000u       /* for which the kernel may wait for room on the GPU */
#define PATIENCE 10000000000ull /* ns for a kernel that has started */

struct gpu_atomics {
    CUmodule module;
    CUfunction function;
    CUstream stream;
    struct cuda_atomic *order; /* in pinned memory */
    bool busy;                 /* a kernel that was cancelled may still read the order */
};

/* The kernel hcasim_atomic(order); struct cuda_atomic has the order's layout. */
static const char kernel[] =
    ".version 6.0\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".visible .entry " CUDA_ATOMIC_KERNEL "(.param .u64 order)\n"
    "{\n"
    "    .reg .b64 %order, %word, %operand, %compare, %held;\n"
    "    .reg .b32 %one, %cancelled, %kind, %len, %operand32, %compare32, %held32, %verdict;\n"
    "    .reg .b64 %swap_mask, %compare_mask, %made, %part, %seen;\n"
    "    .reg .b32 %made32, %seen32;\n"
    "    .reg .pred %is_cancelled, %is_add, %is_word32, %is_masked, %is_fields, %differs, %is_done;\n"
    "    ld.param.u64 %order, [order];\n"
    "    mov.u32 %one, 1;\n"
    "    st.volatile.global.u32 [%order + 40], %one;\n" /* started */
    "    membar.sys;\n"
    "    ld.volatile.global.u32 %cancelled, [%order + 44];\n"
    "    mov.u32 %verdict, 2;\n"
    "    setp.ne.u32 %is_cancelled, %cancelled, 0;\n"
    "    @%is_cancelled bra END;\n"
    "    ld.volatile.global.u64 %word, [%order];\n"
    "    ld.volatile.global.u64 %operand, [%order + 8];\n"
    "    ld.volatile.global.u64 %compare, [%order + 16];\n"
    "    ld.volatile.global.u32 %kind, [%order + 32];\n"
    "    ld.volatile.global.u32 %len, [%order + 36];\n"
    "    cvt.u32.u64 %operand32, %operand;\n"
    "    cvt.u32.u64 %compare32, %compare;\n"
    "    setp.eq.u32 %is_add, %kind, 0;\n"
    "    setp.eq.u32 %is_word32, %len, 4;\n"
    "    setp.ge.u32 %is_masked, %kind, 2;\n"
    "    @%is_masked bra MASKED;\n"
    "    @%is_word32 bra WORD32;\n"
    "    @%is_add bra ADD64;\n"
    "    atom.sys.global.cas.b64 %held, [%word], %compare, %operand;\n"
    "    bra DONE;\n"
    "ADD64:\n"
    "    atom.sys.global.add.u64 %held, [%word], %operand;\n"
    "    bra DONE;\n"
    "WORD32:\n"
    "    @%is_add bra ADD32;\n"
    "    atom.sys.global.cas.b32 %held32, [%word], %compare32, %operand32;\n"
    "    bra HELD32;\n"
    "ADD32:\n"
    "    atom.sys.global.add.u32 %held32, [%word], %operand32;\n"
    "HELD32:\n"
    "    cvt.u64.u32 %held, %held32;\n"
    "    bra DONE;\n"
    /* Masked operations: what is to be stored is made of what is held, until nobody has changed the
     * word in between. */
    "MASKED:\n"
    "    ld.volatile.global.u64 %swap_mask, [%order + 56];\n"
    "    ld.volatile.global.u64 %compare_mask, [%order + 64];\n"
    "    setp.eq.u32 %is_fields, %kind, 3;\n"
    "    @%is_word32 bra LOAD32;\n"
    "    ld.volatile.global.u64 %held, [%word];\n"
    "    bra MAKE;\n"
    "LOAD32:\n"
    "    ld.volatile.global.u32 %held32, [%word];\n"
    "    cvt.u64.u32 %held, %held32;\n"
    "MAKE:\n"
    "    @%is_fields bra FIELDS;\n"
    "    xor.b64 %part, %held, %compare;\n"
    "    and.b64 %part, %part, %compare_mask;\n"
    "    setp.ne.u64 %differs, %part, 0;\n"
    "    @%differs bra DONE;\n"
    "    and.b64 %part, %operand, %swap_mask;\n"
    "    not.b64 %made, %swap_mask;\n"
    "    and.b64 %made, %made, %held;\n"
    "    or.b64 %made, %made, %part;\n"
    "    bra SWAP;\n"
    "FIELDS:\n" /* the top bits of the fields are added without their carries */
    "    not.b64 %part, %compare;\n"
    "    and.b64 %made, %held, %part;\n"
    "    and.b64 %part, %operand, %part;\n"
    "    add.u64 %made, %made, %part;\n"
    "    xor.b64 %part, %held, %operand;\n"
    "    and.b64 %part, %part, %compare;\n"
    "    xor.b64 %made, %made, %part;\n"
    "SWAP:\n"
    "    @%is_word32 bra SWAP32;\n"
    "    atom.sys.global.cas.b64 %seen, [%word], %held, %made;\n"
    "    bra SWAPPED;\n"
    "SWAP32:\n"
    "    cvt.u32.u64 %held32, %held;\n"
    "    cvt.u32.u64 %made32, %made;\n"
    "    atom.sys.global.cas.b32 %seen32, [%word], %held32, %made32;\n"
    "    cvt.u64.u32 %seen, %seen32;\n"
    "SWAPPED:\n"
    "    setp.eq.u64 %is_done, %seen, %held;\n"
    "    @%is_done bra DONE;\n"
    "    mov.u64 %held, %seen;\n"
    "    bra MAKE;\n"
    "DONE:\n"
    "    st.volatile.global.u64 [%order + 24], %held;\n"
    "    mov.u32 %verdict, 1;\n"
    "END:\n"
    "    membar.sys;\n"
    "    st.volatile.global.u32 [%order + 48], %verdict;\n"
    "    ret;\n"
    "}\n";

static uint64_t gpu_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits until the kernel has written a word. False: not within so many nanoseconds. */
static bool gpu_wait_word(const uint32_t *word, uint64_t ns)
{
    uint64_t end = gpu_now_ns() + ns;

    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        if (gpu_now_ns() >= end) {
            return false;
        }
    }
    return true;
}

static bool gpu_launch(struct gpu_device *device, struct gpu_atomics *a)
{
    CUdeviceptr addr = (uintptr_t)a->order;
    void *arguments[] = {&addr};

    return gpu_ok(
        device->driver->launch_kernel(a->function, 1, 1, 1, 1, 1, 1, 0, a->stream, arguments, NULL),
        "cuLaunchKernel");
}

/* Launches the kernel with an order that is cancelled. With lazy loading, the driver loads a kernel
 * at its first launch, and then it lets no copy begin until all other kernels have ended. If the
 * first launch were that of an operation, a kernel that waits for this operation would wait for
 * ever. */
static bool gpu_load_kernel(struct gpu_device *device, struct gpu_atomics *a)
{
    a->order->cancelled = 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!gpu_launch(device, a)) {
        return false;
    }
    a->busy = !gpu_wait_word(&a->order->verdict, ROOM_NS);
    return true;
}

struct gpu_atomics *gpu_atomics_new(struct gpu_device *device)
{
    const struct gpu_driver *driver = device->driver;
    struct gpu_atomics *a = g_new0(struct gpu_atomics, 1);

    if (driver->module_load(&a->module, kernel) != CUDA_SUCCESS) {
        g_free(a);
        return NULL;
    }
    if (driver->module_get_function(&a->function, a->module, CUDA_ATOMIC_KERNEL) == CUDA_SUCCESS &&
        driver->stream_create(&a->stream, CU_STREAM_NON_BLOCKING, INT_MIN) == CUDA_SUCCESS &&
        driver->mem_host_alloc((void **)&a->order, sizeof(*a->order),
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) ==
            CUDA_SUCCESS) {
        memset(a->order, 0, sizeof(*a->order));
        if (gpu_load_kernel(device, a)) {
            return a;
        }
    }
    if (a->order) {
        driver->mem_free_host(a->order);
    }
    if (a->stream) {
        driver->stream_destroy(a->stream);
    }
    driver->module_unload(a->module);
    g_free(a);
    return NULL;
}

/* If a kernel that was cancelled may still read the order, module and memory stay with the driver.
 */
void gpu_atomics_free(struct gpu_device *device)
{
    struct gpu_atomics *a = device->atomics;

    if (!a || (a->busy && !__atomic_load_n(&a->order->verdict, __ATOMIC_ACQUIRE))) {
        return;
    }
    device->driver->mem_free_host(a->order);
    device->driver->stream_destroy(a->stream);
    device->driver->module_unload(a->module);
}

/* The outcomes of an operation that was given to the kernel. */
enum gpu_outcome {
    GPU_DONE,
    GPU_NOT_STARTED, /* nothing was done, and the kernel will do nothing */
    GPU_LOST,        /* it may have been done: the kernel started, and the GPU failed */
};

/* Waits for a kernel that has started. False: the GPU failed. */
static bool gpu_wait_verdict(struct gpu_device *device)
{
    struct gpu_atomics *a = device->atomics;
    uint64_t end = gpu_now_ns() + PATIENCE;

    while (!gpu_wait_word(&a->order->verdict, ROOM_NS)) {
        CUresult result = device->driver->stream_query(a->stream);

        if ((result != CUDA_ERROR_NOT_READY && !gpu_ok(result, "an atomic operation")) ||
            gpu_now_ns() >= end) {
            return false;
        }
    }
    return true;
}

/* Lets the kernel do one operation. */
static enum gpu_outcome gpu_run_kernel(struct gpu_device *device, const struct cuda_atomic *order,
                                       uint64_t *held)
{
    struct gpu_atomics *a = device->atomics;

    if (a->busy && !__atomic_load_n(&a->order->verdict, __ATOMIC_ACQUIRE)) {
        return GPU_NOT_STARTED;
    }
    a->busy = false;
    *a->order = *order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!gpu_launch(device, a)) {
        return GPU_NOT_STARTED;
    }
    if (!gpu_wait_word(&a->order->started, ROOM_NS)) {
        __atomic_store_n(&a->order->cancelled, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&a->order->started, __ATOMIC_SEQ_CST)) {
            a->busy = true;
            return GPU_NOT_STARTED;
        }
    }
    if (!gpu_wait_verdict(device)) {
        a->busy = true;
        return GPU_LOST;
    }
    *held = a->order->result;
    return a->order->verdict == CUDA_ATOMIC_DONE ? GPU_DONE : GPU_NOT_STARTED;
}

/* The word as a number; len is 4 or 8. */
static bool gpu_read_word(struct gpu_device *device, uint64_t addr, size_t len, uint64_t *word)
{
    uint32_t half;

    if (len == sizeof(*word)) {
        return gpu_device_read(device, addr, word, len, 0);
    }
    if (!gpu_device_read(device, addr, &half, len, 0)) {
        return false;
    }
    *word = half;
    return true;
}

/* Does an operation by a read and a write. */
static bool gpu_copy_atomic(struct gpu_device *device, uint64_t addr, size_t len,
                            struct host_atomic *op)
{
    uint64_t made;

    if (!gpu_read_word(device, addr, len, &op->held)) {
        return false;
    }
    switch (op->kind) {
    case HOST_ATOMIC_ADD:
        made = op->held + op->operand;
        break;
    case HOST_ATOMIC_CMP_SWAP:
        made = op->held == (len == sizeof(made) ? op->compare : (uint32_t)op->compare) ? op->operand
                                                                                       : op->held;
        break;
    case HOST_ATOMIC_COMPUTE:
    default:
        made = op->compute(op->with, op->held);
        break;
    }
    return made == op->held || gpu_device_write(device, addr, &made, len);
}

/* Makes the kernel's order for an operation. False: the kernel does not know the operation. */
static bool gpu_make_order(const struct host_atomic *op, struct cuda_atomic *order)
{
    order->operand = op->operand;
    order->compare = op->compare;
    switch (op->kind) {
    case HOST_ATOMIC_ADD:
        order->kind = CUDA_ATOMIC_ADD;
        return true;
    case HOST_ATOMIC_CMP_SWAP:
        order->kind = CUDA_ATOMIC_CMP_SWAP;
        return true;
    case HOST_ATOMIC_COMPUTE:
    default:
        if (!op->operands) {
            return false;
        }
        order->operand = op->operands[0];
        order->compare = op->operands[1];
        order->kind = CUDA_ATOMIC_FIELD_ADD;
        if (op->masked == MASKED_CMP_SWAP) {
            order->kind = CUDA_ATOMIC_MASKED_CMP_SWAP;
            order->swap_mask = op->operands[2];
            order->compare_mask = op->operands[3];
        }
        return true;
    }
}

bool gpu_device_atomic(struct gpu_device *device, uint64_t addr, size_t len, struct host_atomic *op)
{
    struct cuda_atomic order = {.word = addr, .len = (uint32_t)len};
    enum gpu_outcome outcome = GPU_NOT_STARTED;

    device->ahead = device->end = 0;
    if (device->atomics && gpu_make_order(op, &order)) {
        outcome = gpu_run_kernel(device, &order, &op->held);
    }
    return outcome == GPU_DONE ||
           (outcome == GPU_NOT_STARTED && gpu_copy_atomic(device, addr, len, op));
}
