/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps registers into the process (mmio.h).
 *
 * The mapping is that of an empty file: behind the end of a file there are no pages, so an access
 * raises SIGBUS, which no other memory of a program does unless one of its files shrinks. A program
 * may unmap registers without a call here. Then the range is known until a new range of registers
 * takes its addresses, or until a look at the mapping finds it gone (mmio_prune()).
 */
#define _GNU_SOURCE
#include "guest-lib/host/mmio.h"
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/host/mmio_insn.h"
#include "wire/forks.h"

struct mmio_range {
    uintptr_t start, end;
    struct pci_dev dev; /* ops NULL: the registers are gone */
    uint64_t offset;    /* in BAR0 */
};

#define PRUNE_FROM 64 /* ranges; from so many on, those that are unmapped are looked for */

static GArray *mmio_known; /* struct mmio_range, in any order */
static pthread_mutex_t mmio_lock = PTHREAD_MUTEX_INITIALIZER;

static void mmio_before_fork(void)
{
    pthread_mutex_lock(&mmio_lock);
}

static void mmio_after_fork(void)
{
    pthread_mutex_unlock(&mmio_lock);
}

FORKS_INNER_LOCK static void mmio_on_fork(void)
{
    pthread_atfork(mmio_before_fork, mmio_after_fork, mmio_after_fork);
}

static struct mmio_range *mmio_at(guint i)
{
    return &g_array_index(mmio_known, struct mmio_range, i);
}

/* Forgets ranges whose memory is not mapped any more. */
static void mmio_prune(void)
{
    for (guint i = mmio_known->len; i-- > 0;) {
        unsigned char there;

        if (mincore((void *)mmio_at(i)->start, PCI_PAGE, &there) && errno == ENOMEM) {
            g_array_remove_index_fast(mmio_known, i);
        }
    }
}

static void mmio_note(const struct mmio_range *range)
{
    pthread_mutex_lock(&mmio_lock);
    if (!mmio_known) {
        mmio_known = g_array_new(FALSE, FALSE, sizeof(struct mmio_range));
    }
    for (guint i = mmio_known->len; i-- > 0;) {
        if (mmio_at(i)->start < range->end && range->start < mmio_at(i)->end) {
            g_array_remove_index_fast(mmio_known, i); /* it was unmapped */
        }
    }
    if (mmio_known->len >= PRUNE_FROM) {
        mmio_prune();
    }
    g_array_append_vals(mmio_known, range, 1);
    pthread_mutex_unlock(&mmio_lock);
}

void *mmio_map(struct pci_dev dev, uint64_t offset, size_t size)
{
    void *at = MAP_FAILED;
    int fd;

    if (!mmio_is_supported()) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    fd = memfd_create("hcasim-registers", MFD_CLOEXEC);
    if (fd >= 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (at == MAP_FAILED) {
        errno = ENOMEM;
        return NULL;
    }
    mmio_note(&(struct mmio_range){
        .start = (uintptr_t)at, .end = (uintptr_t)at + size, .dev = dev, .offset = offset});
    return at;
}

void mmio_forget(struct pci_dev dev, uint64_t offset, size_t size)
{
    pthread_mutex_lock(&mmio_lock);
    for (guint i = 0; mmio_known && i < mmio_known->len; i++) {
        struct mmio_range *range = mmio_at(i);

        if (range->dev.pci == dev.pci && range->offset >= offset && range->offset - offset < size) {
            range->dev = (struct pci_dev){0};
        }
    }
    pthread_mutex_unlock(&mmio_lock);
}

unsigned mmio_ranges(void)
{
    unsigned n;

    pthread_mutex_lock(&mmio_lock);
    n = mmio_known ? mmio_known->len : 0;
    pthread_mutex_unlock(&mmio_lock);
    return n;
}

/* -- accesses ---------------------------------------------------------------------------------- */

static bool mmio_find(uintptr_t addr, struct mmio_range *found)
{
    bool is_there = false;

    pthread_mutex_lock(&mmio_lock);
    for (guint i = 0; mmio_known && i < mmio_known->len && !is_there; i++) {
        if (addr >= mmio_at(i)->start && addr < mmio_at(i)->end) {
            *found = *mmio_at(i);
            is_there = true;
        }
    }
    pthread_mutex_unlock(&mmio_lock);
    return is_there;
}

/* A number of the BAR, whose bytes are big-endian, as the processor's word; and the other way
 * round. */
static uint64_t mmio_word(uint64_t value, unsigned size)
{
    return G_BYTE_ORDER == G_BIG_ENDIAN ? value : GUINT64_SWAP_LE_BE(value) >> (64 - 8 * size);
}

bool mmio_fault(const siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t addr = (uintptr_t)info->si_addr;
    struct mmio_range range;
    struct mmio_insn insn;
    uint64_t word = 0, offset;

    if (info->si_code != BUS_ADRERR || !mmio_find(addr, &range) ||
        !mmio_decode(mmio_code(context), &insn) ||
        mmio_wrote(context) != (insn.act == MMIO_STORE)) {
        errno = saved;
        return false;
    }
    offset = range.offset + (addr - range.start);
    if (range.dev.ops && insn.act == MMIO_STORE) {
        range.dev.ops->mmio_write(range.dev.pci, offset,
                                  mmio_word(mmio_operand(&insn, context), insn.size), insn.size);
    } else if (range.dev.ops) {
        word = mmio_word(range.dev.ops->mmio_read(range.dev.pci, offset, insn.size), insn.size);
    }
    mmio_finish(&insn, word, context);
    errno = saved;
    return true;
}
