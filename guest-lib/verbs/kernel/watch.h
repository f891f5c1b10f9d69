/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of programs that own their rings (watch.c): doorbell pages are memory, which is looked
 * at.
 *
 * A page is known by its UAR's number, and is looked at while the program owns a queue that rings
 * there. All functions but hv_watch_scan() may be called from any thread; in a child of fork() they
 * do nothing, since the HCA is its parent's.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H

#include "guest-lib/verbs/verbs.h"

/* A new mapping of a doorbell page of the context: of its descriptor, at the offset that programs
 * are told (hv_uar_offset()). NULL: errno. */
void *hv_uar_mmap(struct hv_context *ctx, uint32_t uarn);
static inline off_t hv_uar_offset(uint32_t uarn)
{
    return (off_t)uarn * PCI_PAGE;
}

/* The mapping that mlx5dv_init_obj() tells of, one for each page, which ends with the UAR. NULL:
 * errno. */
void *hv_watch_uar(struct hv_context *ctx, uint32_t uarn);
/* The UAR is another one from now on, or none. */
void hv_watch_forget_uar(struct hv_hca *hca, uint32_t uarn);

enum hv_watch_kind {
    HV_WATCH_SQ, /* dbrec: the send counter */
    HV_WATCH_CQ  /* dbrec: the arm word */
};
/* The program owns the rings of this queue from now on. owner: whose queue it is, for
 * hv_watch_forget(); one that is known already is not made known again. dbrec: big-endian; NULL:
 * nobody knows it. 0 or errno. */
int hv_watch_queue(struct hv_context *ctx, const void *owner, enum hv_watch_kind kind, uint32_t num,
                   uint32_t uarn, const uint32_t *dbrec);
/* The owner ends, and its queues have ended. */
void hv_watch_forget(struct hv_hca *hca, const void *owner);
/* The HCA ends. */
void hv_watch_free(struct hv_hca *hca);

/*
 * Looks at all pages, with the HCA's lock held. ring is called for each doorbell found, as
 * hv_doorbell() would be, and must not call back here. True: there was one.
 */
typedef void hv_ring_fn(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
bool hv_watch_scan(struct hv_hca *hca, hv_ring_fn *ring);

#endif
