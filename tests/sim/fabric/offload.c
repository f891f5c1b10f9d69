/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements offload.h. */
#include "tests/sim/fabric/offload.h"
#include <glib.h>
#include <string.h>
#include "tests/sim/fabric/eth_message.h"

enum {
    CS_L3_INNER = 0x10,
    CS_L4_INNER = 0x20,
    CS_L3 = 0x40,
    CS_L4 = 0x80,
    SWP_INNER_IPV6 = 0x01,
    SWP_INNER_UDP = 0x02,
    SWP_OUTER_IPV6 = 0x10,
    SWP_OUTER_UDP = 0x20,
    PROTO_IPIP = 4,
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    PROTO_IPV6 = 41,
    PROTO_GRE = 47,
    FIN_PSH = 0x09,
    CWR = 0x80,
    LEAST_FRAME = 60,
};

static void offload_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint32_t offload_get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static void offload_put32(uint8_t *at, uint32_t value)
{
    offload_put16(at, value >> 16);
    offload_put16(at + 2, value);
}

static uint32_t offload_get32(const uint8_t *at)
{
    return offload_get16(at) << 16 | offload_get16(at + 2);
}

/* -- headers ----------------------------------------------------------------------------------- */

static uint8_t *offload_add(struct offload *o, uint32_t len)
{
    uint8_t *at = o->headers + o->headers_len;

    o->headers_len += len;
    g_assert_cmpuint(o->headers_len, <=, OFFLOAD_HEADERS);
    return at;
}

static void offload_add_eth(struct offload *o, const struct offload_kind *kind, bool tagged)
{
    uint8_t *at = offload_add(o, 12);

    memcpy(at, kind->dmac, 6);
    memcpy(at + 6, kind->smac, 6);
    if (tagged) {
        at = offload_add(o, 4);
        offload_put16(at, 0x8100);
        offload_put16(at + 2, o->tci);
    }
}

/* which: outer or inner. The rest of the header is any bytes, also its checksum. */
static void offload_add_ip(struct offload *o, unsigned which, bool v6, uint32_t proto)
{
    uint8_t *at;

    o->l3[which] = o->headers_len;
    o->is_v6[which] = v6;
    at = offload_add(o, v6 ? 40 : 20);
    if (v6) {
        at[0] = 0x60;
        at[1] &= 0xcf;
        at[6] = (uint8_t)proto;
        at[8] = at[24] = 0x20;
    } else {
        at[0] = 0x45;
        at[1] &= 0xfc; /* no mark of a switch changes it */
        offload_put16(at + 6, 0x4000);
        at[9] = (uint8_t)proto;
        at[12] = at[16] = 10;
    }
}

static void offload_add_type(struct offload *o, bool v6)
{
    offload_put16(offload_add(o, 2), v6 ? 0x86dd : 0x0800);
}

static void offload_add_l4(struct offload *o, unsigned which, bool udp, uint32_t dport)
{
    uint8_t *at;

    o->l4[which] = o->headers_len;
    o->is_udp[which] = udp;
    at = offload_add(o, udp ? 8 : 20);
    offload_put16(at + 2, dport);
    if (!udp) {
        at[12] = 0x50;
    }
}

/* The outer packet, up to where the inner one begins. */
static void offload_add_tunnel(struct offload *o, const struct offload_kind *kind)
{
    static const uint16_t ports[] = {
        [OFFLOAD_VXLAN] = 4789, [OFFLOAD_GENEVE] = 6081, [OFFLOAD_UNKNOWN] = 8472};
    uint8_t *at;

    offload_add_type(o, kind->outer_v6);
    switch (kind->tunnel) {
    case OFFLOAD_IPIP:
        offload_add_ip(o, 0, kind->outer_v6, kind->v6 ? PROTO_IPV6 : PROTO_IPIP);
        return;
    case OFFLOAD_GRE:
        offload_add_ip(o, 0, kind->outer_v6, PROTO_GRE);
        offload_put32(offload_add(o, 4), 0x6558);
        break;
    default:
        offload_add_ip(o, 0, kind->outer_v6, PROTO_UDP);
        offload_add_l4(o, 0, true, ports[kind->tunnel]);
        at = offload_add(o, 8);
        offload_put32(at, kind->tunnel == OFFLOAD_GENEVE ? 0x6558 : 0x08000000);
        at[7] = 0;
        break;
    }
    offload_add_eth(o, kind, false);
    offload_add_type(o, kind->v6);
}

