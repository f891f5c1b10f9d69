/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: what becomes of the SENDs to a QP or DC target that is on an XRQ (rdma-core:
 * Documentation/tag_matching.md; what that leaves open: docs/adr/0010).
 *
 * A message begins with a header (prm/tag_matching.prm). One that is eager or asks for a rendezvous
 * has a tag, and takes the first entry of the XRQ's tag list (model/queue/tag_list.h) which that
 * matches; any other takes a receive WQE, as from an SRQ. What software hears (app_op of the CQEs,
 * all on the XRQ's CQ):
 *
 *   eager, matched        its data goes to the entry's buffer, without the header. One packet:
 *                         CONSUMED_MSG. Several: CONSUMED with the first, EXPECTED with the last
 *   rendezvous, matched   CONSUMED; the device fetches the data (model/rdma/rendezvous.h); then
 *                         EXPECTED. What it does not fetch is left to software, with the whole
 *                         request in the buffer: CONSUMED_MSG_SW_RNDV, or of several packets
 *                         CONSUMED_SW_RNDV, EXPECTED
 *   tag, not matched      UNEXPECTED
 *   no tag                NO_TAG: no header or less than a whole one, FIN, unknown operations
 *
 * Not fetched is what a QP or DC target without the offload is asked for, or of an XRQ without it;
 * a request of several packets; and more data than the buffer holds, or a message may have. What a
 * DC target is asked for the XRQ fetches (model/rdma/xrq_dci.h).
 *
 * CQEs that tell of a match carry the TMH. A message that was matched and will not come as a whole
 * ends its entry with MSG_COMPLETION_CANCELED.
 *
 * Software changes the list by WQEs of opcode TAG_MATCHING on a QP that is on the XRQ and connected
 * to itself.
 */
#ifndef HCASIM_MODEL_TAGS_H
#define HCASIM_MODEL_TAGS_H

#include "model/rdma/rendezvous.h"
#include "model/rdma/responder_internal.h"

enum tags_msg {
    TAGS_NONE,       /* no message has begun */
    TAGS_MATCHED,    /* it took an entry */
    TAGS_UNEXPECTED, /* it took a receive WQE, */
    TAGS_NO_TAG,     /* having no tag */
};

/* Of each peer of a QP on an XRQ. */
struct tags {
    struct rendezvous rendezvous;
    uint8_t msg;     /* enum tags_msg: the message that is arriving */
    bool is_request; /* matched: it asks for a rendezvous, */
    bool fetches;    /* which the device carries out */
    uint16_t handle; /* matched: the entry */
};

/* Once the QP has its SRQ; without an XRQ nothing is done. False: no memory. */
bool tags_init(struct peer *peer);
void tags_clear(struct peer *peer);
/* RST, or the end: whatever was matched is canceled. */
void tags_reset(struct peer *peer);
/* ERR: the message that is arriving will not come; rendezvous go with the send queue. */
void tags_flush(struct peer *peer);

/* The message of a SEND's first packet takes an entry, or else a receive WQE. A packet that comes
 * again, because a page was missing, finds its match made. */
enum verdict tags_begin(struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* Whether it took an entry; where a packet of it goes then. */
static inline bool tags_has_entry(const struct peer *peer)
{
    return peer->resp.tags->msg == TAGS_MATCHED;
}
struct sink tags_sink(const struct peer *peer, const struct roce_packet *pkt, uint32_t flags);
/* The packet is there: software is told of the entry, or the data is fetched. data: what of the
 * packet goes into the CQE, or NULL. */
void tags_delivered(struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                    enum sink_kind kind, const struct cqe_data *data);
/* What the CQE of a receive WQE says besides, which a SEND has filled. */
void tags_mark_wqe(struct tags *tags, struct prm_cqe64 *cqe);
/* A WRITE with immediate completes the peer's receive WQE. If a SEND had taken this WQE before and
 * got an RNR NAK, the next SEND begins anew: it takes a WQE, or may match. */
void tags_lose_wqe(struct peer *peer);

/* The data of a taken entry's rendezvous is there, or will not come. */
void tags_complete(struct qp *qp, uint16_t handle);
void tags_cancel(struct qp *qp, uint16_t handle);

/* A WQE of opcode TAG_MATCHING. Returns 0 or the syndrome that it fails with. */
uint8_t tags_change_list(struct qp *qp, const struct send_wqe *wqe);

#endif
