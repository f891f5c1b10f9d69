/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files about queue pairs share. */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_QP_H
#define HCASIM_GUEST_LIB_VERBS_USER_QP_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/verbs.h"

void hv_qp_modify_ops(struct verbs_context *ops);
void hv_qp_send_ops(struct verbs_context *ops);
void hv_flow_ops(struct verbs_context *ops);
/* What every command that makes or changes a QP says of it: service, PD, CQs. */
void hv_qp_fill_identity(const struct hv_qp *qp, uint8_t *qpc);
/* PRM_CMD_OP_2RST_QP or 2ERR_QP: 0 or errno. */
int hv_qp_stop(struct hv_qp *qp, uint16_t op);
/* Fills in ibv_wr_*(): 0, or EOPNOTSUPP if an operation is not the service type's. */
int hv_qp_init_builders(struct hv_qp *qp, uint64_t send_ops_flags);
/* Posts to a receive queue, under its lock; the doorbell record is the caller's. */
int hv_rq_post(struct hv_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Takes what there is of the QP out of its CQs. forget: gives its user index back. */
void hv_qp_clean_cqs(struct hv_qp *qp, bool forget);

/* A handle without a QP, of the type XRC_RECV. NULL with errno. */
struct hv_qp *hv_xrc_tgt_handle(struct ibv_context *context, struct ibv_xrcd *xrcd,
                                void *qp_context);
/* Takes a handle from those of its QP. False: it is the last one, and the QP goes with it. */
bool hv_xrc_tgt_leave(struct hv_qp *qp);
/* The QP was modified by this handle; the others learn of it. */
void hv_xrc_tgt_changed(struct hv_qp *qp);

/* Raw packet QPs (qp_raw.c): an SQ with its TIS, an RQ with its TIR. 0 or errno. */
int hv_raw_create(struct hv_qp *qp);
int hv_raw_destroy(struct hv_qp *qp);
int hv_raw_modify(struct hv_qp *qp, enum ibv_qp_state to);
/* What its queues' states make of it, which may be an error that the device has found. */
int hv_raw_query_state(struct hv_qp *qp, enum ibv_qp_state *state);
/* A QP that is a TIR over an indirection table. */
int hv_rss_create(struct hv_qp *qp, const struct ibv_rx_hash_conf *conf);

#endif
