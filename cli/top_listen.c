/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements top_listen.h. */
#include "cli/top_listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "wire/control/address.h"
#include "wire/socket/address.h"

#define LISTEN_BACKLOG 16

static bool listen_address(const char *text, struct socket_address *at, GError **err)
{
    struct sockaddr_un un;

    if (*text != '/') {
        return socket_address_of_host(at, text, SOCK_STREAM, err);
    }
    if (!socket_address_of_path(at, text, err) || !control_address(&un, text, err)) {
        return false;
    }
    if (control_is_stale(&un)) {
        unlink(text);
    }
    return true;
}

int top_listen(const char *address, GError **err)
{
    struct socket_address at;
    int one = 1, fd;

    if (!listen_address(address, &at, err)) {
        return -1;
    }
    fd = socket(at.at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && at.at.ss_family == AF_UNIX) {
        fchmod(fd, S_IRUSR | S_IWUSR); /* which becomes the mode of the file */
    } else if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at.at, at.len) || listen(fd, LISTEN_BACKLOG)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot listen at %s: %s", address,
                    g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}
