/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles sessions at their target: which responder a request is for, which CONNECT begins a
 * session, and which initiator is refused; see model/rdma/dct.h.
 */
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/rdma/notice.h"
#include "model/rdma/notification_point.h"
#include "model/rdma/dct.h"
#include "model/rdma/early.h"
#include "model/rdma/rdma.h"
#include "model/rdma/reaction_point.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/tags.h"

/* -- packets that are not responses ----------------------------------------------------------- */

void dc_address(const struct peer *peer, struct roce_packet *pkt)
{
    pkt->dceth.version = peer->qp->hca->limits.dc_version;
    pkt->dceth.session = peer->session;
    pkt->dceth.number = peer->qp->obj.num;
}

/* Numbers also grow with time. So if another host gets this address later, its sessions are not
 * older. */
uint32_t dc_new_session(struct hca *hca)
{
    struct dc_pool *pool = &hca->rdma->dc;

    if (!pool->session) {
        pool->session = (uint32_t)(hca_now(hca) >> 18) & PSN_MASK;
    }
    pool->session = pool->session == PSN_MASK ? 1 : pool->session + 1;
    return pool->session;
}

/* Swaps the addresses of a received packet for the answer. */
static void dc_answer_address(const struct dct *dct, const struct roce_packet *pkt,
                              struct roce_addr *addr)
{
    const struct prm_dctc *dctc = dct->dctc;

    *addr = pkt->addr;
    memcpy(addr->dmac, pkt->addr.smac, 6);
    memcpy(addr->smac, pkt->addr.dmac, 6);
    memcpy(addr->dgid, pkt->addr.sgid, 16);
    memcpy(addr->sgid, pkt->addr.dgid, 16);
    addr->tclass = (uint8_t)PRM_GET(dctc, dctc, tclass);
    if (addr->tclass == 0) {
        addr->tclass = (uint8_t)(PRM_GET(dctc, dctc, dscp) << 2 | PRM_GET(dctc, dctc, ecn));
    }
    addr->hop_limit = (uint8_t)PRM_GET(dctc, dctc, hop_limit);
    if (addr->hop_limit == 0) {
        addr->hop_limit = pkt->addr.hop_limit;
    }
    addr->flow_label = addr->is_ipv4 ? 0 : PRM_GET(dctc, dctc, flow_label);
    if (addr->has_vlan && (addr->vlan_tci & 0xfff) == 0) { /* VLAN 0: only a priority */
        addr->has_vlan = false;
        addr->vlan_tci = 0;
    }
    uplink_mark_path(dct->qp.hca->vport->uplink, addr);
}

static void dc_refuse(struct hca *hca, const struct dct *dct, const struct roce_packet *pkt)
{
    struct notice_text cnak = {
        .dest_qp = pkt->dceth.number,
        .psn = pkt->psn,
        .number = dct->qp.obj.num,
        .pkey = pkt->pkey,
    };

    dc_answer_address(dct, pkt, &cnak.addr);
    notice_send(hca, NOTICE_CNAK, &cnak);
}

/* -- the pool ---------------------------------------------------------------------------------- */

void dc_pool_init(struct hca *hca)
{
    hca->rdma->dc.notes = g_hash_table_new(dc_source_hash, dc_source_equal);
}

void dc_pool_reset(struct hca *hca)
{
    g_assert(hca->rdma->dc.responders.length == 0);
    dc_notes_clear(hca);
}

void dc_pool_clear(struct hca *hca)
{
    dc_pool_reset(hca);
    g_clear_pointer(&hca->rdma->dc.notes, g_hash_table_unref);
}

/* Frees a responder that has no note, or has none any more. */
static void dc_responder_drop(struct dc_responder *responder)
{
    struct dct *dct = responder->dct;
    struct hca *hca = dct->qp.hca;

    responder_clear(&responder->peer);
    g_queue_unlink(&dct->responders, &responder->in_dct);
    g_queue_unlink(&hca->rdma->dc.responders, &responder->in_pool);
    hca_free(hca, OBJ_DC_RESPONDER, responder, sizeof(*responder));
}

