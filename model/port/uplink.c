/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps a physical port's state and counters. */
#include <glib.h>
#include "model/port/uplink.h"
#include "wire/port.h"

void uplink_mark_path(const struct uplink *uplink, struct roce_addr *addr)
{
    const struct cong_side *rp = &uplink->cong.rp_side;
    unsigned priority = uplink_roce_priority(uplink, addr);

    if ((rp->enabled & rp->tagged & (1u << priority)) && !(addr->tclass & ECN_MASK) &&
        !addr->is_v1) { /* a GRH has no ECN field */
        addr->tclass |= ECN_ECT0;
    }
}

/* The most VLAN tags before an IP packet: an S-tag and a C-tag (IEEE 802.1ad). */
#define TAGS_MOST 2

static bool uplink_is_tag(unsigned type)
{
    return type == ETH_TYPE_VLAN || type == ETH_TYPE_QINQ;
}

/* The priority of a frame. If the DSCP is trusted, a frame that is not IP has the priority of DSCP
 * 0, because a driver chooses its queue in the same way (mlx5e_get_dscp_up()). */
static unsigned uplink_frame_priority(const struct uplink *uplink, const uint8_t *frame, size_t len)
{
    unsigned type = frame[12] << 8 | frame[13], pcp = 0;
    const uint8_t *packet = frame + 14, *end = frame + len;

    if (type == ETH_TYPE_VLAN && len >= 18) {
        pcp = frame[14] >> 5;
    }
    if (!uplink->phy.trusts_dscp) {
        return pcp;
    }
    for (unsigned tags = 0; tags < TAGS_MOST && uplink_is_tag(type) && packet + 4 <= end; tags++) {
        type = packet[2] << 8 | packet[3];
        packet += 4;
    }
    if (type == ETH_TYPE_IPV4 && packet + 2 <= end) {
        return uplink_priority(uplink, pcp, packet[1]);
    }
    if (type == ETH_TYPE_IPV6 && packet + 2 <= end) {
        return uplink_priority(uplink, pcp, (uint8_t)(packet[0] << 4 | packet[1] >> 4));
    }
    return uplink_priority(uplink, pcp, 0);
}

void uplink_count_priority(const struct uplink *uplink, struct priority_traffic *by_priority,
                           const uint8_t *frame, size_t len)
{
    unsigned priority = uplink_frame_priority(uplink, frame, len);

    if (priority) {
        by_priority[priority].frames++;
        by_priority[priority].bytes += len;
    }
}

bool uplink_is_up(const struct uplink *uplink)
{
    return uplink_takes(uplink) && uplink->wire && wire_link_up(uplink->wire);
}

bool uplink_look(struct uplink *uplink)
{
    bool up = uplink_is_up(uplink);

    uplink->counters.link_downs += uplink->was_up && !up;
    uplink->was_up = up;
    return up;
}

void uplink_reset(struct uplink *uplink)
{
    g_free(uplink->cleared);
    *uplink = (struct uplink){
        .number = uplink->number,
        .wire = uplink->wire,
        .is_cut = uplink->is_cut,
        .admin_up = true,
        .mtu = PORT_DEFAULT_MTU,
        .line_mbps = PORT_DEFAULT_MBPS,
        .cong = uplink->cong,
        .owing = uplink->owing,
    };
    cong_reset(&uplink->cong);
    uplink->was_up = uplink_is_up(uplink);
}
