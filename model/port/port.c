/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds and sends a function's frames, and takes received frames in its turns.
 *
 * A frame to the function itself goes through the vport's queue, like a frame to another vport. So
 * it takes the same steps as any other frame (queue, back-pressure, receive in a later step), and
 * there is no recursion.
 */
#include <string.h>
#include "model/core/hca.h"
#include "model/core/trace.h"
#include "model/port/eswitch.h"
#include "model/port/pause.h"
#include "model/port/port.h"
#include "model/queue/eq.h"
#include "prm/prm.h"
#include "wire/encap/eth.h"
#include "wire/port.h"

/* -- receive ------------------------------------------------------------------------------------
 */

/* Frames that are taken before their cost is checked. */
#define RX_BATCH 8

/* Takes one batch from a source. A source that has delivered something is polled again in the next
 * turn, because only an empty answer lets a backend go to sleep (wire/port.h). True: there may be
 * more frames now. */
static bool port_poll_batch(struct vport *vport, struct wire_port *from, enum vport_pending which)
{
    unsigned n;

    if (!(vport->pending & which) || !from) {
        return false;
    }
    n = wire_poll(from, RX_BATCH);
    vport_set_pending(vport, which, n > 0);
    return n == RX_BATCH;
}

static bool port_poll_queue(struct vport *vport)
{
    unsigned before = vport->taken;
    bool more = port_poll_batch(vport, vport->queue[1], VPORT_PENDING_QUEUE);

    if (vport->taken != before) {
        eswitch_queue_taken(vport->sw);
    }
    return more;
}

/* The frames of the cable may go to other vports, so their queues need credit before the cable is
 * read. */
static bool port_poll_cable(struct vport *vport)
{
    struct eswitch *sw = vport->sw;

    if (G_UNLIKELY(sw->num_functions > 1) && !eswitch_may_read(sw, RX_BATCH)) {
        vport_set_pending(vport, VPORT_PENDING_CABLE, false);
        return false;
    }
    return port_poll_batch(vport, sw->uplink.wire, VPORT_PENDING_CABLE);
}

static void port_announce_link(struct hca *hca, bool up)
{
    struct prm_port_state_change_event data[1] = {0};

    if (up == hca->vport->was_up) {
        return;
    }
    hca->vport->was_up = up;
    PRM_SET(port_state_change_event, data, port_num, hca->vport->uplink->number);
    eq_async(hca, PRM_EVENT_TYPE_PORT_CHANGE,
             up ? PRM_PORT_CHANGE_SUBTYPE_ACTIVE : PRM_PORT_CHANGE_SUBTYPE_DOWN, data);
    hca_tx_ready(hca);
}

/* Announces the link. If it was down only for a moment, both the failure and the recovery are
 * announced. */
static void port_announce_links(struct hca *hca)
{
    struct vport *vport = hca->vport;

    if (vport->link_lost) {
        port_announce_link(hca, false);
    }
    vport_set_pending(vport, VPORT_PENDING_LINK, false);
    vport->link_lost = false;
    port_announce_link(hca, port_is_up(hca));
}

bool port_poll(struct hca *hca)
{
    struct vport *vport = hca->vport;
    bool more_queued = true, more = true;

    vport->copies_end = hca->pieces + PORT_COPY_PIECES;
    if (!port_rx_pending(hca)) {
        return false; /* most turns serve a doorbell */
    }
    if (vport->pending & VPORT_PENDING_LINK && !hca->off) {
        port_announce_links(hca);
    }
    while ((more_queued || more) && hca_may_go_on(hca)) {
        more_queued = more_queued && port_poll_queue(vport);
        more = more && port_poll_cable(vport);
    }
    return more_queued || more;
}

void port_look(struct hca *hca)
{
    struct vport *vport = hca->vport;

    port_poll_queue(vport);
    vport_set_pending(vport, VPORT_PENDING_CABLE,
                      vport->uplink->wire && vport->sw->reader == vport);
    port_poll_cable(vport);
}

/* -- send ---------------------------------------------------------------------------------------
 */

/* The vport of this card that a unicast to dmac goes to, or NULL. loops: it may go back. */
static inline struct vport *port_find_inside(struct vport *from, const uint8_t dmac[6], bool loops)
{
    if (vport_has_mac(from, dmac) && loops) {
        return from;
    }
    return G_UNLIKELY(from->sw->num_functions > 1) ? eswitch_find(from, dmac) : NULL;
}

