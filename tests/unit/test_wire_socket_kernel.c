/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ports of sockets (wire/socket) where the kernel changes or holds what passes: it takes VLAN
 * tags out of frames and leaves checksums to cards that are not there, and it delays TCP's
 * acknowledgements.
 *
 * Interfaces need the right to make them. A user namespace gives it, on most machines to everybody;
 * without it, these cases are passed by and say so.
 */
#include "wire/bytes.h"
#include "wire/encap/eth.h"
#include "wire/socket/packet_rx.h"
#include "wire/socket/socket.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 20000,
    SHORT = 64,
};

static struct {
    unsigned frames;
    size_t len;
    uint8_t frame[WIRE_FRAME_MAX];
} last;

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    last.frames++;
    last.len = len;
    memcpy(last.frame, frame, len);
}

static const struct wire_client keeping = {.rx = on_rx};

static struct wire_port *open_port(const char *uri)
{
    GError *err = NULL;
    struct wire_port *port = wire_socket_open(uri, &err);

    ck_assert_msg(port, "%s: %s", uri, err ? err->message : "");
    wire_set_client(port, &keeping, NULL);
    last.frames = 0;
    return port;
}

static void send_frame(struct wire_port *port, const uint8_t *frame, size_t len)
{
    uint8_t *at = wire_tx_reserve(port, len);

    ck_assert_ptr_nonnull(at);
    memcpy(at, frame, len);
    wire_tx_commit(port, len);
}

static void poll_until_frames(struct wire_port *port, unsigned frames)
{
    gint64 until = g_get_monotonic_time() + PATIENCE_MS * 1000ll;

    while (last.frames < frames) {
        ck_assert_msg(g_get_monotonic_time() < until, "%u frames of %u", last.frames, frames);
        wire_poll(port, 64);
    }
}

/* -- TCP --------------------------------------------------------------------------------------- */

/* A socket of TCP, without TCP_NODELAY, at the other end of a stream. */
static int foreign_tcp(struct wire_port **port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    char uri[64];

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    g_snprintf(uri, sizeof(uri), "connect:127.0.0.1:%u", ntohs(at.sin_port));
    *port = open_port(uri);
    fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    close(listener);
    return fd;
}

/* An end that waits for an ACK before it sends its next frame (Nagle's algorithm, in QEMU 7.2) need
 * not wait for the kernel's delayed ACK: none of its bytes is unacknowledged once the port found
 * nothing more. The kernel may be late now and then, but not always. Each frame is answered, since
 * the kernel delays ACKs only in a conversation. */
START_TEST(what_came_by_tcp_is_acknowledged_at_once)
{
    enum {
        ROUNDS = 100,
    };
    struct wire_port *port;
    int fd = foreign_tcp(&port);
    uint8_t frame[4 + SHORT] = {0, 0, 0, SHORT}, answer[4 + SHORT];
    unsigned at_once = 0;

    while (!wire_link_up(port)) {
        wire_fd_event(port);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        int unacked = -1;

        ck_assert_int_eq(write(fd, frame, sizeof(frame)), sizeof(frame));
        poll_until_frames(port, i + 1);
        ck_assert_int_eq(ioctl(fd, SIOCOUTQ, &unacked), 0);
        at_once += unacked == 0;
        send_frame(port, frame + 4, SHORT);
        ck_assert_int_eq(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    }
    ck_assert_msg(at_once >= ROUNDS / 2, "%u of %u", at_once, ROUNDS);
    wire_close(port);
    close(fd);
}
END_TEST

/* -- packet sockets ---------------------------------------------------------------------------- */

static void write_file(const char *path, const char *format, unsigned value)
{
    FILE *file = fopen(path, "w");

    if (file) {
        fprintf(file, format, value);
        fclose(file);
    }
}

/* Moves this process, which runs one case, to a network of its own with two interfaces, one and
 * two, joined by a cable. False: the machine does not allow it. */
static bool make_veth(void)
{
    unsigned uid = getuid(), gid = getgid();

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        fprintf(stderr, "no user namespace here: a case of packet sockets is passed by\n");
        return false;
    }
    write_file("/proc/self/setgroups", "deny%.0u", 0);
    write_file("/proc/self/uid_map", "0 %u 1", uid);
    write_file("/proc/self/gid_map", "0 %u 1", gid);
    if (system("ip link add one type veth peer name two && ip link set one up && "
               "ip link set two up")) {
        fprintf(stderr, "no veth here: a case of packet sockets is passed by\n");
        return false;
    }
    return true;
}

