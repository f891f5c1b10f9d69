/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of programs that own their rings (watch.c): their doorbell pages are memory, which is
 * scanned.
 *
 * A page is identified by its UAR's number, and is scanned while the program owns a queue that
 * rings there. All functions except hv_watch_scan() may be called from any thread. In a child of
 * fork() they do nothing, because the HCA is its parent's.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H

#include "guest-lib/verbs/verbs.h"

/* Makes a new mapping of a doorbell page of the context, from its descriptor, at the offset that
 * programs are told (hv_uar_offset()). NULL: errno. */
void *hv_uar_mmap(struct hv_context *ctx, uint32_t uarn);
static inline off_t hv_uar_offset(uint32_t uarn)
{
    return (off_t)uarn * PCI_PAGE;
}

/* Returns the mapping that mlx5dv_init_obj() reports. There is one for each page; it is removed
 * with the UAR. NULL: errno. */
void *hv_watch_uar(struct hv_context *ctx, uint32_t uarn);
/* The UAR with this number is freed, or is a different one from now on. */
void hv_watch_forget_uar(struct hv_hca *hca, uint32_t uarn);

enum hv_watch_kind {
    HV_WATCH_SQ,           /* dbrec: the send counter */
    HV_WATCH_SQ_NO_RECORD, /* a send queue whose doorbells tell its counter */
    HV_WATCH_CQ            /* dbrec: the arm word */
};
/* The program owns the rings of this queue from now on. owner: the object that the queue belongs
 * to, for hv_watch_forget(). A queue that is known already is not added again. dbrec: the doorbell
 * record, big-endian; NULL: unknown. Returns 0 or errno. */
int hv_watch_queue(struct hv_context *ctx, const void *owner, enum hv_watch_kind kind, uint32_t num,
                   uint32_t uarn, const uint32_t *dbrec);
/* The send queue of a queue without record, in memory of the program or of a GPU: where doorbells
 * that were lost are found (unheard.h). log_size: log2 of its basic blocks. */
void hv_watch_ring(struct hv_hca *hca, const void *owner, uint32_t qpn, const void *ring,
                   unsigned log_size);
/* The owner is reset: its counter begins again. */
void hv_watch_reset(struct hv_hca *hca, const void *owner);
/* The owner is destroyed, and so are its queues. */
void hv_watch_forget(struct hv_hca *hca, const void *owner);
/* Frees all of it when the HCA ends. */
void hv_watch_free(struct hv_hca *hca);

/*
 * Scans all pages, with the HCA's lock held. For each doorbell that is found, ring is called like
 * hv_doorbell(); it must not call functions of this file. True: there was a doorbell.
 */
typedef void hv_ring_fn(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
bool hv_watch_scan(struct hv_hca *hca, uint64_t now_ns, hv_ring_fn *ring);

#endif
