/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules_frame.h. Values come from small sets, so that rules often match. */
#include "tests/sim/fabric/rules_frame.h"
#include <glib.h>
#include <string.h>

#define OF_EACH 3u /* values of most fields */
#define LEAST   72u
#define TAIL    8u /* a mark and the number, at the end */
#define MARK    0x52754c65u
/* Distance between a field of the outer packet and the same field of the inner one. */
#define INNER(field)  ((field) + RULES_INNER_DMAC_HIGH - RULES_OUTER_DMAC_HIGH)
#define INNER2(field) ((field) + RULES_INNER_PRIO_2 - RULES_OUTER_PRIO_2)

enum {
    TYPE_IPV4 = 0x0800,
    TYPE_VLAN = 0x8100,
    TYPE_IPV6 = 0x86dd,
    TYPE_MPLS = 0x8847,
    TYPE_QINQ = 0x88a8,
    TYPE_TEB = 0x6558,
    PROTO_ICMP = 1,
    PROTO_IPIP = 4,
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    PROTO_IPV6 = 41,
    PROTO_GRE = 47,
    PROTO_ESP = 50,
    PROTO_ICMPV6 = 58,
    PROTO_MPLS = 137,
    PROTO_TEST = 253, /* RFC 3692 */
    PORT_VXLAN = 4789,
    PORT_GPE = 4790,
    PORT_ROCE = 4791,
    PORT_GENEVE = 6081,
    PORT_MPLS = 6635,
};

/* A frame while it is written. */
struct draft {
    struct rules_frame *frame;
    struct chance *chance;
    bool inner; /* the packet in the tunnel is being written */
    bool roce;
    const uint8_t *dmac, *smac;
    /* Fields for lengths, which are filled in at the end: each counts the bytes behind `from`. */
    struct {
        uint32_t at, from;
    } lengths[8];
    unsigned num_lengths;
};

static uint8_t *draft_add(struct draft *d, uint32_t len)
{
    uint8_t *at = d->frame->bytes + d->frame->len;

    g_assert_cmpuint(d->frame->len + len, <=, RULES_FRAME_MOST);
    memset(at, 0, len);
    d->frame->len += len;
    return at;
}

static void draft_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void draft_put32(uint8_t *at, uint32_t value)
{
    draft_put16(at, value >> 16);
    draft_put16(at + 2, value);
}

/* Notes a field of the packet that is being written; outer: its name for the outer packet. */
static void draft_note(struct draft *d, enum rules_field outer, uint32_t value)
{
    unsigned field = outer;

    if (d->inner) {
        field = field >= RULES_OUTER_PRIO_2 ? INNER2(field) : INNER(field);
    }
    d->frame->field[field] = value;
}

/* Notes a field that only one packet has. */
static void draft_note_own(struct draft *d, enum rules_field field, uint32_t value)
{
    d->frame->field[field] = value;
}

/* One of a few values of so many bits. The values of a kind are the same in all frames. */
static uint32_t draft_value(struct draft *d, unsigned kind, unsigned bits)
{
    uint64_t value = chance_mix(kind * 1000u + chance_below(d->chance, OF_EACH));

    return (uint32_t)(value >> (64 - bits));
}

static void draft_count(struct draft *d, const uint8_t *at, uint32_t from)
{
    d->lengths[d->num_lengths].at = (uint32_t)(at - d->frame->bytes);
    d->lengths[d->num_lengths++].from = from;
}

/* -- link layer -------------------------------------------------------------------------------- */

