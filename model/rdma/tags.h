/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: receives SENDs to a QP or DC target that is on an XRQ (rdma-core:
 * Documentation/tag_matching.md; docs/adr/0010 has what that leaves open).
 *
 * A message begins with a header (prm/tag_matching.prm). A message that is eager or asks for a
 * rendezvous has a tag. It takes the first entry of the XRQ's tag list (model/queue/tag_list.h)
 * that matches the tag. Any other message takes a receive WQE, as from an SRQ. Software gets these
 * values of app_op in CQEs, which all are on the XRQ's CQ:
 *
 *   eager, matched        the data goes to the entry's buffer, without the header. One packet:
 *                         CONSUMED_MSG. Several: CONSUMED with the first, EXPECTED with the last
 *   rendezvous, matched   CONSUMED; the device fetches the data (model/rdma/rendezvous.h); then
 *                         EXPECTED. If the device does not fetch the data, software must do it;
 *                         the whole request is in the buffer: CONSUMED_MSG_SW_RNDV, or of several
 *                         packets CONSUMED_SW_RNDV, EXPECTED
 *   tag, not matched      UNEXPECTED
 *   no tag                NO_TAG: no header or an incomplete one, FIN, unknown operations
 *
 * The device does not fetch the data in these cases: the QP, the DC target or its XRQ does not have
 * the offload; the request has several packets; there is more data than the buffer holds, or than a
 * message may have. For a request to a DC target the XRQ fetches the data (model/rdma/xrq_dci.h).
 *
 * CQEs that report a match carry the TMH. If a matched message will not come as a whole, its entry
 * ends with MSG_COMPLETION_CANCELED.
 *
 * Software changes the list by WQEs of opcode TAG_MATCHING, on a QP that is on the XRQ and
 * connected to itself.
 */
#ifndef HCASIM_MODEL_TAGS_H
#define HCASIM_MODEL_TAGS_H

#include "model/rdma/rendezvous.h"
#include "model/rdma/responder_internal.h"

enum tags_msg {
    TAGS_NONE,       /* no message has begun */
    TAGS_MATCHED,    /* it took an entry */
    TAGS_UNEXPECTED, /* it took a receive WQE and has a tag */
    TAGS_NO_TAG,     /* it took a receive WQE and has no tag */
};

/* State of each peer of a QP on an XRQ. */
struct tags {
    struct rendezvous rendezvous;
    uint8_t msg;     /* enum tags_msg, of the arriving message */
    bool is_request; /* matched: the message asks for a rendezvous */
    bool fetches;    /* the device carries that rendezvous out */
    uint16_t handle; /* matched: handle of the entry */
};

/* Called when the QP has its SRQ. Without an XRQ it does nothing. False: no memory. */
bool tags_init(struct peer *peer);
void tags_clear(struct peer *peer);
/* RST, or the end: cancels every matched message. */
void tags_reset(struct peer *peer);
/* ERR: the arriving message will not come. Rendezvous end with the send queue. */
void tags_flush(struct peer *peer);

/* Takes an entry, or else a receive WQE, for the message that the packet begins. A packet that
 * comes again, because a page was missing, finds that its message has already been matched. */
enum verdict tags_begin(struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* Whether the message took an entry. tags_sink(): where the packet's data goes then. */
static inline bool tags_has_entry(const struct peer *peer)
{
    return peer->resp.tags->msg == TAGS_MATCHED;
}
struct sink tags_sink(const struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* Called when the packet's data is in place: reports the match to software, or fetches the data.
 * data: the packet's data that goes into the CQE, or NULL. */
void tags_delivered(struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                    enum sink_kind kind, const struct cqe_data *data);
/* Completes the CQE of a receive WQE that a SEND has filled. */
void tags_mark_wqe(struct tags *tags, struct prm_cqe64 *cqe);
/* A WRITE with immediate completes the peer's receive WQE. If a SEND had taken this WQE before and
 * got an RNR NAK, the next SEND begins a new message: it takes a WQE, or may match. */
void tags_lose_wqe(struct peer *peer);

/* The data of a taken entry's rendezvous is there (tags_complete()), or will not come
 * (tags_cancel()). */
void tags_complete(struct qp *qp, uint16_t handle);
void tags_cancel(struct qp *qp, uint16_t handle);

/* Carries out a WQE of opcode TAG_MATCHING. Returns 0 or the syndrome with which it fails. */
uint8_t tags_change_list(struct qp *qp, const struct send_wqe *wqe);

#endif
