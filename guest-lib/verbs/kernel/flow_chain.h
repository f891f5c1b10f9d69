/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of an HCA's flows, one chain for each type of tables (flow_chain.c). All functions are
 * called under the HCA's flow_lock.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CHAIN_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CHAIN_H

#include "guest-lib/verbs/kernel/flow_cmd.h"

/* A flow's entry. It stays where it is as long as it is in a table. */
struct hv_flow_entry {
    struct hv_flow_rule rule;
    struct hv_flow_place place;
};

/* Adds the entry of a rule to the table of its priority: 0; ENOSPC; or the errno of a command. */
int hv_flow_chain_add(struct hv_hca *hca, struct hv_flow_entry *entry);
/* 0 or errno: the entry is still there. */
int hv_flow_chain_remove(struct hv_hca *hca, struct hv_flow_entry *entry);
/* Frees what is left of the HCA's chains: tables past which the device refused to lead. */
void hv_flow_chain_free(struct hv_hca *hca);

#endif
