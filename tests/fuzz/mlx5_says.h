/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small model of the checks that libmlx5 (rdma-core 44) and the kernel behind it make of a
 * program's values, in their order. It shares no code with the library under test.
 *
 * Sizes are those of a ConnectX-5 that does not pad writes; errors are errno values.
 */
#ifndef HCASIM_TESTS_FUZZ_MLX5_SAYS_H
#define HCASIM_TESTS_FUZZ_MLX5_SAYS_H

#include "guest-lib/verbs/verbs.h"

/* A queue as a program posts to it. */
struct says_queue {
    uint32_t posts, gather, inline_data;
    uint32_t outstanding;
};

/* 0 or the errno of ibv_create_cq_ex(). */
int says_create_cq(const struct ibv_cq_init_attr_ex *attr, int vectors);

/* Returns 0 or the errno of ibv_create_srq(); sets the sizes to those of the queue. */
int says_create_srq(struct ibv_srq_attr *attr);

/* Returns 0 or the errno of ibv_create_wq(); sets the sizes likewise. */
int says_create_wq(struct ibv_wq_init_attr *attr);

/* Returns 0 or the errno of ibv_create_qp_ex() for any type but IBV_QPT_DRIVER, without RSS. cap
 * becomes that of the QP; sq and rq describe its queues. */
int says_create_qp(struct ibv_qp_init_attr_ex *attr, struct says_queue *sq, struct says_queue *rq);

/* Returns 0 or the errno for the next request of a list. ready: the QP has been in RTS (INIT, for
 * receives) since it was in RESET. */
int says_post_send(const struct says_queue *sq, bool ready, const struct ibv_send_wr *wr);
int says_post_recv(const struct says_queue *rq, bool ready, const struct ibv_recv_wr *wr);

#endif
