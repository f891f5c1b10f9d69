/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capability sections, for the files that fill them.
 */
#ifndef HCASIM_FW_CAPS_H
#define HCASIM_FW_CAPS_H

#include "fw/fw_internal.h"

/* Sections: op_mod >> 1 of QUERY_HCA_CAP and SET_HCA_CAP (the driver's enum mlx5_cap_type). */
enum cap_section_id {
    CAP_GENERAL = 0x0,
    CAP_ETHERNET_OFFLOADS = 0x1,
    CAP_ATOMIC = 0x3,
    CAP_ROCE = 0x4,
    CAP_FLOW_TABLE = 0x7,
    CAP_DEV_EVENT = 0x14,
};

bool caps_has_command(uint16_t opcode);

/* Whether the Ethernet half is there: SQs, RQs, TIRs, TISes, RQTs, all of them. */
bool caps_have_ethernet(void);

/* fw/caps_net.c */
void caps_fill_ethernet(const struct fw *fw, bool max, uint8_t *cap);
void caps_fill_flow_table(const struct fw *fw, bool max, uint8_t *cap);

#endif
