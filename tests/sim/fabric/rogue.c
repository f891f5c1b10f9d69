/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rogue.h: tables of changes to a request or to an answer, of which the seed chooses a
 * row. */
#include "tests/sim/fabric/rogue.h"
#include "wire/encap/roce.h"

#define IP_AT    14u
#define UDP_AT   (IP_AT + 20)
#define BTH_AT   (UDP_AT + 8)
#define RETH_LEN (BTH_AT + 12 + 12)
#define ICRC     4u
#define MTU_MOST 4096u

enum wrong {
    WRONG_OPCODE, /* another opcode */
    WRONG_SHORT,  /* four bytes are missing */
    WRONG_EMPTY,  /* all bytes are missing */
    WRONG_LONGER, /* one byte more than its RETH says */
    WRONG_ALL,    /* the RETH says that the first of several packets is the whole message */
    WRONG_HUGE,   /* 2^31 + 1 bytes (C9-94) */
    WRONG_LARGE,  /* four bytes more than an MTU */
    WRONG_FULL,   /* another opcode, and as many bytes as an MTU has */
    WRONG_ATOMIC, /* the answer to a READ becomes an answer to an atomic */
};

struct mistake {
    uint8_t op;
    enum wrong wrong;
    uint8_t becomes;
};

static const struct mistake requests[] = {
    {0x00, WRONG_SHORT, 0},                                 /* SEND first */
    {0x01, WRONG_SHORT, 0},                                 /* middle */
    {0x01, WRONG_OPCODE, 0x00},                             /* a first packet in the middle */
    {0x01, WRONG_OPCODE, 0x07},                             /* a WRITE packet in a SEND */
    {0x02, WRONG_EMPTY, 0},                                 /* last */
    {0x02, WRONG_OPCODE, 0x04},                             /* a new message in the middle */
    {0x02, WRONG_OPCODE, 0x08}, {0x04, WRONG_OPCODE, 0x02}, /* an ONLY packet within a message */
    {0x06, WRONG_ALL, 0},                                   /* WRITE first */
    {0x06, WRONG_HUGE, 0},      {0x07, WRONG_SHORT, 0},     /* middle */
    {0x07, WRONG_OPCODE, 0x01}, {0x08, WRONG_EMPTY, 0},     /* last */
    {0x08, WRONG_SHORT, 0},     {0x08, WRONG_OPCODE, 0x02}, {0x0a, WRONG_LONGER, 0}, /* only */
    {0x0c, WRONG_HUGE, 0},                                                           /* READ */
    {0x02, WRONG_LARGE, 0},     {0x04, WRONG_LARGE, 0}, /* SEND last, only */
};

static const struct mistake answers[] = {
    {0x0d, WRONG_SHORT, 0},     /* to a READ, first */
    {0x0d, WRONG_OPCODE, 0x0f}, /* the last packet comes too early */
    {0x0e, WRONG_SHORT, 0},     /* middle */
    {0x0f, WRONG_SHORT, 0},     /* last */
    {0x0f, WRONG_FULL, 0x0d},   /* it becomes a packet that is not the last */
    {0x10, WRONG_SHORT, 0},     /* only */
    {0x10, WRONG_FULL, 0x0d},   {0x10, WRONG_ATOMIC, 0x12}, {0x12, WRONG_OPCODE, 0x10},
};

#define REQUESTS G_N_ELEMENTS(requests)

static void rogue_put32(uint8_t *at, uint32_t word)
{
    word = GUINT32_TO_BE(word);
    memcpy(at, &word, sizeof(word));
}

static void rogue_add16(uint8_t *at, int more)
{
    int word = (at[0] << 8 | at[1]) + more;

    at[0] = (uint8_t)(word >> 8);
    at[1] = (uint8_t)word;
}

/* Removes bytes of the payload, and also its padding if nothing is left. */
static void rogue_cut(struct frame *frame, size_t cut, size_t pad)
{
    uint8_t *ip = frame->bytes + IP_AT;

    frame->len -= (uint32_t)(cut + pad);
    rogue_add16(ip + 2, -(int)(cut + pad));
    rogue_add16(frame->bytes + UDP_AT + 4, -(int)(cut + pad));
    if (pad) {
        frame->bytes[BTH_AT + 1] &= (uint8_t)~0x30;
    }
    frame_sum_ipv4(ip);
}

