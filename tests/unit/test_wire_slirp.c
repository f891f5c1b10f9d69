/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the user-mode network (wire/slirp) with frames made by hand: ARP, DHCP, UDP and TCP to
 * servers of this process, which are at the gateway's address; forwarded ports; bounds; and a
 * machine without libslirp.
 */
#include "wire/bytes.h"
#include "wire/encap/eth.h"
#include "wire/open.h"
#include "wire/slirp/options.h"
#include "wire/slirp/slirp.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000
#define OURS        0x0a00020fu /* 10.0.2.15 */
#define GATEWAY     0x0a000202u
#define SEQ         1000u /* of our TCP */

void *__real_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags);

static bool has_no_library;
static struct wire_port *port;
static uint8_t gateway_mac[6];
static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};

/* The last frames that came. */
static struct {
    size_t len;
    uint8_t bytes[WIRE_FRAME_MAX];
} got[64];
static unsigned n_got;

void *__wrap_dlopen(const char *file, int flags)
{
    return has_no_library ? NULL : __real_dlopen(file, flags);
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    memcpy(got[n_got % 64].bytes, frame, len);
    got[n_got++ % 64].len = len;
}

static const struct wire_client keeping = {.rx = on_rx};

/* As an owner's main loop, for one turn. */
static void turn(void)
{
    struct pollfd fd = {.fd = wire_fd(port), .events = POLLIN};

    ck_assert_int_ge(poll(&fd, 1, 20), 0);
    if (fd.revents) {
        wire_fd_event(port);
        while (wire_poll(port, 16) == 16) {
        }
    }
}

/* Turns until a frame has come that the function takes; returns it. */
static const uint8_t *await(bool (*takes)(const uint8_t *frame, const struct eth_info *info),
                            struct eth_info *info)
{
    gint64 until = g_get_monotonic_time() + PATIENCE_MS * 1000ll;

    for (unsigned seen = 0; g_get_monotonic_time() < until; turn()) {
        for (; seen < n_got; seen++) {
            const uint8_t *frame = got[seen % 64].bytes;

            if (eth_parse(frame, got[seen % 64].len, info) && takes(frame, info)) {
                return frame;
            }
        }
    }
    ck_abort_msg("no such frame has come; %u others have", n_got);
}

static void send_frame(const uint8_t *frame, size_t len)
{
    uint8_t *at = wire_tx_reserve(port, len);

    n_got = 0;
    memcpy(at, frame, len);
    wire_tx_commit(port, len);
}

static void put_macs(uint8_t *frame, const uint8_t *to, uint16_t type)
{
    memcpy(frame, to, 6);
    memcpy(frame + 6, our_mac, 6);
    put16(frame + 12, type);
}

static bool is_arp(const uint8_t *frame, const struct eth_info *info)
{
    return info->ethertype == ETH_TYPE_ARP;
}

