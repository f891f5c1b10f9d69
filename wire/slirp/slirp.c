/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements slirp.h: the port, its queue of frames, and what it lets pass. sockets.c has
 * libslirp's sockets and times. */
#include "wire/slirp/slirp.h"
#include "wire/bytes.h"
#include "wire/cancel.h"
#include "wire/encap/eth.h"
#include "wire/open.h"
#include "wire/slirp/slirp_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    IPV4_DF = 0x4000, /* beside the offset of a fragment */
    PORT_OF_DHCP = 67,
};

static struct slirp_port *slirp_of(struct wire_port *port)
{
    return (struct slirp_port *)port;
}

/* -- frames to the client ---------------------------------------------------------------------- */

static ssize_t slirp_frame_out(const void *frame, size_t len, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_frame *slot = &s->frames[s->put % SLIRP_FRAMES];

    if (len < ETH_BYTES || len > sizeof(slot->bytes)) {
        s->stats.rx_malformed++;
    } else if (s->put - s->get == SLIRP_FRAMES) {
        s->stats.rx_missed++;
    } else {
        slot->len = len;
        memcpy(slot->bytes, frame, len);
        s->put++;
    }
    return (ssize_t)len; /* it is gone, and no error */
}

static unsigned slirp_deliver(struct slirp_port *s, unsigned max)
{
    unsigned n = 0;

    for (; n < max && s->get != s->put; n++) {
        struct slirp_frame *slot = &s->frames[s->get % SLIRP_FRAMES];

        s->stats.rx_frames++;
        s->stats.rx_bytes += slot->len;
        if (s->port.client && s->port.client->rx) {
            s->port.client->rx(s->port.opaque, slot->bytes, slot->len, 0);
        }
        s->get++; /* now the slot may be filled: the callback may send, and be answered */
    }
    return n;
}

/* -- frames from the client -------------------------------------------------------------------- */

/* Whether libslirp may open a socket for a frame. */
static bool slirp_may_open(const uint8_t *frame, size_t len)
{
    struct eth_info info;

    eth_parse(frame, len, &info);
    switch (info.l4) {
    case ETH_L4_TCP:
        return info.tcp_flags & TCP_SYN;
    case ETH_L4_UDP:
        return info.dport != PORT_OF_DHCP;
    default:
        return info.ethertype != ETH_TYPE_ARP;
    }
}

/* Whether libslirp takes a packet of IPv4 for a fragment: it looks no further than at the flags and
 * the offset, of which only "don't fragment" may be set. */
static bool slirp_is_fragment(const uint8_t *frame, size_t len)
{
    return len >= ETH_BYTES + IPV4_BYTES && get16(frame + 12) == ETH_TYPE_IPV4 &&
           get16(frame + ETH_BYTES + 6) & (uint16_t)~IPV4_DF;
}

static uint8_t *slirp_tx_reserve(struct wire_port *port, size_t len)
{
    return len <= WIRE_FRAME_MAX ? slirp_of(port)->tx : NULL;
}

/* Watches what libslirp wants to be watched by now, and tells the client what has come. */
static void slirp_settle(struct slirp_port *s)
{
    s->is_unsettled = false;
    slirp_lock(s);
    slirp_watch(s);
    slirp_unlock(s);
    if (s->get != s->put && s->port.client && s->port.client->rx_ready) {
        s->port.client->rx_ready(s->port.opaque);
    }
}

static void slirp_tx_flush(struct wire_port *port)
{
    struct slirp_port *s = slirp_of(port);

    if (s->is_unsettled) {
        slirp_settle(s);
    }
}

static void slirp_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct slirp_port *s = slirp_of(port);

    if (len < ETH_BYTES) {
        return;
    }
    s->stats.tx_frames++;
    s->stats.tx_bytes += len;
    if (len > SLIRP_FRAME_BYTES) {
        s->stats.tx_no_dest++; /* nobody on this network takes frames so long */
    } else if (slirp_is_fragment(s->tx, len)) {
        s->stats.tx_no_dest++;
    } else if (slirp_is_full(s) && slirp_may_open(s->tx, len)) {
        s->stats.tx_no_room++;
    } else {
        slirp_lock(s);
        s->library->slirp_input(s->slirp, s->tx, (int)len);
        slirp_unlock(s);
        s->is_unsettled = true;
    }
    if (!(flags & WIRE_MORE)) {
        slirp_tx_flush(port);
    }
}

