/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a device's trace to its owner's log: a line for each command, WQE, CQE and event.
 *
 *     command CREATE_CQ status 0: 04000000 ...     its input mailbox
 *     qp 0x4a: send wqe 3 RDMA_WRITE: 00000308 ...
 *     qp 0x4a: receive wqe 0: 2 pieces, 4096 bytes
 *     cq 0x42: cqe REQ: 00000000 ...
 *     eq 4: event COMP.0: ...                      its event_data
 *
 * After the colon come the bytes in memory order, in dwords (tests/vm/traces.py reads them with the
 * descriptions in prm). Only a function whose owner asked for a trace (fw_config.trace) writes one:
 * callers check hca->tracing first.
 */
#ifndef HCASIM_MODEL_TRACE_H
#define HCASIM_MODEL_TRACE_H

#include "model/core/hca.h"
#include "prm/prm.h"

/* Traces the input of a command and the command's status. Of the len bytes of input, only the first
 * COMMAND_BYTES (model/core/trace.c), which describe objects, are shown, because lists of pages may
 * be long. */
void trace_command(struct hca *hca, uint16_t opcode, uint8_t status, const void *in, size_t len);
/* image: the len bytes of the WQE. */
void trace_send_wqe(struct hca *hca, uint32_t qpn, unsigned index, uint8_t opcode,
                    const uint8_t *image, size_t len);
void trace_recv_wqe(struct hca *hca, uint32_t qpn, unsigned index, unsigned num_sge, uint64_t len);
void trace_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe);
void trace_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe);

#endif
