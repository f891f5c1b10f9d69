/* SPDX-License-Identifier: BSD-2-Clause */
/* An HCA in this process: the host callbacks below it, the driver's PCI view above it, its creation
 * and its end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/host/held.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/host/mmio.h"
#include "wire/cancel.h"
#include "wire/capture.h"
#include "wire/open.h"
#include "wire/trace_file.h"

/* -- host callbacks of the HCA (model/core/host.h) --------------------------------------------- */

bool local_logs(const struct local_hca *hca, enum hca_log_level level)
{
    return (int)level <= hca->log_level;
}

void local_log(const struct local_hca *hca, enum hca_log_level level, const char *line)
{
    if (local_logs(hca, level)) {
        int state = cancel_disable();

        fprintf(stderr, "%s: %s\n", hca->name, line);
        cancel_restore(state);
    }
}

void local_trace(struct local_hca *hca, const char *event, size_t len)
{
    if (hca->trace) {
        trace_file_event(hca->trace, event, len);
    }
}

static void local_trace_of_model(void *host, const char *event, size_t len)
{
    struct local_hca *hca = host;

    if (event) {
        local_trace(hca, event, len);
    } else if (hca->trace) {
        trace_file_flush(hca->trace);
    }
}

static void local_log_of_model(void *host, enum hca_log_level level, const char *line)
{
    local_log(host, level, line);
}

static void local_unanswered(void *host, uint64_t addr, size_t len)
{
    g_autofree char *line = g_strdup_printf("no memory at 0x%" G_GINT64_MODIFIER
                                            "x (%zu bytes): it was unmapped, or never there",
                                            addr, len);

    local_log(host, HCA_LOG_GUEST_ERROR, line);
}

static bool local_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    if (held_has(addr, len)) {
        memory_take(addr, buf, len);
        return true;
    }
    return memory_read(addr, buf, len, &((struct local_hca *)host)->missed);
}

static bool local_dma_read_far(void *host, uint64_t addr, void *buf, size_t len)
{
    return memory_read_far(addr, buf, len, &((struct local_hca *)host)->missed);
}

static bool local_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    if (held_has(addr, len)) {
        if (len == MEMORY_ENTRY) {
            memory_put_entry(addr, buf);
        } else {
            memory_put(addr, buf, len);
        }
        return true;
    }
    return memory_write(addr, buf, len, &((struct local_hca *)host)->missed);
}

static bool local_dma_atomic(void *host, uint64_t addr, size_t len, struct host_atomic *op)
{
    return memory_atomic(addr, len, op, &((struct local_hca *)host)->missed);
}

static void local_irq(void *host, unsigned vector)
{
    struct local_hca *hca = host;

    __atomic_fetch_or(&hca->irqs.raised, 1u << MIN(vector, 31u), __ATOMIC_RELEASE);
}

static uint64_t local_clock_ns(void *host)
{
    const struct local_hca *hca = host;

    return hca->turn_ns ? hca->turn_ns : local_now_ns(hca);
}

static void local_timer_arm(void *host, uint64_t deadline_ns)
{
    struct local_hca *hca = host;

    __atomic_store_n(&hca->deadline_ns, deadline_ns, __ATOMIC_RELEASE);
    if (deadline_ns != UINT64_MAX) {
        __atomic_store_n(&hca->last_deadline_ns, deadline_ns, __ATOMIC_RELEASE);
    }
}

static void local_wake(void *host)
{
    struct local_hca *hca = host;

    __atomic_store_n(&hca->woken, true, __ATOMIC_RELEASE);
}

const struct hca_host_ops local_ops = {
    .dma_read = local_dma_read,
    .dma_write = local_dma_write,
    .dma_read_far = local_dma_read_far,
    /* Nothing is mapped: if the model used a mapping, its access could not be stopped at a
     * fault. */
    .dma_map = NULL,
    .dma_unmap = NULL,
    .dma_atomic = local_dma_atomic,
    .irq = local_irq,
    .clock_ns = local_clock_ns,
    .timer_arm = local_timer_arm,
    .wake = local_wake,
    .log = local_log_of_model,
    .trace = local_trace_of_model,
    .pages_may_go = true,
};

/* -- creation and end -------------------------------------------------------------------------- */

static uint64_t world_clock_ns(void *opaque)
{
    return ((const struct inproc_world *)opaque)->now_ns;
}

static bool local_open_trace(struct local_hca *hca, const struct local_config *config, GError **err)
{
    struct trace_file_options options = {
        .clock_ns = hca->world ? world_clock_ns : NULL,
        .clock_opaque = hca->world,
        .host = config->capture_name,
        .run = config->capture_run,
    };

    if (!config->trace_file) {
        return true;
    }
    hca->trace = trace_file_open(config->trace_file, &options, err);
    return hca->trace != NULL;
}