static void draft_tag(struct draft *d, unsigned nth)
{
    uint32_t tpid = chance_one_in(d->chance, 3) ? TYPE_QINQ : TYPE_VLAN;
    uint32_t tci = draft_value(d, 10 + nth, 16);
    uint8_t *at = draft_add(d, 4);

    tpid = d->roce ? TYPE_VLAN : tpid;
    draft_put16(at, tpid);
    draft_put16(at + 2, tci);
    if (!d->inner) {
        d->frame->tpid[nth] = (uint16_t)tpid;
        d->frame->tci[nth] = (uint16_t)tci;
        d->frame->tags = nth + 1;
    }
    draft_note(d, nth ? RULES_OUTER_PRIO_2 : RULES_OUTER_PRIO, tci >> 13);
    draft_note(d, nth ? RULES_OUTER_CFI_2 : RULES_OUTER_CFI, tci >> 12 & 1);
    draft_note(d, nth ? RULES_OUTER_VID_2 : RULES_OUTER_VID, tci & 0xfff);
    draft_note(d, nth ? RULES_OUTER_CVLAN_2 : RULES_OUTER_CVLAN, tpid == TYPE_VLAN);
    draft_note(d, nth ? RULES_OUTER_SVLAN_2 : RULES_OUTER_SVLAN, tpid == TYPE_QINQ);
}

