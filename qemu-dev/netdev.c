/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wire port whose other end is a QEMU netdev.
 *
 * Received frames wait in a bounded ring until wire_poll(). If the ring is full, the netdev is told
 * not to send (can_receive), and told to continue when wire_poll() has made room. If the netdev
 * does not take a frame at once, QEMU keeps it (its queue copies the frame); until QEMU reports
 * that the frame has left, tx_reserve finds no room. So at most one frame of this port is in that
 * queue.
 */
#include "qemu-dev/netdev.h"
#include "wire/port.h"

#define RX_SLOTS     256u /* a power of two */

#define FRAME_HEADER 14
/* IEEE 802.3 clause 3.2.8: a frame has at least 64 bytes, of which 4 are FCS. */
#define FRAME_MIN 60

struct rx_slot {
    size_t len;
    uint8_t frame[WIRE_FRAME_MAX];
};

struct netdev_port {
    struct wire_port port;
    NICState *nic;
    bool tx_busy;            /* the netdev holds a frame of this port */
    bool tx_wanted;          /* tx_reserve has found no room since then */
    bool rx_stopped;         /* the netdev found the ring full */
    unsigned rx_put, rx_get; /* free-running */
    struct wire_stats stats;
    struct rx_slot *rx;
    uint8_t tx[WIRE_FRAME_MAX];
};

static struct netdev_port *netdev_from_port(struct wire_port *port)
{
    return container_of(port, struct netdev_port, port);
}

static struct netdev_port *netdev_from_nc(NetClientState *nc)
{
    return qemu_get_nic_opaque(nc);
}

static bool netdev_rx_full(const struct netdev_port *np)
{
    return np->rx_put - np->rx_get == RX_SLOTS;
}

/* QEMU's side. */

static bool netdev_nic_can_receive(NetClientState *nc)
{
    struct netdev_port *np = netdev_from_nc(nc);

    if (netdev_rx_full(np)) {
        np->rx_stopped = true;
        return false;
    }
    return true;
}

static ssize_t netdev_nic_receive(NetClientState *nc, const uint8_t *buf, size_t size)
{
    struct netdev_port *np = netdev_from_nc(nc);
    struct rx_slot *slot;

    if (size > WIRE_FRAME_MAX) {
        np->stats.rx_malformed++;
        return size; /* no cable carries such a frame: it is lost */
    }
    if (netdev_rx_full(np)) {
        np->rx_stopped = true;
        return 0;
    }
    slot = &np->rx[np->rx_put % RX_SLOTS];
    memcpy(slot->frame, buf, size);
    slot->len = size;
    np->rx_put++;
    if (np->port.client) {
        np->port.client->rx_ready(np->port.opaque);
    }
    return size;
}

/* The frame that the netdev held has left or was dropped. */
static void netdev_tx_done(struct netdev_port *np)
{
    np->tx_busy = false;
    if (np->tx_wanted) {
        np->tx_wanted = false;
        if (np->port.client) {
            np->port.client->tx_ready(np->port.opaque);
        }
    }
}

static void netdev_nic_sent(NetClientState *nc, ssize_t ret)
{
    netdev_tx_done(netdev_from_nc(nc));
}

static void netdev_nic_link_changed(NetClientState *nc)
{
    struct netdev_port *np = netdev_from_nc(nc);

    /* A netdev that is deleted drops its frame silently. */
    netdev_tx_done(np);
    if (np->port.client) {
        np->port.client->link_change(np->port.opaque);
    }
}

static NetClientInfo nic_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = netdev_nic_can_receive,
    .receive = netdev_nic_receive,
    .link_status_changed = netdev_nic_link_changed,
};

/* The wire's side. */

static uint8_t *netdev_port_tx_reserve(struct wire_port *port, size_t len)
{
    struct netdev_port *np = netdev_from_port(port);

    if (len > sizeof(np->tx)) {
        return NULL;
    }
    if (np->tx_busy) {
        np->tx_wanted = true;
        np->stats.tx_blocked++;
        return NULL;
    }
    return np->tx;
}

static bool netdev_port_link_up(struct wire_port *port)
{
    return !qemu_get_queue(netdev_from_port(port)->nic)->link_down;
}

static void netdev_port_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct netdev_port *np = netdev_from_port(port);

    if (len < FRAME_HEADER) {
        return;
    }
    if (!netdev_port_link_up(port)) {
        np->stats.tx_no_dest++;
        return;
    }
    np->stats.tx_frames++;
    np->stats.tx_bytes += len;
    if (len < FRAME_MIN) {
        memset(np->tx + len, 0, FRAME_MIN - len);
        len = FRAME_MIN;
    }
    /* Set before the call, because the netdev may answer from within it. */
    np->tx_busy = true;
    if (qemu_send_packet_async(qemu_get_queue(np->nic), np->tx, len, netdev_nic_sent) != 0) {
        np->tx_busy = false;
    }
}

static unsigned netdev_port_poll(struct wire_port *port, unsigned max)
{
    struct netdev_port *np = netdev_from_port(port);
    unsigned n;

    for (n = 0; n < max && np->rx_get != np->rx_put; n++) {
        const struct rx_slot *slot = &np->rx[np->rx_get % RX_SLOTS];

        if (port->client) {
            port->client->rx(port->opaque, slot->frame, slot->len, 0);
        }
        np->stats.rx_frames++;
        np->stats.rx_bytes += slot->len;
        np->rx_get++;
    }
    if (np->rx_stopped && !netdev_rx_full(np)) {
        np->rx_stopped = false;
        qemu_flush_queued_packets(qemu_get_queue(np->nic));
    }
    return n;
}

static void netdev_port_close(struct wire_port *port)
{
    struct netdev_port *np = netdev_from_port(port);

    port->client = NULL;
    /* Drops the frame that the netdev still holds; otherwise it would call back when that has left.
     * QEMU itself only drops frames on the way to this port. */
    qemu_purge_queued_packets(qemu_get_queue(np->nic));
    qemu_del_nic(np->nic);
    g_free(np->rx);
    g_free(np);
}

static void netdev_port_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = netdev_from_port(port)->stats;
}

static const struct wire_port_ops netdev_port_ops = {
    .tx_reserve = netdev_port_tx_reserve,
    .tx_commit = netdev_port_tx_commit,
    .poll = netdev_port_poll,
    .link_up = netdev_port_link_up,
    .close = netdev_port_close,
    .get_stats = netdev_port_get_stats,
};

struct wire_port *netdev_port_new(DeviceState *dev, NICConf *conf)
{
    struct netdev_port *np = g_new0(struct netdev_port, 1);

    np->port.ops = &netdev_port_ops;
    np->rx = g_new(struct rx_slot, RX_SLOTS);
    np->nic = qemu_new_nic(&nic_info, conf, object_get_typename(OBJECT(dev)), dev->id,
                           &dev->mem_reentrancy_guard, np);
    return &np->port;
}
