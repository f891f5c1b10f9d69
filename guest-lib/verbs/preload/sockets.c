/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP and connected UDP over the HCA's addresses. Programs find these addresses among the
 * interfaces and give them to each other. The hosts of a wire are processes of one machine, so a
 * socket that is bound or connected to A.B.C.D is bound or connected to 127.B.C.D. Its frames are
 * not on the wire.
 *
 * bind() handles this process's own addresses. connect() handles all addresses of the device's
 * subnet, because a peer may listen before it is a host, and the addresses that hosts have by their
 * numbers. A datagram that is sent to an address goes there, too, and appears to come from
 * 127.B.C.D. Addresses in a subnet of the machine's own interfaces stay the machine's. Nothing is
 * done in a process that does not use verbs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include "guest-lib/verbs/preload/netlink.h"
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"
#include "guest-lib/verbs/preload/tree.h"

#define FUNCTIONS(X)                                                                               \
    X(bind)                                                                                        \
    X(connect)                                                                                     \
    X(send)                                                                                        \
    X(sendto)                                                                                      \
    X(sendmsg)
REAL_TABLE(FUNCTIONS)

/* Whether the address is one of this process's devices, or equals one in these bits. */
static bool sockets_is_near(uint32_t ipv4, uint32_t mask)
{
    struct hv_facts facts;
    bool near = false;

    if (self_look(&facts)) {
        for (unsigned i = 0; !near && i < facts.count; i++) {
            near = !((facts.device[i].ipv4 ^ ipv4) & mask);
        }
    }
    return near;
}

static bool sockets_is_hosts(uint32_t ipv4, bool of_peers)
{
    return of_peers
               ? sockets_is_near(ipv4, UINT32_MAX << (32 - TREE_PREFIX_LEN)) || self_is_peer(ipv4)
               : sockets_is_near(ipv4, UINT32_MAX);
}

static bool sockets_is_inner(uint32_t ipv4)
{
    return ipv4 == INADDR_ANY || ipv4 >> 24 == IN_LOOPBACKNET;
}

bool sockets_leads_to_host(uint32_t ipv4)
{
    return !sockets_is_inner(ipv4) && sockets_is_hosts(ipv4, true) && !ifaddrs_is_machines(ipv4);
}

static bool sockets_is_ipv4(int fd)
{
    socklen_t len = sizeof(int);
    int domain;

    return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_INET;
}

/* Whether the address belongs to a host; stores the loopback address to use instead. Leaves errno
 * unchanged. */
PRELOAD_SLOW static bool sockets_find(int fd, const struct sockaddr *addr, bool of_peers,
                                      struct sockaddr_in *there)
{
    int err = errno, state;
    uint32_t ipv4;
    bool found;

    memcpy(there, addr, sizeof(*there));
    ipv4 = ntohl(there->sin_addr.s_addr);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    found = !sockets_is_inner(ipv4) && sockets_is_ipv4(fd) && sockets_is_hosts(ipv4, of_peers) &&
            !ifaddrs_is_machines(ipv4);
    pthread_setcancelstate(state, NULL);
    there->sin_addr.s_addr = htonl((uint32_t)IN_LOOPBACKNET << 24 | (ipv4 & 0xffffff));
    errno = err;
    return found;
}

static bool sockets_may_be_hosts(const struct sockaddr *addr, socklen_t len)
{
    __asm__("" : "+r"(addr));
    return addr && len >= sizeof(struct sockaddr_in) && addr->sa_family == AF_INET &&
           self_is_known();
}

PRELOAD_EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_in there;

    if (sockets_may_be_hosts(addr, len) && sockets_find(fd, addr, false, &there)) {
        return REAL(bind)(fd, (const struct sockaddr *)&there, sizeof(there));
    }
    return REAL(bind)(fd, addr, len);
}

PRELOAD_EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_in there;

    if (sockets_may_be_hosts(addr, len) && sockets_find(fd, addr, true, &there)) {
        return REAL(connect)(fd, (const struct sockaddr *)&there, sizeof(there));
    }
    return REAL(connect)(fd, addr, len);
}

/* -- messages ----------------------------------------------------------------------------------
 */

PRELOAD_EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
                              const struct sockaddr *addr, socklen_t addr_len)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)&iov, .msg_iovlen = 1};
    struct sockaddr_in there;

    if (netlink_send(fd, &message)) {
        return (ssize_t)len;
    }
    if (sockets_may_be_hosts(addr, addr_len) && sockets_find(fd, addr, true, &there)) {
        return REAL(sendto)(fd, buf, len, flags, (const struct sockaddr *)&there, sizeof(there));
    }
    return REAL(sendto)(fd, buf, len, flags, addr, addr_len);
}

PRELOAD_EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)&iov, .msg_iovlen = 1};

    return netlink_send(fd, &message) ? (ssize_t)len : REAL(send)(fd, buf, len, flags);
}

PRELOAD_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct msghdr elsewhere;
    struct sockaddr_in there;
    size_t len = 0;

    if (netlink_send(fd, message)) {
        for (size_t i = 0; i < message->msg_iovlen; i++) {
            len += message->msg_iov[i].iov_len;
        }
        return (ssize_t)len;
    }
    if (sockets_may_be_hosts(message->msg_name, message->msg_namelen) &&
        sockets_find(fd, message->msg_name, true, &there)) {
        elsewhere = *message;
        elsewhere.msg_name = &there;
        elsewhere.msg_namelen = sizeof(there);
        return REAL(sendmsg)(fd, &elsewhere, flags);
    }
    return REAL(sendmsg)(fd, message, flags);
}
