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

struct fw_profile {
    const char *name;
    struct fw_pci_id pci;
    uint16_t fw_major, fw_minor, fw_subminor;
    uint32_t hw_id;           /* health buffer */
    const char *psid;         /* parameter set id: names the board; 16 characters at most */
    struct hca_limits limits; /* num_msix is taken from the configuration */

    /* Clock of CQE time stamps and of the free-running timer: 1 tick is 1 ns. */
    uint32_t device_frequency_khz;

    /* Ethernet link: legacy protocol bits of PTYS (the driver's enum mlx5e_link_mode). The port
     * runs at the fastest that its administrator allows. */
    uint32_t eth_proto_cap;

    /* Memory that the function asks the host for, in 4 KiB pages */
    uint32_t boot_pages, init_pages;
    uint32_t low_pages;   /* asks for more when fewer are free */
    uint32_t batch_pages; /* how many it asks for or returns at once */

    uint8_t log_max_current_uc_list, log_max_current_mc_list, log_max_vlan_list;
    uint8_t local_ca_ack_delay;
    uint16_t r_roce_min_src_udp_port, r_roce_max_src_udp_port;
};

/* NULL: no such profile. name NULL: the default one. */
const struct fw_profile *fw_profile_find(const char *name);

#endif