void dc_responder_free(struct dc_responder *responder, bool flush)
{
    struct dct *dct = responder->dct;

    if (flush && responder->peer.resp.have_wqe) {
        responder_abandon(&responder->peer, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    dct_unpark(dct, &responder->peer);
    reaction_end(&responder->peer);
    dc_note_end(dct->qp.hca, responder->note);
    dc_responder_drop(responder);
}

bool dc_responder_is_quiet(const struct dc_responder *responder)
{
    const struct responder *resp = &responder->peer.resp;

    return !resp->ack_due && !(resp->answers && resp->answers->count);
}

/* Frees the least recently used responder, if its initiator cannot send it anything any more. */
static bool dc_responder_evict(struct hca *hca)
{
    struct dc_responder *oldest = g_queue_peek_head(&hca->rdma->dc.responders);

    if (!oldest || hca_now(hca) - oldest->note->at <= DC_IDLE_NS) {
        return false;
    }
    dc_responder_free(oldest, true);
    return true;
}

static struct dc_responder *dc_responder_alloc(struct hca *hca)
{
    if (hca->rdma->dc.responders.length >= hca->limits.dc_responders) {
        return NULL;
    }
    return hca_alloc(hca, OBJ_DC_RESPONDER, sizeof(struct dc_responder));
}

static struct dc_responder *dc_responder_new(struct dct *dct, uint32_t dci)
{
    struct hca *hca = dct->qp.hca;
    struct dc_responder *responder = dc_responder_alloc(hca);

    if (!responder && dc_responder_evict(hca)) {
        responder = dc_responder_alloc(hca);
    }
    if (!responder) {
        return NULL;
    }
    responder->dct = dct;
    responder->peer.qp = &dct->qp;
    responder->peer.qpn = dci;
    responder_init(&responder->peer);
    if (!tags_init(&responder->peer) || (dct->takes_early && !early_init(&responder->peer))) {
        responder_clear(&responder->peer);
        hca_free(hca, OBJ_DC_RESPONDER, responder, sizeof(*responder));
        return NULL;
    }
    responder->in_dct.data = responder->in_pool.data = responder;
    g_queue_push_tail_link(&dct->responders, &responder->in_dct);
    g_queue_push_tail_link(&hca->rdma->dc.responders, &responder->in_pool);
    return responder;
}

static void dc_responder_touch(struct hca *hca, struct dc_responder *responder)
{
    GQueue *lru = &hca->rdma->dc.responders;

    responder->note->at = hca_now(hca);
    if (lru->tail != &responder->in_pool) {
        g_queue_unlink(lru, &responder->in_pool);
        g_queue_push_tail_link(lru, &responder->in_pool);
    }
}

/* -- CONNECT, DISCONNECT ----------------------------------------------------------------------- */

/* The responder for a new session. If the initiator's last session was with this target, it keeps
 * that responder. NULL: there is none to give. */
static struct dc_responder *dc_responder_for(struct dct *dct, const struct dc_source *source,
                                             struct dc_note *note)
{
    struct hca *hca = dct->qp.hca;
    struct dc_responder *responder = note ? note->responder : NULL;

    if (responder && responder->dct == dct) {
        return responder;
    }
    if (responder) {
        dc_responder_free(responder, true);
    }
    responder = dc_responder_new(dct, source->dci);
    if (!responder) {
        return NULL;
    }
    if (!note) {
        note = dc_note_new(hca, source);
    }
    if (!note) {
        dc_responder_drop(responder);
        return NULL;
    }
    dc_note_begin(hca, note);
    note->responder = responder;
    responder->note = note;
    return responder;
}

/* Answers take the path that the last CONNECT of the session came on. The ICRC does not cover all
 * of it (MAC addresses, VLAN), so an earlier CONNECT may have had wrong values, or they may have
 * changed since. */
static void dc_responder_set_path(struct dc_responder *responder, const struct roce_packet *pkt)
{
    struct roce_addr path;

    dc_answer_address(responder->dct, pkt, &path);
    peer_set_path(&responder->peer, &path);
}

/* If a message of the last session has left a receive WQE unfilled, the new session uses that
 * WQE. */
static void dc_responder_begin(struct dc_responder *responder, const struct roce_packet *pkt,
                               uint32_t psn)
{
    struct peer *peer = &responder->peer;
    bool have_wqe = peer->resp.have_wqe;

    dct_unpark(responder->dct, peer);
    responder_reset(peer, psn);
    peer->resp.have_wqe = have_wqe;
    peer->resp.comm_est = true; /* a target raises no such event */
    dc_responder_set_path(responder, pkt);
    peer->session = pkt->dceth.session;
    responder->note->session = pkt->dceth.session;
}

static void dc_rx_connect(struct dct *dct, const struct roce_packet *pkt,
                          const struct dc_source *source, struct dc_note *note)
{
    struct hca *hca = dct->qp.hca;
    struct dc_responder *responder;
    struct dcceth connect;

    if (pkt->payload_len < DCC_ETH_BYTES) {
        return;
    }
    dcceth_parse(pkt->payload, &connect);
    if (connect.key != dct->key) {
        dct_key_violated(dct);
        return;
    }
    if (note && note->responder && note->session == pkt->dceth.session) {
        if (note->responder->dct == dct) { /* a repeated CONNECT */
            dc_responder_set_path(note->responder, pkt);
            dc_responder_touch(hca, note->responder);
        }
        return;
    }
    if (note && !dc_note_is_new(note, pkt->dceth.session, hca_now(hca))) {
        return; /* a late CONNECT */
    }
    responder = dc_responder_for(dct, source, note);
    if (!responder) {
        dc_refuse(hca, dct, pkt);
        return;
    }
    dc_responder_begin(responder, pkt, connect.psn);
    dc_responder_touch(hca, responder);
    qp_counters(&dct->qp)->rx_dct_connect++;
}

/* -- requests ---------------------------------------------------------------------------------- */

/* A responder that has failed repeats its NAK if the same request comes again. */
static void dc_responder_rx(struct dc_responder *responder, const struct roce_packet *pkt)
{
    struct peer *peer = &responder->peer;
    struct responder *resp = &peer->resp;

    if (G_LIKELY(resp->state != RESPONDER_FAILED) || psn_diff(pkt->psn, resp->epsn) < 0) {
        responder_rx(peer, pkt);
    } else if (resp->nak && pkt->psn == resp->nak_psn) {
        responder_ack(peer, resp->nak_psn, resp->nak);
    }
}

/* The initiator that has sent a packet. */
static struct dc_source dc_source_of(const struct roce_packet *pkt)
{
    struct dc_source source = {.dci = pkt->dceth.number};

    memcpy(source.gid, pkt->addr.sgid, sizeof(source.gid));
    return source;
}

/* The responder of the session that a packet names. NULL: the session is over or never began. note:
 * the note of the packet's source, or NULL. */
static struct dc_responder *dc_responder_find(const struct dct *dct, const struct dc_note *note,
                                              const struct roce_packet *pkt)
{
    struct dc_responder *responder = note ? note->responder : NULL;

    return responder && responder->dct == dct && note->session == pkt->dceth.session ? responder
                                                                                     : NULL;
}

static void dc_rx_packet(struct dct *dct, const struct roce_packet *pkt)
{
    struct hca *hca = dct->qp.hca;
    struct dc_source source = dc_source_of(pkt);
    struct dc_note *note = dc_note_find(hca, &source);
    struct dc_responder *responder;

    if (pkt->opcode == (BTH_DC | BTH_CONNECT) && !pkt->solicited) {
        dc_rx_connect(dct, pkt, &source, note);
        return;
    }
    responder = dc_responder_find(dct, note, pkt);
    if (!responder) {
        return; /* the initiator will repeat it */
    }
    dc_responder_touch(hca, responder);
    if (pkt->opcode == (BTH_DC | BTH_CONNECT)) {
        dc_responder_free(responder, true);
    } else {
        if (G_UNLIKELY(notification_is_marked(pkt))) {
            notification_answer_mark(&responder->peer, pkt);
        }
        dc_responder_rx(responder, pkt);
    }
}

struct peer *dct_find_peer(struct hca *hca, const struct roce_packet *pkt)
{
    struct dct *dct = obj_find_kind(&hca->qpns, pkt->dest_qp, OBJ_DCT);
    struct dc_source source = dc_source_of(pkt);
    struct dc_responder *responder;

    if (!dct || pkt->dceth.version != hca->limits.dc_version) {
        return NULL;
    }
    responder = dc_responder_find(dct, dc_note_find(hca, &source), pkt);
    return responder ? &responder->peer : NULL;
}

void dct_rx(struct hca *hca, const struct roce_packet *pkt)
{
    struct vport_counters *c = &hca->vport->counters;
    struct dct *dct = obj_find_kind(&hca->qpns, pkt->dest_qp, OBJ_DCT);

    if (!dct || dct->state != PRM_DCTC_STATE_ACTIVE || dct->qp.state != PRM_QP_STATE_RTR ||
        bth_opcodes[pkt->opcode].flags & PKT_RESPONSE ||
        pkt->dceth.version != hca->limits.dc_version) {
        c->rx_no_qp++;
        return;
    }
    if (!roce_rx_pkey_ok(pkt->pkey, dct->qp.pkey)) {
        c->rx_bad_pkey++;
        return;
    }
    dc_rx_packet(dct, pkt);
}
