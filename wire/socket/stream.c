/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements stream.h: the link's states, and frames in the bytes of a stream. */
#include "wire/socket/stream.h"
#include "wire/bytes.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"
#include "wire/socket/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    LENGTH_BYTES = 4,
    FRAME_HEADER = 14, /* of Ethernet: no frame is shorter */
    BUFFER = 1 << 18,  /* bytes; some 25 of the longest frames */
};

enum stream_state {
    STREAM_DOWN,       /* no socket; the timer or the listening socket ends this state */
    STREAM_CONNECTING, /* the socket is writable when it has connected, or failed */
    STREAM_UP,
};

/* Bytes that wait: those from `from` to `to`. */
struct stream_buffer {
    size_t from, to;
    uint8_t byte[BUFFER];
};

struct stream {
    struct wire_port port;
    struct listener listener;      /* of the end that listens */
    struct socket_address address; /* to which the other end connects */
    bool listens;
    bool ends; /* the link was accepted by somebody else: when it is lost, it stays down */
    int epoll_fd, timer_fd;
    struct own_fd link;
    enum stream_state state;
    bool is_told_up;     /* what link_change has told the client */
    bool rests;          /* no descriptor was left for an end that connects: the timer goes on */
    bool wants_to_write; /* EPOLLOUT is watched */
    bool blocked;        /* a reservation failed since tx_ready */
    bool reserved;       /* a frame is being built behind the bytes of out */
    bool bucket;         /* the reserved frame will vanish: the link is down */
    bool is_unacked;     /* bytes came by TCP since the kernel last had to acknowledge at once */
    unsigned out_frames; /* frames of which out still has bytes */
    struct stream_buffer out, in;
    struct wire_stats stats;
};

static struct stream *stream_of(struct wire_port *port)
{
    return (struct stream *)port;
}

/* -- the link ---------------------------------------------------------------------------------- */

static void stream_set_timer(struct stream *s, uint64_t ns)
{
    struct itimerspec in = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

    timerfd_settime(s->timer_fd, 0, &in, NULL);
}

static void stream_watch(struct stream *s, int op, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    epoll_ctl(s->epoll_fd, op, fd, &event);
}

static void stream_watch_writing(struct stream *s, bool wants)
{
    if (s->wants_to_write != wants) {
        s->wants_to_write = wants;
        stream_watch(s, EPOLL_CTL_MOD, s->link.fd, EPOLLIN | (wants ? EPOLLOUT : 0u));
    }
}

/* The link is down from now on. The client is told when a callback is allowed (stream_tell()). */
static void stream_lose(struct stream *s)
{
    /* To close it is not enough: a child of vfork() has it open until it executes a program. */
    stream_watch(s, EPOLL_CTL_DEL, s->link.fd, 0);
    own_fd_close(&s->link);
    s->stats.tx_no_dest += s->out_frames;
    s->out_frames = 0;
    s->out.from = s->out.to = s->in.from = s->in.to = 0;
    s->wants_to_write = s->is_unacked = false;
    s->bucket = true; /* a frame that is reserved now */
    s->state = STREAM_DOWN;
    stream_set_timer(s, s->is_told_up || s->blocked ? 1 : STREAM_RETRY_MS * 1000000ull);
}

static void stream_is_up(struct stream *s)
{
    int one = 1;

    if (s->address.at.ss_family != AF_UNIX) {
        setsockopt(s->link.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    s->state = STREAM_UP;
    stream_watch_writing(s, false);
}

/* Takes a socket that is connected, or connects, as the link. */
static void stream_take_link(struct stream *s, int fd, bool is_connected)
{
    own_fd_set(&s->link, fd);
    s->wants_to_write = true;
    stream_watch(s, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT);
    s->state = STREAM_CONNECTING;
    if (is_connected) {
        stream_is_up(s);
    }
}

static void stream_connect(struct stream *s)
{
    const struct sockaddr *to = (const struct sockaddr *)&s->address.at;
    int fd, done;

    own_fd_lock();
    fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    done = fd < 0 ? -1 : connect(fd, to, s->address.len);
    if (!done || (fd >= 0 && errno == EINPROGRESS)) {
        stream_take_link(s, fd, !done);
    } else if (fd >= 0) {
        close(fd);
    }
    own_fd_unlock();
    if (s->state == STREAM_DOWN) {
        stream_set_timer(s, STREAM_RETRY_MS * 1000000ull);
    }
}

/* The socket that was connecting is writable. */
static void stream_check_connected(struct stream *s)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer), code_len = sizeof(int);
    int code = 0;

    if (getsockopt(s->link.fd, SOL_SOCKET, SO_ERROR, &code, &code_len) || code) {
        stream_lose(s);
    } else if (!getpeername(s->link.fd, (struct sockaddr *)&peer, &len)) {
        stream_is_up(s);
    }
}