/* ARP for the gateway, by which libslirp also learns our address. */
static void ask_for_gateway(void)
{
    uint8_t frame[42] = {0};
    struct eth_info info;
    const uint8_t *answer;

    put_macs(frame, (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, ETH_TYPE_ARP);
    put16(frame + 14, 1);
    put16(frame + 16, ETH_TYPE_IPV4);
    frame[18] = 6;
    frame[19] = 4;
    put16(frame + 20, 1);
    memcpy(frame + 22, our_mac, 6);
    put32(frame + 28, OURS);
    put32(frame + 38, GATEWAY);
    send_frame(frame, sizeof(frame));
    answer = await(is_arp, &info);
    ck_assert_uint_eq(get16(answer + 20), 2);
    ck_assert_uint_eq(get32(answer + 28), GATEWAY);
    ck_assert_mem_eq(answer + 32, our_mac, 6);
    memcpy(gateway_mac, answer + 22, 6);
}

static void open_port(const char *options)
{
    GError *err = NULL;
    g_autofree char *uri = g_strdup_printf("slirp:%s", options);

    port = wire_open(uri, &err);
    ck_assert_msg(port, "%s", err ? err->message : "");
    wire_set_client(port, &keeping, NULL);
    n_got = 0;
    ask_for_gateway();
}

/* A packet of IPv4 in buffer; returns where its payload begins. */
static uint8_t *put_ipv4(uint8_t *frame, uint8_t proto, uint32_t to, size_t len)
{
    memset(frame, 0, ETH_BYTES + IPV4_BYTES);
    put_macs(frame, gateway_mac, ETH_TYPE_IPV4);
    frame[14] = 0x45;
    put16(frame + 16, (uint16_t)(IPV4_BYTES + len));
    frame[22] = 64;
    frame[23] = proto;
    put32(frame + 26, OURS);
    put32(frame + 30, to);
    return frame + ETH_BYTES + IPV4_BYTES;
}

static void send_sums(uint8_t *frame, size_t len)
{
    struct eth_info info;

    ck_assert(eth_parse(frame, len, &info));
    eth_csum_fill_ipv4(frame, &info);
    eth_csum_fill_l4(frame, &info);
    send_frame(frame, len);
}

static void send_udp(uint16_t from, uint32_t to, uint16_t to_port, const void *data, size_t len)
{
    uint8_t frame[600];
    uint8_t *udp = put_ipv4(frame, IP_PROTO_UDP, to, UDP_BYTES + len);

    put16(udp, from);
    put16(udp + 2, to_port);
    put16(udp + 4, (uint16_t)(UDP_BYTES + len));
    put16(udp + 6, 0);
    memcpy(udp + UDP_BYTES, data, len);
    send_sums(frame, ETH_BYTES + IPV4_BYTES + UDP_BYTES + len);
}

static void send_tcp(uint16_t from, uint16_t to_port, uint32_t seq, uint32_t ack, uint8_t flags,
                     const char *data)
{
    uint8_t frame[200];
    uint8_t *tcp = put_ipv4(frame, IP_PROTO_TCP, GATEWAY, TCP_BYTES + strlen(data));

    memset(tcp, 0, TCP_BYTES);
    put16(tcp, from);
    put16(tcp + 2, to_port);
    put32(tcp + 4, seq);
    put32(tcp + 8, ack);
    tcp[12] = TCP_BYTES / 4 << 4;
    tcp[13] = flags;
    put16(tcp + 14, 8000);
    memcpy(tcp + TCP_BYTES, data, strlen(data));
    send_sums(frame, ETH_BYTES + IPV4_BYTES + TCP_BYTES + strlen(data));
}

static bool is_udp(const uint8_t *frame, const struct eth_info *info)
{
    return info->l4 == ETH_L4_UDP;
}

static bool is_tcp(const uint8_t *frame, const struct eth_info *info)
{
    return info->l4 == ETH_L4_TCP;
}

static bool is_tcp_with_data(const uint8_t *frame, const struct eth_info *info)
{
    return info->l4 == ETH_L4_TCP && info->ip_end > info->payload_off;
}

/* A socket of this process at 127.0.0.1, which the network has at the gateway's address. */
static int serve(int type, uint16_t *at_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, type, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    ck_assert(type == SOCK_DGRAM || !listen(fd, 4));
    *at_port = ntohs(at.sin_port);
    return fd;
}

static bool is_readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) > 0;
}

static void turn_until_readable(int fd)
{
    gint64 until = g_get_monotonic_time() + PATIENCE_MS * 1000ll;

    while (!is_readable(fd, 0)) {
        ck_assert(g_get_monotonic_time() < until);
        turn();
    }
}

static unsigned open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

static struct wire_stats stats(void)
{
    struct wire_stats found;

    wire_get_stats(port, &found);
    return found;
}

/* -- what a host gets -------------------------------------------------------------------------- */

static const struct {
    const char *options;
    uint32_t address, router, dns;
} networks[] = {
    {"", OURS, GATEWAY, GATEWAY + 1},
    {"net=192.168.7.0/24+host=192.168.7.1+dns=192.168.7.9+dhcpstart=192.168.7.100", 0xc0a80764,
     0xc0a80701, 0xc0a80709},
};

