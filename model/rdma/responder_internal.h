/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces between the files of the responder (model/rdma/responder.h lists them). */
#ifndef HCASIM_MODEL_RESPONDER_INTERNAL_H
#define HCASIM_MODEL_RESPONDER_INTERNAL_H

#include "model/rdma/qp.h"

/* A READ or atomic that was executed, kept so that a duplicate of it can be answered. */
struct responder_resource {
    bool valid, atomic;
    uint32_t psn, npsn; /* PSN of the first response, number of responses */
    uint32_t pdn, rkey; /* READ */
    uint32_t len;       /* READ: bytes; extended atomic: bytes of the number; other atomics: 0 */
    uint64_t va;
    /* Atomic: the value before (of an extended atomic, struct answers has it). READ: number of
     * responses that were sent. */
    uint64_t value;
};

/* An answer to a READ or atomic that is still to be sent. */
struct answer {
    bool is_read;
    bool duplicate;    /* answers a duplicate request */
    bool started;      /* READ: the first response was sent */
    uint8_t resource;  /* index of the resource that it answers */
    uint32_t psn, msn; /* READ: PSN of the next response */
    uint32_t pdn;      /* READ: PD of the key */
    uint32_t rkey;     /* READ */
    uint32_t len;      /* READ: bytes left; extended atomic: bytes of the number */
    uint64_t va;
    uint64_t value; /* atomic */
};

/* The largest number of resources that qpc.log_rra_max can ask for
 * (hca_limits.log_max_ra_res_qp). */
#define RESPONDER_RESOURCES 16
/* At most as many new answers as resources; the rest is for answers to duplicates. */
#define RESPONDER_ANSWERS (2 * RESPONDER_RESOURCES)

/* Bytes of the values that extended atomics found. */
#define RESPONDER_NUMBERS_BYTES ((size_t)RESPONDER_RESOURCES * MASKED_MAX)

/* State for a peer's READs and atomics; made for the first of them. */
struct answers {
    /* a ring of 2^log_rra_max resources (qpc.log_rra_max) */
    struct responder_resource resources[RESPONDER_RESOURCES];
    unsigned next_resource;
    uint8_t (*numbers)[MASKED_MAX]; /* for each resource; NULL: no extended atomic has come yet */
    struct answer queue[RESPONDER_ANSWERS]; /* a ring, in the order of the requests */
    unsigned head, count;
    unsigned fresh; /* answers in the queue that are not for duplicates */
};

/* The result of a request. */
enum verdict {
    VERDICT_OK,
    VERDICT_DROP,       /* ignored */
    VERDICT_RNR,        /* no receive WQE */
    VERDICT_FAULT,      /* a page is missing that may come; handled like VERDICT_RNR */
    VERDICT_INVALID,    /* the request is malformed, or not allowed on this QP */
    VERDICT_LENGTH,     /* more data than the receive WQE holds */
    VERDICT_ACCESS,     /* the rkey does not allow it */
    VERDICT_LOCAL_PROT, /* an lkey of the receive WQE does not allow the access */
    VERDICT_OPERATION,  /* this side's queue is broken */
    VERDICT_MEMORY,     /* the memory behind a key does not answer */
    VERDICT_INVALIDATE, /* the key that a SEND is to invalidate cannot be invalidated */
};

/* Where the data of a SEND packet goes. */
enum sink_kind {
    SINK_WQE,   /* to the held receive WQE */
    SINK_ENTRY, /* to the buffer of a tag list entry (model/rdma/tags.h) */
    SINK_FETCH, /* nowhere: the packet is a request for data that the device fetches */
};

struct sink {
    enum sink_kind kind;
    const struct sge *buffer; /* SINK_ENTRY: the entry's buffer */
    uint64_t room;            /* room for the message, in bytes */
    const uint8_t *data;      /* the part of the packet that goes there */
    size_t len;
    bool in_cqe; /* the data goes into the CQE instead */
};

/* -- model/rdma/responder.c ------------------------------------------------------------------- */

bool responder_step(struct peer *peer, enum responder_event event);
/* A fault of the arriving message ends the QP: sends a NAK (RC) at psn, raises an error completion
 * or event, and the QP goes to ERR. */
void responder_fail(struct peer *peer, enum verdict verdict, uint32_t psn);
/* The same for an accepted request whose answer cannot be made. The message that is arriving has
 * nothing to do with the fault and is flushed. */
