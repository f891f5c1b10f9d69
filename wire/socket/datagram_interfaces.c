/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports on tap interfaces (tun(4)) and on network interfaces (packet(7)). */
#include "wire/socket/datagram_priv.h"
#include "wire/socket/packet_rx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The names of the machine's interfaces, as "a, b"; the caller frees them. */
static char *interface_names(void)
{
    struct if_nameindex *all = if_nameindex();
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; all && all[i].if_index; i++) {
        g_string_append_printf(names, "%s%s", i ? ", " : "", all[i].if_name);
    }
    if (all) {
        if_freenameindex(all);
    }
    return g_string_free(names, false);
}

/* Whether an interface is up, as far as this process can see. */
static bool interface_is_up(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_up;

    g_strlcpy(request.ifr_name, name, sizeof(request.ifr_name));
    is_up = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) || request.ifr_flags & IFF_UP;
    if (fd >= 0) {
        close(fd);
    }
    return is_up;
}

/* An interface that does not exist would be made, as an interface without a peer. */
static int interface_make_tap(struct datagram *d, GError **err)
{
    const char *name = d->name;
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd;

    if (!if_nametoindex(name)) {
        return datagram_refuse(
            -1, err,
            "there is no interface '%s': ip tuntap add %s mode tap && ip link set "
            "%s up",
            name, name, name);
    }
    if (!interface_is_up(name)) {
        return datagram_refuse(-1, err, "the interface '%s' is down: ip link set %s up", name,
                               name);
    }
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return datagram_refuse(-1, err, "/dev/net/tun: %s", g_strerror(errno));
    }
    g_strlcpy(request.ifr_name, name, sizeof(request.ifr_name));
    if (ioctl(fd, TUNSETIFF, &request)) {
        return datagram_refuse(fd, err, "%s: %s", name,
                               errno == EPERM ? "only root and its owner can open a tap interface"
                               : errno == EINVAL ? "this is no tap interface"
                               : errno == EBUSY  ? "another program has this tap interface open"
                                                 : g_strerror(errno));
    }
    return fd;
}

/* The port does not know the addresses of expected frames, so a card must accept all addresses. */
static bool interface_take_all(int fd, int ifindex)
{
    struct packet_mreq all = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

    return !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
}

static int interface_make_packet(struct datagram *d, GError **err)
{
    const char *name = d->name;
    struct sockaddr_ll own = {.sll_family = AF_PACKET,
                              .sll_protocol = htons(ETH_P_ALL),
                              .sll_ifindex = (int)if_nametoindex(name)};
    int fd;

    if (!own.sll_ifindex) {
        g_autofree char *names = interface_names();

        return datagram_refuse(-1, err, "there is no interface '%s'; interfaces: %s", name, names);
    }
    if (!interface_is_up(name)) {
        return datagram_refuse(-1, err, "the interface '%s' is down: ip link set %s up", name,
                               name);
    }
    /* no frames before bind() */
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
        !interface_take_all(fd, own.sll_ifindex) || !packet_rx_prepare(fd)) {
        return datagram_refuse(fd, err, "%s: %s", name,
                               errno == EPERM ? "only root can open an interface (CAP_NET_RAW)"
                                              : g_strerror(errno));
    }
    return fd;
}

struct wire_port *wire_tap_open(const char *rest, GError **err)
{
    struct datagram *d = datagram_new();

    d->is_socket = false;
    d->name = g_strdup(rest);
    return datagram_open(d, interface_make_tap, err);
}

struct wire_port *wire_interface_open(const char *rest, GError **err)
{
    struct datagram *d = datagram_new();

    d->is_interface = true;
    d->name = g_strdup(rest);
    return datagram_open(d, interface_make_packet, err);
}
