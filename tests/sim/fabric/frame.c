/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements frame.h. */
#include "tests/sim/fabric/frame.h"
#include "wire/bytes.h"
#include "wire/encap/ecn.h"
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

bool frame_is_roce(const struct frame *frame)
{
    unsigned version;
    size_t ip = ecn_find_ip(frame->bytes, frame->len, &version);
    size_t udp = ip + (version == 4 ? IPV4_BYTES : IPV6_BYTES);

    return ip && udp + UDP_BYTES <= frame->len &&
           frame->bytes[ip + (version == 4 ? 9 : 6)] == IP_PROTO_UDP &&
           get16(frame->bytes + udp + 2) == ROCE_UDP_DPORT;
}

void frame_corrupt(struct frame *frame, struct chance *chance)
{
    uint64_t bit = chance_below(chance, 8ull * frame->len);

    frame->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}
