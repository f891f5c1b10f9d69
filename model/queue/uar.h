/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UAR pages: the doorbells of BAR0. Page n of the BAR is UAR n.
 *
 * A page takes doorbells from ALLOC_UAR to DEALLOC_UAR. Registers (PRM struct uar): 0x20 CQ arm,
 * 0x40 and 0x48 EQ, and from 0x800 on the BlueFlame buffers of 256 bytes each. A 64-bit register
 * may be written by one 8-byte or two 4-byte accesses, low offset first: the first one is latched.
 */
#ifndef HCASIM_MODEL_UAR_H
#define HCASIM_MODEL_UAR_H

#include "model/core/hca.h"

/* The first page that can be allocated: pages below hold the initialization segment. */
#define UAR_FIRST     8
#define UAR_PAGE_SIZE 4096

enum syn uar_alloc(struct hca *hca, uint16_t uid, uint32_t *uarn);
enum syn uar_dealloc(struct hca *hca, uint16_t uid, uint32_t uarn);

/*
 * A write to page uarn at byte offset (below 4096), value big-endian as fw_mmio_write() has it.
 *
 * A send doorbell is the first 8 bytes of a BlueFlame buffer: the first two dwords of the last
 * WQE's control segment. It goes by its QPN to its kind's doorbell (model/core/obj_class.h). A user
 * that goes on to fill the buffer, 8 bytes after 8 bytes, gives the device that WQE itself: once
 * the buffer has all of it, it is taken from there and not from the ring (unless it has been
 * executed by then). Writes to pages that nobody allocated, and doorbells of queues that do not
 * exist, are ignored and logged.
 *
 * True: this was a doorbell, and since the buffer was filled after its last one, more of the WQE
 * is likely to follow at once. The turn that the doorbell asks for is better taken after it.
 */
bool uar_write(struct hca *hca, uint32_t uarn, uint32_t offset, uint64_t value, unsigned size);

#endif