/* Nothing can be accepted, but the listening socket stays readable: it is not watched for a while.
 */
static void stream_rest(struct stream *s)
{
    s->rests = true;
    stream_watch(s, EPOLL_CTL_DEL, s->listener.own.fd, 0);
    stream_set_timer(s, STREAM_RETRY_MS * 1000000ull);
}

/* What accept() says if nobody waits, or not any more. */
static bool stream_nobody_waits(int code)
{
    return code == EAGAIN || code == EINTR || code == ECONNABORTED;
}

/* Takes the ends that have connected: the first one if there is none, and closes the others. */
static void stream_accept(struct stream *s)
{
    int fd = 0;

    for (unsigned i = 0; fd >= 0 && i < 16; i++) {
        own_fd_lock();
        fd = listener_accept(&s->listener);
        if (fd >= 0 && s->state == STREAM_DOWN) {
            stream_take_link(s, fd, true);
        } else if (fd >= 0) {
            close(fd);
        } else if (!stream_nobody_waits(errno)) {
            stream_rest(s);
        }
        own_fd_unlock();
    }
}

/* Whether the timer has expired since the last time. */
static bool stream_is_time(struct stream *s)
{
    uint64_t expired;

    return read(s->timer_fd, &expired, sizeof(expired)) == (ssize_t)sizeof(expired);
}

/* Brings the link up if it can be. is_time: the timer has expired. */
static void stream_step_link(struct stream *s, bool is_time)
{
    if (s->state == STREAM_CONNECTING) {
        stream_check_connected(s);
    } else if (s->state == STREAM_DOWN && !s->listens && !s->ends && !s->is_told_up && is_time) {
        stream_connect(s);
    }
    if (s->rests && is_time) {
        s->rests = false;
        stream_watch(s, EPOLL_CTL_ADD, s->listener.own.fd, EPOLLIN);
    }
    if (s->listens && !s->rests) {
        stream_accept(s);
    }
}

/* Calls back what has happened to the link and to the room for frames. */
static void stream_tell(struct stream *s)
{
    const struct wire_client *client = s->port.client;
    bool is_up = s->state == STREAM_UP;

    if (s->is_told_up != is_up) {
        s->is_told_up = is_up;
        if (!is_up && !s->listens && !s->ends) {
            stream_set_timer(s, STREAM_RETRY_MS * 1000000ull);
        }
        if (client && client->link_change) {
            client->link_change(s->port.opaque);
        }
    }
    if (s->blocked && (!is_up || s->out.from == s->out.to)) {
        s->blocked = false;
        if (client && client->tx_ready) {
            client->tx_ready(s->port.opaque);
        }
    }
}

/* -- sending ----------------------------------------------------------------------------------- */

/* Writes what waits, as far as the kernel takes it. */
static void stream_write(struct stream *s)
{
    while (s->state == STREAM_UP && s->out.from < s->out.to) {
        ssize_t n = send(s->link.fd, s->out.byte + s->out.from, s->out.to - s->out.from,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            s->out.from += (size_t)n;
        } else if (errno == EAGAIN) {
            stream_watch_writing(s, true);
            return;
        } else if (errno != EINTR) {
            stream_lose(s);
            return;
        }
    }
    if (s->state == STREAM_UP) {
        if (!s->reserved) {
            s->out.from = s->out.to = 0;
        }
        s->out_frames = 0;
        stream_watch_writing(s, false);
    }
}

static void stream_flush(struct wire_port *port)
{
    struct stream *s = stream_of(port);

    if (s->out.from < s->out.to) {
        int state = cancel_disable();

        stream_write(s);
        cancel_restore(state);
    }
}

