/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between the host and a GPU, on a stream of their own.
 *
 * Data passes through pinned memory, which the driver copies without a detour. Writes fill one
 * buffer from the front and are not waited for until the buffer is full, or gpu_device_settle() is
 * called. Long writes that lie one behind the other, the packets of a message, become one copy:
 * they are held until something else is to be done, or the turn ends. A read waits for its copy,
 * and so for the writes before it.
 *
 * A read that is a part of a known message copies up to READ_BYTES of the message at once, and the
 * next parts of the message are served from there. A write to that range ends that.
 */
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <glib.h>
#include "guest-lib/host/gpu_internal.h"

#define READ_BYTES  (64u << 10)
#define WRITE_BYTES (1u << 20)
#define SPINS       1000 /* looks at the stream before the thread yields its processor each time */
#define PATIENCE    10   /* seconds after which a copy is given up */
#define HELD_BYTES                                                                                 \
    (64u << 10)   /* bytes that are submitted even if more of their message may come               \
                   */
#define SHORT 64u /* bytes of a write that is submitted at once: a CQE, an EQE, a counter */
#define LAST  8u  /* bytes of a write that arrive after all before them (model/core/host.h) */

static void gpu_device_note_settled(struct gpu_device *device)
{
    if (device->unsettled) {
        device->unsettled = false;
        __atomic_sub_fetch(&gpu_unsettled, 1, __ATOMIC_RELAXED);
    }
    device->out_used = 0;
    device->held = 0;
}

/* The driver failed: its error stays for all later calls, or the GPU does not end a copy. */
static bool gpu_device_break(struct gpu_device *device)
{
    device->broken = true;
    device->ahead = device->end = 0;
    gpu_device_note_settled(device);
    return false;
}

/* Whether the context is still there. The driver accepts the handle of a context that was
 * destroyed, and then uses memory that it has freed. The context's pinned memory is not known any
 * more then. */
static bool gpu_has_context(const struct gpu_device *device)
{
    CUcontext ctx = NULL;

    return !device->in || (gpu_ok(device->driver->pointer_get_attribute(
                                      &ctx, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t)device->in),
                                  "the GPU's context is gone: cuPointerGetAttribute") &&
                           ctx == device->ctx);
}

bool gpu_enter(struct gpu_device *device)
{
    if (device->broken) {
        return false;
    }
    if (!gpu_has_context(device) ||
        !gpu_ok(device->driver->ctx_push(device->ctx), "cuCtxPushCurrent")) {
        return gpu_device_break(device);
    }
    device->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    device->driver->exchange_capture_mode(&device->mode);
    return true;
}

void gpu_leave(struct gpu_device *device)
{
    CUcontext ctx;

    device->driver->exchange_capture_mode(&device->mode);
    device->driver->ctx_pop(&ctx);
}

struct gpu_device *gpu_device_new(const struct gpu_driver *driver, int ordinal, CUcontext ctx,
                                  bool retained)
{
    struct gpu_device *device = g_new0(struct gpu_device, 1);
    bool entered, ok;

    *device =
        (struct gpu_device){.driver = driver, .ordinal = ordinal, .ctx = ctx, .retained = retained};
    entered = gpu_enter(device);
    ok =
        entered &&
        gpu_ok(driver->stream_create(&device->stream, CU_STREAM_NON_BLOCKING, INT_MIN),
               "cuStreamCreateWithPriority") &&
        gpu_ok(driver->mem_host_alloc((void **)&device->in, READ_BYTES, CU_MEMHOSTALLOC_PORTABLE),
               "cuMemHostAlloc") &&
        gpu_ok(driver->mem_host_alloc((void **)&device->out, WRITE_BYTES, CU_MEMHOSTALLOC_PORTABLE),
               "cuMemHostAlloc");
    if (ok) {
        device->atomics = gpu_atomics_new(device);
    }
    if (entered) {
        gpu_leave(device);
    }
    if (!ok) {
        gpu_device_free(device);
        return NULL;
    }
    return device;
}

void gpu_device_free(struct gpu_device *device)
{
    const struct gpu_driver *driver = device->driver;

    if (gpu_enter(device)) {
        if (device->stream) { /* NULL is the program's default stream */
            gpu_device_settle(device);
        }
        gpu_atomics_free(device);
        if (device->out) {
            driver->mem_free_host(device->out);
        }
        if (device->in) {
            driver->mem_free_host(device->in);
        }
        if (device->stream) {
            driver->stream_destroy(device->stream);
        }
        gpu_leave(device);
    }
    gpu_device_note_settled(device);
    if (device->retained) {
        driver->primary_release(device->ordinal);
    }
    g_free(device->atomics);
    g_free(device);
}

static bool gpu_is_late(time_t since)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > since + PATIENCE;
}

