/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: their context, their states, and the interfaces between the files that work on a QP.
 *
 *   service.c      the properties of each service type
 *   qp.c           object, life, context query; qp_set_state(), the only place that changes
 *                  the state
 *   qp_modify.c    the transition commands as data: which fields each takes
 *   peer.c         the path to the other end
 *   qp_owner.c     how a QP handles its peer, where a DCT does it differently
 *   qp_recv.c      receive WQEs and their completions
 *   requester*.c   send queue: from WQEs to packets, from ACKs and timeouts to completions;
 *                  flight.c keeps the started WQEs, wqe_source.c has the sources of WQEs
 *   responder*.c   received requests: PSN check, execution, ACK/NAK, READ and atomic responses
 *   rq_flush.c     the receive queue in ERR
 *   early.c        packets that come out of order
 *   notification_point.c, reaction_point.c
 *                  congestion control: tells the senders that cause congestion; slows them down
 *   cross.c        queues that other queues start (cross channel)
 *   dci.c          the initiator of dynamic connections: which target a send queue is connected to
 *   dct.c          the target of dynamic connections, and its responders, as an object
 *   xrq_dci.c      an initiator that the device makes itself, for an XRQ
 *   rdma.c         state that all QPs of a function share
 *   mcg.c          multicast groups and their members
 *   roce_rx.c      which QP a packet is for, and whether the QP may take it (P_Key, Q_Key, GID)
 *
 * States are PRM qp_state: RST, INIT, RTR, RTS, SQER, SQD, ERR, SQ_DRAINING. The command moves the
 * QP from RTS to SQ_DRAINING. When nothing is in flight, the requester moves it to SQD (and raises
 * SQ_DRAINED).
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

struct cross;
struct dci;

struct qp {
    struct obj obj; /* num is the QPN */
    struct hca *hca;
    struct prm_qpc qpc[1]; /* as last set by commands; a query puts in the live fields */

    uint8_t state;               /* PRM_QP_STATE_; changed by qp_set_state() only */
    uint8_t error, vendor_error; /* why it left RTS or RTR, as in a CQE; 0: by a command */
    bool has_rq, has_sq;
    bool rre, rwe, rae; /* from qpc: remote read, write, atomic enable */
    const struct service *service;

    /* from qpc, in host byte order */
    uint32_t pdn, counter_set_id, qkey, user_index;
    uint32_t src_qpn;      /* source QP in a DETH: 1 for QP1 and with qpc.deth_sqpn, else the QPN */
    uint16_t pkey;         /* the P_Key at primary_address_path.pkey_index */
    uint16_t mtu;          /* path MTU in bytes: 256..4096 */
    uint16_t ack_req_freq; /* request packets from one with AckReq to the next */
    uint8_t log_msg_max;
    /* log2 of the responder resources; log2 of outstanding READs and atomics */
    uint8_t log_rra_max, log_sra_max;
    uint8_t retry_count, rnr_retry, ack_timeout, log_rtm, min_rnr_nak;
    uint8_t atomic_mode;
    /* Bytes of data that its CQEs may carry: 64, 32 or 0. */
    uint8_t recv_in_cqe, send_in_cqe;
    bool pads_end;     /* qpc.end_padding_mode: received messages (model/memory/end_pad.h) */
    bool real_time;    /* qpc.ts_format (model/queue/cqe.h) */
    bool rlky, fre;    /* as created: WQEs may use the reserved lkey; UMR may register memory */
    bool rq_signature; /* receive WQEs begin with a signature segment */
    bool block_lb_mc;  /* own multicasts are not delivered to this QP */
    bool mmo;          /* memory to memory operations may be posted */
    unsigned num_mcgs; /* number of multicast groups that it is a member of */

    struct obj *pd; /* this and the next are referenced; may be NULL */
    struct cq *send_cq, *recv_cq;
    struct srq *srq;    /* NULL: own RQ, or none; XRC: each request names an SRQ */
    struct obj *xrcd;   /* XRC: the domain of those SRQs; referenced */
    struct mem_buf buf; /* the ring, shared by rq and sq, which hold no reference of their own */
    struct wq rq, sq;

    struct dci *dci;        /* NULL: not a DCI */
    struct cross *cross;    /* NULL: no part of cross channel (model/rdma/cross.h) */
    struct qp_sched *sched; /* NULL: in no scheduling element (model/rdma/qp_sched.h) */
    struct requester req;
    struct peer peer;
    struct rq_flush rq_flush;
    struct paging_fault *faults; /* what the pager was told and has not answered */
};

