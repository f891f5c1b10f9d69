/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: how a QP handles the requests of a peer (IBTA 9.7.4, 9.7.5.2, 9.8.3, 9.9.3).
 *
 *   responder.c       the order of requests, and the result of each
 *   responder_exec.c  RC and UC requests: checks, execution
 *   responder_ud.c    datagrams
 *   responder_tx.c    responses
 *   responder_wqe.c   the receive WQE of the message that is arriving
 *
 * Its state says how it handles the next request (responder_machine has the table):
 *
 *   expects   carries out the request with the expected PSN. An earlier request is a duplicate, and
 *             is answered from what is known. A later one shows a gap: NAK, then refuses
 *   refuses   a gap was reported: later requests are counted and dropped until the expected one
 *             comes
 *   waits     the expected request came and could not be carried out; an RNR NAK said so. Later
 *             requests are dropped until it comes again and succeeds; none of them counts as a gap
 *   failed    in ERR after a fault found here: the NAK is still to be sent, nothing is taken
 *
 * These rules do not apply to a later request that model/rdma/early.h keeps.
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
    RESPONDER_CARRIED_OUT, /* the expected request was carried out */
    RESPONDER_GAP,         /* a PSN is missing */
    RESPONDER_NOT_READY,   /* no receive WQE, or a page is missing */
    RESPONDER_FAULT,
    RESPONDER_RESET,
};

extern const struct machine responder_machine;

enum responder_msg {
    MSG_NONE,
    MSG_SEND,
    MSG_WRITE,
};

/* The state that an idle connection keeps. State that is needed only while requests come is in
 * struct answers and in model/rdma/wqe_lines.h. */
struct responder {
    struct work work; /* responses to send: ACKs, NAKs, READ data */
    uint32_t epsn;    /* qpc.next_rcv_psn: expected PSN */
    uint32_t msn;     /* qpc.rmsn */
    uint8_t state;    /* enum responder_state, changed by its machine */
    bool comm_est;    /* COMM_EST raised */
    uint8_t paging;   /* enum paging */
    /* a READ was told to come again, because a page of its data is missing */
    bool read_waits : 1;
    bool read_was_sent : 1; /* its data was sent before: the peer may not need it again */
    uint8_t msg;            /* of the message that is arriving: enum responder_msg */
    bool have_wqe;          /* ... and a receive WQE was taken for it that is not completed */
    uint8_t nak;            /* failed: the NAK that the requester was sent, or 0 */
    bool ack_again;         /* the ACK that is due answers a duplicate request */
    uint32_t read_psn;      /* PSN of the first response that is missing */
    uint32_t drop_psn;      /* of the last request that was dropped since; at first read_psn */
    uint32_t page;          /* fault_page() of the fault that the pager was told last */

    /* the message that is arriving */
    uint32_t wqe_index;       /* number of that WQE */
    uint64_t wqe_len;         /* room in that WQE, in bytes */
    struct sge_cursor cursor; /* SEND: position in that WQE */
    uint64_t done;            /* bytes received */
    uint64_t va;              /* WRITE: address, key and bytes still to come */
    uint64_t left;
    uint32_t rkey;
    uint32_t pdn;      /* PD of the request's keys: the QP's; XRC: the SRQ's */
    uint32_t recv_pdn; /* PD of the receive WQE's keys: that of the WQE's queue */
    uint32_t srqn;     /* XRC: the SRQ that the message is for */

    /* an ACK or NAK to be sent, after all answers */
    bool ack_due;
    uint8_t ack_syndrome;
    uint8_t ack_looks; /* looks at the wire that brought no more requests */
    uint8_t stream;    /* recent requests that came before the ACK of the previous one was sent */
    uint32_t ack_psn, ack_msn;
    uint32_t looked_psn; /* the expected PSN at the first of these looks */
    uint32_t acked_psn;  /* PSN of the last answer sent */
    uint32_t nak_psn;    /* PSN of `nak` */

    struct recv_line *line;  /* the parsed receive WQE (model/rdma/wqe_lines.h) */
    struct answers *answers; /* NULL: no READ or atomic has come yet */
    struct tags *tags;       /* of a QP on an XRQ (model/rdma/tags.h), else NULL */
};

/* Called when the QP has its number. */
void responder_init(struct peer *peer);
void responder_clear(struct peer *peer);
/* At the transition to RST, and from INIT to RTR with the RQ PSN. */
void responder_reset(struct peer *peer, uint32_t next_rcv_psn);
/* ERR: the arriving message completes with WR_FLUSH_ERR. */
void responder_flush(struct peer *peer);

/* See qp_resume(). */
void responder_resume(struct peer *peer, bool error);

/* Takes a request packet (of any transport) that passed the QP's checks (model/rdma/roce_rx.c). */
void responder_rx(struct peer *peer, const struct roce_packet *pkt);

#endif