static uint8_t *stream_tx_reserve(struct wire_port *port, size_t len)
{
    struct stream *s = stream_of(port);

    if (len > WIRE_FRAME_MAX) {
        return NULL;
    }
    if (s->out.to + LENGTH_BYTES + len > BUFFER) {
        stream_flush(port);
    }
    if (s->out.to + LENGTH_BYTES + len > BUFFER) {
        s->blocked = true;
        s->stats.tx_blocked++;
        return NULL;
    }
    s->reserved = true;
    s->bucket = s->state != STREAM_UP;
    return s->out.byte + s->out.to + LENGTH_BYTES;
}

static void stream_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct stream *s = stream_of(port);

    s->reserved = false;
    if (len >= FRAME_HEADER && s->bucket) {
        s->stats.tx_no_dest++;
    } else if (len >= FRAME_HEADER) {
        put32(s->out.byte + s->out.to, (uint32_t)len);
        s->out.to += LENGTH_BYTES + len;
        s->out_frames++;
        s->stats.tx_frames++;
        s->stats.tx_bytes += len;
    }
    if (!(flags & WIRE_MORE)) {
        stream_flush(port);
    }
}

/* -- receiving --------------------------------------------------------------------------------- */

/* Hands out up to max whole frames of what was read. Sets *is_bad if a length is none. */
static unsigned stream_take(struct stream *s, unsigned max, bool *is_bad)
{
    struct stream_buffer *in = &s->in;
    unsigned n = 0;

    *is_bad = false;
    while (n < max && in->to - in->from >= LENGTH_BYTES) {
        const uint8_t *frame = in->byte + in->from + LENGTH_BYTES;
        size_t len = get32(in->byte + in->from);

        if (len < FRAME_HEADER || len > WIRE_FRAME_MAX) {
            s->stats.rx_malformed++;
            *is_bad = true;
            break;
        }
        if (in->to - in->from < LENGTH_BYTES + len) {
            break;
        }
        in->from += LENGTH_BYTES + len;
        s->stats.rx_frames++;
        s->stats.rx_bytes += len;
        n++;
        if (s->port.client && s->port.client->rx) {
            s->port.client->rx(s->port.opaque, frame, len, 0);
        }
        if (s->state != STREAM_UP) {
            break; /* the link was lost when the callback sent */
        }
    }
    return n;
}

/* Lets the kernel acknowledge what came, now that nothing more waits. An end without TCP_NODELAY,
 * such as QEMU 7.2, holds its next frame until then, and the kernel's ACK may take 40 ms. */
