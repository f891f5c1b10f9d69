/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements loop.h with one epoll set. */
#include "wire/switch/loop.h"
#include "wire/capture.h"
#include "wire/fault/port.h"
#include "wire/open.h"
#include "wire/socket/stream.h"
#include "wire/switch/config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOP_EVENTS = 64,
    LOOP_ACCEPTS = 16, /* ends that are taken before frames go on */
    LOOP_BACKLOG = 128,
};

#define LOOP_FAR_NS  10000000ull
#define LOOP_FAULT   "fault" /* the setting of a port that is not the switch's */
#define LOOP_S_NS    1000000000ull
#define LOOP_REST_NS 200000000ull /* without descriptors: until the next try to accept */

enum loop_kind {
    LOOP_PORT,
    LOOP_LISTENER,
    LOOP_WATCH,
};

struct loop_listener {
    struct listener socket;
    char *at;
    char **settings;
    uint64_t rests_until; /* 0: it is watched */
};

struct loop_watch {
    int fd;
    void (*ready)(void *opaque);
    void *opaque;
};

struct switch_loop {
    struct wire_switch *sw;
    switch_loop_say_fn *say;
    void *opaque;
    int epoll_fd;
    bool ends;
    GPtrArray *listeners; /* struct loop_listener */
    GArray *watches;      /* struct loop_watch */
    char *capture;        /* the file of all ports' frames, or NULL */
    struct capture_ring ring;
    bool unwatched[WIRE_SWITCH_PORTS_MAX + 1]; /* ports that are held up, by number */
    uint64_t held_ns;      /* when the ports that are held up are looked at; 0: none is */
    uint64_t said_ns;      /* when a refusal was said last */
    uint64_t refused;      /* since then */
    uint64_t seed, faulty; /* of fault rules: the seed, and how many ports have had some */
};

static uint64_t loop_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * LOOP_S_NS + (uint64_t)now.tv_nsec;
}

static bool loop_control(struct switch_loop *loop, int op, int fd, uint32_t events,
                         enum loop_kind kind, unsigned number)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)kind << 32 | number};

    return !epoll_ctl(loop->epoll_fd, op, fd, &event);
}

static bool loop_set_error(GError **err, const char *what)
{
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: %s", what, g_strerror(errno));
    return false;
}

static void loop_free_listener(gpointer data)
{
    struct loop_listener *l = data;

    listener_close(&l->socket);
    g_strfreev(l->settings);
    g_free(l->at);
    g_free(l);
}

struct switch_loop *switch_loop_new(const struct wire_switch_config *config,
                                    switch_loop_say_fn *say, void *opaque, GError **err)
{
    struct switch_loop *loop;
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0) {
        loop_set_error(err, "no descriptor");
        return NULL;
    }
    loop = g_new0(struct switch_loop, 1);
    loop->epoll_fd = fd;
    loop->say = say;
    loop->opaque = opaque;
    loop->seed = config->seed;
    loop->sw = wire_switch_new(config, loop_now());
    loop->listeners = g_ptr_array_new_with_free_func(loop_free_listener);
    loop->watches = g_array_new(FALSE, FALSE, sizeof(struct loop_watch));
    return loop;
}

void switch_loop_free(struct switch_loop *loop)
{
    wire_switch_free(loop->sw);
    g_ptr_array_free(loop->listeners, TRUE);
    g_array_free(loop->watches, TRUE);
    g_free(loop->capture);
    close(loop->epoll_fd);
    g_free(loop);
}

struct wire_switch *switch_loop_switch(struct switch_loop *loop)
{
    return loop->sw;
}

/* -- ports ------------------------------------------------------------------------------------- */

void switch_loop_capture(struct switch_loop *loop, const char *path,
                         const struct capture_ring *ring)
{
    loop->capture = g_strdup(path);
    loop->ring = *ring;
}

/* Wraps the wire if there is a capture. NULL with *err: the wire is closed. */
static struct wire_port *loop_capture(const struct switch_loop *loop, struct wire_port *wire,
                                      const char *about, GError **err)
{
    struct wire_capture_options options = {.name = about, .ring = loop->ring};
    struct wire_port *port =
        loop->capture ? wire_capture_new(wire, loop->capture, &options, err) : wire;

    if (!port) {
        wire_close(wire);
    }
    return port;
}

