/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements fake_host.h: the host that unit tests give an HCA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/unit/fake_host.h"

#define HOLE 8

static uint8_t *ram_at(struct fake_host *host, uint64_t addr, size_t len)
{
    if (addr < FAKE_HOST_BASE || addr - FAKE_HOST_BASE > FAKE_HOST_SIZE ||
        len > FAKE_HOST_SIZE - (addr - FAKE_HOST_BASE)) {
        return NULL;
    }
    return host->ram + (addr - FAKE_HOST_BASE);
}

/* As the device sees it. */
static uint8_t *bus_at(struct fake_host *host, uint64_t addr, size_t len)
{
    bool in_hole = addr < host->hole + HOLE && host->hole < addr + len;

    return in_hole ? NULL : ram_at(host, addr, len);
}

static void hook(struct fake_host *host, enum fake_call call)
{
    if (host->hook) {
        host->hook(host->hook_opaque, call);
    }
}

static bool fake_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct fake_host *host = opaque;
    uint8_t *ram = bus_at(host, addr, len);

    host->reads++;
    if (!ram) {
        return false;
    }
    memcpy(buf, ram, len);
    hook(opaque, FAKE_READ);
    return true;
}

static bool fake_read_far(void *opaque, uint64_t addr, void *buf, size_t len)
{
    ((struct fake_host *)opaque)->far_reads++;
    return fake_read(opaque, addr, buf, len);
}

static bool fake_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    uint8_t *ram = bus_at(opaque, addr, len);

    if (!ram) {
        return false;
    }
    memcpy(ram, buf, len);
    hook(opaque, FAKE_WRITE);
    return true;
}

static void *fake_map(void *opaque, uint64_t addr, size_t *len, bool is_write)
{
    struct fake_host *host = opaque;
    uint8_t *ram = bus_at(host, addr, 1);
    size_t room = FAKE_HOST_SIZE - (addr - FAKE_HOST_BASE);

    (void)is_write;
    if (!ram || host->no_map) {
        return NULL;
    }
    if (*len > room) {
        *len = room;
    }
    if (host->map_limit && *len > host->map_limit) {
        *len = host->map_limit;
    }
    host->open_maps++;
    hook(host, FAKE_MAP);
    return ram;
}

static void fake_unmap(void *opaque, void *ptr, size_t len, bool is_write)
{
    struct fake_host *host = opaque;

    (void)ptr;
    (void)len;
    (void)is_write;
    host->open_maps--;
    hook(host, FAKE_UNMAP);
}

static bool fake_atomic(void *opaque, uint64_t addr, size_t len, struct host_atomic *op)
{
    struct fake_host *host = opaque;
    uint8_t *ram = bus_at(host, addr, len);

    if (!ram || addr % len) {
        return false;
    }
    if (host->atomics_lose) {
        op->lost = true;
    } else {
        host_atomic_do(ram, len, op);
    }
    hook(host, FAKE_ATOMIC);
    return true;
}

static void fake_irq(void *opaque, unsigned vector)
{
    struct fake_host *host = opaque;

    if (vector < FAKE_HOST_VECTORS) {
        host->irqs[vector]++;
    } else {
        host->bad_irqs++;
    }
    hook(host, FAKE_IRQ);
}

static uint64_t fake_clock(void *opaque)
{
    hook(opaque, FAKE_CLOCK);
    return ((struct fake_host *)opaque)->now;
}

static void fake_timer(void *opaque, uint64_t deadline)
{
    ((struct fake_host *)opaque)->deadline = deadline;
    hook(opaque, FAKE_TIMER);
}

static void fake_wake(void *opaque)
{
    ((struct fake_host *)opaque)->wakes++;
    hook(opaque, FAKE_WAKE);
}

static void fake_log(void *opaque, enum hca_log_level level, const char *line)
{
    struct fake_host *host = opaque;

    if (level == HCA_LOG_GUEST_ERROR) {
        host->guest_errors++;
    }
    if (level != HCA_LOG_TRACE) {
        host->lines++;
        snprintf(host->last_line, sizeof(host->last_line), "%s", line);
    }
    if (getenv("HCASIM_TEST_LOG")) {
        fprintf(stderr, "%d: %s\n", (int)level, line);
    }
    hook(host, FAKE_LOG);
}

const struct hca_host_ops fake_host_ops = {
    .dma_read = fake_read,
    .dma_write = fake_write,
    .dma_read_far = fake_read_far,
    .dma_map = fake_map,
    .dma_unmap = fake_unmap,
    .dma_atomic = fake_atomic,
    .irq = fake_irq,
    .clock_ns = fake_clock,
    .timer_arm = fake_timer,
    .wake = fake_wake,
    .log = fake_log,
};

void fake_host_init(struct fake_host *host)
{
    memset(host, 0, sizeof(*host));
    /* Not calloc(): where meson sets MALLOC_PERTURB_, it would write to all of it in each test. */
    host->ram =
        mmap(NULL, FAKE_HOST_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host->ram == MAP_FAILED) {
        abort();
    }
    host->next = FAKE_HOST_BASE;
    host->deadline = UINT64_MAX;
}

void fake_host_clear(struct fake_host *host)
{
    if (host->ram) {
        munmap(host->ram, FAKE_HOST_SIZE);
    }
    host->ram = NULL;
}

uint64_t fake_host_alloc(struct fake_host *host, size_t size, size_t align)
{
    uint64_t addr = (host->next + align - 1) & ~((uint64_t)align - 1);

    memset(fake_host_ptr(host, addr, size), 0, size);
    host->next = addr + size;
    return addr;
}

void *fake_host_ptr(struct fake_host *host, uint64_t addr, size_t len)
{
    uint8_t *ram = ram_at(host, addr, len);

    if (!ram) {
        fprintf(stderr, "fake host: no memory at 0x%llx + %zu\n", (unsigned long long)addr, len);
        abort();
    }
    return ram;
}
