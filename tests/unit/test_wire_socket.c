/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ports of sockets (wire/socket): streams and datagrams between two ports, and against a
 * socket of the test that sends arbitrary bytes.
 */
#include "wire/bytes.h"
#include "wire/open.h"
#include "wire/own_fd.h"
#include "wire/socket/socket.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 20000,
    SHORT = 64,
};

/* An end of a link: its client counts its callbacks. Frames carry their number. */
struct end {
    struct wire_port *port;
    unsigned frames, out_of_order, tx_readies, link_changes;
    size_t last_len;
};

static struct end a, b;
static char *dir, *path[2];

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct end *e = client;

    ck_assert_uint_eq(flags, 0);
    e->out_of_order += get32(frame + 14) != e->frames;
    e->frames++;
    e->last_len = len;
}

static void on_tx_ready(void *client)
{
    ((struct end *)client)->tx_readies++;
}

static void on_link_change(void *client)
{
    ((struct end *)client)->link_changes++;
}

static const struct wire_client counting = {
    .rx = on_rx, .tx_ready = on_tx_ready, .link_change = on_link_change};

static void open_end(struct end *e, const char *uri)
{
    GError *err = NULL;

    *e = (struct end){.port = wire_socket_open(uri, &err)};
    ck_assert_msg(e->port, "%s", err ? err->message : "");
    wire_set_client(e->port, &counting, e);
}

static void close_end(struct end *e)
{
    wire_close(e->port);
    e->port = NULL;
}

/* As an owner's main loop: sleeps until one of the ends has something to do, and lets it work. */
static void turn(void)
{
    struct end *ends[] = {&a, &b};
    struct pollfd fds[2];

    for (int i = 0; i < 2; i++) {
        fds[i] =
            (struct pollfd){.fd = ends[i]->port ? wire_fd(ends[i]->port) : -1, .events = POLLIN};
    }
    ck_assert_int_ge(poll(fds, 2, 100), 0);
    for (int i = 0; i < 2; i++) {
        if (fds[i].revents) {
            wire_fd_event(ends[i]->port);
            while (wire_poll(ends[i]->port, 64) == 64) {
            }
        }
    }
}