static void draft_ethernet(struct draft *d)
{
    uint8_t *at = draft_add(d, 12);
    unsigned tags = chance_one_in(d->chance, 2) ? 0 : (unsigned)chance_from(d->chance, 1, 2);
    uint32_t low;

    if (d->inner) {
        memcpy(at, "\x02\x12\x34\x56", 4);
        memcpy(at + 6, "\x02\xab\xcd\xef", 4);
        low = draft_value(d, 1, 16);
        draft_put16(at + 4, low);
        draft_put16(at + 10, low ^ 1);
    } else {
        memcpy(at, d->dmac, 6);
        memcpy(at + 6, d->smac, 6);
    }
    draft_note(d, RULES_OUTER_DMAC_HIGH,
               (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
    draft_note(d, RULES_OUTER_DMAC_LOW, (uint32_t)at[4] << 8 | at[5]);
    draft_note(d, RULES_OUTER_SMAC_HIGH,
               (uint32_t)at[6] << 24 | (uint32_t)at[7] << 16 | (uint32_t)at[8] << 8 | at[9]);
    draft_note(d, RULES_OUTER_SMAC_LOW, (uint32_t)at[10] << 8 | at[11]);
    for (unsigned i = 0; i < MIN(tags, d->roce ? 1 : 2u); i++) {
        draft_tag(d, i);
    }
}

/* -- transports -------------------------------------------------------------------------------- */

static void draft_tcp(struct draft *d)
{
    uint8_t *at = draft_add(d, 20);
    uint32_t sport = draft_value(d, 20, 16), dport = draft_value(d, 21, 16);
    uint32_t flags = draft_value(d, 22, 9);
    uint32_t seq = draft_value(d, 23, 32), ack = draft_value(d, 24, 32);

    draft_put16(at, sport);
    draft_put16(at + 2, dport);
    draft_put32(at + 4, seq);
    draft_put32(at + 8, ack);
    draft_put16(at + 12, 5u << 12 | flags);
    draft_note(d, RULES_OUTER_TCP_SPORT, sport);
    draft_note(d, RULES_OUTER_TCP_DPORT, dport);
    draft_note(d, RULES_OUTER_TCP_FLAGS, flags);
    draft_note(d, RULES_OUTER_SEQ, seq);
    draft_note(d, RULES_OUTER_ACK, ack);
}

/* dport 0: any port without a meaning. */
static void draft_udp(struct draft *d, uint32_t dport)
{
    uint8_t *at = draft_add(d, 8);
    uint32_t sport = draft_value(d, 25, 16);

    dport = dport ? dport : 20000 + draft_value(d, 26, 8);
    draft_put16(at, sport);
    draft_put16(at + 2, dport);
    draft_count(d, at + 4, d->frame->len - 8);
    draft_note(d, RULES_OUTER_UDP_SPORT, sport);
    draft_note(d, RULES_OUTER_UDP_DPORT, dport);
}

/* Only the outer packet's ICMP header can be matched. */
static void draft_icmp(struct draft *d, bool v6)
{
    uint8_t *at = draft_add(d, 8);
    uint32_t type = draft_value(d, 27, 8), code = draft_value(d, 28, 8);
    uint32_t data = draft_value(d, 29, 32);

    at[0] = (uint8_t)type;
    at[1] = (uint8_t)code;
    draft_put32(at + 4, data);
    if (!d->inner) {
        draft_note_own(d, v6 ? RULES_ICMP6_TYPE : RULES_ICMP_TYPE, type);
        draft_note_own(d, v6 ? RULES_ICMP6_CODE : RULES_ICMP_CODE, code);
        draft_note_own(d, v6 ? RULES_ICMP6_DATA : RULES_ICMP_DATA, data);
    }
}

static void draft_esp(struct draft *d)
{
    uint32_t spi = draft_value(d, 30, 32);

    draft_put32(draft_add(d, 8), spi);
    draft_note(d, RULES_OUTER_SPI, spi);
}

static void draft_bth(struct draft *d)
{
    uint8_t *at = draft_add(d, 12);
    uint32_t opcode = 0x60 | draft_value(d, 31, 5), qpn = 0xffff00 | draft_value(d, 32, 8);

    at[0] = (uint8_t)opcode;
    draft_put32(at + 4, qpn);
    draft_note_own(d, RULES_BTH_OPCODE, opcode);
    draft_note_own(d, RULES_BTH_QP, qpn);
    d->frame->is_roce = true;
}

/* -- the packet behind the link layer ---------------------------------------------------------- */

static void draft_network(struct draft *d, bool v6, bool has_type);
static void draft_packet(struct draft *d);

static void draft_inner_ip(struct draft *d, bool v6)
{
    d->inner = true;
    draft_note(d, RULES_OUTER_ETHERTYPE, v6 ? TYPE_IPV6 : TYPE_IPV4);
    draft_network(d, v6, false);
}

static void draft_inner_ethernet(struct draft *d)
{
    d->inner = true;
    draft_ethernet(d);
    draft_packet(d);
}

/* A stack of labels; field: the place of its first entry in the match parameters. */
static void draft_mpls(struct draft *d, enum rules_field field)
{
    unsigned labels = (unsigned)chance_from(d->chance, 1, 3);
    bool is_known = chance_one_in(d->chance, 2), v6 = chance_one_in(d->chance, 2);

    for (unsigned i = 0; i < labels; i++) {
        uint32_t entry = draft_value(d, 40 + i, 32);

        entry = (entry & ~0x100u) | (i + 1 == labels ? 0x100 : 0);
        draft_put32(draft_add(d, 4), entry);
        if (!i) {
            draft_note_own(d, field, entry);
        }
    }
    if (is_known && field != RULES_INNER_MPLS) {
        draft_inner_ip(d, v6);
    }
}

static void draft_vxlan(struct draft *d)
{
    uint8_t *at;
    uint32_t vni = draft_value(d, 50, 24);

    draft_udp(d, PORT_VXLAN);
    at = draft_add(d, 8);
    at[0] = 8;
    draft_put32(at + 4, vni << 8);
    draft_note_own(d, RULES_VXLAN_VNI, vni);
    draft_note_own(d, RULES_TUNNEL_0, 8u << 24);
    draft_note_own(d, RULES_TUNNEL_1, vni << 8);
    draft_inner_ethernet(d);
}

static void draft_gpe(struct draft *d)
{
    uint32_t vni = draft_value(d, 51, 24), next = (uint32_t)chance_from(d->chance, 1, 3);
    uint8_t *at;

    draft_udp(d, PORT_GPE);
    at = draft_add(d, 8);
    at[0] = 0x0c;
    at[3] = (uint8_t)next;
    draft_put32(at + 4, vni << 8);
    draft_note_own(d, RULES_GPE_VNI, vni);
    draft_note_own(d, RULES_GPE_NEXT, next);
    draft_note_own(d, RULES_GPE_FLAGS, 0x0c);
    draft_note_own(d, RULES_TUNNEL_0, 0x0cu << 24 | next);
    draft_note_own(d, RULES_TUNNEL_1, vni << 8);
    if (next == 3) {
        draft_inner_ethernet(d);
    } else {
        draft_inner_ip(d, next == 2);
    }
}

/* Writes the packet behind a header with this ethertype. */
static void draft_inner_of(struct draft *d, uint32_t type)
{
    if (type == TYPE_TEB) {
        draft_inner_ethernet(d);
    } else {
        draft_inner_ip(d, type == TYPE_IPV6);
    }
}

static uint32_t draft_inner_type(struct draft *d)
{
    static const uint32_t types[] = {TYPE_TEB, TYPE_TEB, TYPE_IPV4, TYPE_IPV6};

    return types[chance_below(d->chance, G_N_ELEMENTS(types))];
}

static void draft_geneve(struct draft *d)
{
    uint32_t vni = draft_value(d, 52, 24), words = (uint32_t)chance_below(d->chance, 3);
    uint32_t type = draft_inner_type(d), oam = chance_one_in(d->chance, 2);
    uint8_t *at;

    draft_udp(d, PORT_GENEVE);
    at = draft_add(d, 8 + 4 * words);
    draft_put32(at, words << 24 | oam << 23 | type);
    draft_put32(at + 4, vni << 8);
    draft_note_own(d, RULES_GENEVE_VNI, vni);
    draft_note_own(d, RULES_GENEVE_OAM, oam);
    draft_note_own(d, RULES_GENEVE_PROTOCOL, type);
    draft_note_own(d, RULES_GENEVE_OPT_LEN, words);
    draft_note_own(d, RULES_TUNNEL_0, words << 24 | oam << 23 | type);
    draft_note_own(d, RULES_TUNNEL_1, vni << 8);
    draft_inner_of(d, type);
}

static void draft_gre(struct draft *d)
{
    bool mpls = chance_one_in(d->chance, 4);
    uint32_t type = mpls ? TYPE_MPLS : draft_inner_type(d);
    uint32_t c = chance_one_in(d->chance, 2), k = chance_one_in(d->chance, 2);
    uint32_t s = chance_one_in(d->chance, 2), key = k ? draft_value(d, 53, 32) : 0;
    uint8_t *at = draft_add(d, 4 + 4 * (c + k + s));

    draft_put32(at, c << 31 | k << 29 | s << 28 | type);
    if (k) {
        draft_put32(at + 4 + 4 * c, key);
    }
    draft_note_own(d, RULES_GRE_PROTOCOL, type);
    draft_note_own(d, RULES_GRE_C, c);
    draft_note_own(d, RULES_GRE_K, k);
    draft_note_own(d, RULES_GRE_S, s);
    draft_note_own(d, RULES_GRE_KEY, key);
    if (mpls) {
        draft_mpls(d, RULES_MPLS_GRE);
    } else {
        draft_inner_of(d, type);
    }
}

/* -- IP ---------------------------------------------------------------------------------------- */

static uint32_t draft_protocol(struct draft *d, bool v6)
{
    static const uint8_t plain[] = {PROTO_TCP, PROTO_TCP,  PROTO_UDP, PROTO_UDP,
                                    PROTO_ESP, PROTO_ICMP, PROTO_TEST};
    static const uint8_t tunnels[] = {PROTO_UDP, PROTO_UDP,  PROTO_UDP,  PROTO_UDP,
                                      PROTO_GRE, PROTO_IPIP, PROTO_IPV6, PROTO_MPLS};
    uint32_t proto = plain[chance_below(d->chance, G_N_ELEMENTS(plain))];

    if (d->roce) {
        return PROTO_UDP;
    }
    if (!d->inner && chance_one_in(d->chance, 2)) {
        return tunnels[chance_below(d->chance, G_N_ELEMENTS(tunnels))];
    }
    return proto == PROTO_ICMP && v6 ? PROTO_ICMPV6 : proto;
}

static void draft_udp_of_some_kind(struct draft *d)
{
    unsigned what = d->roce ? 4 : d->inner ? 9 : (unsigned)chance_below(d->chance, 8);

    switch (what) {
    case 0:
        draft_vxlan(d);
        break;
    case 1:
        draft_gpe(d);
        break;
    case 2:
        draft_geneve(d);
        break;
    case 3:
        draft_udp(d, PORT_MPLS);
        draft_mpls(d, RULES_MPLS_UDP);
        break;
    case 4:
        draft_udp(d, d->roce ? PORT_ROCE : 0);
        if (d->roce) {
            draft_bth(d);
        }
        break;
    default:
        draft_udp(d, 0);
        break;
    }
}

static void draft_transport(struct draft *d, uint32_t proto)
{
    switch (proto) {
    case PROTO_TCP:
        draft_tcp(d);
        break;
    case PROTO_UDP:
        draft_udp_of_some_kind(d);
        break;
    case PROTO_ICMP:
    case PROTO_ICMPV6:
        draft_icmp(d, proto == PROTO_ICMPV6);
        break;
    case PROTO_ESP:
        draft_esp(d);
        break;
    case PROTO_GRE:
        draft_gre(d);
        break;
    case PROTO_MPLS:
        draft_mpls(d, RULES_MPLS);
        break;
    case PROTO_IPIP:
    case PROTO_IPV6:
        draft_inner_ip(d, proto == PROTO_IPV6);
        break;
    default:
        break;
    }
}

static void draft_common_of_ip(struct draft *d, uint32_t version, uint32_t tos, uint32_t ttl,
                               uint32_t proto, bool fragment)
{
    draft_note(d, RULES_OUTER_IP_VERSION, version);
    draft_note(d, RULES_OUTER_DSCP, tos >> 2);
    draft_note(d, RULES_OUTER_ECN, tos & 3);
    draft_note(d, RULES_OUTER_TTL, ttl);
    draft_note(d, RULES_OUTER_PROTOCOL, proto);
    draft_note(d, RULES_OUTER_FRAGMENT, fragment);
}

/* The outer packet says that it is not for congestion marks, so no switch marks it. */
static uint32_t draft_tos(struct draft *d)
{
    return draft_value(d, 60, 8) & (d->inner ? 0xff : 0xfc);
}

static void draft_ipv4_sum(uint8_t *at)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < (at[0] & 0xfu) * 4; i += 2) {
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    draft_put16(at + 10, ~(sum + (sum >> 16)));
}

static bool draft_ipv4(struct draft *d, uint32_t proto)
{
    uint32_t words = !d->roce && chance_one_in(d->chance, 6) ? 6 : 5;
    uint32_t tos = draft_tos(d), ttl = draft_value(d, 61, 8);
    uint32_t src = draft_value(d, 62, 31), dst = draft_value(d, 63, 31);
    bool fragment = !d->roce && chance_one_in(d->chance, 10);
    uint32_t start = d->frame->len;
    uint8_t *at = draft_add(d, 4 * words);

    at[0] = (uint8_t)(0x40 | words);
    at[1] = (uint8_t)tos;
    draft_count(d, at + 2, start);
    if (fragment) { /* a first one, or a later one */
        draft_put16(at + 6, chance_one_in(d->chance, 2) ? 0x2000 : 0x0008);
    }
    at[8] = (uint8_t)ttl;
    at[9] = (uint8_t)proto;
    draft_put32(at + 12, src);
    draft_put32(at + 16, dst);
    memset(at + 20, 1, 4 * words - 20); /* options that do nothing */
    draft_common_of_ip(d, 4, tos, ttl, proto, fragment);
    draft_note(d, RULES_OUTER_IHL, words);
    draft_note(d, RULES_OUTER_SRC_3, src);
    draft_note(d, RULES_OUTER_DST_3, dst);
    return fragment;
}

static void draft_address(struct draft *d, uint8_t *at, enum rules_field field)
{
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word = i ? draft_value(d, 64 + i, 32) : 0x20010db8;

        draft_put32(at + 4 * i, word);
        draft_note(d, field + i, word);
    }
}

