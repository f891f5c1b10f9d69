/* SPDX-License-Identifier: BSD-2-Clause */
/* Who gets a copy of every frame that an HCA takes and sends (flow_sniffer.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_SNIFFER_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_SNIFFER_H

#include "guest-lib/verbs/kernel/flow.h"

/* With the lock of the HCA's flows: 0 or errno (ENOSPC: as many sniff as can). A TIR may be added
 * again, and then sniffs until it was removed as often. */
int hv_sniffer_add(struct hv_hca *hca, uint32_t tirn);
/* Whatever the device says, which may be lost (mlx5_del_flow_rules()). */
void hv_sniffer_remove(struct hv_hca *hca, uint32_t tirn);

#endif
