/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements datagram.h, whatever the descriptor is. */
#include "wire/bytes.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/socket/datagram_priv.h"
#include "wire/socket/packet_rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct datagram *datagram_of(struct wire_port *port)
{
    return (struct datagram *)port;
}

/* -- sending ----------------------------------------------------------------------------------- */

static void datagram_watch(struct datagram *d, int op, uint32_t events)
{
    struct epoll_event event = {.events = events};

    epoll_ctl(d->epoll_fd, op, d->own.fd, &event);
}

static ssize_t datagram_write(struct datagram *d, size_t len)
{
    struct iovec parts[2] = {{d->header, sizeof(d->header)}, {d->tx, len}};
    struct msghdr message = {.msg_iov = parts + !d->is_vxlan, .msg_iovlen = 1u + d->is_vxlan};

    if (!d->is_socket) {
        return write(d->own.fd, d->tx, len);
    }
    if (d->is_vxlan || datagram_is_unix(d)) {
        message.msg_name = &d->to.at;
        message.msg_namelen = d->to.len;
    }
    return sendmsg(d->own.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends a frame. False: there is no room now. */
static bool datagram_send(struct datagram *d, size_t len)
{
    if (datagram_write(d, len) >= 0) {
        return true;
    }
    switch (errno) {
    case EAGAIN:
    case EINTR:
        return false;
    case ENOBUFS:
    case ENOMEM:
        d->stats.tx_no_room++;
        return true;
    default:
        d->stats.tx_no_dest++;
        return true;
    }
}

/* Makes the socket that waits for room in the other end's queue (datagram.h). False: it cannot be
 * made, or the other end has gone. */
static bool datagram_make_waiter(struct datagram *d)
{
    struct epoll_event event = {.events = EPOLLOUT};
    int fd;

    own_fd_lock();
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        own_fd_set(&d->waiter, fd);
    }
    own_fd_unlock();
    if (fd >= 0 && !connect(fd, (const struct sockaddr *)&d->to.at, d->to.len) &&
        !epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        return true;
    }
    own_fd_close(&d->waiter);
    return false;
}

/* Without a waiter, a Unix socket says that there is room at once, and the frame is tried again. */
static void datagram_wait(struct datagram *d, size_t len)
{
    d->held = len;
    if (!datagram_is_unix(d) || !datagram_make_waiter(d)) {
        datagram_watch(d, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    }
}

/* Tries the frame that waits once more. */
static void datagram_retry(struct datagram *d)
{
    if (d->held && datagram_send(d, d->held)) {
        d->held = 0;
        if (d->waiter.fd >= 0) {
            epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, d->waiter.fd, NULL);
            own_fd_close(&d->waiter);
        } else {
            datagram_watch(d, EPOLL_CTL_MOD, EPOLLIN);
        }
    }
}

static void datagram_tell(struct datagram *d)
{
    if (d->blocked && !d->held) {
        d->blocked = false;
        if (d->port.client && d->port.client->tx_ready) {
            d->port.client->tx_ready(d->port.opaque);
        }
    }
}

static uint8_t *datagram_tx_reserve(struct wire_port *port, size_t len)
{
    struct datagram *d = datagram_of(port);

    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (d->held) {
        d->blocked = true;
        d->stats.tx_blocked++;
        return NULL;
    }
    return d->tx;
}

static void datagram_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct datagram *d = datagram_of(port);
    int state;

    if (len < ETH_HLEN) {
        return;
    }
    d->stats.tx_frames++;
    d->stats.tx_bytes += len;
    state = cancel_disable();
    if (!datagram_send(d, len)) {
        datagram_wait(d, len);
    }
    cancel_restore(state);
}

/* -- receiving --------------------------------------------------------------------------------- */

/* Whether two addresses name the same host, whatever their ports. */
static bool datagram_is_same_host(const struct sockaddr_storage *a,
                                  const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family) {
        return false;
    }
    if (a->ss_family == AF_INET) {
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    }
    return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                   &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

/* Whether the other end has sent the datagram. A sender of VXLAN chooses its port by the frame (RFC
 * 7348, clause 5). */
static bool datagram_is_from_peer(const struct datagram *d, const struct sockaddr_storage *from)
{
    return !d->is_vxlan || datagram_is_same_host(from, &d->to.at);
}

