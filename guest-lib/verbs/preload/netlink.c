/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The netlink sockets of a program. A socket of family ROUTE is the kernel's. When a request is
 * sent, this library computes its own answer; when the kernel's answer is received, the own
 * messages are given in front of its end or instead of it. So the descriptor is readable when it
 * should be. A socket of family RDMA, which many machines do not support, is replaced by a socket
 * between users, to which the answers are sent.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "guest-lib/verbs/preload/netlink.h"
#include "guest-lib/verbs/preload/real.h"

#define FILES    65536  /* descriptor numbers that are watched */
#define PENDING  64     /* answers that may wait; beyond that, the oldest is dropped */
#define REQUESTS 65536u /* bytes per send call that are examined */
#define DATAGRAM 65536  /* bytes of a kernel's datagram */

/* The names of recv() and recvfrom() in programs that were built with buffer checks. */
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size, int flags, struct sockaddr *from,
                       socklen_t *from_len);

#define FUNCTIONS(X)                                                                               \
    X(socket)                                                                                      \
    X(bind)                                                                                        \
    X(sendto)                                                                                      \
    X(recv)                                                                                        \
    X(recvfrom)                                                                                    \
    X(recvmsg)                                                                                     \
    X(__recv_chk)                                                                                  \
    X(__recvfrom_chk)
REAL_TABLE(FUNCTIONS)

enum {
    KIND_OTHER,
    KIND_ROUTE,
    KIND_RDMA
};

/* This library's answer to a request that was sent. */
struct netlink_answer {
    struct netlink_answer *next;
    int fd;
    struct nlmsghdr request;
    enum netlink_part part;
    size_t at; /* offset of the next message */
    bool acks; /* an acknowledgement is wanted but not built yet */
    struct netlink_buf buf;
};

static uint8_t netlink_kinds[FILES]; /* by descriptor; another file may have the number by now */
static pthread_mutex_t netlink_lock = PTHREAD_MUTEX_INITIALIZER; /* around answers */
static struct netlink_answer *netlink_answers;
static unsigned netlink_num_answers; /* read without the lock */

/* -- sockets -----------------------------------------------------------------------------------
 */

static int netlink_option(int fd, int option)
{
    socklen_t len = sizeof(int);
    int value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -1 : value;
}

/* Checks a descriptor that is marked with a kind. Leaves errno unchanged. */
PRELOAD_SLOW static int netlink_check_kind(int fd, int kind)
{
    int err = errno, protocol = kind == KIND_RDMA ? NETLINK_USERSOCK : NETLINK_ROUTE;
    bool is =
        netlink_option(fd, SO_DOMAIN) == AF_NETLINK && netlink_option(fd, SO_PROTOCOL) == protocol;

    errno = err;
    return is ? kind : KIND_OTHER;
}

static int netlink_kind(int fd)
{
    int kind =
        fd >= 0 && fd < FILES ? __atomic_load_n(&netlink_kinds[fd], __ATOMIC_RELAXED) : KIND_OTHER;

    return __builtin_expect(kind == KIND_OTHER, 1) ? kind : netlink_check_kind(fd, kind);
}

