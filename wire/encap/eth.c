/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses frames as a NIC does, and computes checksums and hashes over them.
 *
 * Every offset in eth_info lies within the frame, so a user of an offset needs no check of its own.
 * The frame may lie in memory that its sender still writes to: the headers are copied once, and
 * only the copy is parsed.
 */
#include "wire/encap/eth.h"
#include "wire/bytes.h"

#include <libdeflate.h>
#include <string.h>

enum {
    /* IPv6 extension headers (RFC 8200 4). */
    EXT_HOP_BY_HOP = 0,
    EXT_ROUTING = 43,
    EXT_FRAGMENT = 44,
    EXT_AUTH = 51, /* RFC 4302 */
    EXT_DEST_OPTS = 60,
    EXT_MAX = 8, /* extension headers that a NIC parses at most */
    EXT_FIXED = 8,

    HEAD_MAX = 256, /* bytes of a frame in which a NIC looks for headers */
};

static bool eth_parse_ipv4(const uint8_t *ip, size_t avail, bool whole, struct eth_info *info)
{
    size_t ihl, total;

    if (avail < IPV4_BYTES) {
        return false;
    }
    ihl = (ip[0] & 0x0f) * 4u;
    total = whole ? get16(ip + 2) : avail;
    if (total > avail) {
        info->malformed = true;
        total = avail;
    }
    if (ip[0] >> 4 != 4 || ihl < IPV4_BYTES || ihl > total) {
        return false;
    }
    info->proto = ip[9];
    info->tos = ip[1];
    info->ttl = ip[8];
    info->fragment = get16(ip + 6) & 0x3fff; /* MF or an offset */
    info->l4_off = info->l3_off + (uint32_t)ihl;
    info->ip_end = info->l3_off + (uint32_t)total;
    return true;
}

static bool eth_parse_ipv6(const uint8_t *ip, size_t avail, bool whole, struct eth_info *info)
{
    size_t off = IPV6_BYTES, end;
    uint8_t next;

    if (avail < IPV6_BYTES || ip[0] >> 4 != 6) {
        return false;
    }
    end = whole ? IPV6_BYTES + (size_t)get16(ip + 4) : avail;
    if (end > avail) {
        info->malformed = true;
        end = avail;
    }
    next = ip[6];
    for (int i = 0; i < EXT_MAX; i++) {
        size_t ext;

        if (info->l3_off + off + EXT_FIXED > HEAD_MAX) {
            break;
        }
        if (next == EXT_FRAGMENT) {
            ext = 8;
        } else if (next == EXT_HOP_BY_HOP || next == EXT_ROUTING || next == EXT_DEST_OPTS ||
                   next == EXT_AUTH) {
            if (end - off < 2) {
                return false;
            }
            ext = next == EXT_AUTH ? (ip[off + 1] + 2u) * 4 : (ip[off + 1] + 1u) * 8;
        } else {
            break;
        }
        if (ext > end - off) {
            return false;
        }
        if (next == EXT_FRAGMENT && (get16(ip + off + 2) & 0xfff9)) {
            info->fragment = true;
        }
        next = ip[off];
        off += ext;
        if (info->fragment) {
            break;
        }
    }
    info->proto = next;
    info->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
    info->ttl = ip[7];
    info->flow_label = get32(ip) & 0xfffff;
    info->l4_off = info->l3_off + (uint32_t)off;
    info->ip_end = info->l3_off + (uint32_t)end;
    return true;
}

static void eth_parse_l4(const uint8_t *head, struct eth_info *info)
{
    const uint8_t *l4 = head + info->l4_off;
    size_t avail = info->ip_end - info->l4_off;

    if (info->l4_off + TCP_BYTES > HEAD_MAX) {
        return;
    }
    if (info->proto == IP_PROTO_UDP && avail >= UDP_BYTES) {
        info->l4 = ETH_L4_UDP;
        info->payload_off = info->l4_off + UDP_BYTES;
    } else if (info->proto == IP_PROTO_TCP && avail >= TCP_BYTES) {
        uint8_t doff = l4[12];
        size_t hdr = (doff >> 4) * 4u;

        if (hdr < TCP_BYTES || hdr > avail) {
            info->malformed = true;
            return;
        }
        info->l4 = ETH_L4_TCP;
        info->tcp_flags = (uint16_t)((doff & 1) << 8 | l4[13]);
        info->payload_off = info->l4_off + (uint32_t)hdr;
    } else {
        info->malformed |= info->proto == IP_PROTO_UDP || info->proto == IP_PROTO_TCP;
        return;
    }
    info->sport = get16(l4);
    info->dport = get16(l4 + 2);
}

