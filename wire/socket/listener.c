/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements listener.h. */
#include "wire/socket/listener.h"
#include "wire/open.h"

#include <errno.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void listener_init(struct listener *l)
{
    *l = (struct listener){.own.fd = -1};
}

static const char *listener_path(const struct listener *l)
{
    return l->address.at.ss_family == AF_UNIX
               ? ((const struct sockaddr_un *)&l->address.at)->sun_path
               : NULL;
}

/* Whether the address is a socket's file at which nobody listens. */
static bool listener_is_stale(const struct listener *l)
{
    const char *path = listener_path(l);
    struct stat st;
    bool refused;
    int fd;

    if (!path || lstat(path, &st) || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    refused = fd >= 0 && connect(fd, (const struct sockaddr *)&l->address.at, l->address.len) &&
              errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return refused;
}

static bool listener_bind(const struct listener *l, int fd)
{
    const struct sockaddr *at = (const struct sockaddr *)&l->address.at;
    int one = 1;

    if (at->sa_family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    if (!bind(fd, at, l->address.len)) {
        return true;
    }
    if (errno != EADDRINUSE || !listener_is_stale(l)) {
        return false;
    }
    unlink(listener_path(l));
    return !bind(fd, at, l->address.len);
}

bool listener_open(struct listener *l, const char *rest, int backlog, GError **err)
{
    int fd, code;
    bool good;

    if (rest[0] == '/' ? !socket_address_of_path(&l->address, rest, err)
                       : !socket_address_of_host(&l->address, rest, SOCK_STREAM, err)) {
        return false;
    }
    own_fd_lock();
    fd = socket(l->address.at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    good = fd >= 0 && listener_bind(l, fd) && !listen(fd, backlog);
    code = errno;
    if (good) {
        own_fd_set(&l->own, fd);
    } else if (fd >= 0) {
        close(fd);
    }
    own_fd_unlock();
    if (!good) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "cannot listen there: %s", g_strerror(code));
    }
    return good;
}

int listener_accept(const struct listener *l)
{
    return accept4(l->own.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* The name of a process, if it can be seen. */
static void listener_add_program(GString *text, pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
    g_autofree char *name = NULL;

    if (g_file_get_contents(path, &name, NULL, NULL) && g_utf8_validate(name, -1, NULL)) {
        g_string_append_printf(text, " (%s)", g_strstrip(name));
    }
}

char *listener_peer_of(int fd)
{
    struct sockaddr_storage at = {0};
    struct ucred who = {0};
    socklen_t len = sizeof(at), who_len = sizeof(who);
    char host[NI_MAXHOST], port[NI_MAXSERV];
    GString *text = g_string_new(NULL);

    if (!getpeername(fd, (struct sockaddr *)&at, &len) && at.ss_family != AF_UNIX &&
        !getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
                     NI_NUMERICHOST | NI_NUMERICSERV)) {
        g_string_printf(text, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    } else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) && who.pid > 0) {
        g_string_printf(text, "process %d", (int)who.pid);
        listener_add_program(text, who.pid);
    } else {
        g_string_assign(text, "a process that is not visible here");
    }
    return g_string_free(text, FALSE);
}

bool listener_refuse(const struct listener *l)
{
    int fd;

    own_fd_lock();
    fd = listener_accept(l);
    if (fd >= 0) {
        close(fd);
    }
    own_fd_unlock();
    return fd >= 0;
}

void listener_close(struct listener *l)
{
    if (l->own.fd >= 0 && listener_path(l)) {
        unlink(listener_path(l));
    }
    own_fd_close(&l->own);
}
