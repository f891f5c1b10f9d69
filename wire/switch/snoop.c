/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements snoop.h. Each length is compared with the frame before what it covers is read. */
#include "wire/switch/snoop.h"
#include "wire/bytes.h"
#include "wire/encap/eth.h"

#include <string.h>

enum {
    SNOOP_PROTO_HOPOPTS = 0,
    SNOOP_PROTO_IGMP = 2,
    SNOOP_PROTO_ICMPV6 = 58,

    IGMP_QUERY = 0x11,
    IGMP_V1_REPORT = 0x12,
    IGMP_V2_REPORT = 0x16,
    IGMP_V2_LEAVE = 0x17,
    IGMP_V3_REPORT = 0x22,
    IGMP_BYTES = 8,

    MLD_QUERY = 130,
    MLD_REPORT = 131,
    MLD_DONE = 132,
    MLD_V2_REPORT = 143,
    MLD_BYTES = 24,
    MLD_V2_QUERY_BYTES = 28,

    /* The kinds of group records: RFC 3376, 4.2.12; RFC 3810, 5.2.12. */
    RECORD_IS_INCLUDE = 1,
    RECORD_IS_EXCLUDE = 2,
    RECORD_TO_INCLUDE = 3,
    RECORD_TO_EXCLUDE = 4,
    RECORD_ALLOW = 5,
    RECORD_BLOCK = 6,
};

bool snoop_may_be(const uint8_t *frame, size_t len)
{
    unsigned type = get16(frame + 12);

    if (type == ETH_TYPE_IPV4) {
        return len > ETH_BYTES + 9 && frame[ETH_BYTES + 9] == SNOOP_PROTO_IGMP;
    }
    return type == ETH_TYPE_IPV6 && len > ETH_BYTES + 6 &&
           (frame[ETH_BYTES + 6] == SNOOP_PROTO_HOPOPTS ||
            frame[ETH_BYTES + 6] == SNOOP_PROTO_ICMPV6);
}

/* Notes what a report says of a group, whose address ends at `end`. */
static bool snoop_add(struct snoop *out, const uint8_t *group, bool leaves)
{
    bool is_ipv4 = out->family == GROUPS_IPV4;
    struct snoop_report *r;

    if (is_ipv4 ? group[0] >> 4 != 0xe : group[0] != 0xff) {
        return false;
    }
    if (out->num == SNOOP_GROUPS) {
        return true;
    }
    r = &out->report[out->num++];
    r->leaves = leaves;
    if (is_ipv4) {
        const uint8_t mac[6] = {0x01, 0x00, 0x5e, group[1] & 0x7f, group[2], group[3]};

        memcpy(r->mac, mac, 6);
    } else {
        r->mac[0] = r->mac[1] = 0x33;
        memcpy(r->mac + 2, group + 12, 4);
    }
    return true;
}

/* Reads the group records of IGMPv3 and MLDv2, whose addresses differ in length only. */
static bool snoop_records(struct snoop *out, const uint8_t *at, size_t len, unsigned num,
                          size_t address)
{
    for (unsigned i = 0; i < num; i++) {
        size_t sources, bytes;
        bool is_empty_set, leaves;

        if (len < 4 + address) {
            return false;
        }
        sources = get16(at + 2);
        bytes = 4 + address + sources * address + 4u * at[1];
        is_empty_set = !sources;
        if (len < bytes || !at[0] || at[0] > RECORD_BLOCK) {
            return false;
        }
        leaves = is_empty_set && (at[0] == RECORD_TO_INCLUDE || at[0] == RECORD_IS_INCLUDE);
        /* Sources that a member does not want any more say nothing about the member. */
        if (at[0] != RECORD_BLOCK && !snoop_add(out, at + 4, leaves)) {
            return false;
        }
        at += bytes;
        len -= bytes;
    }
    return true;
}

static enum snoop_kind snoop_read_igmp(struct snoop *out, const uint8_t *ip, const uint8_t *msg,
                                       size_t len)
{
    if (len < IGMP_BYTES || csum_partial(msg, len) != 0xffff) {
        return SNOOP_BAD;
    }
    memcpy(out->source + 12, ip + 12, 4);
    switch (msg[0]) {
    case IGMP_QUERY:
        return SNOOP_QUERY;
    case IGMP_V1_REPORT:
    case IGMP_V2_REPORT:
        return snoop_add(out, msg + 4, false) ? SNOOP_REPORT : SNOOP_BAD;
    case IGMP_V2_LEAVE:
        return snoop_add(out, msg + 4, true) ? SNOOP_REPORT : SNOOP_BAD;
    case IGMP_V3_REPORT:
        return snoop_records(out, msg + 8, len - 8, get16(msg + 6), 4) ? SNOOP_REPORT : SNOOP_BAD;
    default:
        return SNOOP_NONE; /* a multicast routing protocol */
    }
}