/* Parses what is behind the Ethernet header: info->ethertype says what begins at info->l3_off. */
static void eth_parse_l3(const uint8_t *head, size_t len, bool whole, struct eth_info *info)
{
    uint32_t off = info->l3_off;
    bool ok;

    if (info->ethertype == ETH_TYPE_IPV4) {
        ok = eth_parse_ipv4(head + off, len - off, whole, info);
        info->ip_version = ok ? 4 : 0;
    } else if (info->ethertype == ETH_TYPE_IPV6) {
        ok = eth_parse_ipv6(head + off, len - off, whole, info);
        info->ip_version = ok ? 6 : 0;
    } else {
        return;
    }
    if (!ok) {
        info->malformed = true;
        info->fragment = false;
    } else if (!info->fragment) {
        eth_parse_l4(head, info);
    }
}

/* Parses a frame of len bytes, of which the first HEAD_MAX are in the copy. */
static bool eth_parse_head(const uint8_t *head, size_t len, bool whole, struct eth_info *info)
{
    uint32_t off = ETH_BYTES;

    if (len < ETH_BYTES) {
        return false;
    }
    info->ethertype = get16(head + 12);
    while (info->vlan_count < 2 &&
           (info->ethertype == ETH_TYPE_VLAN || info->ethertype == ETH_TYPE_QINQ)) {
        if (len < off + VLAN_BYTES) {
            info->malformed = true;
            break;
        }
        info->vlan_tpid[info->vlan_count] = info->ethertype;
        info->vlan_tci[info->vlan_count] = get16(head + off);
        info->vlan_count++;
        info->ethertype = get16(head + off + 2);
        off += VLAN_BYTES;
    }
    info->l3_off = off;
    eth_parse_l3(head, len, whole, info);
    return true;
}

/* Parses len bytes that begin with an Ethernet header or, if ethertype is not 0, with what this
 * type says. Offsets in *info are from the beginning of these bytes. */
static inline bool eth_parse_bytes(const uint8_t *bytes, size_t len, uint16_t ethertype, bool whole,
                                   struct eth_info *info)
{
    uint8_t head[HEAD_MAX];

    if (len >= HEAD_MAX) {
        memcpy(head, bytes, HEAD_MAX);
    } else {
        memcpy(head, bytes, len);
        memset(head + len, 0, HEAD_MAX - len);
    }
    __asm__ volatile("" : : "r"(head) : "memory"); /* keeps the compiler from rereading */
    memset(info, 0, sizeof(*info));
    info->frame_len = (uint32_t)len;
    if (!ethertype) {
        return eth_parse_head(head, len, whole, info);
    }
    info->ethertype = ethertype;
    eth_parse_l3(head, len, whole, info);
    return true;
}

bool eth_parse(const uint8_t *frame, size_t len, struct eth_info *info)
{
    return eth_parse_bytes(frame, len, 0, true, info);
}

bool eth_parse_headers(const uint8_t *headers, size_t len, struct eth_info *info)
{
    return eth_parse_bytes(headers, len, 0, false, info);
}

bool eth_parse_inner(const uint8_t *frame, uint32_t at, uint32_t end, uint16_t ethertype,
                     bool whole, struct eth_info *info)
{
    bool ok = eth_parse_bytes(frame + at, end - at, ethertype, whole, info);

    info->frame_len = end;
    info->l3_off += at;
    info->l4_off += info->ip_version ? at : 0;
    info->ip_end += info->ip_version ? at : 0;
    info->payload_off += info->l4 ? at : 0;
    return ok;
}

/* Adds words in the machine's own byte order: the sum of swapped words is the swapped sum (RFC 1071
 * 2(B)), so one swap at the end is enough. */
uint16_t csum_partial(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t sum = 0, word, carry = 0;
    uint16_t folded;
    uint8_t bytes[2];

    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        carry += __builtin_add_overflow(sum, word, &sum);
    }
    if (len) {
        word = 0;
        memcpy(&word, p, len);
        carry += __builtin_add_overflow(sum, word, &sum);
    }
    sum = (sum & 0xffffffff) + (sum >> 32) + carry;
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    folded = (uint16_t)(sum + (sum >> 16));
    memcpy(bytes, &folded, 2);
    return get16(bytes);
}

void eth_fcs_put(uint8_t fcs[ETH_FCS_BYTES], const uint8_t *frame, size_t len)
{
    uint32_t crc = libdeflate_crc32(0, frame, len);

    for (unsigned i = 0; i < ETH_FCS_BYTES; i++) {
        fcs[i] = (uint8_t)(crc >> 8 * i);
    }
}

uint16_t csum_add(uint16_t a, uint16_t b)
{
    uint32_t sum = (uint32_t)a + b;

    return (uint16_t)(sum + (sum >> 16));
}

bool eth_csum_ipv4_ok(const uint8_t *frame, const struct eth_info *info)
{
    const uint8_t *ip = frame + info->l3_off;

    if (info->ip_version != 4) {
        return false;
    }
    return csum_partial(ip, info->l4_off - info->l3_off) == 0xffff;
}

