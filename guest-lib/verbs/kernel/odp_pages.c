/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the process, for on-demand paging: makes them present and tells which of them are, as
 * hmm_range_fault() does in a kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/host/memory.h"
#include "guest-lib/verbs/kernel/odp_internal.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Accesses each page: with kernels before 5.14, and in sandboxes that have no MADV_POPULATE. */
static int odp_pages_access(uint64_t start, uint64_t len, bool writable)
{
    for (uint64_t at = start; at < start + len; at += PCI_PAGE) {
        struct host_atomic nothing = {.kind = HOST_ATOMIC_ADD};
        uint8_t byte;

        if (writable ? !memory_atomic(at, sizeof(uint64_t), &nothing, NULL)
                     : !memory_read(at, &byte, sizeof(byte), NULL)) {
            return EFAULT;
        }
    }
    return 0;
}

int odp_pages_touch(uint64_t start, uint64_t len, bool writable)
{
    int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

    while (madvise(memory_at(start), len, advice)) {
        if (errno == EINVAL || errno == ENOSYS) {
            return odp_pages_access(start, len, writable);
        }
        if (errno != EAGAIN && errno != EINTR) {
            return EFAULT;
        }
    }
    return 0;
}

/* -- huge pages -------------------------------------------------------------------------------- */

/* PAGEMAP_SCAN (Linux 6.7), which older headers lack. */
struct odp_page_region {
    uint64_t start, end, categories;
};
struct odp_scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t inverted, mask, any_of, returned;
};
#define ODP_PAGEMAP_SCAN _IOWR('f', 16, struct odp_scan)
#define ODP_PAGE_IS_HUGE ((uint64_t)1 << 6)

/* Kernels before 6.7 do not tell. There, any pages are accepted: a translation entry names an
 * address of the process, which leads to all of its pages. */
bool odp_pages_are_huge(uint64_t start, uint64_t len)
{
    struct odp_page_region found;
    struct odp_scan scan = {
        .size = sizeof(scan),
        .start = start,
        .end = start + len,
        .vec = (uintptr_t)&found,
        .vec_len = 1,
        .mask = ODP_PAGE_IS_HUGE,
        .returned = ODP_PAGE_IS_HUGE,
    };
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int n = fd < 0 ? -1 : ioctl(fd, ODP_PAGEMAP_SCAN, &scan);

    if (fd >= 0) {
        close(fd);
    }
    return n < 0 || (n == 1 && found.start == start && found.end == start + len);
}

/* -- which pages are present ------------------------------------------------------------------- */

#define ODP_PAGEMAP_PRESENT ((uint64_t)1 << 63)
#define ODP_PAGEMAP_ENTRIES 512

/* Without /proc no page counts as present. */
void odp_pages_present(uint64_t start, uint64_t num, unsigned log_page, bool *present)
{
    uint64_t entries[ODP_PAGEMAP_ENTRIES];
    uint64_t small = (uint64_t)1 << (log_page - 12), total = num * small;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    for (uint64_t i = 0; i < num; i++) {
        present[i] = fd >= 0;
    }
    for (uint64_t at = 0; fd >= 0 && at < total;) {
        uint64_t want = MIN(total - at, ODP_PAGEMAP_ENTRIES);
        ssize_t got = pread(fd, entries, want * sizeof(entries[0]),
                            (off_t)((start / PCI_PAGE + at) * sizeof(entries[0])));
        uint64_t n = got > 0 ? (uint64_t)got / sizeof(entries[0]) : 0;

        for (uint64_t i = 0; i < want; i++) {
            present[(at + i) / small] &= i < n && (entries[i] & ODP_PAGEMAP_PRESENT);
        }
        at += want;
    }
    if (fd >= 0) {
        close(fd);
    }
}
