/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements server.h: the socket, its clients, and the lines that come and go. */
#include "wire/control/server.h"
#include "wire/cancel.h"
#include "wire/control/address.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A place for a client. It is free if it has no descriptor. */
struct control_place {
    struct own_fd fd;
    GString *in, *out; /* what is not yet a whole line; what is not yet sent */
    size_t sent;       /* bytes of out */
    gint64 since;      /* when out began to wait for the client, microseconds */
    bool is_last;      /* nothing is read any more: the client is closed when out is sent */
    uint32_t watched;  /* events */
};

struct control {
    struct sockaddr_un at;
    dev_t dev; /* the file, which another process may have replaced since */
    ino_t ino;
    struct own_fd epoll, listener;
    struct control_commands *commands;
    struct control_place client[CONTROL_CLIENTS];
};

static void control_watch(struct control *c, int op, int fd, uint32_t events, void *of)
{
    struct epoll_event event = {.events = events, .data.ptr = of};

    epoll_ctl(c->epoll.fd, op, fd, &event);
}

/* -- clients ----------------------------------------------------------------------------------- */

static void control_end_client(struct control *c, struct control_place *client)
{
    /* To close it is not enough: a child of fork() has it open for a moment, one of vfork() until
     * it executes a program. */
    control_watch(c, EPOLL_CTL_DEL, client->fd.fd, 0, NULL);
    own_fd_close(&client->fd);
    g_string_free(client->in, TRUE);
    g_string_free(client->out, TRUE);
    client->in = client->out = NULL;
}

/* The rest of what the client should read, and what it has sent, decide for what it is waited. */
static void control_watch_client(struct control *c, struct control_place *client)
{
    bool has_line = memchr(client->in->str, '\n', client->in->len) != NULL;
    bool waits = client->out->len > 0;
    uint32_t events = 0;

    if (waits || has_line) {
        events = EPOLLOUT; /* with a whole line, at once: then the line is taken */
    } else if (!client->is_last) {
        events = EPOLLIN;
    }
    if (events != client->watched) {
        client->watched = events;
        control_watch(c, EPOLL_CTL_MOD, client->fd.fd, events, client);
    }
}

/* Sends what waits, as far as the kernel takes it. False: the client has gone. */
static bool control_send(struct control_place *client)
{
    while (client->sent < client->out->len) {
        ssize_t n = send(client->fd.fd, client->out->str + client->sent,
                         client->out->len - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            client->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != EINTR) {
            return false;
        }
    }
    client->sent = 0;
    if (client->out->allocated_len > CONTROL_LINE_MAX) {
        g_string_free(client->out, TRUE); /* the memory of a long answer */
        client->out = g_string_new(NULL);
    }
    g_string_truncate(client->out, 0);
    return true;
}

static void control_put(struct control_place *client, GString *line)
{
    if (!client->out->len) {
        client->since = g_get_monotonic_time();
    }
    g_string_append_len(client->out, line->str, (gssize)line->len);
    g_string_free(line, TRUE);
}

