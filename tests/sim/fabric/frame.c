/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements frame.h. */
#include "tests/sim/fabric/frame.h"
#include "wire/encap/roce.h"

struct frame *frame_new(size_t room)
{
    struct frame *frame = g_malloc(sizeof(*frame) + room);

    *frame = (struct frame){.users = 1, .room = (uint32_t)room};
    return frame;
}

void frame_put(struct frame *frame)
{
    if (!--frame->users) {
        g_free(frame);
    }
}

struct frame *frame_own(struct frame *frame)
{
    struct frame *copy;

    if (frame->users == 1) {
        return frame;
    }
    copy = frame_new(frame->len);
    copy->len = frame->len;
    copy->from = frame->from;
    copy->fate = frame->fate;
    memcpy(copy->bytes, frame->bytes, frame->len);
    frame_put(frame);
    return copy;
}

struct frame *frame_mark_fate(struct frame *frame, unsigned fate)
{
    frame = frame_own(frame);
    frame->fate |= fate;
    return frame;
}

char *frame_describe_fate(unsigned fate)
{
    static const struct {
        unsigned fate;
        const char *text;
    } texts[] = {
        {FRAME_LOST, "lost"},
        {FRAME_DROPPED, "lost: the switch's queue was full"},
        {FRAME_NO_LINK, "lost: the link was down"},
        {FRAME_PARTITIONED, "lost: the hosts were partitioned"},
        {FRAME_NO_HOST, "lost: the host has no open device"},
        {FRAME_CORRUPTED, "corrupted"},
        {FRAME_DUPLICATE, "duplicate"},
        {FRAME_LATE, "late"},
    };
    GString *line = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (fate & texts[i].fate) {
            g_string_append_printf(line, "%s%s", line->len ? ", " : "", texts[i].text);
        }
    }
    return g_string_free(line, !line->len);
}

/* -- contents ---------------------------------------------------------------------------------- */

void frame_sum_ipv4(uint8_t *ip)
{
    uint32_t sum = 0;

    ip[10] = ip[11] = 0;
    for (unsigned i = 0; i < IPV4_BYTES; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

static unsigned frame_be16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* Returns the offset of the IP header, and its version in *version; 0: there is none. */
static size_t frame_find_ip(const struct frame *frame, unsigned *version)
{
    size_t at = ETH_BYTES - 2;
    unsigned type;

    while (at + 2 + VLAN_BYTES <= frame->len && (type = frame_be16(frame->bytes + at)) != 0 &&
           (type == ETH_TYPE_VLAN || type == ETH_TYPE_QINQ)) {
        at += VLAN_BYTES;
    }
    if (at + 2 + IPV4_BYTES > frame->len) {
        return 0;
    }
    type = frame_be16(frame->bytes + at);
    at += 2;
    *version = frame->bytes[at] >> 4;
    return (type == ETH_TYPE_IPV4 && *version == 4) || (type == ETH_TYPE_IPV6 && *version == 6) ? at
                                                                                                : 0;
}

bool frame_is_roce(const struct frame *frame)
{
    unsigned version;
    size_t ip = frame_find_ip(frame, &version);
    size_t udp = ip + (version == 4 ? IPV4_BYTES : IPV6_BYTES);

    return ip && udp + UDP_BYTES <= frame->len &&
           frame->bytes[ip + (version == 4 ? 9 : 6)] == IP_PROTO_UDP &&
           frame_be16(frame->bytes + udp + 2) == ROCE_UDP_DPORT;
}

void frame_corrupt(struct frame *frame, struct chance *chance)
{
    uint64_t bit = chance_below(chance, 8ull * frame->len);

    frame->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* -- ECN --------------------------------------------------------------------------------------- */

#define ECN_CE 3u

/* IPv6's traffic class: the low half of the first byte and the high half of the second byte. */
static unsigned frame_ecn(const struct frame *frame, size_t ip, unsigned version)
{
    return (version == 4 ? frame->bytes[ip + 1] : frame->bytes[ip + 1] >> 4) & 3u;
}

bool frame_is_ect(const struct frame *frame)
{
    unsigned version;
    size_t ip = frame_find_ip(frame, &version);

    return ip && frame_ecn(frame, ip, version);
}

void frame_mark_ce(struct frame *frame)
{
    unsigned version, before, sum;
    size_t ip = frame_find_ip(frame, &version);
    uint8_t *at = frame->bytes + ip;

    if (!ip) {
        return;
    }
    if (version == 6) {
        at[1] |= ECN_CE << 4;
        return;
    }
    before = frame_be16(at);
    at[1] |= ECN_CE;
    /* RFC 1624: HC' = ~(~HC + ~m + m') */
    sum = (~frame_be16(at + 10) & 0xffff) + (~before & 0xffff) + frame_be16(at);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    at[10] = (uint8_t)(sum >> 8);
    at[11] = (uint8_t)sum;
}
