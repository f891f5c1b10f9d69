/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements stand.h: sends and receives frames. */
#include "tests/conformance/stand.h"
#include <string.h>
#include "wire/encap/neigh.h"

#define SLOTS     256
#define HOP_LIMIT 64
#define UDP_SPORT 0xc000

/* Handles questions and answers about addresses: the peer answers for its address, like any host,
 * and learns the device's. */
static void stand_hear(struct stand *stand, const uint8_t *frame, size_t len)
{
    struct neigh_msg msg;
    uint8_t *answer;

    if (!neigh_parse(frame, len, &msg)) {
        return;
    }
    if (msg.has_sender && !memcmp(msg.sender, stand->device.gid, sizeof(msg.sender))) {
        memcpy(stand->device.mac, msg.mac, sizeof(stand->device.mac));
        stand->met = true;
    }
    if (msg.is_question && !memcmp(msg.asked, stand->peer.gid, sizeof(msg.asked))) {
        answer = wire_tx_reserve(stand->end, NEIGH_FRAME_MAX);
        g_assert_nonnull(answer); /* the wire has more room than a step sends */
        wire_tx_commit(stand->end, neigh_build_answer(answer, stand->peer.mac, &msg));
    }
}

void stand_ask(struct stand *stand)
{
    uint8_t *frame = wire_tx_reserve(stand->end, NEIGH_FRAME_MAX);

    g_assert_nonnull(frame);
    wire_tx_commit(stand->end, neigh_build_question(frame, stand->peer.mac, stand->peer.gid,
                                                    stand->device.gid, NULL));
}

/* On a real wire there are other hosts, too. */
static bool stand_is_from_device(const struct stand *stand, const struct roce_packet *pkt)
{
    return !memcmp(pkt->addr.sgid, stand->device.gid, sizeof(pkt->addr.sgid)) &&
           !memcmp(pkt->addr.dgid, stand->peer.gid, sizeof(pkt->addr.dgid));
}

static void stand_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct stand *stand = opaque;
    struct stand_packet *packet;

    if (len > sizeof(packet->frame)) {
        stand->bad_frames++;
        return;
    }
    packet = g_new(struct stand_packet, 1);
    packet->ns = stand->clock->now(stand->clock);
    memcpy(packet->frame, frame, len);
    if (flags & WIRE_NO_ICRC) {
        roce_fill_icrc(packet->frame, len);
    }
    switch (roce_parse(packet->frame, len, &packet->pkt)) {
    case ROCE_OK:
        if (stand_is_from_device(stand, &packet->pkt)) {
            g_queue_push_tail(&stand->sent, packet);
            return;
        }
        break;
    case ROCE_NOT_ROCE: /* groups are not tested here */
        stand_hear(stand, frame, len);
        break;
    default:
        stand->bad_frames += !memcmp(frame + 6, stand->device.mac, sizeof(stand->device.mac));
    }
    g_free(packet);
}

static void stand_nothing(void *opaque)
{
}

static const struct wire_client stand_client = {
    .rx = stand_rx,
    .tx_ready = stand_nothing,
    .link_change = stand_nothing,
    .rx_ready = stand_nothing,
};

void stand_init(struct stand *stand, struct play_clock *clock, struct wire_port *end)
{
    stand->clock = clock;
    stand->end = end;
    g_queue_init(&stand->sent);
    wire_set_client(end, &stand_client, stand);
}

void stand_clear(struct stand *stand)
{
    wire_close(stand->end);
    g_queue_clear_full(&stand->sent, g_free);
}

bool stand_poll(struct stand *stand)
{
    return wire_poll(stand->end, SLOTS);
}

void stand_address(const struct stand *stand, struct roce_addr *addr)
{
    *addr = (struct roce_addr){
        .is_v1 = stand->is_v1,
        .is_ipv4 = !stand->is_v1,
        .hop_limit = HOP_LIMIT,
        .udp_sport = UDP_SPORT,
    };
    memcpy(addr->dmac, stand->device.mac, sizeof(addr->dmac));
    memcpy(addr->smac, stand->peer.mac, sizeof(addr->smac));
    memcpy(addr->dgid, stand->device.gid, sizeof(addr->dgid));
    memcpy(addr->sgid, stand->peer.gid, sizeof(addr->sgid));
}

/* BTH (IBTA 9.2): opcode in byte 0, PadCnt in bits 5:4 of byte 1. */
#define PAD_SHIFT 4
#define PAD_MASK  (3 << PAD_SHIFT)

void stand_send(struct stand *stand, const struct roce_packet *pkt, const struct stand_spoil *spoil)
{
    uint8_t *frame = wire_tx_reserve(stand->end, WIRE_FRAME_MAX), *payload, *bth;
    size_t len;

    g_assert_nonnull(frame); /* the wire has more room than a step sends */
    payload = roce_build(frame, pkt, pkt->payload_len);
    if (pkt->payload_len) {
        memcpy(payload, pkt->payload, pkt->payload_len);
    }
    bth = frame + roce_header_len(pkt) - transport_header_len(&pkt->transport);
    if (spoil->opcode >= 0) {
        bth[0] = (uint8_t)spoil->opcode;
    }
    if (spoil->pad_count >= 0) {
        bth[1] = (uint8_t)((bth[1] & ~PAD_MASK) | spoil->pad_count << PAD_SHIFT);
    }
    len = roce_finish(frame, pkt, pkt->payload_len);
    frame[len - 1] ^= spoil->icrc;
    wire_tx_commit(stand->end, len);
}

struct stand_packet *stand_take(struct stand *stand, uint64_t limit_ns)
{
    while (g_queue_is_empty(&stand->sent) && stand->clock->step(stand->clock, limit_ns)) {
    }
    return g_queue_pop_head(&stand->sent);
}
