/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for queues of experimental verbs between two hosts in virtual time. Each host has a CQ
 * with time stamps, a page with all rights, and an RC QP, which is connected to the other host's.
 */
#ifndef HCASIM_TESTS_EXP_QUEUES_BENCH_H
#define HCASIM_TESTS_EXP_QUEUES_BENCH_H

#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/verbs/verbs_table.h"

extern struct verbs_table *v;
extern struct ibv_cq *cq[2];
extern struct ibv_mr *mr[2];
extern struct ibv_qp *qp[2];

void setup(void);
void teardown(void);

/* Makes a CQ. NULL with errno. */
struct ibv_cq *cq_new(int side, uint32_t comp_mask, uint32_t flags);
/* The attributes of the bench's QPs, and a QP of attributes; NULL with errno. */
struct ibv_exp_qp_init_attr qp_attr(int side);
struct ibv_qp *qp_new(int side, struct ibv_exp_qp_init_attr attr);

/* Returns the next completion, which must come within 100 virtual seconds. */
struct ibv_exp_wc wc_of(struct ibv_cq *of);
/* Posts a request to host 0's QP: 0 or errno. */
int post(struct ibv_exp_send_wr *wr);
/* Posts a signalled request to that host's QP, and returns its completion. */
struct ibv_exp_wc complete_on(int side, struct ibv_exp_send_wr *wr);
struct ibv_exp_wc complete(struct ibv_exp_send_wr *wr);
/* Posts a receive of 64 bytes at the start of host 1's page, with wr_id 7. */
void post_recv(void);

/* A masked atomic on the start of host 1's page, with operands of 1 << log_size bytes. Its answer
 * goes to the start of host 0's page. */
struct ibv_exp_send_wr masked(struct ibv_sge *sge, unsigned log_size, bool swap);

#endif