/* An extension header of 8 bytes: destination options, or a fragment header. */
static bool draft_ipv6(struct draft *d, uint32_t proto)
{
    uint8_t *at = draft_add(d, 40), *next = at + 6;
    uint32_t tos = draft_tos(d), hops = draft_value(d, 61, 8), label = draft_value(d, 70, 20);
    bool options = !d->roce && chance_one_in(d->chance, 8);
    bool fragment = !d->roce && chance_one_in(d->chance, 10);

    draft_put32(at, 6u << 28 | tos << 20 | label);
    draft_count(d, at + 4, d->frame->len);
    at[7] = (uint8_t)hops;
    draft_address(d, at + 8, RULES_OUTER_SRC_0);
    draft_address(d, at + 24, RULES_OUTER_DST_0);
    if (options) {
        *next = 60;
        next = draft_add(d, 8);
        next[2] = 1; /* PadN of 4 bytes */
        next[3] = 4;
    }
    if (fragment) {
        *next = 44;
        next = draft_add(d, 8);
        draft_put16(next + 2, chance_one_in(d->chance, 2) ? 1 : 8);
    }
    *next = (uint8_t)proto;
    draft_common_of_ip(d, 6, tos, hops, proto, fragment);
    draft_note(d, RULES_OUTER_LABEL, label);
    return fragment;
}

