/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port: cable and loopback below, transports and Ethernet queues above.
 *
 * The loopback path is a cable of its own, so that a frame to oneself takes the same steps as any
 * other (queue, back-pressure, receive in a later step) and recursion cannot happen.
 */
#include <string.h>
#include "model/core/hca.h"
#include "model/port/port.h"
#include "model/queue/eq.h"
#include "prm/prm.h"
#include "wire/encap/eth.h"
#include "wire/pair.h"
#include "wire/port.h"

#define FCS_LEN 4

static bool mac_is_group(const uint8_t mac[6])
{
    return mac[0] & 1;
}

static bool mac_is_broadcast(const uint8_t mac[6])
{
    static const uint8_t ones[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    return memcmp(mac, ones, 6) == 0;
}

static bool mac_in_list(const uint8_t list[][6], unsigned n, const uint8_t mac[6])
{
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(list[i], mac, 6) == 0) {
            return true;
        }
    }
    return false;
}

static bool mac_is_own(const struct vport *vport, const uint8_t mac[6])
{
    return memcmp(vport->mac, mac, 6) == 0 || mac_in_list(vport->uc_list, vport->num_uc, mac);
}

bool port_accepts_mac(const struct hca *hca, const uint8_t dmac[6])
{
    const struct vport *vport = hca->vport;

    if (vport->promisc_all || mac_is_broadcast(dmac)) {
        return true;
    }
    if (mac_is_group(dmac)) {
        return vport->promisc_mc || mac_in_list(vport->mc_list, vport->num_mc, dmac);
    }
    return vport->promisc_uc || mac_is_own(vport, dmac);
}

/* -- counters -----------------------------------------------------------------------------------
 */

/* Upper bounds of the RFC 2819 size classes, frame bytes with FCS. */
static const uint16_t size_classes[10] = {64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191, 10239};

static void count_size(uint64_t hist[10], size_t len)
{
    for (unsigned i = 0; i < 10; i++) {
        if (len + FCS_LEN <= size_classes[i] || i == 9) {
            hist[i]++;
            return;
        }
    }
}

/* Whether an outgoing frame, which this device built, is RoCEv2: UDP to its port. */
static bool frame_is_roce(const uint8_t *frame, size_t len)
{
    size_t l3 = 14, l4;
    unsigned ethertype = (unsigned)prm_load16(frame + 12);

    if (ethertype == ETH_TYPE_VLAN) {
        ethertype = (unsigned)prm_load16(frame + 16);
        l3 = 18;
    }
    l4 = l3 + (ethertype == ETH_TYPE_IPV4 ? 20 : 40);
    if (l4 + 8 > len || (ethertype != ETH_TYPE_IPV4 && ethertype != ETH_TYPE_IPV6)) {
        return false;
    }
    return frame[l3 + (ethertype == ETH_TYPE_IPV4 ? 9 : 6)] == IP_PROTO_UDP &&
           prm_load16(frame + l4 + 2) == ROCE_UDP_DPORT;
}

static void count_tx(struct vport_counters *c, const uint8_t *frame, size_t len, bool is_roce)
{
    c->tx_frames++;
    c->tx_bytes += len;
    if (mac_is_broadcast(frame)) {
        c->tx_broadcast_frames++;
        c->tx_broadcast_bytes += len;
    } else if (mac_is_group(frame)) {
        c->tx_multicast_frames++;
        c->tx_multicast_bytes += len;
        c->tx_roce_multicast_frames += is_roce;
        c->tx_roce_multicast_bytes += is_roce ? len : 0;
    } else {
        c->tx_unicast_frames++;
        c->tx_unicast_bytes += len;
        c->tx_roce_unicast_frames += is_roce;
        c->tx_roce_unicast_bytes += is_roce ? len : 0;
    }
    count_size(c->tx_size_hist, len);
}

static void count_rx(struct vport_counters *c, const uint8_t *frame, size_t len)
{
    c->rx_frames++;
    c->rx_bytes += len;
    if (mac_is_broadcast(frame)) {
        c->rx_broadcast_frames++;
        c->rx_broadcast_bytes += len;
    } else if (mac_is_group(frame)) {
        c->rx_multicast_frames++;
        c->rx_multicast_bytes += len;
    } else {
        c->rx_unicast_frames++;
        c->rx_unicast_bytes += len;
    }
    count_size(c->rx_size_hist, len);
}

/* A frame that count_rx() has counted turned out to be RoCE. */
static void count_rx_roce(struct vport_counters *c, const uint8_t *frame, size_t len)
{
    if (!mac_is_group(frame)) {
        c->rx_roce_unicast_frames++;
        c->rx_roce_unicast_bytes += len;
    } else if (!mac_is_broadcast(frame)) {
        c->rx_roce_multicast_frames++;
        c->rx_roce_multicast_bytes += len;
    }
}

