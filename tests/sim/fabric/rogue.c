/* SPDX-License-Identifier: BSD-2-Clause */
/* What is made of a request: a table, of which the seed chooses a row. */
#include "tests/sim/fabric/rogue.h"
#include "wire/encap/roce.h"

#define IP_AT    14u
#define UDP_AT   (IP_AT + 20)
#define BTH_AT   (UDP_AT + 8)
#define RETH_LEN (BTH_AT + 12 + 12)
#define ICRC     4u

enum wrong {
    WRONG_OPCODE, /* another one */
    WRONG_SHORT,  /* four bytes are missing */
    WRONG_EMPTY,  /* all are */
    WRONG_LONGER, /* than its RETH says, by one */
    WRONG_ALL,    /* the first packet of several is all of it, by its RETH */
    WRONG_HUGE,   /* 2^31 + 1 bytes (C9-94) */
};

static const struct mistake {
    uint8_t op;
    enum wrong wrong;
    uint8_t becomes;
} mistakes[] = {
    {0x00, WRONG_SHORT, 0},                                 /* SEND first */
    {0x01, WRONG_SHORT, 0},                                 /* middle */
    {0x01, WRONG_OPCODE, 0x00},                             /* a first one in the midst */
    {0x01, WRONG_OPCODE, 0x07},                             /* a WRITE in a SEND */
    {0x02, WRONG_EMPTY, 0},                                 /* last */
    {0x02, WRONG_OPCODE, 0x04},                             /* a new one in the midst */
    {0x02, WRONG_OPCODE, 0x08}, {0x04, WRONG_OPCODE, 0x02}, /* an only one is the last of none */
    {0x06, WRONG_ALL, 0},                                   /* WRITE first */
    {0x06, WRONG_HUGE, 0},      {0x07, WRONG_SHORT, 0},     /* middle */
    {0x07, WRONG_OPCODE, 0x01}, {0x08, WRONG_EMPTY, 0},     /* last */
    {0x08, WRONG_SHORT, 0},     {0x08, WRONG_OPCODE, 0x02}, {0x0a, WRONG_LONGER, 0}, /* only */
    {0x0c, WRONG_HUGE, 0},                                                           /* READ */
};

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

/* Takes bytes of the payload away, with its padding if all of it goes. */
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

static bool rogue_make(struct frame *frame, const struct mistake *mistake)
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
    }
    roce_fill_icrc(frame->bytes, frame->len);
    return true;
}

unsigned rogue_draw(struct chance *chance)
{
    return (unsigned)chance_below(chance, G_N_ELEMENTS(mistakes));
}

bool rogue_frame(struct sim *sim, unsigned nth, unsigned host, const uint8_t *bytes, size_t len)
{
    const struct mistake *mistake = &mistakes[nth];
    struct frame *frame;

    if (mistake->op != bytes[BTH_AT]) {
        return false;
    }
    frame = frame_new(len);
    frame->len = (uint32_t)len;
    frame->from = host;
    memcpy(frame->bytes, bytes, len);
    if (!rogue_make(frame, mistake)) {
        frame_put(frame);
        return false;
    }
    link_send(fabric_uplink(sim->fabric, host), frame);
    return true;
}
