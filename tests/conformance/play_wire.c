/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays the steps about packets: those that arrive at the device and those that it sends.
 *
 * PSNs count from the connection's first one, in the direction of the request; so an ACK has its
 * request's number. The numbers and keys of a packet may be those of a region, by its name.
 */
#include "tests/conformance/play.h"
#include <string.h>
#include "tests/conformance/packet.h"
#include "tests/conformance/play_session.h"
#include "tests/conformance/stand.h"

#define PKEY     0xffff
#define PSN_MASK 0xffffff
#define PATTERN  (WIRE_FRAME_MAX / 2)

static enum bth_transport play_transport(const struct play_qp *qp)
{
    switch (qp->type) {
    case IBV_QPT_RC:
        return BTH_RC;
    case IBV_QPT_UC:
        return BTH_UC;
    case IBV_QPT_UD:
        return BTH_UD;
    case PLAY_DCI:
    case PLAY_DCT:
        return BTH_DC;
    default:
        return BTH_XRC;
    }
}

/* A CNP belongs to no transport. */
static uint8_t play_opcode(struct play *p, const struct play_qp *qp, const char *name)
{
    enum bth_transport transport = play_transport(qp);
    uint8_t opcode;

    if (!packet_opcode(transport, name, &opcode) && !packet_opcode(BTH_CNP, name, &opcode)) {
        g_autofree const char **names = packet_opcode_names(transport);
        g_autofree char *known = words_suggest(name, names, "opcodes");

        words_mistake(&p->words, "the transport of '%s' has no opcode '%s'; %s", qp->name, name,
                      known);
    }
    return opcode;
}

/* Returns the first PSN of the packet's direction; from_device: the device sends it. */
static uint32_t play_first_psn(const struct play *p, const struct roce_packet *pkt,
                               bool from_device)
{
    bool response = bth_opcodes[pkt->opcode].flags & PKT_RESPONSE;

    return response == from_device ? p->rq_psn : p->sq_psn;
}

static void play_note(struct play *p, const char *way, uint64_t ns, const struct roce_packet *pkt)
{
    g_string_append_printf(p->trace, "  %s %10.3f us ", way, (double)ns / 1000);
    packet_describe(p->trace, pkt);
    g_string_append_c(p->trace, '\n');
}

/* Takes a field's value in a step, or returns false. */
static bool play_field(struct play *p, const struct packet_field *field, uint64_t *value)
{
    const char *word = words_value(&p->words, field->name);

    if (!word) {
        return false;
    }
    *value = !strcmp(field->name, "va")                             ? play_address(p, word)
             : !strcmp(field->name, "srqn") && play_srq_if(p, word) ? play_srq_if(p, word)->srqn
             : !strcmp(field->name, "rkey") || !strcmp(field->name, "inv")
                 ? play_key(p, word, true)
                 : words_to_number(&p->words, word);
    return true;
}

/* -- arriving ---------------------------------------------------------------------------------- */

/* Fills in the default fields of a packet with that opcode. */
static void play_usual(const struct play *p, const struct play_qp *qp, struct roce_packet *pkt)
{
    uint32_t flags = bth_opcodes[pkt->opcode].flags;

    stand_address(p->stand, &pkt->addr);
    pkt->pkey = PKEY;
    pkt->migreq = true;
    pkt->dest_qp = qp->qpn;
    pkt->ackreq = flags & PKT_REQUEST && flags & PKT_LAST &&
                  pkt->opcode != (BTH_DC | BTH_CONNECT) &&
                  (play_transport(qp) == BTH_RC || play_transport(qp) == BTH_XRC ||
                   play_transport(qp) == BTH_DC);
    pkt->deth.qkey = qp->attr.qkey;
    pkt->deth.src_qp = qp->peer_qpn;
}