/* Turns until the condition holds. */
#define turn_until(condition)                                                                      \
    do {                                                                                           \
        gint64 until_ = g_get_monotonic_time() + PATIENCE_MS * 1000ll;                             \
        while (!(condition)) {                                                                     \
            ck_assert_msg(g_get_monotonic_time() < until_, "in vain: %s", #condition);             \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

static bool send_as(struct end *e, uint32_t number, size_t len, unsigned flags)
{
    uint8_t *frame = wire_tx_reserve(e->port, len);

    if (!frame) {
        return false;
    }
    memset(frame, 0, len);
    put32(frame + 14, number);
    wire_tx_commit_as(e->port, len, flags);
    return true;
}

static bool send_one(struct end *e, uint32_t number, size_t len)
{
    return send_as(e, number, len, 0);
}

static struct wire_stats stats_of(struct end *e)
{
    struct wire_stats stats;

    wire_get_stats(e->port, &stats);
    return stats;
}

static const char *uri_of(const char *format, ...) G_GNUC_PRINTF(1, 2);
static const char *uri_of(const char *format, ...)
{
    static char uri[300];
    va_list args;

    va_start(args, format);
    g_vsnprintf(uri, sizeof(uri), format, args);
    va_end(args);
    return uri;
}

static unsigned free_port(int type)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, type, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* The ways in which two ports can be joined. */
enum way {
    WAY_STREAM,
    WAY_TCP,
    WAY_UNIX,
    WAY_UDP,
    WAY_VXLAN,
    WAYS,
};

static void join(enum way way)
{
    unsigned one, other;

    switch (way) {
    case WAY_STREAM:
        open_end(&a, uri_of("listen:%s", path[0]));
        open_end(&b, uri_of("connect:%s", path[0]));
        break;
    case WAY_TCP:
        one = free_port(SOCK_STREAM);
        open_end(&a, uri_of("listen:127.0.0.1:%u", one));
        open_end(&b, uri_of("connect:127.0.0.1:%u", one));
        break;
    case WAY_UNIX:
        open_end(&a, uri_of("unix:%s:%s", path[0], path[1]));
        open_end(&b, uri_of("unix:%s:%s", path[1], path[0]));
        break;
    default:
        one = free_port(SOCK_DGRAM);
        other = free_port(SOCK_DGRAM);
        open_end(&a, uri_of(way == WAY_UDP ? "udp:%u:127.0.0.1:%u" : "vxlan:77:%u:127.0.0.1:%u",
                            one, other));
        open_end(&b, uri_of(way == WAY_UDP ? "udp:%u:127.0.0.1:%u" : "vxlan:77:%u:127.0.0.1:%u",
                            other, one));
    }
    turn_until(wire_link_up(a.port) && wire_link_up(b.port));
}

static void part(void)
{
    close_end(&a);
    close_end(&b);
}

START_TEST(frames_of_all_lengths_pass_both_ways)
{
    static const size_t lengths[] = {60, 1514, 4200, WIRE_FRAME_MAX, SHORT};

    join((enum way)_i);
    for (uint32_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        ck_assert(send_one(&a, i, lengths[i]));
        turn_until(b.frames == i + 1);
        ck_assert_uint_eq(b.last_len, lengths[i]);
        ck_assert(send_one(&b, i, lengths[i]));
        turn_until(a.frames == i + 1);
        ck_assert_uint_eq(a.last_len, lengths[i]);
    }
    ck_assert_uint_eq(a.out_of_order + b.out_of_order, 0);
    ck_assert_uint_eq(stats_of(&a).tx_frames, G_N_ELEMENTS(lengths));
    ck_assert_uint_eq(stats_of(&a).rx_frames, G_N_ELEMENTS(lengths));
    ck_assert_uint_eq(stats_of(&a).tx_no_dest + stats_of(&a).rx_malformed, 0);
    part();
}
END_TEST

/* "Frames that are shorter than an Ethernet header are not sent", and no port takes longer ones
 * than WIRE_FRAME_MAX. */
START_TEST(no_other_frame_is_sent)
{
    join((enum way)_i);
    ck_assert_ptr_null(wire_tx_reserve(a.port, WIRE_FRAME_MAX + 1));
    ck_assert_ptr_nonnull(wire_tx_reserve(a.port, SHORT));
    wire_tx_commit(a.port, 0);
    ck_assert_ptr_nonnull(wire_tx_reserve(a.port, SHORT));
    wire_tx_commit(a.port, 13);
    ck_assert(send_one(&a, 0, SHORT));
    turn_until(b.frames == 1);
    ck_assert_uint_eq(stats_of(&a).tx_frames, 1);
    part();
}
END_TEST

/* "WIRE_MORE: more frames, or wire_tx_flush(), follow at once" */
START_TEST(more_frames_follow)
{
    join((enum way)_i);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert(send_as(&a, i, SHORT, WIRE_MORE));
    }
    wire_tx_flush(a.port);
    turn_until(b.frames == 8);
    ck_assert(send_as(&a, 8, SHORT, WIRE_MORE));
    wire_poll(a.port, 64); /* "without this call, the next poll implies it" */
    turn_until(b.frames == 9);
    ck_assert_uint_eq(b.out_of_order, 0);
    part();
}
END_TEST

/* "if the kernel's buffers are full, the sender waits": nothing is lost, and it is told. */
START_TEST(a_full_receiver_makes_the_sender_wait)
{
    uint32_t sent = 0, total = 4000;

    join((enum way)_i);
    while (send_one(&a, sent, 9000)) {
        ck_assert_uint_lt(++sent, total);
    }
    ck_assert_uint_eq(a.tx_readies, 0);
    ck_assert_uint_ge(stats_of(&a).tx_blocked, 1);
    while (sent < total) {
        unsigned before = a.tx_readies;

        turn_until(a.tx_readies > before);
        while (sent < total && send_one(&a, sent, 9000)) {
            sent++;
        }
    }
    turn_until(b.frames == total);
    ck_assert_uint_eq(b.out_of_order, 0);
    ck_assert_uint_eq(stats_of(&a).tx_no_dest + stats_of(&a).tx_no_room, 0);
    part();
}
END_TEST

/* -- the other end comes and goes -------------------------------------------------------------- */

START_TEST(a_stream_waits_for_its_other_end)
{
    open_end(&b, uri_of("connect:%s", path[0]));
    ck_assert(!wire_link_up(b.port));
    ck_assert(send_one(&b, 0, SHORT)); /* vanishes, "as on a cable that is pulled out" */
    ck_assert_uint_eq(stats_of(&b).tx_no_dest, 1);
    ck_assert_uint_eq(stats_of(&b).tx_frames, 0);
    open_end(&a, uri_of("listen:%s", path[0]));
    turn_until(wire_link_up(b.port) && wire_link_up(a.port));
    ck_assert_uint_eq(b.link_changes, 1);
    ck_assert_uint_eq(a.link_changes, 1);
    ck_assert(send_one(&b, 0, SHORT));
    turn_until(a.frames == 1);
    part();
}
END_TEST

/* i: which end goes, the one that listens or the one that connects. */
START_TEST(an_end_that_goes_takes_the_link_down_until_the_next_comes)
{
    struct end *gone = _i ? &a : &b, *left = _i ? &b : &a;

    join(WAY_STREAM);
    ck_assert(send_one(gone, 0, SHORT));
    close_end(gone);
    turn_until(!wire_link_up(left->port));
    ck_assert_uint_eq(left->frames, 1); /* what was sent before has arrived */
    ck_assert(send_one(left, 0, SHORT));
    ck_assert_uint_eq(stats_of(left).tx_no_dest, 1);
    open_end(gone, uri_of(_i ? "listen:%s" : "connect:%s", path[0]));
    turn_until(wire_link_up(left->port) && wire_link_up(gone->port));
    left->link_changes = left->frames = 0;
    ck_assert(send_one(gone, 0, SHORT));
    turn_until(left->frames == 1);
    ck_assert_uint_eq(left->link_changes, 0);
    part();
    ck_assert(!g_file_test(path[0], G_FILE_TEST_EXISTS));
}
END_TEST

START_TEST(a_sender_that_waits_is_told_when_the_other_end_goes)
{
    uint32_t sent = 0;

    join(WAY_STREAM);
    while (send_one(&b, sent, 9000)) {
        sent++;
    }
    close_end(&a);
    turn_until(b.tx_readies);
    ck_assert(!wire_link_up(b.port));
    ck_assert_uint_ge(stats_of(&b).tx_no_dest, 1);
    ck_assert(send_one(&b, 0, SHORT));
    close_end(&b);
}
END_TEST

/* "A second end that connects while there is one is closed at once" */
START_TEST(a_stream_has_two_ends)
{
    struct end other;

    join(WAY_STREAM);
    open_end(&other, uri_of("connect:%s", path[0]));
    ck_assert(wire_link_up(other.port));
    turn();
    while (wire_link_up(other.port)) {
        turn();
        wire_poll(other.port, 64);
    }
    ck_assert(send_one(&b, 0, SHORT));
    turn_until(a.frames == 1);
    close_end(&other);
    part();
}
END_TEST

/* The child lives on and does not keep the link up. */
START_TEST(a_child_of_fork_is_no_end)
{
    pid_t child;

    join(WAY_STREAM);
    child = fork();
    if (!child) {
        pause();
    }
    close_end(&b);
    turn_until(!wire_link_up(a.port));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close_end(&a);
}
END_TEST

/* A program may have closed a descriptor that it does not know, and got another file at its number:
 * neither a child nor the owner closes that file (wire/own_fd.h). */
START_TEST(no_other_file_is_closed)
{
    struct own_fd own = {.fd = -1};
    int number, other = open("/dev/zero", O_RDONLY), status;
    pid_t child;

    own_fd_lock();
    own_fd_set(&own, open("/dev/null", O_RDONLY));
    own_fd_unlock();
    number = own.fd;
    ck_assert_int_eq(dup2(other, number), number);
    child = fork();
    if (!child) {
        _exit(fcntl(number, F_GETFD) < 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    own_fd_close(&own);
    ck_assert_int_eq(own.fd, -1);
    ck_assert_int_ge(fcntl(number, F_GETFD), 0);
    close(number);
    close(other);
}
END_TEST

START_TEST(a_file_that_nobody_serves_is_replaced)
{
    GError *err = NULL;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    g_strlcpy(at.sun_path, path[0], sizeof(at.sun_path));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    close(fd);
    join(WAY_STREAM);
    ck_assert_ptr_null(wire_socket_open(uri_of("listen:%s", path[0]), &err));
    ck_assert_ptr_nonnull(strstr(err->message, "Address already in use"));
    g_error_free(err);
    part();
}
END_TEST

/* "its peer may have ended and come anew": each new end is heard, and hears, whoever sends first.
 */
START_TEST(datagrams_find_an_end_that_comes_later_or_anew)
{
    open_end(&a, uri_of("unix:%s:%s", path[0], path[1]));
    ck_assert(send_one(&a, 0, SHORT));
    ck_assert_uint_eq(stats_of(&a).tx_no_dest, 1);
    for (unsigned i = 0; i < 4; i++) {
        open_end(&b, uri_of("unix:%s:%s", path[1], path[0]));
        a.frames = 0;
        ck_assert(send_one(i % 2 ? &a : &b, 0, SHORT));
        turn_until(i % 2 ? b.frames == 1 : a.frames == 1);
        ck_assert(send_one(i % 2 ? &b : &a, 0, SHORT));
        turn_until(a.frames == 1 && b.frames == 1);
        close_end(&b);
        ck_assert(!g_file_test(path[1], G_FILE_TEST_EXISTS));
    }
    close_end(&a);
}
END_TEST

/* The sender waits for an end that goes: it is told, and the next end is heard. */
START_TEST(a_sender_of_datagrams_is_told_when_the_full_end_goes)
{
    uint32_t sent = 0;

    join(WAY_UNIX);
    while (send_one(&a, sent, 9000)) {
        sent++;
    }
    close_end(&b);
    turn_until(a.tx_readies);
    ck_assert_uint_ge(stats_of(&a).tx_no_dest, 1);
    open_end(&b, uri_of("unix:%s:%s", path[1], path[0]));
    ck_assert(send_one(&b, 0, SHORT));
    turn_until(a.frames == 1);
    part();
}
END_TEST

/* Frames that arrive while a sender waits stay in its queue until the sender reads them. */
START_TEST(a_sender_of_datagrams_that_waits_hears_everything)
{
    uint32_t sent = 0;

    join(WAY_UNIX);
    for (unsigned i = 0; i < 20; i++) {
        while (send_one(&a, sent, 9000)) {
            sent++;
        }
        for (unsigned answer = 0; answer < 3; answer++) {
            ck_assert(send_one(&b, a.frames + answer, SHORT));
        }
        while (wire_poll(b.port, 64)) {
        }
        turn_until(a.tx_readies == i + 1 && a.frames == 3 * (i + 1));
    }
    turn_until(b.frames == sent);
    part();
}
END_TEST

/* A frame is built while the bytes before it leave. */
START_TEST(a_reserved_frame_outlasts_a_flush)
{
    uint8_t *frame;

    join(WAY_STREAM);
    ck_assert(send_as(&a, 0, SHORT, WIRE_MORE));
    frame = wire_tx_reserve(a.port, SHORT);
    memset(frame, 0, SHORT);
    put32(frame + 14, 1);
    wire_tx_flush(a.port);
    turn_until(b.frames == 1);
    wire_tx_commit(a.port, SHORT);
    turn_until(b.frames == 2);
    ck_assert_uint_eq(b.out_of_order, 0);
    part();
}
END_TEST

/* -- foreign bytes ----------------------------------------------------------------------------- */

/* A socket of the test at the other end of the stream that &a listens to. */
static int foreign_stream(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    open_end(&a, uri_of("listen:%s", path[0]));
    g_strlcpy(at.sun_path, path[0], sizeof(at.sun_path));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    turn_until(wire_link_up(a.port));
    return fd;
}

static size_t framed(uint8_t *at, uint32_t number, uint32_t len)
{
    memset(at, 0, 4 + len);
    put32(at, len);
    put32(at + 4 + 14, number);
    return 4 + len;
}

START_TEST(frames_may_come_in_pieces)
{
    uint8_t bytes[3 * (4 + SHORT)];
    size_t len = 0;
    int fd = foreign_stream();

    for (uint32_t i = 0; i < 3; i++) {
        len += framed(bytes + len, i, SHORT);
    }
    for (size_t i = 0; i < len; i++) {
        ck_assert_int_eq(write(fd, bytes + i, 1), 1);
        turn();
        ck_assert_uint_eq(a.frames, (i + 1) / (4 + SHORT));
    }
    ck_assert_uint_eq(a.out_of_order, 0);
    close(fd);
    close_end(&a);
}
END_TEST

static const uint32_t no_lengths[] = {0, 1, 13, WIRE_FRAME_MAX + 1, 0x7fffffff, 0xffffffff};

/* "or sends a length that no frame has": the frames before it are taken, and the link goes down. */
START_TEST(a_length_that_no_frame_has_ends_the_link)
{
    uint8_t bytes[4 + SHORT + 4 + 20] = {0};
    int fd = foreign_stream();
    size_t len = framed(bytes, 0, SHORT);

    put32(bytes + len, no_lengths[_i]);
    ck_assert_int_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    turn_until(!wire_link_up(a.port));
    ck_assert_uint_eq(a.frames, 1);
    ck_assert_uint_eq(stats_of(&a).rx_malformed, 1);
    ck_assert_int_le(read(fd, bytes, 1), 0);
    close(fd);
    close_end(&a);
}
END_TEST

/* A socket of the test at the other end of a port of UDP. */
static int foreign_udp(const char *host, unsigned port, unsigned to)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET, host, &at.sin_addr);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    at = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)to)};
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* RFC 7348, clause 5: the flag I, 24 reserved bits, the VNI, 8 reserved bits; reserved bits "MUST
 * be ignored on receipt". The source port is the sender's choice. */
