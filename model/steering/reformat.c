/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements reformat.h. */
#include "model/steering/reformat.h"
#include <glib.h>
#include <string.h>
#include "wire/bytes.h"
#include "wire/encap/eth.h"

#define MACS_BYTES     12     /* both addresses of an Ethernet header */
#define ENTROPY_PORT   0xc000 /* the first of the ports that RFC 6335 leaves to any use */
#define ENTROPY_MASK   0x3fff
#define IPV4_HASHED_AT 12 /* the addresses in an IP header */
#define IPV6_HASHED_AT 8

/* FNV-1a */
static uint32_t reformat_hash(uint32_t hash, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * 16777619u;
    }
    return hash;
}

/* A number that is the same for all frames of a flow. */
static uint32_t reformat_flow_hash(const struct steer_packet *packet)
{
    const uint8_t *frame = packet->bytes;
    uint32_t hash = 2166136261u;
    struct eth_info info;

    if (!eth_parse(frame, packet->len, &info) || !info.ip_version) {
        return reformat_hash(hash, frame, MIN(packet->len, ETH_BYTES));
    }
    hash = reformat_hash(hash, &info.proto, 1);
    if (info.ip_version == 4) {
        hash = reformat_hash(hash, frame + info.l3_off + IPV4_HASHED_AT, 2 * 4);
    } else {
        hash = reformat_hash(hash, frame + info.l3_off + IPV6_HASHED_AT, 2 * 16);
    }
    return info.l4 ? reformat_hash(hash, frame + info.l4_off, 2 * 2) : hash;
}

/* Fills in what the tunnel's headers, which are the first len bytes, say of this frame. */
static void reformat_fill_in(struct steer_packet *packet, size_t len, uint32_t hash,
                             uint16_t *ip_id)
{
    uint8_t *ip, *udp;
    struct eth_info info;

    if (!eth_parse_headers(packet->bytes, len, &info) || !info.ip_version) {
        return;
    }
    ip = packet->bytes + info.l3_off;
    if (info.ip_version == 4) {
        put16(ip + 2, (uint16_t)(packet->len - info.l3_off));
        put16(ip + 4, (*ip_id)++);
        eth_csum_fill_ipv4(packet->bytes, &info);
    } else {
        put16(ip + 4, (uint16_t)(packet->len - info.l3_off - IPV6_BYTES));
    }
    if (info.l4 == ETH_L4_UDP) {
        udp = packet->bytes + info.l4_off;
        put16(udp, (uint16_t)(ENTROPY_PORT | (hash & ENTROPY_MASK)));
        put16(udp + 4, (uint16_t)(packet->len - info.l4_off));
        put16(udp + 6, 0);
    }
}

bool reformat_encap(struct steer_packet *packet, const uint8_t *headers, size_t len, bool keep_l2,
                    uint16_t *ip_id)
{
    uint32_t hash = reformat_flow_hash(packet);
    struct steer_packet out = *packet;
    struct eth_info info;

    if (!keep_l2) {
        if (!eth_parse(out.bytes, out.len, &info)) {
            return false;
        }
        steer_packet_cut(&out, info.l3_off);
    }
    if (!steer_packet_grow(&out, len)) {
        return false;
    }
    *packet = out;
    memcpy(packet->bytes, headers, len);
    reformat_fill_in(packet, len, hash, ip_id);
    return true;
}

bool reformat_decap_l2(struct steer_packet *packet, size_t inner)
{
    if (packet->len < ETH_BYTES || inner > packet->len - ETH_BYTES) {
        return false;
    }
    steer_packet_cut(packet, inner);
    return true;
}

bool reformat_decap_l3(struct steer_packet *packet, size_t inner, const uint8_t *header, size_t len)
{
    struct steer_packet out = *packet;

    if (inner >= packet->len) {
        return false;
    }
    steer_packet_cut(&out, inner);
    if (!steer_packet_grow(&out, len)) {
        return false;
    }
    *packet = out;
    memcpy(packet->bytes, header, len);
    return true;
}

bool reformat_push_vlan(struct steer_packet *packet, uint16_t tpid, uint16_t tci)
{
    if (packet->len < ETH_BYTES || !steer_packet_grow(packet, VLAN_BYTES)) {
        return false;
    }
    memmove(packet->bytes, packet->bytes + VLAN_BYTES, MACS_BYTES);
    put16(packet->bytes + MACS_BYTES, tpid);
    put16(packet->bytes + MACS_BYTES + 2, tci);
    return true;
}

void reformat_pop_vlan(struct steer_packet *packet)
{
    struct eth_info info;

    if (eth_parse(packet->bytes, packet->len, &info) && info.vlan_count) {
        memmove(packet->bytes + VLAN_BYTES, packet->bytes, MACS_BYTES);
        steer_packet_cut(packet, VLAN_BYTES);
    }
}
