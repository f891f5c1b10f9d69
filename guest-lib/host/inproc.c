/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual clock, and the HCAs on it: host callbacks on one side, the driver's view on the
 * other. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/host/inproc.h"

/* -- host callbacks of the HCA (model/core/host.h) --------------------------------------------- */

static void *inproc_arena_at(struct inproc_hca *hca, uint64_t addr, size_t len)
{
    uint64_t base = (uintptr_t)hca->arena;

    if (addr < base || addr - base > hca->arena_size || len > hca->arena_size - (addr - base)) {
        return NULL;
    }
    return hca->arena + (addr - base);
}

static bool inproc_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    void *ptr = inproc_arena_at(host, addr, len);

    if (ptr) {
        memcpy(buf, ptr, len);
    }
    return ptr != NULL;
}

static bool inproc_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    void *ptr = inproc_arena_at(host, addr, len);

    if (ptr) {
        host_copy_in_order(ptr, buf, len);
    }
    return ptr != NULL;
}

static void *inproc_dma_map(void *host, uint64_t addr, size_t *len, bool is_write)
{
    return inproc_arena_at(host, addr, *len);
}

static void inproc_dma_unmap(void *host, void *ptr, size_t len, bool is_write)
{
}

static bool inproc_dma_atomic(void *host, uint64_t addr, size_t len, struct host_atomic *op)
{
    void *ptr = inproc_arena_at(host, addr, len);

    if (!ptr || addr % len) {
        return false;
    }
    host_atomic_do(ptr, len, op);
    return true;
}

static void inproc_irq(void *host, unsigned vector)
{
    struct inproc_hca *hca = host;

    g_assert(vector < INPROC_VECTORS);
    hca->irqs[vector]++;
}

static uint64_t inproc_clock_ns(void *host)
{
    struct inproc_hca *hca = host;

    return hca->world->now_ns;
}

static void inproc_timer_arm(void *host, uint64_t deadline_ns)
{
    struct inproc_hca *hca = host;

    hca->deadline_ns = deadline_ns;
}

static void inproc_wake(void *host)
{
    struct inproc_hca *hca = host;

    hca->woken = true;
}

static void inproc_log(void *host, enum hca_log_level level, const char *line)
{
    struct inproc_hca *hca = host;

    hca->log_errors += level == HCA_LOG_ERROR;
    hca->log_guest_errors += level == HCA_LOG_GUEST_ERROR;
    if (hca->verbose) {
        fprintf(stderr, "hca %p: %s\n", host, line);
    }
}

static const struct hca_host_ops host_ops = {
    .dma_read = inproc_dma_read,
    .dma_write = inproc_dma_write,
    .dma_map = inproc_dma_map,
    .dma_unmap = inproc_dma_unmap,
    .dma_atomic = inproc_dma_atomic,
    .irq = inproc_irq,
    .clock_ns = inproc_clock_ns,
    .timer_arm = inproc_timer_arm,
    .wake = inproc_wake,
    .log = inproc_log,
};

/* Preferred addresses of arenas: the same in each run, so that runs repeat. */
#define ARENA_HINT    0x20009e370000ul
#define ARENA_SPACING (1ul << 32)

/* -- the world ----------------------------------------------------------------------------------
 */

struct inproc_world *inproc_world_new(void)
{
    struct inproc_world *world = g_new0(struct inproc_world, 1);

    world->now_ns = 1000000000;
    world->arena_size = INPROC_ARENA_SIZE;
    world->members = g_ptr_array_new();
    world->hcas = g_ptr_array_new();
    return world;
}

void inproc_join(struct inproc_world *world, struct inproc_member *member)
{
    g_ptr_array_add(world->members, member);
}

void inproc_leave(struct inproc_world *world, struct inproc_member *member)
{
    g_ptr_array_remove(world->members, member);
}

static bool inproc_hca_run(struct inproc_member *member, uint64_t now_ns)
{
    struct inproc_hca *hca = (struct inproc_hca *)member;

    if (!hca->woken && hca->deadline_ns > now_ns) {
        return false;
    }
    hca->woken = false;
    hca->woken |= fw_run(hca->fw, hca->budget);
    return true;
}

static uint64_t inproc_hca_deadline_ns(const struct inproc_member *member)
{
    return ((const struct inproc_hca *)member)->deadline_ns;
}

static void inproc_hca_free(struct inproc_hca *hca)
{
    fw_free(hca->fw);
    munmap(hca->arena, hca->arena_size);
    g_hash_table_destroy(hca->freed);
    g_free(hca);
}

void inproc_world_free(struct inproc_world *world)
{
    for (unsigned i = 0; i < world->hcas->len; i++) {
        inproc_hca_free(g_ptr_array_index(world->hcas, i));
    }
    g_ptr_array_free(world->hcas, TRUE);
    g_ptr_array_free(world->members, TRUE);
    g_free(world);
}

