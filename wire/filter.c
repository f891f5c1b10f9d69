/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pass-through filter that other filters are built on: see wire/filter.h.
 */
#include "wire/filter.h"

static struct wire_port *filter_inner_of(struct wire_port *port)
{
    return ((struct wire_filter *)port)->inner;
}

static uint8_t *filter_tx_reserve(struct wire_port *port, size_t len)
{
    return wire_tx_reserve(filter_inner_of(port), len);
}

static uint8_t *filter_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    return wire_tx_reserve_to(filter_inner_of(port), dmac, len);
}

static void filter_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    wire_tx_commit_as(filter_inner_of(port), len, flags);
}

static unsigned filter_tx_credit_class(struct wire_port *port)
{
    return wire_tx_credit_class(filter_inner_of(port));
}

static uint64_t filter_tx_credits(struct wire_port *port)
{
    return wire_tx_credits(filter_inner_of(port));
}

static void filter_tx_flush(struct wire_port *port)
{
    wire_tx_flush(filter_inner_of(port));
}

static unsigned filter_poll(struct wire_port *port, unsigned max)
{
    return wire_poll(filter_inner_of(port), max);
}

static bool filter_link_up(struct wire_port *port)
{
    return wire_link_up(filter_inner_of(port));
}

static void filter_close(struct wire_port *port)
{
    wire_close(filter_inner_of(port));
}

static void filter_owe(struct wire_port *port, bool owes)
{
    wire_owe(filter_inner_of(port), owes);
}

static bool filter_is_paused(struct wire_port *port, const uint8_t dmac[6],
                             struct wire_pause *pause)
{
    return wire_is_paused(filter_inner_of(port), dmac, pause);
}

static bool filter_knows(struct wire_port *port, const uint8_t mac[6])
{
    return wire_knows(filter_inner_of(port), mac);
}

static bool filter_tells_hosts(struct wire_port *port)
{
    return wire_tells_hosts(filter_inner_of(port));
}

static bool filter_watch_hosts(struct wire_port *port)
{
    return wire_watch_hosts(filter_inner_of(port));
}

static uint64_t filter_host_at(struct wire_port *port, const uint8_t mac[6])
{
    return wire_host_at(filter_inner_of(port), mac);
}

static bool filter_has_ended(struct wire_port *port, uint64_t host)
{
    return wire_has_ended(filter_inner_of(port), host);
}

static int filter_fd(struct wire_port *port)
{
    return wire_fd(filter_inner_of(port));
}

static void filter_fd_event(struct wire_port *port)
{
    wire_fd_event(filter_inner_of(port));
}

static void filter_set_busy(struct wire_port *port, bool busy)
{
    wire_set_busy(filter_inner_of(port), busy);
}

static void filter_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    wire_get_stats(filter_inner_of(port), stats);
}

static void filter_note(struct wire_port *port, const struct wire_note *note)
{
    wire_note(filter_inner_of(port), note);
}

const struct wire_port_ops wire_filter_ops = {
    .tx_reserve = filter_tx_reserve,
    .tx_commit = filter_tx_commit,
    .poll = filter_poll,
    .link_up = filter_link_up,
    .close = filter_close,
    .tx_reserve_to = filter_tx_reserve_to,
    .tx_credit_class = filter_tx_credit_class,
    .tx_credits = filter_tx_credits,
    .tx_flush = filter_tx_flush,
    .owe = filter_owe,
    .is_paused = filter_is_paused,
    .knows = filter_knows,
    .tells_hosts = filter_tells_hosts,
    .watch_hosts = filter_watch_hosts,
    .host_at = filter_host_at,
    .has_ended = filter_has_ended,
    .fd = filter_fd,
    .fd_event = filter_fd_event,
    .set_busy = filter_set_busy,
    .get_stats = filter_get_stats,
    .note = filter_note,
};

static void filter_from_inner_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct wire_port *port = opaque;

    if (port->client && port->client->rx) {
        port->client->rx(port->opaque, frame, len, flags);
    }
}

static void filter_from_inner_tx_ready(void *opaque)
{
    struct wire_port *port = opaque;

    if (port->client && port->client->tx_ready) {
        port->client->tx_ready(port->opaque);
    }
}

static void filter_from_inner_link_change(void *opaque)
{
    struct wire_port *port = opaque;

    if (port->client && port->client->link_change) {
        port->client->link_change(port->opaque);
    }
}

static void filter_from_inner_rx_ready(void *opaque)
{
    struct wire_port *port = opaque;

    if (port->client && port->client->rx_ready) {
        port->client->rx_ready(port->opaque);
    }
}

static void filter_from_inner_host_ended(void *opaque)
{
    struct wire_port *port = opaque;

    if (port->client && port->client->host_ended) {
        port->client->host_ended(port->opaque);
    }
}

const struct wire_client wire_filter_client = {
    .rx = filter_from_inner_rx,
    .tx_ready = filter_from_inner_tx_ready,
    .link_change = filter_from_inner_link_change,
    .rx_ready = filter_from_inner_rx_ready,
    .host_ended = filter_from_inner_host_ended,
};

void wire_filter_init(struct wire_filter *f, struct wire_port *inner,
                      const struct wire_port_ops *ops, const struct wire_client *inside)
{
    f->port.ops = ops;
    f->port.client = NULL;
    f->port.opaque = NULL;
    f->port.offers = 0;
    f->port.far = false;
    f->port.wants_notes = inner->wants_notes;
    f->inner = inner;
    wire_set_client(inner, inside, f);
}

void wire_filter_make_tables(struct wire_filter_tables *tables,
                             void (*replace)(struct wire_filter_tables *tables))
{
    if (g_once_init_enter(&tables->is_made)) {
        tables->ops = wire_filter_ops;
        tables->inside = wire_filter_client;
        replace(tables);
        g_once_init_leave(&tables->is_made, 1);
    }
}
