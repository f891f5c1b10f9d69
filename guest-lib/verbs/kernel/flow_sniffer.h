/* SPDX-License-Identifier: BSD-2-Clause */
/* The TIRs that get a copy of every frame that an HCA receives and sends (flow_sniffer.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_SNIFFER_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_SNIFFER_H

#include "guest-lib/verbs/kernel/flow.h"

/* Adds a TIR, with the lock of the HCA's flows held. Returns 0 or errno (ENOSPC: no more TIRs can
 * sniff). A TIR may be added several times; it sniffs until it was removed as many times. */
int hv_sniffer_add(struct hv_hca *hca, uint32_t tirn);
/* Removes a TIR even if the device refuses, because the device may be lost
 * (mlx5_del_flow_rules()). */
void hv_sniffer_remove(struct hv_hca *hca, uint32_t tirn);

#endif