static bool local_plug_in(struct local_hca *hca, const struct local_config *config, GError **err)
{
    struct wire_port *port;

    hca->port = config->port ? config->port : wire_open(config->wire, err);
    if (!hca->port) {
        return false;
    }
    if (config->capture) {
        struct wire_capture_options options = {
            .clock_ns = hca->world ? world_clock_ns : NULL,
            .clock_opaque = hca->world,
            .name = config->capture_name,
            .run = config->capture_run,
            .ring = config->capture_ring,
            .comments = config->capture_comments,
            .process = config->capture_process,
        };

        port = wire_capture_new(hca->port, config->capture, &options, err);
        if (!port) {
            wire_close(hca->port);
            return false;
        }
        hca->port = hca->capture = port;
    }
    if (!local_plug_in_faults(hca, config, hca->capture, err)) {
        wire_close(hca->port);
        return false;
    }
    hca->wire_fd = wire_fd(hca->port);
    fw_set_wire(hca->fw, hca->port);
    local_meet_neighbours(hca, config);
    return true;
}

static void local_close_trace(struct local_hca *hca)
{
    if (hca->trace) {
        trace_file_close(hca->trace);
        hca->trace = NULL;
    }
}

/* Allocates an HCA with its own alignment, which g_new() does not provide. */
static struct local_hca *local_hca_alloc(void)
{
    struct local_hca *hca = aligned_alloc(_Alignof(struct local_hca), sizeof(*hca));

    if (!hca) {
        g_error("out of memory for %zu bytes of an HCA", sizeof(*hca));
    }
    return memset(hca, 0, sizeof(*hca));
}

/* -- device memory ----------------------------------------------------------------------------- */

/* The memory is shared, so that it can be mapped more than once, and a child of fork() sees it as
 * it sees the BAR of a card. Its pages come into being when they are used. NULL: the firmware
 * allocates memory itself, and programs cannot map it. */
static void *local_make_device_memory(void)
{
    void *at = mmap(NULL, FW_DEVICE_MEMORY, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static void local_free_device_memory(struct local_hca *hca)
{
    if (hca->device_memory) {
        munmap(hca->device_memory, FW_DEVICE_MEMORY);
        hca->device_memory = NULL;
    }
}

void *local_map_device_memory(struct local_hca *hca, uint64_t bar_offset, size_t size)
{
    uint8_t *memory = hca->device_memory;
    void *at = MAP_FAILED;

    errno = ENOMEM;
    if (memory) {
        /* an old size of 0 makes a second mapping of the same pages (mremap(2)) */
        at = mremap(memory + (bar_offset - FW_DEVICE_MEMORY_BAR), 0, size, MREMAP_MAYMOVE);
    }
    return at == MAP_FAILED ? NULL : at;
}

struct local_hca *local_hca_new(const struct local_config *config, GError **err)
{
    struct local_hca *hca = local_hca_alloc();
    struct fw_config fw = config->fw;
    pthread_mutexattr_t attr;

    memory_catch_faults();
    hca->missed = (struct memory_missed){local_unanswered, hca};
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&hca->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    hca->deadline_ns = UINT64_MAX;
    hca->log_level = config->log_level;
    hca->name = g_strdup(config->name);
    hca->wire_fd = -1;
    if (config->world) {
        local_join(hca, config->world);
    }
    hca->helper.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (hca->helper.wake_fd < 0) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "no descriptor for its helper: %s",
                    g_strerror(errno));
    } else {
        hca->ops = local_ops;
        hca->device_memory = fw.device_memory = local_make_device_memory();
        fw.trace_events = config->trace_file != NULL;
        if (local_open_trace(hca, config, err)) {
            hca->fw = fw_new(&hca->ops, hca, &fw, err);
        }
    }
    if (hca->fw && local_plug_in(hca, config, err)) {
        return hca;
    }
    if (hca->fw) {
        fw_free(hca->fw);
    }
    local_close_trace(hca);
    local_free_device_memory(hca);
    local_leave(hca);
    if (hca->helper.wake_fd >= 0) {
        close(hca->helper.wake_fd);
    }
    g_free(hca->name);
    free(hca);
    return NULL;
}

static void local_unplug(struct local_hca *hca)
{
    if (hca->port) {
        fw_set_wire(hca->fw, NULL);
        local_settle_faults(hca);
        wire_close(hca->port);
        local_end_faults(hca);
        hca->port = hca->capture = NULL;
        hca->wire_fd = -1;
    }
}

void local_hca_end(struct local_hca *hca)
{
    local_stop(hca);
    local_leave(hca);
    __atomic_store_n(&hca->driven, LOCAL_BY_NOBODY, __ATOMIC_RELAXED);
    local_unplug(hca);
    local_leave_neighbours(hca);
    fw_free(hca->fw);
    hca->fw = NULL;
    local_close_trace(hca);
    mmio_forget(local_pci(hca), 0, SIZE_MAX);
    local_free_device_memory(hca);
    close(hca->helper.wake_fd);
    g_free(hca->name);
    hca->name = NULL;
}

