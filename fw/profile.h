/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device generations as data: identity, sizes, and which optional abilities they have.
 *
 * A profile only selects from what the model supports.
 */
#ifndef HCASIM_FW_PROFILE_H
#define HCASIM_FW_PROFILE_H

#include "fw/fw.h"
#include "model/core/hca.h"
#include "model/port/uplink.h"

/* The largest value of a field of QUERY_HCA_CAP. Sizes that the model enforces are in limits
 * instead. */
struct fw_cap_limit {
    uint16_t section; /* enum prm_hca_cap_type */
    uint32_t field;   /* PRM_..._FIELD */
    uint64_t most;    /* 0: the ability is not present */
};

struct fw_profile {
    const char *name;
    struct fw_pci_id pci;
    uint16_t fw_major, fw_minor, fw_subminor;
    uint32_t hw_id;           /* id in the health buffer */
    const char *psid;         /* parameter set id, which names the board; at most 16 characters */
    struct hca_limits limits; /* except num_msix, which comes from the configuration */
    /* The capabilities in which the generation has less than the model; ends with a row whose field
     * is 0. NULL: it has all. */
    const struct fw_cap_limit *at_most;

    /* The port uses the fastest of these modes that its administrator allows. */
    struct link_modes eth_modes;
};

/* NULL: there is no such profile. name NULL means the default profile. */
const struct fw_profile *fw_profile_find(const char *name);

#endif
