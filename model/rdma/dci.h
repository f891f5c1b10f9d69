/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of dynamic connections (DCI): a send queue in which each WQE names its target. The
 * QP's requester (model/rdma/requester.h) works as on a reliable connection. This file decides
 * which target the QP is connected to (model/rdma/dc.h explains sessions), and what happens to a
 * WQE that fails.
 *
 * A DCI has one target at a time: a WQE for another target waits until nothing is in flight. A
 * session in which nothing happens for a while is ended, so that the target's responder becomes
 * free.
 *
 * With qpc.log_num_dci_stream_channels each WQE belongs to a stream
 * (wqe_ctrl_seg.dci_stream_channel_id, modulo the number of streams). A WQE that fails ends only
 * its stream: the other WQEs of that stream in the queue are flushed, each in its turn, until
 * RTS2RTS_QP resets the stream. The other streams go on. When 2^qpc.log_num_dci_errored_streams
 * streams have failed, the QP fails.
 */
#ifndef HCASIM_MODEL_DCI_H
#define HCASIM_MODEL_DCI_H

#include "model/rdma/dc.h"
#include "model/rdma/requester_internal.h"

#define DCI_LOG_STREAMS 6 /* log2 of the most streams */

struct dci {
    struct qp *qp;

    /* the session; the QP's peer has its number, the target's number and the path */
    bool open;
    bool confirmed;   /* the target has answered */
    bool connect_due; /* a CONNECT must be sent before anything else */
    bool reconnect;   /* it is not the first CONNECT of the session */
    struct prm_wqe_av av[1];
    uint64_t heard_at;   /* when the target was last heard, or when nothing was outstanding */
    uint32_t idle_psn;   /* next_psn at the last look for an idle session */
    uint32_t msn;        /* requests of the session that were answered or have failed */
    uint32_t target_msn; /* requests that the target has taken, by its last ACK or NAK */
    struct hca_timer idle_timer;

    /* streams */
    bool alone;          /* each WQE is a stream of its own, which needs no reset */
    uint8_t log_streams; /* log2 of the number of streams; 0: no streams */
    uint8_t num_failed;
    uint64_t failed; /* a bit for each failed stream */
    /* the stream of the descriptor at the same position in the flight */
    uint8_t stream_of[STARTED_MAX];
};

/* Makes the QP's DCI; needs the QP's context. False: no memory. */
bool dci_new(struct qp *qp);
void dci_free(struct qp *qp);
/* Called when the QP goes to RST, and from RTR to RTS: no session, no failed streams. */
void dci_reset(struct qp *qp);
/* The QP sends nothing any more: ends the session and tells the target. */
void dci_leave(struct qp *qp);

/* RTS2RTS_QP. dci_check_stream(): whether id names a stream of the QP that has failed.
 * dci_reset_stream(): the stream works again. */
enum syn dci_check_stream(const struct qp *qp, uint16_t id);
void dci_reset_stream(struct qp *qp, uint16_t id);

/* The RoCE address table has changed: see peer_path_update(). */
void dci_path_update(struct qp *qp);
/* Takes a packet that passed the QP's checks. */
void dci_rx(struct qp *qp, const struct roce_packet *pkt);

/* -- for the requester ------------------------------------------------------------------------- */

/* Whether the next WQE may be started. True: the QP is connected to the WQE's target, or *syndrome
 * says why the WQE fails. False: packets in flight must be completed first. */
bool dci_may_start(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome);
/* Notes the stream of the WQE of descriptor num. */
void dci_note_stream(struct qp *qp, uint32_t num, const struct send_wqe *wqe);
/* Does what must come before the next packet. False: there was nothing to do. True: *waits says how
 * that ended. */
bool dci_step(struct qp *qp, enum send_wait *waits);
/* Called when the unacknowledged packets are going to be sent again. */
void dci_went_back(struct qp *qp);
/* Descriptor num is the oldest, and done or failed. True: it was completed here, and either the
 * queue goes on or the QP is in ERR. */
bool dci_retire(struct qp *qp, uint32_t num, const struct send_desc *desc);

#endif
