/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declares the structures and functions that the files of on-demand paging share.
 *
 *   odp.c        regions and their keys: registration, translation entries, invalidation
 *   odp_pages.c  pages of the process: makes them present, tells which are present
 *   odp_fault.c  page faults: which pages an event asks for; prefetch
 *   odp_pager.c  the pager: its queue, its thread, notes of changed memory
 *
 * Locks: odp->lock is taken before the command lock of the HCA. The lock of the queue is a leaf.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_ODP_INTERNAL_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_ODP_INTERNAL_H

#include "guest-lib/host/fork_gate.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/odp.h"

/* Rights of a page, as the bits of a translation entry (MLX5_IB_MTT_READ, _WRITE). */
#define ODP_READ  1u
#define ODP_WRITE 2u

/* A region, or a child of an implicit region: 1 GiB of it in which pages were present. */
struct odp_region {
    struct hv_hca *hca;
    uint32_t key, pdn;
    unsigned access;
    bool writable;       /* as it was registered (umem->writable) */
    uint64_t start, len; /* user addresses */
    uint64_t iova;       /* the key's address of start */
    unsigned log_page;
    uint64_t first;      /* start, rounded down to a page of the region */
    uint64_t num_pages;  /* 0: an implicit region */
    uint8_t *pages;      /* ODP_ rights that the device has for each page */
    uint64_t num_mapped; /* pages with rights */
    unsigned repeats; /* page faults in a row that asked for pages which the device had already */
    struct odp_region *parent;
    GHashTable *children; /* of an implicit region: by number (address >> ODP_CHILD_SHIFT) */
    uint32_t null_key;    /* of an implicit region, in the memory scheme; else 0 */
    unsigned users;       /* page faults and prefetches that work on it */
};

/* The region of a key that may fault, or what is known of an indirect key. */
struct odp_key {
    uint32_t key;
    enum {
        ODP_KEY_REGION,
        ODP_KEY_CHILD,    /* of an implicit region, in the memory scheme only */
        ODP_KEY_NULL,     /* the null key of an implicit region */
        ODP_KEY_INDIRECT, /* names other keys; the variant byte may have changed */
    } kind;
    struct odp_region *region;
    uint32_t num_desc;
};

/* How pages are brought in. */
enum odp_how {
    ODP_FAULT,    /* made present, for writing if the region is writable */
    ODP_FOR_READ, /* made present, for reading (MLX5_PF_FLAGS_DOWNGRADE) */
    ODP_SNAPSHOT, /* only pages that are present (MLX5_PF_FLAGS_SNAPSHOT) */
};

struct odp_pager;

/* On-demand paging of an HCA. */
struct odp {
    struct hv_hca *hca;
    pthread_mutex_t lock;    /* around everything below, and what the regions hold */
    pthread_cond_t unused;   /* some region's users became 0 */
    GHashTable *keys;        /* key index -> struct odp_key */
    GPtrArray *regions;      /* struct odp_region with pages */
    bool by_memory;          /* the device reports faults by memory, not by queue */
    struct odp_pager *pager; /* NULL: there was no region yet */
    /* pages: asked for by faults, invalidated, prefetched (mlx5_update_odp_stats()); and events */
    struct {
        uint64_t faults, invalidations, prefetched, events;
    } stats;
};

/* -- odp.c ------------------------------------------------------------------------------------- */

#define ODP_CHILD_SHIFT 30
#define ODP_CHILD_SIZE  ((uint64_t)1 << ODP_CHILD_SHIFT)
/* 1 GiB each, for user addresses of 47 bits (mlx5_imr_ksm_entries) */
#define ODP_CHILDREN ((uint64_t)1 << 17)

/* The entry of a key. NULL with *err: ENOENT: the key is not one that may fault; EFAULT: it has
 * another variant byte. With the lock held. */
const struct odp_key *odp_find(struct odp *odp, uint32_t key, int *err);
/* Brings in the pages of a range of user addresses that lies in the region. The region has a user
 * meanwhile; the lock is not held. count: counts pages. Returns 0 or errno: EFAULT: not all of the
 * memory is accessible, or not for writing. */
int odp_bring_in(struct odp *odp, struct odp_region *region, uint64_t va, uint64_t len,
                 enum odp_how how, uint64_t *count);
void odp_use(struct odp_region *region);
void odp_unuse(struct odp *odp, struct odp_region *region);
/* Takes from the device the pages of all regions in this range of addresses. */
void odp_invalidate(struct odp *odp, uint64_t start, uint64_t end);

/* -- odp_pages.c ------------------------------------------------------------------------------- */

/* Makes whole pages present: 0 or EFAULT. May wait, as any access to memory. */
int odp_pages_touch(uint64_t start, uint64_t len, bool writable);
/* Whether the range consists of pages of 2 MiB. */
bool odp_pages_are_huge(uint64_t start, uint64_t len);
/* Stores for each page whether it is present. */
void odp_pages_present(uint64_t start, uint64_t num, unsigned log_page, bool *present);

/* -- odp_fault.c ------------------------------------------------------------------------------- */

/* Answers a page fault. */
void odp_fault_answer(struct odp *odp, const struct drv_event *event);

/* A part of ibv_advise_mr() that waits for the pager. */
struct odp_prefetch {
    enum odp_how how;
    unsigned num;
    struct odp_part {
        struct odp_region *region; /* has a user */
        uint64_t io_virt, len;
    } parts[];
};
void odp_prefetch_do(struct odp *odp, struct odp_prefetch *prefetch);

/* -- odp_pager.c ------------------------------------------------------------------------------- */

/* Starts the pager. Returns 0 or errno. */
int odp_pager_start(struct odp *odp);
/* Leaves work to the pager, which frees it. */
void odp_pager_prefetch(struct odp *odp, struct odp_prefetch *prefetch);
/* In a world: does one piece of the pager's work. False: there is none, or the pager is a thread.
 */
bool odp_pager_help(struct odp *odp);
/* The regions cover these addresses, so changes of memory there matter. */
void odp_pager_covers(struct odp *odp, uint64_t start, uint64_t end);

#endif