/* Reads one datagram, to *at. NULL: it is none of the peer's. -1: there is none. */
static ssize_t datagram_read_once(struct datagram *d, uint8_t **at)
{
    struct sockaddr_storage from = {0};
    socklen_t from_len = sizeof(from);
    ssize_t len;

    *at = d->rx;
    if (d->is_interface) {
        return packet_rx_read(d->own.fd, d->rx, sizeof(d->rx), at);
    }
    if (!d->is_socket) {
        return read(d->own.fd, d->rx, sizeof(d->rx));
    }
    len = recvfrom(d->own.fd, d->rx, sizeof(d->rx), MSG_DONTWAIT, (struct sockaddr *)&from,
                   &from_len);
    if (len >= 0 && !datagram_is_from_peer(d, &from)) {
        *at = NULL;
    }
    return len;
}

static ssize_t datagram_read(struct datagram *d, uint8_t **at)
{
    ssize_t len;

    do {
        len = datagram_read_once(d, at);
        /* ECONNREFUSED reports, once, what happened to an earlier frame of ours. */
    } while (len < 0 && (errno == EINTR || errno == ECONNREFUSED));
    return len;
}

static void datagram_deliver(struct datagram *d, const uint8_t *frame, size_t len)
{
    if (d->is_vxlan) {
        if (len < VXLAN_HEADER || !(get32(frame) & VXLAN_FLAG_VNI) ||
            get32(frame + 4) >> 8 != get32(d->header + 4) >> 8) {
            d->stats.rx_malformed++;
            return;
        }
        frame += VXLAN_HEADER;
        len -= VXLAN_HEADER;
    }
    if (len < ETH_HLEN || len > WIRE_FRAME_MAX) {
        d->stats.rx_malformed++;
        return;
    }
    d->stats.rx_frames++;
    d->stats.rx_bytes += len;
    if (d->port.client && d->port.client->rx) {
        d->port.client->rx(d->port.opaque, frame, len, 0);
    }
}

static unsigned datagram_poll(struct wire_port *port, unsigned max)
{
    struct datagram *d = datagram_of(port);
    int state = cancel_disable();
    unsigned n = 0;

    datagram_retry(d);
    for (; n < max; n++) {
        uint8_t *at;
        ssize_t len = datagram_read(d, &at);

        if (len < 0) {
            break;
        }
        if (at) {
            datagram_deliver(d, at, (size_t)len);
        }
    }
    datagram_tell(d);
    cancel_restore(state);
    return n;
}

/* -- the owner's main loop --------------------------------------------------------------------- */

static bool datagram_link_up(struct wire_port *port)
{
    return true;
}

static int datagram_fd(struct wire_port *port)
{
    return datagram_of(port)->epoll_fd;
}

static void datagram_fd_event(struct wire_port *port)
{
    struct datagram *d = datagram_of(port);
    int state = cancel_disable();

    datagram_retry(d);
    datagram_tell(d);
    cancel_restore(state);
    if (port->client && port->client->rx_ready) {
        port->client->rx_ready(port->opaque);
    }
}

static void datagram_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = datagram_of(port)->stats;
}

/* -- opening and closing ----------------------------------------------------------------------- */

void datagram_close(struct wire_port *port)
{
    struct datagram *d = datagram_of(port);
    int state = cancel_disable();

    if (datagram_is_unix(d) && d->own.fd >= 0) {
        unlink(datagram_path(d));
    }
    own_fd_close(&d->waiter);
    own_fd_close(&d->own);
    if (d->epoll_fd >= 0) {
        close(d->epoll_fd);
    }
    g_free(d->name);
    g_free(d);
    cancel_restore(state);
}

static const struct wire_port_ops datagram_ops = {
    .tx_reserve = datagram_tx_reserve,
    .tx_commit = datagram_tx_commit,
    .poll = datagram_poll,
    .link_up = datagram_link_up,
    .close = datagram_close,
    .fd = datagram_fd,
    .fd_event = datagram_fd_event,
    .get_stats = datagram_get_stats,
};

struct datagram *datagram_new(void)
{
    struct datagram *d = g_new0(struct datagram, 1);

    d->port.ops = &datagram_ops;
    d->own.fd = d->waiter.fd = -1;
    d->is_socket = true;
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return d;
}

int datagram_refuse(int fd, GError **err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_propagate_error(err, g_error_new_valist(WIRE_ERROR, WIRE_ERROR_IO, fmt, args));
    va_end(args);
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

struct wire_port *datagram_open(struct datagram *d, int (*make)(struct datagram *, GError **),
                                GError **err)
{
    int state = cancel_disable(), fd;

    own_fd_lock();
    fd = make(d, err);
    if (fd >= 0) {
        own_fd_set(&d->own, fd);
    }
    own_fd_unlock();
    if (fd < 0) {
        datagram_close(&d->port);
        d = NULL;
    } else {
        datagram_watch(d, EPOLL_CTL_ADD, EPOLLIN);
    }
    cancel_restore(state);
    return d ? &d->port : NULL;
}
