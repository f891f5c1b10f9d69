/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for the receive queues of experimental verbs between two hosts in virtual time. Host 0
 * sends raw packets; host 1 has WQs, tables and rules. Each host has a CQ and a page.
 */
#ifndef HCASIM_TESTS_EXP_WQ_BENCH_H
#define HCASIM_TESTS_EXP_WQ_BENCH_H

#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/verbs/verbs_table.h"

#define FRAME 128 /* bytes of a frame */

extern struct verbs_table *v;
extern struct ibv_cq *cq[2];
extern struct ibv_mr *mr[2];

void setup(void);
void teardown(void);

/* Returns the next completion, which succeeded, and must come within 100 virtual seconds. */
struct ibv_exp_wc wc_of(struct ibv_cq *of);

/* The functions of an object (IBV_EXP_INTF_): on a context; on host 1's; of version 0. */
void *family_on(struct ibv_context *context, uint32_t which, uint32_t version, void *obj);
void *family_of(uint32_t which, uint32_t version, void *obj);
void *family(uint32_t which, void *obj);

/* The attributes of the bench's WQs; a WQ with attributes, which is ready; one with the bench's. */
struct ibv_exp_wq_init_attr wq_attr(void);
struct ibv_exp_wq *wq_with(struct ibv_exp_wq_init_attr attr);
struct ibv_exp_wq *wq_new(void);
/* A table of one WQ, and a QP that hashes packets to a table's WQs; NULL with errno. */
struct ibv_exp_rwq_ind_table *table_of(struct ibv_exp_wq *wq);
struct ibv_qp *hashed_with(struct ibv_exp_rwq_ind_table *table, struct ibv_cq *send_cq,
                           struct ibv_cq *recv_cq, struct ibv_srq *srq, struct ibv_qp_cap cap);
struct ibv_qp *hashed(struct ibv_exp_rwq_ind_table *table);

/* A rule for host 1's address and an EtherType. */
struct rule {
    struct ibv_exp_flow_attr attr;
    struct ibv_exp_flow_spec_eth eth;
};
struct rule rule_for(uint16_t ether_type);

/* A raw packet QP of host 0. */
struct ibv_qp *sender(void);
/* Posts a frame of FRAME bytes, which it makes in host 0's page; and waits for its completion. */
void post_frame(struct ibv_qp *qp, uint16_t ether_type);
void send_frame(struct ibv_qp *qp, uint16_t ether_type);

#endif
