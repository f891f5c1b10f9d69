/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and page lists, for the kernel half's files that make memory regions, windows and queues. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H

#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/shadow.h"

/* hv_mkey_create(): creates a key from a CREATE_MKEY command in which opcode and variant are still
 * missing. hv_mkey_destroy(): destroys a key. Both return 0 or errno. As in mlx5_ib, keys are the
 * kernel's, with uid 0, and each key gets another variant (the low byte). */
int hv_mkey_create(struct hv_hca *hca, struct prm_create_mkey_in *in, size_t in_len, uint32_t *key);
int hv_mkey_destroy(struct hv_hca *hca, uint32_t key);

/* As ib_check_mr_access(): 0 or errno. Also refuses what the device does not have. */
int hv_mr_check_access(struct hv_hca *hca, unsigned access);
/* Sets the rights of a region in its context. */
void hv_mr_set_rights(struct hv_hca *hca, struct prm_mkc *mkc, unsigned access);
/* The rights (IBV_ACCESS_) that let a device write to memory (ib_access_writable()). */
#define HV_ACCESS_WRITABLE                                                                         \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |                 \
     IBV_ACCESS_MW_BIND)

/* Checks a range as pinning does (ib_umem_get()). Returns 0; EFAULT: a part of it is not mapped, or
 * is not writable although writable is set. */
int hv_umem_check(const void *addr, size_t len, bool writable);

/* The bytes that page_offset counts in: a program's allocator may let a ring begin inside a page.
 */
#define HV_RING_STEP (PCI_PAGE / 64)
/* The values that page_offset has: 5 bits in the context of a WQ or an RMP (struct wq), else 6. */
#define HV_WQ_OFFSETS    32u
#define HV_QUEUE_OFFSETS 64u

/* Checks that page_offset, which has that many values in the context, can say where a ring begins:
 * 0 or EINVAL (mlx5_umem_find_best_quantized_pgoff()). */
static inline int hv_ring_check(struct hv_hca *hca, const char *verb, const void *ring,
                                unsigned values)
{
    unsigned offset = (uintptr_t)shadow_real(ring) % PCI_PAGE;

    return offset % HV_RING_STEP == 0 && offset / HV_RING_STEP < values
               ? 0
               : hv_refuse(hca, EINVAL,
                           "%s: the ring that the parent domain's alloc() returned begins at byte "
                           "%u of its page; it must begin at a multiple of %u below %u",
                           verb, offset, HV_RING_STEP, values * HV_RING_STEP);
}

/* The number of pages that a ring is on. */
static inline size_t hv_ring_pages(const uint8_t *ring, size_t size)
{
    return ((uintptr_t)shadow_real(ring) % PCI_PAGE + size + PCI_PAGE - 1) / PCI_PAGE;
}

/* Where a ring begins in its first page, for the page_offset of its context. */
static inline uint32_t hv_ring_offset(const uint8_t *ring)
{
    return (uint32_t)((uintptr_t)shadow_real(ring) % PCI_PAGE / HV_RING_STEP);
}

/* Writes a ring's list of pages into a command. */
static inline void hv_set_pas(void *pas, const uint8_t *ring, size_t size)
{
    uintptr_t real = (uintptr_t)shadow_real(ring), first = real - real % PCI_PAGE;
    uint8_t *to = pas;

    for (size_t i = 0; i < hv_ring_pages(ring, size); i++) {
        prm_store64(to + 8 * i, first + i * PCI_PAGE);
    }
}

#endif
