/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: their context, their states, and the seam between the parts that work on one.
 *
 *   model/qp.c         object, state machine (legal transitions as data; qp_set_state() is the one place
 *                      that changes the state), context parse and query
 *   model/requester*.c send queue: WQEs to packets, ACKs and timeouts to completions
 *   model/responder*.c received requests: PSN check, execution, ACK/NAK, READ and atomic responses
 *   model/roce_rx.c    which QP a packet is for, and whether it may have it (P_Key, Q_Key, GID)
 *
 * States are PRM qp_state: RST, INIT, RTR, RTS, SQER, SQD, ERR, SQDRAINING.
 */
#ifndef HCASIM_MODEL_QP_H
#define HCASIM_MODEL_QP_H

#include "model/cq.h"
#include "model/hca.h"
#include "model/requester.h"
#include "model/responder.h"
#include "model/srq.h"
#include "model/wq.h"
#include "prm/prm.h"
#include "wire/packet.h"

#define PSN_MASK 0xffffff

/* Signed distance a - b of two 24-bit PSNs: > 0 if a is later. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

struct qp {
    struct obj obj; /* num is the QPN */
    struct hca *hca;
    uint8_t qpc[PRM_SIZE(qpc)]; /* as last set by commands; live fields are put in on query */
    uint64_t opt_extra;         /* qpc extension words kept for query */

    uint8_t state; /* PRM_QP_STATE_ */
    uint8_t st;    /* service type: PRM_QP_ST_RC, _UC, _UD, ..., _REG_UMR, _QP1 (GSI) */

    /* from qpc, in host order */
    uint32_t pdn, counter_set_id, qkey, remote_qpn, user_index;
    uint16_t pkey;        /* the key that primary_address_path.pkey_index names */
    uint16_t mtu;         /* path MTU in bytes: 256..4096 */
    uint8_t log_msg_max;
    uint8_t log_rra_max, log_sra_max; /* responder resources; outstanding READ/atomic */
    uint8_t retry_count, rnr_retry, ack_timeout, min_rnr_nak;
    bool rre, rwe, rae;   /* remote read, write, atomic enable */
    uint8_t atomic_mode;
    bool sig_all;         /* inverse of per-WQE signalling is not in mlx5: kept for block_lb etc. */
    bool rq_signature, scatter_fcs;
    uint8_t cs_req, cs_res; /* scatter-to-CQE modes */
    struct roce_addr path;  /* towards the remote QP: connected transports; UD uses the WQE's AV */
    int sgid_index;         /* of the primary path */

    struct cq *send_cq, *recv_cq; /* counted in their obj.refs; may be NULL */
    struct srq *srq;              /* counted; NULL: own RQ */
    struct wq rq;                 /* log_size 0 and no buffer: none */
    struct wq sq;
    bool has_rq, has_sq;

    struct requester req;
    struct responder resp;
};

/* -- model/qp.c ------------------------------------------------------------------------------ */

struct qp *qp_find(struct hca *hca, uint32_t qpn);

/* CREATE_QP: qpc as in the command, buf the ring (one reference, taken over on success; may be
 * empty for a QP without queues). */
enum syn qp_create(struct hca *hca, uint16_t uid, const void *qpc, struct mem_buf *buf,
                   uint32_t *qpn);
/* One of the state transition commands (opcode names it), with its opt_param_mask and qpc. */
enum syn qp_modify(struct hca *hca, uint16_t uid, uint32_t qpn, uint16_t opcode,
                   uint32_t opt_param_mask, const void *qpc);
/* QUERY_QP: the whole qpc with the live values (state, PSNs, counters, rings). */
enum syn qp_query(struct hca *hca, uint32_t qpn, void *qpc);
enum syn qp_destroy(struct hca *hca, uint16_t uid, uint32_t qpn);
void qp_free(struct hca *hca, struct obj *obj);

/* The one place where a QP changes state. Entering ERR flushes both queues with WR_FLUSH_ERR
 * completions; entering RST forgets everything that was in flight. */
void qp_set_state(struct qp *qp, uint8_t state);

/* A fatal error on the QP that no completion can report: ERR plus an async event (WQ_CATAS_ERROR
 * 0x05, WQ_INVAL_REQ_ERROR 0x10, WQ_ACCESS_ERROR 0x11 (device.h MLX5_EVENT_TYPE_*)). */
void qp_fatal(struct qp *qp, uint8_t event_type);

/* Takes the next receive WQE from the QP's SRQ or RQ; advances. */
enum recv_result qp_take_recv(struct qp *qp, struct recv_wqe *wqe);

/* Posts a receive completion. cqe: cqe64 image with byte count, imm etc. set by the caller; the
 * QPN, wqe_counter and SRQN are put in here. */
void qp_complete_recv(struct qp *qp, const struct recv_wqe *wqe, void *cqe, bool solicited);
/* Receive completion in error; syndrome is PRM_CQE_SYNDROME_. */
void qp_complete_recv_error(struct qp *qp, const struct recv_wqe *wqe, uint8_t syndrome);

struct q_counter *qp_counters(struct qp *qp);

/* -- model/roce_rx.c: after the checks a packet goes to requester_rx() or responder_rx() ------- */

#endif
