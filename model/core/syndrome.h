/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reasons why a request on an object failed. Functions that carry out commands return one of
 * these syndromes; SYN_OK is 0. model/core/syndromes.def has the status, 32-bit code and text of
 * each.
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
    /* not done yet, call again (fw/cmd.h); it has no status, and software never sees it */
    SYN_AGAIN,
};

/* The PRM command status (enum cmd_status) with which the failure is reported. */
uint8_t syn_status(enum syn syn);
/* The value of the output's syndrome field. */
uint32_t syn_code(enum syn syn);
const char *syn_text(enum syn syn);

#endif
