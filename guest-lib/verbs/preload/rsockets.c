/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs of sockets under librspreload.so, which has them use rsockets.
 *
 * There a program's descriptor is one of /dev/null, and the rsocket behind it is known by the
 * connection manager's descriptor. Before rdma-core 63 its select() tells the lowest descriptor
 * that leads to a ready rsocket, and takes the rsocket's own for one, too. An accepted one's is
 * opened first, by the thread that listens, so it is the lower one, and a program that selects
 * never hears of its connection. The connection manager's descriptors are therefore above those
 * that a program selects. Nor does it know accept4(), which so meets /dev/null; what it makes of
 * accept() is what the program asked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"

#define LIBRARY   "/librspreload.so"
#define ABOVE_ALL 512 /* half of the descriptors that a process commonly may have */

#define FUNCTIONS(X)                                                                               \
    X(accept4)                                                                                     \
    X(fcntl)
REAL_TABLE(FUNCTIONS)

typedef int accept_function(int fd, struct sockaddr *addr, socklen_t *len);

/* The library's accept() if the program gets that one. */
static accept_function *rsockets_accept(void)
{
    accept_function *theirs = (accept_function *)dlsym(RTLD_DEFAULT, "accept");
    Dl_info info;

    return theirs && dladdr((const void *)theirs, &info) && info.dli_fname &&
                   strstr(info.dli_fname, LIBRARY)
               ? theirs
               : NULL;
}

int rsockets_least_fd(void)
{
    return rsockets_accept() ? ABOVE_ALL : 0;
}

PRELOAD_SLOW static int rsockets_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    accept_function *theirs = rsockets_accept();
    __typeof__(fcntl) *set = (__typeof__(fcntl) *)dlsym(RTLD_DEFAULT, "fcntl");
    int got;

    errno = ENOTSOCK;
    got = theirs ? theirs(fd, addr, len) : -1;
    if (got >= 0 && flags & SOCK_NONBLOCK) {
        set(got, F_SETFL, O_NONBLOCK); /* the rsocket's */
    }
    if (got >= 0 && flags & SOCK_CLOEXEC) {
        REAL(fcntl)(got, F_SETFD, FD_CLOEXEC); /* the descriptor's */
    }
    return got;
}

PRELOAD_EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    int got = REAL(accept4)(fd, addr, len, flags);

    return got < 0 && errno == ENOTSOCK ? rsockets_accept4(fd, addr, len, flags) : got;
}
