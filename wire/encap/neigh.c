/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/encap/neigh.h"

#include "wire/bytes.h"
#include "wire/encap/eth.h"

/* ARP: offsets in the frame. */
enum {
    ARP_HARDWARE = ETH_BYTES,
    ARP_PROTOCOL = ETH_BYTES + 2,
    ARP_LENGTHS = ETH_BYTES + 4,
    ARP_OP = ETH_BYTES + 6,
    ARP_SENDER_MAC = ETH_BYTES + 8,
    ARP_SENDER_IP = ETH_BYTES + 14,
    ARP_TARGET_MAC = ETH_BYTES + 18,
    ARP_TARGET_IP = ETH_BYTES + 24,
    ARP_END = ETH_BYTES + 28,
};

#define ARP_ETHERNET     1
#define ARP_LENGTHS_IPV4 0x0604
#define ARP_REQUEST      1
#define ARP_REPLY        2

/* Neighbour discovery: offsets in a frame without extension headers. */
enum {
    ND_PAYLOAD_LEN = ETH_BYTES + 4,
    ND_NEXT = ETH_BYTES + 6,
    ND_HOPS = ETH_BYTES + 7,
    ND_SRC = ETH_BYTES + 8,
    ND_DST = ETH_BYTES + 24,
    ND_TYPE = ETH_BYTES + IPV6_BYTES,
    ND_CODE = ND_TYPE + 1,
    ND_CSUM = ND_TYPE + 2,
    ND_FLAGS = ND_TYPE + 4,
    ND_TARGET = ND_TYPE + 8,
    ND_OPTIONS = ND_TYPE + 24,
    ND_OPTION_BYTES = 8,
    ND_END = ND_OPTIONS + ND_OPTION_BYTES,
    ND_LONGEST = 256, /* the longest message that is parsed, options included */
};

#define IP_PROTO_ICMPV6 58
#define ND_HOP_LIMIT    255 /* no router has forwarded it */
#define ND_SOLICIT      135
#define ND_ADVERTISE    136
#define ND_SOLICITED    0x40000000u
#define ND_OVERRIDE     0x20000000u
#define ND_SOURCE_MAC   1
#define ND_TARGET_MAC   2

