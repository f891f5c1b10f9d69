/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles: one table row per device generation. */
#include <string.h>
#include "fw/profile.h"
#include "model/port/port.h"
#include "prm/prm.h"

static const struct fw_profile profiles[] = {
    {
        .name = "cx5",
        .pci =
            {
                .vendor = 0x15b3,
                .device = 0x1017,
                .subsys_vendor = 0x15b3,
                .subsys = 0x0007,
                .revision = 0,
                .num_msix = 64,
                .bar_size = 32u << 20, /* 2^13 UAR pages of 4 KiB */
                .product = "CX516A - ConnectX-5 QSFP28",
                .part_number = "MCX516A-CCAT",
            },
        .fw_major = 16,
        .fw_minor = 35,
        .fw_subminor = 4030,
        .hw_id = 0x20d,
        .psid = "MT_0000000012",
        .limits =
            {
                .log_max_qp = 18,
                .log_max_cq = 20,
                .log_max_srq = 20,
                .log_max_mkey = 24,
                .log_max_pd = 20,
                .log_max_eq = 7,
                .log_max_uar = 13,
                .log_max_qp_sz = 15,
                .log_max_cq_sz = 22,
                .log_max_srq_sz = 15,
                .log_max_umem = 20,
                .log_max_uctx = 13,
                .log_max_eq_sz = 22,
                .log_max_msg = 30,
                .log_max_ra_res_qp = 4,
                .log_max_ra_req_qp = 4,
                .max_gid = PORT_MAX_GIDS,
                .max_sq_wqe = 1024,
                .max_rq_wqe = 512,
            },
        .eth_proto_cap = 1u << PRM_ETH_LINK_MODE_1000BASE_CX_SGMII |
                         1u << PRM_ETH_LINK_MODE_10GBASE_CR | 1u << PRM_ETH_LINK_MODE_40GBASE_CR4 |
                         1u << PRM_ETH_LINK_MODE_25GBASE_CR | 1u << PRM_ETH_LINK_MODE_50GBASE_CR2 |
                         1u << PRM_ETH_LINK_MODE_100GBASE_CR4,
    },
};

const struct fw_profile *fw_profile_find(const char *name)
{
    if (!name) {
        name = FW_PROFILE_DEFAULT;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(profiles); i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

const char *const *fw_profile_names(void)
{
    static const char *names[G_N_ELEMENTS(profiles) + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(profiles); i++) {
        names[i] = profiles[i].name;
    }
    return names;
}

bool fw_profile_pci_id(const char *profile, struct fw_pci_id *id)
{
    const struct fw_profile *p = fw_profile_find(profile);

    if (p) {
        *id = p->pci;
    }
    return p != NULL;
}
