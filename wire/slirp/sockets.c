/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libslirp's sockets and times. libslirp says which descriptors it has (register_poll_fd), and each
 * time that it has worked, for what each is to be watched and how long at most. An epoll set
 * watches them, and a timer the time.
 */
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"
#include "wire/slirp/slirp_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000 /* ns */

struct slirp_socket {
    struct own_fd own;
    bool listens;
    int looks;        /* what libslirp asks for */
    int found;        /* what has happened */
    int index;        /* in slirp_port.asked; -1: not there */
    uint32_t watched; /* in the epoll set; 0: not there */
};

/* libslirp has one, for IPv6's advertisements. */
struct slirp_timer {
    void (*cb)(void *opaque);
    void *opaque;
    int64_t expire_ms; /* -1: it is not set */
};

static const struct {
    int look;
    uint32_t event;
} meanings[] = {
    {SLIRP_LOOK_IN, EPOLLIN},   {SLIRP_LOOK_OUT, EPOLLOUT}, {SLIRP_LOOK_PRI, EPOLLPRI},
    {SLIRP_LOOK_ERR, EPOLLERR}, {SLIRP_LOOK_HUP, EPOLLHUP},
};

void slirp_lock(struct slirp_port *s)
{
    int state = cancel_disable();

    own_fd_lock();
    s->state = state;
}

void slirp_unlock(struct slirp_port *s)
{
    int state = s->state;

    own_fd_unlock();
    cancel_restore(state);
}

int64_t slirp_now_ns(void *opaque)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

bool slirp_is_full(const struct slirp_port *s)
{
    return g_hash_table_size(s->sockets) >= SLIRP_SOCKETS;
}

/* -- descriptors ------------------------------------------------------------------------------- */

static struct slirp_socket *slirp_socket_at(struct slirp_port *s, int fd)
{
    return g_hash_table_lookup(s->sockets, GINT_TO_POINTER(fd));
}

static void slirp_register(int fd, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_socket *socket;
    socklen_t len = sizeof(int);
    int listens = 0;

    if (slirp_socket_at(s, fd)) {
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
    socket = g_new0(struct slirp_socket, 1);
    socket->own.fd = -1;
    socket->listens = listens;
    socket->index = -1;
    own_fd_set(&socket->own, fd);
    g_hash_table_insert(s->sockets, GINT_TO_POINTER(fd), socket);
}

/* libslirp closes the descriptor after this. */
static void slirp_unregister(int fd, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_socket *socket = slirp_socket_at(s, fd);

    if (!socket) {
        return;
    }
    if (socket->index >= 0) {
        s->asked->pdata[socket->index] = NULL;
    }
    if (socket->watched) {
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    }
    own_fd_forget(&socket->own);
    g_hash_table_remove(s->sockets, GINT_TO_POINTER(fd));
}

static int slirp_ask(int fd, int looks, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_socket *socket;

    slirp_register(fd, s);
    socket = slirp_socket_at(s, fd);
    socket->looks = looks;
    socket->index = (int)s->asked->len;
    g_ptr_array_add(s->asked, socket);
    return socket->index;
}

static int slirp_answer(int index, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_socket *socket =
        index >= 0 && index < (int)s->asked->len ? s->asked->pdata[index] : NULL;

    return socket ? socket->found : 0;
}

static void slirp_watch_socket(struct slirp_port *s, struct slirp_socket *socket)
{
    bool wants = socket->looks && !(socket->listens && slirp_is_full(s));
    struct epoll_event event = {.data.fd = socket->own.fd};

    for (size_t i = 0; wants && i < G_N_ELEMENTS(meanings); i++) {
        event.events |= socket->looks & meanings[i].look ? meanings[i].event : 0;
    }
    if (event.events != socket->watched) {
        epoll_ctl(s->epoll_fd,
                  !socket->watched ? EPOLL_CTL_ADD
                  : event.events   ? EPOLL_CTL_MOD
                                   : EPOLL_CTL_DEL,
                  socket->own.fd, &event);
        socket->watched = event.events;
    }
}

/* -- times ------------------------------------------------------------------------------------- */

static void *slirp_timer_new(void (*cb)(void *), void *cb_opaque, void *opaque)
{
    struct slirp_port *s = opaque;
    struct slirp_timer *timer = g_new0(struct slirp_timer, 1);

    *timer = (struct slirp_timer){cb, cb_opaque, -1};
    g_ptr_array_add(s->timers, timer);
    return timer;
}

static void slirp_timer_free(void *timer, void *opaque)
{
    g_ptr_array_remove(((struct slirp_port *)opaque)->timers, timer);
}

static void slirp_timer_mod(void *timer, int64_t expire_ms, void *opaque)
{
    ((struct slirp_timer *)timer)->expire_ms = expire_ms;
}

static void slirp_run_timers(struct slirp_port *s)
{
    for (guint i = 0; i < s->timers->len; i++) {
        struct slirp_timer *timer = s->timers->pdata[i];

        if (timer->expire_ms >= 0 && timer->expire_ms * MS <= slirp_now_ns(s)) {
            timer->expire_ms = -1;
            timer->cb(timer->opaque);
        }
    }
}

/* timeout_ms: the longest time until libslirp must work; UINT32_MAX: none. If a frame waits, the
 * timer expires at once, so that the descriptor is readable. */
static void slirp_set_timer(struct slirp_port *s, uint32_t timeout_ms)
{
    int64_t now = slirp_now_ns(s), at = INT64_MAX;
    struct itimerspec spec = {0};

    if (timeout_ms != UINT32_MAX) {
        at = now + (int64_t)timeout_ms * MS;
    }
    for (guint i = 0; i < s->timers->len; i++) {
        int64_t expire_ms = ((struct slirp_timer *)s->timers->pdata[i])->expire_ms;

        at = expire_ms >= 0 ? MIN(at, expire_ms * MS) : at;
    }
    if (s->get != s->put) {
        at = now;
    }
    if (at != INT64_MAX) {
        at = MAX(at, 1);
        spec.it_value = (struct timespec){at / (1000 * MS), at % (1000 * MS)};
    }
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* -- work -------------------------------------------------------------------------------------- */

void slirp_watch(struct slirp_port *s)
{
    uint32_t timeout_ms = UINT32_MAX;
    struct slirp_socket *socket;
    GHashTableIter iter;

    g_hash_table_iter_init(&iter, s->sockets);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&socket)) {
        socket->looks = 0;
        socket->index = -1;
    }
    g_ptr_array_set_size(s->asked, 0);
    s->library->slirp_pollfds_fill(s->slirp, &timeout_ms, slirp_ask, s);
    g_hash_table_iter_init(&iter, s->sockets);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&socket)) {
        slirp_watch_socket(s, socket);
    }
    slirp_set_timer(s, timeout_ms);
}

