/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the responder share (model/rdma/responder.h lists them). */
#ifndef HCASIM_MODEL_RESPONDER_INTERNAL_H
#define HCASIM_MODEL_RESPONDER_INTERNAL_H

#include "model/rdma/qp.h"

/* A READ or atomic that was executed, kept so that a duplicate of it can be answered. */
struct responder_resource {
    bool valid, atomic;
    uint32_t psn, npsn; /* first response, number of responses */
    uint32_t pdn, rkey; /* READ */
    uint32_t len;       /* READ; extended atomic: bytes of the number; other atomics: 0 */
    uint64_t va;
    /* atomic: what memory held (extended: struct answers has it); READ: responses that were sent */
    uint64_t value;
};

/* The answer to a READ or atomic, to be sent. */
struct answer {
    bool is_read;
    bool duplicate;    /* of a duplicate request */
    bool started;      /* READ: the first response is sent */
    uint8_t resource;  /* whose answer it is */
    uint32_t psn, msn; /* READ: PSN of the next response */
    uint32_t pdn;      /* READ: the domain of the key */
    uint32_t rkey;     /* READ */
    uint32_t len;      /* READ: what is left; extended atomic: bytes of the number */
    uint64_t va;
    uint64_t value; /* atomic */
};

/* qpc.log_rra_max is this at most (hca_limits.log_max_ra_res_qp). */
#define RESPONDER_RESOURCES 16
/* Fresh ones are as many as resources; the others answer duplicates. */
#define RESPONDER_ANSWERS (2 * RESPONDER_RESOURCES)

/* Bytes of the numbers that extended atomics found. */
#define RESPONDER_NUMBERS_BYTES ((size_t)RESPONDER_RESOURCES * MASKED_MAX)

/* What a peer's READs and atomics need, from the first of them on. */
struct answers {
    struct responder_resource resources[RESPONDER_RESOURCES]; /* a ring, as qpc.log_rra_max says */
    unsigned next_resource;
    uint8_t (*numbers)[MASKED_MAX]; /* of each resource; NULL: no extended atomic came yet */
    struct answer queue[RESPONDER_ANSWERS]; /* a ring, in the order of the requests */
    unsigned head, count;
    unsigned fresh; /* in the queue, answering no duplicate */
};

/* What a request comes to. */
enum verdict {
    VERDICT_OK,
    VERDICT_DROP,       /* as if it had not come */
    VERDICT_RNR,        /* no receive WQE */
    VERDICT_FAULT,      /* a page is missing that may come: as RNR */
    VERDICT_INVALID,    /* the request makes no sense, or is not allowed on this QP */
    VERDICT_LENGTH,     /* more data than the receive WQE holds */
    VERDICT_ACCESS,     /* the rkey does not allow it */
    VERDICT_LOCAL_PROT, /* an lkey of the receive WQE does not allow it */
    VERDICT_OPERATION,  /* this side's queue or memory is broken */
    VERDICT_INVALIDATE, /* the key that a SEND is to invalidate does not allow it */
};

/* Where a packet of a SEND goes. */
enum sink_kind {
    SINK_WQE,   /* to the receive WQE held */
    SINK_ENTRY, /* to the buffer of a tag list's entry (model/rdma/tags.h) */
    SINK_FETCH, /* nowhere: it asks for data, which the device fetches */
};

struct sink {
    enum sink_kind kind;
    const struct sge *buffer; /* SINK_ENTRY */
    uint64_t room;            /* bytes of a message that fit */
    const uint8_t *data;      /* what of the packet goes there */
    size_t len;
    bool in_cqe; /* into the CQE instead */
};

/* -- model/rdma/responder.c ------------------------------------------------------------------- */

bool responder_step(struct peer *peer, enum responder_event event);
/* A fault of the message that is arriving, which ends the QP: NAK (RC) at psn, error completion or
 * event, ERR. */
