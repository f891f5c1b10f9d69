/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UAR pages: the doorbells of BAR0. Page n of the BAR is UAR n.
 */
#ifndef HCASIM_MODEL_UAR_H
#define HCASIM_MODEL_UAR_H

#include "model/hca.h"

/* UAR index of the first page that can be allocated: pages below hold the initialization segment. */
#define UAR_FIRST 8

enum syn uar_alloc(struct hca *hca, uint16_t uid, uint32_t *uarn);
enum syn uar_dealloc(struct hca *hca, uint16_t uid, uint32_t uarn);
void uar_free(struct hca *hca, struct obj *obj);

/* A write to page uarn at byte offset (below 4096), value big-endian as fw_mmio_write() has it. */
void uar_write(struct hca *hca, uint32_t uarn, uint32_t offset, uint64_t value, unsigned size);

/*
 * Send doorbell (BlueFlame register, first 8 bytes): the first two dwords of the last WQE's control
 * segment. Dispatches by QPN to qp_send_doorbell() or eth_sq_doorbell().
 */

#endif
