/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up that several old programs share, by calls of experimental verbs. new.h is its port. */
#ifndef HCASIM_TESTS_PROGRAMS_MIGRATION_OLD_H
#define HCASIM_TESTS_PROGRAMS_MIGRATION_OLD_H

#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

/* Returns the next completion, which must come within BOTH_SECONDS and be a success. */
struct ibv_exp_wc old_done(struct ibv_cq *cq);
/* Attributes of an RC QP on this CQ. The caller adds those of its feature, with their bits of
 * comp_mask. */
struct ibv_exp_qp_init_attr old_rc(const struct both *b, struct ibv_cq *cq);
/* A raw packet QP in RTS. max_tso_header: bytes of headers of a TSO request; 0: none are posted. */
struct ibv_qp *old_raw(const struct both *b, uint16_t max_tso_header);
/* A rule that takes all frames to the address of b's device into the QP. */
struct ibv_exp_flow *old_take_all(const struct both *b, struct ibv_qp *qp);
/* A DC initiator in RTS, and a target, with this access key. Requests of the initiator fail after
 * the given number of retries. */
struct ibv_qp *old_initiator(const struct both *b, uint64_t key, uint8_t retries);
struct ibv_exp_dct *old_target(const struct both *b, struct ibv_cq *cq, struct ibv_srq *srq,
                               uint64_t key);

#endif
