/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UAR pages: the doorbells of BAR0. Page n of the BAR is UAR n. They end where the windows of the
 * device memory begin (model/memory/memic.h).
 *
 * A page takes doorbells from ALLOC_UAR to DEALLOC_UAR. Its registers (PRM struct uar) are 0x20 CQ
 * arm, 0x40 and 0x48 EQ, 0x600 the send doorbell of queues without a doorbell record, and from
 * 0x800 on the BlueFlame buffers of 256 bytes each. A 64-bit register may be written by one 8-byte
 * or two 4-byte accesses, low offset first; the first half is latched.
 */
#ifndef HCASIM_MODEL_UAR_H
#define HCASIM_MODEL_UAR_H

#include "model/core/hca.h"

/* The first page that can be allocated. The pages below it hold the initialization segment. */
#define UAR_FIRST     8
#define UAR_PAGE_SIZE 4096

enum syn uar_alloc(struct hca *hca, uint16_t uid, uint32_t *uarn);
enum syn uar_dealloc(struct hca *hca, uint16_t uid, uint32_t uarn);

/* The producer counter that a doorbell at register 0x600 tells (see uar_write()). A block of a WQE
 * has four units of ds. */
static inline uint16_t uar_told_counter(uint64_t doorbell)
{
    return (uint16_t)((doorbell >> 40) + ((doorbell & 0x3f) + 3) / 4);
}

/*
 * Handles a write of value to page uarn at byte offset (below 4096). value has the byte order of
 * fw_mmio_write().
 *
 * The first 8 bytes of a BlueFlame buffer are a send doorbell: the first two dwords of the last
 * WQE's control segment. The QPN in them leads to the doorbell function of the queue's kind
 * (model/core/obj_class.h). If the user goes on to fill the buffer in order, 8 bytes at a time, the
 * device gets that WQE itself. Once the buffer has the whole WQE, the device takes it from there
 * and not from the ring (unless the WQE has been executed by then). Writes to pages that are
 * not allocated, and doorbells of queues that do not exist, are ignored and logged.
 *
 * Returns true if this was a doorbell and the buffer was filled after the previous doorbell. Then
 * more of the WQE is likely to follow at once, and the turn that the doorbell asks for should come
 * after it.
 *
 * The register 0x600 takes the same two dwords for a queue without a doorbell record. There they
 * tell the producer counter: they are the first dwords of the last WQE, so the counter is wqe_index
 * plus the blocks of ds (rdma-core: tests/mlx5_base.py). If ds is 0, wqe_index is the counter
 * itself (gpunetio: doca_gpu_dev_verbs_submit_db_no_dbr()).
 */
bool uar_write(struct hca *hca, uint32_t uarn, uint32_t offset, uint64_t value, unsigned size);

#endif