static void snoop_read_ipv4(struct snoop *out, const uint8_t *ip, size_t len)
{
    size_t head, total;

    if (len < IPV4_BYTES || ip[9] != SNOOP_PROTO_IGMP) {
        return;
    }
    head = (ip[0] & 15u) * 4;
    total = get16(ip + 2);
    out->family = GROUPS_IPV4;
    if (ip[0] >> 4 != 4 || head < IPV4_BYTES || total < head || total > len ||
        get16(ip + 6) & 0x3fff || csum_partial(ip, head) != 0xffff) {
        out->kind = SNOOP_BAD;
        return;
    }
    out->kind = snoop_read_igmp(out, ip, ip + head, total - head);
}

/* The checksum of ICMPv6 covers a pseudo header (RFC 8200, 8.1). */
static bool snoop_mld_sum_is_right(const uint8_t *ip, const uint8_t *msg, size_t len)
{
    uint8_t pseudo[40] = {0};

    memcpy(pseudo, ip + 8, 32);
    put32(pseudo + 32, (uint32_t)len);
    pseudo[39] = SNOOP_PROTO_ICMPV6;
    return csum_add(csum_partial(pseudo, sizeof(pseudo)), csum_partial(msg, len)) == 0xffff;
}

static enum snoop_kind snoop_read_mld(struct snoop *out, const uint8_t *ip, const uint8_t *msg,
                                      size_t len)
{
    bool is_v2 = msg[0] == MLD_V2_REPORT;

    /* RFC 2710, clause 3, and RFC 3810, clause 5: hop limit 1, and a link-local source (or, of
     * reports, none). */
    if (len < (is_v2 ? 8 : MLD_BYTES) || ip[7] != 1 || !snoop_mld_sum_is_right(ip, msg, len)) {
        return SNOOP_BAD;
    }
    memcpy(out->source, ip + 8, sizeof(out->source));
    switch (msg[0]) {
    case MLD_QUERY:
        return ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80 ? SNOOP_QUERY : SNOOP_BAD;
    case MLD_REPORT:
    case MLD_DONE:
        return snoop_add(out, msg + 8, msg[0] == MLD_DONE) ? SNOOP_REPORT : SNOOP_BAD;
    default:
        return snoop_records(out, msg + 8, len - 8, get16(msg + 6), 16) ? SNOOP_REPORT : SNOOP_BAD;
    }
}

static void snoop_read_ipv6(struct snoop *out, const uint8_t *ip, size_t len)
{
    size_t payload, at = IPV6_BYTES;
    unsigned next;

    if (len < IPV6_BYTES || ip[0] >> 4 != 6) {
        return;
    }
    payload = get16(ip + 4);
    next = ip[6];
    if (payload > len - IPV6_BYTES) {
        return;
    }
    len = IPV6_BYTES + payload;
    if (next == SNOOP_PROTO_HOPOPTS) {
        if (payload < 8) {
            return;
        }
        next = ip[at];
        at += 8 + 8u * ip[at + 1];
    }
    if (next != SNOOP_PROTO_ICMPV6 || at >= len ||
        !((ip[at] >= MLD_QUERY && ip[at] <= MLD_DONE) || ip[at] == MLD_V2_REPORT)) {
        return;
    }
    out->family = GROUPS_IPV6;
    out->kind = snoop_read_mld(out, ip, ip + at, len - at);
}

void snoop_read(const uint8_t *frame, size_t len, struct snoop *out)
{
    out->kind = SNOOP_NONE;
    out->num = 0;
    memset(out->source, 0, sizeof(out->source));
    if (get16(frame + 12) == ETH_TYPE_IPV4) {
        snoop_read_ipv4(out, frame + ETH_BYTES, len - ETH_BYTES);
    } else if (get16(frame + 12) == ETH_TYPE_IPV6) {
        snoop_read_ipv6(out, frame + ETH_BYTES, len - ETH_BYTES);
    }
}

/* -- queries ----------------------------------------------------------------------------------- */

