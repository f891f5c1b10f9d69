/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements packet_port.h: frames through a file descriptor. Frames that it does not accept are
 * lost, as on any Ethernet. */
#include "tests/conformance/packet_port.h"
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
#include <sys/un.h>
#include <unistd.h>

struct packet_port {
    struct wire_port port;
    int fd;
    struct sockaddr_un to; /* unix: the destination of frames; its file need not exist yet */
    uint8_t tx[WIRE_FRAME_MAX], rx[WIRE_FRAME_MAX];
};

static uint8_t *packet_tx_reserve(struct wire_port *port, size_t len)
{
    return len <= WIRE_FRAME_MAX ? ((struct packet_port *)port)->tx : NULL;
}

static void packet_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct packet_port *p = (struct packet_port *)port;
    ssize_t sent = 0;

    if (len < ETH_HLEN) {
        return;
    }
    if (p->to.sun_family) {
        sent = sendto(p->fd, p->tx, len, 0, (struct sockaddr *)&p->to, sizeof(p->to));
    } else {
        sent = write(p->fd, p->tx, len);
    }
    if (sent < 0) {
        g_debug("a frame is lost: %s", g_strerror(errno));
    }
}

/* A packet socket also receives what its own host sends. */
static bool packet_is_mine(struct packet_port *p, ssize_t *len)
{
    struct sockaddr_ll from = {0};
    socklen_t from_len = sizeof(from);

    *len = recvfrom(p->fd, p->rx, sizeof(p->rx), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
    if (*len < 0 && errno == ENOTSOCK) { /* a tap */
        *len = read(p->fd, p->rx, sizeof(p->rx));
        return false;
    }
    return from.sll_family == AF_PACKET && from.sll_pkttype == PACKET_OUTGOING;
}

static unsigned packet_poll(struct wire_port *port, unsigned max)
{
    struct packet_port *p = (struct packet_port *)port;
    unsigned n = 0;
    ssize_t len;

    for (; n < max; n++) {
        bool mine = packet_is_mine(p, &len);

        if (len < 0) {
            break;
        }
        if (!mine && len >= ETH_HLEN && port->client) {
            port->client->rx(port->opaque, p->rx, (size_t)len, 0);
        }
    }
    return n;
}

static bool packet_link_up(struct wire_port *port)
{
    return true;
}

static void packet_close(struct wire_port *port)
{
    close(((struct packet_port *)port)->fd);
    g_free(port);
}

static int packet_fd(struct wire_port *port)
{
    return ((struct packet_port *)port)->fd;
}

static const struct wire_port_ops packet_ops = {
    .tx_reserve = packet_tx_reserve,
    .tx_commit = packet_tx_commit,
    .poll = packet_poll,
    .link_up = packet_link_up,
    .close = packet_close,
    .fd = packet_fd,
};

/* -- the three kinds: a descriptor, or -1 with *err -------------------------------------------- */

/* Closes the descriptor, if it is one. Returns -1. */
static int packet_refuse(int fd, int why, GError **err, const char *fmt, ...) G_GNUC_PRINTF(4, 5);
static int packet_refuse(int fd, int why, GError **err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_propagate_error(err,
                      g_error_new_valist(G_FILE_ERROR, g_file_error_from_errno(why), fmt, args));
    va_end(args);
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static int packet_open_unix(struct packet_port *p, const char *name, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(name, ":", 2);
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    int fd;

    p->to.sun_family = AF_UNIX;
    if (!parts[0] || !*parts[0] || !parts[1] || !*parts[1] ||
        g_strlcpy(own.sun_path, parts[0], sizeof(own.sun_path)) >= sizeof(own.sun_path) ||
        g_strlcpy(p->to.sun_path, parts[1], sizeof(p->to.sun_path)) >= sizeof(p->to.sun_path)) {
        return packet_refuse(-1, EINVAL, err,
                             "say unix:OURS:THEIRS with two paths of at most %zu bytes",
                             sizeof(own.sun_path) - 1);
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    unlink(own.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own))) {
        return packet_refuse(fd, errno, err, "%s: %s", own.sun_path, g_strerror(errno));
    }
    return fd;
}

/* The names of the machine's interfaces, as "a, b"; the caller frees them. */
static char *packet_interfaces(void)
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
static bool packet_is_up(const char *name)
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
static int packet_open_tap(struct packet_port *p, const char *name, GError **err)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd;

    if (!if_nametoindex(name)) {
        return packet_refuse(-1, ENODEV, err,
                             "there is no interface '%s': ip tuntap add %s mode tap && ip link set "
                             "%s up",
                             name, name, name);
    }
    if (!packet_is_up(name)) {
        return packet_refuse(-1, ENETDOWN, err, "the interface '%s' is down: ip link set %s up",
                             name, name);
    }
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return packet_refuse(-1, errno, err, "/dev/net/tun: %s", g_strerror(errno));
    }
    g_strlcpy(request.ifr_name, name, sizeof(request.ifr_name));
    if (ioctl(fd, TUNSETIFF, &request)) {
        return packet_refuse(fd, errno, err, "%s: %s", name,
                             errno == EPERM    ? "only root and its owner can open a tap interface"
                             : errno == EINVAL ? "this is no tap interface"
                             : errno == EBUSY  ? "another program has this tap interface open"
                                               : g_strerror(errno));
    }
    return fd;
}

/* The port does not know the addresses of expected frames, so a card must accept all addresses. */
static bool packet_take_all(int fd, int ifindex)
{
    struct packet_mreq all = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

    return !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
}

static int packet_open_interface(struct packet_port *p, const char *name, GError **err)
{
    struct sockaddr_ll own = {.sll_family = AF_PACKET,
                              .sll_protocol = htons(ETH_P_ALL),
                              .sll_ifindex = (int)if_nametoindex(name)};
    int fd;

    if (!own.sll_ifindex) {
        g_autofree char *names = packet_interfaces();

        return packet_refuse(-1, ENODEV, err, "there is no interface '%s'; interfaces: %s", name,
                             names);
    }
    if (!packet_is_up(name)) {
        return packet_refuse(-1, ENETDOWN, err, "the interface '%s' is down: ip link set %s up",
                             name, name);
    }
    /* no frames before bind() */
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
        !packet_take_all(fd, own.sll_ifindex)) {
        return packet_refuse(fd, errno, err, "%s: %s", name,
                             errno == EPERM ? "only root can open an interface (CAP_NET_RAW)"
                                            : g_strerror(errno));
    }
    return fd;
}

static const struct {
    const char *scheme;
    int (*open)(struct packet_port *p, const char *name, GError **err);
} kinds[] = {
    {"unix:", packet_open_unix},
    {"tap:", packet_open_tap},
    {"if:", packet_open_interface},
};

static unsigned packet_kind(const char *uri)
{
    unsigned i = 0;

    while (i < G_N_ELEMENTS(kinds) && !g_str_has_prefix(uri, kinds[i].scheme)) {
        i++;
    }
    return i;
}

bool packet_port_is(const char *uri)
{
    return packet_kind(uri) < G_N_ELEMENTS(kinds);
}

struct wire_port *packet_port_open(const char *uri, GError **err)
{
    struct packet_port *p = g_new0(struct packet_port, 1);
    unsigned kind = packet_kind(uri);

    p->port.ops = &packet_ops;
    p->fd = kinds[kind].open(p, uri + strlen(kinds[kind].scheme), err);
    if (p->fd < 0) {
        g_free(p);
        return NULL;
    }
    return &p->port;
}