static const uint8_t everyone[MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t nobody[GID_BYTES];

static bool neigh_gid_is_ipv4(const uint8_t gid[GID_BYTES])
{
    uint8_t same[GID_BYTES];

    gid_of_ipv4(same, gid + GID_IPV4);
    return !memcmp(same, gid, GID_BYTES);
}

static bool neigh_mac_is_host(const uint8_t mac[MAC_BYTES])
{
    return !(mac[0] & 1) && memcmp(mac, nobody, MAC_BYTES) != 0;
}

bool neigh_is_one(const uint8_t *frame, size_t len)
{
    uint16_t type = len >= ARP_END ? get16(frame + 12) : 0;

    return type == ETH_TYPE_ARP ||
           (type == ETH_TYPE_IPV6 && len >= ND_OPTIONS && frame[ND_NEXT] == IP_PROTO_ICMPV6 &&
            (frame[ND_TYPE] == ND_SOLICIT || frame[ND_TYPE] == ND_ADVERTISE));
}

/* -- parsing ----------------------------------------------------------------------------------- */

/* A group address cannot be a sender. A probe (RFC 5227) has no sender address yet. */
static bool neigh_parse_arp(const uint8_t *frame, struct neigh_msg *msg)
{
    uint16_t op = get16(frame + ARP_OP);
    const uint8_t *ip = frame + ARP_SENDER_IP;

    if (get16(frame + ARP_HARDWARE) != ARP_ETHERNET ||
        get16(frame + ARP_PROTOCOL) != ETH_TYPE_IPV4 ||
        get16(frame + ARP_LENGTHS) != ARP_LENGTHS_IPV4 || (op != ARP_REQUEST && op != ARP_REPLY) ||
        !neigh_mac_is_host(frame + ARP_SENDER_MAC)) {
        return false;
    }
    msg->is_question = op == ARP_REQUEST;
    msg->has_sender = get32(ip) && ip[0] < 224 && ip[0] != 127;
    gid_of_ipv4(msg->sender, ip);
    memcpy(msg->mac, frame + ARP_SENDER_MAC, MAC_BYTES);
    gid_of_ipv4(msg->asked, frame + ARP_TARGET_IP);
    return msg->is_question || msg->has_sender;
}

static uint16_t neigh_nd_csum(const uint8_t *frame, size_t len)
{
    size_t payload = len - ND_TYPE;
    uint16_t sum = csum_partial(frame + ND_SRC, 2 * GID_BYTES);

    sum = csum_add(sum, csum_add((uint16_t)payload, IP_PROTO_ICMPV6));
    return csum_add(sum, csum_partial(frame + ND_TYPE, payload));
}

/* Finds the MAC address in the option of that type; *mac is NULL if there is no such option. False:
 * an option's length is 0 or goes beyond the message. */
static bool neigh_find_mac(const uint8_t *frame, size_t len, uint8_t type, const uint8_t **mac)
{
    size_t size;

    *mac = NULL;
    for (size_t at = ND_OPTIONS; at < len; at += size) {
        size = at + 1 < len ? (size_t)frame[at + 1] * ND_OPTION_BYTES : 0;
        if (!size || size > len - at) {
            return false;
        }
        if (frame[at] == type && size == ND_OPTION_BYTES && !*mac) {
            *mac = frame + at + 2;
        }
    }
    return true;
}

/* Checks what RFC 4861 7.1 requires of a valid message, and stores its meaning. */
static bool neigh_parse_nd(const uint8_t *frame, size_t len, struct neigh_msg *msg)
{
    bool is_question = frame[ND_TYPE] == ND_SOLICIT;
    const uint8_t *src = frame + ND_SRC, *target = frame + ND_TARGET, *mac;
    bool is_probe = !memcmp(src, nobody, GID_BYTES);

    if (frame[ND_HOPS] != ND_HOP_LIMIT || frame[ND_CODE] || target[0] == 0xff || src[0] == 0xff ||
        neigh_nd_csum(frame, len) != 0xffff ||
        !neigh_find_mac(frame, len, is_question ? ND_SOURCE_MAC : ND_TARGET_MAC, &mac) ||
        (is_probe && (mac || !is_question))) {
        return false;
    }
    msg->is_question = is_question;
    msg->has_sender = mac && neigh_mac_is_host(mac);
    memcpy(msg->sender, is_question ? src : target, GID_BYTES);
    memcpy(msg->mac, mac ? mac : frame + 6, MAC_BYTES);
    memcpy(msg->asked, target, GID_BYTES);
    return is_question ? neigh_mac_is_host(msg->mac) : msg->has_sender;
}

bool neigh_parse(const uint8_t *frame, size_t len, struct neigh_msg *msg)
{
    uint8_t copy[ND_LONGEST];
    size_t end;

    if (!neigh_is_one(frame, len)) {
        return false;
    }
    len = len < sizeof(copy) ? len : sizeof(copy);
    memcpy(copy, frame, len);
    memset(msg, 0, sizeof(*msg));
    if (!neigh_is_one(copy, len)) {
        return false; /* its sender has changed it */
    }
    if (get16(copy + 12) == ETH_TYPE_ARP) {
        return neigh_parse_arp(copy, msg);
    }
    end = ND_TYPE + (size_t)get16(copy + ND_PAYLOAD_LEN);
    return copy[ETH_BYTES] >> 4 == 6 && end >= ND_OPTIONS && end <= len &&
           neigh_parse_nd(copy, end, msg);
}

/* -- building ---------------------------------------------------------------------------------- */

static void neigh_put_eth(uint8_t *frame, const uint8_t *to, const uint8_t *from, uint16_t type)
{
    memset(frame, 0, NEIGH_FRAME_MAX);
    memcpy(frame, to, MAC_BYTES);
    memcpy(frame + MAC_BYTES, from, MAC_BYTES);
    put16(frame + 12, type);
}

static size_t neigh_put_arp(uint8_t *frame, uint16_t op, const uint8_t *mac, const uint8_t *sender,
                            const uint8_t *target)
{
    put16(frame + ARP_HARDWARE, ARP_ETHERNET);
    put16(frame + ARP_PROTOCOL, ETH_TYPE_IPV4);
    put16(frame + ARP_LENGTHS, ARP_LENGTHS_IPV4);
    put16(frame + ARP_OP, op);
    memcpy(frame + ARP_SENDER_MAC, mac, MAC_BYTES);
    memcpy(frame + ARP_SENDER_IP, sender + GID_IPV4, 4);
    memcpy(frame + ARP_TARGET_IP, target + GID_IPV4, 4);
    return ARP_END;
}

static size_t neigh_put_nd(uint8_t *frame, uint8_t type, uint32_t flags, const uint8_t *src,
                           const uint8_t *dst, const uint8_t *target, const uint8_t *mac)
{
    frame[ETH_BYTES] = 0x60;
    put16(frame + ND_PAYLOAD_LEN, ND_END - ND_TYPE);
    frame[ND_NEXT] = IP_PROTO_ICMPV6;
    frame[ND_HOPS] = ND_HOP_LIMIT;
    memcpy(frame + ND_SRC, src, GID_BYTES);
    memcpy(frame + ND_DST, dst, GID_BYTES);
    frame[ND_TYPE] = type;
    put32(frame + ND_FLAGS, flags);
    memcpy(frame + ND_TARGET, target, GID_BYTES);
    frame[ND_OPTIONS] = type == ND_SOLICIT ? ND_SOURCE_MAC : ND_TARGET_MAC;
    frame[ND_OPTIONS + 1] = 1;
    memcpy(frame + ND_OPTIONS + 2, mac, MAC_BYTES);
    put16(frame + ND_CSUM, (uint16_t)~neigh_nd_csum(frame, ND_END));
    return ND_END;
}

size_t neigh_build_question(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                            const uint8_t own[GID_BYTES], const uint8_t asked[GID_BYTES],
                            const uint8_t *to)
{
    /* the solicited-node group of the address (RFC 4291 2.7.1) */
    uint8_t group[GID_BYTES] = {0xff, 0x02, [11] = 1, [12] = 0xff};
    uint8_t group_mac[MAC_BYTES] = {0x33, 0x33, 0xff};

    if (neigh_gid_is_ipv4(asked)) {
        neigh_put_eth(frame, to ? to : everyone, mac, ETH_TYPE_ARP);
        return neigh_put_arp(frame, ARP_REQUEST, mac, own, asked);
    }
    memcpy(group + 13, asked + 13, 3);
    memcpy(group_mac + 3, asked + 13, 3);
    neigh_put_eth(frame, to ? to : group_mac, mac, ETH_TYPE_IPV6);
    return neigh_put_nd(frame, ND_SOLICIT, 0, own, to ? asked : group, asked, mac);
}

size_t neigh_build_answer(uint8_t *frame, const uint8_t mac[MAC_BYTES],
                          const struct neigh_msg *question)
{
    static const uint8_t all_nodes[GID_BYTES] = {0xff, 0x02, [15] = 1};
    static const uint8_t all_nodes_mac[MAC_BYTES] = {0x33, 0x33, [5] = 1};
    bool is_probe = !memcmp(question->sender, nobody, GID_BYTES);

    if (neigh_gid_is_ipv4(question->asked)) {
        neigh_put_eth(frame, question->mac, mac, ETH_TYPE_ARP);
        memcpy(frame + ARP_TARGET_MAC, question->mac, MAC_BYTES);
        return neigh_put_arp(frame, ARP_REPLY, mac, question->asked, question->sender);
    }
    /* an asker without an address gets the answer through the all-nodes group (RFC 4861 7.2.4) */
    neigh_put_eth(frame, is_probe ? all_nodes_mac : question->mac, mac, ETH_TYPE_IPV6);
    return neigh_put_nd(frame, ND_ADVERTISE, is_probe ? ND_OVERRIDE : ND_SOLICITED | ND_OVERRIDE,
                        question->asked, is_probe ? all_nodes : question->sender, question->asked,
                        mac);
}