/* Puts the filter of the setting `fault` before the wire. capture: NULL, or a filter in the wire.
 * NULL with *err: the wire is closed. */
static struct wire_port *loop_add_faults(struct switch_loop *loop, struct wire_port *wire,
                                         struct wire_port *capture, const char *rules, GError **err)
{
    const struct fault_options options = {
        .seed = loop->seed, .stream = ++loop->faulty, .log = loop->say, .log_opaque = loop->opaque};
    const struct wire_fault_options filter = {.capture = capture, .owns_set = true};
    struct fault_set *set = fault_set_new(&options);
    struct wire_port *port = NULL;

    if (fault_set_add(set, rules, err)) {
        port = wire_fault_new(wire, set, &filter, err);
    }
    if (!port) {
        fault_set_free(set);
        wire_close(wire);
    }
    return port;
}

/* Makes a port of the wire, which it closes on failure. */
static unsigned loop_plug(struct switch_loop *loop, struct wire_port *wire, const char *about,
                          bool passing, const char *const *settings, GError **err)
{
    struct wire_port *capture;
    unsigned number = 0;
    int fd;

    wire = loop_capture(loop, wire, about, err);
    capture = loop->capture ? wire : NULL;
    for (unsigned i = 0; wire && settings && settings[i]; i += 2) {
        if (!strcmp(settings[i], LOOP_FAULT)) {
            wire = loop_add_faults(loop, wire, capture, settings[i + 1], err);
        }
    }
    if (!wire) {
        return 0;
    }
    fd = wire_fd(wire);
    if (fd >= 0) {
        number = wire_switch_add(loop->sw, wire, about, passing, err);
    } else {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s cannot be waited for", about);
    }
    if (!number) {
        wire_close(wire);
        return 0;
    }
    for (unsigned i = 0; settings && settings[i]; i += 2) {
        if (strcmp(settings[i], LOOP_FAULT) &&
            !wire_switch_set(loop->sw, number, settings[i], settings[i + 1], err)) {
            wire_switch_remove(loop->sw, number);
            return 0;
        }
    }
    if (!loop_control(loop, EPOLL_CTL_ADD, fd, EPOLLIN, LOOP_PORT, number)) {
        loop_set_error(err, "no memory to wait for a port");
        wire_switch_remove(loop->sw, number);
        return 0;
    }
    loop->unwatched[number] = false;
    return number;
}

unsigned switch_loop_add(struct switch_loop *loop, const char *uri, const char *const *settings,
                         GError **err)
{
    struct wire_port *wire = wire_open(uri, err);

    return wire ? loop_plug(loop, wire, uri, false, settings, err) : 0;
}

bool switch_loop_remove(struct switch_loop *loop, unsigned number, GError **err)
{
    if (!wire_switch_wire(loop->sw, number)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "there is no port %u", number);
        return false;
    }
    wire_switch_remove(loop->sw, number);
    return true;
}

/* Removes the ports whose ends have gone. */
static void loop_remove_lost(struct switch_loop *loop)
{
    unsigned number;

    while ((number = wire_switch_next_lost(loop->sw))) {
        wire_switch_remove(loop->sw, number);
    }
}

/* Does not wait for ports of which the switch takes nothing now, and looks at them by the clock:
 * they may have credits. */
static void loop_watch_takers(struct switch_loop *loop)
{
    bool any = false;

    for (unsigned i = 0; (i = wire_switch_next(loop->sw, i));) {
        bool takes = wire_switch_takes(loop->sw, i);

        any |= !takes;
        if (loop->unwatched[i] == takes) {
            loop->unwatched[i] = !takes;
            loop_control(loop, EPOLL_CTL_MOD, wire_fd(wire_switch_wire(loop->sw, i)),
                         takes ? EPOLLIN : 0u, LOOP_PORT, i);
        }
    }
    loop->held_ns = any ? loop_now() + SWITCH_HELD_NS : 0;
}

static void loop_look_at_held(struct switch_loop *loop, uint64_t now_ns)
{
    if (!loop->held_ns || loop->held_ns > now_ns) {
        return;
    }
    for (unsigned i = 0; (i = wire_switch_next(loop->sw, i));) {
        if (!wire_switch_takes(loop->sw, i)) {
            wire_fd_event(wire_switch_wire(loop->sw, i));
        }
    }
    loop->held_ns = now_ns + SWITCH_HELD_NS;
}

