/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes targets and initiators of DC that are ready to use. */
#ifndef HCASIM_TESTS_PROGRAMS_DC_QUEUES_H
#define HCASIM_TESTS_PROGRAMS_DC_QUEUES_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>

/* Each function returns NULL if the device has no such queue. A DCT is in RTR. */
struct ibv_qp *dc_make_dct(struct ibv_srq *srq, struct ibv_cq *cq, uint64_t key, unsigned gid_index,
                           unsigned access);

struct dci_attr {
    struct ibv_cq *cq;
    struct ibv_qp_cap cap;
    uint64_t operations;                      /* enum ibv_qp_create_send_ops_flags */
    uint8_t timeout;                          /* as for an RC QP */
    const struct mlx5dv_dci_streams *streams; /* NULL: none */
};

/* The DCI is in RTS. */
struct ibv_qp *dc_make_dci(struct ibv_pd *pd, const struct dci_attr *with);
void dc_start_dci(struct ibv_qp *qp, uint8_t timeout);

#endif
