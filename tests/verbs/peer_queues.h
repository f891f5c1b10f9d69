/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of a peer (peer_device.h), for the tests of PeerDirect: a CQ and an RC QP of host 0,
 * connected to a QP of host 1. Each work request adds 1 to a word of host 1, so the word counts the
 * requests that the device executed.
 */
#ifndef HCASIM_TESTS_PEER_QUEUES_H
#define HCASIM_TESTS_PEER_QUEUES_H

#include <check.h>
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/exp/peer.h"
#include "tests/unit/suite.h"
#include "tests/verbs/peer_device.h"
#include "tests/verbs/verbs_table.h"

#define WRS  8u
#define CQES 16u /* of the ring */

struct peer_queues {
    struct verbs_table *v;
    struct peer_device peer;
    struct ibv_mr *near, *far;
    struct ibv_cq *cq, *far_cq;
    struct ibv_qp *qp, *far_qp;
};
extern struct peer_queues pq;

struct ibv_qp *pq_try_qp(struct ibv_exp_peer_direct_attr *attr, struct ibv_cq *cq);
struct ibv_cq *pq_try_cq(struct ibv_exp_peer_direct_attr *attr, int cqe);
void pq_connect_queues(void);
void pq_make_queues(uint64_t caps, bool allocates);
void pq_make_queues_for_peer(void); /* pq.peer is initialised */
void pq_free_queues(void);
void pq_setup(void);
void pq_setup_queues(void);
void pq_teardown(void);
void pq_teardown_queues(void);
int pq_try_post(uint64_t wr_id);
void pq_post(uint64_t wr_id);
struct peer_list pq_commit(uint64_t *id);
struct peer_list pq_commit_one(uint64_t wr_id, uint64_t *id);
void pq_run(struct peer_list *list);
int pq_roll_back(uint64_t id, uint32_t flags);
uint64_t pq_executed(void);
void pq_expect_wc(uint64_t wr_id);
void pq_expect_no_wc(void);
void pq_expect_blocked(void);
uint32_t pq_record(void);

#endif