/* RFC 2131: DISCOVER is answered by an OFFER with an address, a router and a name server. */
START_TEST(dhcp_offers_an_address)
{
    uint8_t frame[ETH_BYTES + IPV4_BYTES + UDP_BYTES + 300];
    uint8_t *udp, *bootp;
    uint32_t found[256] = {0};
    const uint8_t *answer;
    struct eth_info info;
    GError *err = NULL;
    g_autofree char *uri = g_strdup_printf("slirp:%s", networks[_i].options);

    port = wire_open(uri, &err);
    ck_assert_ptr_nonnull(port);
    wire_set_client(port, &keeping, NULL);
    memset(frame, 0, sizeof(frame));
    udp = put_ipv4(frame, IP_PROTO_UDP, 0xffffffff, UDP_BYTES + 300);
    memset(frame, 0xff, 6);
    put32(frame + 26, 0);
    put16(udp, 68);
    put16(udp + 2, 67);
    put16(udp + 4, UDP_BYTES + 300);
    bootp = udp + UDP_BYTES;
    bootp[0] = bootp[1] = 1;
    bootp[2] = 6;
    put32(bootp + 4, 0x12345678);
    memcpy(bootp + 28, our_mac, 6);
    put32(bootp + 236, 0x63825363);
    memcpy(bootp + 240, (const uint8_t[]){53, 1, 1, 255}, 4);
    send_sums(frame, sizeof(frame));
    answer = await(is_udp, &info);
    ck_assert_uint_eq(info.sport, 67);
    bootp = (uint8_t *)answer + info.payload_off;
    ck_assert_uint_eq(get32(bootp + 4), 0x12345678);
    ck_assert_uint_eq(get32(bootp + 16), networks[_i].address);
    for (const uint8_t *o = bootp + 240; *o != 255 && o < answer + info.ip_end; o += 2 + o[1]) {
        found[*o] = o[1] >= 4 ? get32(o + 2) : o[2];
    }
    ck_assert_uint_eq(found[53], 2); /* DHCPOFFER */
    ck_assert_uint_eq(found[3], networks[_i].router);
    ck_assert_uint_eq(found[6], networks[_i].dns);
    wire_close(port);
}
END_TEST

START_TEST(udp_goes_out_and_its_answer_comes_back)
{
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    struct eth_info info;
    const uint8_t *answer;
    char data[16];
    uint16_t server_port;
    int server = serve(SOCK_DGRAM, &server_port);

    open_port("");
    send_udp(1234, GATEWAY, server_port, "question", 8);
    turn_until_readable(server);
    ck_assert_int_eq(recvfrom(server, data, sizeof(data), 0, (struct sockaddr *)&from, &from_len),
                     8);
    ck_assert_mem_eq(data, "question", 8);
    ck_assert_int_eq(sendto(server, "answer", 6, 0, (struct sockaddr *)&from, from_len), 6);
    answer = await(is_udp, &info);
    ck_assert_mem_eq(answer + info.payload_off, "answer", 6);
    ck_assert_uint_eq(info.sport, server_port);
    ck_assert_uint_eq(info.dport, 1234);
    ck_assert(eth_csum_l4_ok(answer, &info));
    close(server);
    wire_close(port);
}
END_TEST

/* Connects by TCP; returns the server's end, and its sequence number. */
static int connect_tcp(int server, uint16_t server_port, uint16_t from, uint32_t *peer_seq)
{
    struct eth_info info;
    const uint8_t *answer;
    int fd;

    send_tcp(from, server_port, SEQ, 0, TCP_SYN, "");
    answer = await(is_tcp, &info);
    ck_assert_uint_eq(info.tcp_flags, TCP_SYN | TCP_ACK);
    ck_assert_uint_eq(get32(answer + info.l4_off + 8), SEQ + 1);
    *peer_seq = get32(answer + info.l4_off + 4) + 1;
    turn_until_readable(server);
    fd = accept(server, NULL, NULL);
    send_tcp(from, server_port, SEQ + 1, *peer_seq, TCP_ACK, "");
    return fd;
}