/* -- the owner's main loop --------------------------------------------------------------------- */

static unsigned slirp_poll(struct wire_port *port, unsigned max)
{
    struct slirp_port *s = slirp_of(port);
    unsigned n = slirp_deliver(s, max);

    if (n < max) {
        slirp_lock(s);
        slirp_work(s);
        slirp_unlock(s);
        s->is_unsettled = false;
        n += slirp_deliver(s, max - n);
    }
    return n;
}

static void slirp_fd_event(struct wire_port *port)
{
    struct slirp_port *s = slirp_of(port);

    slirp_lock(s);
    slirp_work(s);
    slirp_unlock(s);
    s->is_unsettled = false;
    if (port->client && port->client->rx_ready) {
        port->client->rx_ready(port->opaque);
    }
}

static bool slirp_link_up(struct wire_port *port)
{
    return true;
}

static int slirp_fd(struct wire_port *port)
{
    return slirp_of(port)->epoll_fd;
}

static void slirp_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = slirp_of(port)->stats;
}

/* -- opening and closing ----------------------------------------------------------------------- */

static void slirp_close(struct wire_port *port)
{
    struct slirp_port *s = slirp_of(port);

    slirp_lock(s);
    if (s->slirp) {
        s->library->slirp_cleanup(s->slirp); /* which gives up its sockets and timers */
    }
    slirp_unlock(s);
    slirp_end_sockets(s);
    g_free(s);
}

static const struct wire_port_ops slirp_ops = {
    .tx_reserve = slirp_tx_reserve,
    .tx_commit = slirp_tx_commit,
    .tx_flush = slirp_tx_flush,
    .poll = slirp_poll,
    .link_up = slirp_link_up,
    .close = slirp_close,
    .fd = slirp_fd,
    .fd_event = slirp_fd_event,
    .get_stats = slirp_get_stats,
};

static bool slirp_begin(struct slirp_port *s, const struct slirp_options *o, GError **err)
{
    struct slirp_config config = {
        .version = 1,
        .restricted = o->is_restricted,
        .in_enabled = true,
        .vnetwork = o->net,
        .vnetmask = o->mask,
        .vhost = o->host,
        .in6_enabled = o->has_ipv6,
        .vprefix_len = 64,
        .vhostname = o->hostname[0] ? o->hostname : NULL,
        .vdhcp_start = o->dhcp,
        .vnameserver = o->dns,
        .if_mtu = SLIRP_MTU,
        .if_mru = SLIRP_MTU,
    };
    bool good = true;

    inet_pton(AF_INET6, "fec0::", &config.vprefix_addr6);
    inet_pton(AF_INET6, "fec0::2", &config.vhost6);
    inet_pton(AF_INET6, "fec0::3", &config.vnameserver6);
    slirp_lock(s);
    s->slirp = s->library->slirp_new(&config, &slirp_port_calls, s);
    for (unsigned i = 0; good && s->slirp && i < o->n_forwards; i++) {
        const struct slirp_forward *f = &o->forwards[i];

        errno = 0;
        good = !s->library->slirp_add_hostfwd(s->slirp, f->is_udp, f->host, f->host_port, f->guest,
                                              f->guest_port);
        if (!good) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO,
                        "hostfwd: port %u of this machine cannot be taken: %s", f->host_port,
                        g_strerror(errno));
        }
    }
    if (s->slirp && good) {
        slirp_watch(s);
    }
    slirp_unlock(s);
    if (!s->slirp) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, SLIRP_LIBRARY " makes no network of this");
    }
    return s->slirp && good;
}

struct wire_port *wire_slirp_open(const char *rest, GError **err)
{
    const struct slirp_library *library;
    struct slirp_options options;
    struct slirp_port *s;

    if (!slirp_options_read(&options, rest, err) || !(library = slirp_library_get(err))) {
        return NULL;
    }
    s = g_new0(struct slirp_port, 1);
    s->port.ops = &slirp_ops;
    s->library = library;
    s->frame_out = slirp_frame_out;
    if (!slirp_begin_sockets(s, err) || !slirp_begin(s, &options, err)) {
        slirp_close(&s->port);
        return NULL;
    }
    return &s->port;
}