/* -- ends that connect ------------------------------------------------------------------------- */

bool switch_loop_listen(struct switch_loop *loop, const char *at, const char *const *settings,
                        GError **err)
{
    struct loop_listener *l = g_new0(struct loop_listener, 1);

    listener_init(&l->socket);
    l->at = g_strdup(at);
    l->settings = g_strdupv((char **)settings);
    if (!listener_open(&l->socket, at, LOOP_BACKLOG, err)) {
        loop_free_listener(l);
        return false;
    }
    if (!loop_control(loop, EPOLL_CTL_ADD, l->socket.own.fd, EPOLLIN, LOOP_LISTENER,
                      loop->listeners->len)) {
        loop_free_listener(l);
        return loop_set_error(err, "no memory to wait for a socket");
    }
    g_ptr_array_add(loop->listeners, l);
    return true;
}

/* Says that an end was refused: at most once in a second. */
static void loop_say_refused(struct switch_loop *loop, const char *why)
{
    uint64_t now = loop_now();
    g_autofree char *line = NULL;

    loop->refused++;
    if (loop->said_ns && now - loop->said_ns < LOOP_S_NS) {
        return;
    }
    line = g_strdup_printf("refused %" G_GUINT64_FORMAT " end%s: %s", loop->refused,
                           loop->refused == 1 ? "" : "s", why);
    loop->say(loop->opaque, line);
    loop->said_ns = now;
    loop->refused = 0;
}

static void loop_rest(struct switch_loop *loop, struct loop_listener *l, unsigned index)
{
    l->rests_until = loop_now() + LOOP_REST_NS;
    loop_control(loop, EPOLL_CTL_MOD, l->socket.own.fd, 0, LOOP_LISTENER, index);
}

/* Takes the next end. False: nobody waits, or nothing can be done now. */
static bool loop_accept(struct switch_loop *loop, struct loop_listener *l, unsigned index)
{
    struct wire_switch_view view = wire_switch_whole(loop->sw);
    g_autofree char *peer = NULL, *about = NULL, *why = NULL;
    g_autoptr(GError) err = NULL;
    struct wire_port *wire;

    if (view.ports == view.ports_most) {
        if (!listener_refuse(&l->socket)) {
            return false;
        }
        why = g_strdup_printf("all %u ports are used (--ports)", view.ports_most);
        loop_say_refused(loop, why);
        return true;
    }
    wire = wire_stream_accept(&l->socket, &peer, &err);
    if (!wire) {
        if (err->code != WIRE_ERROR_NONE) {
            loop_say_refused(loop, err->message);
            loop_rest(loop, l, index);
        }
        return false;
    }
    about = g_strdup_printf("%s from %s", l->at, peer);
    if (!loop_plug(loop, wire, about, true, (const char *const *)l->settings, &err)) {
        loop_say_refused(loop, err->message);
    }
    return true;
}

static void loop_accept_some(struct switch_loop *loop, unsigned index)
{
    struct loop_listener *l = g_ptr_array_index(loop->listeners, index);

    for (unsigned i = 0; i < LOOP_ACCEPTS && loop_accept(loop, l, index); i++) {
    }
}

/* Listens again where descriptors were lacking. Returns when this is to be done next. */
static uint64_t loop_wake_listeners(struct switch_loop *loop, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < loop->listeners->len; i++) {
        struct loop_listener *l = g_ptr_array_index(loop->listeners, i);

        if (l->rests_until && l->rests_until <= now_ns) {
            l->rests_until = 0;
            loop_control(loop, EPOLL_CTL_MOD, l->socket.own.fd, EPOLLIN, LOOP_LISTENER, i);
        }
        next = l->rests_until ? MIN(next, l->rests_until) : next;
    }
    return next;
}

/* -- waiting ----------------------------------------------------------------------------------- */

bool switch_loop_watch(struct switch_loop *loop, int fd, void (*ready)(void *opaque), void *opaque,
                       GError **err)
{
    struct loop_watch watch = {fd, ready, opaque};

    if (!loop_control(loop, EPOLL_CTL_ADD, fd, EPOLLIN, LOOP_WATCH, loop->watches->len)) {
        return loop_set_error(err, "cannot wait for a descriptor");
    }
    g_array_append_val(loop->watches, watch);
    return true;
}