/* -- receive ------------------------------------------------------------------------------------
 */

static void port_rx(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags,
                    uint32_t from_td)
{
    struct vport_counters *c = &hca->vport->counters;
    struct roce_packet pkt;
    enum roce_verdict verdict;
    bool for_vport;

    hca_spend(hca, 1);
    if (len < 14) {
        c->rx_truncated++;
        return;
    }
    for_vport = port_accepts_mac(hca, frame);
    if (!for_vport && !port_receivers.wants_mac(hca, frame)) {
        /* Nothing that the lists know, but a rule of a raw packet QP may name it. */
        if (len + FCS_LEN <= hca->vport->mtu &&
            port_receivers.eth(hca, frame, len, from_td, false)) {
            count_rx(c, frame, len);
        }
        return;
    }
    count_rx(c, frame, len);
    if (len + FCS_LEN > hca->vport->mtu) {
        c->rx_oversize++;
        return;
    }
    if (!hca->vport->roce_enabled) {
        verdict = ROCE_NOT_ROCE;
    } else if (flags & WIRE_NO_ICRC) {
        verdict = roce_parse_unchecked(frame, len, &pkt);
    } else {
        verdict = roce_parse(frame, len, &pkt);
    }
    if (verdict == ROCE_NOT_ROCE) {
        if (for_vport) {
            port_receivers.eth(hca, frame, len, from_td, true);
        }
        return;
    }
    count_rx_roce(c, frame, len);
    switch (verdict) {
    case ROCE_OK:
        port_receivers.roce(hca, &pkt);
        break;
    case ROCE_BAD_ICRC:
        c->rx_bad_icrc++;
        break;
    case ROCE_TRUNCATED:
        c->rx_truncated++;
        break;
    default:
        c->rx_bad_header++;
        break;
    }
}

static void wire_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct hca *hca = opaque;

    if (hca->vport->admin_up) {
        port_rx(hca, frame, len, flags, PORT_NO_TD);
    }
}

static void wire_tx_is_ready(void *opaque)
{
    struct hca *hca = opaque;

    hca_tx_rooms_ready(hca, wire_tx_rooms(hca->port->wire));
}

static void loop_tx_is_ready(void *opaque)
{
    hca_tx_ready(opaque);
}

static void set_pending(struct vport *vport, enum port_pending which, bool pends)
{
    vport->pending = pends ? vport->pending | which : vport->pending & ~(uint32_t)which;
}

/* It may come in the midst of anything, so the event waits for the next turn. */
static void wire_link_change(void *opaque)
{
    struct hca *hca = opaque;

    set_pending(hca->port, PORT_PENDING_LINK, true);
    hca->vport->link_lost |= !wire_link_up(hca->vport->wire);
    hca_wake(hca);
}

static void wire_rx_is_ready(void *opaque)
{
    struct hca *hca = opaque;

    set_pending(hca->port, PORT_PENDING_CABLE, true);
    hca_wake(hca);
}

static const struct wire_client cable_client = {
    .rx = wire_rx,
    .tx_ready = wire_tx_is_ready,
    .link_change = wire_link_change,
    .rx_ready = wire_rx_is_ready,
};

static void loop_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct hca *hca = opaque;

    port_rx(hca, frame, len, flags, hca->vport->loop_td[hca->vport->loop_out++ % PORT_LOOP_SLOTS]);
}

static void loop_rx_is_ready(void *opaque)
{
    struct hca *hca = opaque;

    set_pending(hca->port, PORT_PENDING_LOOP, true);
    hca_wake(hca);
}

static void loop_link_change(void *opaque)
{
}

static const struct wire_client loop_client = {
    .rx = loop_rx,
    .tx_ready = loop_tx_is_ready,
    .link_change = loop_link_change,
    .rx_ready = loop_rx_is_ready,
};

bool port_may_copy(struct hca *hca, bool is_first)
{
    hca_spend(hca, 1);
    if (is_first || hca->pieces < hca->vport->copies_end) {
        return true;
    }
    hca->vport->counters.rx_discards++;
    return false;
}

bool port_rx_pending(const struct hca *hca)
{
    return hca->vport->pending;
}

/* Frames that are taken before a look at what they cost. */
#define RX_BATCH 8

/* One batch from a source. A source that still delivered something is asked again in the next turn,
 * so that an empty answer is what lets a backend go to sleep (wire/port.h). True: there may be more
 * now. */
