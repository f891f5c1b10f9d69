/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and page lists, for the kernel half's files that make regions, windows and queues. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_MKEY_H

#include "guest-lib/verbs/kernel/kernel.h"

/* Creates a key from a CREATE_MKEY command in which opcode and variant are still missing; destroys
 * one. 0 or errno. Keys are the kernel's, uid 0, as mlx5_ib's, with a variant (the low byte) that
 * is another one each time. */
int hv_mkey_create(struct hv_hca *hca, struct prm_create_mkey_in *in, size_t in_len, uint32_t *key);
int hv_mkey_destroy(struct hv_hca *hca, uint32_t key);

/* As pinning a range does (ib_umem_get()): 0; EFAULT: some of it is not mapped, or cannot be
 * written although it must be. */
int hv_umem_check(const void *addr, size_t len, bool writable);

/* The pages of a ring, for a command. */
static inline void hv_set_pas(void *pas, const uint8_t *ring, size_t size)
{
    uint8_t *to = pas;

    for (size_t i = 0; i < (size + PCI_PAGE - 1) / PCI_PAGE; i++) {
        prm_store64(to + 8 * i, (uintptr_t)ring + i * PCI_PAGE);
    }
}

#endif