static int netlink_begin_work(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static void netlink_free(struct netlink_answer *answer)
{
    netlink_buf_free(&answer->buf);
    free(answer);
}

/* To be called with the lock. */
static void netlink_forget(struct netlink_answer **at)
{
    struct netlink_answer *answer = *at;

    *at = answer->next;
    __atomic_store_n(&netlink_num_answers, netlink_num_answers - 1, __ATOMIC_RELAXED);
    netlink_free(answer);
}

/* Drops all answers for a descriptor, or those to a request. */
static void netlink_forget_all(int fd, const struct nlmsghdr *request)
{
    pthread_mutex_lock(&netlink_lock);
    for (struct netlink_answer **at = &netlink_answers; *at;) {
        if ((*at)->fd == fd && (!request || (*at)->request.nlmsg_seq == request->nlmsg_seq)) {
            netlink_forget(at);
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&netlink_lock);
}

PRELOAD_SLOW static int netlink_socket(int type, int protocol)
{
    int state = netlink_begin_work(), fd;
    struct hv_facts facts;
    bool ours = protocol == NETLINK_RDMA && self_look(&facts) && facts.count;

    fd = REAL(socket)(AF_NETLINK, type, ours ? NETLINK_USERSOCK : protocol);
    if (fd >= 0 && fd < FILES) {
        netlink_forget_all(fd, NULL);
        __atomic_store_n(&netlink_kinds[fd],
                         ours                        ? KIND_RDMA
                         : protocol == NETLINK_ROUTE ? KIND_ROUTE
                                                     : KIND_OTHER,
                         __ATOMIC_RELAXED);
    }
    pthread_setcancelstate(state, NULL);
    return fd;
}

PRELOAD_EXPORT int socket(int domain, int type, int protocol)
{
    return domain == AF_NETLINK && (protocol == NETLINK_ROUTE || protocol == NETLINK_RDMA)
               ? netlink_socket(type, protocol)
               : REAL(socket)(domain, type, protocol);
}

/* -- requests ----------------------------------------------------------------------------------
 */

/* Copies the parts of a message into one buffer. NULL: they are empty, or too long. */
static uint8_t *netlink_gather(const struct msghdr *message, size_t *len)
{
    uint8_t *bytes;

    *len = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        if (message->msg_iov[i].iov_len > REQUESTS - *len) {
            return NULL;
        }
        *len += message->msg_iov[i].iov_len;
    }
    bytes = *len < NLMSG_HDRLEN ? NULL : malloc(*len);
    *len = 0;
    for (size_t i = 0; bytes && i < message->msg_iovlen; i++) {
        memcpy(bytes + *len, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
        *len += message->msg_iov[i].iov_len;
    }
    return bytes;
}

static void netlink_note(struct netlink_answer *answer)
{
    struct netlink_answer **end = &netlink_answers;

    pthread_mutex_lock(&netlink_lock);
    if (netlink_num_answers == PENDING) {
        netlink_forget(&netlink_answers);
    }
    while (*end) {
        end = &(*end)->next;
    }
    *end = answer;
    __atomic_store_n(&netlink_num_answers, netlink_num_answers + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&netlink_lock);
}

static void netlink_prepare(int fd, const struct nlmsghdr *request, const struct hv_facts *facts)
{
    struct netlink_answer *answer = calloc(1, sizeof(*answer));

    if (!answer) {
        return;
    }
    answer->fd = fd;
    answer->request = *request;
    answer->acks = request->nlmsg_flags & NLM_F_ACK;
    if (netlink_buf_init(&answer->buf, facts->count)) {
        answer->part = netlink_route_answer(request, facts, &answer->buf);
        if (answer->part != NETLINK_NOTHING && answer->buf.len && !answer->buf.failed) {
            netlink_note(answer);
            return;
        }
    }
    netlink_free(answer);
}

/* Sends the messages to the program's socket, each as a datagram. */
static void netlink_tell(int fd, const struct netlink_buf *buf)
{
    struct sockaddr_nl to = {.nl_family = AF_NETLINK};
    socklen_t len = sizeof(to);
    int from = REAL(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);

    if (getsockname(fd, (struct sockaddr *)&to, &len) || !to.nl_pid) {
        struct sockaddr_nl any = {.nl_family = AF_NETLINK};

        REAL(bind)(fd, (const struct sockaddr *)&any, sizeof(any));
        getsockname(fd, (struct sockaddr *)&to, &len);
    }
    to.nl_groups = 0;
    for (size_t at = 0, begin = 0; from >= 0 && to.nl_pid; begin = at) {
        struct nlmsghdr *message =
            (struct nlmsghdr *)(uintptr_t)netlink_next(buf->bytes, buf->len, &at);

        if (!message) {
            break;
        }
        message->nlmsg_pid = to.nl_pid;
        REAL(sendto)
        (from, buf->bytes + begin, message->nlmsg_len, MSG_DONTWAIT, (const struct sockaddr *)&to,
         sizeof(to));
    }
    if (from >= 0) {
        close(from);
    }
}

static void netlink_answer_rdma(int fd, const struct nlmsghdr *request,
                                const struct hv_facts *facts)
{
    struct netlink_buf buf;

    if (netlink_buf_init(&buf, facts->count)) {
        netlink_rdma_answer(request, facts, &buf);
        netlink_tell(fd, &buf);
    }
    netlink_buf_free(&buf);
}

/* Examines what is sent. Returns whether the kernel need not get it. */
PRELOAD_SLOW static bool netlink_look(int fd, int kind, const struct msghdr *message)
{
    int err = errno, state = netlink_begin_work();
    struct hv_facts facts;
    size_t len, at = 0;
    uint8_t *bytes = netlink_gather(message, &len);
    const struct nlmsghdr *request;
    bool looked = false;

    while (bytes && (request = netlink_next(bytes, len, &at))) {
        if (kind == KIND_ROUTE && !netlink_route_asks(request)) {
            continue;
        }
        if (!looked && !self_look(&facts)) {
            break;
        }
        looked = true;
        (kind == KIND_RDMA ? netlink_answer_rdma : netlink_prepare)(fd, request, &facts);
    }
    free(bytes);
    pthread_setcancelstate(state, NULL);
    errno = err;
    return kind == KIND_RDMA;
}

bool netlink_send(int fd, const struct msghdr *message)
{
    int kind = netlink_kind(fd);

    return kind != KIND_OTHER && netlink_look(fd, kind, message);
}

/* -- answers -----------------------------------------------------------------------------------
 */

/* A datagram of the kernel. */
struct netlink_datagram {
    const struct nlmsghdr *first; /* NULL: it has no message */
    bool ends;                    /* a dump or an answer ends in it, */
    bool failed;                  /* with an error */
};

static struct netlink_datagram netlink_read(const uint8_t *bytes, size_t len)
{
    struct netlink_datagram kernel = {0};
    const struct nlmsghdr *message;
    size_t at = 0;

    while ((message = netlink_next(bytes, len, &at))) {
        if (!kernel.first) {
            kernel.first = message;
        }
        if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
            int32_t error = 0;

            if (message->nlmsg_len >= NLMSG_LENGTH(sizeof(error))) {
                memcpy(&error, NLMSG_DATA(message), sizeof(error));
            }
            kernel.failed |= error != 0;
            kernel.ends = true;
        }
    }
    return kernel;
}

static size_t netlink_copy(const uint8_t *bytes, size_t len, const struct msghdr *to)
{
    size_t copied = 0;

    for (size_t i = 0; i < to->msg_iovlen && copied < len; i++) {
        size_t part = to->msg_iov[i].iov_len < len - copied ? to->msg_iov[i].iov_len : len - copied;

        memcpy(to->msg_iov[i].iov_base, bytes + copied, part);
        copied += part;
    }
    return copied;
}

/* Gives a datagram to the program, as recvmsg(2) does with one of the kernel. */
static ssize_t netlink_give(const uint8_t *bytes, size_t len, struct msghdr *to, int flags)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    size_t copied = netlink_copy(bytes, len, to);

    if (to->msg_name) {
        memcpy(to->msg_name, &kernel,
               to->msg_namelen < sizeof(kernel) ? to->msg_namelen : sizeof(kernel));
        to->msg_namelen = sizeof(kernel);
    }
    to->msg_controllen = 0;
    to->msg_flags = copied < len ? MSG_TRUNC : 0;
    return (ssize_t)(flags & MSG_TRUNC ? len : copied);
}

