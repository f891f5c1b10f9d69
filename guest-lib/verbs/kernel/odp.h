/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On-demand paging, for the kernel half's other files: regions whose pages the device asks for when
 * it needs them (odp.c), and the pager that answers its page faults (odp_pager.c).
 *
 * The kernel half does what mlx5_ib's odp.c does, by the same commands: CREATE_MKEY without pages,
 * an EQ for page faults, UMRs that write and clear translation entries, PAGE_FAULT_RESUME. How it
 * learns that pages come and go is docs/adr/0024-paging-without-a-kernel.md.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_ODP_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_ODP_H

#include "guest-lib/verbs/kernel/uverbs.h"

struct drv_event;
struct odp_region;

/* Whether the device has on-demand paging; what it offers (internal_fill_odp_caps()). */
bool hv_odp_is_offered(struct hv_hca *hca);
void hv_odp_caps(struct hv_hca *hca, struct ibv_odp_caps *caps, uint32_t *xrc_caps);

struct hv_odp_range {
    uint64_t start, len, iova;
};
/* Whether the range stands for all addresses of the process (an implicit region). */
static inline bool hv_odp_is_implicit(const struct hv_odp_range *range)
{
    return range->start == 0 && range->len == UINT64_MAX;
}

/* Registers a range. No page of it is present for the device yet. Returns 0 or errno. */
int hv_odp_reg(struct hv_pd *pd, const struct hv_odp_range *range, unsigned access,
               struct odp_region **made, uint32_t *key);
/* Ends a region when no page fault and no prefetch uses it any more. Returns 0 or errno; after an
 * error the region is as before. */
int hv_odp_dereg(struct odp_region *region);
/* Notes that the region is in another PD, or has other rights, which its key has already. */
void hv_odp_moved(struct odp_region *region, const struct hv_pd *pd, unsigned access);
/* Whether the region was registered for writing (umem->writable). */
bool hv_odp_is_writable(const struct odp_region *region);

/* A queue was made (1) or has ended (-1) that may not miss a page: the device has no page faults
 * for what it does. hv_odp_note_devx_queue(): the same for a queue that a program made by DevX. */
void hv_odp_note_queue(struct hv_hca *hca, struct hv_pd *pd, int change);
void hv_odp_note_devx_queue(struct hv_hca *hca);

/* Keys that name other keys: windows and keys made by DevX. The pager asks the device what such a
 * key names. num_desc: its entries. */
void hv_odp_add_indirect(struct hv_hca *hca, uint32_t key, uint32_t num_desc);
void hv_odp_del_indirect(struct hv_hca *hca, uint32_t key);

/* Takes a page fault from the event queue; the pager answers it. No lock may be held. */
void hv_odp_event(struct hv_hca *hca, const struct drv_event *event);

/* Memory of the process may have changed: pages of the range were unmapped, replaced, dropped,
 * moved or protected. The pages are invalidated soon. Takes no lock, waits for nothing and
 * allocates nothing, so it may be called anywhere, in a signal handler as well. */
void hv_odp_changed(uint64_t start, uint64_t len);

/* The HCA closes: its pager ends. To be called while commands still work. */
void hv_odp_stop(struct hv_hca *hca);
void hv_odp_free(struct hv_hca *hca);
/* To be called around fork(), in the parent; in the child. */
void hv_odp_before_fork(struct hv_hca *hca);
void hv_odp_after_fork(struct hv_hca *hca);

#endif
