/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements strays.h. A stray overtakes the frame that it copies: it comes with the expected
 * PSN. */
#include "tests/sim/fabric/strays.h"
#include "wire/encap/roce.h"

/* Offsets in an IPv4 frame. */
#define IP_AT  14u
#define SRC_AT (IP_AT + 12)
#define DST_AT (IP_AT + 16)
#define BTH_AT (IP_AT + 20 + 8)
#define ICRC   4u

enum stray {
    STRAY_PKEY,
    STRAY_SOURCE,
    STRAY_TRANSPORT,
    STRAYS,
};

#define OTHER_PKEY   0x7ffe
#define UC           0x20 /* in an opcode, which otherwise is that of RC */
#define LAST_OF_UC   0x0b
#define UD_SEND      0x64
#define IS_UD(op)    (((op)&0xe0) == 0x60)
#define TRANSPORT(o) ((o)&0xe0)

/* Returns whether the packet carries data to a queue pair. The witness checks answers. */
static bool strays_is_request(const uint8_t *frame, size_t len)
{
    uint8_t op;

    if (len < BTH_AT + 12 + ICRC || frame[12] != 8 || frame[13] || frame[IP_AT] != 0x45 ||
        frame[IP_AT + 9] != 17) {
        return false;
    }
    op = frame[BTH_AT];
    return op == UD_SEND || op == UD_SEND + 1 ||
           ((TRANSPORT(op) == 0 || TRANSPORT(op) == UC) && (op & 0x1f) <= LAST_OF_UC);
}

static const struct sim_host *strays_find_host(const struct sim *sim, const uint8_t *ip)
{
    for (unsigned i = 0; i < sim->options.hosts; i++) {
        if (sim->hosts[i].up && !memcmp(sim->hosts[i].config.gid[1].raw + 12, ip, 4)) {
            return &sim->hosts[i];
        }
    }
    return NULL;
}

static void strays_change(struct sim *sim, uint8_t *frame, size_t len)
{
    uint8_t *op = frame + BTH_AT;
    enum stray how = (enum stray)chance_below(&sim->strays, STRAYS);
    struct roce_packet packet;
    size_t payload;

    if (roce_parse(frame, len, &packet) != ROCE_OK) {
        return;
    }
    payload = (size_t)((const uint8_t *)packet.payload - frame);
    if (packet.payload_len) {
        frame[payload] ^= 0xff;
    }
    if (how == STRAY_SOURCE && !IS_UD(*op)) {
        frame[SRC_AT + 3] ^= 0x40;
        frame_sum_ipv4(frame + IP_AT);
    } else if (how == STRAY_TRANSPORT && !IS_UD(*op)) {
        *op ^= UC;
    } else {
        frame[BTH_AT + 2] = OTHER_PKEY >> 8;
        frame[BTH_AT + 3] = OTHER_PKEY & 0xff;
    }
    roce_fill_icrc(frame, len);
}

void strays_frame(struct sim *sim, unsigned host, const uint8_t *frame, size_t len)
{
    const struct sim_host *to;
    struct frame *stray;

    if (!chance_happens(&sim->strays, (unsigned)sim->options.strays) ||
        !strays_is_request(frame, len)) {
        return;
    }
    to = strays_find_host(sim, frame + DST_AT);
    if (!to) {
        return;
    }
    stray = frame_new(len);
    stray->len = (uint32_t)len;
    stray->from = host;
    memcpy(stray->bytes, frame, len);
    strays_change(sim, stray->bytes, len);
    sim_note(NULL, "a stray, to host %u", to->number);
    link_send(fabric_downlink(sim->fabric, to->number), stray);
}
