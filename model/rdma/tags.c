/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements tag matching. The first packet of a message decides where the message goes. */
#include <string.h>
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/tags.h"

#define EAGER_HEADER   PRM_SIZE(tmh)
#define REQUEST_HEADER (PRM_SIZE(tmh) + PRM_SIZE(rvh))

/* -- completions ------------------------------------------------------------------------------- */

static void tags_fill_cqe(const struct srq *srq, uint32_t qpn, struct prm_cqe64 *cqe,
                          enum prm_cqe_opcode opcode, enum prm_cqe_tm_op op, uint16_t handle,
                          uint16_t index)
{
    struct cqe_about about = {.qpn = qpn, .srqn = srq_cqe_srqn(srq), .index = index};

    cqe_fill(cqe, about, opcode);
    PRM_SET(cqe64, cqe, app, PRM_CQE_APP_TAG_MATCHING);
    PRM_SET(cqe64, cqe, app_op, op);
    PRM_SET(cqe64, cqe, app_info, handle);
}

void tags_mark_wqe(struct tags *tags, struct prm_cqe64 *cqe)
{
    PRM_SET(cqe64, cqe, app, PRM_CQE_APP_TAG_MATCHING);
    PRM_SET(cqe64, cqe, app_op,
            tags->msg == TAGS_UNEXPECTED ? PRM_CQE_TM_OP_UNEXPECTED : PRM_CQE_TM_OP_NO_TAG);
    tags->msg = TAGS_NONE;
}

/* Reports a match to software; the data is still to come. */
static void tags_tell_match(struct qp *qp, enum prm_cqe_tm_op op, uint16_t handle,
                            const struct prm_tmh *tmh)
{
    /* rdma-core treats a CQE of NO_PACKET as a receive if the device has matched the message. */
    enum prm_cqe_opcode opcode =
        op == PRM_CQE_TM_OP_CONSUMED ? PRM_CQE_OPCODE_NO_PACKET : PRM_CQE_OPCODE_RESP_SEND;
    struct prm_cqe64 cqe[1] = {0};

    memcpy(PRM_PTR(cqe64, cqe, tmh), tmh, sizeof(*tmh));
    tags_fill_cqe(qp->srq, qp->obj.num, cqe, opcode, op, handle, 0);
    qp_post_cqe(qp, qp->srq->cq, cqe, false);
}

/* Ends a taken entry, whatever the state of the QP, even if the QP ends. If the CQ has no room, it
 * fails, and the XRQ with it; QPs find that with the next message. */
static void tags_end_entry(struct qp *qp, uint16_t handle, struct prm_cqe64 *cqe,
                           enum prm_cqe_opcode opcode, enum prm_cqe_tm_op op)
{
    tags_fill_cqe(qp->srq, qp->srq->tags->entries[handle].qpn, cqe, opcode, op, handle, 0);
    tag_list_release(qp->srq->tags, handle);
    if (!qp->hca->off) {
        cq_post(qp->hca, qp->srq->cq, cqe, op == PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    }
}

void tags_complete(struct qp *qp, uint16_t handle)
{
    const struct tag_entry *entry = &qp->srq->tags->entries[handle];
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, rqpn, entry->rqpn);
    PRM_SET(cqe64, cqe, byte_cnt, PRM_GET(rvh, entry->rvh, len));
    tags_end_entry(qp, handle, cqe, PRM_CQE_OPCODE_RESP_SEND, PRM_CQE_TM_OP_EXPECTED);
}

