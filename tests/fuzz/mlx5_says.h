/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libmlx5 (rdma-core 44) and the kernel behind it answer to a program's values: a small model
 * of their checks, in their order, that shares nothing with the library under test.
 *
 * Sizes are a ConnectX-5's, one without padding of writes; errors are errno values.
 */
#ifndef HCASIM_TESTS_FUZZ_MLX5_SAYS_H
#define HCASIM_TESTS_FUZZ_MLX5_SAYS_H

#include "guest-lib/verbs/verbs.h"

/* A queue as it is posted to. */
struct says_queue {
    uint32_t posts, gather, inline_data;
    uint32_t outstanding;
};

/* 0 or the errno of ibv_create_cq_ex(). */
int says_create_cq(const struct ibv_cq_init_attr_ex *attr, int vectors);

/* 0 or the errno of ibv_create_srq(); sizes become those of the queue. */
int says_create_srq(struct ibv_srq_attr *attr);

/* 0 or the errno of ibv_create_wq(); likewise. */
int says_create_wq(struct ibv_wq_init_attr *attr);

/* 0 or the errno of ibv_create_qp_ex() of a type but IBV_QPT_DRIVER, without RSS; cap becomes that
 * of the QP, sq and rq what is posted to. */
int says_create_qp(struct ibv_qp_init_attr_ex *attr, struct says_queue *sq, struct says_queue *rq);

/* 0 or the errno that the next request of a list gets. ready: the QP has been in RTS (INIT, for
 * receives) since it was in RESET. */
int says_post_send(const struct says_queue *sq, bool ready, const struct ibv_send_wr *wr);
int says_post_recv(const struct says_queue *rq, bool ready, const struct ibv_recv_wr *wr);

#endif
