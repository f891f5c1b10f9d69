/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device generations as data: identity, sizes, and which optional abilities are presented.
 *
 * A profile never grants what the model cannot do: it picks from it.
 */
#ifndef HCASIM_FW_PROFILE_H
#define HCASIM_FW_PROFILE_H

#include "fw/fw.h"
#include "model/core/hca.h"
#include "model/port/uplink.h"

/* The most that a field of QUERY_HCA_CAP can be. Sizes that the model holds objects to are in
 * limits instead. */
struct fw_cap_limit {
    uint16_t section; /* enum prm_hca_cap_type */
    uint32_t field;   /* PRM_..._FIELD */
    uint64_t most;    /* 0: the ability is missing */
};

struct fw_profile {
    const char *name;
    struct fw_pci_id pci;
    uint16_t fw_major, fw_minor, fw_subminor;
    uint32_t hw_id;           /* health buffer */
    const char *psid;         /* parameter set id: names the board; 16 characters at most */
    struct hca_limits limits; /* num_msix is taken from the configuration */
    /* What the generation has less of than the model; ends with a row whose field is 0. NULL: it
     * has all. */
    const struct fw_cap_limit *at_most;

    /* The port runs at the fastest of these that its administrator allows. */
    struct link_modes eth_modes;
};

/* NULL: no such profile. name NULL: the default one. */
const struct fw_profile *fw_profile_find(const char *name);

#endif