static void stream_acknowledge(struct stream *s)
{
    int one = 1;

    if (s->is_unacked) {
        s->is_unacked = false;
        setsockopt(s->link.fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
    }
}

/* Reads what has come. False: nothing has, or the link is lost. */
static bool stream_read(struct stream *s)
{
    struct stream_buffer *in = &s->in;
    ssize_t n;

    if (in->from) {
        memmove(in->byte, in->byte + in->from, in->to - in->from);
        in->to -= in->from;
        in->from = 0;
    }
    do {
        n = recv(s->link.fd, in->byte + in->to, sizeof(in->byte) - in->to, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        in->to += (size_t)n;
        s->is_unacked = s->address.at.ss_family != AF_UNIX;
    } else if (n < 0 && errno == EAGAIN) {
        stream_acknowledge(s);
    } else {
        stream_lose(s);
    }
    return n > 0;
}

static unsigned stream_poll_guarded(struct stream *s, unsigned max)
{
    unsigned n = 0;
    bool is_bad;

    if (s->state != STREAM_UP) {
        stream_step_link(s, stream_is_time(s));
    }
    stream_write(s); /* frames that were sent with WIRE_MORE */
    while (s->state == STREAM_UP) {
        n += stream_take(s, max - n, &is_bad);
        if (is_bad && s->state == STREAM_UP) {
            stream_lose(s);
        }
        if (n == max || s->state != STREAM_UP || !stream_read(s)) {
            break;
        }
    }
    stream_tell(s);
    return n;
}

static unsigned stream_poll(struct wire_port *port, unsigned max)
{
    int state = cancel_disable();
    unsigned n = stream_poll_guarded(stream_of(port), max);

    cancel_restore(state);
    return n;
}

/* -- the owner's main loop --------------------------------------------------------------------- */

static int stream_fd(struct wire_port *port)
{
    return stream_of(port)->epoll_fd;
}

static void stream_fd_event(struct wire_port *port)
{
    struct stream *s = stream_of(port);
    int state = cancel_disable();

    stream_step_link(s, stream_is_time(s));
    stream_write(s);
    stream_tell(s);
    cancel_restore(state);
    if (port->client && port->client->rx_ready) {
        port->client->rx_ready(port->opaque);
    }
}

static bool stream_link_up(struct wire_port *port)
{
    return stream_of(port)->is_told_up;
}

static void stream_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = stream_of(port)->stats;
}

/* -- opening and closing ----------------------------------------------------------------------- */

static void stream_free_port(struct stream *s)
{
    own_fd_close(&s->link);
    listener_close(&s->listener);
    if (s->timer_fd >= 0) {
        close(s->timer_fd);
    }
    if (s->epoll_fd >= 0) {
        close(s->epoll_fd);
    }
    g_free(s);
}

static void stream_close(struct wire_port *port)
{
    int state = cancel_disable();

    stream_write(stream_of(port));
    stream_free_port(stream_of(port));
    cancel_restore(state);
}

static const struct wire_port_ops stream_ops = {
    .tx_reserve = stream_tx_reserve,
    .tx_commit = stream_tx_commit,
    .tx_flush = stream_flush,
    .poll = stream_poll,
    .link_up = stream_link_up,
    .close = stream_close,
    .fd = stream_fd,
    .fd_event = stream_fd_event,
    .get_stats = stream_get_stats,
};

static struct stream *stream_new(void)
{
    struct stream *s = g_new0(struct stream, 1);

    s->port.ops = &stream_ops;
    listener_init(&s->listener);
    s->epoll_fd = s->timer_fd = s->link.fd = -1;
    return s;
}

static bool stream_open_fds(struct stream *s, GError **err)
{
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->epoll_fd < 0 || s->timer_fd < 0) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "no descriptor: %s", g_strerror(errno));
        return false;
    }
    stream_watch(s, EPOLL_CTL_ADD, s->timer_fd, EPOLLIN);
    return true;
}

static bool stream_open_at(struct stream *s, const char *rest, GError **err)
{
    if (s->listens) {
        if (!stream_open_fds(s, err) || !listener_open(&s->listener, rest, 8, err)) {
            return false;
        }
        s->address = s->listener.address;
        stream_watch(s, EPOLL_CTL_ADD, s->listener.own.fd, EPOLLIN);
        return true;
    }
    if (rest[0] == '/' ? !socket_address_of_path(&s->address, rest, err)
                       : !socket_address_of_host(&s->address, rest, SOCK_STREAM, err)) {
        return false;
    }
    if (!stream_open_fds(s, err)) {
        return false;
    }
    stream_connect(s);
    return true;
}

struct wire_port *wire_stream_open(const char *rest, bool listens, GError **err)
{
    struct stream *s = stream_new();
    int state = cancel_disable();
    bool good;

    s->listens = listens;
    good = stream_open_at(s, rest, err);
    s->is_told_up = s->state == STREAM_UP;
    if (!good) {
        stream_free_port(s);
    }
    cancel_restore(state);
    return good ? &s->port : NULL;
}

struct wire_port *wire_stream_accept(const struct listener *listener, char **peer, GError **err)
{
    struct stream *s = stream_new();
    int fd = -1, state = cancel_disable();
    bool good;

    s->ends = true;
    s->address.at.ss_family = listener->address.at.ss_family;
    good = stream_open_fds(s, err);
    if (good) {
        own_fd_lock();
        fd = listener_accept(listener);
        if (fd >= 0) {
            stream_take_link(s, fd, true);
        } else {
            good = false;
            g_set_error(err, WIRE_ERROR,
                        stream_nobody_waits(errno) ? WIRE_ERROR_NONE : WIRE_ERROR_IO,
                        "cannot accept: %s", g_strerror(errno));
        }
        own_fd_unlock();
    }
    s->is_told_up = s->state == STREAM_UP;
    if (good) {
        *peer = listener_peer_of(s->link.fd);
    } else {
        stream_free_port(s);
    }
    cancel_restore(state);
    return good ? &s->port : NULL;
}