/* How many bytes the TCP or UDP checksum covers. 0: there is no checksum, or UDP's length is
 * wrong. */
static uint32_t eth_l4_len(const uint8_t *frame, const struct eth_info *info)
{
    uint32_t avail = info->ip_end - info->l4_off;

    if (info->l4 == ETH_L4_UDP) {
        const volatile uint8_t *field = frame + info->l4_off + 4;
        uint32_t udp_len = (uint32_t)(field[0] << 8 | field[1]); /* read once */

        return udp_len >= UDP_BYTES && udp_len <= avail ? udp_len : 0;
    }
    return info->l4 == ETH_L4_TCP ? avail : 0;
}

/* Sum over the pseudo header (RFC 9293 3.1, RFC 8200 8.1) and len bytes of TCP or UDP. */
static uint16_t eth_l4_sum(const uint8_t *frame, const struct eth_info *info, uint32_t len)
{
    const uint8_t *ip = frame + info->l3_off;
    uint16_t addrs = info->ip_version == 4 ? csum_partial(ip + 12, 8) : csum_partial(ip + 8, 32);
    uint16_t sum =
        csum_add(csum_add(addrs, info->proto), csum_add((uint16_t)len, (uint16_t)(len >> 16)));

    return csum_add(sum, csum_partial(frame + info->l4_off, len));
}

static uint32_t eth_l4_csum_off(const struct eth_info *info)
{
    return info->l4_off + (info->l4 == ETH_L4_TCP ? 16 : 6);
}

bool eth_csum_l4_ok(const uint8_t *frame, const struct eth_info *info)
{
    uint32_t len = eth_l4_len(frame, info);

    if (!len) {
        return false;
    }
    if (info->l4 == ETH_L4_UDP && get16(frame + eth_l4_csum_off(info)) == 0) {
        return info->ip_version == 4;
    }
    return eth_l4_sum(frame, info, len) == 0xffff;
}

void eth_csum_fill_ipv4(uint8_t *frame, const struct eth_info *info)
{
    uint8_t *ip = frame + info->l3_off;

    if (info->ip_version == 4) {
        put16(ip + 10, 0);
        put16(ip + 10, (uint16_t)~csum_partial(ip, info->l4_off - info->l3_off));
    }
}

void eth_csum_fill_l4(uint8_t *frame, const struct eth_info *info)
{
    uint32_t len = eth_l4_len(frame, info);
    uint8_t *field = frame + eth_l4_csum_off(info);
    uint16_t csum;

    if (!len) {
        return;
    }
    put16(field, 0);
    csum = (uint16_t)~eth_l4_sum(frame, info, len);
    if (!csum && info->l4 == ETH_L4_UDP) {
        csum = 0xffff; /* RFC 768: 0 would mean that there is no checksum */
    }
    put16(field, csum);
}

/* The 32 bits of the key that begin at this bit, which is at most 8 * TOEPLITZ_DATA_MAX - 1. */
static uint32_t eth_key_window(const uint8_t *key, size_t bit)
{
    const uint8_t *p = key + bit / 8;

    return (uint32_t)(((uint64_t)get32(p) << 8 | p[4]) >> (8 - bit % 8));
}

uint32_t toeplitz_hash(const uint8_t key[TOEPLITZ_KEY_LEN], const uint8_t *data, size_t len)
{
    uint32_t hash = 0;

    if (len > TOEPLITZ_DATA_MAX) {
        len = TOEPLITZ_DATA_MAX;
    }
    for (size_t bit = 0; bit < len * 8; bit++) {
        if (data[bit / 8] & 0x80 >> bit % 8) {
            hash ^= eth_key_window(key, bit);
        }
    }
    return hash;
}

void toeplitz_table_init(struct toeplitz_table *table, const uint8_t key[TOEPLITZ_KEY_LEN])
{
    for (size_t half = 0; half < TOEPLITZ_DATA_MAX * 2; half++) {
        for (unsigned v = 0; v < 16; v++) {
            uint32_t hash = 0;

            for (unsigned bit = 0; bit < 4; bit++) {
                if (v & 8 >> bit) {
                    hash ^= eth_key_window(key, half * 4 + bit);
                }
            }
            table->of[half][v] = hash;
        }
    }
}

uint32_t toeplitz_table_hash(const struct toeplitz_table *table, const uint8_t *data, size_t len)
{
    uint32_t hash = 0;

    if (len > TOEPLITZ_DATA_MAX) {
        len = TOEPLITZ_DATA_MAX;
    }
    for (size_t i = 0; i < len; i++) {
        hash ^= table->of[2 * i][data[i] >> 4] ^ table->of[2 * i + 1][data[i] & 15];
    }
    return hash;
}