struct inproc_hca *inproc_hca_new(struct inproc_world *world, const struct fw_config *config,
                                  GError **err)
{
    struct inproc_hca *hca = g_new0(struct inproc_hca, 1);

    hca->member = (struct inproc_member){inproc_hca_run, inproc_hca_deadline_ns};
    hca->world = world;
    hca->deadline_ns = UINT64_MAX;
    hca->budget = 2048;
    hca->verbose = g_getenv("HCASIM_LOG") != NULL;
    hca->freed = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    hca->arena_size = world->arena_size;
    hca->arena = mmap((void *)(ARENA_HINT + world->hcas->len * ARENA_SPACING), hca->arena_size,
                      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hca->arena == MAP_FAILED) {
        g_error("out of memory for a DMA arena of %zu bytes", hca->arena_size);
    }
    hca->fw = fw_new(&host_ops, hca, config, err);
    if (!hca->fw) {
        munmap(hca->arena, hca->arena_size);
        g_hash_table_destroy(hca->freed);
        g_free(hca);
        return NULL;
    }
    g_ptr_array_add(world->hcas, hca);
    inproc_join(world, &hca->member);
    return hca;
}

void inproc_hca_end(struct inproc_hca *hca)
{
    inproc_leave(hca->world, &hca->member);
    g_ptr_array_remove(hca->world->hcas, hca);
    inproc_hca_free(hca);
}

/* Strides for visiting the members. A stride that does not divide their number has no common
 * divisor with it. */
static const unsigned strides[] = {1, 3, 7, 61, 257, 1021};

/* The order of a round: returns the first member, and the stride to the next one. */
static unsigned inproc_order(const struct inproc_world *world, unsigned *stride)
{
    const struct inproc_whims *whims = world->whims;
    unsigned num = world->members->len;

    *stride = 1;
    if (!whims || num < 2) {
        return 0;
    }
    *stride = strides[whims->below(whims->opaque, G_N_ELEMENTS(strides))];
    if (num % *stride == 0) {
        *stride = num - 1; /* backwards */
    }
    return (unsigned)whims->below(whims->opaque, num);
}

bool inproc_run_ready(struct inproc_world *world)
{
    bool any = false;
    unsigned stride, at = inproc_order(world, &stride);

    for (unsigned i = 0; i < world->members->len; i++, at += stride) {
        struct inproc_member *member = g_ptr_array_index(world->members, at % world->members->len);

        any |= member->run(member, world->now_ns);
    }
    return any;
}

bool inproc_step(struct inproc_world *world, uint64_t limit_ns)
{
    uint64_t next = UINT64_MAX;

    if (inproc_run_ready(world)) {
        return true;
    }
    for (unsigned i = 0; i < world->members->len; i++) {
        const struct inproc_member *member = g_ptr_array_index(world->members, i);

        next = MIN(next, member->deadline_ns(member));
    }
    if (next > limit_ns) {
        world->now_ns = MAX(world->now_ns, limit_ns);
        return false;
    }
    world->now_ns = MAX(world->now_ns, next);
    return true;
}

void inproc_settle(struct inproc_world *world)
{
    while (inproc_run_ready(world)) {
    }
}

void inproc_advance(struct inproc_world *world, uint64_t ns)
{
    uint64_t limit = world->now_ns + ns;

    while (inproc_step(world, limit)) {
    }
}

/* -- the driver's view (guest-lib/drv/pci.h) --------------------------------------------------- */

static uint64_t inproc_pci_mmio_read(void *pci, uint64_t offset, unsigned size)
{
    struct inproc_hca *hca = pci;

    return fw_mmio_read(hca->fw, offset, size);
}

static void inproc_pci_mmio_write(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct inproc_hca *hca = pci;

    fw_mmio_write(hca->fw, offset, value, size);
}

static void *inproc_pci_dma_alloc(void *pci, size_t size, uint64_t *bus)
{
    struct inproc_hca *hca = pci;
    size_t pages = (size + PCI_PAGE - 1) / PCI_PAGE;
    GPtrArray *list = g_hash_table_lookup(hca->freed, GSIZE_TO_POINTER(pages));
    uint8_t *ptr;

    if (list && list->len) {
        ptr = g_ptr_array_steal_index_fast(list, list->len - 1);
        memset(ptr, 0, pages * PCI_PAGE);
    } else {
        if (pages * PCI_PAGE > hca->arena_size - hca->used) {
            g_error("DMA arena of %zu bytes is used up", hca->arena_size);
        }
        ptr = hca->arena + hca->used;
        hca->used += pages * PCI_PAGE;
    }
    hca->outstanding += pages * PCI_PAGE;
    *bus = (uintptr_t)ptr;
    return ptr;
}

static void inproc_pci_dma_free(void *pci, void *ptr, size_t size)
{
    struct inproc_hca *hca = pci;
    size_t pages = (size + PCI_PAGE - 1) / PCI_PAGE;
    GPtrArray *list = g_hash_table_lookup(hca->freed, GSIZE_TO_POINTER(pages));

    if (!list) {
        list = g_ptr_array_new();
        g_hash_table_insert(hca->freed, GSIZE_TO_POINTER(pages), list);
    }
    g_ptr_array_add(list, ptr);
    hca->outstanding -= pages * PCI_PAGE;
}

static bool inproc_pci_wait(void *pci, uint64_t timeout_ns)
{
    struct inproc_hca *hca = pci;

    return inproc_step(hca->world, hca->world->now_ns + timeout_ns);
}

static const struct pci_ops inproc_pci_ops = {
    .mmio_read = inproc_pci_mmio_read,
    .mmio_write = inproc_pci_mmio_write,
    .dma_alloc = inproc_pci_dma_alloc,
    .dma_free = inproc_pci_dma_free,
    .wait = inproc_pci_wait,
    .now = inproc_clock_ns,
};

struct pci_dev inproc_pci(struct inproc_hca *hca)
{
    return (struct pci_dev){.ops = &inproc_pci_ops, .pci = hca};
}
