/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the doorbells of programs that own their rings (watch.c). Such a program writes
 * doorbells to memory, not to the HCA's BAR, so the doorbell records are looked at instead: what
 * they say is what the doorbell would.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_WATCH_H

#include "guest-lib/verbs/verbs.h"

struct hv_dv_watch;

enum hv_dv_watch_kind {
    HV_WATCH_SQ, /* dbrec: the send counter */
    HV_WATCH_CQ  /* dbrec: the arm word */
};
struct hv_dv_watch *hv_dv_watch_new(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num,
                                    uint32_t uar_page, const uint32_t *dbrec);
/* NULL is allowed. */
void hv_dv_watch_free(struct hv_dv_watch *watch);
/* The queue's watch if there is one already, so that there are never two. */
bool hv_dv_watched(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num);
/* The queue is about to be destroyed. */
void hv_watch_forget_sq(struct hv_hca *hca, uint32_t qpn_or_sqn);
void hv_watch_forget_cq(struct hv_hca *hca, uint32_t cqn);

/*
 * While hv_watches is not zero whoever drives the HCA calls hv_watch_scan() in every round and does
 * not sleep. ring is called for each doorbell found, as hv_doorbell() would be, and must not call
 * back here. True: there was a doorbell.
 */
typedef void hv_ring_fn(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
extern gint hv_watches;
bool hv_watch_scan(struct hv_hca *hca, hv_ring_fn *ring);

#endif
