/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare-and-swap under masks and fetch-and-add within fields, as WQEs written by the program. */
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
    unsigned size; /* of the number: 4 or 8 */
    /* in the order of the WQE: swap, compare, swap mask, compare mask; or add, boundary */
    uint64_t operands[4];
    uint64_t remote;
    uint32_t rkey, lkey;
    void *local; /* where what was there before comes */
    uint64_t wr_id;
};

/* A context in which such WQEs can be written (a function for endpoint_open()). */
struct ibv_context *masked_open(struct ibv_device *device);
/* Whether the device has them, with 4 and 8 bytes. */
bool masked_device_has_them(struct ibv_context *ctx);
/* An RC QP for them, for READs and for the atomics of IBTA. */
struct ibv_qp *masked_make_qp(struct ibv_pd *pd, struct ibv_cq *cq);
void masked_post(struct ibv_qp *qp, const struct masked_wqe *w);
/* What came to w->local: 8 bytes come in the host's order, 4 in the network's. */
uint64_t masked_reply(const struct masked_wqe *w);

#endif