static inline uint8_t *port_reserve(struct hca *hca, const uint8_t dmac[6], unsigned priority,
                                    size_t len, bool loops)
{
    struct vport *vport = hca->vport;

    g_assert(len <= WIRE_FRAME_MAX);
    vport->to = port_find_inside(vport, dmac, loops);
    hca->tx_far = false;
    if (vport->to) {
        vport->reserved = vport->to->queue[0];
        vport->frame = wire_tx_reserve(vport->reserved, len);
        hca->credit_class = 0; /* a vport's queue has only one credit class */
    } else if (port_is_up(hca)) {
        if (G_UNLIKELY(vport->uplink->pause.held) && pause_holds(hca, priority)) {
            return NULL;
        }
        vport->reserved = vport->uplink->wire;
        vport->frame = wire_tx_reserve_to(vport->reserved, dmac, len);
        if (!vport->frame) {
            hca->credit_class = wire_tx_credit_class(vport->reserved);
        }
        hca->tx_far = vport->reserved->far && hca->ops->dma_read_far && !hca->sniffs_tx;
    } else {
        vport->reserved = NULL;
        vport->frame = vport->drop;
    }
    return vport->frame;
}

uint8_t *port_tx_reserve(struct hca *hca, const uint8_t dmac[6], unsigned priority, size_t len)
{
    return port_reserve(hca, dmac, priority, len, !hca->vport->no_loop_uc);
}

uint8_t *port_tx_reserve_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len)
{
    const struct uplink *uplink = hca->vport->uplink;
    unsigned priority =
        G_UNLIKELY(uplink->pause.held) ? uplink_roce_priority(uplink, &pkt->addr) : 0;
    uint8_t *frame =
        port_reserve(hca, pkt->addr.dmac, priority, roce_frame_len(pkt, payload_len), true);

    return frame ? roce_build(frame, pkt, payload_len) : NULL;
}

static void port_count_tx(struct vport *vport, size_t len, bool is_roce)
{
    enum frame_class class = frame_class(vport->frame);

    traffic_count(&vport->counters.tx, class, len);
    if (is_roce) {
        traffic_count(&vport->counters.tx_roce, class, len);
    }
    if (!vport->to) {
        uplink_count_tx(vport->uplink, vport->frame, len);
    }
}

/* Copies a sent frame to sniffers. Its copies have pieces of their own, even if a received frame is
 * being processed. */
static void port_sniff_tx(struct vport *vport, size_t len)
{
    struct hca *hca = vport->hca;
    uint64_t received = vport->copies_end, begun = hca->pieces;

    vport->copies_end = begun + PORT_COPY_PIECES;
    port_receivers.sniff_tx(hca, vport->frame, len);
    vport->copies_end = received + (hca->pieces - begun);
}

/* Gives the reserved frame to the wire or vport. len 0 gives it back unsent. */
static inline void port_hand_over(struct vport *vport, size_t len, unsigned flags)
{
    if (vport->to) {
        wire_tx_commit_as(vport->reserved, len, flags);
    } else if (vport->reserved) {
        wire_tx_commit_as(vport->reserved, len, flags | (vport->hca->running ? WIRE_MORE : 0));
    }
    vport->reserved = NULL;
    vport->hca->tx_far = false;
}

void port_note(struct hca *hca, const struct wire_note *note)
{
    struct vport *vport = hca->vport;

    vport->note = *note;
    vport->note.function = vport->number;
    vport->has_note = true;
    if (vport->reserved && vport->reserved->wants_notes) {
        wire_note(vport->reserved, &vport->note);
    }
}

/* Traces the frame in the reserved place, and what its sender said of it. */
static void port_trace_sent(struct hca *hca, size_t len, const char *lost)
{
    struct vport *vport = hca->vport;

    trace_sent(hca, vport->frame, len, vport->has_note ? &vport->note : NULL, lost);
    vport->has_note = false;
}

/* Ends a reserved frame without sending it. */
static void port_cancel(struct hca *hca)
{
    hca_spend(hca, 1);
    hca->vport->has_note = false;
    port_hand_over(hca->vport, 0, 0);
}

static inline void port_commit(struct hca *hca, size_t len, unsigned flags, uint32_t from_td,
                               bool is_roce)
{
    struct vport *vport = hca->vport, *to = vport->to;

    hca_spend(hca, 1);
    if (G_UNLIKELY(hca->tracing)) {
        port_trace_sent(hca, len, vport->reserved ? NULL : "the link is down");
    }
    hca->tx_frames++;
    if (G_LIKELY(vport->reserved)) {
        port_count_tx(vport, len, is_roce);
        if (G_UNLIKELY(hca->sniffs_tx)) {
            port_sniff_tx(vport, len);
        }
    }
    if (G_UNLIKELY(vport->sw->num_functions > 1) && mac_is_group(vport->frame)) {
        eswitch_copy_group(vport, vport->frame, len, flags);
    }
    if (to) {
        to->queue_td[to->queued++ % VPORT_QUEUE] = to == vport ? from_td : PORT_NO_TD;
    }
    port_hand_over(vport, len, flags);
}