static void offload_add_headers(struct offload *o, const struct offload_kind *kind,
                                struct chance *chance)
{
    unsigned which = kind->tunnel ? 1 : 0;

    chance_fill(chance, o->headers, sizeof(o->headers));
    offload_add_eth(o, kind, kind->vlan == OFFLOAD_VLAN_IN_PACKET);
    if (which) {
        offload_add_tunnel(o, kind);
    } else {
        offload_add_type(o, kind->v6);
    }
    offload_add_ip(o, which, kind->v6, kind->udp ? PROTO_UDP : PROTO_TCP);
    offload_add_l4(o, which, kind->udp, (uint32_t)chance_from(chance, 20000, 20100));
}

static void offload_name_headers(struct offload *o)
{
    o->names_headers = true;
    for (unsigned i = 0; i < 2; i++) {
        o->swp[2 * i] = (uint8_t)(o->l3[i] / 2);
        o->swp[2 * i + 1] = (uint8_t)(o->l4[i] / 2);
    }
    o->swp_flags =
        (uint8_t)((o->is_v6[0] ? SWP_OUTER_IPV6 : 0) | (o->is_udp[0] ? SWP_OUTER_UDP : 0) |
                  (o->is_v6[1] ? SWP_INNER_IPV6 : 0) | (o->is_udp[1] ? SWP_INNER_UDP : 0));
}

static void offload_put_lengths(const struct offload *o, uint8_t *packet, uint32_t len)
{
    for (unsigned i = 0; i < 2; i++) {
        if (o->l3[i]) {
            uint8_t *l3 = packet + o->l3[i];

            offload_put16(l3 + (o->is_v6[i] ? 4 : 2), len - o->l3[i] - (o->is_v6[i] ? 40 : 0));
        }
        if (o->l4[i] && o->is_udp[i]) {
            offload_put16(packet + o->l4[i] + 4, len - o->l4[i]);
        }
    }
}

void offload_draw(struct offload *o, const struct offload_kind *kind, struct chance *chance,
                  uint32_t number, uint32_t most, bool large, const struct offload *like)
{
    uint32_t last;

    memset(o, 0, sizeof(*o));
    o->number = number;
    o->cs_flags = like ? like->cs_flags : (uint8_t)(chance_below(chance, 16) << 4);
    o->tci = like ? like->tci : (uint16_t)chance_next(chance);
    o->svlan = like ? like->svlan : chance_one_in(chance, 2);
    offload_add_headers(o, kind, chance);
    o->len = (uint32_t)chance_from(chance, OFFLOAD_LEAST, most);
    if (kind->tunnel == OFFLOAD_UNKNOWN || (kind->has_swp && !like && chance_one_in(chance, 4))) {
        offload_name_headers(o);
    }
    if (like && !like->names_headers) {
        o->names_headers = false;
    }
    if (large && kind->vlan != OFFLOAD_VLAN_INSERTED && chance_one_in(chance, 2)) {
        o->mss = (uint32_t)chance_from(chance, MIN(64, most), most);
        o->len = (uint32_t)chance_from(chance, OFFLOAD_LEAST, OFFLOAD_PACKETS * o->mss);
        last = o->len % o->mss;
        o->len -= last < OFFLOAD_LEAST && o->len > o->mss ? last : 0;
    } else {
        offload_put_lengths(o, o->headers, o->headers_len + o->len);
    }
}

/* -- what must come of them -------------------------------------------------------------------- */

uint32_t offload_packets(const struct offload *o)
{
    return o->mss ? (o->len + o->mss - 1) / o->mss : 1;
}

void offload_fill(const struct offload *o, uint8_t *payload)
{
    uint32_t per = o->mss ? o->mss : o->len;
    struct chance chance = chance_of(o->number, "offload", o->len);

    chance_fill(&chance, payload, o->len);
    for (uint32_t at = 0; at < o->len; at += per) {
        offload_put32(payload + at, o->number);
        offload_put32(payload + at + 4, at / per);
    }
}