void responder_fail_answer(struct peer *peer, enum verdict verdict, uint32_t psn);
/* A request is missing and is treated as lost. */
void responder_rx_gap(struct peer *peer);
/* Carries out the early requests that are due now. */
void responder_rx_early(struct peer *peer);
enum verdict verdict_of(struct peer *peer, enum mem_result result);
/* Returns VERDICT_INVALID, and notes for the log why: a sentence with the value that was wrong and
 * what is allowed. Every VERDICT_INVALID comes from here. */
enum verdict responder_invalid(struct peer *peer, const char *fmt, ...) G_GNUC_PRINTF(2, 3)
    __attribute__((cold));
/* A page is missing for a request or an answer, of which step is what is accessed: parks the
 * responder. False: the page never will be there. */
bool responder_park(struct peer *peer, const struct fault_step *step);
/* The verdict for an access of the peer's to a range of a key. Of op, which begins at address va
 * and has len bytes (0: not known), done bytes come before the access. */
enum verdict verdict_of_remote(struct peer *peer, enum mem_result result,
                               const struct fault_step *step);

/* -- model/rdma/responder_exec.c -------------------------------------------------------------- */

/* Checks and carries out the request that is due. */
enum verdict responder_execute(struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* Fills in the CQE of a SEND, and returns the CQE's opcode. */
enum prm_cqe_opcode responder_send_cqe(const struct peer *peer, const struct roce_packet *pkt,
                                       uint32_t flags, struct prm_cqe64 *cqe);
/* Whether the CQE carries the packet's len bytes of data; only a whole message can be in a CQE. */
static inline bool responder_is_in_cqe(const struct peer *peer, uint32_t flags, size_t len)
{
    return len <= peer->qp->recv_in_cqe && len && (flags & PKT_FIRST) && (flags & PKT_LAST);
}
/* Number of response packets of a READ of len bytes. */
uint32_t responder_read_packets(const struct peer *peer, uint32_t len);

/* -- model/rdma/responder_wqe.c --------------------------------------------------------------- */

/* The SRQ of the arriving message, if that SRQ has a CQ: an XRQ, or an XRC SRQ that still exists.
 * Else NULL. */
struct srq *responder_srq(const struct peer *peer);
/* Takes a receive WQE for the message, unless one is held. */
enum verdict responder_take(struct peer *peer);
/* Writes data at offset of the message to the held WQE, which has room for it; or to other buffers
 * whose keys belong to the queue's PD. */
enum verdict responder_scatter(struct peer *peer, uint64_t offset, const void *data, size_t len);
enum verdict responder_scatter_to(struct peer *peer, const struct sge *sge, unsigned num_sge,
                                  uint64_t offset, const void *data, size_t len);
/* Pads a message of len bytes in the held WQE (qpc.end_padding_mode). */
void responder_pad_end(struct peer *peer, uint64_t len);
/* Completes the held WQE. opcode is a PRM_CQE_OPCODE_RESP_*; cqe has the fields that are specific
 * to the message. data: see cq_post_data(). */
void responder_complete(struct peer *peer, enum prm_cqe_opcode opcode, uint64_t byte_cnt,
                        struct prm_cqe64 *cqe, bool solicited, const struct cqe_data *data);
/* Completes the held WQE in error. */
void responder_abandon(struct peer *peer, uint8_t syndrome);
/* Frees the line that has a WQE of this peer. */
void responder_forget_wqe(struct peer *peer);

/* -- model/rdma/responder_ud.c ---------------------------------------------------------------- */

void responder_rx_ud(struct peer *peer, const struct roce_packet *pkt);

/* -- model/rdma/responder_tx.c ---------------------------------------------------------------- */

void responder_tx_init(struct peer *peer);
void responder_tx_clear(struct peer *peer);
void responder_tx_reset(struct peer *peer);
/* Makes an ACK or NAK of psn due. */
void responder_ack(struct peer *peer, uint32_t psn, uint8_t syndrome);
/* Makes an ACK of all that was carried out due: the answer to a duplicate request. */
void responder_ack_again(struct peer *peer);
/* Allocates the state for READs and atomics. False: there is no memory now. */
bool responder_need_answers(struct peer *peer);
/* The same for extended atomics. */
bool responder_need_numbers(struct peer *peer);
/* Whether there is room for another READ or atomic answer. */
bool responder_has_room(const struct peer *peer);
/* Queues an answer. There must be room. */
void responder_answer(struct peer *peer, const struct answer *answer);
/* Called after a READ was carried out: sends its answer at once, if that is possible, so that a
 * later WRITE does not change the data (docs/explanation/ordering.md). */
void responder_answer_read_at_once(struct peer *peer);
/* ERR: forgets what was to be sent, except a NAK of this responder. */
void responder_tx_flush(struct peer *peer);

#endif
