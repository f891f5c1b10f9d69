/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up that several new programs share, by rdma-core's calls. old.h has the calls before. */
#ifndef HCASIM_TESTS_PROGRAMS_MIGRATION_NEW_H
#define HCASIM_TESTS_PROGRAMS_MIGRATION_NEW_H

#include "tests/programs/migration/both.h"

/* Waits for the next completion, which must come within BOTH_SECONDS and be a success. The caller
 * reads it by ibv_wc_read_*(), and ends the poll by ibv_end_poll(). */
void new_done(struct ibv_cq_ex *cq);
/* A raw packet QP in RTS. max_tso_header: bytes of headers of a TSO request; 0: none are posted. */
struct ibv_qp *new_raw(const struct both *b, uint16_t max_tso_header);
/* A rule that takes all frames to the address of b's device into the QP. */
struct ibv_flow *new_take_all(const struct both *b, struct ibv_qp *qp);

#endif