static void draft_network(struct draft *d, bool v6, bool has_type)
{
    uint32_t proto = draft_protocol(d, v6);
    bool fragment;

    if (has_type) {
        draft_put16(draft_add(d, 2), v6 ? TYPE_IPV6 : TYPE_IPV4);
        draft_note(d, RULES_OUTER_ETHERTYPE, v6 ? TYPE_IPV6 : TYPE_IPV4);
    }
    fragment = v6 ? draft_ipv6(d, proto) : draft_ipv4(d, proto);
    if (!fragment) {
        draft_transport(d, proto);
    }
}

static void draft_packet(struct draft *d)
{
    uint32_t type;

    if (d->roce || chance_below(d->chance, 8)) {
        draft_network(d, chance_one_in(d->chance, 2), true);
        return;
    }
    type = chance_one_in(d->chance, 2) ? TYPE_MPLS : 0x88b5 + (uint32_t)chance_below(d->chance, 2);
    draft_put16(draft_add(d, 2), type);
    draft_note(d, RULES_OUTER_ETHERTYPE, type);
    if (type == TYPE_MPLS) {
        draft_mpls(d, d->inner ? RULES_INNER_MPLS : RULES_MPLS);
    }
}

/* -- whole frames ------------------------------------------------------------------------------ */

void rules_frame_draw(struct rules_frame *frame, struct chance *chance, const uint8_t dmac[6],
                      const uint8_t smac[6], bool roce, uint32_t number)
{
    struct draft d = {.frame = frame,
                      .chance = chance,
                      .dmac = dmac,
                      .smac = smac,
                      .roce = roce && chance_one_in(chance, 6)};
    uint8_t *tail;

    memset(frame, 0, sizeof(*frame));
    draft_ethernet(&d);
    draft_packet(&d);
    draft_add(&d, (uint32_t)chance_below(chance, 64));
    draft_add(&d, frame->len < LEAST ? LEAST - frame->len : 0);
    tail = draft_add(&d, TAIL);
    draft_put32(tail, MARK);
    draft_put32(tail + 4, number);
    for (unsigned i = 0; i < d.num_lengths; i++) {
        draft_put16(frame->bytes + d.lengths[i].at, frame->len - d.lengths[i].from);
    }
    for (unsigned i = 0; i < d.num_lengths; i++) { /* with the lengths, also the checksums */
        uint8_t *ip = frame->bytes + d.lengths[i].from;

        if (frame->bytes + d.lengths[i].at == ip + 2) {
            draft_ipv4_sum(ip);
        }
    }
}

uint32_t rules_frame_number(const uint8_t *frame, uint32_t len)
{
    const uint8_t *tail = frame + len - 4;

    return (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
}
