/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reaches the memory of a GPU, which has addresses of this process that no CPU can load from.
 *
 * A registration claims its range. The range is looked up with the CUDA driver, and from then on
 * reads and writes of the range are copies that the driver makes, on a stream of their own, so that
 * they do not wait for the program's kernels. The driver is used only if the process has loaded it
 * (libcuda.so.1). It is never loaded or initialised here.
 *
 * A read returns data that the GPU's memory holds after all earlier writes. A write is only
 * submitted; writes arrive in order, and gpu_settle() waits for them. The owner of the HCA calls it
 * before anything that must come later: a write to other memory, an interrupt, an acknowledgement.
 * This is the order that PCIe gives to the writes of a card. Parts of a message that lie one behind
 * the other are submitted together, at the latest at the end of the turn.
 *
 * If the driver fails (the memory was freed, the context was destroyed, a kernel faulted), an
 * access returns false, as from an address that does not answer. gpu_why() says what the driver
 * said.
 *
 * All functions may be called from any thread. Each access takes one lock for all GPUs. In a child
 * of fork() no memory of a GPU can be reached, because CUDA does not work there.
 * (docs/adr/0021-memory-of-a-gpu-answers-at-its-address.md)
 */
#ifndef HCASIM_GUEST_LIB_HOST_GPU_H
#define HCASIM_GUEST_LIB_HOST_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/core/host.h"

struct gpu_claim;

/* To be called when a range is registered. Returns 0 or errno. *claim is NULL if CPUs reach the
 * range: it is not a GPU's, or it is pinned or managed memory. Otherwise the range is the GPU's,
 * and stays claimed until gpu_release(). EFAULT: a part of the range is not allocated. */
int gpu_claim_range(const void *addr, size_t len, struct gpu_claim **claim);
/* claim may be NULL. */
void gpu_release(struct gpu_claim *claim);

/* Whether the process has a GPU of this number; and whether all of a claim is its memory. */
bool gpu_exists(uint64_t number);
bool gpu_is_of(const struct gpu_claim *claim, uint64_t number);

/* Finds the range that a dma-buf of CUDA stands for. Returns 0, or EOPNOTSUPP: the descriptor is no
 * dma-buf that this process exported with cuMemGetHandleForAddressRange(), or nobody noted that
 * (guest-lib/cuda/front.c). */
int gpu_dmabuf(int fd, uint64_t *addr, size_t *size);

/* Lower and upper bound of all claimed ranges. Both are 0 while there are none. */
extern uint64_t gpu_lowest, gpu_end;

/* Whether an address is in a claimed range. */
bool gpu_has_claimed(uint64_t addr);
static inline bool gpu_has(uint64_t addr)
{
    return addr < __atomic_load_n(&gpu_end, __ATOMIC_RELAXED) &&
           addr >= __atomic_load_n(&gpu_lowest, __ATOMIC_RELAXED) && gpu_has_claimed(addr);
}

/* As dma_read, dma_write and dma_atomic of struct hca_host_ops, for addresses that gpu_has(). */
bool gpu_read(uint64_t addr, void *buf, size_t len);
bool gpu_write(uint64_t addr, const void *buf, size_t len);
bool gpu_atomic(uint64_t addr, size_t len, struct host_atomic *op);

/* As dma_expect, for the next read of the calling thread: it may copy more of its message than it
 * returns, for the reads that follow. 0: nothing is announced. */
void gpu_expect(size_t len);

/* To be called when an HCA has ended a turn: submits the writes that wait for more of their
 * message, and drops what was read in advance, because it may change now. */
void gpu_end_turn(void);

/* Waits until all writes have arrived. False: some did not, because the driver failed. */
bool gpu_settle_writes(void);
extern unsigned gpu_unsettled; /* GPUs with writes that may not have arrived */
static inline bool gpu_settle(void)
{
    return !__atomic_load_n(&gpu_unsettled, __ATOMIC_RELAXED) || gpu_settle_writes();
}

/* The driver's reason when it last failed: a phrase for a log line, valid until the next failure
 * of the calling thread. */
const char *gpu_why(void);

#endif