/* Reads what has come, up to the longest line and its newline. */
static void control_receive(struct control_place *client)
{
    GString *in = client->in;
    size_t had = in->len;
    ssize_t n;

    g_string_set_size(in, CONTROL_LINE_MAX + 1);
    do {
        n = recv(client->fd.fd, in->str + had, in->len - had, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    g_string_truncate(in, had + (n > 0 ? (size_t)n : 0));
    if (!n || (n < 0 && errno != EAGAIN)) {
        client->is_last = true;
        if (in->len && in->str[in->len - 1] != '\n') {
            g_string_append_c(in, '\n'); /* a client need not end its last line */
        }
    }
}

/* Takes one line of those that have come, and answers it. */
static void control_take_line(struct control *c, struct control_place *client)
{
    GString *in = client->in;
    const char *newline = memchr(in->str, '\n', in->len);
    size_t len = newline ? (size_t)(newline - in->str) : 0;

    if (!newline && in->len > CONTROL_LINE_MAX) {
        g_autoptr(GError) err =
            g_error_new(CONTROL_ERROR, CONTROL_ERROR_TOO_LONG,
                        "a request must have at most %u bytes", CONTROL_LINE_MAX);

        control_put(client, control_answer_error(err));
        client->is_last = true;
        g_string_truncate(in, 0);
    } else if (newline) {
        if (strspn(in->str, " \t\r") < len) {
            control_put(client, control_answer(c->commands, in->str, len));
        }
        g_string_erase(in, 0, (gssize)len + 1);
    }
}

static void control_run_client(struct control *c, struct control_place *client)
{
    bool has_line = memchr(client->in->str, '\n', client->in->len) != NULL;

    if (!client->out->len && !has_line && !client->is_last) {
        control_receive(client);
    }
    if (!client->out->len) {
        control_take_line(c, client);
    }
    if (!control_send(client) || (client->is_last && !client->out->len && !client->in->len)) {
        control_end_client(c, client);
    } else {
        control_watch_client(c, client);
    }
}

/* -- new clients ------------------------------------------------------------------------------- */

/* A free place, or the one whose client has let an answer wait for longest; or NULL. */
static struct control_place *control_find_place(struct control *c)
{
    struct control_place *oldest = NULL;

    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        struct control_place *client = &c->client[i];

        if (client->fd.fd < 0) {
            return client;
        }
        if (client->out->len && (!oldest || client->since < oldest->since)) {
            oldest = client;
        }
    }
    if (oldest) {
        control_end_client(c, oldest);
    }
    return oldest;
}

/* Tells a client that there is no place, as far as its socket takes that. */
static void control_turn_away(int fd)
{
    g_autoptr(GError) err =
        g_error_new(CONTROL_ERROR, CONTROL_ERROR_BUSY,
                    "the control socket has %d clients already, which is the most that it serves",
                    CONTROL_CLIENTS);
    GString *line = control_answer_error(err);
    ssize_t n = send(fd, line->str, line->len, MSG_DONTWAIT | MSG_NOSIGNAL);

    (void)n;
    g_string_free(line, TRUE);
    close(fd);
}

static void control_greet(struct control *c, struct control_place *client)
{
    json_auto_t *greeting = json_pack("{s{ss}}", "hcasim", "version", HCASIM_VERSION);

    client->in = g_string_new(NULL);
    client->out = g_string_new(NULL);
    client->is_last = false;
    client->sent = 0;
    control_put(client, control_line(greeting));
    client->watched = EPOLLOUT;
    control_watch(c, EPOLL_CTL_ADD, client->fd.fd, EPOLLOUT, client);
}

/*
 * Takes the clients that have connected. The listener is watched for new ones only (EPOLLET), so
 * that a process without a descriptor to spare does not run in circles: a client that could not be
 * taken waits for the next event of this socket.
 */
static void control_accept(struct control *c)
{
    for (unsigned i = 0; i < 4 * CONTROL_CLIENTS; i++) {
        struct control_place *client = NULL;
        int fd;

        own_fd_lock();
        fd = accept4(c->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        own_fd_unlock();
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED) {
            return;
        }
        if (fd < 0) {
            continue;
        }
        client = control_find_place(c);
        if (!client) {
            control_turn_away(fd);
            continue;
        }
        own_fd_lock();
        own_fd_set(&client->fd, fd);
        own_fd_unlock();
        control_greet(c, client);
    }
    /* More may wait, and no event tells. */
    control_watch(c, EPOLL_CTL_MOD, c->listener.fd, EPOLLIN | EPOLLET, c);
}

/* -- the owner's calls ------------------------------------------------------------------------- */

int control_fd(const struct control *control)
{
    return control->epoll.fd;
}

void control_add(struct control *control, const struct control_command *table, void *opaque)
{
    control_commands_add(control->commands, table, opaque);
}

bool control_run(struct control *control)
{
    struct epoll_event events[CONTROL_CLIENTS];
    int state = cancel_disable();
    int n = control->epoll.fd < 0 ? -1 : epoll_wait(control->epoll.fd, events, CONTROL_CLIENTS, 0);
    bool works = n >= 0 || errno == EINTR;

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr != control) {
            control_run_client(control, events[i].data.ptr);
        }
    }
    /* Last: a new client may take the place of one that an event is about. */
    if (n > 0) {
        control_accept(control);
    }
    cancel_restore(state);
    return works;
}

