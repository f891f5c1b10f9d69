/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's own view of itself, for model/responder*.c.
 *
 *   responder.c     RC and UC requests: order, checks, execution
 *   responder_ud.c  datagrams
 *   responder_tx.c  what is sent back, and flushing
 */
#ifndef HCASIM_MODEL_RESPONDER_INTERNAL_H
#define HCASIM_MODEL_RESPONDER_INTERNAL_H

#include "model/rdma/qp.h"

/* A READ or atomic that was executed, kept so that a duplicate of it can be answered. */
struct responder_resource {
    bool valid, atomic;
    uint32_t psn, npsn;      /* first response, number of responses */
    uint32_t pdn, rkey, len; /* READ */
    uint64_t va;
    uint64_t value; /* atomic: what memory held */
};

/* Something to send. */
struct response {
    enum response_kind {
        RESPONSE_ACK, /* ACK or NAK */
        RESPONSE_READ,
        RESPONSE_ATOMIC,
    } kind;
    bool duplicate;     /* answers a duplicate request */
    bool started;       /* READ: the first response is sent */
    uint8_t syndrome;   /* ACK */
    uint32_t psn, msn;  /* READ: PSN of the next response */
    uint32_t pdn;       /* READ: the domain of the key */
    uint32_t rkey, len; /* READ: what is left */
    uint64_t va;
    uint64_t value; /* atomic */
};

enum responder_msg {
    MSG_NONE,
    MSG_SEND,
    MSG_WRITE,
};

struct responder_state {
    struct qp *qp;

    /* the message that is arriving */
    enum responder_msg msg;
    bool have_wqe; /* wqe was taken and is not completed */
    struct recv_wqe wqe;
    struct sge_cursor cursor; /* SEND: place in wqe */
    uint64_t done;            /* bytes received */
    uint64_t va;              /* WRITE: start, key and bytes still to come */
    uint32_t rkey;
    uint64_t left;
    uint32_t pdn;      /* domain of the request's keys: the QP's, XRC: the SRQ's */
    uint32_t recv_pdn; /* of the receive WQE's keys: that of the queue that it is from */
    uint32_t srqn;     /* XRC: the SRQ that the message is for */

    bool nak_sent; /* sequence error or RNR reported: nothing more until epsn comes */
    bool comm_est; /* COMM_EST raised */
    bool failed;   /* in ERR by a fault found here: the NAK is still to be sent */

    /* ring of executed READs and atomics */
    struct responder_resource *resources;
    unsigned num_resources, next_resource;

    /* ring of what is to be sent, in the order of the requests */
    struct response *queue;
    unsigned queue_size, head, count;
    unsigned fresh;   /* READs and atomics in it that answer no duplicate */
    unsigned answers; /* READs and atomics in it */
    /* of an ACK alone in it */
    unsigned ack_looks; /* at the wire that brought no more requests, */
    uint32_t ack_psn;   /* since its PSN is this */
    uint32_t acked_psn; /* of the last answer sent */
    unsigned stream;    /* requests of late that came before the ACK of the one before had gone */

    struct work flush_work; /* ERR: looks for receive WQEs posted since */
    struct hca_timer flush_timer;
    uint64_t flush_delay; /* ns, to the next look */
};

/* What a request comes to. */
enum verdict {
    VERDICT_OK,
    VERDICT_DROP,       /* as if it had not come */
    VERDICT_RNR,        /* no receive WQE */
    VERDICT_INVALID,    /* the request makes no sense, or is not allowed on this QP */
    VERDICT_LENGTH,     /* more data than the receive WQE holds */
    VERDICT_ACCESS,     /* the rkey does not allow it */
    VERDICT_LOCAL_PROT, /* an lkey of the receive WQE does not allow it */
    VERDICT_OPERATION,  /* this side's queue or memory is broken */
    VERDICT_INVALIDATE, /* the key that a SEND is to invalidate does not allow it */
};

/* -- model/rdma/responder.c ------------------------------------------------------------------- */

/* A fault of the message that is arriving, which ends the QP: NAK (RC) at psn, error completion or
 * event, ERR. */
void responder_fail(struct qp *qp, enum verdict verdict, uint32_t psn);
/* The same of a request that was accepted before: its answer cannot be made. A message that is
 * arriving meanwhile has no part in it and is flushed. */
void responder_fail_answer(struct qp *qp, enum verdict verdict, uint32_t psn);
enum verdict verdict_of(enum mem_result result);
/* Takes a receive WQE into s->wqe if none is held. */
enum verdict responder_take(struct qp *qp);
/* Completes the WQE held. opcode: PRM_CQE_OPCODE_RESP_*; cqe has what is special. */
void responder_complete(struct qp *qp, enum prm_cqe_opcode opcode, uint64_t byte_cnt, uint8_t *cqe,
                        bool solicited);

/* -- model/rdma/responder_ud.c ---------------------------------------------------------------- */

void responder_rx_ud(struct qp *qp, const struct roce_packet *pkt);

/* -- model/rdma/responder_tx.c ---------------------------------------------------------------- */

bool responder_tx_init(struct qp *qp); /* as responder_init() */
void responder_tx_clear(struct qp *qp);
void responder_tx_reset(struct qp *qp);
/* ACK or NAK of psn. */
void responder_ack(struct qp *qp, uint32_t psn, uint8_t syndrome);
/* Whether another READ or atomic answer finds room. */
bool responder_has_room(struct qp *qp);
/* Queues an answer; psn, msn and the kind's fields are set by the caller. Needs room. */
void responder_answer(struct qp *qp, const struct response *response);
/* ERR: forgets what was to be sent, unless a NAK of ours is in it; flushes the receive queue. */
void responder_tx_flush(struct qp *qp);

#endif
