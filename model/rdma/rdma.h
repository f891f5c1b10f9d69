/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State that the QPs of a function share: multicast groups, the GSI QP, the responders of DC
 * targets, notices, and the memory that a QP needs only while it works.
 */
#ifndef HCASIM_MODEL_RDMA_H
#define HCASIM_MODEL_RDMA_H

#include "model/rdma/dct.h"
#include "model/rdma/early.h"
#include "model/rdma/flight.h"
#include "model/rdma/mcg.h"
#include "model/rdma/notice.h"
#include "model/rdma/paging.h"
#include "model/rdma/wqe_lines.h"

struct hca;
struct qp;

/* What all QPs of the function have sent and seen since it was made; a reset keeps the numbers. */
struct rdma_counts {
    uint64_t messages; /* started by send queues, those to memory of the device itself excepted */
    uint64_t receives; /* receive WQEs completed */
    uint64_t retransmitted; /* request packets sent again */
    uint64_t ack_timeouts, naks_sent, naks_received, rnr_naks_sent, rnr_naks_received;
    uint64_t out_of_sequence, duplicates; /* requests received */
};

struct rdma {
    struct qp *gsi_qp; /* takes packets to QPN 1; NULL: there is none */
    struct mcg_table mcgs;
    struct flight_pool flights;
    struct wqe_lines lines;
    struct dc_pool dc;
    struct early_pool early;
    struct notices notices;
    struct fault_pager paging;
    struct rdma_counts counts;
    char invalid[192]; /* why the last invalid request is invalid (responder_invalid()) */
};

void rdma_init(struct hca *hca);
/* Called after the function's QPs are gone. */
void rdma_reset(struct hca *hca);
void rdma_clear(struct hca *hca);

#endif