static void loop_handle(struct switch_loop *loop, uint64_t data)
{
    unsigned number = (unsigned)data;
    struct wire_port *wire;
    struct loop_watch watch;

    switch ((enum loop_kind)(data >> 32)) {
    case LOOP_PORT:
        wire = wire_switch_wire(loop->sw, number);
        if (wire) {
            wire_fd_event(wire);
        }
        break;
    case LOOP_LISTENER:
        loop_accept_some(loop, number);
        break;
    case LOOP_WATCH:
        watch = g_array_index(loop->watches, struct loop_watch, number);
        watch.ready(watch.opaque);
        break;
    }
}

/* Sleeps as long as it takes nanoseconds to tell. Returns the milliseconds that may be slept
 * otherwise, for epoll_wait(): a deadline that is far off, or none, needs one system call only. */
static int loop_sleep(const struct switch_loop *loop, uint64_t deadline_ns)
{
    uint64_t now = loop_now(), ns = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec timeout = {0, (long)ns};
    struct pollfd fd = {.fd = loop->epoll_fd, .events = POLLIN};

    if (deadline_ns == UINT64_MAX) {
        return -1;
    }
    if (ns >= LOOP_FAR_NS) {
        return (int)MIN(ns / 1000000, INT_MAX);
    }
    if (ns) {
        ppoll(&fd, 1, &timeout, NULL);
    }
    return 0;
}

/* Waits until the deadline for events, and handles them. */
static void loop_wait(struct switch_loop *loop, uint64_t deadline_ns)
{
    struct epoll_event events[LOOP_EVENTS];
    int n = epoll_wait(loop->epoll_fd, events, LOOP_EVENTS, loop_sleep(loop, deadline_ns));

    for (int i = 0; i < n; i++) {
        loop_handle(loop, events[i].data.u64);
    }
}

void switch_loop_run(struct switch_loop *loop)
{
    bool more = true;

    while (!loop->ends) {
        uint64_t deadline = more ? 0 : wire_switch_deadline(loop->sw), now = loop_now();

        deadline = MIN(deadline, loop_wake_listeners(loop, now));
        deadline = loop->held_ns ? MIN(deadline, loop->held_ns) : deadline;
        loop_wait(loop, deadline);
        now = loop_now();
        loop_look_at_held(loop, now);
        more = wire_switch_turn(loop->sw, now);
        loop_remove_lost(loop);
        if (wire_switch_takes_changed(loop->sw)) {
            loop_watch_takers(loop);
        }
    }
}

void switch_loop_end(struct switch_loop *loop)
{
    loop->ends = true;
}

/* -- texts ------------------------------------------------------------------------------------- */

/* Whether a text begins with KEY=. */
static bool loop_begins_setting(const char *text, char **key)
{
    const char *const *keys = wire_switch_keys();
    size_t len = strcspn(text, "=");

    if (g_str_has_prefix(text, LOOP_FAULT "=")) {
        *key = g_strdup(LOOP_FAULT);
        return true;
    }
    for (unsigned i = 0; text[len] == '=' && keys[i]; i++) {
        if (strlen(keys[i]) == len && !strncmp(text, keys[i], len)) {
            *key = g_strdup(keys[i]);
            return true;
        }
    }
    return false;
}

bool switch_loop_split(const char *text, char **what, char ***settings, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) last = g_string_new(parts[0]);
    struct switch_port_config config;
    char *key;

    for (unsigned i = 1; parts[0] && parts[i]; i++) {
        if (loop_begins_setting(parts[i], &key)) {
            g_ptr_array_add(list, g_strdup(last->str));
            g_ptr_array_add(list, key);
            g_string_assign(last, strchr(parts[i], '=') + 1);
        } else {
            g_string_append_printf(last, ",%s", parts[i]);
        }
    }
    g_ptr_array_add(list, g_strdup(last->str));
    g_ptr_array_add(list, NULL);
    switch_config_init(&config);
    for (unsigned i = 1; list->pdata[i]; i += 2) {
        if (!strcmp(list->pdata[i], LOOP_FAULT)
                ? !fault_check(list->pdata[i + 1], NULL, err)
                : !switch_config_set(&config, list->pdata[i], list->pdata[i + 1], err)) {
            return false;
        }
    }
    *what = g_strdup(list->pdata[0]);
    *settings = g_strdupv((char **)list->pdata + 1);
    return true;
}