void slirp_work(struct slirp_port *s)
{
    struct epoll_event events[64];
    int n = epoll_wait(s->epoll_fd, events, G_N_ELEMENTS(events), 0);

    if (n <= 0 && !s->is_unsettled) {
        return;
    }
    for (guint i = 0; i < s->asked->len; i++) {
        if (s->asked->pdata[i]) {
            ((struct slirp_socket *)s->asked->pdata[i])->found = 0;
        }
    }
    for (int i = 0; i < n; i++) {
        struct slirp_socket *socket = slirp_socket_at(s, events[i].data.fd);

        for (size_t k = 0; socket && k < G_N_ELEMENTS(meanings); k++) {
            socket->found |= events[i].events & meanings[k].event ? meanings[k].look : 0;
        }
    }
    slirp_run_timers(s);
    s->library->slirp_pollfds_poll(s->slirp, 0, slirp_answer, s);
    slirp_watch(s);
}

/* -- beginning and end ------------------------------------------------------------------------- */

static ssize_t slirp_send_packet(const void *frame, size_t len, void *opaque)
{
    struct slirp_port *s = opaque;

    return s->frame_out(frame, len, opaque);
}

/* What a host sends wrongly is its own affair. */
static void slirp_guest_error(const char *text, void *opaque)
{
}

/* Each call of libslirp is followed by slirp_watch(). */
static void slirp_notify(void *opaque)
{
}

const struct slirp_calls slirp_port_calls = {
    .send_packet = slirp_send_packet,
    .guest_error = slirp_guest_error,
    .clock_get_ns = slirp_now_ns,
    .make_timer = slirp_timer_new,
    .free_timer = slirp_timer_free,
    .set_timer = slirp_timer_mod,
    .register_poll_fd = slirp_register,
    .unregister_poll_fd = slirp_unregister,
    .notify = slirp_notify,
};

bool slirp_begin_sockets(struct slirp_port *s, GError **err)
{
    struct epoll_event event = {.events = EPOLLIN};

    s->sockets = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    s->asked = g_ptr_array_new();
    s->timers = g_ptr_array_new_with_free_func(g_free);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    event.data.fd = s->timer_fd; /* which is no socket's */
    if (s->epoll_fd < 0 || s->timer_fd < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->timer_fd, &event)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "no descriptor: %s", g_strerror(errno));
        return false;
    }
    return true;
}

void slirp_end_sockets(struct slirp_port *s)
{
    for (unsigned i = 0; i < 2; i++) {
        int fd = i ? s->timer_fd : s->epoll_fd;

        if (fd >= 0) {
            close(fd);
        }
    }
    g_clear_pointer(&s->sockets, g_hash_table_unref);
    g_clear_pointer(&s->asked, g_ptr_array_unref);
    g_clear_pointer(&s->timers, g_ptr_array_unref);
}
