/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare-and-swap under masks and fetch-and-add within fields, as WQEs that the program writes. */
#ifndef HCASIM_TESTS_PROGRAMS_MASKED_WQE_H
#define HCASIM_TESTS_PROGRAMS_MASKED_WQE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum masked_opcode {
    MASKED_SWAP = 0x14,
    MASKED_ADD = 0x15
};

struct masked_wqe {
    enum masked_opcode opcode;
    unsigned size; /* bytes of the number: 4 or 8 */
    /* in the order of the WQE: swap, compare, swap mask, compare mask; or add, boundary */
    uint64_t operands[4];
    uint64_t remote;
    uint32_t rkey, lkey;
    void *local; /* receives the old value */
    uint64_t wr_id;
};

/* Opens a context in which such WQEs can be written (a function for endpoint_open()). */
struct ibv_context *masked_open(struct ibv_device *device);
/* Returns whether the device supports them, with 4 and 8 bytes. */
bool masked_device_has_them(struct ibv_context *ctx);
/* Makes an RC QP for them, for READs and for the atomics of IBTA. */
struct ibv_qp *masked_make_qp(struct ibv_pd *pd, struct ibv_cq *cq);
void masked_post(struct ibv_qp *qp, const struct masked_wqe *w);
/* Returns the reply in w->local: 8 bytes are in the host's order, 4 bytes in the network's. */
uint64_t masked_reply(const struct masked_wqe *w);

#endif
