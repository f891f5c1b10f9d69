/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP connection between two processes of one program. */
#define _GNU_SOURCE
#include "tests/programs/other_side.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

void need(bool condition, const char *what)
{
    if (!condition) {
        fail("%s failed", what);
    }
}

static int listen_and_accept(const struct addrinfo *at)
{
    int listener = socket(at->ai_family, at->ai_socktype, at->ai_protocol), fd, one = 1;

    need(listener >= 0, "opening a socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    need(bind(listener, at->ai_addr, at->ai_addrlen) == 0 && listen(listener, 1) == 0,
         "listening on TCP");
    fd = accept(listener, NULL, NULL);
    close(listener);
    return fd;
}

static int connect_to(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);

    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int other_side_connect(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_family = host ? AF_UNSPEC : AF_INET,
                             .ai_flags = host ? 0 : AI_PASSIVE};
    struct timeval patience = {.tv_sec = OTHER_SIDE_PATIENCE};
    struct addrinfo *list;
    int fd = -1, one = 1;

    need(getaddrinfo(host, port, &hints, &list) == 0, "finding the other side's address");
    for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
        fd = host ? connect_to(at) : listen_and_accept(at);
    }
    freeaddrinfo(list);
    need(fd >= 0, "the TCP connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

/* A socket with a timeout returns EINTR when its process is stopped and continued, even without a
 * signal handler (signal(7)). */
static void hear(int fd, uint8_t *theirs, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = recv(fd, theirs + have, len - have, 0);

        need(n > 0 || (n < 0 && errno == EINTR), "hearing from the other side");
        have += n > 0 ? (size_t)n : 0;
    }
}

void tell(int fd, const void *mine, void *theirs, size_t len)
{
    need(send(fd, mine, len, MSG_NOSIGNAL) == (ssize_t)len, "telling the other side");
    hear(fd, theirs, len);
}

void together(int fd)
{
    uint8_t one = 1, other;

    tell(fd, &one, &other, 1);
}