/* Whether the QP is the half of a connection that takes requests (XRC: the target, which has no
 * queue). */
static inline bool qp_is_target(const struct qp *qp)
{
    return qp->service->names_srq && !qp->has_sq;
}

/* Whether the QP sends requests: its software's, or the device's own (model/rdma/wqe_source.h). */
static inline bool qp_may_request(const struct qp *qp)
{
    return qp->has_sq || qp->req.device;
}

/* The PD that the keys of its receive WQEs are checked against (except for XRC). */
static inline uint32_t qp_recv_pdn(const struct qp *qp)
{
    return qp->srq ? qp->srq->attr.pdn : qp->pdn;
}

/* -- model/rdma/qp.c ------------------------------------------------------------------------------
 */

struct qp *qp_find(struct hca *hca, uint32_t qpn);

/* Bytes of the ring that qpc asks for: the receive queue, then the send queue. 0: a QP without
 * queues. */
uint64_t qp_ring_size(const struct prm_qpc *qpc);
/* Whether a QP of that qpc has a doorbell record. */
bool qp_has_dbr(const struct prm_qpc *qpc);

/* CREATE_QP. qpc is as in the command. buf is the ring: one reference, taken over on success;
 * empty if qp_ring_size() is 0. dbr is the bus address of the doorbell record. wished: 0, or the
 * number that the QP is to get, from a range that the same user has reserved
 * (model/rdma/reserved_qpn.h). */
enum syn qp_create_as(struct hca *hca, uint16_t uid, const struct prm_qpc *qpc, struct mem_buf *buf,
                      uint64_t dbr, uint32_t wished, uint32_t *qpn);
static inline enum syn qp_create(struct hca *hca, uint16_t uid, const struct prm_qpc *qpc,
                                 struct mem_buf *buf, uint64_t dbr, uint32_t *qpn)
{
    return qp_create_as(hca, uid, qpc, buf, dbr, 0, qpn);
}
/* Whether QPs of this service can have this ordering of data (enum prm_dp_ordering). long_atomics:
 * the QP allows atomics of more than 8 bytes. */
bool qp_order_is_ok(const struct qp *qp, unsigned order, bool force, bool long_atomics);
/* QUERY_QP: fills the whole qpc, with live values for state, PSNs, counters and rings. */
enum syn qp_query(struct hca *hca, uint32_t qpn, struct prm_qpc *qpc);
/* QUERY_QP, extended context: fills in whether memory to memory operations may be posted, and the
 * error with which the QP failed; zeros if it did not. */
void qp_query_extension(struct hca *hca, uint32_t qpn, struct prm_qp_context_extension *ext);
/* CREATE_QP, extended context: whether a QP of that qpc can have it. ext may be NULL. */
enum syn qp_check_extension(const struct hca *hca, const struct prm_qpc *qpc,
                            const struct prm_qp_context_extension *ext);
enum syn qp_destroy(struct hca *hca, uint16_t uid, uint32_t qpn);
void qp_free(struct hca *hca, struct obj *obj);
void qp_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

/* Allocates zeroed memory for a QP's queues. A card keeps this memory in the pages that the driver
 * gave. NULL: refused. */
void *qp_alloc(struct qp *qp, size_t bytes);
void qp_dealloc(struct qp *qp, void *block, size_t bytes); /* NULL is allowed */

/* Changes the state of a QP; no other function does. A change that is not legal is a mistake of the
 * caller and stops the program. Entering ERR flushes both queues with WR_FLUSH_ERR completions.
 * Entering RST forgets everything that was in flight. Two changes have no effect: to the present
 * state (except RST), and from ERR to any state except RST. */
void qp_set_state(struct qp *qp, uint8_t state);

/* Handles a fatal error that no completion can report: the QP goes to ERR and raises an async event
 * (WQ_CATAS_ERROR 0x05, WQ_INVAL_REQ_ERROR 0x10, WQ_ACCESS_ERROR 0x11 (device.h
 * MLX5_EVENT_TYPE_*)). */
void qp_fatal(struct qp *qp, uint8_t event_type);
/* Notes the error that is about to end the QP, or to complete one of its WQEs in error, in the form
 * of the CQE. opcode: PRM_CQE_OPCODE_REQ_ERR or RESP_ERR. */
void qp_note_error(struct qp *qp, uint8_t opcode, uint8_t syndrome);

