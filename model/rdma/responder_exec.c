/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes the requests of connected QPs: SEND, WRITE, READ, atomics. Each request is checked in
 * the order that responder.c describes, and gives a verdict.
 */
#include <inttypes.h>
#include <string.h>
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/sig_report.h"
#include "model/rdma/tags.h"

#define MAX_MESSAGE 0x80000000ull /* most bytes of a message (C9-94) */

/* -- invalid requests ------------------------------------------------------------------------- */

/* The QP's access flags do not have the operation. */
static enum verdict exec_not_enabled(struct peer *peer, const char *operation)
{
    const struct qp *qp = peer->qp;
    bool any = qp->rre || qp->rwe || qp->rae;

    return responder_invalid(
        peer, "the QP does not allow %s; its qp_access_flags have %s%s%s%s%s%s", operation,
        qp->rre ? "REMOTE_READ" : "", qp->rre && (qp->rwe || qp->rae) ? ", " : "",
        qp->rwe ? "REMOTE_WRITE" : "", qp->rwe && qp->rae ? ", " : "",
        qp->rae ? "REMOTE_ATOMIC" : "", any ? "" : "no remote right");
}

static enum verdict exec_bad_sequence(struct peer *peer, const struct roce_packet *pkt)
{
    static const char *const arriving[] = {
        [MSG_NONE] = "no message has begun",
        [MSG_SEND] = "a SEND is arriving",
        [MSG_WRITE] = "a WRITE is arriving",
    };

    return responder_invalid(peer, "the packet is %s, but %s", bth_opcodes[pkt->opcode].name,
                             arriving[peer->resp.msg]);
}

static enum verdict exec_bad_recipient(struct peer *peer, const struct roce_packet *pkt)
{
    return pkt->xrc_srqn == peer->resp.srqn
               ? responder_invalid(peer, "SRQ 0x%x does not exist in the QP's XRC domain",
                                   pkt->xrc_srqn)
               : responder_invalid(peer,
                                   "the packet names SRQ 0x%x, but its message names SRQ 0x%x",
                                   pkt->xrc_srqn, peer->resp.srqn);
}

static enum verdict exec_bad_len(struct peer *peer, const struct roce_packet *pkt)
{
    const char *name = bth_opcodes[pkt->opcode].name;

    return pkt->payload_len == 0
               ? responder_invalid(peer, "the packet (%s) is empty; only a whole message may be",
                                   name)
               : responder_invalid(peer,
                                   "the packet (%s) has %zu bytes, but the path MTU is %u (the "
                                   "path_mtu of both QPs must be equal)",
                                   name, pkt->payload_len, peer->qp->mtu);
}

static enum verdict exec_too_long(struct peer *peer, uint64_t len)
{
    return responder_invalid(peer,
                             "the message has %" PRIu64 " bytes; the QP allows %" PRIu64 " bytes",
                             len, (uint64_t)MIN(MAX_MESSAGE, 1ull << peer->qp->log_msg_max));
}

/* -- SEND, WRITE ------------------------------------------------------------------------------- */

/* Whether the packet's position in its message (first, middle, last, only) fits the arriving
 * message (IBTA 9.7.4). */
static bool exec_sequence_ok(const struct responder *resp, uint32_t flags)
{
    enum responder_msg msg = flags & PKT_SEND ? MSG_SEND : flags & PKT_WRITE ? MSG_WRITE : MSG_NONE;

    return flags & PKT_FIRST ? resp->msg == MSG_NONE : resp->msg == msg;
}

/* Whether the packet's length is valid: each packet of a message except the last has the path MTU,
 * and the last of several packets is not empty (C9-92). */
static bool exec_len_ok(const struct peer *peer, uint32_t flags, size_t len)
{
    const struct qp *qp = peer->qp;

    if (!(flags & PKT_LAST)) {
        return len == qp->mtu;
    }
    return len <= qp->mtu && (len > 0 || (flags & PKT_FIRST));
}