static void control_free(struct control *c)
{
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        if (c->client[i].in) {
            control_end_client(c, &c->client[i]);
        }
    }
    own_fd_close(&c->listener);
    own_fd_close(&c->epoll);
    control_commands_free(c->commands);
    g_free(c);
}

void control_remove_stale(const char *path)
{
    struct sockaddr_un at;

    if (control_address(&at, path, NULL) && control_is_stale(&at)) {
        unlink(path);
    }
}

void control_unlink(struct control *control)
{
    struct stat st;

    if (control->listener.fd >= 0 && !lstat(control->at.sun_path, &st) &&
        st.st_dev == control->dev && st.st_ino == control->ino) {
        unlink(control->at.sun_path);
    }
}

void control_close(struct control *control)
{
    int state = cancel_disable();

    control_unlink(control);
    control_free(control);
    cancel_restore(state);
}

/* -- listening --------------------------------------------------------------------------------- */

/* Two processes that find the same stale file must not both replace it: one locks the folder. -1:
 * another process has the lock, for a moment. */
static int control_try_bind(const struct sockaddr_un *at, int folder, bool needs_lock)
{
    int fd;

    if (folder >= 0 && needs_lock && flock(folder, LOCK_EX | LOCK_NB)) {
        return -1;
    }
    if (control_is_stale(at)) {
        unlink(at->sun_path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* The mode of the socket becomes that of its file. */
    if (fd >= 0 &&
        (fchmod(fd, S_IRUSR | S_IWUSR) || bind(fd, (const struct sockaddr *)at, sizeof(*at)) ||
         listen(fd, CONTROL_CLIENTS))) {
        int code = errno;

        close(fd);
        fd = -1;
        errno = code;
    }
    return fd;
}

/* Returns 0, or an errno. No fork() happens meanwhile, so no child keeps the lock. */
static int control_bind(struct control *c, const char *folder_path, bool needs_lock)
{
    int folder, fd, code;

    own_fd_lock();
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = control_try_bind(&c->at, folder, needs_lock);
    code = errno;
    if (fd >= 0) {
        own_fd_set(&c->listener, fd);
    }
    if (folder >= 0) {
        close(folder);
    }
    own_fd_unlock();
    return fd >= 0 ? 0 : code;
}

static void control_say_why(const char *path, int code, GError **err)
{
    struct stat st;

    if (code != EADDRINUSE) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot listen at %s: %s", path,
                    g_strerror(code));
    } else if (!lstat(path, &st) && S_ISSOCK(st.st_mode)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "another process listens at %s: end it, or choose another path", path);
    } else {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "%s is there and is no socket: choose another path", path);
    }
}

static bool control_listen(struct control *c, GError **err)
{
    g_autofree char *folder = g_path_get_dirname(c->at.sun_path);
    struct stat st = {0};
    int code = EWOULDBLOCK;

    /* A process that keeps the lock for a second is none of ours. */
    for (unsigned tries = 0; code == EWOULDBLOCK && tries < 1000; tries++) {
        if (tries) {
            g_usleep(1000);
        }
        code = control_bind(c, folder, tries < 999);
    }
    if (code) {
        control_say_why(c->at.sun_path, code, err);
        return false;
    }
    lstat(c->at.sun_path, &st);
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    own_fd_lock();
    own_fd_set(&c->epoll, epoll_create1(EPOLL_CLOEXEC));
    own_fd_unlock();
    if (c->epoll.fd < 0) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot listen at %s: %s",
                    c->at.sun_path, g_strerror(errno));
        unlink(c->at.sun_path);
        return false;
    }
    control_watch(c, EPOLL_CTL_ADD, c->listener.fd, EPOLLIN | EPOLLET, c);
    return true;
}

struct control *control_open(const char *path, GError **err)
{
    struct control *c = g_new0(struct control, 1);
    int state = cancel_disable();
    bool good;

    c->epoll.fd = c->listener.fd = -1;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        c->client[i].fd.fd = -1;
    }
    c->commands = control_commands_new();
    good = control_address(&c->at, path, err) && control_listen(c, err);
    if (!good) {
        control_free(c);
    }
    cancel_restore(state);
    return good ? c : NULL;
}
