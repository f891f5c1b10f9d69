/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements play_session.h: sessions of dynamic connections. */
#include "tests/conformance/play_session.h"
#include "tests/conformance/packet.h"

#define SESSION_MASK 0xffffff
#define VERSION      1 /* of DC; the other one has to be named */

/* Returns the session that a step names, or the default. */
static uint32_t play_session_meant(struct play *p, const struct play_qp *qp,
                                   const struct roce_packet *pkt)
{
    bool refusal = bth_opcodes[pkt->opcode].flags & HDR_AETH && pkt->aeth.syndrome == AETH_CNAK;
    const char *word = words_value(&p->words, "session");
    uint32_t number = word ? (uint32_t)words_to_number(&p->words, word) : 0;

    if (!word) {
        return refusal ? 0 : qp->session;
    }
    return (qp->type == PLAY_DCI ? qp->first_session + number : number) & SESSION_MASK;
}

void play_session_arrives(struct play *p, struct play_qp *qp, struct roce_packet *pkt,
                          uint8_t bytes[DCC_ETH_BYTES])
{
    struct words *w = &p->words;
    struct dcceth connect = {.reconnect = words_flag(w, "reconnect")};

    pkt->dceth.number = (uint32_t)words_number(w, "number", qp->peer_qpn);
    pkt->dceth.version = (uint8_t)words_number(w, "dcver", VERSION);
    pkt->dceth.session = play_session_meant(p, qp, pkt);
    if (!packet_is_connect(pkt)) {
        return;
    }
    qp->session = pkt->dceth.session;
    connect.key = words_number(w, "key", 0);
    connect.psn = pkt->psn;
    if (!pkt->payload_len) {
        dcceth_build(bytes, &connect);
        pkt->payload = bytes;
        pkt->payload_len = DCC_ETH_BYTES;
    }
}

/* Takes the words of a CONNECT about its target's key and the first PSN of the requests. */
static void play_session_connects(struct play *p, const struct roce_packet *pkt)
{
    struct words *w = &p->words;
    struct dcceth connect;

    if (pkt->payload_len != DCC_ETH_BYTES) {
        words_fail(w, "it has %zu bytes behind its DCETH", pkt->payload_len);
    }
    dcceth_parse(pkt->payload, &connect);
    if (connect.key != words_number(w, "key", connect.key)) {
        words_fail(w, "its key is 0x%" G_GINT64_MODIFIER "x", connect.key);
    }
    if (connect.psn != pkt->psn) {
        words_fail(w, "its next PSN is 0x%x, its own 0x%x", connect.psn, pkt->psn);
    }
    if (connect.reconnect != words_flag(w, "reconnect")) {
        words_fail(w, "say reconnect if it is one, and only then");
    }
}

void play_session_leaves(struct play *p, struct play_qp *qp, const struct roce_packet *pkt)
{
    struct words *w = &p->words;
    uint32_t session = pkt->dceth.session;

    if (pkt->dceth.number != words_number(w, "number", qp->qpn)) {
        words_fail(w, "it says that it is from 0x%x", pkt->dceth.number);
    }
    if (pkt->dceth.version != words_number(w, "dcver", VERSION)) {
        words_fail(w, "its version is %u", pkt->dceth.version);
    }
    if (packet_is_connect(pkt)) {
        qp->first_session = qp->has_session ? qp->first_session : session;
        qp->has_session = true;
        qp->session = session;
        play_session_connects(p, pkt);
    }
    if (session != play_session_meant(p, qp, pkt)) {
        words_fail(w, "its session is 0x%x, the last one was 0x%x", session, qp->session);
    }
}