START_TEST(tcp_goes_out_and_back)
{
    struct eth_info info;
    const uint8_t *answer;
    uint16_t server_port;
    uint32_t seq;
    char data[16];
    int server = serve(SOCK_STREAM, &server_port), fd;

    open_port("");
    fd = connect_tcp(server, server_port, 2000, &seq);
    send_tcp(2000, server_port, SEQ + 1, seq, TCP_ACK | TCP_PSH, "hello");
    turn_until_readable(fd);
    ck_assert_int_eq(recv(fd, data, sizeof(data), 0), 5);
    ck_assert_mem_eq(data, "hello", 5);
    ck_assert_int_eq(send(fd, "and back", 8, 0), 8);
    answer = await(is_tcp_with_data, &info);
    ck_assert_mem_eq(answer + info.payload_off, "and back", 8);
    /* A closed port ends in the port's end: no callback comes any more. */
    close(fd);
    close(server);
    wire_close(port);
}
END_TEST

/* A time of libslirp is over without any frame: it repeats what we have not acknowledged. */
START_TEST(tcp_repeats_by_itself)
{
    struct eth_info info;
    uint16_t server_port;
    uint32_t seq;
    int server = serve(SOCK_STREAM, &server_port), fd;

    open_port("");
    fd = connect_tcp(server, server_port, 2000, &seq);
    ck_assert_int_eq(send(fd, "again", 5, 0), 5);
    await(is_tcp_with_data, &info);
    n_got = 0;
    await(is_tcp_with_data, &info);
    close(fd);
    close(server);
    wire_close(port);
}
END_TEST

START_TEST(a_forwarded_port_comes_in)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    g_autofree char *options = NULL;
    struct eth_info info;
    uint16_t free_port;
    int fd = serve(SOCK_STREAM, &free_port);

    close(fd);
    options = g_strdup_printf("restrict=on+hostfwd=tcp:127.0.0.1:%u-10.0.2.15:80", free_port);
    open_port(options);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    at.sin_port = htons(free_port);
    connect(fd, (struct sockaddr *)&at, sizeof(at));
    n_got = 0;
    await(is_tcp, &info);
    ck_assert_uint_eq(info.tcp_flags, TCP_SYN);
    ck_assert_uint_eq(info.dport, 80);
    close(fd);
    wire_close(port);
}
END_TEST

START_TEST(a_forwarded_port_that_is_taken_is_refused)
{
    GError *err = NULL;
    uint16_t taken;
    int fd = serve(SOCK_STREAM, &taken);
    g_autofree char *uri = g_strdup_printf("slirp:hostfwd=tcp:127.0.0.1:%u-:80", taken);
    unsigned files = open_files();

    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert_msg(strstr(err->message, "cannot be taken"), "%s", err->message);
    g_error_free(err);
    ck_assert_uint_eq(open_files(), files);
    close(fd);
}
END_TEST

START_TEST(nothing_goes_out_of_a_restricted_network)
{
    uint16_t server_port;
    int server = serve(SOCK_DGRAM, &server_port);

    open_port("restrict=on");
    send_udp(1234, GATEWAY, server_port, "question", 8);
    for (unsigned i = 0; i < 5; i++) {
        turn();
    }
    ck_assert(!is_readable(server, 0));
    close(server);
    wire_close(port);
}
END_TEST

/* -- bounds ------------------------------------------------------------------------------------ */

/* "at that number, frames that could open another one are lost" */
START_TEST(a_host_has_a_number_of_sockets)
{
    uint16_t server_port;
    int server = serve(SOCK_DGRAM, &server_port);
    unsigned files;

    open_port("");
    files = open_files();
    for (uint16_t from = 0; from < SLIRP_SOCKETS + 50; from++) {
        send_udp((uint16_t)(10000 + from), GATEWAY, server_port, "x", 1);
    }
    ck_assert_uint_eq(open_files(), files + SLIRP_SOCKETS);
    ck_assert_uint_eq(stats().tx_no_room, 50);
    wire_close(port);
    ck_assert_uint_eq(open_files(), files - 2); /* the port's own are gone, too */
    close(server);
}
END_TEST