START_TEST(vxlan_has_its_header)
{
    unsigned ours = free_port(SOCK_DGRAM), theirs = free_port(SOCK_DGRAM);
    int fd = foreign_udp("127.0.0.1", theirs, ours), other = foreign_udp("127.0.0.1", 0, ours);
    int foreign = foreign_udp("127.0.0.2", 0, ours);
    uint8_t bytes[8 + SHORT] = {0};

    open_end(&a, uri_of("vxlan:%u:%u:127.0.0.1:%u", 0xabcdef, ours, theirs));
    ck_assert(send_one(&a, 3, SHORT));
    ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
    ck_assert_uint_eq(get32(bytes), 0x08000000);
    ck_assert_uint_eq(get32(bytes + 4), 0xabcdef00);
    ck_assert_uint_eq(get32(bytes + 8 + 14), 3);

    put32(bytes, 0xff123456);
    put32(bytes + 4, 0xabcdef99);
    put32(bytes + 8 + 14, 0);
    ck_assert_int_eq(write(other, bytes, sizeof(bytes)), sizeof(bytes));
    turn_until(a.frames == 1);

    ck_assert_int_eq(write(foreign, bytes, sizeof(bytes)), sizeof(bytes)); /* another host */
    ck_assert_int_eq(write(other, bytes, 8 + 13), 8 + 13);                 /* no frame */
    ck_assert_int_eq(write(other, bytes, 7), 7);                           /* no header */
    put32(bytes + 4, 0xabcdee00);                                          /* another VNI */
    ck_assert_int_eq(write(other, bytes, sizeof(bytes)), sizeof(bytes));
    put32(bytes, 0xf7ffffff); /* no VNI */
    put32(bytes + 4, 0xabcdef00);
    ck_assert_int_eq(write(other, bytes, sizeof(bytes)), sizeof(bytes));
    turn_until(stats_of(&a).rx_malformed == 4);
    ck_assert_uint_eq(a.frames, 1);
    close(fd);
    close(other);
    close(foreign);
    close_end(&a);
}
END_TEST

