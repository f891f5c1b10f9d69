/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements fabric.h: the switch and its ports. Addresses are looked up in a hash table, which is
 * never iterated. */
#include "tests/sim/fabric/fabric.h"
#include <string.h>

#define NIC_QUEUE 65536 /* bytes that a host may have waiting before it has to wait itself */
#define MAC_BYTES 6

struct fabric_port {
    struct wire_port port; /* first member: the host's end */
    struct fabric *fabric;
    unsigned number;
    struct link up, down;
    struct frame *reserved;
    GQueue inbox; /* struct frame: has arrived, and the host has not polled it */
    bool open, out;
    bool blocked, will_tell; /* the host waits for room, and will be notified */
    unsigned island;
    struct wire_stats stats;
};

struct fabric {
    struct inproc_world *world;
    struct timeline *timeline;
    struct fabric_config config;
    GPtrArray *ports; /* struct fabric_port */
    GHashTable *macs; /* address -> struct fabric_port */
    fabric_trace_fn *trace;
    void *opaque;
    struct fabric_stats stats;
};

/* -- the switch -------------------------------------------------------------------------------- */

static gpointer fabric_mac_key(const uint8_t mac[MAC_BYTES])
{
    uint64_t key = 0;

    memcpy(&key, mac, MAC_BYTES);
    return GSIZE_TO_POINTER(key);
}

static void fabric_trace(const struct fabric_port *p, bool arrives, const struct frame *frame,
                         unsigned fate)
{
    const struct fabric *fabric = p->fabric;

    if (fabric->trace) {
        fabric->trace(fabric->opaque, p->number, arrives, frame->bytes, frame->len, fate);
    }
}

static void fabric_up_gone(void *opaque, const struct frame *frame, unsigned fate)
{
    fabric_trace(opaque, false, frame, fate);
}

static void fabric_down_gone(void *opaque, const struct frame *frame, unsigned fate)
{
    fabric_trace(opaque, true, frame, fate);
}

static void fabric_forward(struct fabric *fabric, struct fabric_port *to, struct frame *frame)
{
    const struct fabric_port *from = g_ptr_array_index(fabric->ports, frame->from);

    if (from->island != to->island) {
        fabric->stats.parted++;
        fabric_trace(to, true, frame, frame->fate | FRAME_PARTITIONED);
        return;
    }
    link_send(&to->down, frame_get(frame));
}

/* Handles a frame that has come over the uplink of that port. */
static void fabric_switch(void *opaque, struct frame *frame)
{
    struct fabric_port *from = opaque, *to = NULL;
    struct fabric *fabric = from->fabric;
    const uint8_t *dmac = frame->bytes, *smac = dmac + MAC_BYTES;

    if (!(smac[0] & 1)) {
        g_hash_table_insert(fabric->macs, fabric_mac_key(smac), from);
    }
    if (!(dmac[0] & 1)) {
        to = g_hash_table_lookup(fabric->macs, fabric_mac_key(dmac));
    }
    if (to) {
        if (to != from) {
            fabric_forward(fabric, to, frame);
        }
    } else {
        fabric->stats.flooded++;
        for (unsigned i = 0; i < fabric->ports->len; i++) {
            to = g_ptr_array_index(fabric->ports, i);
            if (to != from) {
                fabric_forward(fabric, to, frame);
            }
        }
    }
    frame_put(frame);
}

/* -- a host's end ------------------------------------------------------------------------------ */

static void fabric_arrived(void *opaque, struct frame *frame)
{
    struct fabric_port *p = opaque;

    if (!p->open || p->out) {
        fabric_trace(p, true, frame, frame->fate | (p->out ? FRAME_NO_LINK : FRAME_NO_HOST));
        frame_put(frame);
        return;
    }
    g_queue_push_tail(&p->inbox, frame);
    if (p->port.client && p->port.client->rx_ready) {
        p->port.client->rx_ready(p->port.opaque);
    }
}

static unsigned fabric_port_poll(struct wire_port *port, unsigned max)
{
    struct fabric_port *p = (struct fabric_port *)port;
    struct fabric *fabric = p->fabric;
    struct frame *frame;
    unsigned n;

    for (n = 0; n < max && (frame = g_queue_pop_head(&p->inbox)); n++) {
        p->stats.rx_frames++;
        p->stats.rx_bytes += frame->len;
        fabric->stats.frames++;
        fabric_trace(p, true, frame, frame->fate);
        if (port->client && port->client->rx) {
            port->client->rx(port->opaque, frame->bytes, frame->len, 0);
        }
        frame_put(frame);
    }
    return n;
}

static void fabric_tell_room(void *opaque, void *what)
{
    struct fabric_port *p = opaque;

    p->will_tell = false;
    if (p->open && p->blocked) {
        p->blocked = false;
        if (p->port.client && p->port.client->tx_ready) {
            p->port.client->tx_ready(p->port.opaque);
        }
    }
}

static uint8_t *fabric_port_tx_reserve(struct wire_port *port, size_t len)
{
    struct fabric_port *p = (struct fabric_port *)port;

    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (link_queued(&p->up) > NIC_QUEUE) {
        p->blocked = true;
        p->stats.tx_blocked++;
        if (!p->will_tell) {
            p->will_tell = true;
            timeline_at(p->fabric->timeline, link_drains_ns(&p->up, NIC_QUEUE / 2),
                        fabric_tell_room, p, NULL);
        }
        return NULL;
    }
    if (!p->reserved || p->reserved->room < len) {
        g_clear_pointer(&p->reserved, frame_put);
        p->reserved = frame_new(len);
    }
    return p->reserved->bytes;
}