void tags_cancel(struct qp *qp, uint16_t handle)
{
    struct prm_cqe64 cqe[1] = {0};

    tags_end_entry(qp, handle, cqe, PRM_CQE_OPCODE_NO_PACKET,
                   PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
}

/* -- messages ---------------------------------------------------------------------------------- */

/* Reads the tag of the message that begins with this packet. False: it has no tag. */
static bool tags_read_tag(const struct roce_packet *pkt, uint64_t *tag, bool *is_request)
{
    const struct prm_tmh *tmh = (const void *)pkt->payload;
    size_t header = EAGER_HEADER;

    if (!pkt->payload_len) {
        return false;
    }
    switch (pkt->payload[0]) {
    case PRM_TM_OP_EAGER:
        break;
    case PRM_TM_OP_RNDV:
        header = REQUEST_HEADER;
        break;
    default:
        return false;
    }
    if (pkt->payload_len < header) {
        return false;
    }
    *tag = PRM_GET(tmh, tmh, tag);
    *is_request = header == REQUEST_HEADER;
    return true;
}

/* Whether the device fetches the data of the request. */
static bool tags_can_fetch(const struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                           const struct tag_entry *entry)
{
    const struct qp *qp = peer->qp;
    uint32_t len = PRM_GET(rvh, entry->rvh, len);

    return qp->service->owner->can_fetch(peer, pkt) && (flags & PKT_LAST) &&
           len <= entry->buffer.len && len <= 1ull << qp->log_msg_max;
}

/* Takes a receive WQE for a message. */
static enum verdict tags_take_wqe(struct peer *peer, bool has_tag)
{
    struct tags *t = peer->resp.tags;
    enum verdict verdict = responder_take(peer);

    if (verdict == VERDICT_OK) {
        t->msg = has_tag ? TAGS_UNEXPECTED : TAGS_NO_TAG;
    }
    if (t->msg == TAGS_UNEXPECTED) {
        tag_list_unexpected(peer->qp->srq->tags);
    }
    return verdict;
}

static void tags_take_entry(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    struct tags *t = peer->resp.tags;
    struct tag_entry *entry = &peer->qp->srq->tags->entries[t->handle];

    t->msg = TAGS_MATCHED;
    t->fetches = false;
    entry->qpn = peer->qp->obj.num;
    entry->rqpn = peer->qpn;
    if (t->is_request) {
        memcpy(entry->tmh, pkt->payload, sizeof(entry->tmh));
        memcpy(entry->rvh, pkt->payload + sizeof(entry->tmh), sizeof(entry->rvh));
        t->fetches = tags_can_fetch(peer, pkt, flags, entry);
    }
}

enum verdict tags_begin(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    const struct qp *qp = peer->qp;
    struct tags *t = peer->resp.tags;
    bool has_tag;
    uint64_t tag;

    if (t->msg == TAGS_MATCHED && pkt->payload_len < EAGER_HEADER) {
        /* not the packet that came before */
        return responder_invalid(peer,
                                 "the message was repeated with other contents: its first packet "
                                 "had a tag, and has %zu bytes now",
                                 pkt->payload_len);
    }
    if (t->msg != TAGS_NONE) {
        return VERDICT_OK;
    }
    if (qp->srq->error) {
        return VERDICT_OPERATION;
    }
    has_tag = tags_read_tag(pkt, &tag, &t->is_request);
    t->handle = has_tag ? tag_list_take(qp->hca, qp->srq->tags, tag) : TAG_NONE;
    if (t->handle == TAG_NONE) {
        return tags_take_wqe(peer, has_tag);
    }
    tags_take_entry(peer, pkt, flags);
    return VERDICT_OK;
}

struct sink tags_sink(const struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    const struct tags *t = peer->resp.tags;
    const struct sge *buffer = &peer->qp->srq->tags->entries[t->handle].buffer;
    size_t skip = flags & PKT_FIRST && !t->is_request ? EAGER_HEADER : 0;
    size_t len = pkt->payload_len - skip;

    if (t->fetches) {
        return (struct sink){.kind = SINK_FETCH};
    }
    return (struct sink){
        .kind = SINK_ENTRY,
        .buffer = buffer,
        .room = buffer->len,
        .data = pkt->payload + skip,
        .len = len,
        .in_cqe = peer->qp->recv_in_cqe == CQE_DATA_64 && responder_is_in_cqe(peer, flags, len),
    };
}

/* Completes a matched message. Its last packet (which may be the first) is in the buffer, or its
 * data goes into the CQE. */
static void tags_end(struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                     const struct cqe_data *data)
{
    struct qp *qp = peer->qp;
    struct tags *t = peer->resp.tags;
    struct prm_cqe64 cqe[1] = {0};
    enum prm_cqe_opcode opcode = responder_send_cqe(peer, pkt, flags, cqe);
    enum prm_cqe_tm_op op = PRM_CQE_TM_OP_EXPECTED;

    if (flags & PKT_FIRST) {
        op = t->is_request ? PRM_CQE_TM_OP_CONSUMED_MSG_SW_RNDV : PRM_CQE_TM_OP_CONSUMED_MSG;
        memcpy(PRM_PTR(cqe64, cqe, tmh), pkt->payload, PRM_SIZE(tmh));
    }
    PRM_SET(cqe64, cqe, byte_cnt, peer->resp.done);
    PRM_SET(cqe64, cqe, se, pkt->solicited);
    tags_fill_cqe(qp->srq, qp->obj.num, cqe, opcode, op, t->handle, 0);
    tag_list_release(qp->srq->tags, t->handle);
    t->msg = TAGS_NONE;
    qp_post_cqe_data(qp, qp->srq->cq, cqe, pkt->solicited, data);
}

/* Begins a rendezvous; the request is the whole message. */
static void tags_fetch(struct peer *peer, const struct roce_packet *pkt)
{
    struct tags *t = peer->resp.tags;

    t->msg = TAGS_NONE;
    peer->qp->service->owner->fetch(peer, pkt, t->handle);
    tags_tell_match(peer->qp, PRM_CQE_TM_OP_CONSUMED, t->handle, (const void *)pkt->payload);
}

void tags_delivered(struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                    enum sink_kind kind, const struct cqe_data *data)
{
    const struct tags *t = peer->resp.tags;

    if (kind == SINK_FETCH) {
        tags_fetch(peer, pkt);
    } else if (flags & PKT_LAST) {
        tags_end(peer, pkt, flags, data);
    } else if (flags & PKT_FIRST) {
        tags_tell_match(peer->qp,
                        t->is_request ? PRM_CQE_TM_OP_CONSUMED_SW_RNDV : PRM_CQE_TM_OP_CONSUMED,
                        t->handle, (const void *)pkt->payload);
    }
}

/* -- the list ---------------------------------------------------------------------------------- */

/* Whether software may change an XRQ's list by this QP: its send CQ is the XRQ's CQ, and it is
 * connected to itself. */
static bool tags_is_command_qp(const struct qp *qp)
{
    return qp->srq && qp->srq->tags && qp->send_cq == qp->srq->cq && qp->peer.qpn == qp->obj.num;
}

uint8_t tags_change_list(struct qp *qp, const struct send_wqe *wqe)
{
    const struct prm_wqe_tm_seg *seg = wqe->tags;
    uint16_t index = PRM_GET(wqe_tm_seg, seg, index), handle = 0;
    struct prm_cqe64 cqe[1] = {0};
    enum prm_cqe_tm_op op = PRM_CQE_TM_OP_NOOP;
    struct tag_list *list;
    bool done = true;

    if (!tags_is_command_qp(qp) || qp->srq->error) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    list = qp->srq->tags;
    if (PRM_GET(wqe_tm_seg, seg, has_sw_cnt)) {
        tag_list_sync(list, PRM_GET(wqe_tm_seg, seg, sw_cnt));
    }
    switch (PRM_GET(wqe_tm_seg, seg, opcode)) {
    case PRM_TM_OPCODE_NOP:
        break;
    case PRM_TM_OPCODE_APPEND:
        op = PRM_CQE_TM_OP_APPEND;
        handle = tag_list_append(list, index, PRM_GET(wqe_tm_seg, seg, append_tag),
                                 PRM_GET(wqe_tm_seg, seg, append_mask),
                                 wqe->num_sge ? &wqe->sge[0] : &(struct sge){0});
        if (handle == TAG_NONE) {
            return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        }
        break;
    case PRM_TM_OPCODE_REMOVE:
        op = PRM_CQE_TM_OP_REMOVE;
        handle = index;
        done = tag_list_remove(list, handle);
        break;
    default:
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if (PRM_GET(wqe_tm_seg, seg, cqe_req)) {
        PRM_SET(cqe64, cqe, tm_success, done);
        PRM_SET(cqe64, cqe, hw_phase_cnt, list->hw_phase);
        tags_fill_cqe(qp->srq, qp->obj.num, cqe, PRM_CQE_OPCODE_NO_PACKET, op, handle, wqe->index);
        qp_post_cqe(qp, qp->srq->cq, cqe, false);
    }
    return 0;
}

/* -- life -------------------------------------------------------------------------------------- */

bool tags_init(struct peer *peer)
{
    struct qp *qp = peer->qp;
    struct tags *t;

    if (!qp->srq || !qp->srq->tags) {
        return true;
    }
    t = peer->resp.tags = qp_alloc(qp, sizeof(*t));
    if (!t) {
        return false;
    }
    if (!qp->srq->attr.fetches || PRM_GET(qpc, qp->qpc, offload_type) != PRM_QP_OFFLOAD_RNDV) {
        return true;
    }
    return rendezvous_init(qp, &t->rendezvous);
}

void tags_clear(struct peer *peer)
{
    struct tags *t = peer->resp.tags;

    if (t) {
        tags_reset(peer);
        rendezvous_clear(peer->qp, &t->rendezvous);
        qp_dealloc(peer->qp, t, sizeof(*t));
        peer->resp.tags = NULL;
    }
}

void tags_lose_wqe(struct peer *peer)
{
    if (!tags_has_entry(peer)) {
        tags_flush(peer);
    }
}

void tags_flush(struct peer *peer)
{
    struct tags *t = peer->resp.tags;
    uint8_t msg;

    if (!t) {
        return;
    }
    msg = t->msg;
    t->msg = TAGS_NONE;
    if (msg == TAGS_MATCHED) {
        tags_cancel(peer->qp, t->handle);
    } else if (msg == TAGS_UNEXPECTED) {
        tag_list_not_delivered(peer->qp->srq->tags);
    }
}

void tags_reset(struct peer *peer)
{
    struct tags *t = peer->resp.tags;

    if (t) {
        tags_flush(peer);
        rendezvous_reset(peer->qp, &t->rendezvous);
    }
}