/* Called by the pager: the page missing for one side of the QP has come, or (error) never will. If
 * that side is not parked, this has no effect. */
void qp_resume(struct qp *qp, enum fault_side side, bool error);

/* Raises an async event that names the QP. */
void qp_event(struct qp *qp, uint8_t event_type);

/* Posts a CQE of the QP. data: see cq_post_data(). If the CQ does not take the CQE, the QP fails.
 * The completed message is then not acknowledged to the peer, since no program will ever know about
 * it (IBTA 10.2.9.3). */
void qp_post_cqe_data(struct qp *qp, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                      const struct cqe_data *data);
static inline void qp_post_cqe(struct qp *qp, struct cq *cq, struct prm_cqe64 *cqe, bool solicited)
{
    qp_post_cqe_data(qp, cq, cqe, solicited, NULL);
}

/* The srqn field of this QP's CQEs (CQE version 1): the user index. User index 0xffffff asks for
 * version 0; then the field is the SRQN or 0. */
uint32_t qp_cqe_srqn(const struct qp *qp);

/* -- model/rdma/qp_modify.c ------------------------------------------------------------------- */

/* Carries out a state transition command. opcode names it. The low half of mask is opt_param_mask
 * (bits 31:0); above it comes the low half of opt_param_mask_95_32. ext: the extended context, or
 * NULL: then the mask must not name its fields. */
enum syn qp_modify(struct hca *hca, uint16_t uid, uint32_t qpn, uint16_t opcode, uint64_t opt_mask,
                   const struct prm_qpc *qpc, const struct prm_qp_context_extension *ext);
/* Sets the fields of *qp that are copies of qpc fields. */
void qp_load(struct qp *qp);
/* Whether queues of this service can be enabled for memory to memory operations. */
bool qp_mmo_is_possible(const struct hca *hca, const struct service *service);

/* -- model/rdma/qp_recv.c --------------------------------------------------------------------- */

/* Takes the next receive WQE from the QP's SRQ or RQ. If xrc_srq is not NULL, an XRC SRQ or XRQ,
 * takes it from there; the same holds for the next functions. */
enum recv_result qp_take_recv(struct qp *qp, struct srq *xrc_srq, struct recv_wqe *wqe);
/* Reads a taken WQE again; index is wqe->index. */
enum recv_result qp_reread_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                                struct recv_wqe *wqe);

/* Posts a receive completion. With xrc_srq it goes to the CQ of xrc_srq. opcode is a
 * PRM_CQE_OPCODE_RESP_. cqe is a cqe64 image in which the caller has set the fields that only it
 * knows (immediate, address). data: see cq_post_data(). */
void qp_complete_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                      enum prm_cqe_opcode opcode, uint32_t byte_cnt, bool solicited,
                      struct prm_cqe64 *cqe, const struct cqe_data *data);
/* Posts a receive completion in error; syndrome is a PRM_CQE_SYNDROME_. */
void qp_complete_recv_error(struct qp *qp, struct srq *xrc_srq, uint32_t index, uint8_t syndrome);
/* Returns a WQE of an SRQ whose page is missing: a CQE by which rdma-core posts it again
 * (mlx5_complete_odp_fault()). The QP has no error. */
void qp_return_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index);

struct q_counter *qp_counters(struct qp *qp);

/* Completes posted WQEs of the QP's own RQ with WR_FLUSH_ERR, as long as hca_may_go_on(). True:
 * more may be left. */
bool qp_flush_rq(struct qp *qp);

/* -- model/rdma/roce_rx.c: after the checks a packet goes to requester_rx() or responder_rx() -- */

/* Whether a GID is multicast: IPv6 ff00::/8, and IPv4 224.0.0.0/4 as ::ffff:a.b.c.d. */
bool roce_gid_is_multicast(const uint8_t gid[16]);

/* Whether the packet belongs to the peer's connection: its source and destination agree with the
 * path. */
bool roce_rx_is_of_connection(struct peer *peer, const struct roce_packet *pkt);

/* Whether two P_Keys belong to one partition, and at least one of them is a full member. */
bool roce_rx_pkey_ok(uint16_t theirs, uint16_t ours);

/* For struct port_receivers. roce_rx() takes a received packet. roce_wants_copy(): whether QPs of
 * this HCA without block_lb_mc are members of the group to which a datagram is sent. */
void roce_rx(struct hca *hca, const struct roce_packet *pkt);
bool roce_wants_copy(struct hca *hca, const struct roce_addr *addr);

#endif
