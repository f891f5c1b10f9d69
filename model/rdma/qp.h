/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: their context, their states, and the seam between the parts that work on one.
 *
 *   service.c      what a QP of each service type is and does
 *   qp.c           object, its life, context query; qp_set_state(), the only place that changes
 *                  the state
 *   qp_modify.c    the transition commands as data: which fields each takes
 *   peer.c         the path to who is at the other end
 *   qp_owner.c     what a QP does about its peer that a DCT does otherwise
 *   qp_recv.c      receive WQEs and their completions
 *   requester*.c   send queue: WQEs to packets, ACKs and timeouts to completions; of it flight.c
 *                  keeps what is started, wqe_source.c knows where WQEs come from
 *   responder*.c   received requests: PSN check, execution, ACK/NAK, READ and atomic responses
 *   rq_flush.c     the receive queue in ERR
 *   early.c        packets that come out of order
 *   notification_point.c, reaction_point.c: congestion is told to who causes it, which slows down
 *   dci.c          the initiator of dynamic connections: whom a send queue is connected to
 *   dct.c          their target, and its responders, as an object
 *   xrq_dci.c      an initiator that the device makes itself, for an XRQ
 *   rdma.c         what all QPs of a function share
 *   mcg.c          the multicast groups that it is a member of
 *   roce_rx.c      which QP a packet is for, and whether it may have it (P_Key, Q_Key, GID)
 *
 * States are PRM qp_state: RST, INIT, RTR, RTS, SQER, SQD, ERR, SQ_DRAINING. RTS -> SQ_DRAINING is
 * the command's; the requester goes on to SQD (and raises SQ_DRAINED) when nothing is in flight.
 */
#ifndef HCASIM_MODEL_QP_H
#define HCASIM_MODEL_QP_H

#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "model/port/port.h"
#include "model/rdma/service.h"
#include "model/queue/cq.h"
#include "model/queue/srq.h"
#include "model/queue/wq.h"
#include "model/rdma/peer.h"
#include "model/rdma/requester.h"
#include "model/rdma/rq_flush.h"
#include "prm/prm.h"
#include "wire/encap/roce.h"

#define PSN_MASK 0xffffff

/* Signed distance a - b of two 24-bit PSNs: > 0 if a is later. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

struct dci;

struct qp {
    struct obj obj; /* num is the QPN */
    struct hca *hca;
    struct prm_qpc qpc[1]; /* as last set by commands; live fields are put in on query */

    uint8_t state;               /* PRM_QP_STATE_; changed by qp_set_state() only */
    uint8_t error, vendor_error; /* why it left RTS or RTR, as a CQE has it; 0: by a command */
    const struct service *service;

    /* from qpc, in host order */
    uint32_t pdn, counter_set_id, qkey, user_index;
    uint32_t src_qpn; /* source in a DETH: 1 for QP1 and by qpc.deth_sqpn, else its own */
    uint16_t pkey;    /* the key that primary_address_path.pkey_index names */
    uint16_t mtu;     /* path MTU in bytes: 256..4096 */
    uint8_t log_msg_max;
    uint8_t log_rra_max, log_sra_max; /* responder resources; outstanding READ/atomic */
    uint16_t ack_req_freq; /* request packets from one that asks for an ACK to the next */
    uint8_t retry_count, rnr_retry, ack_timeout, log_rtm, min_rnr_nak;
    bool rre, rwe, rae; /* remote read, write, atomic enable */
    uint8_t atomic_mode;
    /* Bytes of data that a CQE takes: 64, 32 or 0. */
    uint8_t recv_in_cqe, send_in_cqe;
    bool rlky, fre;    /* as created: the reserved lkey may be used, memory be registered by UMR */
    bool rq_signature; /* receive WQEs begin with a signature segment */
    bool block_lb_mc;  /* own multicasts are not delivered to this QP */
    unsigned num_mcgs; /* multicast groups that it is a member of */

    struct obj *pd; /* this and the next are counted in their obj.refs; may be NULL */
    struct cq *send_cq, *recv_cq;
    struct srq *srq;    /* NULL: own RQ, or none; XRC: each request names one */
    struct obj *xrcd;   /* XRC: the domain of those SRQs; counted */
    struct mem_buf buf; /* the ring, shared by rq and sq, which hold no reference */
    struct wq rq, sq;
    bool has_rq, has_sq;

    struct dci *dci; /* NULL: no DCI */
    struct requester req;
    struct peer peer;
    struct rq_flush rq_flush;
};

