/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files about queue pairs share. */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_QP_H
#define HCASIM_GUEST_LIB_VERBS_USER_QP_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/user/user.h"

/* What of a raw packet goes into a WQE where layer 2 is wanted there: with a VLAN tag. */
#define HV_L2_HEADER 18

void hv_qp_modify_ops(struct verbs_context *ops);
void hv_qp_send_ops(struct verbs_context *ops);
/* Fills in ibv_wr_*(): 0, or EOPNOTSUPP if an operation is not the service type's. */
int hv_qp_init_builders(struct user_qp *qp, uint64_t send_ops_flags);
/* Posts to a receive queue, under its lock; the doorbell record is the caller's. */
int hv_rq_post(struct hv_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Takes what there is of the QP out of its CQs. forget: gives its user index back. */
void hv_qp_clean_cqs(struct user_qp *qp, bool forget);

/*
 * Puts a WQE that is whole into the send queue (send_wqe.c), between ibv_wr_start() and
 * ibv_wr_complete(): ds 16-byte units; wr_id and flags are those of the struct ibv_qp_ex. The
 * index is filled in; if not raw, QPN, ds and flags as well. wc_opcode is what its completion
 * says. No room: wr_err is ENOMEM.
 */
void hv_wr_post_wqe(struct user_qp *qp, const void *wqe, unsigned ds, enum ibv_wc_opcode wc_opcode,
                    bool raw);

/* Around such WQEs of who is no builder: the send queue's lock, and the doorbell: 0 or EIO. */
void hv_wr_begin_list(struct user_qp *qp);
int hv_wr_end_list(struct user_qp *qp);
/* Where a DCI's message goes, after its builder; stream may be NULL. */
void hv_wr_set_dc_addr(struct user_qp *qp, const struct ibv_ah *ah, uint32_t dctn, uint64_t key,
                       const uint16_t *stream);

/* Creates a QP: as ibv_create_qp_ex(), with what direct verbs add to it, or NULL. NULL with errno.
 */
struct hv_qp_extra {
    enum hv_dc dc;
    uint64_t dct_access_key;
    bool dci_streams;
    uint8_t dci_log_streams, dci_log_errored;
    bool builders; /* ibv_wr_*() are wanted, whatever attr says */
    bool configures_mkeys;
    bool ooo;
    bool no_scatter_to_cqe, allow_scatter_to_cqe;
};
struct ibv_qp *hv_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                            const struct hv_qp_extra *extra);

/* A QP's part of direct verbs (dv_wr.c), freed with free() when the QP goes, with builders for
 * these operations (enum mlx5dv_qp_create_send_ops_flags); NULL: no memory. */
void *hv_dv_qp_new(struct user_qp *qp, uint64_t ops);

#endif