/* Makes the packet come from, or go to, another address. */
static void play_readdress(struct play *p, struct roce_addr *addr)
{
    addr->sgid[15] = (uint8_t)words_number(&p->words, "sip", addr->sgid[15]);
    addr->dgid[15] = (uint8_t)words_number(&p->words, "dip", addr->dgid[15]);
    addr->dmac[5] = (uint8_t)words_number(&p->words, "dmac", addr->dmac[5]);
    addr->smac[5] = (uint8_t)words_number(&p->words, "smac", addr->smac[5]);
}

/* Returns whether a packet names a session: all packets of DC do, and a CNP to a target. */
static bool play_names_session(const struct roce_packet *pkt, bool is_to_target)
{
    return bth_opcodes[pkt->opcode].flags & HDR_DC_ETH ||
           (pkt->opcode == BTH_CNP_OPCODE && is_to_target);
}

/* < OPCODE [psn=N] [data=DATA] [a field ...] [raw=OPCODE] [pad=N] [badicrc] [together] */
static void play_arrives(struct play *p)
{
    struct words *w = &p->words;
    struct play_qp *qp = play_qp_meant(p);
    struct roce_packet pkt = {0};
    struct stand_spoil spoil;
    uint8_t payload[PATTERN], connect[DCC_ETH_BYTES];
    const char *data, *name = words_need(w, "the opcode");
    uint64_t value;

    pkt.opcode = play_opcode(p, qp, name);
    pkt.solicited = !strcmp(name, DISCONNECT);
    play_usual(p, qp, &pkt);
    play_readdress(p, &pkt.addr);
    for (unsigned i = 0; i < packet_num_fields; i++) {
        if (packet_has(&pkt, &packet_fields[i]) && play_field(p, &packet_fields[i], &value)) {
            packet_set(&pkt, &packet_fields[i], value);
        }
    }
    pkt.addr.is_ipv4 = !pkt.addr.is_v1;
    if (bth_opcodes[pkt.opcode].flags & HDR_AETH) {
        pkt.aeth.syndrome = packet_syndrome(w, AETH_ACK);
    }
    pkt.psn = (play_first_psn(p, &pkt, false) + (uint32_t)words_number(w, "psn", 0)) & PSN_MASK;
    data = words_value(w, "data");
    pkt.payload = payload;
    pkt.payload_len = data ? play_data(p, data, payload, sizeof(payload)) : 0;
    if (play_names_session(&pkt, qp->type == PLAY_DCT)) {
        play_session_arrives(p, qp, &pkt, connect);
    }
    data = words_value(w, "raw");
    spoil.opcode = data ? (int)words_to_number(w, data) : -1;
    data = words_value(w, "pad");
    spoil.pad_count = data ? (int)words_to_number(w, data) : -1;
    spoil.icrc = words_flag(w, "badicrc");
    p->mark_ns = play_now(p);
    play_note(p, "<", p->mark_ns, &pkt);
    stand_send(p->stand, &pkt, &spoil);
    if (words_flag(w, "together")) {
        if (p->clock->is_real) {
            play_cannot(p, "nobody can have packets arrive in one turn on a real wire", 0);
        }
    } else {
        play_settle(p);
    }
}

/* -- leaving ----------------------------------------------------------------------------------- */

static void play_no_packet(struct play *p)
{
    const char *word = words_value(&p->words, "for");
    uint64_t limit = play_now(p) + (word ? play_span(p, word) : 0);
    struct stand_packet *packet;

    if (!word) {
        play_settle(p);
    }
    packet = stand_take(p->stand, limit);
    if (packet) {
        play_note(p, ">", packet->ns, &packet->pkt);
        words_fail(&p->words, "it sends a packet, the last one below");
    }
}

