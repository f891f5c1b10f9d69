/* SPDX-License-Identifier: BSD-2-Clause */
/* A physical port: its state and what it counts. */
#include "model/port/uplink.h"
#include "wire/port.h"

/* Upper bounds of the RFC 2819 size classes, frame bytes with FCS; what is longer is in the last.
 */
static const uint16_t size_classes[9] = {64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191};

static unsigned size_class(size_t len)
{
    unsigned class = 0;

    for (unsigned i = 0; i < 9; i++) {
        class += len + FCS_LEN > size_classes[i];
    }
    return class;
}

void uplink_count_rx(struct uplink *uplink, enum frame_class class, size_t len)
{
    traffic_count(&uplink->counters.rx, class, len);
    uplink->counters.rx_sizes[size_class(len)]++;
}

void uplink_count_tx(struct uplink *uplink, enum frame_class class, size_t len)
{
    traffic_count(&uplink->counters.tx, class, len);
    uplink->counters.tx_sizes[size_class(len)]++;
}

bool uplink_is_up(const struct uplink *uplink)
{
    return uplink->admin_up && uplink->wire && wire_link_up(uplink->wire);
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
    *uplink = (struct uplink){
        .number = uplink->number,
        .wire = uplink->wire,
        .admin_up = true,
        .mtu = PORT_DEFAULT_MTU,
    };
    uplink->was_up = uplink_is_up(uplink);
}
