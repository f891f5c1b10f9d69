/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the memory of the process that a kernel would pin for a device (memlock.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_MEMLOCK_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_MEMLOCK_H

#include "guest-lib/verbs/verbs.h"

/* Counts a range. Returns 0 and stores the number of pages, which hv_unpin() takes off again.
 * ENOMEM: RLIMIT_MEMLOCK does not allow so many pages; EPERM: RLIMIT_MEMLOCK is 0. */
int hv_pin(struct hv_hca *hca, const void *addr, size_t len, uint64_t *pages);
void hv_unpin(uint64_t *pages);

/* The same for a queue: its ring and the page of its doorbell record. */
int hv_pin_queue(struct ibv_context *context, const void *ring, size_t size, const uint32_t *dbrec,
                 uint64_t *pages);
void hv_unpin_queue(struct ibv_context *context, const uint32_t *dbrec, uint64_t *pages);

#endif