/* A port of UDP hears its peer only, address and port. */
START_TEST(udp_hears_only_its_peer)
{
    unsigned ours = free_port(SOCK_DGRAM), theirs = free_port(SOCK_DGRAM);
    int fd = foreign_udp("127.0.0.1", theirs, ours), other = foreign_udp("127.0.0.1", 0, ours);
    static uint8_t bytes[WIRE_FRAME_MAX + 1];

    open_end(&a, uri_of("udp:%u:127.0.0.1:%u", ours, theirs));
    (void)!write(other, bytes, SHORT);
    ck_assert_int_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes)); /* too long */
    ck_assert_int_eq(write(fd, bytes, 13), 13);
    ck_assert_int_eq(write(fd, bytes, SHORT), SHORT);
    turn_until(a.frames == 1);
    ck_assert_uint_eq(stats_of(&a).rx_malformed, 2);
    close(fd);
    close(other);
    close_end(&a);
}
END_TEST

/* -- bad URIs ---------------------------------------------------------------------------------- */

static const struct {
    const char *uri, *says;
} bad[] = {
    {"connect:", "'' is not HOST:PORT"},
    {"connect:host", "'host' is not HOST:PORT"},
    {"listen::80", "':80' is not HOST:PORT"},
    {"listen:127.0.0.1:65536", "a port is a number up to 65535, not '65536'"},
    {"listen:127.0.0.1:http", "a port is a number up to 65535, not 'http'"},
    {"listen:/no/such/folder/x", "cannot listen there: No such file or directory"},
    {"unix:/a", "'/a' is not OURS:THEIRS, two paths"},
    {"unix::/a", "the path of a socket has 1 to 107 bytes"},
    {"udp:1:2", "'2' is not HOST:PORT"},
    {"udp:1", "'1' is not PORT:HOST:PORT"},
    {"vxlan:16777216:1:127.0.0.1:1", "with a VNI up to 16777215"},
    {"vxlan:x:1:127.0.0.1:1", "with a VNI up to 16777215"},
    {"tap:nosuchtap", "there is no interface 'nosuchtap': ip tuntap add nosuchtap mode tap"},
    {"if:nosuchif", "there is no interface 'nosuchif'; interfaces: "},
};