/* The half of a connection that takes requests (XRC: the target, which has no queue). */
static inline bool qp_is_target(const struct qp *qp)
{
    return qp->service->names_srq && !qp->has_sq;
}

/* It sends requests: its software's, or the device's own (model/rdma/wqe_source.h). */
static inline bool qp_may_request(const struct qp *qp)
{
    return qp->has_sq || qp->req.device;
}

/* The PD that the keys of its receive WQEs are checked against (but for XRC). */
static inline uint32_t qp_recv_pdn(const struct qp *qp)
{
    return qp->srq ? qp->srq->attr.pdn : qp->pdn;
}

/* -- model/rdma/qp.c ------------------------------------------------------------------------------
 */

struct qp *qp_find(struct hca *hca, uint32_t qpn);

/* Bytes of the ring that qpc asks for: receive queue, then send queue. 0: a QP without queues. */
uint64_t qp_ring_size(const struct prm_qpc *qpc);

/* CREATE_QP: qpc as in the command, buf the ring (one reference, taken over on success; empty if
 * qp_ring_size() is 0), dbr the bus address of the doorbell record. wished: 0, or the QP's number,
 * of a range that the same user has reserved (model/rdma/reserved_qpn.h). */
enum syn qp_create_as(struct hca *hca, uint16_t uid, const struct prm_qpc *qpc, struct mem_buf *buf,
                      uint64_t dbr, uint32_t wished, uint32_t *qpn);
static inline enum syn qp_create(struct hca *hca, uint16_t uid, const struct prm_qpc *qpc,
                                 struct mem_buf *buf, uint64_t dbr, uint32_t *qpn)
{
    return qp_create_as(hca, uid, qpc, buf, dbr, 0, qpn);
}
/* Whether the device has that order of data for QPs of this service (enum prm_dp_ordering), with
 * atomics of more than 8 bytes or without. */
bool qp_order_is_ok(const struct qp *qp, unsigned order, bool force, bool long_atomics);
/* QUERY_QP: the whole qpc with the live values (state, PSNs, counters, rings). */
enum syn qp_query(struct hca *hca, uint32_t qpn, struct prm_qpc *qpc);
/* Its extended context: with what the QP failed, zeros else. */
void qp_query_error(struct hca *hca, uint32_t qpn, struct prm_qp_context_extension *ext);
enum syn qp_destroy(struct hca *hca, uint16_t uid, uint32_t qpn);
void qp_free(struct hca *hca, struct obj *obj);
void qp_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

/* Zeroed memory for a QP's queues, which a card keeps in the pages that the driver gave. NULL:
 * refused. */
void *qp_alloc(struct qp *qp, size_t bytes);
void qp_dealloc(struct qp *qp, void *block, size_t bytes); /* NULL is fine */

/* The one place where a QP changes state; a change that is not legal is the caller's mistake and
 * stops the program. Entering ERR flushes both queues with WR_FLUSH_ERR completions; entering RST
 * forgets everything that was in flight. To the state it is in (but RST), and from ERR to
 * anything but RST: no effect. */
void qp_set_state(struct qp *qp, uint8_t state);

/* A fatal error on the QP that no completion can report: ERR plus an async event (WQ_CATAS_ERROR
 * 0x05, WQ_INVAL_REQ_ERROR 0x10, WQ_ACCESS_ERROR 0x11 (device.h MLX5_EVENT_TYPE_*)). */
void qp_fatal(struct qp *qp, uint8_t event_type);
/* What is about to end the QP, or to complete a WQE of it in error: as the CQE says it, or would.
 * opcode: PRM_CQE_OPCODE_REQ_ERR or RESP_ERR. */