enum prm_cqe_opcode responder_send_cqe(const struct peer *peer, const struct roce_packet *pkt,
                                       uint32_t flags, struct prm_cqe64 *cqe)
{
    enum prm_cqe_opcode opcode = PRM_CQE_OPCODE_RESP_SEND;

    if (flags & HDR_IETH) {
        opcode = PRM_CQE_OPCODE_RESP_SEND_INV;
        PRM_SET(cqe64, cqe, inval_rkey, pkt->imm);
    } else if (flags & HDR_IMM_DT) {
        opcode = flags & PKT_WRITE ? PRM_CQE_OPCODE_RESP_WR_IMM : PRM_CQE_OPCODE_RESP_SEND_IMM;
        PRM_SET(cqe64, cqe, immediate, pkt->imm);
    }
    PRM_SET(cqe64, cqe, rqpn, peer->qpn);
    return opcode;
}

static void exec_complete(struct peer *peer, const struct roce_packet *pkt, uint32_t flags,
                          const struct cqe_data *data)
{
    struct responder *resp = &peer->resp;
    struct prm_cqe64 cqe[1] = {0};
    enum prm_cqe_opcode opcode = responder_send_cqe(peer, pkt, flags, cqe);

    if (G_UNLIKELY(resp->tags)) {
        if (flags & PKT_SEND) {
            tags_mark_wqe(resp->tags, cqe);
        } else {
            tags_lose_wqe(peer);
        }
    }
    if (G_UNLIKELY(peer->qp->pads_end) && (flags & PKT_SEND) && !data) {
        responder_pad_end(peer, resp->done);
    }
    responder_complete(peer, opcode, resp->done, cqe, pkt->solicited, data);
}

static enum verdict exec_check_send(struct peer *peer, size_t len, uint64_t room)
{
    uint64_t end = peer->resp.done + len;

    if (end > room) {
        return VERDICT_LENGTH;
    }
    return end > 1ull << peer->qp->log_msg_max ? exec_too_long(peer, end) : VERDICT_OK;
}

static enum verdict exec_invalidate(struct peer *peer, uint32_t key)
{
    struct qp *qp = peer->qp;

    return mkey_allows_qp(qp->hca, key, qp->obj.num) &&
                   mkey_invalidate(qp->hca, key, peer->resp.pdn, true) == MEM_OK
               ? VERDICT_OK
               : VERDICT_INVALIDATE;
}

/* Delivers a packet's data. The message begins only when the data of its first packet is delivered.
 * If a page is missing, the packet is requested again and is still the first. */
static inline enum verdict exec_deliver(struct peer *peer, const struct roce_packet *pkt,
                                        uint32_t flags, const struct sink *sink)
{
    struct cqe_data in_cqe = {sink->data, (uint8_t)sink->len, peer->qp->recv_in_cqe};
    const struct cqe_data *data = sink->in_cqe ? &in_cqe : NULL;
    struct responder *resp = &peer->resp;
    enum verdict verdict;

    if (flags & PKT_FIRST) {
        resp->done = 0;
        memset(&resp->cursor, 0, sizeof(resp->cursor));
    }
    verdict = exec_check_send(peer, sink->len, sink->room);
    if (verdict == VERDICT_OK && sink->len && !data) {
        verdict =
            sink->kind == SINK_ENTRY
                ? responder_scatter_to(peer, sink->buffer, 1, resp->done, sink->data, sink->len)
                : responder_scatter(peer, resp->done, sink->data, sink->len);
    }
    if (verdict == VERDICT_OK && (flags & HDR_IETH)) {
        verdict = exec_invalidate(peer, pkt->imm);
    }
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    resp->done += sink->len;
    resp->msg = flags & PKT_LAST ? MSG_NONE : MSG_SEND;
    if (sink->kind != SINK_WQE) {
        tags_delivered(peer, pkt, flags, sink->kind, data);
    } else if (flags & PKT_LAST) {
        exec_complete(peer, pkt, flags, data);
    }
    return VERDICT_OK;
}