bool port_is_paused(struct hca *hca, const uint8_t dmac[6], struct wire_pause *pause)
{
    if (port_find_inside(hca->vport, dmac, true) || !port_is_up(hca)) {
        *pause = (struct wire_pause){0};
        return false;
    }
    return wire_is_paused(hca->vport->uplink->wire, dmac, pause);
}

void port_tx_flush(struct hca *hca)
{
    struct wire_port *wire = hca->vport->uplink->wire;

    if (wire) {
        wire_tx_flush(wire);
    }
}

/* Whether an outgoing frame that this device built is RoCE: of version 1, or UDP to RoCEv2's
 * port. */
static bool port_frame_is_roce(const uint8_t *frame, size_t len)
{
    size_t l3 = 14, l4;
    unsigned ethertype = (unsigned)prm_load16(frame + 12);

    if (ethertype == ETH_TYPE_VLAN) {
        ethertype = (unsigned)prm_load16(frame + 16);
        l3 = 18;
    }
    if (ethertype == ETH_TYPE_ROCE) {
        return true;
    }
    l4 = l3 + (ethertype == ETH_TYPE_IPV4 ? 20 : 40);
    if (l4 + 8 > len || (ethertype != ETH_TYPE_IPV4 && ethertype != ETH_TYPE_IPV6)) {
        return false;
    }
    return frame[l3 + (ethertype == ETH_TYPE_IPV4 ? 9 : 6)] == IP_PROTO_UDP &&
           prm_load16(frame + l4 + 2) == ROCE_UDP_DPORT;
}

void port_tx_commit(struct hca *hca, size_t len, uint32_t from_td)
{
    struct vport *vport = hca->vport;

    if (len) {
        port_commit(hca, len, 0, from_td, vport->reserved && port_frame_is_roce(vport->frame, len));
    } else {
        port_cancel(hca);
    }
}

void port_tx_commit_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len)
{
    struct vport *vport = hca->vport;
    /* a sniffer gets the frame as it is on a cable, with ICRC */
    bool may_omit = vport->reserved && !hca->sniffs_tx;
    unsigned flags = may_omit ? vport->reserved->offers & WIRE_NO_ICRC : 0;
    size_t len = flags ? roce_finish_no_icrc(vport->frame, pkt, payload_len)
                       : roce_finish(vport->frame, pkt, payload_len);

    if (len + FCS_LEN > port_mtu(hca)) {
        if (hca->tracing) {
            port_trace_sent(hca, len, "it is longer than the port's MTU");
        }
        port_cancel(hca);
        vport->counters.tx_oversize++;
        return;
    }
    if (G_UNLIKELY(hca->sniffs_tx) && !port_receivers.steer_roce_tx(hca, vport->frame, len)) {
        if (hca->tracing) {
            port_trace_sent(hca, len, "a rule drops it");
        }
        port_cancel(hca);
        return;
    }
    if (bth_opcodes[pkt->opcode].transport == BTH_UD &&
        port_receivers.wants_copy(hca, &pkt->addr)) {
        port_loop(hca, vport->frame, len, flags, PORT_NO_TD);
    }
    port_commit(hca, len, flags, PORT_NO_TD, true);
}

void port_loop(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags, uint32_t from_td)
{
    if (hca->vport->to != hca->vport) {
        eswitch_copy(hca->vport, frame, len, flags, from_td);
    }
}

/* -- link, life ---------------------------------------------------------------------------------
 */

void port_update_link(struct hca *hca)
{
    eswitch_link_changed(hca->vport->sw);
    port_announce_links(hca);
}

void port_set_wire(struct hca *hca, struct wire_port *wire)
{
    struct eswitch *sw = hca->vport->sw;

    if (wire && sw->uplink.wire) {
        /* Between the two cables no cable is plugged in, so that no work keeps waiting for credit
         * of the old one. */
        eswitch_set_wire(sw, NULL);
        eswitch_link_changed(sw);
    }
    eswitch_set_wire(sw, wire);
    port_update_link(hca);
}

void port_init(struct hca *hca, struct vport *vport)
{
    hca->vport = vport;
    eswitch_attach(vport, hca);
}

void port_clear(struct hca *hca)
{
    port_owe_nothing(hca);
    eswitch_detach(hca->vport);
    hca->vport = NULL;
}