/* "SLIRP_FRAMES frames wait for the client, and further ones are lost" */
START_TEST(frames_wait_in_a_bounded_queue)
{
    uint8_t arp[42];

    open_port("");
    put_macs(arp, (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, ETH_TYPE_ARP);
    memset(arp + ETH_BYTES, 0, sizeof(arp) - ETH_BYTES);
    memcpy(arp + 14, (const uint8_t[]){0, 1, 8, 0, 6, 4, 0, 1}, 8);
    memcpy(arp + 22, our_mac, 6);
    put32(arp + 28, OURS);
    put32(arp + 38, GATEWAY);
    while (wire_poll(port, 16)) {
    }
    for (unsigned i = 0; i < SLIRP_FRAMES + 7; i++) {
        send_frame(arp, sizeof(arp));
    }
    ck_assert_uint_eq(stats().rx_missed, 7);
    n_got = 0;
    while (wire_poll(port, 16) == 16) {
    }
    ck_assert_uint_eq(n_got, SLIRP_FRAMES);
    wire_close(port);
}
END_TEST

/* "Fragments of IPv4 are lost": the first, the last, and one with the reserved flag. */
START_TEST(fragments_are_lost)
{
    static const uint16_t fields[] = {0x2000, 3, 0x8000, 0xffff};
    uint8_t frame[ETH_BYTES + IPV4_BYTES + 64];

    open_port("");
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        memset(put_ipv4(frame, IP_PROTO_UDP, GATEWAY, 64), 'z', 64);
        put16(frame + 20, fields[i]);
        send_sums(frame, sizeof(frame));
        ck_assert_uint_eq(stats().tx_no_dest, i + 1);
    }
    wire_close(port);
}
END_TEST

START_TEST(a_frame_longer_than_the_network_takes_is_lost)
{
    static uint8_t frame[WIRE_FRAME_MAX];

    open_port("");
    send_frame(frame, 1515);
    send_frame(frame, WIRE_FRAME_MAX);
    ck_assert_uint_eq(stats().tx_no_dest, 2);
    ck_assert_ptr_null(wire_tx_reserve(port, WIRE_FRAME_MAX + 1));
    wire_close(port);
}
END_TEST

