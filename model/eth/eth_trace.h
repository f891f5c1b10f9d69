/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the WQEs of Ethernet queues to the trace (model/core/trace.h).
 *
 *     sq 0x11: send wqe 0 SEND, 128 bytes: ce=ALWAYS eth{l3_csum=1 inline_hdr_sz=18}
 *     rq 0x5: receive wqe 0, 128 bytes
 *
 * Callers check hca->tracing first.
 */
#ifndef HCASIM_MODEL_ETH_TRACE_H
#define HCASIM_MODEL_ETH_TRACE_H

#include "model/eth/eth_priv.h"
#include "model/eth/eth_stride.h"

/* The SQ starts the WQE whose image of wqe->ds * 16 bytes is at raw. Nothing is written if the SQ
 * has started it before and it waited since. */
void eth_trace_send(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe, const void *raw);
/* The RQ takes a place for a frame of len bytes. */
void eth_trace_receive(struct hca *hca, const struct eth_rq *rq, const struct eth_place *place,
                       size_t len);

#endif