/* All hosts (224.0.0.1), from no address: RFC 4541, clause 2.1.1, of switches that ask. The option
 * is Router Alert (RFC 2113); robustness 2, interval 125 s. */
static size_t snoop_build_igmp(uint8_t *frame, const uint8_t mac[6], unsigned seconds)
{
    static const uint8_t to[6] = {0x01, 0x00, 0x5e, 0, 0, 1};
    static const uint8_t ip[24] = {0x46, 0xc0, 0, 36, 0, 0, 0,   0, 1, SNOOP_PROTO_IGMP,
                                   0,    0,    0, 0,  0, 0, 224, 0, 0, 1,
                                   0x94, 4,    0, 0};
    const uint8_t query[12] = {IGMP_QUERY, (uint8_t)(seconds * 10), 0, 0, 0, 0, 0, 0, 2, 125, 0, 0};
    uint8_t *at = frame + ETH_BYTES;

    memcpy(frame, to, 6);
    memcpy(frame + 6, mac, 6);
    put16(frame + 12, ETH_TYPE_IPV4);
    memcpy(at, ip, sizeof(ip));
    put16(at + 10, (uint16_t)~csum_partial(at, sizeof(ip)));
    memcpy(at + sizeof(ip), query, sizeof(query));
    put16(at + sizeof(ip) + 2, (uint16_t)~csum_partial(query, sizeof(query)));
    return ETH_BYTES + sizeof(ip) + sizeof(query);
}

/* The link-local address that follows from a MAC address (RFC 4291, appendix A). */
static void snoop_link_local(uint8_t address[16], const uint8_t mac[6])
{
    memset(address, 0, 16);
    address[0] = 0xfe;
    address[1] = 0x80;
    memcpy(address + 8, mac, 3);
    address[8] ^= 2;
    address[11] = 0xff;
    address[12] = 0xfe;
    memcpy(address + 13, mac + 3, 3);
}

bool snoop_yields(const struct snoop *query, const uint8_t mac[6])
{
    uint8_t ours[16];

    if (query->family == GROUPS_IPV4) {
        return get32(query->source + 12) != 0;
    }
    snoop_link_local(ours, mac);
    return memcmp(query->source, ours, sizeof(ours)) < 0;
}

/* All nodes (ff02::1), from the link-local address that follows from the MAC address. */
static size_t snoop_build_mld(uint8_t *frame, const uint8_t mac[6], unsigned seconds)
{
    static const uint8_t to[6] = {0x33, 0x33, 0, 0, 0, 1};
    static const uint8_t hop[8] = {SNOOP_PROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};
    uint8_t *ip = frame + ETH_BYTES, *msg = ip + IPV6_BYTES + sizeof(hop), pseudo[40] = {0};

    memset(frame, 0, SNOOP_QUERY_LEN);
    memcpy(frame, to, 6);
    memcpy(frame + 6, mac, 6);
    put16(frame + 12, ETH_TYPE_IPV6);
    ip[0] = 0x60;
    put16(ip + 4, sizeof(hop) + MLD_V2_QUERY_BYTES);
    ip[6] = SNOOP_PROTO_HOPOPTS;
    ip[7] = 1;
    snoop_link_local(ip + 8, mac);
    ip[24] = 0xff;
    ip[25] = 2;
    ip[39] = 1;
    memcpy(ip + IPV6_BYTES, hop, sizeof(hop));
    msg[0] = MLD_QUERY;
    put16(msg + 4, (uint16_t)(seconds * 1000));
    msg[24] = 2;
    msg[25] = 125;
    memcpy(pseudo, ip + 8, 32);
    put32(pseudo + 32, MLD_V2_QUERY_BYTES);
    pseudo[39] = SNOOP_PROTO_ICMPV6;
    put16(msg + 2, (uint16_t)~csum_add(csum_partial(pseudo, sizeof(pseudo)),
                                       csum_partial(msg, MLD_V2_QUERY_BYTES)));
    return ETH_BYTES + IPV6_BYTES + sizeof(hop) + MLD_V2_QUERY_BYTES;
}

size_t snoop_build_query(uint8_t frame[SNOOP_QUERY_LEN], enum groups_family family,
                         const uint8_t mac[6], unsigned seconds)
{
    return family == GROUPS_IPV4 ? snoop_build_igmp(frame, mac, seconds)
                                 : snoop_build_mld(frame, mac, seconds);
}