static void netlink_drop(int fd)
{
    REAL(recv)(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
}

/* What happens with the kernel's next datagram when the program receives. */
enum netlink_verdict {
    PASS,    /* the program gets it */
    RETRACT, /* the program gets it, and this library's answer is dropped */
    SWALLOW, /* the program does not get it; the next one is examined */
    GIVE,    /* the program gets a message of this library first */
};

static enum netlink_verdict netlink_decide(const struct netlink_answer *answer,
                                           const struct netlink_datagram *kernel)
{
    if (!answer) {
        return PASS;
    }
    if (!kernel->ends && netlink_is_dump(&answer->request)) {
        return answer->part == NETLINK_INSTEAD ? SWALLOW : PASS;
    }
    return kernel->failed && answer->part == NETLINK_BESIDE ? RETRACT : GIVE;
}

/* Finds this library's answer to the request that the kernel's datagram answers. With the lock. */
static struct netlink_answer **netlink_find(int fd, const struct netlink_datagram *kernel)
{
    struct netlink_answer **at = &netlink_answers;

    while (*at && !(kernel->first && (*at)->fd == fd &&
                    (*at)->request.nlmsg_seq == kernel->first->nlmsg_seq)) {
        at = &(*at)->next;
    }
    return at;
}

/* Whether a message follows those that were given. A kernel that refuses the request does not
 * acknowledge it: then this library does. */
static bool netlink_has_more(struct netlink_answer *answer, const struct netlink_datagram *kernel)
{
    if (answer->at < answer->buf.len) {
        return true;
    }
    if (answer->part != NETLINK_INSTEAD || !answer->acks || !kernel->failed ||
        netlink_is_dump(&answer->request)) {
        return false;
    }
    answer->acks = false;
    netlink_ack(&answer->buf, &answer->request, 0);
    return !answer->buf.failed;
}

/* Gives the answer's next message, as if the kernel's socket had sent it. With the lock. */
static ssize_t netlink_give_next(struct netlink_answer **at, const struct netlink_datagram *kernel,
                                 struct msghdr *to, int flags)
{
    struct netlink_answer *answer = *at;
    struct nlmsghdr *message = (struct nlmsghdr *)(void *)(answer->buf.bytes + answer->at);
    ssize_t given;

    message->nlmsg_pid = kernel->first->nlmsg_pid;
    given = netlink_give((const uint8_t *)message, message->nlmsg_len, to, flags);
    if (flags & MSG_PEEK) {
        return given;
    }
    answer->at += NLMSG_ALIGN(message->nlmsg_len);
    if (!netlink_has_more(answer, kernel)) {
        if (answer->part == NETLINK_INSTEAD) {
            netlink_drop(answer->fd);
        }
        netlink_forget(at);
    }
    return given;
}

static size_t netlink_room(const struct msghdr *to)
{
    size_t room = 0;

    for (size_t i = 0; i < to->msg_iovlen && room < DATAGRAM; i++) {
        room += to->msg_iov[i].iov_len;
    }
    return room < DATAGRAM ? room : DATAGRAM;
}

/* Reads the kernel's next datagram, which stays in the socket. The kernel makes the datagrams of a
 * dump as long as the longest buffer of a receive so far (netlink_recvmsg(), max_recvmsg_len). So
 * this buffer is longer than the program's only if the datagram is longer, too. */
static ssize_t netlink_peek(int fd, uint8_t *bytes, size_t room, int flags)
{
    ssize_t len = REAL(recv)(fd, bytes, room, flags | MSG_PEEK | MSG_TRUNC);

    return len > (ssize_t)room ? REAL(recv)(fd, bytes, DATAGRAM, flags | MSG_PEEK) : len;
}

/* recvmsg(2) for a descriptor for which an answer of this library may wait. */
PRELOAD_SLOW static ssize_t netlink_receive(int fd, struct msghdr *to, int flags)
{
    enum netlink_verdict verdict = PASS;
    uint8_t *bytes = malloc(DATAGRAM);
    ssize_t given = -1;

    pthread_cleanup_push(free, bytes);
    do {
        ssize_t len = bytes ? netlink_peek(fd, bytes, netlink_room(to), flags & MSG_DONTWAIT) : 0;
        int state = netlink_begin_work();

        verdict = GIVE; /* returns the error, if recv() fails */
        given = len;
        if (len >= 0) {
            struct netlink_datagram kernel = netlink_read(bytes, (size_t)len);
            struct netlink_answer **at;

            pthread_mutex_lock(&netlink_lock);
            at = netlink_find(fd, &kernel);
            verdict = netlink_decide(*at, &kernel);
            if (verdict == GIVE) {
                given = netlink_give_next(at, &kernel, to, flags);
            } else if (verdict == RETRACT) {
                netlink_forget(at);
            }
            pthread_mutex_unlock(&netlink_lock);
        }
        if (verdict == SWALLOW) {
            netlink_drop(fd);
        }
        pthread_setcancelstate(state, NULL);
    } while (verdict == SWALLOW);
    pthread_cleanup_pop(1);
    return verdict == GIVE ? given : REAL(recvmsg)(fd, to, flags);
}

static bool netlink_may_wait(int fd)
{
    return __builtin_expect(__atomic_load_n(&netlink_num_answers, __ATOMIC_RELAXED), 0) &&
           netlink_kind(fd) == KIND_ROUTE;
}

/* Names the kernel as the sender. */
static void netlink_name(int fd, struct sockaddr *from, size_t len)
{
    struct sockaddr_nl *name = (struct sockaddr_nl *)(void *)from;

    if (from && len >= sizeof(*name) && netlink_kind(fd) == KIND_RDMA) {
        name->nl_pid = 0;
    }
}

PRELOAD_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t len = netlink_may_wait(fd) ? netlink_receive(fd, message, flags)
                                       : REAL(recvmsg)(fd, message, flags);

    if (len >= 0) {
        netlink_name(fd, message->msg_name, message->msg_namelen);
    }
    return len;
}