static uint32_t offload_add_up(uint32_t sum, const uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum += i & 1 ? at[i] : (uint32_t)at[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static void offload_sum_l3(const struct offload *o, unsigned which, uint8_t *packet)
{
    uint8_t *l3 = packet + o->l3[which];

    if (o->l3[which] && !o->is_v6[which]) {
        offload_put16(l3 + 10, 0);
        offload_put16(l3 + 10, ~offload_add_up(0, l3, 20));
    }
}

static void offload_sum_l4(const struct offload *o, unsigned which, uint8_t *packet, size_t len)
{
    bool udp = o->is_udp[which];
    uint8_t *l3 = packet + o->l3[which], *l4 = packet + o->l4[which], *at = l4 + (udp ? 6 : 16);
    uint32_t l4_len = (uint32_t)len - o->l4[which], sum = l4_len + (udp ? PROTO_UDP : PROTO_TCP);

    if (!o->l4[which]) {
        return;
    }
    offload_put16(at, 0);
    sum = o->is_v6[which] ? offload_add_up(sum, l3 + 8, 32) : offload_add_up(sum, l3 + 12, 8);
    sum = ~offload_add_up(sum, l4, l4_len) & 0xffff;
    offload_put16(at, !sum && udp ? 0xffff : sum);
}

/* What a segment has of its own: RFC 9293 3.1, RFC 3168 6.1.2, and the IPv4 identification. */
static void offload_put_segment(const struct offload *o, uint8_t *packet, uint32_t nth, bool last)
{
    unsigned which = o->l3[1] ? 1 : 0;
    uint8_t *l4 = packet + o->l4[which];

    for (unsigned i = 0; i < 2; i++) {
        if (o->l3[i] && !o->is_v6[i]) {
            uint8_t *id = packet + o->l3[i] + 4;

            offload_put16(id, offload_get16(id) + nth);
        }
    }
    if (!o->is_udp[which]) {
        offload_put32(l4 + 4, offload_get32(l4 + 4) + nth * o->mss);
        l4[13] &= (uint8_t)(nth ? ~CWR : ~0);
        l4[13] &= (uint8_t)(last ? ~0 : ~FIN_PSH);
    }
}

/* From the inside out, because an outer checksum covers the inner ones. */
static void offload_put_sums(const struct offload *o, uint8_t *packet, size_t len)
{
    if (o->cs_flags & CS_L3_INNER) {
        offload_sum_l3(o, 1, packet);
    }
    if (o->cs_flags & CS_L4_INNER) {
        offload_sum_l4(o, 1, packet, len);
    }
    if (o->cs_flags & CS_L3) {
        offload_sum_l3(o, 0, packet);
    }
    if (o->cs_flags & CS_L4) {
        offload_sum_l4(o, 0, packet, len);
    }
}

size_t offload_packet(const struct offload *o, const struct offload_kind *kind, uint32_t nth,
                      const uint8_t *payload, uint8_t *packet)
{
    uint32_t per = o->mss ? o->mss : o->len, at = nth * per, part = MIN(per, o->len - at);
    size_t len = o->headers_len + part;

    memcpy(packet, o->headers, o->headers_len);
    memcpy(packet + o->headers_len, payload + at, part);
    if (o->mss) {
        offload_put_lengths(o, packet, (uint32_t)len);
        offload_put_segment(o, packet, nth, at + part == o->len);
    }
    offload_put_sums(o, packet, len);
    if (kind->vlan == OFFLOAD_VLAN_INSERTED) {
        memmove(packet + 16, packet + 12, len - 12);
        offload_put16(packet + 12, o->svlan ? 0x88a8 : 0x8100);
        offload_put16(packet + 14, o->tci);
        len += 4;
    }
    if (len < LEAST_FRAME) { /* IEEE 802.3 4.2.3.3: it is padded */
        memset(packet + len, 0, LEAST_FRAME - len);
    }
    return MAX(len, LEAST_FRAME);
}

size_t offload_payload_at(const struct offload_kind *kind)
{
    struct chance chance = {0};
    struct offload o;

    memset(&o, 0, sizeof(o));
    offload_add_headers(&o, kind, &chance);
    return o.headers_len + (kind->vlan == OFFLOAD_VLAN_INSERTED ? 4 : 0);
}

uint32_t offload_hash(const struct offload *o, unsigned which, const uint8_t key[OFFLOAD_KEY])
{
    uint32_t addresses = o->is_v6[which] ? 32 : 8;
    uint8_t data[36];

    memcpy(data, o->headers + o->l3[which] + (o->is_v6[which] ? 8 : 12), addresses);
    memcpy(data + addresses, o->headers + o->l4[which], 4);
    return eth_toeplitz(key, data, addresses + 4);
}