static bool poll_batch(struct vport *vport, struct wire_port *from, enum port_pending which)
{
    unsigned n;

    if (!(vport->pending & which) || !from) {
        return false;
    }
    n = wire_poll(from, RX_BATCH);
    set_pending(vport, which, n > 0);
    return n == RX_BATCH;
}

bool port_poll(struct hca *hca)
{
    struct vport *vport = hca->vport;
    bool more_looped = true, more = true;

    vport->copies_end = hca->pieces + PORT_COPY_PIECES;
    if (!port_rx_pending(hca)) {
        return false; /* most turns are a doorbell's */
    }
    if (vport->pending & PORT_PENDING_LINK && !hca->off) {
        port_update_link(hca);
    }
    while ((more_looped || more) && hca_may_go_on(hca)) {
        more_looped = more_looped && poll_batch(vport, vport->loop[1], PORT_PENDING_LOOP);
        more = more && poll_batch(vport, vport->wire, PORT_PENDING_CABLE);
    }
    return more_looped || more;
}

void port_look(struct hca *hca)
{
    struct vport *vport = hca->vport;

    poll_batch(vport, vport->loop[1], PORT_PENDING_LOOP);
    set_pending(vport, PORT_PENDING_CABLE, vport->wire);
    poll_batch(vport, vport->wire, PORT_PENDING_CABLE);
}

/* -- send ---------------------------------------------------------------------------------------
 */

uint8_t *port_tx_reserve(struct hca *hca, const uint8_t dmac[6], size_t len)
{
    struct vport *vport = hca->vport;

    g_assert(len <= WIRE_FRAME_MAX);
    if (mac_is_own(vport, dmac)) {
        vport->reserved = vport->loop[0];
        vport->frame = wire_tx_reserve(vport->reserved, len);
        return vport->frame;
    }
    if (!port_is_up(hca)) {
        vport->reserved = NULL;
        vport->frame = vport->drop;
        return vport->frame;
    }
    vport->reserved = vport->wire;
    vport->frame = wire_tx_reserve_to(vport->wire, dmac, len);
    return vport->frame;
}

static void loop_commit(struct vport *vport, size_t len, unsigned flags, uint32_t from_td)
{
    if (len) {
        vport->loop_td[vport->loop_in++ % PORT_LOOP_SLOTS] = from_td;
    }
    wire_tx_commit_as(vport->loop[0], len, flags);
}

static void commit(struct hca *hca, size_t len, unsigned flags, uint32_t from_td, bool is_roce)
{
    struct vport *vport = hca->vport;

    hca_spend(hca, 1);
    if (len && vport->reserved) {
        count_tx(&vport->counters, vport->frame, len, is_roce);
    }
    if (vport->reserved == vport->loop[0]) {
        loop_commit(vport, len, flags, from_td);
    } else if (vport->reserved) {
        wire_tx_commit_as(vport->reserved, len, flags | (hca->running ? WIRE_MORE : 0));
    }
    vport->reserved = NULL;
}

bool port_is_paused(struct hca *hca, const uint8_t dmac[6], struct wire_pause *pause)
{
    struct vport *vport = hca->vport;

    if (mac_is_own(vport, dmac) || !port_is_up(hca)) {
        *pause = (struct wire_pause){0};
        return false;
    }
    return wire_is_paused(vport->wire, dmac, pause);
}

void port_tx_flush(struct hca *hca)
{
    if (hca->vport->wire) {
        wire_tx_flush(hca->vport->wire);
    }
}

void port_tx_commit(struct hca *hca, size_t len, uint32_t from_td)
{
    bool is_roce = len && hca->vport->reserved && frame_is_roce(hca->vport->frame, len);

    commit(hca, len, 0, from_td, is_roce);
}

void port_tx_commit_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len)
{
    struct vport *vport = hca->vport;
    unsigned flags = vport->reserved ? vport->reserved->offers & WIRE_NO_ICRC : 0;
    size_t len = flags ? roce_finish_no_icrc(vport->frame, pkt, payload_len)
                       : roce_finish(vport->frame, pkt, payload_len);

    if (len + FCS_LEN > vport->mtu) {
        commit(hca, 0, 0, PORT_NO_TD, true);
        vport->counters.tx_oversize++;
        return;
    }
    if ((pkt->opcode & 0xe0) == BTH_UD && port_receivers.wants_copy(hca, &pkt->addr)) {
        port_loop(hca, vport->frame, len, flags, PORT_NO_TD);
    }
    commit(hca, len, flags, PORT_NO_TD, true);
}

