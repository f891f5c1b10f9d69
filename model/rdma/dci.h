/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of dynamic connections (DCI): a send queue each of whose WQEs names its target. The
 * QP's requester (model/rdma/requester.h) works as that of a reliable connection does; here is whom
 * it is connected to (model/rdma/dc.h says what a session is), and what becomes of a WQE that
 * fails.
 *
 * One target at a time: a WQE for another one waits until nothing is in flight. A session in which
 * nothing happens for a while is ended, so that the target's responder is free.
 *
 * With qpc.log_num_dci_stream_channels a WQE belongs to a stream
 * (wqe_ctrl_seg.dci_stream_channel_id, modulo their number). One that fails ends its stream only:
 * what the stream has in the queue is flushed, in its place, until RTS2RTS_QP resets the stream;
 * the others go on. As many failed streams as qpc.log_num_dci_errored_streams says end the QP.
 */
#ifndef HCASIM_MODEL_DCI_H
#define HCASIM_MODEL_DCI_H

#include "model/rdma/dc.h"
#include "model/rdma/requester_internal.h"

#define DCI_LOG_STREAMS 6 /* at most */

struct dci {
    struct qp *qp;

    /* the session; QP's peer has its number, the target's and the path */
    bool open;
    bool confirmed;   /* the target has answered */
    bool connect_due; /* CONNECT is to be sent before anything else, */
    bool reconnect;   /* not for the first time */
    struct prm_wqe_av av[1];
    uint64_t heard_at;   /* when the target was last heard of, or there was nothing to hear */
    uint32_t idle_psn;   /* next_psn when the session was last looked at */
    uint32_t msn;        /* requests of the session that were answered or have failed, */
    uint32_t target_msn; /* and that the target has taken, as its last ACK or NAK says */
    struct hca_timer idle_timer;

    /* streams */
    bool alone;          /* each WQE is a stream of its own, which nobody need reset */
    uint8_t log_streams; /* 0: there are none */
    uint8_t num_failed;
    uint64_t failed;                /* a bit for each stream */
    uint8_t stream_of[STARTED_MAX]; /* of the descriptor at the same place in the flight */
};

/* A QP's; needs its context. False: no memory. */
bool dci_new(struct qp *qp);
void dci_free(struct qp *qp);
/* To RST, and to RTS from RTR: no session, no failed streams. */
void dci_reset(struct qp *qp);
/* The QP sends nothing any more, and the target is told so. */
void dci_leave(struct qp *qp);

/* RTS2RTS_QP: whether it names a stream of the QP's that has failed; and that one works again. */
enum syn dci_check_stream(const struct qp *qp, uint16_t id);
void dci_reset_stream(struct qp *qp, uint16_t id);

/* The RoCE address table has changed: see peer_path_update(). */
void dci_path_update(struct qp *qp);
/* A packet that passed the QP's checks. */
void dci_rx(struct qp *qp, const struct roce_packet *pkt);

/* -- for the requester ------------------------------------------------------------------------- */

/* Whether the next WQE may be started: now it is for the target that the QP is connected to, or
 * *syndrome says what it fails with. False: not before what is in flight is done. */
bool dci_may_start(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome);
/* The WQE is that of descriptor num. */
void dci_note_stream(struct qp *qp, uint32_t num, const struct send_wqe *wqe);
/* What has to come before the next packet. False: nothing. True: *waits is what that came to. */
bool dci_step(struct qp *qp, enum send_wait *waits);
/* What is not acknowledged is going to be sent again. */
void dci_went_back(struct qp *qp);
/* Descriptor num is the oldest, and done or failed. True: it was completed here, and the queue goes
 * on or the QP is in ERR. */
bool dci_retire(struct qp *qp, uint32_t num, const struct send_desc *desc);

#endif
