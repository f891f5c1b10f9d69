/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies, memsets and single stores of the stand-in GPU.
 *
 * The addresses are checked by the call, and looked up again when the stream comes to it. If they
 * are gone by then, the device faults (CUDA_ERROR_ILLEGAL_ADDRESS).
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define CHUNK 256   /* bytes that are copied at once, from the last to the first */
#define PAUSE 50000 /* ns in a copy that tests slow down */

/* -- what the thread does ---------------------------------------------------------------------- */

/* A word is loaded and stored at once. */
static bool copy_word(uint8_t *to, const uint8_t *from, size_t len)
{
    bool aligned = ((uintptr_t)to | (uintptr_t)from) % (len ? len : 1) == 0;

    if (len == sizeof(uint32_t) && aligned) {
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);

        __atomic_store_n((uint32_t *)(void *)to, word, __ATOMIC_RELEASE);
        return true;
    }
    if (len == sizeof(uint64_t) && aligned) {
        uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);

        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

/* Both may overlap only if they are equal. slow: after the last bytes, the rest takes some time. */
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t len, bool slow)
{
    if (copy_word(to, from, len)) {
        return;
    }
    while (len) {
        size_t part = (len - 1) % CHUNK + 1;

        len -= part;
        memmove(to + len, from + len, part);
        if (slow && len) {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
            slow = false;
        }
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Where one side of a copy is: what the device knows, or any address of the host. */
static bool copy_find(CUdeviceptr addr, unsigned access, struct standin_block **block, uint8_t **at,
                      size_t *len)
{
    *block = standin_memory_at(addr, access, at, len);
    if (*block) {
        return true;
    }
    *at = (uint8_t *)(uintptr_t)addr;
    return false;
}

static void copy_release(struct standin_block *block)
{
    if (block) {
        standin_block_drop(block);
    }
}

bool standin_copy_run(const struct standin_op *op)
{
    for (size_t done = 0; done < op->copy.len;) {
        struct standin_block *to_block = NULL, *from_block = NULL;
        uint8_t *to, *from;
        size_t len = op->copy.len - done;
        bool ok = (copy_find(op->copy.to + done, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, &to_block, &to,
                             &len) ||
                   op->copy.host_to) &&
                  (copy_find(op->copy.from + done, CU_MEM_ACCESS_FLAGS_PROT_READ, &from_block,
                             &from, &len) ||
                   op->copy.host_from);

        if (ok) {
            bool slow = standin.delay_ns > 0;

            pthread_mutex_unlock(&standin.lock);
            copy_bytes(to, from, len, slow);
            pthread_mutex_lock(&standin.lock);
        }
        copy_release(to_block);
        copy_release(from_block);
        if (!ok) {
            return false;
        }
        done += len;
    }
    return true;
}

static void copy_fill(uint8_t *to, uint64_t value, size_t size, size_t len)
{
    if (len == size && copy_word(to, (const uint8_t *)&value, len)) {
        return;
    }
    for (size_t i = 0; i < len; i += size) {
        memcpy(to + i, &value, size);
    }
}

bool standin_fill_run(const struct standin_op *op)
{
    size_t all = op->fill.size * op->fill.count;

    for (size_t done = 0; done < all;) {
        uint8_t *to;
        size_t len = all - done;
        struct standin_block *block =
            standin_memory_at(op->fill.to + done, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, &to, &len);

        if (!block) {
            return false;
        }
        pthread_mutex_unlock(&standin.lock);
        copy_fill(to, op->fill.value, op->fill.size, len);
        pthread_mutex_lock(&standin.lock);
        standin_block_drop(block);
        done += len;
    }
    return true;
}

/* -- calls ------------------------------------------------------------------------------------- */

/* The kinds of memory that a call names as the two sides of a copy. */
enum copy_sides {
    COPY_OF_DEVICE = 0, /* both are memory that the device knows */
    COPY_TO_HOST = 1,
    COPY_FROM_HOST = 2,
    COPY_OF_ANY = 4, /* nothing: the addresses say it */
};

/* Whether an address may be what the call says. *pageable: it is memory of the host that the device
 * does not know. */
static bool copy_is_allowed(CUdeviceptr addr, size_t len, unsigned access, bool host, bool any,
                            bool *pageable)
{
    const struct standin_range *range = standin_map_overlap(&standin_memory, addr, len);

    *pageable = !range && (host || any);
    if (*pageable) {
        return standin_is_mapped(addr, len);
    }
    if (host && range && !standin_is_reached(range)) {
        return false;
    }
    return standin_may_access(addr, len, access);
}

/* Begins a call that gives work to a stream of the current context, like standin_begin_in(). */
static CUresult copy_begin_in(CUstream handle, struct standin_context **context,
                              struct standin_stream **stream)
{
    CUresult result = standin_begin_in(context);

    if (result) {
        return result;
    }
    *stream = standin_stream_find(*context, handle);
    return *stream ? CUDA_SUCCESS : standin_end(CUDA_ERROR_INVALID_HANDLE);
}

/* wait: the call returns after the copy. It does so as well if a side is pageable memory, which
 * may change as soon as the call returns. */
static CUresult copy_begin(CUdeviceptr to, CUdeviceptr from, size_t len, enum copy_sides sides,
                           CUstream handle, bool wait)
{
    struct standin_context *context;
    struct standin_stream *stream;
    struct standin_op op = {.kind = STANDIN_OP_COPY, .copy = {.to = to, .from = from, .len = len}};
    uint64_t seq;
    CUresult result = copy_begin_in(handle, &context, &stream);

    if (result) {
        return result;
    }
    if (!len) {
        return standin_end(CUDA_SUCCESS);
    }
    if (!copy_is_allowed(to, len, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, sides & COPY_TO_HOST,
                         sides & COPY_OF_ANY, &op.copy.host_to) ||
        !copy_is_allowed(from, len, CU_MEM_ACCESS_FLAGS_PROT_READ, sides & COPY_FROM_HOST,
                         sides & COPY_OF_ANY, &op.copy.host_from)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    result = standin_stream_put(stream, &op, &seq);
    if (!result && (wait || op.copy.host_to || op.copy.host_from)) {
        result = standin_stream_wait(stream, seq);
    }
    return standin_end(result);
}

#define HOST(ptr) ((CUdeviceptr)(uintptr_t)(ptr))

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t len)
{
    return copy_begin(to, from, len, COPY_OF_ANY, NULL, true);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t len)
{
    return copy_begin(to, HOST(from), len, COPY_FROM_HOST, NULL, true);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t len)
{
    return copy_begin(HOST(to), from, len, COPY_TO_HOST, NULL, true);
}

/* Does not wait: both sides are the device's. */
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t len)
{
    return copy_begin(to, from, len, COPY_OF_DEVICE, NULL, false);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t len, CUstream stream)
{
    return copy_begin(to, from, len, COPY_OF_ANY, stream, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t len, CUstream stream)
{
    return copy_begin(to, HOST(from), len, COPY_FROM_HOST, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t len, CUstream stream)
{
    return copy_begin(HOST(to), from, len, COPY_TO_HOST, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t len, CUstream stream)
{
    return copy_begin(to, from, len, COPY_OF_DEVICE, stream, false);
}

/* Stores count values of size bytes one behind the other. */
static CUresult copy_begin_fill(CUdeviceptr to, uint64_t value, size_t size, size_t count,
                                CUstream handle)
{
    struct standin_context *context;
    struct standin_stream *stream;
    struct standin_op op = {
        .kind = STANDIN_OP_FILL,
        .fill = {.to = to, .value = value, .size = size, .count = count},
    };
    CUresult result = copy_begin_in(handle, &context, &stream);

    if (result) {
        return result;
    }
    if (!count) {
        return standin_end(CUDA_SUCCESS);
    }
    if (to % size || count > SIZE_MAX / size ||
        !standin_may_access(to, size * count, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    return standin_end(standin_stream_put(stream, &op, NULL));
}

/* Memsets of device memory do not wait, even without "Async". */
#define COPY_MEMSET(bits, type)                                                                    \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                        \
    {                                                                                              \
        return copy_begin_fill(to, value, sizeof(value), count, NULL);                             \
    }                                                                                              \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream)     \
    {                                                                                              \
        return copy_begin_fill(to, value, sizeof(value), count, stream);                           \
    }
COPY_MEMSET(8, unsigned char)
COPY_MEMSET(16, unsigned short)
COPY_MEMSET(32, unsigned)

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, uint32_t value, unsigned flags)
{
    return flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
               ? CUDA_ERROR_INVALID_VALUE
               : copy_begin_fill(addr, value, sizeof(value), 1, stream);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned flags)
{
    return flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
               ? CUDA_ERROR_INVALID_VALUE
               : copy_begin_fill(addr, value, sizeof(value), 1, stream);
}
