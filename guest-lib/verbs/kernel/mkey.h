/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and page lists, for the kernel half's files that make memory regions, windows and queues. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H

#include "guest-lib/verbs/kernel/kernel.h"

/* hv_mkey_create(): creates a key from a CREATE_MKEY command in which opcode and variant are still
 * missing. hv_mkey_destroy(): destroys a key. Both return 0 or errno. As in mlx5_ib, keys are the
 * kernel's, with uid 0, and each key gets another variant (the low byte). */
int hv_mkey_create(struct hv_hca *hca, struct prm_create_mkey_in *in, size_t in_len, uint32_t *key);
int hv_mkey_destroy(struct hv_hca *hca, uint32_t key);

/* Checks a range as pinning does (ib_umem_get()). Returns 0; EFAULT: a part of it is not mapped, or
 * is not writable although writable is set. */
int hv_umem_check(const void *addr, size_t len, bool writable);

/* Writes a ring's list of pages into a command. */
static inline void hv_set_pas(void *pas, const uint8_t *ring, size_t size)
{
    uint8_t *to = pas;

    for (size_t i = 0; i < (size + PCI_PAGE - 1) / PCI_PAGE; i++) {
        prm_store64(to + 8 * i, (uintptr_t)ring + i * PCI_PAGE);
    }
}

#endif