void local_hca_free(struct local_hca *hca)
{
    pthread_mutex_destroy(&hca->lock);
    free(hca);
}

struct fw *local_lock_fw(struct local_hca *hca)
{
    enum local_driven driven;

    pthread_mutex_lock(&hca->lock);
    driven = local_driven_by(hca);
    if (driven == LOCAL_BY_NOBODY || driven == LOCAL_BY_PARENT) {
        pthread_mutex_unlock(&hca->lock);
        return NULL;
    }
    return hca->fw;
}

void local_unlock_fw(struct local_hca *hca)
{
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
    local_tell_irq(hca);
}

void local_reset(struct local_hca *hca)
{
    pthread_mutex_lock(&hca->lock);
    fw_reset(hca->fw);
    pthread_mutex_unlock(&hca->lock);
}

void local_remove(struct local_hca *hca)
{
    __atomic_store_n(&hca->driven, LOCAL_BY_NOBODY, __ATOMIC_RELAXED);
    local_helper_stop(hca);
    pthread_mutex_lock(&hca->lock);
    local_unplug(hca);
    fw_reset(hca->fw);
    local_set_polled(hca, false);
    local_timer_arm(hca, UINT64_MAX);
    pthread_mutex_unlock(&hca->lock);
}

void local_before_fork(struct local_hca *hca)
{
    if (hca->helper.started) {
        fork_gate_before(&hca->helper.gate);
    }
}

void local_after_fork(struct local_hca *hca)
{
    if (hca->helper.started) {
        fork_gate_after(&hca->helper.gate);
    }
}

void local_hca_abandon(struct local_hca *hca)
{
    __atomic_store_n(&hca->driven, LOCAL_BY_PARENT, __ATOMIC_RELAXED);
}

bool local_is_ours(struct local_hca *hca)
{
    if (local_driven_by(hca) == LOCAL_BY_PARENT &&
        !__atomic_exchange_n(&hca->said_so, true, __ATOMIC_RELAXED)) {
        fprintf(stderr, "%s: was opened before fork(): it stays with the parent\n", hca->name);
    }
    return local_driven_by(hca) != LOCAL_BY_PARENT;
}

/* -- the driver's view (guest-lib/drv/pci.h) --------------------------------------------------- */

static uint64_t local_pci_mmio_read(void *pci, uint64_t offset, unsigned size)
{
    struct local_hca *hca = pci;
    enum local_driven driven = local_driven_by(hca);
    uint64_t value;

    if (driven == LOCAL_BY_PARENT || driven == LOCAL_BY_NOBODY) {
        return UINT64_MAX; /* as from a function that is absent */
    }
    pthread_mutex_lock(&hca->lock);
    value = fw_mmio_read(hca->fw, offset, size);
    pthread_mutex_unlock(&hca->lock);
    return value;
}

static void local_pci_mmio_write(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct local_hca *hca = pci;

    if (local_driven_by(hca) == LOCAL_BY_NOBODY) {
        return;
    }
    pthread_mutex_lock(&hca->lock);
    local_take_notes(hca); /* the command may destroy the queues that the notes name */
    fw_mmio_write(hca->fw, offset, value, size);
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
}

static void *local_pci_dma_alloc(void *pci, size_t size, uint64_t *bus)
{
    void *ptr = held_alloc(MAX(size, PCI_PAGE));

    if (!ptr) {
        g_error("out of memory for %zu bytes of DMA", size);
    }
    *bus = (uintptr_t)ptr;
    return ptr;
}

static void local_pci_dma_free(void *pci, void *ptr, size_t size)
{
    held_free(ptr, MAX(size, PCI_PAGE));
}

/* The driver waits for a command: the HCA works on the command here. */
static bool local_pci_wait(void *pci, uint64_t timeout_ns)
{
    struct local_hca *hca = pci;
    bool did;

    if (hca->world) {
        return inproc_step(hca->world, hca->world->now_ns + timeout_ns);
    }
    pthread_mutex_lock(&hca->lock);
    did = local_turn(hca, local_monotonic_ns(), true);
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
    if (!did) {
        struct timespec pause = {.tv_nsec = 50000};

        nanosleep(&pause, NULL);
    }
    return did;
}

static uint64_t local_pci_now(void *pci)
{
    return local_now_ns(pci);
}

static const struct pci_ops local_pci_ops = {
    .mmio_read = local_pci_mmio_read,
    .mmio_write = local_pci_mmio_write,
    .dma_alloc = local_pci_dma_alloc,
    .dma_free = local_pci_dma_free,
    .wait = local_pci_wait,
    .now = local_pci_now,
};

struct pci_dev local_pci(struct local_hca *hca)
{
    return (struct pci_dev){.ops = &local_pci_ops, .pci = hca};
}
