/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a request on an object failed. Functions that carry out commands return one of these;
 * SYN_OK is 0. Status, 32-bit code and text of each stand in model/core/syndromes.def.
 */
#ifndef HCASIM_MODEL_SYNDROME_H
#define HCASIM_MODEL_SYNDROME_H

#include <stdint.h>

enum syn {
    SYN_OK = 0,
#define SYN(name, status, code, text) SYN_##name,
#include "model/core/syndromes.def"
#undef SYN
    SYN_COUNT,
    SYN_AGAIN, /* not done yet, to be called again (fw/cmd.h); it has no status, software never sees
                  it */
};

/* PRM command status (enum cmd_status) that a failure is reported with. */
uint8_t syn_status(enum syn syn);
/* The value of the output's syndrome field. */
uint32_t syn_code(enum syn syn);
const char *syn_text(enum syn syn);

#endif
