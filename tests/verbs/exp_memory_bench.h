/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for memory of experimental verbs: a QP of host 0 that takes UMRs, connected to a QP of
 * host 1, and a page of host 1.
 */
#ifndef HCASIM_TESTS_EXP_MEMORY_BENCH_H
#define HCASIM_TESTS_EXP_MEMORY_BENCH_H

#include "guest-lib/verbs/exp/mem.h"
#include "tests/verbs/verbs_table.h"

#define PAGE 4096u
#define RIGHTS                                                                                     \
    (IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE | IBV_EXP_ACCESS_REMOTE_READ |       \
     IBV_EXP_ACCESS_REMOTE_ATOMIC)

extern struct verbs_table *v;
extern struct ibv_pd *pd;          /* of host 0 */
extern struct ibv_cq *cq, *far_cq; /* of host 0, of host 1 */
extern struct ibv_qp *qp, *far_qp;
extern struct ibv_mr *far; /* a page of host 1, with all rights */

void setup(void);
void teardown(void);

/* Registers memory in pd. NULL with errno. */
struct ibv_mr *reg(void *addr, size_t length, uint64_t access);
/* A READ or WRITE of host 0 between memory of a key of its own and the start of host 1's page. */
enum ibv_wc_status move(enum ibv_wr_opcode opcode, uint32_t lkey, uint64_t addr, size_t len);

#endif
