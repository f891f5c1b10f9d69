/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capability sections, for the files that fill them.
 */
#ifndef HCASIM_FW_CAPS_H
#define HCASIM_FW_CAPS_H

#include "fw/fw_internal.h"

bool caps_has_command(uint16_t opcode);

/* Whether the Ethernet half is there: SQs, RQs, TIRs, TISes, RQTs, all of them. */
bool caps_have_ethernet(void);

/* fw/caps_net.c */
void caps_fill_ethernet(const struct fw *fw, bool max, uint8_t *cap);
void caps_fill_flow_table(const struct fw *fw, bool max, uint8_t *cap);

#endif
