/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: what a QP does with the requests of a peer (IBTA 9.7.4, 9.7.5.2, 9.8.3, 9.9.3).
 *
 *   responder.c       the order of requests, and what becomes of each
 *   responder_exec.c  RC and UC requests: checks, execution
 *   responder_ud.c    datagrams
 *   responder_tx.c    what is sent back
 *   responder_wqe.c   the receive WQE of the message that arrives
 *
 * Its state says what the next request meets (responder_machine has the table):
 *
 *   expects   the request with the expected PSN is carried out; an earlier one is a duplicate and
 *             answered from what is known; a later one shows a gap: NAK, refuses
 *   refuses   a gap was reported: later requests are counted and dropped, until the expected one
 *             comes
 *   waits     the expected one came and could not be carried out, as an RNR NAK says: later
 *             requests are dropped until it comes again and can; none of them counts as a gap
 *   failed    in ERR by a fault found here: the NAK is still to be sent, nothing is taken
 *
 * A later request that model/rdma/early.h keeps is none of those.
 */
#ifndef HCASIM_MODEL_RESPONDER_H
#define HCASIM_MODEL_RESPONDER_H

#include "model/core/hca.h"
#include "model/core/machine.h"
#include "model/memory/mkey.h"
#include "wire/encap/roce.h"

struct answers;
struct peer;
struct tags;
struct recv_line;

enum responder_state {
    RESPONDER_EXPECTS,
    RESPONDER_REFUSES,
    RESPONDER_WAITS,
    RESPONDER_FAILED,
};

enum responder_event {
    RESPONDER_CARRIED_OUT, /* the request that was expected */
    RESPONDER_GAP,         /* a PSN is missing */
    RESPONDER_NOT_READY,   /* no receive WQE, or a page that is not there yet */
    RESPONDER_FAULT,
    RESPONDER_RESET,
};

extern const struct machine responder_machine;

enum responder_msg {
    MSG_NONE,
    MSG_SEND,
    MSG_WRITE,
};

/* What an idle connection keeps of itself: what is needed only while requests come lies in
 * struct answers and in model/rdma/wqe_lines.h. */
struct responder {
    struct work work; /* responses to send: ACKs, NAKs, READ data */
    uint32_t epsn;    /* qpc.next_rcv_psn: expected PSN */
    uint32_t msn;     /* qpc.rmsn */
    uint8_t state;    /* enum responder_state, changed by its machine */
    bool comm_est;    /* COMM_EST raised */
    uint8_t paging;   /* enum paging */

    /* the message that is arriving */
    uint8_t msg;              /* enum responder_msg */
    bool have_wqe;            /* a receive WQE was taken and is not completed: */
    uint32_t wqe_index;       /* its number */
    uint64_t wqe_len;         /* bytes that it has room for */
    struct sge_cursor cursor; /* SEND: place in it */
    uint64_t done;            /* bytes received */
    uint64_t va;              /* WRITE: start, key and bytes still to come */
    uint64_t left;
    uint32_t rkey;
    uint32_t pdn;      /* domain of the request's keys: the QP's, XRC: the SRQ's */
    uint32_t recv_pdn; /* of the receive WQE's keys: that of the queue that it is from */
    uint32_t srqn;     /* XRC: the SRQ that the message is for */

    /* an ACK or NAK that is to be sent, behind all answers */
    bool ack_due;
    uint8_t ack_syndrome;
    uint8_t ack_looks; /* at the wire that brought no more requests, */
    uint8_t stream;    /* requests of late that came before the ACK of the one before had gone */
    uint32_t ack_psn, ack_msn;
    uint32_t looked_psn; /* since its PSN is this */
    uint32_t acked_psn;  /* of the last answer sent */
    uint8_t nak;         /* failed: what the requester was told, or 0, */
    uint32_t nak_psn;    /* of this request */

    struct recv_line *line;  /* where the receive WQE is taken apart (model/rdma/wqe_lines.h) */
    struct answers *answers; /* NULL: no READ or atomic came yet */
    struct tags *tags;       /* of a QP on an XRQ (model/rdma/tags.h), else NULL */
};

/* Once the QP has its number. */
void responder_init(struct peer *peer);
void responder_clear(struct peer *peer);
/* To RST, and at INIT->RTR with the RQ PSN. */
void responder_reset(struct peer *peer, uint32_t next_rcv_psn);
/* ERR: the message in progress completes with WR_FLUSH_ERR. */
void responder_flush(struct peer *peer);

/* See qp_resume(). */
void responder_resume(struct peer *peer, bool error);

/* A request packet (any transport) that passed the QP's checks (model/rdma/roce_rx.c). */
void responder_rx(struct peer *peer, const struct roce_packet *pkt);

#endif
