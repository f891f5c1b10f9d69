/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the GPUs' memory that is claimed, and the accesses to it.
 *
 * The table has the driver's allocations, which do not overlap, ordered by address. A claim holds
 * each allocation that its range touches. If an allocation is freed under its claims, and its
 * addresses are used again, the claims keep the old entry, which is not in the table any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <glib.h>
#include "guest-lib/host/gpu_internal.h"
#include "wire/cancel.h"

uint64_t gpu_lowest, gpu_end;
unsigned gpu_unsettled;

struct gpu_claim {
    GPtrArray *memories; /* struct gpu_memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *table;   /* struct gpu_memory, by start */
static GPtrArray *devices; /* struct gpu_device */
/* The bytes that a message has left, from the thread's next read on; 0: nothing is announced. */
static __thread size_t expected __attribute__((tls_model("initial-exec")));
static bool in_child; /* this process is a child of the table's */

/* Takes the lock. In a child of fork() another thread of the parent may have held it, so the child
 * must not even try. */
static bool gpu_lock(int *state)
{
    if (__atomic_load_n(&in_child, __ATOMIC_RELAXED)) {
        return false;
    }
    *state = cancel_disable();
    pthread_mutex_lock(&lock);
    return true;
}

static void gpu_unlock(int state)
{
    pthread_mutex_unlock(&lock);
    cancel_restore(state);
}

/* A child has no use for the GPUs that its parent reaches. If the parent reaches none, the child
 * may load a driver of its own, and the lock must be free, whoever held it in the parent. */
static void gpu_after_fork(void)
{
    if (table) {
        __atomic_store_n(&in_child, true, __ATOMIC_RELAXED);
    } else {
        pthread_mutex_init(&lock, NULL);
    }
}

__attribute__((constructor)) static void gpu_watch_forks(void)
{
    pthread_atfork(NULL, NULL, gpu_after_fork);
}

/* -- the table, under the lock ----------------------------------------------------------------- */

/* The index of the first allocation that ends after the address. */
static guint gpu_index(uint64_t addr)
{
    guint low = 0, high = table ? table->len : 0;

    while (low < high) {
        guint middle = (low + high) / 2;
        const struct gpu_memory *memory = table->pdata[middle];

        if (memory->start + memory->len > addr) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static struct gpu_memory *gpu_find(uint64_t addr)
{
    guint at = gpu_index(addr);
    struct gpu_memory *memory = table && at < table->len ? table->pdata[at] : NULL;

    return memory && addr >= memory->start ? memory : NULL;
}

static void gpu_note_bounds(void)
{
    const struct gpu_memory *last = table->len ? table->pdata[table->len - 1] : NULL;

    __atomic_store_n(&gpu_lowest, last ? ((struct gpu_memory *)table->pdata[0])->start : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&gpu_end, last ? last->start + last->len : 0, __ATOMIC_RELAXED);
}

static void gpu_device_drop(struct gpu_device *device)
{
    if (device && --device->memories == 0) {
        g_ptr_array_remove_fast(devices, device);
        gpu_device_free(device);
    }
}

static void gpu_memory_drop(struct gpu_memory *memory)
{
    if (--memory->claims) {
        return;
    }
    if (g_ptr_array_remove(table, memory)) {
        gpu_note_bounds();
    }
    gpu_device_drop(memory->device);
    g_free(memory);
}

/* -- claims ------------------------------------------------------------------------------------ */

static unsigned long long gpu_id_of(const struct gpu_driver *driver, uint64_t addr)
{
    unsigned long long id = 0;

    return driver->pointer_get_attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, addr) == CUDA_SUCCESS
               ? id
               : 0;
}

/* Whether only copies reach an address. */
static bool gpu_is_behind(const struct gpu_driver *driver, uint64_t addr)
{
    unsigned type = 0;
    int managed = 0, ordinal = 0, concurrent = 0;

    if (driver->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr) !=
            CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE) {
        return false;
    }
    if (driver->pointer_get_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, addr) !=
            CUDA_SUCCESS ||
        !managed) {
        return true;
    }
    /* The CPU reaches managed memory while kernels run, unless the device says otherwise. */
    return driver->pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, addr) ==
               CUDA_SUCCESS &&
           driver->device_get_attribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                        ordinal) == CUDA_SUCCESS &&
           !concurrent;
}