static void fabric_port_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct fabric_port *p = (struct fabric_port *)port;
    struct frame *frame = p->reserved;

    if (!frame || len < 2 * MAC_BYTES + 2 || len > frame->room) {
        return;
    }
    p->reserved = NULL;
    frame->len = (uint32_t)len;
    frame->from = p->number;
    p->stats.tx_frames++;
    p->stats.tx_bytes += len;
    fabric_trace(p, false, frame, 0);
    link_send(&p->up, frame);
}

static bool fabric_port_link_up(struct wire_port *port)
{
    return !((struct fabric_port *)port)->out;
}

/* A host cannot know who is on an Ethernet; tests without time for ARP claim that everybody is
 * known. */
static bool fabric_port_tells_hosts(struct wire_port *port)
{
    return !((const struct fabric_port *)port)->fabric->config.strangers;
}

static bool fabric_port_knows(struct wire_port *port, const uint8_t mac[6])
{
    const struct fabric_port *p = (const struct fabric_port *)port;

    return fabric_port_tells_hosts(port) && !p->out &&
           g_hash_table_contains(p->fabric->macs, fabric_mac_key(mac));
}

static void fabric_port_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = ((struct fabric_port *)port)->stats;
}

static void fabric_port_close(struct wire_port *port)
{
    struct fabric_port *p = (struct fabric_port *)port;

    p->open = false;
    p->port.client = NULL;
    g_queue_clear_full(&p->inbox, (GDestroyNotify)frame_put);
    g_clear_pointer(&p->reserved, frame_put);
}

static const struct wire_port_ops fabric_port_ops = {
    .tx_reserve = fabric_port_tx_reserve,
    .tx_commit = fabric_port_tx_commit,
    .poll = fabric_port_poll,
    .link_up = fabric_port_link_up,
    .close = fabric_port_close,
    .knows = fabric_port_knows,
    .tells_hosts = fabric_port_tells_hosts,
    .get_stats = fabric_port_get_stats,
};

/* -- life -------------------------------------------------------------------------------------- */

struct fabric *fabric_new(struct inproc_world *world, const struct fabric_config *config)
{
    struct fabric *fabric = g_new0(struct fabric, 1);

    fabric->world = world;
    fabric->config = *config;
    fabric->timeline = timeline_new(world);
    fabric->ports = g_ptr_array_new_with_free_func(g_free);
    fabric->macs = g_hash_table_new(NULL, NULL);
    return fabric;
}

void fabric_free(struct fabric *fabric)
{
    link_forget_all(fabric->timeline);
    timeline_free(fabric->timeline);
    g_hash_table_destroy(fabric->macs);
    g_ptr_array_free(fabric->ports, TRUE);
    g_free(fabric);
}

void fabric_set_trace(struct fabric *fabric, fabric_trace_fn *trace, void *opaque)
{
    fabric->trace = trace;
    fabric->opaque = opaque;
}

struct fabric_config *fabric_config(struct fabric *fabric)
{
    return &fabric->config;
}

struct timeline *fabric_timeline(struct fabric *fabric)
{
    return fabric->timeline;
}

struct wire_port *fabric_plug(struct fabric *fabric)
{
    struct fabric_port *p = g_new0(struct fabric_port, 1);
    uint64_t seed = fabric->config.seed;

    g_assert_cmpuint(fabric->ports->len, <, FABRIC_PORTS);
    p->port.ops = &fabric_port_ops;
    p->fabric = fabric;
    p->number = fabric->ports->len;
    p->open = true;
    g_queue_init(&p->inbox);
    link_init(&p->up, fabric->timeline, &fabric->config.uplink,
              chance_of(seed, "uplink", p->number), fabric_switch, fabric_up_gone, p);
    link_init(&p->down, fabric->timeline, &fabric->config.downlink,
              chance_of(seed, "downlink", p->number), fabric_arrived, fabric_down_gone, p);
    g_ptr_array_add(fabric->ports, p);
    return &p->port;
}

unsigned fabric_num_ports(const struct fabric *fabric)
{
    return fabric->ports->len;
}

static struct fabric_port *fabric_port_at(const struct fabric *fabric, unsigned port)
{
    g_assert_cmpuint(port, <, fabric->ports->len);
    return g_ptr_array_index(fabric->ports, port);
}

struct wire_port *fabric_plug_again(struct fabric *fabric, unsigned port)
{
    struct fabric_port *p = fabric_port_at(fabric, port);

    g_assert(!p->open);
    p->open = true;
    return &p->port;
}

struct link *fabric_uplink(struct fabric *fabric, unsigned port)
{
    return &fabric_port_at(fabric, port)->up;
}

struct link *fabric_downlink(struct fabric *fabric, unsigned port)
{
    return &fabric_port_at(fabric, port)->down;
}

void fabric_set_cable(struct fabric *fabric, unsigned port, bool in)
{
    struct fabric_port *p = fabric_port_at(fabric, port);

    if (p->out == !in) {
        return;
    }
    p->out = p->up.down = p->down.down = !in;
    if (p->port.client && p->port.client->link_change) {
        p->port.client->link_change(p->port.opaque);
    }
}

void fabric_set_island(struct fabric *fabric, unsigned port, unsigned island)
{
    fabric_port_at(fabric, port)->island = island;
}

struct fabric_stats fabric_stats(const struct fabric *fabric)
{
    struct fabric_stats stats = fabric->stats;

    for (unsigned i = 0; i < fabric->ports->len; i++) {
        const struct fabric_port *p = g_ptr_array_index(fabric->ports, i);

        stats.faults += link_num_faults(&p->up) + link_num_faults(&p->down) + p->up.stats.down +
                        p->down.stats.down;
        stats.dropped += p->down.stats.dropped;
        stats.marked += p->down.stats.marked;
    }
    return stats;
}