static ssize_t netlink_receive_from(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                                    socklen_t *from_len)
{
    struct iovec iov = {.iov_base = buf, .iov_len = len};
    struct msghdr message = {.msg_name = from,
                             .msg_namelen = from && from_len ? *from_len : 0,
                             .msg_iov = &iov,
                             .msg_iovlen = 1};
    ssize_t got = netlink_receive(fd, &message, flags);

    if (got >= 0 && from && from_len) {
        *from_len = message.msg_namelen;
    }
    return got;
}

PRELOAD_EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                                socklen_t *from_len)
{
    ssize_t got = netlink_may_wait(fd) ? netlink_receive_from(fd, buf, len, flags, from, from_len)
                                       : REAL(recvfrom)(fd, buf, len, flags, from, from_len);

    if (got >= 0 && from && from_len) {
        netlink_name(fd, from, *from_len);
    }
    return got;
}

PRELOAD_EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    return netlink_may_wait(fd) ? netlink_receive_from(fd, buf, len, flags, NULL, NULL)
                                : REAL(recv)(fd, buf, len, flags);
}

PRELOAD_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags)
{
    return len <= size && netlink_may_wait(fd)
               ? netlink_receive_from(fd, buf, len, flags, NULL, NULL)
               : REAL(__recv_chk)(fd, buf, len, size, flags);
}

PRELOAD_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size, int flags,
                                      struct sockaddr *from, socklen_t *from_len)
{
    return len <= size ? recvfrom(fd, buf, len, flags, from, from_len)
                       : REAL(__recvfrom_chk)(fd, buf, len, size, flags, from, from_len);
}

/* -- the process -------------------------------------------------------------------------------
 */

static void netlink_before_fork(void)
{
    pthread_mutex_lock(&netlink_lock);
}

static void netlink_after_fork(void)
{
    pthread_mutex_unlock(&netlink_lock);
}

__attribute__((constructor)) static void netlink_start(void)
{
    pthread_atfork(netlink_before_fork, netlink_after_fork, netlink_after_fork);
}
