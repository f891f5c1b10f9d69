/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The in-process pair: one ring of frame slots per direction. It uses no clock, no thread and no
 * system call, so a run repeats exactly.
 */
#include "wire/pair.h"

#include <glib.h>
#include <sys/mman.h>

struct slot {
    size_t len;
    unsigned flags;
    uint8_t frame[WIRE_FRAME_MAX];
};

struct pair;

struct end {
    struct wire_port port;
    struct pair *pair;
    struct end *peer;
    bool open;
    bool blocked;        /* a reservation failed since the peer last polled */
    bool reserved;       /* the client has reserved the slot at ring[head] */
    bool bucket;         /* the reserved frame will be dropped: the peer is closed */
    uint64_t head, tail; /* positions of the frames on the way to this end's peer */
    struct slot *ring;   /* pages of its own (pair_ring_new()) */
    struct wire_stats stats;
};

struct pair {
    struct end end[2];
    unsigned slots;
    struct slot *lost; /* where frames to a closed end are built */
};

static size_t pair_ring_bytes(unsigned slots)
{
    return slots * sizeof(struct slot);
}

/*
 * Slots in pages of their own. malloc() would do, but where MALLOC_PERTURB_ is set, as meson does
 * for tests, it writes to all 5 MiB of 512 slots, of which a test uses few.
 */
static struct slot *pair_ring_new(unsigned slots)
{
    struct slot *ring = mmap(NULL, pair_ring_bytes(slots), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (ring == MAP_FAILED) {
        g_error("no memory for %u frames of %d bytes", slots, WIRE_FRAME_MAX);
    }
    return ring;
}

static struct end *pair_end_of(struct wire_port *port)
{
    return (struct end *)port;
}

static uint8_t *pair_tx_reserve(struct wire_port *port, size_t len)
{
    struct end *e = pair_end_of(port);

    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (!e->peer->open) {
        e->bucket = true;
        if (!e->pair->lost) {
            e->pair->lost = g_malloc(sizeof(struct slot));
        }
        return e->pair->lost->frame;
    }
    if (e->head - e->tail == e->pair->slots) {
        e->blocked = true;
        e->stats.tx_blocked++;
        return NULL;
    }
    e->reserved = true;
    return e->ring[e->head % e->pair->slots].frame;
}

static void pair_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct end *e = pair_end_of(port), *peer = e->peer;
    bool reserved = e->reserved;

    if (e->bucket && len) {
        e->stats.tx_no_dest++;
    }
    e->reserved = e->bucket = false;
    if (!reserved || len < 14 || len > WIRE_FRAME_MAX) {
        return;
    }
    e->ring[e->head % e->pair->slots].len = len;
    e->ring[e->head % e->pair->slots].flags = flags & WIRE_NO_ICRC;
    e->head++;
    e->stats.tx_frames++;
    e->stats.tx_bytes += len;
    if (peer->open && peer->port.client && peer->port.client->rx_ready) {
        peer->port.client->rx_ready(peer->port.opaque);
    }
}

static unsigned pair_poll(struct wire_port *port, unsigned max)
{
    struct end *e = pair_end_of(port), *from = e->peer;
    unsigned n = 0;

    /* Frames sent by callbacks during this call wait for the next round of the loop. */
    while (n < max && from->tail != from->head) {
        const struct slot *slot = &from->ring[from->tail % e->pair->slots];

        e->stats.rx_frames++;
        e->stats.rx_bytes += slot->len;
        if (port->client && port->client->rx) {
            port->client->rx(port->opaque, slot->frame, slot->len, slot->flags);
        }
        from->tail++;
        n++;
    }
    if (n && from->blocked) {
        from->blocked = false;
        if (from->open && from->port.client && from->port.client->tx_ready) {
            from->port.client->tx_ready(from->port.opaque);
        }
    }
    return n;
}

static bool pair_link_up(struct wire_port *port)
{
    return pair_end_of(port)->peer->open;
}

static void pair_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = pair_end_of(port)->stats;
}

static void pair_close(struct wire_port *port)
{
    struct end *e = pair_end_of(port), *peer = e->peer;
    struct pair *p = e->pair;

    e->open = false;
    if (peer->open) {
        if (peer->port.client && peer->port.client->link_change) {
            peer->port.client->link_change(peer->port.opaque);
        }
        if (peer->blocked) {
            /* From now on everything the peer sends vanishes, so there is credit. */
            peer->blocked = false;
            if (peer->port.client && peer->port.client->tx_ready) {
                peer->port.client->tx_ready(peer->port.opaque);
            }
        }
        return;
    }
    munmap(p->end[0].ring, pair_ring_bytes(p->slots));
    munmap(p->end[1].ring, pair_ring_bytes(p->slots));
    g_free(p->lost);
    g_free(p);
}

static const struct wire_port_ops pair_ops = {
    .tx_reserve = pair_tx_reserve,
    .tx_commit = pair_tx_commit,
    .poll = pair_poll,
    .link_up = pair_link_up,
    .close = pair_close,
    .get_stats = pair_get_stats,
};

void wire_pair_new(unsigned slots, struct wire_port *ends[2])
{
    struct pair *p = g_new0(struct pair, 1);

    p->slots = MAX(slots, 1);
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i];

        e->port.ops = &pair_ops;
        e->pair = p;
        e->peer = &p->end[!i];
        e->open = true;
        e->ring = pair_ring_new(p->slots);
        ends[i] = &e->port;
    }
}
