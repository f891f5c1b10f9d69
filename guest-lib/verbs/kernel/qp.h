/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel half's files about queue pairs share. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_QP_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_QP_H

#include "guest-lib/verbs/kernel/uverbs.h"

/* Fills in what every command that creates or modifies a QP says of it: service, PD, CQs. */
void hv_qp_fill_identity(const struct hv_qp *qp, struct prm_qpc *qpc);
/* What ibv_modify_qp() from one state to another must have in its mask, and may have besides
 * IBV_QP_STATE and IBV_QP_CUR_STATE. IBV_QPT_DRIVER is a DCI. False: there is no such transition in
 * the table. Those to RESET and ERR are not in it: they take nothing else. */
bool hv_qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                      int *required, int *optional);
/* The ECE options that the next command asks for. 0: none, or the device has no ECE. */
uint32_t hv_qp_ece(const struct hv_qp *qp);
/* Sends PRM_CMD_OP_2RST_QP or 2ERR_QP. Returns 0 or errno. */
int hv_qp_stop(struct hv_qp *qp, uint16_t op);

/* Removes the QP from its multicast groups (mcast.c), because its file closes or the device is
 * removed. */
void hv_mcast_leave_all(struct hv_qp *qp);

/* Removes a handle from the handles of its QP (xrc_tgt.c). False: it is the last one, and the QP is
 * destroyed with it. */
bool hv_xrc_tgt_leave(struct hv_qp *qp);

/* DC targets (dct.c). Each returns 0 or errno. The device's DCT is created at RTR, when it also
 * gets its number; it has no other states. */
int hv_dct_create(struct hv_qp *qp);
int hv_dct_modify(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int hv_dct_query(struct hv_qp *qp, struct ibv_qp_attr *attr, int mask);
int hv_dct_destroy(struct hv_qp *qp);

/* The atomic operations that a QP or DCT supports as responder (get_atomic_mode() of mlx5_ib): enum
 * atomic_mode. 0: the device supports none for it. */
unsigned hv_qp_atomic_mode(const struct hv_qp *qp);

/* Raw packet QPs (qp_raw.c): an SQ with its TIS, an RQ with its TIR. Each returns 0 or errno. */
int hv_raw_create(struct hv_qp *qp);
int hv_raw_destroy(struct hv_qp *qp);
/* rate: that of the SQ from now on, if it is ready in the new state. */
int hv_raw_modify(struct hv_qp *qp, enum ibv_qp_state to, const struct hv_rate *rate);
/* Derives the QP's state from the states of its queues. It may be an error that the device has
 * found. */
int hv_raw_query_state(struct hv_qp *qp, enum ibv_qp_state *state);
/* Creates a QP that is a TIR over an indirection table. */
int hv_rss_create(struct hv_qp *qp, const struct ibv_rx_hash_conf *conf);

#endif
