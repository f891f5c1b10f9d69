/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Support for socket programs under librspreload.so, which makes them use rsockets.
 *
 * There a program's descriptor belongs to /dev/null, and the rsocket behind it is known by the
 * connection manager's descriptor. Before rdma-core 63, select() of librspreload.so reports the
 * lowest descriptor that leads to a ready rsocket, and takes the rsocket's own descriptor for one,
 * too. The rsocket of an accepted connection is opened first, by the thread that listens, so its
 * own descriptor is the lower one, and a program that uses select() never learns of its connection.
 * Therefore the connection manager's descriptors are above those that a program selects.
 *
 * librspreload.so also does not know accept4(), which therefore is called for /dev/null. Here it is
 * replaced by accept() of librspreload.so, which is what the program asked for.
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
#define ABOVE_ALL 512 /* half of the descriptors that a process usually may have */

#define FUNCTIONS(X)                                                                               \
    X(accept4)                                                                                     \
    X(fcntl)
REAL_TABLE(FUNCTIONS)

typedef int accept_function(int fd, struct sockaddr *addr, socklen_t *len);

/* accept() of librspreload.so, if that is the one that the program calls. NULL: it is not. */
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
        set(got, F_SETFL, O_NONBLOCK); /* of the rsocket */
    }
    if (got >= 0 && flags & SOCK_CLOEXEC) {
        REAL(fcntl)(got, F_SETFD, FD_CLOEXEC); /* of the descriptor */
    }
    return got;
}

PRELOAD_EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    int got = REAL(accept4)(fd, addr, len, flags);

    return got < 0 && errno == ENOTSOCK ? rsockets_accept4(fd, addr, len, flags) : got;
}
