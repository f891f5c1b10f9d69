/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the WQE of a request of ibv_exp_post_send(), with the send queue's lock held: begin, the
 * segments of the opcode (user/send_wqe.h), end. A topic adds its opcodes to the table exp_ops of
 * send.c. A failure is stored by hv_wqe_fail().
 */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_SEND_H
#define HCASIM_GUEST_LIB_VERBS_EXP_SEND_H

#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/user/qp.h"

typedef void (*hv_exp_send_fn)(struct user_qp *qp, const struct ibv_exp_send_wr *wr);

/* Begins a WQE, with the segment of the service type: the SRQ of XRC, the address of DC. wc: the
 * opcode of the completion, for WQE opcodes that ibv_poll_cq() does not know. False: wr_err. */
bool hv_exp_send_begin(struct user_qp *qp, const struct ibv_exp_send_wr *wr, uint8_t opcode,
                       enum ibv_wc_opcode wc, uint32_t imm);
/* Writes the data of the request's list, and posts the WQE. */
void hv_exp_send_end(struct user_qp *qp, const struct ibv_exp_send_wr *wr);

/* Builds IBV_EXP_WR_CQE_WAIT, _SEND_ENABLE and _RECV_ENABLE (task.c). */
void hv_exp_build_cross(struct user_qp *qp, const struct ibv_exp_send_wr *wr);
/* The CQ was resized: the entry that ended the old ring has an index, but is no completion. Later
 * IBV_EXP_WR_CQE_WAITs do not count it. */
void hv_exp_task_resized(struct user_cq *cq);

/* Whether the QP may post atomics: their answers are in the host's order, or the program said that
 * it takes them as they are (qp.c). */
bool hv_exp_may_post_atomics(const struct user_qp *qp);
/* Access flags of a memory window in the terms of enum ibv_access_flags. */
unsigned hv_exp_window_access(uint64_t exp_access);

#endif
