/* SPDX-License-Identifier: BSD-2-Clause */
/* A physical port: its state and what it counts. */
#include <glib.h>
#include "model/port/uplink.h"
#include "wire/port.h"

/* The RFC 2819 size class, of a frame with its FCS: to 64, 127, 255, 511, 1023, 1518, 2047, 4095,
 * 8191, and longer. All but two bounds are powers of two. */
static unsigned uplink_size_class(size_t len)
{
    unsigned bytes = (unsigned)len + FCS_LEN;
    unsigned log2 = 31u - (unsigned)__builtin_clz(bytes);

    if (bytes <= 64) {
        return 0;
    }
    if (log2 <= 10) {
        return log2 - 5 + (bytes > 1518);
    }
    return MIN(log2 - 4, 9);
}

void uplink_count_rx(struct uplink *uplink, enum frame_class class, size_t len)
{
    traffic_count(&uplink->counters.rx, class, len);
    uplink->counters.rx_sizes[uplink_size_class(len)]++;
}

void uplink_count_tx(struct uplink *uplink, enum frame_class class, size_t len)
{
    traffic_count(&uplink->counters.tx, class, len);
    uplink->counters.tx_sizes[uplink_size_class(len)]++;
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
        .line_mbps = PORT_DEFAULT_MBPS,
        .cong = uplink->cong,
        .owing = uplink->owing,
    };
    cong_reset(&uplink->cong);
    uplink->was_up = uplink_is_up(uplink);
}