/* The sink for a receive WQE: the whole packet. */
static inline struct sink exec_wqe_sink(const struct peer *peer, const struct roce_packet *pkt,
                                        uint32_t flags)
{
    return (struct sink){
        .kind = SINK_WQE,
        .room = peer->resp.wqe_len,
        .data = pkt->payload,
        .len = pkt->payload_len,
        .in_cqe = responder_is_in_cqe(peer, flags, pkt->payload_len),
    };
}

static enum verdict exec_send(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    enum verdict verdict = flags & PKT_FIRST ? responder_take(peer) : VERDICT_OK;
    struct sink sink = exec_wqe_sink(peer, pkt, flags);

    return verdict == VERDICT_OK ? exec_deliver(peer, pkt, flags, &sink) : verdict;
}

/* A SEND to a queue that matches tags; its data may go elsewhere. */
static enum verdict exec_send_tagged(struct peer *peer, const struct roce_packet *pkt,
                                     uint32_t flags)
{
    enum verdict verdict = flags & PKT_FIRST ? tags_begin(peer, pkt, flags) : VERDICT_OK;
    struct sink sink;

    if (verdict != VERDICT_OK) {
        return verdict;
    }
    sink = tags_has_entry(peer) ? tags_sink(peer, pkt, flags) : exec_wqe_sink(peer, pkt, flags);
    return exec_deliver(peer, pkt, flags, &sink);
}

/* Checks the RETH of a WRITE or READ. */
static enum verdict exec_check_reth(struct peer *peer, const struct roce_packet *pkt,
                                    unsigned access)
{
    struct qp *qp = peer->qp;

    if (pkt->reth.len > MAX_MESSAGE || pkt->reth.len > 1ull << qp->log_msg_max) {
        return exec_too_long(peer, pkt->reth.len);
    }
    if (pkt->reth.len && !mkey_allows_qp(qp->hca, pkt->reth.rkey, qp->obj.num)) {
        return VERDICT_ACCESS;
    }
    return verdict_of(peer, mkey_check(qp->hca, pkt->reth.rkey, peer->resp.pdn, pkt->reth.va,
                                       pkt->reth.len, access));
}

/* The packet's data could not be written to va. left: bytes of the WRITE from va on. */
static G_GNUC_NO_INLINE __attribute__((cold)) enum verdict
exec_write_failed(struct peer *peer, const struct roce_packet *pkt, enum mem_result result,
                  uint32_t rkey, uint64_t va, uint64_t left)
{
    uint64_t done = peer->resp.done;

    return verdict_of_remote(peer, result,
                             &(struct fault_step){
                                 .op = FAULT_WRITE,
                                 .key = rkey,
                                 .va = va - done,
                                 .done = done,
                                 .len = done + left,
                                 .part = (uint32_t)pkt->payload_len,
                             });
}

static enum verdict exec_write(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    bool first = flags & PKT_FIRST, last = flags & PKT_LAST;
    uint64_t left = first ? pkt->reth.len : resp->left;
    uint64_t va = first ? pkt->reth.va : resp->va;
    uint32_t rkey = first ? pkt->reth.rkey : resp->rkey;
    enum verdict verdict;

    if (first && !qp->rwe) {
        return exec_not_enabled(peer, "RDMA WRITE");
    }
    /* The packets together must have exactly the length that the RETH announced (IBTA 9.7.4). */
    if (last ? pkt->payload_len != left : pkt->payload_len >= left) {
        return responder_invalid(peer,
                                 "the packet (%s) has %zu bytes, but %" PRIu64
                                 " bytes of the WRITE are still to come",
                                 bth_opcodes[pkt->opcode].name, pkt->payload_len, left);
    }
    /* Takes the WQE before the key is checked, because this WQE reports a bad key. */
    if (flags & HDR_IMM_DT) {
        verdict = responder_take(peer);
        if (verdict != VERDICT_OK) {
            return verdict;
        }
    }
    if (first) {
        verdict = exec_check_reth(peer, pkt, MEM_REMOTE_WRITE);
        if (verdict != VERDICT_OK) {
            return verdict;
        }
        qp_counters(qp)->rx_write_requests++;
        resp->done = 0;
    }
    if (pkt->payload_len) {
        enum mem_result result = mkey_write(qp->hca, rkey, resp->pdn, va, pkt->payload,
                                            pkt->payload_len, MEM_REMOTE_WRITE);

        if (G_UNLIKELY(result != MEM_OK)) {
            return exec_write_failed(peer, pkt, result, rkey, va, left);
        }
        if (!sig_check_received(peer, resp->pdn)) {
            return VERDICT_DROP;
        }
    }
    resp->msg = last ? MSG_NONE : MSG_WRITE;
    resp->rkey = rkey;
    resp->va = va + pkt->payload_len;
    resp->left = left - pkt->payload_len;
    resp->done += pkt->payload_len;
    if (flags & HDR_IMM_DT) {
        exec_complete(peer, pkt, flags, NULL);
    }
    return VERDICT_OK;
}