static void play_check_data(struct play *p, const struct roce_packet *pkt)
{
    const char *word = words_value(&p->words, "data");
    uint8_t wanted[PATTERN];
    size_t len = word ? play_data(p, word, wanted, sizeof(wanted)) : 0;

    if (pkt->payload_len != len) {
        words_fail(&p->words, "its payload has %zu bytes", pkt->payload_len);
    }
    for (size_t i = 0; i < len; i++) {
        if (pkt->payload[i] != wanted[i]) {
            words_fail(&p->words, "byte %zu of its payload is 0x%02x, not 0x%02x", i,
                       pkt->payload[i], wanted[i]);
        }
    }
}

static void play_check_packet(struct play *p, struct play_qp *qp, const struct roce_packet *pkt)
{
    struct words *w = &p->words;
    const char *psn = words_value(w, "psn"), *dest = words_value(w, "dest");
    uint64_t value;

    if ((dest ? words_to_number(w, dest) : qp->peer_qpn) != pkt->dest_qp) {
        words_fail(w, "it goes to queue pair 0x%x", pkt->dest_qp);
    }
    for (unsigned i = 0; i < packet_num_fields; i++) {
        const struct packet_field *field = &packet_fields[i];

        if (packet_has(pkt, field) && play_field(p, field, &value) &&
            packet_get(pkt, field) != value) {
            words_fail(w, "its %s is 0x%" G_GINT64_MODIFIER "x", field->name,
                       packet_get(pkt, field));
        }
    }
    if (bth_opcodes[pkt->opcode].flags & HDR_AETH) {
        uint8_t is = pkt->aeth.syndrome;
        uint8_t wanted = packet_syndrome(w, AETH_ACK);

        /* the responder decides how many credits an ACK gives */
        if (aeth_class(wanted) != aeth_class(is) || (aeth_class(is) && wanted != is)) {
            words_fail(w, "its syndrome is 0x%02x", is);
        }
    }
    if (psn) {
        uint32_t is = (pkt->psn - play_first_psn(p, pkt, true)) & PSN_MASK;

        if (is != (words_to_number(w, psn) & PSN_MASK)) {
            words_fail(w, "its psn is %d", (int)(is << 8) >> 8);
        }
    }
    if (play_names_session(pkt, qp->type == PLAY_DCI)) {
        play_session_leaves(p, qp, pkt);
    }
    if (!packet_is_connect(pkt)) {
        play_check_data(p, pkt);
    }
}

/* > nothing [for=TIME], > OPCODE [psn=N] [data=DATA] [a field ...] [after=TIME..TIME] */
static void play_leaves(struct play *p)
{
    struct words *w = &p->words;
    struct play_qp *qp = play_qp_meant(p);
    const char *name = words_need(w, "what it sends");
    struct stand_packet *packet;
    uint8_t opcode;

    if (!strcmp(name, "nothing")) {
        play_no_packet(p);
        return;
    }
    opcode = play_opcode(p, qp, name);
    packet = stand_take(p->stand, play_now(p) + p->clock->patience_ns);
    if (!packet) {
        words_fail(w, "it sends nothing");
    }
    play_note(p, ">", packet->ns, &packet->pkt);
    if (packet->pkt.opcode != opcode ||
        packet_is_disconnect(&packet->pkt) != !strcmp(name, DISCONNECT)) {
        words_fail(w, "it sends a %s", packet_name(&packet->pkt));
    }
    play_check_packet(p, qp, &packet->pkt);
    play_happened(p, packet->ns);
    g_free(packet);
}

/* + TIME: lets that time pass */
static void play_pass_time(struct play *p)
{
    uint64_t until = play_now(p) + play_span(p, words_need(&p->words, "a time"));

    while (p->clock->step(p->clock, until)) {
    }
    play_settle(p);
}

void play_end_wire(struct play *p)
{
    play_no_packet(p);
    if (p->stand->bad_frames) {
        words_fail(&p->words, "the device sent %u frames that are no packets",
                   p->stand->bad_frames);
    }
}

const struct play_step play_wire_steps[] = {
    {"<", play_arrives}, {">", play_leaves}, {"+", play_pass_time}, {NULL, NULL}};
