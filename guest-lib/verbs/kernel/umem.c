/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program for a device: of the process, of a GPU, or behind a dma-buf. */
#include "guest-lib/verbs/kernel/umem.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"

int hv_umem_get(struct hv_hca *hca, const void *addr, size_t len, bool writable,
                struct hv_umem *umem)
{
    int err = hv_pin(hca, addr, len, &umem->pinned);

    umem->gpu = NULL;
    if (err) {
        return err;
    }
    err = gpu_claim_range(addr, len, &umem->gpu);
    if (!err && umem->gpu) {
        local_reach_gpu(hca->local);
    } else if (!err) {
        err = hv_umem_check(addr, len, writable);
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
}

int hv_umem_recheck(const struct hv_umem *umem, const void *addr, size_t len, bool writable)
{
    return umem->gpu ? 0 : hv_umem_check(addr, len, writable);
}

/* Whether an open descriptor is a dma-buf, by the name that its file system gives it. */
static bool umem_is_dmabuf(int fd)
{
    char link[32], name[16] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof(name) - 1) > 0 && !strncmp(name, "/dmabuf:", 8);
}

int hv_umem_of_dmabuf(struct hv_hca *hca, const char *verb, int fd, uint64_t offset, size_t len,
                      void **addr)
{
    uint64_t start;
    size_t size;

    if (fcntl(fd, F_GETFD) < 0) {
        return hv_refuse(hca, EBADF, "%s: the descriptor %d is not open", verb, fd);
    }
    if (gpu_dmabuf(fd, &start, &size)) {
        return umem_is_dmabuf(fd)
                   ? hv_refuse(hca, EOPNOTSUPP,
                               "%s: the dma-buf %d is not known to be memory of a GPU of this "
                               "process: run the program under `hcasim run`, and export the memory "
                               "in the process that registers it",
                               verb, fd)
                   : hv_refuse(hca, EINVAL, "%s: the descriptor %d is no dma-buf", verb, fd);
    }
    if (!len || offset > size || len > size - offset) {
        return hv_refuse(hca, EINVAL,
                         "%s: %zu bytes at offset %" PRIu64
                         " are outside of the dma-buf, which has "
                         "%zu bytes",
                         verb, len, offset, size);
    }
    *addr = (void *)(uintptr_t)(start + offset);
    return 0;
}