/* The context through which a device's memory is reached: the device's primary context, if the
 * memory is that context's or no context's. It is held, so that it cannot be destroyed. Otherwise
 * the memory's own context. */
static bool gpu_choose_context(const struct gpu_driver *driver, uint64_t addr, int ordinal,
                               CUcontext *ctx, bool *retained)
{
    CUcontext of = NULL, primary = NULL;
    unsigned flags;
    int active = 0;

    if (driver->pointer_get_attribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, addr) != CUDA_SUCCESS) {
        of = NULL;
    }
    *retained = driver->primary_get_state(ordinal, &flags, &active) == CUDA_SUCCESS && active &&
                driver->primary_retain(&primary, ordinal) == CUDA_SUCCESS;
    if (*retained && of && of != primary) {
        driver->primary_release(ordinal);
        *retained = false;
    }
    if (!*retained && !of) {
        driver->ctx_get_current(&of); /* VMM memory, made in a context of the program's own */
    }
    *ctx = *retained ? primary : of;
    return *ctx != NULL;
}

static struct gpu_device *gpu_device_for(const struct gpu_driver *driver, uint64_t addr)
{
    struct gpu_device *device;
    int ordinal = 0;
    CUcontext ctx;
    bool retained;

    if (!gpu_ok(driver->pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, addr),
                "cuPointerGetAttribute") ||
        !gpu_choose_context(driver, addr, ordinal, &ctx, &retained)) {
        return NULL;
    }
    for (guint i = 0; i < devices->len; i++) {
        device = devices->pdata[i];
        if (device->ctx == ctx && device->ordinal == ordinal && !device->broken) {
            if (retained) {
                driver->primary_release(ordinal); /* it is held already */
            }
            return device;
        }
    }
    device = gpu_device_new(driver, ordinal, ctx, retained);
    if (device) {
        g_ptr_array_add(devices, device);
    }
    return device;
}

/* Adds the driver's allocation at an address to the table. NULL: there is none. */
static struct gpu_memory *gpu_memory_new(const struct gpu_driver *driver, uint64_t addr)
{
    CUdeviceptr start = 0;
    size_t len = 0;
    struct gpu_memory *memory;
    struct gpu_device *device;
    guint at;

    if (!gpu_ok(driver->mem_get_address_range(&start, &len, addr), "cuMemGetAddressRange")) {
        return NULL;
    }
    device = gpu_device_for(driver, addr);
    if (!device) {
        return NULL;
    }
    /* The allocations that the table has there were freed. */
    for (at = gpu_index(start); at < table->len; at = gpu_index(start)) {
        struct gpu_memory *old = table->pdata[at];

        if (old->start >= start + len) {
            break;
        }
        old->gone = true;
        g_ptr_array_remove_index(table, at);
    }
    memory = g_new0(struct gpu_memory, 1);
    *memory = (struct gpu_memory){
        .start = start, .len = len, .id = gpu_id_of(driver, addr), .device = device};
    device->memories++;
    g_ptr_array_insert(table, (gint)at, memory);
    gpu_note_bounds();
    return memory;
}

/* Whether the allocation is there, and is the one that was claimed. */
static bool gpu_is_there(struct gpu_memory *memory)
{
    if (!memory->gone && memory->id &&
        gpu_id_of(memory->device->driver, memory->start) != memory->id) {
        memory->gone = true;
    }
    return !memory->gone && !memory->device->broken;
}

static struct gpu_memory *gpu_claim_one(const struct gpu_driver *driver, uint64_t addr)
{
    struct gpu_memory *memory = gpu_find(addr);