/* A child does not keep the sockets: a connection ends with the parent's port. */
START_TEST(a_child_of_fork_keeps_no_socket)
{
    uint16_t server_port;
    uint32_t seq;
    int server = serve(SOCK_STREAM, &server_port), fd, out[2];
    pid_t child;
    char byte;

    ck_assert_int_eq(pipe(out), 0);
    open_port("");
    fd = connect_tcp(server, server_port, 2000, &seq);
    child = fork();
    if (!child) {
        close(out[1]);
        _exit(read(out[0], &byte, 1) == 0 ? 0 : 1); /* lives on until the end */
    }
    wire_close(port);
    ck_assert(is_readable(fd, PATIENCE_MS));
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    close(out[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(out[0]);
    close(fd);
    close(server);
}
END_TEST

/* -- options ----------------------------------------------------------------------------------- */

static const struct {
    const char *text, *says;
} bad[] = {
    {"nothing", "no option of slirp:"},
    {"restrict", "restrict is on or off"},
    {"restrict=maybe", "restrict is on or off"},
    {"net=10.0.2.0", "net is a network"},
    {"net=10.0.2.1/24", "net is a network"},
    {"net=10.0.2.0/31", "net is a network"},
    {"net=10.0.2.0/3", "net is a network"},
    {"net=10.0.2.0/28", "three addresses of the network"},
    {"host=10.0.3.2", "three addresses of the network"},
    {"host=10.0.2.255", "three addresses of the network"},
    {"host=10.0.2.3", "three addresses of the network"},
    {"dns=gateway", "dns is an IPv4 address"},
    {"hostname=-a", "hostname is letters"},
    {"hostname=", "hostname is letters"},
    {"hostfwd=tcp::0-:80", "hostfwd is tcp|udp"},
    {"hostfwd=tcp::65536-:80", "hostfwd is tcp|udp"},
    {"hostfwd=tcp:80-:80", "hostfwd is tcp|udp"},
    {"hostfwd=sctp::80-:80", "hostfwd is tcp|udp"},
    {"hostfwd=tcp:here:80-:80", "hostfwd is tcp|udp"},
    {"restrict=on++ipv6=on", "no option of slirp:"},
};

START_TEST(a_bad_option_is_refused)
{
    struct slirp_options options;
    GError *err = NULL;

    ck_assert(!slirp_options_read(&options, bad[_i].text, &err));
    ck_assert_msg(strstr(err->message, bad[_i].says), "%s", err->message);
    g_error_free(err);
}
END_TEST

START_TEST(options_are_read)
{
    struct slirp_options o;

    ck_assert(slirp_options_read(&o,
                                 "net=10.1.0.0/16+ipv6=off+restrict=on+hostname=a-1+"
                                 "hostfwd=tcp::2222-:22+hostfwd=udp:127.0.0.1:53-10.1.0.9:5353",
                                 NULL));
    ck_assert_uint_eq(ntohl(o.mask.s_addr), 0xffff0000);
    ck_assert_uint_eq(ntohl(o.dhcp.s_addr), 0x0a01000f);
    ck_assert(!o.has_ipv6 && o.is_restricted);
    ck_assert_str_eq(o.hostname, "a-1");
    ck_assert_uint_eq(o.n_forwards, 2);
    ck_assert(!o.forwards[0].is_udp && o.forwards[1].is_udp);
    ck_assert_uint_eq(o.forwards[0].host_port, 2222);
    ck_assert_uint_eq(ntohl(o.forwards[1].guest.s_addr), 0x0a010009);
}
END_TEST

START_TEST(there_is_a_largest_number_of_forwards)
{
    g_autoptr(GString) text = g_string_new("ipv6=on");
    struct slirp_options o;

    for (unsigned i = 0; i < SLIRP_FORWARDS_MAX; i++) {
        g_string_append_printf(text, "+hostfwd=tcp::%u-:80", 1000 + i);
    }
    ck_assert(slirp_options_read(&o, text->str, NULL));
    g_string_append(text, "+hostfwd=tcp::80-:80");
    ck_assert(!slirp_options_read(&o, text->str, NULL));
}
END_TEST

START_TEST(a_machine_without_the_library_says_so)
{
    GError *err = NULL;

    has_no_library = true;
    ck_assert_ptr_null(wire_open("slirp:", &err));
    ck_assert_msg(strstr(err->message, "needs libslirp.so.0"), "%s", err->message);
    g_error_free(err);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("user-mode network");
    TCase *tc = tcase_create("slirp");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, dhcp_offers_an_address, 0, G_N_ELEMENTS(networks));
    tcase_add_test(tc, udp_goes_out_and_its_answer_comes_back);
    tcase_add_test(tc, tcp_goes_out_and_back);
    tcase_add_test(tc, tcp_repeats_by_itself);
    tcase_add_test(tc, a_forwarded_port_comes_in);
    tcase_add_test(tc, a_forwarded_port_that_is_taken_is_refused);
    tcase_add_test(tc, nothing_goes_out_of_a_restricted_network);
    tcase_add_test(tc, a_host_has_a_number_of_sockets);
    tcase_add_test(tc, frames_wait_in_a_bounded_queue);
    tcase_add_test(tc, fragments_are_lost);
    tcase_add_test(tc, a_frame_longer_than_the_network_takes_is_lost);
    tcase_add_test(tc, a_child_of_fork_keeps_no_socket);
    tcase_add_loop_test(tc, a_bad_option_is_refused, 0, G_N_ELEMENTS(bad));
    tcase_add_test(tc, options_are_read);
    tcase_add_test(tc, there_is_a_largest_number_of_forwards);
    tcase_add_test(tc, a_machine_without_the_library_says_so);
    suite_add_tcase(suite, tc);
    return suite;
}