void responder_fail(struct peer *peer, enum verdict verdict, uint32_t psn);
/* The same of a request that was accepted before: its answer cannot be made. A message that is
 * arriving meanwhile has no part in it and is flushed. */
void responder_fail_answer(struct peer *peer, enum verdict verdict, uint32_t psn);
/* A request is missing that is not on its way. */
void responder_rx_gap(struct peer *peer);
/* Those that came early: whose turn it is now. */
void responder_rx_early(struct peer *peer);
enum verdict verdict_of(struct peer *peer, enum mem_result result);
/* A page is missing for a request or an answer. False: it never will be there. */
bool responder_park(struct peer *peer);

/* -- model/rdma/responder_exec.c -------------------------------------------------------------- */

/* A request whose turn it is: checks it and carries it out. */
enum verdict responder_execute(struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* What the CQE of a SEND says of it, which has the opcode that is returned. */
enum prm_cqe_opcode responder_send_cqe(const struct peer *peer, const struct roce_packet *pkt,
                                       uint32_t flags, struct prm_cqe64 *cqe);
/* Whether the CQE takes the packet's data, len bytes: those of a whole message. */
static inline bool responder_is_in_cqe(const struct peer *peer, uint32_t flags, size_t len)
{
    return len <= peer->qp->recv_in_cqe && len && (flags & PKT_FIRST) && (flags & PKT_LAST);
}
/* Response packets of a READ of len bytes. */
uint32_t responder_read_packets(const struct peer *peer, uint32_t len);

/* -- model/rdma/responder_wqe.c --------------------------------------------------------------- */

/* The SRQ of the message that is arriving, if it has a CQ: an XRQ, or an XRC SRQ that is not gone;
 * else NULL. */
struct srq *responder_srq(const struct peer *peer);
/* Takes a receive WQE for the message if none is held. */
enum verdict responder_take(struct peer *peer);
/* Writes data at offset of the message to the WQE held, which has room for it; or to buffers that
 * the queue has the keys of. */
enum verdict responder_scatter(struct peer *peer, uint64_t offset, const void *data, size_t len);
enum verdict responder_scatter_to(struct peer *peer, const struct sge *sge, unsigned num_sge,
                                  uint64_t offset, const void *data, size_t len);
/* Completes the WQE held. opcode: PRM_CQE_OPCODE_RESP_*; cqe has what is special; data: see
 * cq_post_data(). */
void responder_complete(struct peer *peer, enum prm_cqe_opcode opcode, uint64_t byte_cnt,
                        struct prm_cqe64 *cqe, bool solicited, const struct cqe_data *data);
/* Completes the WQE held in error. */
void responder_abandon(struct peer *peer, uint8_t syndrome);
/* No line has a WQE of this peer's. */
void responder_forget_wqe(struct peer *peer);

/* -- model/rdma/responder_ud.c ---------------------------------------------------------------- */

void responder_rx_ud(struct peer *peer, const struct roce_packet *pkt);

/* -- model/rdma/responder_tx.c ---------------------------------------------------------------- */

void responder_tx_init(struct peer *peer);
void responder_tx_clear(struct peer *peer);
void responder_tx_reset(struct peer *peer);
/* ACK or NAK of psn. */
void responder_ack(struct peer *peer, uint32_t psn, uint8_t syndrome);
/* Memory for READs and atomics. False: there is none now. */
bool responder_need_answers(struct peer *peer);
/* The same for extended atomics. */
bool responder_need_numbers(struct peer *peer);
/* Whether another READ or atomic answer finds room. */
bool responder_has_room(const struct peer *peer);
/* Queues an answer. Needs room. */
void responder_answer(struct peer *peer, const struct answer *answer);
/* The READ that was just carried out: sends its answer, if that can be now, so that a later WRITE
 * does not change what it brings (docs/explanation/ordering.md). */
void responder_answer_read_at_once(struct peer *peer);
/* ERR: forgets what was to be sent, unless a NAK of ours is in it. */
void responder_tx_flush(struct peer *peer);

#endif
