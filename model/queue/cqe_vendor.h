/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives the vendor syndrome of error CQEs (err_cqe.vendor_err_synd; ibv_wc.vendor_err). It is one
 * more byte beside the syndrome, which programs print and people look up.
 */
#ifndef HCASIM_MODEL_CQE_VENDOR_H
#define HCASIM_MODEL_CQE_VENDOR_H

#include <stdint.h>

/* The vendor syndrome of a CQE with opcode REQ_ERR or RESP_ERR and this PRM_CQE_SYNDROME_. Never
 * 0. */
uint8_t cqe_vendor_synd(uint8_t opcode, uint8_t syndrome);

#endif