    if (!memory || !gpu_is_there(memory)) {
        memory = gpu_is_behind(driver, addr) ? gpu_memory_new(driver, addr) : NULL;
    }
    if (memory) {
        memory->claims++;
    }
    return memory;
}

static int gpu_claim_all(const struct gpu_driver *driver, uint64_t addr, uint64_t end,
                         struct gpu_claim *claim)
{
    while (addr < end) {
        struct gpu_memory *memory = gpu_claim_one(driver, addr);

        if (!memory) {
            return EFAULT;
        }
        g_ptr_array_add(claim->memories, memory);
        addr = memory->start + memory->len;
    }
    return 0;
}

static void gpu_claim_free(struct gpu_claim *claim)
{
    for (guint i = 0; i < claim->memories->len; i++) {
        gpu_memory_drop(claim->memories->pdata[i]);
    }
    g_ptr_array_free(claim->memories, TRUE);
    g_free(claim);
}

static int gpu_claim_locked(uint64_t addr, size_t len, struct gpu_claim **claim)
{
    const struct gpu_driver *driver = gpu_driver_find();
    int err;

    if (!driver || !len || !gpu_is_behind(driver, addr)) {
        return 0;
    }
    if (!table) {
        table = g_ptr_array_new();
        devices = g_ptr_array_new();
    }
    *claim = g_new0(struct gpu_claim, 1);
    (*claim)->memories = g_ptr_array_new();
    err = gpu_claim_all(driver, addr, addr + len, *claim);
    if (err) {
        gpu_claim_free(*claim);
        *claim = NULL;
    }
    return err;
}

int gpu_claim_range(const void *addr, size_t len, struct gpu_claim **claim)
{
    int state, err;

    *claim = NULL;
    if (!gpu_lock(&state)) {
        return 0;
    }
    err = gpu_claim_locked((uintptr_t)addr, len, claim);
    gpu_unlock(state);
    return err;
}

bool gpu_exists(uint64_t number)
{
    const struct gpu_driver *driver;
    int state, value;
    bool exists;

    if (number > INT_MAX || !gpu_lock(&state)) {
        return false;
    }
    driver = gpu_driver_find();
    exists = driver &&
             driver->device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                          (CUdevice)number) == CUDA_SUCCESS;
    gpu_unlock(state);
    return exists;
}

bool gpu_is_of(const struct gpu_claim *claim, uint64_t number)
{
    bool is = true;
    int state;

    if (!gpu_lock(&state)) {
        return false;
    }
    for (guint i = 0; i < claim->memories->len; i++) {
        const struct gpu_memory *memory = claim->memories->pdata[i];

        is &= (uint64_t)memory->device->ordinal == number;
    }
    gpu_unlock(state);
    return is;
}

void gpu_release(struct gpu_claim *claim)
{
    int state;

    if (claim && gpu_lock(&state)) {
        gpu_claim_free(claim);
        gpu_unlock(state);
    }
}

int gpu_dmabuf(int fd, uint64_t *addr, size_t *size)
{
    const struct gpu_driver *driver;
    unsigned long long at = 0;
    int state, err = EOPNOTSUPP;

    if (!gpu_lock(&state)) {
        return err;
    }
    driver = gpu_driver_find();
    if (driver && driver->find_dmabuf && !driver->find_dmabuf(fd, &at, size)) {
        *addr = at;
        err = 0;
    }
    gpu_unlock(state);
    return err;
}

/* -- accesses ---------------------------------------------------------------------------------- */

bool gpu_has_claimed(uint64_t addr)
{
    int state;
    bool has;

    if (!gpu_lock(&state)) {
        return false;
    }
    has = gpu_find(addr) != NULL;
    gpu_unlock(state);
    return has;
}