void port_loop(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags, uint32_t from_td)
{
    uint8_t *copy = wire_tx_reserve(hca->vport->loop[0], len);

    if (copy) {
        memcpy(copy, frame, len);
        loop_commit(hca->port, len, flags, from_td);
    }
}

/* -- link ---------------------------------------------------------------------------------------
 */

bool port_is_up(const struct hca *hca)
{
    const struct vport *vport = hca->vport;

    return vport->admin_up && vport->wire && wire_link_up(vport->wire);
}

static void announce_link(struct hca *hca, bool up)
{
    uint8_t data[EQE_DATA_LEN] = {0};

    if (up == hca->vport->was_up) {
        return;
    }
    hca->vport->was_up = up;
    hca->vport->counters.link_downs += !up;
    PRM_SET(port_state_change_event, data, port_num, 1);
    eq_async(hca, PRM_EVENT_TYPE_PORT_CHANGE,
             up ? PRM_PORT_CHANGE_SUBTYPE_ACTIVE : PRM_PORT_CHANGE_SUBTYPE_DOWN, data);
    hca_tx_ready(hca);
}

void port_update_link(struct hca *hca)
{
    struct vport *vport = hca->vport;

    if (vport->link_lost) {
        announce_link(hca, false);
    }
    set_pending(vport, PORT_PENDING_LINK, false);
    vport->link_lost = false;
    announce_link(hca, port_is_up(hca));
}

void port_set_wire(struct hca *hca, struct wire_port *wire)
{
    struct vport *vport = hca->vport;

    if (vport->wire) {
        wire_set_client(vport->wire, NULL, NULL);
    }
    vport->wire = wire;
    set_pending(vport, PORT_PENDING_CABLE, wire);
    vport->link_lost = !wire;
    if (wire) {
        wire_set_client(wire, &cable_client, hca);
        hca->ops->wake(hca->host);
    }
    port_update_link(hca);
}

/* -- life ---------------------------------------------------------------------------------------
 */

/* Frames to oneself that wait belong to queues that are gone. */
static void drain_loop(struct hca *hca)
{
    struct vport *vport = hca->vport;

    wire_set_client(vport->loop[1], NULL, NULL);
    while (wire_poll(vport->loop[1], PORT_LOOP_SLOTS)) {
    }
    wire_set_client(vport->loop[1], &loop_client, hca);
    vport->loop_out = vport->loop_in;
    set_pending(vport, PORT_PENDING_LOOP, false);
}

void port_release(struct hca *hca)
{
    struct vport *vport = hca->vport;

    drain_loop(hca);
    memcpy(vport->mac, vport->permanent_mac, 6);
    vport->roce_enabled = false;
    vport->promisc_uc = vport->promisc_mc = vport->promisc_all = false;
    vport->num_uc = vport->num_mc = 0;
    memset(vport->gids, 0, sizeof(vport->gids));
}

void port_reset(struct hca *hca)
{
    struct vport *vport = hca->vport;

    port_release(hca);
    vport->admin_up = true;
    vport->mtu = PORT_DEFAULT_MTU;
    memset(&vport->counters, 0, sizeof(vport->counters));
    set_pending(vport, PORT_PENDING_LINK, false);
    vport->link_lost = false;
    vport->was_up = port_is_up(hca);
}

void port_init(struct hca *hca, const uint8_t mac[6])
{
    struct vport *vport = hca->vport = g_new0(struct vport, 1);

    memcpy(vport->permanent_mac, mac, 6);
    wire_pair_new(PORT_LOOP_SLOTS, vport->loop);
    vport->loop[0]->offers = WIRE_NO_ICRC;
    wire_set_client(vport->loop[0], &loop_client, hca);
    wire_set_client(vport->loop[1], &loop_client, hca);
    vport->drop = g_malloc(WIRE_FRAME_MAX);
    port_reset(hca);
}

void port_clear(struct hca *hca)
{
    struct vport *vport = hca->vport;

    if (vport->wire) {
        wire_set_client(vport->wire, NULL, NULL);
        vport->wire = NULL;
    }
    wire_close(vport->loop[0]);
    wire_close(vport->loop[1]);
    g_free(vport->drop);
    g_clear_pointer(&hca->vport, g_free);
}

int vport_find_gid(const struct vport *vport, const uint8_t gid[16], bool has_vlan,
                   uint16_t vlan_id)
{
    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        const struct vport_gid *entry = &vport->gids[i];

        if (entry->valid && entry->version == PRM_ROCE_VERSION_V2 &&
            memcmp(entry->gid, gid, 16) == 0 && entry->has_vlan == has_vlan &&
            (!has_vlan || entry->vlan_id == vlan_id)) {
            return (int)i;
        }
    }
    return -1;
}
