/* SPDX-License-Identifier: BSD-2-Clause */
/* What a kernel counts of a process's memory when it pins it for a device (memlock.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_MEMLOCK_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_MEMLOCK_H

#include "guest-lib/verbs/verbs.h"

/* Counts a range: 0, and how many pages, which hv_unpin() takes back; ENOMEM: they are more than
 * RLIMIT_MEMLOCK lets it have; EPERM: that is 0. */
int hv_pin(struct hv_hca *hca, const void *addr, size_t len, uint64_t *pages);
void hv_unpin(uint64_t *pages);

/* The same for a queue: its ring, and the page of its doorbell record. */
int hv_pin_queue(struct ibv_context *context, const void *ring, size_t size, const uint32_t *dbrec,
                 uint64_t *pages);
void hv_unpin_queue(struct ibv_context *context, const uint32_t *dbrec, uint64_t *pages);

#endif
