/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives a frame at a vport: checks the MAC filter and the MTU, and whether the frame is RoCE.
 * Then it passes the frame to struct port_receivers. A RoCE frame first passes the flow tables that
 * are for RoCE.
 */
#include "model/core/hca.h"
#include "model/core/trace.h"
#include "model/port/port.h"
#include "wire/port.h"

/* Receives a frame that the MAC lists do not have; a rule of a raw packet QP may name its MAC. */
static void rx_unlisted(struct vport *vport, const uint8_t *frame, size_t len, uint32_t from_td)
{
    if (len + FCS_LEN <= vport->uplink->mtu &&
        port_receivers.eth(vport->hca, frame, len, from_td, false)) {
        traffic_count(&vport->counters.rx, frame_class(frame), len);
    }
}

static void rx_roce(struct vport *vport, enum roce_verdict verdict, const struct roce_packet *pkt)
{
    struct vport_counters *c = &vport->counters;

    switch (verdict) {
    case ROCE_OK:
        port_receivers.roce(vport->hca, pkt);
        break;
    case ROCE_BAD_ICRC:
        c->rx_bad_icrc++;
        hca_log(vport->hca, HCA_LOG_INFO,
                "a RoCE packet with a wrong ICRC is dropped: QP 0x%x, PSN %u", pkt->dest_qp,
                pkt->psn);
        break;
    case ROCE_TRUNCATED:
        c->rx_truncated++;
        break;
    default:
        c->rx_bad_header++;
        break;
    }
}

void vport_rx(struct vport *vport, const uint8_t *frame, size_t len, unsigned flags,
              uint32_t from_td)
{
    struct vport_counters *c = &vport->counters;
    bool accepted = vport_accepts_mac(vport, frame);
    enum frame_class class = frame_class(frame);
    struct roce_packet checked;
    const struct roce_packet *pkt = &checked;
    enum roce_verdict verdict;

    hca_spend(vport->hca, 1);
    if (!accepted && !port_receivers.wants_mac(vport->hca, frame)) {
        rx_unlisted(vport, frame, len, from_td);
        return;
    }
    traffic_count(&c->rx, class, len);
    if (G_UNLIKELY(vport->hca->tracing)) {
        trace_received(vport->hca, frame, len, flags,
                       len + FCS_LEN > vport->uplink->mtu ? "it is longer than the port's MTU"
                                                          : NULL);
    }
    if (len + FCS_LEN > vport->uplink->mtu) {
        c->rx_oversize++;
        return;
    }
    if (!vport->roce_enabled) {
        verdict = ROCE_NOT_ROCE;
    } else if (flags & WIRE_NO_ICRC) {
        verdict = roce_parse_next(frame, len, &vport->last);
        pkt = &vport->last.pkt;
    } else {
        verdict = roce_parse(frame, len, &checked);
    }
    if (verdict != ROCE_NOT_ROCE) {
        traffic_count(&c->rx_roce, class, len);
        if (G_LIKELY(!vport->hca->steers_roce) ||
            port_receivers.steer_roce(vport->hca, frame, len)) {
            rx_roce(vport, verdict, pkt);
        }
    } else if (accepted) {
        port_receivers.eth(vport->hca, frame, len, from_td, true);
    }
}

bool port_may_copy(struct hca *hca, bool is_first)
{
    hca_spend(hca, 1);
    if (is_first || hca->pieces < hca->vport->copies_end) {
        return true;
    }
    hca->vport->counters.rx_discards++;
    return false;
}
