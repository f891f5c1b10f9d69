/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements address.h. */
#include "wire/control/address.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

bool control_address(struct sockaddr_un *at, const char *path, GError **err)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path || g_strlcpy(at->sun_path, path, sizeof(at->sun_path)) >= sizeof(at->sun_path)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS,
                    "the path of a control socket must have 1 to %zu bytes, but '%s' has %zu",
                    sizeof(at->sun_path) - 1, path, strlen(path));
        return false;
    }
    return true;
}

bool control_is_stale(const struct sockaddr_un *at)
{
    struct stat st;
    bool refused;
    int fd;

    if (lstat(at->sun_path, &st) || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    /* A full backlog is another error. */
    refused = connect(fd, (const struct sockaddr *)at, sizeof(*at)) && errno == ECONNREFUSED;
    close(fd);
    return refused;
}