START_TEST(a_bad_uri_is_refused)
{
    GError *err = NULL;

    ck_assert(wire_socket_is(bad[_i].uri));
    ck_assert_ptr_null(wire_socket_open(bad[_i].uri, &err));
    ck_assert_msg(strstr(err->message, bad[_i].says), "%s", err->message);
    g_error_free(err);
}
END_TEST

/* -- numbers ----------------------------------------------------------------------------------- */

/* Nothing holds it, so two hosts may have the same one; but a child of fork() has none. */
START_TEST(a_number_is_the_one_that_was_chosen)
{
    struct wire_number *one = wire_number_take("udp:1:127.0.0.1:2", 7, NULL);
    struct wire_number *other = wire_number_take("udp:1:127.0.0.1:2", 7, NULL);
    GError *err = NULL;
    int status;
    pid_t child;

    ck_assert_uint_eq(wire_number_get(one), 7);
    ck_assert(wire_number_is_held(one) && wire_number_is_held(other));
    child = fork();
    if (!child) {
        bool holds = wire_number_is_held(one);

        wire_number_release(one);
        _exit(holds);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    wire_number_release(one);
    wire_number_release(other);
    ck_assert_ptr_null(wire_number_take("udp:1:127.0.0.1:2", 0, &err));
    ck_assert_msg(strstr(err->message, "choose a host number"), "%s", err->message);
    g_error_free(err);
}
END_TEST

static void make_dir(void)
{
    a = b = (struct end){0};
    dir = g_dir_make_tmp("hcasim-socket.XXXXXX", NULL);
    for (int i = 0; i < 2; i++) {
        path[i] = g_strdup_printf("%s/%d", dir, i);
    }
}

static void remove_dir(void)
{
    for (int i = 0; i < 2; i++) {
        g_remove(path[i]);
        g_free(path[i]);
    }
    ck_assert_int_eq(g_rmdir(dir), 0);
    g_free(dir);
}

Suite *unit_suite(void)
{
    Suite *suite = suite_create("ports of sockets");
    TCase *tc = tcase_create("sockets");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_loop_test(tc, frames_of_all_lengths_pass_both_ways, 0, WAYS);
    tcase_add_loop_test(tc, no_other_frame_is_sent, 0, WAYS);
    tcase_add_loop_test(tc, more_frames_follow, 0, WAYS);
    tcase_add_loop_test(tc, a_full_receiver_makes_the_sender_wait, WAY_STREAM, WAY_UNIX + 1);
    tcase_add_test(tc, a_stream_waits_for_its_other_end);
    tcase_add_loop_test(tc, an_end_that_goes_takes_the_link_down_until_the_next_comes, 0, 2);
    tcase_add_test(tc, a_sender_that_waits_is_told_when_the_other_end_goes);
    tcase_add_test(tc, a_stream_has_two_ends);
    tcase_add_test(tc, a_child_of_fork_is_no_end);
    tcase_add_test(tc, no_other_file_is_closed);
    tcase_add_test(tc, a_file_that_nobody_serves_is_replaced);
    tcase_add_test(tc, datagrams_find_an_end_that_comes_later_or_anew);
    tcase_add_test(tc, a_sender_of_datagrams_is_told_when_the_full_end_goes);
    tcase_add_test(tc, a_sender_of_datagrams_that_waits_hears_everything);
    tcase_add_test(tc, a_reserved_frame_outlasts_a_flush);
    tcase_add_test(tc, frames_may_come_in_pieces);
    tcase_add_loop_test(tc, a_length_that_no_frame_has_ends_the_link, 0, G_N_ELEMENTS(no_lengths));
    tcase_add_test(tc, vxlan_has_its_header);
    tcase_add_test(tc, udp_hears_only_its_peer);
    tcase_add_loop_test(tc, a_bad_uri_is_refused, 0, G_N_ELEMENTS(bad));
    tcase_add_test(tc, a_number_is_the_one_that_was_chosen);
    suite_add_tcase(suite, tc);
    return suite;
}
