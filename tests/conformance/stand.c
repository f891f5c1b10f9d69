/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand. */
#include "tests/conformance/stand.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "guest-lib/verbs/user/device.h"
#include "wire/encap/neigh.h"
#include "wire/pair.h"

#define SLOTS     256
#define GID       1 /* the IPv4 one */
#define HOP_LIMIT 64
#define UDP_SPORT 0xc000

/* The peer is where it says, as any host. */
static void stand_answer(struct stand *stand, const uint8_t *frame, size_t len)
{
    struct neigh_msg msg;
    uint8_t *answer;

    if (!neigh_parse(frame, len, &msg) || !msg.is_question ||
        memcmp(msg.asked, &stand->peer.gid[GID], sizeof(msg.asked)) != 0) {
        return;
    }
    answer = wire_tx_reserve(stand->end, NEIGH_FRAME_MAX);
    g_assert_nonnull(answer); /* the cable holds more than a step sends */
    wire_tx_commit(stand->end, neigh_build_answer(answer, stand->peer.mac, &msg));
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
    packet->ns = stand->world->now_ns;
    memcpy(packet->frame, frame, len);
    if (flags & WIRE_NO_ICRC) {
        roce_fill_icrc(packet->frame, len);
    }
    switch (roce_parse(packet->frame, len, &packet->pkt)) {
    case ROCE_OK:
        g_queue_push_tail(&stand->sent, packet);
        return;
    case ROCE_NOT_ROCE: /* groups: another subject */
        stand_answer(stand, frame, len);
        break;
    default:
        stand->bad_frames++;
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

static bool stand_run(struct inproc_member *member, uint64_t now_ns)
{
    struct stand *stand = (struct stand *)((char *)member - offsetof(struct stand, member));

    return wire_poll(stand->end, SLOTS);
}

static uint64_t stand_deadline_ns(const struct inproc_member *member)
{
    return UINT64_MAX;
}

bool stand_init(struct stand *stand)
{
    struct wire_port *ends[2];

    *stand = (struct stand){.world = inproc_world_new()};
    g_queue_init(&stand->sent);
    wire_pair_new(SLOTS, ends);
    stand->end = ends[0];
    wire_set_client(stand->end, &stand_client, stand);
    stand->member = (struct inproc_member){stand_run, stand_deadline_ns};
    inproc_join(stand->world, &stand->member);
    hv_config_simulate(&stand->device, 1, NULL, stand->world, ends[1]);
    hv_config_simulate(&stand->peer, 2, NULL, stand->world, NULL);
    stand->ibdev = hv_sim_device_new(0, &stand->device);
    stand->ctx = ibv_open_device(stand->ibdev);
    if (!stand->ctx || fcntl(stand->ctx->async_fd, F_SETFL, O_NONBLOCK)) {
        return false;
    }
    stand->pd = ibv_alloc_pd(stand->ctx);
    stand->other_pd = ibv_alloc_pd(stand->ctx);
    return stand->pd && stand->other_pd;
}

void stand_clear(struct stand *stand)
{
    g_assert_cmpint(ibv_dealloc_pd(stand->pd), ==, 0);
    g_assert_cmpint(ibv_dealloc_pd(stand->other_pd), ==, 0);
    g_assert_cmpint(ibv_close_device(stand->ctx), ==, 0);
    hv_sim_device_free(stand->ibdev);
    inproc_leave(stand->world, &stand->member);
    wire_close(stand->end);
    inproc_world_free(stand->world);
    g_queue_clear_full(&stand->sent, g_free);
}

void stand_address(const struct stand *stand, struct roce_addr *addr)
{
    *addr = (struct roce_addr){
        .is_ipv4 = true,
        .hop_limit = HOP_LIMIT,
        .udp_sport = UDP_SPORT,
    };
    memcpy(addr->dmac, stand->device.mac, sizeof(addr->dmac));
    memcpy(addr->smac, stand->peer.mac, sizeof(addr->smac));
    memcpy(addr->dgid, &stand->device.gid[GID], sizeof(addr->dgid));
    memcpy(addr->sgid, &stand->peer.gid[GID], sizeof(addr->sgid));
}

/* BTH (IBTA 9.2): opcode in byte 0, PadCnt in bits 5:4 of byte 1. */
#define PAD_SHIFT 4
#define PAD_MASK  (3 << PAD_SHIFT)

void stand_send(struct stand *stand, const struct roce_packet *pkt, const struct stand_spoil *spoil)
{
    uint8_t *frame = wire_tx_reserve(stand->end, WIRE_FRAME_MAX), *payload, *bth;
    size_t len;

    g_assert_nonnull(frame); /* the cable holds more than a step sends */
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
    while (g_queue_is_empty(&stand->sent) && inproc_step(stand->world, limit_ns)) {
    }
    return g_queue_pop_head(&stand->sent);
}