/* Extends the payload to that length with zeros, and without padding. */
static void rogue_grow(struct frame *frame, size_t payload, size_t pad, uint32_t len)
{
    uint32_t before = IP_AT + (uint32_t)(frame->bytes[IP_AT + 2] << 8 | frame->bytes[IP_AT + 3]);

    frame->len = before; /* a short frame is padded */
    memset(frame->bytes + before - ICRC - pad, 0, pad + ICRC);
    rogue_cut(frame, payload, pad);
    frame->len += len;
    memset(frame->bytes + before, 0, frame->len > before ? frame->len - before : 0);
    rogue_add16(frame->bytes + IP_AT + 2, (int)len);
    rogue_add16(frame->bytes + UDP_AT + 4, (int)len);
    frame->bytes[BTH_AT + 1] &= (uint8_t)~0x30;
    frame_sum_ipv4(frame->bytes + IP_AT);
}

static bool rogue_make(struct frame *frame, const struct mistake *mistake, uint32_t mtu)
{
    struct roce_packet packet;
    uint8_t *reth_len = frame->bytes + RETH_LEN;
    size_t pad = frame->bytes[BTH_AT + 1] >> 4 & 3;

    if (roce_parse(frame->bytes, frame->len, &packet) != ROCE_OK) {
        return false;
    }
    switch (mistake->wrong) {
    case WRONG_OPCODE:
        frame->bytes[BTH_AT] = mistake->becomes;
        break;
    case WRONG_SHORT:
        if (packet.payload_len <= 4) {
            return false;
        }
        rogue_cut(frame, 4, 0);
        break;
    case WRONG_EMPTY:
        rogue_cut(frame, packet.payload_len, pad);
        break;
    case WRONG_LONGER:
        rogue_put32(reth_len, packet.reth.len + 1);
        break;
    case WRONG_ALL:
        rogue_put32(reth_len, (uint32_t)packet.payload_len);
        break;
    case WRONG_HUGE:
        rogue_put32(reth_len, 0x80000001u);
        break;
    case WRONG_LARGE:
        if (mtu == MTU_MOST) {
            return false; /* the port would not accept it */
        }
        rogue_grow(frame, packet.payload_len, pad, mtu + 4);
        break;
    case WRONG_FULL:
        frame->bytes[BTH_AT] = mistake->becomes;
        rogue_grow(frame, packet.payload_len, pad, mtu);
        break;
    case WRONG_ATOMIC:
        frame->bytes[BTH_AT] = mistake->becomes;
        rogue_grow(frame, packet.payload_len, pad, sizeof(uint64_t));
        break;
    }
    roce_fill_icrc(frame->bytes, frame->len);
    return true;
}

unsigned rogue_draw(struct chance *chance, bool answer)
{
    return answer ? (unsigned)(REQUESTS + chance_below(chance, G_N_ELEMENTS(answers)))
                  : (unsigned)chance_below(chance, REQUESTS);
}

static struct frame *rogue_copy(unsigned host, const uint8_t *bytes, size_t len, size_t more)
{
    struct frame *frame = frame_new(len + more);

    frame->len = (uint32_t)len;
    frame->from = host;
    memcpy(frame->bytes, bytes, len);
    return frame;
}

void rogue_again(struct sim *sim, unsigned host, const uint8_t *bytes, size_t len)
{
    link_send(fabric_uplink(sim->fabric, host), rogue_copy(host, bytes, len, 0));
}

void rogue_read_more(struct sim *sim, unsigned host, unsigned to, const uint8_t *bytes, size_t len,
                     uint32_t more)
{
    struct frame *frame = rogue_copy(host, bytes, len, 0);
    uint8_t *reth_len = frame->bytes + RETH_LEN;
    uint32_t asked;

    memcpy(&asked, reth_len, sizeof(asked));
    rogue_put32(reth_len, GUINT32_FROM_BE(asked) + more);
    roce_fill_icrc(frame->bytes, frame->len);
    link_send(fabric_downlink(sim->fabric, to), frame);
}

bool rogue_frame(struct sim *sim, unsigned nth, unsigned host, uint32_t mtu, const uint8_t *bytes,
                 size_t len)
{
    const struct mistake *mistake = nth < REQUESTS ? &requests[nth] : &answers[nth - REQUESTS];
    struct frame *frame;

    if (mistake->op != bytes[BTH_AT]) {
        return false;
    }
    frame = rogue_copy(host, bytes, len, mtu + 4);
    if (!rogue_make(frame, mistake, mtu)) {
        frame_put(frame);
        return false;
    }
    link_send(fabric_uplink(sim->fabric, host), frame);
    return true;
}
