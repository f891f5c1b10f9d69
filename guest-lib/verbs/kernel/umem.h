/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the program that a device may access: what ib_umem_get() does in a kernel (umem.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_UMEM_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_UMEM_H

#include "guest-lib/verbs/verbs.h"

/* A zeroed struct hv_umem has nothing; hv_umem_get() and hv_umem_of_dmabuf() add to it. */

/* Counts a range as pinned and checks that it is there: memory of the process, or memory of a GPU,
 * which is claimed for the device (guest-lib/host/gpu.h). Returns 0 or errno: ENOMEM or EPERM:
 * RLIMIT_MEMLOCK; EFAULT: a part of it is not mapped, or is not writable although writable is set,
 * or it is memory of a GPU that is not the context's peer.
 */
int hv_umem_get(struct hv_context *ctx, const void *addr, size_t len, bool writable,
                struct hv_umem *umem);
/* Gives the range back. A range that was given back, or never there, is left alone. */
void hv_umem_put(struct hv_umem *umem);

/* Checks a range again, for other rights: 0 or EFAULT. */
int hv_umem_recheck(const struct hv_umem *umem, const void *addr, size_t len, bool writable);

/* Finds the memory of a dma-buf: *addr receives where the part begins. If the memory is not a
 * GPU's, it is mapped, and *umem keeps the mapping. Returns 0 or errno: EBADF: the descriptor is
 * not open; EINVAL: it is no dma-buf, or the part lies outside of it; EOPNOTSUPP: it cannot be
 * mapped, and is not known to be memory of a GPU of this process. */
int hv_umem_of_dmabuf(struct hv_hca *hca, const char *verb, int fd, uint64_t offset, size_t len,
                      void **addr, struct hv_umem *umem);

#endif