/* Waits for the writes to all GPUs but one. */
static bool gpu_settle_others(const struct gpu_device *but)
{
    bool ok = true;

    for (guint i = 0; gpu_unsettled && i < devices->len; i++) {
        struct gpu_device *device = devices->pdata[i];

        if (device == but || !device->unsettled) {
            continue;
        }
        if (!gpu_enter(device)) {
            ok = false;
            continue;
        }
        ok &= gpu_device_settle(device);
        gpu_leave(device);
    }
    return ok;
}

/* One access, to the part of a range that is in one allocation. */
enum gpu_access {
    GPU_READ,
    GPU_WRITE,
    GPU_ATOMIC
};

static bool gpu_do(enum gpu_access access, uint64_t addr, void *buf, size_t len,
                   struct host_atomic *op)
{
    struct gpu_memory *memory = gpu_find(addr);
    bool ok = false;

    if (!memory || !gpu_is_there(memory) || !gpu_enter(memory->device)) {
        return false;
    }
    switch (access) {
    case GPU_READ:
        ok = gpu_device_read(memory->device, addr, buf, len,
                             MIN(expected, memory->start + memory->len - addr));
        expected = 0;
        break;
    case GPU_WRITE:
        ok = gpu_device_write(memory->device, addr, buf, len);
        if (ok && addr + len == memory->start + memory->len) {
            /* The next byte is of another allocation, and the driver makes no copy of both. */
            ok = gpu_device_submit(memory->device);
        }
        break;
    case GPU_ATOMIC:
        ok = gpu_device_atomic(memory->device, addr, len, op);
        break;
    }
    gpu_leave(memory->device);
    return ok;
}

/* Splits a range at the ends of allocations. */
static bool gpu_do_all(enum gpu_access access, uint64_t addr, uint8_t *buf, size_t len)
{
    while (len) {
        const struct gpu_memory *memory = gpu_find(addr);
        size_t part = memory ? MIN(len, memory->start + memory->len - addr) : 0;

        if (!part || !gpu_do(access, addr, buf, part, NULL)) {
            return false;
        }
        addr += part;
        buf += part;
        len -= part;
    }
    return true;
}

bool gpu_read(uint64_t addr, void *buf, size_t len)
{
    int state;
    bool ok;

    if (!gpu_lock(&state)) {
        return false;
    }
    ok = gpu_do_all(GPU_READ, addr, buf, len);
    gpu_unlock(state);
    return ok;
}

bool gpu_write(uint64_t addr, const void *buf, size_t len)
{
    const struct gpu_memory *memory;
    int state;
    bool ok;

    if (!gpu_lock(&state)) {
        return false;
    }
    memory = gpu_find(addr);
    ok = (!memory || gpu_settle_others(memory->device)) &&
         gpu_do_all(GPU_WRITE, addr, (uint8_t *)(uintptr_t)buf, len);
    gpu_unlock(state);
    return ok;
}

bool gpu_atomic(uint64_t addr, size_t len, struct host_atomic *op)
{
    int state;
    bool ok;

    if (addr % len || !gpu_lock(&state)) {
        return false;
    }
    ok = gpu_settle_others(NULL) && gpu_do(GPU_ATOMIC, addr, NULL, len, op);
    gpu_unlock(state);
    return ok;
}

bool gpu_settle_writes(void)
{
    int state;
    bool ok;

    if (!gpu_lock(&state)) {
        return false;
    }
    ok = gpu_settle_others(NULL);
    gpu_unlock(state);
    return ok;
}

void gpu_expect(size_t len)
{
    expected = len;
}

void gpu_end_turn(void)
{
    int state;

    if (!__atomic_load_n(&gpu_end, __ATOMIC_RELAXED) || !gpu_lock(&state)) {
        return;
    }
    for (guint i = 0; i < devices->len; i++) {
        struct gpu_device *device = devices->pdata[i];

        device->ahead = device->end = 0;
        if (device->held && gpu_enter(device)) {
            gpu_device_submit(device);
            gpu_leave(device);
        }
    }
    gpu_unlock(state);
}
