/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the program for a device: of the process, of a GPU, or behind a dma-buf.
 *
 * The memory of a dma-buf that is not a GPU's is reached as a CPU reaches it: by a mapping of its
 * own. A dma-buf of /dev/udmabuf or of a DMA heap can be mapped.
 */
#include "guest-lib/verbs/kernel/umem.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"

int hv_umem_get(struct hv_context *ctx, const void *addr, size_t len, bool writable,
                struct hv_umem *umem)
{
    int err = hv_pin(ctx->hca, addr, len, &umem->pinned);

    umem->gpu = NULL;
    umem->odp = NULL;
    if (err) {
        return err;
    }
    err = gpu_claim_range(addr, len, &umem->gpu);
    if (!err && umem->gpu && ctx->has_peer && !gpu_is_of(umem->gpu, ctx->peer_gpu)) {
        gpu_release(umem->gpu);
        umem->gpu = NULL;
        err = EFAULT;
    } else if (!err && umem->gpu) {
        local_reach_gpu(ctx->hca->local);
    } else if (!err) {
        err = hv_umem_recheck(umem, addr, len, writable);
    }
    if (err) {
        hv_unpin(&umem->pinned);
    }
    return err;
}

void hv_umem_put(struct hv_umem *umem)
{
    gpu_release(umem->gpu);
    umem->gpu = NULL;
    hv_unpin(&umem->pinned);
    if (umem->mapping) {
        munmap(umem->mapping, umem->mapped);
        umem->mapping = NULL;
    }
}

int hv_umem_recheck(const struct hv_umem *umem, const void *addr, size_t len, bool writable)
{
    if (umem->mapping) { /* it cannot be populated, and its pages are there */
        return writable && umem->read_only ? EFAULT : 0;
    }
    return umem->gpu ? 0 : hv_umem_check(addr, len, writable);
}

/* Whether an open descriptor is a dma-buf, by the name that its file system gives it. */
static bool umem_is_dmabuf(int fd)
{
    char link[32], name[16] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof(name) - 1) > 0 && !strncmp(name, "/dmabuf:", 8);
}

/* Maps a part of a dma-buf from the start of its page on. False: its exporter does not allow that.
 * A dma-buf that cannot be written is mapped for reading; a region with rights to write is then
 * refused, as for any memory. */
static bool umem_map(int fd, uint64_t offset, size_t len, struct hv_umem *umem)
{
    uint64_t from = offset & ~(uint64_t)(PCI_PAGE - 1);
    size_t size = (size_t)(offset - from) + len;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);

    if (at == MAP_FAILED) {
        umem->read_only = true;
        at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)from);
    }
    if (at == MAP_FAILED) {
        return false;
    }
    umem->mapping = at;
    umem->mapped = size;
    return true;
}

/* Where the memory of a GPU's dma-buf begins; 0 if the dma-buf is not a GPU's. *size receives the
 * bytes of the dma-buf. Returns 0 or errno. */
static int umem_find_dmabuf(struct hv_hca *hca, const char *verb, int fd, uint64_t *start,
                            size_t *size)
{
    off_t end;

    if (fcntl(fd, F_GETFD) < 0) {
        return hv_refuse(hca, EBADF, "%s: the descriptor %d is not open", verb, fd);
    }
    if (!gpu_dmabuf(fd, start, size)) {
        return 0;
    }
    if (!umem_is_dmabuf(fd)) {
        return hv_refuse(hca, EINVAL, "%s: the descriptor %d is no dma-buf", verb, fd);
    }
    end = lseek(fd, 0, SEEK_END);
    *start = 0;
    *size = end < 0 ? 0 : (size_t)end;
    return 0;
}

int hv_umem_of_dmabuf(struct hv_hca *hca, const char *verb, int fd, uint64_t offset, size_t len,
                      void **addr, struct hv_umem *umem)
{
    uint64_t start;
    size_t size;
    int err = umem_find_dmabuf(hca, verb, fd, &start, &size);

    if (err) {
        return err;
    }
    if (!len || offset > size || len > size - offset) {
        return hv_refuse(hca, EINVAL,
                         "%s: %zu bytes at offset %" PRIu64
                         " are outside of the dma-buf, which has "
                         "%zu bytes",
                         verb, len, offset, size);
    }
    if (!start && !umem_map(fd, offset, len, umem)) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "%s: the dma-buf %d cannot be mapped, and is not known to be memory of a "
                         "GPU of this process: run the program under `hcasim run`, and export the "
                         "memory in the process that registers it",
                         verb, fd);
    }
    *addr = start ? (void *)(uintptr_t)(start + offset)
                  : (uint8_t *)umem->mapping + (offset & (PCI_PAGE - 1));
    return 0;
}
