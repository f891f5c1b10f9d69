/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that processes of a machine share by the number of a region (shared_mr.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_SHARED_MR_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_SHARED_MR_H

#include "guest-lib/verbs/verbs.h"
#include "wire/own_fd.h"

/* A mapping of such memory, by the process that made it or by another. */
struct hv_shared {
    void *addr;
    size_t length;
    uint32_t number;        /* what other processes name it by: 1 to 0xffff */
    struct own_fd lock;     /* of the process that made it: the open file that is locked */
    struct hv_shared *next; /* of those that the process has made */
};

/* Allocates length bytes, a multiple of a page, for other processes to share. mode has the bits of
 * a file: who may read and write. at: where to map it, replacing what is there, or NULL. Returns 0
 * or errno: ENOMEM; ENOSPC: 65,535 regions are shared on this machine. */
int hv_shared_new(struct hv_hca *hca, size_t length, unsigned mode, void *at,
                  struct hv_shared **made);
/* Maps the memory of that number. at is a hint. Returns 0 or errno: EINVAL: there is none; EACCES:
 * its mode does not allow this process to read, or to write although writable is set. */
int hv_shared_open(struct hv_hca *hca, uint32_t number, bool writable, void *at,
                   struct hv_shared **made);
/* Unmaps it. If this process made it, no process can open it any more, but those that did keep the
 * memory. */
void hv_shared_free(struct hv_shared *shared);

#endif