bool gpu_device_settle(struct gpu_device *device)
{
    struct timespec since = {0};
    CUresult result;

    if (!gpu_device_submit(device)) {
        device->lost = false; /* this call reports it */
        return false;
    }
    for (unsigned spins = 0;
         (result = device->driver->stream_query(device->stream)) == CUDA_ERROR_NOT_READY; spins++) {
        if (spins == SPINS) {
            clock_gettime(CLOCK_MONOTONIC, &since);
        } else if (spins > SPINS) {
            sched_yield();
            if (gpu_is_late(since.tv_sec)) {
                break;
            }
        }
    }
    if (!gpu_ok(result, "the copies to and from the GPU")) {
        return gpu_device_break(device);
    }
    gpu_device_note_settled(device);
    if (device->lost) { /* the end of a turn submits, but reports nothing */
        device->lost = false;
        return false;
    }
    return true;
}

/* -- reads ------------------------------------------------------------------------------------- */

/* Copies a range to `in`. */
static bool gpu_fetch(struct gpu_device *device, uint64_t addr, size_t len)
{
    device->ahead = device->end = 0;
    if (!gpu_device_submit(device) ||
        !gpu_ok(device->driver->copy_from(device->in, addr, len, device->stream),
                "cuMemcpyDtoHAsync")) {
        return false;
    }
    return gpu_device_settle(device);
}

/* Reads a part of a message that has so many bytes left. Parts of one message come one behind the
 * other. Any other address is another message's, whose data may have been written since. */
static bool gpu_read_part(struct gpu_device *device, uint64_t addr, uint8_t *buf, size_t len,
                          size_t left)
{
    size_t most = MIN(left, READ_BYTES);

    if (addr + left != device->message_end || addr <= device->part) {
        device->ahead = device->end = 0;
    }
    device->part = addr;
    device->message_end = addr + left;
    if (addr >= device->ahead && addr < device->end && len <= device->end - addr) {
        memcpy(buf, device->in + (addr - device->ahead), len);
        return true;
    }
    if (!gpu_fetch(device, addr, most)) {
        return false;
    }
    device->ahead = addr;
    device->end = addr + most;
    memcpy(buf, device->in, len);
    return true;
}

bool gpu_device_read(struct gpu_device *device, uint64_t addr, void *buf, size_t len, size_t left)
{
    uint8_t *to = buf;

    if (left >= len && len <= READ_BYTES) {
        return gpu_read_part(device, addr, buf, len, left);
    }
    for (size_t done = 0; done < len;) {
        size_t part = MIN(len - done, READ_BYTES);

        if (!gpu_fetch(device, addr + done, part)) {
            return false;
        }
        memcpy(to + done, device->in, part);
        done += part;
    }
    return true;
}

/* -- writes ------------------------------------------------------------------------------------ */

static bool gpu_copy_to(struct gpu_device *device, uint64_t addr, const uint8_t *from, size_t len)
{
    return gpu_ok(device->driver->copy_to(addr, from, len, device->stream), "cuMemcpyHtoDAsync");
}

/* The last bytes are a copy of their own, because the copy engine may write the bytes of one copy
 * in any order. */
bool gpu_device_submit(struct gpu_device *device)
{
    size_t len = device->held, last = MIN(len, LAST), before = len - last;
    const uint8_t *from = device->out + device->out_used - len;

    device->held = 0;
    if ((before && !gpu_copy_to(device, device->held_for, from, before)) ||
        (last && !gpu_copy_to(device, device->held_for + before, from + before, last))) {
        device->lost = true;
        return false;
    }
    return true;
}

static void gpu_note_unsettled(struct gpu_device *device)
{
    if (!device->unsettled) {
        device->unsettled = true;
        __atomic_add_fetch(&gpu_unsettled, 1, __ATOMIC_RELAXED);
    }
}

/* Whether the driver would take a copy. A write that is held would learn that too late. */
static bool gpu_takes_copies(struct gpu_device *device)
{
    CUresult result = device->driver->stream_query(device->stream);

    return result == CUDA_ERROR_NOT_READY || gpu_ok(result, "the copies to and from the GPU") ||
           gpu_device_break(device);
}

/* Adds bytes to those that are held, if they lie behind them; else those are submitted first. */
static bool gpu_write_part(struct gpu_device *device, uint64_t addr, const uint8_t *buf, size_t len)
{
    bool follows = device->held && addr == device->held_for + device->held;

    if ((!follows && !gpu_device_submit(device)) ||
        (WRITE_BYTES - device->out_used < len && !gpu_device_settle(device))) {
        return false;
    }
    if (len > SHORT && !device->held && !gpu_takes_copies(device)) {
        return false;
    }
    gpu_note_unsettled(device);
    memcpy(device->out + device->out_used, buf, len);
    device->out_used += len;
    device->held_for = device->held ? device->held_for : addr;
    device->held += len;
    return (len > SHORT && device->held < HELD_BYTES) || gpu_device_submit(device);
}

bool gpu_device_write(struct gpu_device *device, uint64_t addr, const void *buf, size_t len)
{
    const uint8_t *from = buf;

    if (addr < device->end && addr + len > device->ahead) {
        device->ahead = device->end = 0;
    }
    for (size_t done = 0; done < len;) {
        size_t part = MIN(len - done, WRITE_BYTES);

        if (!gpu_write_part(device, addr + done, from + done, part)) {
            return false;
        }
        done += part;
    }
    return true;
}