/* -- READ, atomics ----------------------------------------------------------------------------- */

uint32_t responder_read_packets(const struct peer *peer, uint32_t len)
{
    uint32_t mtu = peer->qp->mtu;

    return len ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

/* Whether there is room for one more READ or atomic. If there are more than the QP was set up for,
 * that is a fault of the requester (IBTA 9.7.4: NAK invalid request). A queue full of answers to
 * duplicates is not a fault, nor is missing memory. */
static enum verdict exec_check_room(struct peer *peer)
{
    if (!responder_need_answers(peer)) {
        return VERDICT_DROP;
    }
    if (peer->resp.answers->fresh >= 1u << peer->qp->log_rra_max) {
        return responder_invalid(peer,
                                 "more READs and atomics are outstanding than max_dest_rd_atomic "
                                 "of the QP, which is %u",
                                 1u << peer->qp->log_rra_max);
    }
    return responder_has_room(peer) ? VERDICT_OK : VERDICT_DROP;
}

static struct responder_resource *exec_new_resource(struct peer *peer)
{
    struct answers *answers = peer->resp.answers;
    struct responder_resource *res = &answers->resources[answers->next_resource];

    answers->next_resource = (answers->next_resource + 1) & ((1u << peer->qp->log_rra_max) - 1);
    return res;
}

static enum verdict exec_read(struct peer *peer, const struct roce_packet *pkt)
{
    struct responder_resource *res;
    struct qp *qp = peer->qp;
    enum verdict verdict;

    if (!qp->rre) {
        return exec_not_enabled(peer, "RDMA READ");
    }
    verdict = exec_check_reth(peer, pkt, MEM_REMOTE_READ);
    if (verdict == VERDICT_OK) {
        verdict = exec_check_room(peer);
    }
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    qp_counters(qp)->rx_read_requests++;
    res = exec_new_resource(peer);
    *res = (struct responder_resource){
        .valid = true,
        .psn = pkt->psn,
        .npsn = responder_read_packets(peer, pkt->reth.len),
        .va = pkt->reth.va,
        .pdn = peer->resp.pdn,
        .rkey = pkt->reth.rkey,
        .len = pkt->reth.len,
    };
    responder_answer(peer, &(struct answer){
                               .is_read = true,
                               .psn = pkt->psn,
                               .msn = (peer->resp.msn + 1) & PSN_MASK,
                               .va = pkt->reth.va,
                               .pdn = peer->resp.pdn,
                               .rkey = pkt->reth.rkey,
                               .len = pkt->reth.len,
                               .resource = (uint8_t)(res - peer->resp.answers->resources),
                           });
    return VERDICT_OK;
}

static enum masked_op exec_masked_op(const struct roce_packet *pkt)
{
    return (pkt->opcode & BTH_EXTENDED_OP) == BTH_EXTENDED_CMP_SWAP ? MASKED_CMP_SWAP
                                                                    : MASKED_FETCH_ADD;
}

/* The longest number that the context's atomic_mode allows; 0: none. From 8 bytes on, there is a
 * mode for each power of two. */
static uint32_t exec_number_max(const struct qp *qp)
{
    return qp->atomic_mode < PRM_ATOMIC_MODE_UP_TO_8B
               ? 0
               : 8u << (qp->atomic_mode - PRM_ATOMIC_MODE_UP_TO_8B);
}

static enum verdict exec_no_atomic_mode(struct peer *peer)
{
    return responder_invalid(peer,
                             "the atomic_mode of the QP's context, which is %u, does not "
                             "allow the atomic",
                             peer->qp->atomic_mode);
}

static enum verdict exec_misaligned(struct peer *peer, uint64_t va, uint32_t len)
{
    return responder_invalid(peer, "the address 0x%" PRIx64 " of the atomic is no multiple of %u",
                             va, len);
}

/* Checks that an extended atomic is valid and has a size that the QP's context allows. */
static enum verdict exec_check_extended(struct peer *peer, const struct roce_packet *pkt)
{
    const struct qp *qp = peer->qp;
    uint32_t len = pkt->reth.len;
    size_t operands = masked_operand_bytes(exec_masked_op(pkt), len);

    if (!qp->rae) {
        return exec_not_enabled(peer, "atomics");
    }
    if (exec_number_max(qp) == 0) {
        return exec_no_atomic_mode(peer);
    }
    if (!masked_len_ok(len) || len > exec_number_max(qp)) {
        return responder_invalid(peer,
                                 "the extended atomic is on %u bytes; the QP allows powers of two "
                                 "from %d to %u",
                                 len, MASKED_MIN, exec_number_max(qp));
    }
    if (pkt->reth.va % len) {
        return exec_misaligned(peer, pkt->reth.va, len);
    }
    if (pkt->payload_len != operands || operands > qp->mtu) {
        return responder_invalid(peer,
                                 "the operands of the extended atomic have %zu bytes; they must "
                                 "have %zu, and not more than the path MTU, which is %u",
                                 pkt->payload_len, operands, qp->mtu);
    }
    return VERDICT_OK;
}

static G_GNUC_NO_INLINE __attribute__((cold)) enum verdict
exec_atomic_failed(struct peer *peer, enum mem_result result, uint32_t rkey, uint64_t va,
                   uint32_t len)
{
    return verdict_of_remote(peer, result,
                             &(struct fault_step){
                                 .op = FAULT_ATOMIC,
                                 .key = rkey,
                                 .va = va,
                                 .len = len,
                                 .part = len,
                             });
}

static enum verdict exec_extended(struct peer *peer, const struct roce_packet *pkt)
{
    struct qp *qp = peer->qp;
    uint32_t len = pkt->reth.len;
    struct responder_resource *res;
    uint8_t operands[MASKED_OPERANDS_MAX];
    uint8_t number[MASKED_MAX];
    enum mem_result result;
    enum verdict verdict;

    verdict = exec_check_extended(peer, pkt);
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    verdict = responder_need_numbers(peer) ? exec_check_room(peer) : VERDICT_DROP;
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    if (!mkey_allows_qp(qp->hca, pkt->reth.rkey, qp->obj.num)) {
        return VERDICT_ACCESS;
    }
    /* In memory that both hosts share, the peer may still write to the packet. */
    memcpy(operands, pkt->payload, pkt->payload_len);
    result = mkey_masked(qp->hca, pkt->reth.rkey, peer->resp.pdn, pkt->reth.va, exec_masked_op(pkt),
                         len, operands, number);
    if (result != MEM_OK) {
        return exec_atomic_failed(peer, result, pkt->reth.rkey, pkt->reth.va, len);
    }
    qp_counters(qp)->rx_atomic_requests++;
    res = exec_new_resource(peer);
    *res = (struct responder_resource){
        .valid = true,
        .atomic = true,
        .psn = pkt->psn,
        .npsn = 1,
        .len = len,
    };
    memcpy(peer->resp.answers->numbers[res - peer->resp.answers->resources], number, len);
    responder_answer(peer, &(struct answer){
                               .psn = pkt->psn,
                               .msn = (peer->resp.msn + 1) & PSN_MASK,
                               .len = len,
                               .resource = (uint8_t)(res - peer->resp.answers->resources),
                           });
    return VERDICT_OK;
}

static enum verdict exec_atomic(struct peer *peer, const struct roce_packet *pkt)
{
    struct qp *qp = peer->qp;
    uint8_t op = pkt->opcode & 0x1f;
    uint32_t pdn = peer->resp.pdn;
    enum mem_result result;
    enum verdict verdict;
    uint64_t value = 0;

    if (!qp->rae) {
        return exec_not_enabled(peer, "atomics");
    }
    if (qp->atomic_mode == PRM_ATOMIC_MODE_NONE) {
        return exec_no_atomic_mode(peer);
    }
    if (pkt->atomic.va % 8) {
        return exec_misaligned(peer, pkt->atomic.va, 8);
    }
    verdict = exec_check_room(peer);
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    if (!mkey_allows_qp(qp->hca, pkt->atomic.rkey, qp->obj.num)) {
        return VERDICT_ACCESS;
    }
    if (op == BTH_CMP_SWAP) {
        result = mkey_cmp_swap(qp->hca, pkt->atomic.rkey, pdn, pkt->atomic.va, pkt->atomic.compare,
                               pkt->atomic.swap_add, &value);
    } else {
        result = mkey_fetch_add(qp->hca, pkt->atomic.rkey, pdn, pkt->atomic.va,
                                pkt->atomic.swap_add, &value);
    }
    if (result != MEM_OK) {
        return exec_atomic_failed(peer, result, pkt->atomic.rkey, pkt->atomic.va, 8);
    }
    qp_counters(qp)->rx_atomic_requests++;
    *exec_new_resource(peer) = (struct responder_resource){
        .valid = true,
        .atomic = true,
        .psn = pkt->psn,
        .npsn = 1,
        .value = value,
    };
    responder_answer(peer, &(struct answer){
                               .psn = pkt->psn,
                               .msn = (peer->resp.msn + 1) & PSN_MASK,
                               .value = value,
                           });
    return VERDICT_OK;
}

/* Finds the memory and WQEs that the request may use: those of the QP, or with XRC those of the SRQ
 * that the request names. That SRQ must belong to the QP's XRC domain and be the same throughout a
 * message (annex A14). The keys in an SRQ's WQEs belong to the SRQ's PD, which may differ from the
 * QP's (IBTA 10.2.3.1). */
static bool exec_find_recipient(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    const struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    const struct srq *srq;

    if (!qp->service->names_srq) {
        resp->pdn = qp->pdn;
        resp->recv_pdn = qp_recv_pdn(qp);
        return true;
    }
    if (flags & PKT_FIRST) {
        resp->srqn = pkt->xrc_srqn;
    }
    srq = responder_srq(peer);
    if (!srq || pkt->xrc_srqn != resp->srqn) {
        return false;
    }
    resp->pdn = resp->recv_pdn = srq->attr.pdn;
    return true;
}

enum verdict responder_execute(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    if (!exec_sequence_ok(&peer->resp, flags)) {
        return exec_bad_sequence(peer, pkt);
    }
    if (!exec_find_recipient(peer, pkt, flags)) {
        return exec_bad_recipient(peer, pkt);
    }
    if (flags & PKT_READ) {
        return exec_read(peer, pkt);
    }
    if (flags & PKT_ATOMIC) {
        return flags & HDR_RETH ? exec_extended(peer, pkt) : exec_atomic(peer, pkt);
    }
    if (!exec_len_ok(peer, flags, pkt->payload_len)) {
        return exec_bad_len(peer, pkt);
    }
    if (!(flags & PKT_SEND)) {
        return exec_write(peer, pkt, flags);
    }
    return G_UNLIKELY(peer->resp.tags) ? exec_send_tagged(peer, pkt, flags)
                                       : exec_send(peer, pkt, flags);
}