/* The other interface's frames of other protocols (IPv6 asks for routers) are passed over. */
static void poll_until_type(struct wire_port *port, uint16_t type)
{
    do {
        last.frames = 0;
        while (!last.frames) {
            poll_until_frames(port, 1);
        }
    } while (get16(last.frame + 12) != type);
}

/* A frame's tag arrives as it was sent: 802.1Q and 802.1ad, and an inner tag behind an outer. */
START_TEST(vlan_tags_arrive)
{
    static const uint16_t types[] = {ETH_TYPE_VLAN, ETH_TYPE_QINQ};
    struct wire_port *one, *two;
    uint8_t frame[SHORT] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

    if (!make_veth()) {
        return;
    }
    one = open_port("if:one");
    two = open_port("if:two");
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        put16(frame + 12, types[i]);
        put16(frame + 14, 0xa123); /* priority 5, VLAN 0x123 */
        put16(frame + 16, ETH_TYPE_VLAN);
        put16(frame + 18, 0x0456);
        put16(frame + 20, 0x88b5); /* for experiments */
        memset(frame + 22, 0x5a, sizeof(frame) - 22);
        send_frame(one, frame, sizeof(frame));
        poll_until_type(two, types[i]);
        ck_assert_uint_eq(last.len, sizeof(frame));
        ck_assert_mem_eq(last.frame, frame, sizeof(frame));
    }
    wire_close(one);
    wire_close(two);
}
END_TEST

/* A longest frame, and one with a tag beyond that. */
START_TEST(a_tag_may_make_a_frame_too_long)
{
    static uint8_t buffer[PACKET_RX_TAG + WIRE_FRAME_MAX];
    struct tpacket_auxdata aux = {.tp_status = TP_STATUS_VLAN_VALID, .tp_vlan_tci = 7};
    size_t len = WIRE_FRAME_MAX;

    ck_assert_ptr_eq(packet_rx_restore(buffer, &len, &aux), buffer);
    ck_assert_uint_eq(len, WIRE_FRAME_MAX + PACKET_RX_TAG);
    ck_assert_uint_eq(get16(buffer + 12), ETH_TYPE_VLAN);
    ck_assert_uint_eq(get16(buffer + 14), 7);
    len = 13;
    ck_assert_ptr_eq(packet_rx_restore(buffer, &len, &aux), buffer + PACKET_RX_TAG);
    ck_assert_uint_eq(len, 13);
}
END_TEST

/* The kernel at the other end of a veth pair leaves the checksum of UDP to the card. */
START_TEST(checksums_that_the_kernel_leaves_out_are_right)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0x0a090002)};
    struct eth_info info;
    struct wire_port *two;
    int fd;

    if (!make_veth()) {
        return;
    }
    ck_assert_int_eq(system("ip addr add 10.9.0.1/24 dev one && "
                            "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev one"),
                     0);
    two = open_port("if:two");
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_eq(sendto(fd, "a checksum", 10, 0, (struct sockaddr *)&to, sizeof(to)), 10);
    poll_until_type(two, ETH_TYPE_IPV4);
    ck_assert(eth_parse(last.frame, last.len, &info));
    ck_assert_int_eq(info.l4, ETH_L4_UDP);
    ck_assert_uint_ne(get16(last.frame + info.l4_off + 6), 0);
    ck_assert(eth_csum_l4_ok(last.frame, &info));
    close(fd);
    wire_close(two);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("sockets and the kernel");
    TCase *tc = tcase_create("kernel");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_came_by_tcp_is_acknowledged_at_once);
    tcase_add_test(tc, vlan_tags_arrive);
    tcase_add_test(tc, a_tag_may_make_a_frame_too_long);
    tcase_add_test(tc, checksums_that_the_kernel_leaves_out_are_right);
    suite_add_tcase(suite, tc);
    return suite;
}
