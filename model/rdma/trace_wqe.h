/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the WQEs of a device's trace (model/core/trace.h): one line for each, with its segments by
 * name.
 *
 *     qp 0x4a: send wqe 0 RDMA_WRITE ce=ALWAYS raddr{raddr=0x7f3a10 rkey=0x1800} data{byte_count=64
 *         lkey=0x1900 addr=0x7f4a10}         (one line)
 *     qp 0x4b: receive wqe 0, 100 bytes: data{byte_count=100 lkey=0x1900 addr=0x7f4a10}
 */
#ifndef HCASIM_MODEL_TRACE_WQE_H
#define HCASIM_MODEL_TRACE_WQE_H

#include "model/rdma/qp.h"
#include "model/rdma/send_wqe.h"
#include "prm/line.h"

/* Traces a WQE that the QP starts, also a malformed one. */
void trace_send_wqe(const struct qp *qp, const struct send_wqe *wqe);
/* Traces a WQE that the QP takes for a message. */
void trace_recv_wqe(const struct qp *qp, const struct srq *srq, const struct recv_wqe *wqe);

/* Describes the len bytes of a send WQE of a QP with that service, whatever they are: an opcode
 * that does not exist, and segments that the WQE is too short for, are described as such. */
void trace_describe_send_wqe(struct prm_line *line, const struct service *service,
                             const uint8_t *image, size_t len);

#endif