void qp_note_error(struct qp *qp, uint8_t opcode, uint8_t syndrome);

/* What the pager was told of one side of the QP has come, or never will: error. Nothing is parked:
 * no effect. */
void qp_resume(struct qp *qp, enum fault_side side, bool error);

/* An async event that names the QP. */
void qp_event(struct qp *qp, uint8_t event_type);

/* Posts a CQE of the QP's; data: see cq_post_data(). A CQ that does not take it takes the QP down:
 * what completed is not acknowledged to a peer, since no program will ever know (IBTA 10.2.9.3). */
void qp_post_cqe_data(struct qp *qp, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                      const struct cqe_data *data);
static inline void qp_post_cqe(struct qp *qp, struct cq *cq, struct prm_cqe64 *cqe, bool solicited)
{
    qp_post_cqe_data(qp, cq, cqe, solicited, NULL);
}

/* What the srqn field of this QP's CQEs carries (CQE version 1): the user index, or for a QP of
 * index 0xffffff, which asks for version 0, the SRQN or 0. */
uint32_t qp_cqe_srqn(const struct qp *qp);

/* -- model/rdma/qp_modify.c ------------------------------------------------------------------- */

/* One of the state transition commands (opcode names it), with its qpc and optional parameter mask:
 * opt_param_mask in bits 31:0, the low half of opt_param_mask_95_32 above it. stream: of a DCI, to
 * be reset if the mask says so. */
enum syn qp_modify(struct hca *hca, uint16_t uid, uint32_t qpn, uint16_t opcode, uint64_t opt_mask,
                   const struct prm_qpc *qpc, uint16_t stream);
/* Sets the fields of *qp that stand for qpc fields. */
void qp_load(struct qp *qp);

/* -- model/rdma/qp_recv.c --------------------------------------------------------------------- */

/* Takes the next receive WQE from the QP's SRQ or RQ, or from xrc_srq, an XRC SRQ or XRQ (else
 * NULL, in all three); advances. */
enum recv_result qp_take_recv(struct qp *qp, struct srq *xrc_srq, struct recv_wqe *wqe);
/* Reads one that was taken again; index: wqe->index. */
enum recv_result qp_reread_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                                struct recv_wqe *wqe);

/* Posts a receive completion, for XRC to the CQ of xrc_srq. opcode: one of PRM_CQE_OPCODE_RESP_;
 * cqe: cqe64 image in which the caller has set what only it knows (immediate, address); data: see
 * cq_post_data(). */
void qp_complete_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                      enum prm_cqe_opcode opcode, uint32_t byte_cnt, bool solicited,
                      struct prm_cqe64 *cqe, const struct cqe_data *data);
/* Receive completion in error; syndrome is PRM_CQE_SYNDROME_. */
void qp_complete_recv_error(struct qp *qp, struct srq *xrc_srq, uint32_t index, uint8_t syndrome);

struct q_counter *qp_counters(struct qp *qp);

/* Completes posted WQEs of the QP's own RQ with WR_FLUSH_ERR, as long as hca_may_go_on(). True:
 * more may be left. */
bool qp_flush_rq(struct qp *qp);

/* -- model/rdma/roce_rx.c: after the checks a packet goes to requester_rx() or responder_rx() -- */

/* IPv6 ff00::/8, and IPv4 224.0.0.0/4 as ::ffff:a.b.c.d. */
bool roce_gid_is_multicast(const uint8_t gid[16]);

/* Whether the packet is of the peer's connection: source and destination as in its path. */
bool roce_rx_is_of_connection(struct peer *peer, const struct roce_packet *pkt);

/* Whether two P_Keys are of one partition, with one full member at least. */
bool roce_rx_pkey_ok(uint16_t theirs, uint16_t ours);

/* For struct port_receivers: a packet that arrived; and whether QPs of this HCA are members of the
 * group to which a datagram is sent, but those with block_lb_mc. */
void roce_rx(struct hca *hca, const struct roce_packet *pkt);
bool roce_wants_copy(struct hca *hca, const struct roce_addr *addr);

#endif
