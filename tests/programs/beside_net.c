/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what netlink and ioctl() tell a program about its HCA's network device. Run by `hcasim
 * run`; each statement has a process of its own on a wire of its own, with two devices.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"

#define NLDEV(op) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op)

static void own_wire(void)
{
    char wire[32];

    snprintf(wire, sizeof(wire), "beside-net-%d", (int)getpid());
    setenv("HCASIM_WIRE", wire, 1);
    setenv("HCASIM_DEVICES", "2", 1);
    setenv("HCASIM_IP", "10.9.8.7", 1);
}

/* -- netlink -----------------------------------------------------------------------------------
 */

static uint32_t last_seq;

static int netlink(int family)
{
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family);

    ck_assert_msg(fd >= 0, "family %d: %s", family, strerror(errno));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return fd;
}

/* Sends a request with a header, and with an attribute behind it if value is not NULL. */
static void ask(int fd, int type, int flags, const void *header, size_t header_len, int attribute,
                const void *value, size_t len)
{
    struct {
        struct nlmsghdr message;
        uint8_t rest[128];
    } request = {.message = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(NLMSG_ALIGN(header_len)),
                             .nlmsg_type = (uint16_t)type,
                             .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                             .nlmsg_seq = ++last_seq}};

    memcpy(request.rest, header, header_len);
    if (value) {
        struct nlattr nla = {.nla_len = (uint16_t)(NLA_HDRLEN + len),
                             .nla_type = (uint16_t)attribute};

        memcpy(request.rest + NLMSG_ALIGN(header_len), &nla, sizeof(nla));
        memcpy(request.rest + NLMSG_ALIGN(header_len) + NLA_HDRLEN, value, len);
        request.message.nlmsg_len += (uint32_t)NLA_ALIGN(nla.nla_len);
    }
    ck_assert_int_eq(send(fd, &request, request.message.nlmsg_len, 0), request.message.nlmsg_len);
}

/* The answers to the last request. */
static struct nlmsghdr *answers[64];
static unsigned num_answers;
static uint8_t received[1 << 16];

/* Receives until the dump ends, or an answer or an error has come. Returns the error, or 0. */
static int hear(int fd, bool dump)
{
    size_t used = 0;

    num_answers = 0;
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        struct sockaddr_nl from;
        struct iovec iov = {.iov_base = received + used, .iov_len = sizeof(received) - used};
        struct msghdr message = {
            .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1};
        ssize_t peeked, len;

        ck_assert_int_eq(poll(&poll_fd, 1, 20000), 1);
        peeked = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
        len = recvmsg(fd, &message, 0);
        ck_assert_int_gt(len, 0);
        ck_assert_int_eq(len, peeked);
        ck_assert_uint_eq(from.nl_pid, 0); /* from the kernel */
        for (struct nlmsghdr *answer = (struct nlmsghdr *)(void *)(received + used);
             NLMSG_OK(answer, len); answer = NLMSG_NEXT(answer, len)) {
            const struct nlmsgerr *error = NLMSG_DATA(answer);

            ck_assert_uint_eq(answer->nlmsg_seq, last_seq);
            ck_assert_uint_ne(answer->nlmsg_pid, 0);
            if (answer->nlmsg_type == NLMSG_ERROR || answer->nlmsg_type == NLMSG_DONE) {
                return error->error;
            }
            ck_assert_uint_lt(num_answers, sizeof(answers) / sizeof(answers[0]));
            answers[num_answers++] = answer;
        }
        if (!dump) {
            return 0;
        }
        used += NLMSG_ALIGN((size_t)peeked);
    }
}

static const void *attribute_of(const struct nlmsghdr *answer, size_t header_len, int type)
{
    const uint8_t *at = (const uint8_t *)answer + NLMSG_LENGTH(NLMSG_ALIGN(header_len));
    const uint8_t *end = (const uint8_t *)answer + answer->nlmsg_len;

    while (at + NLA_HDRLEN <= end) {
        struct nlattr nla;

        memcpy(&nla, at, sizeof(nla));
        if (nla.nla_type == type) {
            return at + NLA_HDRLEN;
        }
        at += NLA_ALIGN(nla.nla_len);
    }
    return NULL;
}

static const struct nlmsghdr *link_named(const char *name)
{
    for (unsigned i = 0; i < num_answers; i++) {
        const char *other = attribute_of(answers[i], sizeof(struct ifinfomsg), IFLA_IFNAME);

        if (answers[i]->nlmsg_type == RTM_NEWLINK && other && !strcmp(other, name)) {
            return answers[i];
        }
    }
    return NULL;
}

static void dump_links(int fd)
{
    const struct ifinfomsg all = {.ifi_family = AF_UNSPEC};

    ask(fd, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all), 0, NULL, 0);
    ck_assert_int_eq(hear(fd, true), 0);
}

START_TEST(the_network_device_is_among_the_links)
{
    static const uint8_t mac[6] = {0x02, 0x68, 10, 9, 8, 7};
    const struct nlmsghdr *link;
    int fd;

    own_wire();
    fd = netlink(NETLINK_ROUTE);
    for (int i = 0; i < 3; i++) {
        dump_links(fd);
        ck_assert_ptr_nonnull(link_named("lo"));
        ck_assert_ptr_nonnull(link_named("hca1"));
        link = link_named("hca0");
        ck_assert_ptr_nonnull(link);
        ck_assert_int_eq(((const struct ifinfomsg *)NLMSG_DATA(link))->ifi_index,
                         (int)if_nametoindex("hca0"));
        ck_assert(
            !memcmp(attribute_of(link, sizeof(struct ifinfomsg), IFLA_ADDRESS), mac, sizeof(mac)));
    }
    close(fd);
}
END_TEST

START_TEST(a_link_is_found_by_its_name_and_by_its_number)
{
    struct ifinfomsg one = {.ifi_family = AF_UNSPEC};
    int fd;

    own_wire();
    fd = netlink(NETLINK_ROUTE);
    ask(fd, RTM_GETLINK, 0, &one, sizeof(one), IFLA_IFNAME, "hca1", sizeof("hca1"));
    ck_assert_int_eq(hear(fd, false), 0);
    ck_assert_ptr_nonnull(link_named("hca1"));
    one.ifi_index = (int)if_nametoindex("hca0");
    ask(fd, RTM_GETLINK, NLM_F_ACK, &one, sizeof(one), 0, NULL, 0);
    ck_assert_int_eq(hear(fd, false), 0);
    ck_assert_ptr_nonnull(link_named("hca0"));
    ck_assert_int_eq(hear(fd, false), 0); /* the acknowledgement */
    ck_assert_uint_eq(num_answers, 0);
    one.ifi_index += 2;
    ask(fd, RTM_GETLINK, 0, &one, sizeof(one), 0, NULL, 0);
    ck_assert_int_eq(hear(fd, false), -ENODEV);
    ck_assert_int_eq(recv(fd, received, sizeof(received), MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
}
END_TEST

static unsigned addresses_of(unsigned index, int family, const void *address, size_t len)
{
    unsigned found = 0;

    for (unsigned i = 0; i < num_answers; i++) {
        const struct ifaddrmsg *header = NLMSG_DATA(answers[i]);

        found += answers[i]->nlmsg_type == RTM_NEWADDR && header->ifa_index == index &&
                 header->ifa_family == family &&
                 !memcmp(attribute_of(answers[i], sizeof(*header), IFA_ADDRESS), address, len);
    }
    return found;
}

START_TEST(its_addresses_are_among_the_addresses)
{
    struct ifaddrmsg which = {.ifa_family = AF_UNSPEC};
    struct in_addr own = {htonl(0x0a090807)}, loopback = {htonl(INADDR_LOOPBACK)};
    struct in6_addr link_local;
    unsigned index;
    int fd, strict = 1;

    own_wire();
    ck_assert_int_eq(inet_pton(AF_INET6, "fe80::68:aff:fe09:807", &link_local), 1);
    fd = netlink(NETLINK_ROUTE);
    index = if_nametoindex("hca0");
    ask(fd, RTM_GETADDR, NLM_F_DUMP, &which, sizeof(which), 0, NULL, 0);
    ck_assert_int_eq(hear(fd, true), 0);
    ck_assert_uint_eq(addresses_of(index, AF_INET, &own, sizeof(own)), 1);
    ck_assert_uint_eq(addresses_of(index, AF_INET6, &link_local, sizeof(link_local)), 1);
    ck_assert_uint_eq(addresses_of(1, AF_INET, &loopback, sizeof(loopback)), 1);
    /* With strict checking, the kernel refuses the number of an unknown interface. */
    ck_assert_int_eq(setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict)),
                     0);
    which = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_index = index};
    ask(fd, RTM_GETADDR, NLM_F_DUMP, &which, sizeof(which), 0, NULL, 0);
    ck_assert_int_eq(hear(fd, true), 0);
    ck_assert_uint_eq(num_answers, 1);
    ck_assert_uint_eq(addresses_of(index, AF_INET, &own, sizeof(own)), 1);
    close(fd);
}
END_TEST

/* Returns the interface of the route to the address; 0: there is none. */
static unsigned way_to(int fd, uint32_t ipv4)
{
    const struct rtmsg header = {.rtm_family = AF_INET, .rtm_dst_len = 32};
    uint32_t address = htonl(ipv4), index = 0;

    ask(fd, RTM_GETROUTE, 0, &header, sizeof(header), RTA_DST, &address, sizeof(address));
    if (!hear(fd, false)) {
        memcpy(&index, attribute_of(answers[0], sizeof(header), RTA_OIF), sizeof(index));
    }
    return index;
}

START_TEST(routes_lead_to_hosts)
{
    int fd;

    own_wire();
    fd = netlink(NETLINK_ROUTE);
    ck_assert_uint_eq(way_to(fd, 0x0a090877), if_nametoindex("hca0"));
    ck_assert_uint_eq(way_to(fd, 0x0a090807), if_nametoindex("lo")); /* the host itself */
    ck_assert_uint_eq(way_to(fd, INADDR_LOOPBACK), if_nametoindex("lo"));
    ck_assert_uint_ne(way_to(fd, 0xe0000001), if_nametoindex("hca0"));
    close(fd);
}
END_TEST

/* -- family RDMA -------------------------------------------------------------------------------
 */

static const char *text_of(unsigned i, int type)
{
    const char *text = attribute_of(answers[i], 0, type);

    ck_assert_ptr_nonnull(text);
    return text;
}

START_TEST(the_family_of_rdma_tells_devices_and_ports)
{
    const uint32_t second = 1, third = 2;
    char device[16];
    int fd;

    own_wire();
    fd = netlink(NETLINK_RDMA);
    ask(fd, NLDEV(RDMA_NLDEV_CMD_GET), NLM_F_DUMP, "", 0, 0, NULL, 0);
    ck_assert_int_eq(hear(fd, true), 0);
    ck_assert_uint_eq(num_answers, 2);
    ck_assert_str_eq(text_of(0, RDMA_NLDEV_ATTR_DEV_NAME), "mlx5_0");
    ck_assert_str_eq(text_of(1, RDMA_NLDEV_ATTR_DEV_NAME), "mlx5_1");
    ask(fd, NLDEV(RDMA_NLDEV_CMD_PORT_GET), NLM_F_DUMP, "", 0, RDMA_NLDEV_ATTR_DEV_INDEX, &second,
        sizeof(second));
    ck_assert_int_eq(hear(fd, true), 0);
    ck_assert_uint_eq(num_answers, 1);
    ck_assert_str_eq(text_of(0, RDMA_NLDEV_ATTR_NDEV_NAME), "hca1");
    ask(fd, NLDEV(RDMA_NLDEV_CMD_GET), NLM_F_ACK, "", 0, RDMA_NLDEV_ATTR_DEV_INDEX, &second,
        sizeof(second));
    ck_assert_int_eq(hear(fd, false), 0);
    snprintf(device, sizeof(device), "%s", text_of(0, RDMA_NLDEV_ATTR_DEV_NAME));
    ck_assert_str_eq(device, "mlx5_1");
    ck_assert_int_eq(hear(fd, false), 0);
    ck_assert_uint_eq(num_answers, 0);
    ask(fd, NLDEV(RDMA_NLDEV_CMD_GET), 0, "", 0, RDMA_NLDEV_ATTR_DEV_INDEX, &third, sizeof(third));
    ck_assert_int_eq(hear(fd, false), -EINVAL);
    ask(fd, NLDEV(RDMA_NLDEV_CMD_RES_QP_GET), NLM_F_DUMP, "", 0, 0, NULL, 0);
    ck_assert_int_eq(hear(fd, true), -EOPNOTSUPP);
    close(fd);
}
END_TEST

START_TEST(the_family_of_rdma_tells_of_device_files)
{
    int fd;

    own_wire();
    fd = netlink(NETLINK_RDMA);
    ask(fd, NLDEV(RDMA_NLDEV_CMD_GET_CHARDEV), 0, "", 0, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm",
        sizeof("rdma_cm"));
    ck_assert_int_eq(hear(fd, false), 0);
    ck_assert_str_eq(text_of(0, RDMA_NLDEV_ATTR_CHARDEV_NAME), "rdma_cm");
    ask(fd, NLDEV(RDMA_NLDEV_CMD_GET_CHARDEV), 0, "", 0, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "issm",
        sizeof("issm"));
    ck_assert_int_eq(hear(fd, false), -ENODEV);
    close(fd);
}
END_TEST

/* -- ioctl -------------------------------------------------------------------------------------
 */

static struct ifreq ask_of(const char *name, unsigned long request)
{
    struct ifreq ifr = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
    ck_assert_msg(!ioctl(fd, request, &ifr), "%#lx: %s", request, strerror(errno));
    close(fd);
    return ifr;
}

static uint32_t ipv4_of(const struct sockaddr *addr)
{
    struct sockaddr_in in;

    memcpy(&in, addr, sizeof(in));
    ck_assert_int_eq(in.sin_family, AF_INET);
    return ntohl(in.sin_addr.s_addr);
}

START_TEST(ioctl_tells_what_the_interface_is)
{
    static const uint8_t mac[6] = {0x02, 0x68, 10, 9, 8, 7};
    struct ifreq ifr, loopback = {0};

    own_wire();
    ifr = ask_of("hca0", SIOCGIFADDR);
    ck_assert_uint_eq(ipv4_of(&ifr.ifr_addr), 0x0a090807);
    ifr = ask_of("hca0", SIOCGIFNETMASK);
    ck_assert_uint_eq(ipv4_of(&ifr.ifr_netmask), 0xffffff00);
    ifr = ask_of("hca1", SIOCGIFBRDADDR);
    ck_assert_uint_eq(ipv4_of(&ifr.ifr_broadaddr), 0x0a0908ff);
    ifr = ask_of("hca0", SIOCGIFHWADDR);
    ck_assert(!memcmp(ifr.ifr_hwaddr.sa_data, mac, sizeof(mac)));
    ifr = ask_of("hca0", SIOCGIFMTU);
    ck_assert_int_eq(ifr.ifr_mtu, 4200);
    ifr = ask_of("hca0", SIOCGIFFLAGS);
    ck_assert_int_eq(ifr.ifr_flags & (IFF_UP | IFF_RUNNING | IFF_LOOPBACK), IFF_UP | IFF_RUNNING);
    ifr = ask_of("hca1", SIOCGIFINDEX);
    ck_assert_int_eq(ifr.ifr_ifindex, (int)if_nametoindex("hca1"));
    loopback = ask_of("lo", SIOCGIFADDR);
    ck_assert_uint_eq(ipv4_of(&loopback.ifr_addr), INADDR_LOOPBACK);
}
END_TEST

START_TEST(ioctl_refuses_as_the_kernel_does)
{
    struct ifreq ifr = {.ifr_name = "hca2"};
    int fd, file;

    own_wire();
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    file = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(ioctl(fd, SIOCGIFMTU, &ifr), -1);
    ck_assert_int_eq(errno, ENODEV);
    ck_assert_int_eq(ioctl(fd, SIOCGIFMTU, NULL), -1);
    ck_assert_int_eq(errno, EFAULT);
    strcpy(ifr.ifr_name, "hca0");
    ck_assert_int_eq(ioctl(file, SIOCGIFMTU, &ifr), -1);
    ck_assert_int_eq(errno, ENOTTY);
    ck_assert_int_eq(ioctl(fd, SIOCSIFMTU, &ifr), -1);
    close(file);
    close(fd);
}
END_TEST

/* Lists all interfaces with an IPv4 address, in a buffer with room for so many. */
static int list_interfaces(struct ifreq *list, int room, bool *has_lo, bool *has_hca1)
{
    struct ifconf conf = {.ifc_len = room * (int)sizeof(*list), .ifc_req = list};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), found;

    ck_assert_int_eq(ioctl(fd, SIOCGIFCONF, &conf), 0);
    close(fd);
    found = conf.ifc_len / (int)sizeof(*list);
    for (int i = 0; list && i < found; i++) {
        *has_lo |= !strcmp(list[i].ifr_name, "lo");
        *has_hca1 |= !strcmp(list[i].ifr_name, "hca1") && ipv4_of(&list[i].ifr_addr) == 0x0a090808;
    }
    return found;
}

START_TEST(ioctl_lists_the_interface)
{
    bool has_lo = false, has_hca1 = false;
    struct ifreq list[64];
    int all;

    own_wire();
    all = list_interfaces(NULL, 0, &has_lo, &has_hca1);
    ck_assert_int_eq(list_interfaces(list, 64, &has_lo, &has_hca1), all);
    ck_assert(has_lo && has_hca1);
    has_hca1 = false;
    ck_assert_int_eq(list_interfaces(list, all - 1, &has_lo, &has_hca1), all - 1);
    ck_assert(!has_hca1);
}
END_TEST

static void ethtool_tells_speed(const char *profile, unsigned mbps, unsigned mode)
{
    union {
        struct ethtool_link_settings settings; /* the masks follow it */
        uint32_t words[sizeof(struct ethtool_link_settings) / 4 + 3 * 127];
    } link = {.settings = {.cmd = ETHTOOL_GLINKSETTINGS}};
    struct ifreq ifr = {.ifr_name = "hca0", .ifr_data = (void *)&link};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    own_wire();
    setenv("HCASIM_PROFILE", profile, 1);
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    link.settings.link_mode_masks_nwords = (int8_t)-link.settings.link_mode_masks_nwords;
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    ck_assert_uint_eq(link.settings.speed, mbps);
    ck_assert_uint_eq(link.words[sizeof(link.settings) / 4 + mode / 32], 1u << mode % 32);
    close(fd);
}

START_TEST(ethtool_tells_the_speed_of_a_connectx_4_lx)
{
    ethtool_tells_speed("cx4lx", 25000, ETHTOOL_LINK_MODE_25000baseCR_Full_BIT);
}
END_TEST

START_TEST(ethtool_tells_the_speed_of_a_connectx_7)
{
    ethtool_tells_speed("cx7", 400000, ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT);
}
END_TEST

START_TEST(ethtool_tells_driver_and_speed)
{
    /* The settings, followed by three masks of link modes of up to 127 words each. */
    struct ethtool_link_settings *link = calloc(1, sizeof(*link) + 3 * 127 * sizeof(uint32_t));
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    struct ifreq ifr = {.ifr_name = "hca1"};
    int fd;

    own_wire();
    ck_assert_ptr_nonnull(link);
    link->cmd = ETHTOOL_GLINKSETTINGS;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifr.ifr_data = (void *)&info;
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    ck_assert_str_eq(info.driver, "mlx5_core");
    ck_assert_str_eq(info.bus_info, "ca00:00:01.0");
    ifr.ifr_data = (void *)&cmd;
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    ck_assert_uint_eq(ethtool_cmd_speed(&cmd), 100000);
    ifr.ifr_data = (void *)link;
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    ck_assert_int_lt(link->link_mode_masks_nwords, 0);
    ck_assert_uint_eq(link->speed, 0);
    link->link_mode_masks_nwords = (int8_t)-link->link_mode_masks_nwords;
    ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &ifr), 0);
    ck_assert_uint_eq(link->speed, 100000);
    free(link);
    close(fd);
}
END_TEST

/* -- arbitrary requests ------------------------------------------------------------------------ */

static void send_noise(int fd, unsigned *seed)
{
    uint8_t bytes[96];
    struct nlmsghdr header = {.nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = 1};
    size_t len = (size_t)rand_r(seed) % sizeof(bytes);

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(rand_r(seed) % 3 ? rand_r(seed) % 32 : rand_r(seed));
    }
    header.nlmsg_len = (uint32_t)rand_r(seed) % (sizeof(bytes) + 32);
    header.nlmsg_type = rand_r(seed) % 2 ? (uint16_t)(RTM_NEWLINK + rand_r(seed) % 20)
                                         : (uint16_t)NLDEV(rand_r(seed) % 24);
    header.nlmsg_flags |= (uint16_t)(rand_r(seed) % 2 ? NLM_F_DUMP : rand_r(seed) % 0x400);
    header.nlmsg_flags &= (uint16_t) ~(NLM_F_CREATE | NLM_F_REPLACE);
    memcpy(bytes, &header, sizeof(header));
    send(fd, bytes, len, 0);
}

/* With sufficient rights, a request that changes something could do harm. */
static bool is_harmless(int family)
{
    return family == NETLINK_RDMA || geteuid() != 0;
}

START_TEST(no_request_does_harm)
{
    static const int families[] = {NETLINK_RDMA, NETLINK_ROUTE};
    unsigned seed = 5;

    own_wire();
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        int fd = netlink(families[f]);

        for (int i = 0; is_harmless(families[f]) && i < 20000; i++) {
            send_noise(fd, &seed);
            while (recv(fd, received, sizeof(received), MSG_DONTWAIT) > 0) {
            }
        }
        close(fd);
        fd = netlink(NETLINK_ROUTE);
        dump_links(fd);
        ck_assert_ptr_nonnull(link_named("hca0"));
        close(fd);
    }
}
END_TEST

START_TEST(a_child_asks_as_its_parent_does)
{
    int fd, status;
    pid_t pid;

    own_wire();
    fd = netlink(NETLINK_ROUTE);
    dump_links(fd);
    pid = fork();
    if (!pid) {
        int own = netlink(NETLINK_ROUTE);

        dump_links(own);
        _exit(link_named("hca0") && link_named("lo") ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    dump_links(fd);
    ck_assert_ptr_nonnull(link_named("hca0"));
    close(fd);
}
END_TEST

/* Gives the loopback interface these addresses, in a network of this process's own. */
static void add_addresses(unsigned count)
{
    int fd;

    ck_assert_msg(!unshare(CLONE_NEWUSER | CLONE_NEWNET), "unshare: %s", strerror(errno));
    fd = netlink(NETLINK_ROUTE);
    for (unsigned i = 1; i <= count; i++) {
        const struct ifaddrmsg header = {
            .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
        uint32_t addr = htonl(0x0a4d0000 + i);
        struct {
            struct nlmsghdr message;
            int32_t error;
        } answer;
        uint8_t bytes[1024];

        ask(fd, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &header, sizeof(header), IFA_LOCAL, &addr,
            sizeof(addr));
        ck_assert_int_ge(recv(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(answer));
        memcpy(&answer, bytes, sizeof(answer));
        ck_assert_int_eq(answer.message.nlmsg_type, NLMSG_ERROR);
        ck_assert_int_eq(answer.error, 0);
    }
    close(fd);
}

/* The kernel makes the datagrams of a dump as long as the longest buffer that they may go to. */
START_TEST(a_dump_of_many_datagrams_fits_a_small_buffer)
{
    const struct ifaddrmsg header = {.ifa_family = AF_INET};
    unsigned ours = 0, others = 0;
    uint8_t bytes[4096];
    bool done = false;
    int fd;

    own_wire();
    add_addresses(150);
    fd = netlink(NETLINK_ROUTE);
    for (int dump = 0; dump < 2; dump++, done = false) {
        ask(fd, RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header), 0, NULL, 0);
        while (!done) {
            ssize_t len = recv(fd, bytes, sizeof(bytes), MSG_TRUNC);

            ck_assert_int_gt(len, 0);
            ck_assert_int_le(len, sizeof(bytes));
            for (struct nlmsghdr *answer = (struct nlmsghdr *)(void *)bytes; NLMSG_OK(answer, len);
                 answer = NLMSG_NEXT(answer, len)) {
                const struct ifaddrmsg *address = NLMSG_DATA(answer);

                done |= answer->nlmsg_type == NLMSG_DONE;
                ours += answer->nlmsg_type == RTM_NEWADDR && address->ifa_index >= 0xca0000;
                others += answer->nlmsg_type == RTM_NEWADDR && address->ifa_index == 1;
            }
        }
    }
    ck_assert_uint_eq(ours, 2 * 2);
    ck_assert_uint_ge(others, 2 * 150);
    close(fd);
}
END_TEST

struct links {
    unsigned count;
    unsigned bad;   /* dumps without all links */
    char wrong[64]; /* about the first of them; empty: there was none */
};

/* Counts the messages about links in many dumps; each thread has its own socket. */
static void *count_links(void *opaque)
{
    struct links *links = opaque;
    uint8_t bytes[16384];
    int fd = netlink(NETLINK_ROUTE);

    for (uint32_t seq = 1; seq <= 50; seq++) {
        const struct {
            struct nlmsghdr message;
            struct ifinfomsg header;
        } request = {.message = {.nlmsg_len = sizeof(request),
                                 .nlmsg_type = RTM_GETLINK,
                                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                                 .nlmsg_seq = seq}};
        unsigned before = links->count;
        bool done = false;

        ck_assert_int_eq(send(fd, &request, sizeof(request), 0), sizeof(request));
        while (!done) {
            ssize_t len = recv(fd, bytes, sizeof(bytes), 0);

            ck_assert_int_gt(len, 0);
            for (struct nlmsghdr *answer = (struct nlmsghdr *)(void *)bytes; NLMSG_OK(answer, len);
                 answer = NLMSG_NEXT(answer, len)) {
                done |= answer->nlmsg_type == NLMSG_DONE;
                if (answer->nlmsg_type == RTM_NEWLINK) {
                    const struct ifinfomsg *header = NLMSG_DATA(answer);

                    links->count += header->ifi_index >= 0xca0000;
                }
                if (done && links->count != before + 2 && !links->bad++) {
                    int32_t error;

                    memcpy(&error, NLMSG_DATA(answer), sizeof(error));
                    snprintf(links->wrong, sizeof(links->wrong), "dump %u: %u links, error %d", seq,
                             links->count - before, error);
                }
            }
        }
    }
    close(fd);
    return NULL;
}

START_TEST(threads_do_not_disturb_each_other)
{
    pthread_t threads[4];
    struct links links[4] = {0};

    own_wire();
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_links, &links[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(links[i].bad == 0, "thread %d, %u bad dumps, the first: %s", i, links[i].bad,
                      links[i].wrong);
        ck_assert_uint_eq(links[i].count, 100);
    }
}
END_TEST

int main(void)
{
    const TTest *const statements[] = {
        the_network_device_is_among_the_links,
        a_link_is_found_by_its_name_and_by_its_number,
        its_addresses_are_among_the_addresses,
        routes_lead_to_hosts,
        the_family_of_rdma_tells_devices_and_ports,
        the_family_of_rdma_tells_of_device_files,
        ioctl_tells_what_the_interface_is,
        ioctl_refuses_as_the_kernel_does,
        ioctl_lists_the_interface,
        ethtool_tells_driver_and_speed,
        ethtool_tells_the_speed_of_a_connectx_4_lx,
        ethtool_tells_the_speed_of_a_connectx_7,
        no_request_does_harm,
        a_child_asks_as_its_parent_does,
        a_dump_of_many_datagrams_fits_a_small_buffer,
        threads_do_not_disturb_each_other,
    };
    TCase *tc = tcase_create("beside-net");
    Suite *suite = suite_create("verbs-beside-net");

    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        tcase_add_test(tc, statements[i]);
    }
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "beside-net");
}
